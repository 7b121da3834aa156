/* arithmetic: an operator or function of the language on nodes: types are matched, integers proven to stay inside 32 bits. */
#ifndef FA_GEN_SCORE_ARITHMETIC_H
#define FA_GEN_SCORE_ARITHMETIC_H
#include "ir.h"
#include "lexer.h"
#include "names.h"

/* Where nodes are made, and what messages say of the place. */
typedef struct fa_score_site {
    fa_score_ir *ir;
    const char *name;     /* of the text */
    fa_score_token token; /* of the operator or the function */
    const char *divisor;  /* as messages call the right side; its letters */
    int divisor_n;
} fa_score_site;

/* x sign y; and, or are none of these. */
fa_status fa_score_binary(const fa_score_site *at, int *out, int x, int y);
/* -x, not x, ~x */
fa_status fa_score_unary(const fa_score_site *at, int *out, int x);
/* A function of the language on n arguments. */
fa_status fa_score_function(const fa_score_site *at, int *out, const fa_score_name *f, const int *x, int n);

/* x where the truth holds, else y; numbers of different types become numbers with a fraction. */
fa_status fa_score_pick(const fa_score_site *at, int *out, int condition, int x, int y);

/* A number with a fraction of any number. */
int fa_score_fraction(fa_score_ir *ir, int x);

/* FA_INVALID where out is -1: there is no more room. */
fa_status fa_score_made(const fa_score_site *at, int out);
#endif
