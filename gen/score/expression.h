/* expression: expressions of a score program's text as nodes. */
#ifndef FA_GEN_SCORE_EXPRESSION_H
#define FA_GEN_SCORE_EXPRESSION_H
#include "lowering.h"

/* A number or a truth. */
fa_status fa_expression_node(fa_lowering *l, int32_t at, int *out);
/* A truth; what: begins the message where it is a number. */
fa_status fa_expression_truth(fa_lowering *l, int32_t at, int *out, const char *what);
#endif
