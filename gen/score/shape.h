/* shape: extents of an operand as text: "b hq sq/128 2*sk-1". */
#ifndef FA_GEN_SCORE_SHAPE_H
#define FA_GEN_SCORE_SHAPE_H
#include "ir.h"
#include "lexer.h"

/* One to four extents, blanks between. text: the string as it stands in the program called name. */
fa_status fa_score_shape_read(fa_score_operand *out, const char *name, const fa_score_token *text);

/* As it is read; the canonical form. As snprintf. */
int fa_score_shape_print(char *buf, size_t n, const fa_score_operand *o);

/* The extent for lengths, in the order of fa_score_length; -1: it is what the launch says ("?"). */
int64_t fa_score_shape_extent(const fa_score_extent *e, const int64_t lengths[FA_SCORE_LENGTHS]);
#endif
