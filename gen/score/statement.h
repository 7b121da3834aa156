/* statement: statements of a score program's text, and the functions that they make up. */
#ifndef FA_GEN_SCORE_STATEMENT_H
#define FA_GEN_SCORE_STATEMENT_H
#include "lowering.h"

/* The value of a function of the text whose arguments are given; at: the call, for messages. */
fa_status fa_statement_apply(fa_lowering *l, int32_t at, int32_t function, const fa_lowered *given, int *out);
#endif
