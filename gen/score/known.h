/* known: the score programs of this process, by identity. A problem names its program by numbers alone (fa_problem.score_id0 to 3), and who
 * renders its kernel, draws a case of it or writes a record finds it here. The list grows and never shrinks, for all threads; look-ups take
 * no lock. */
#ifndef FA_GEN_SCORE_KNOWN_H
#define FA_GEN_SCORE_KNOWN_H
#include "program.h"

/* Takes p: *out is p, or an equal one that was there, and p is freed. FA_NOMEM, FA_UNSUPPORTED: p is freed, *out is NULL. */
fa_status fa_score_known_add(const fa_program **out, fa_program *p);

/* The program of a text, added; name as in fa_program_read(). */
fa_status fa_score_known_read(const fa_program **out, const char *name, const char *text, size_t n);

/* The program that the problem names; NULL: it names none, or one that this process does not know. Stays valid. */
const fa_program *fa_score_known(const fa_problem *p);

/* Writes the program's numbers and its feature into a problem; NULL: takes those that are there out. */
void fa_score_known_name(fa_problem *p, const fa_program *program);
#endif
