/* apply: one operation of the IR on numbers, in fp64: what folding of constants and evaluation have in common. */
#ifndef FA_GEN_SCORE_APPLY_H
#define FA_GEN_SCORE_APPLY_H
#include "ir.h"

/* Truths are 0 and 1, integers exact. Of an operation with arguments, but for LOOKUP; those it does not take are not looked at. */
double fa_score_apply(fa_score_op op, double x, double y, double z);
#endif
