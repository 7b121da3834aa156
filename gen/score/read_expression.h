/* read_expression: expressions of a score program's text as a tree. */
#ifndef FA_GEN_SCORE_READ_EXPRESSION_H
#define FA_GEN_SCORE_READ_EXPRESSION_H
#include "reader.h"

/* above: signs that bind more strongly than this are read; 0: all. */
fa_status fa_score_read_expression(fa_score_reader *r, int32_t *out, int above);
/* Values up to `close`, at least one unless `none`. */
fa_status fa_score_read_list(fa_score_reader *r, int32_t *first, fa_score_word close, bool none);
#endif
