/* program: a score program out of its text: IR, canonical text, identity. */
#ifndef FA_GEN_SCORE_PROGRAM_H
#define FA_GEN_SCORE_PROGRAM_H
#include "ir.h"
#include "planes.h"
#include <fagen.h>

/* 128 bits of the canonical text. */
typedef struct fa_program_id {
    uint64_t lo, hi;
} fa_program_id;

typedef struct fa_program {
    char name[32];   /* of the text, in messages */
    char *source;    /* the text that it was read from */
    char *canonical; /* of the IR, operand types and shapes: no names, layout of the text, or values of scalars. Equal programs have one */
    fa_program_id id;
    fa_score_ir ir;
    fa_score_planes planes;
} fa_program;

/* The numbers that a launch gives for scalars. */
typedef struct fa_score_scalars {
    double of[FA_SCORE_OPERANDS_MAX];
} fa_score_scalars;
fa_score_scalars fa_score_scalars_of(const fa_program *program); /* of the text; NULL is fine */

/* name: of the text, in messages: "score". FA_INVALID with line and column, FA_NOMEM; *out is NULL then. text: n bytes. */
fa_status fa_program_read(fa_program **out, const char *name, const char *text, size_t n);
void fa_program_free(fa_program *p); /* NULL is fine */
bool fa_program_equal(const fa_program *a, const fa_program *b);
#endif
