/* issue: what a node costs a pair. */
#ifndef FA_GEN_SCORE_ISSUE_H
#define FA_GEN_SCORE_ISSUE_H
#include "ir.h"

/* Instructions of the node alone, about. exps: those of the special-function unit are added. */
double fa_score_instructions(const fa_score_ir *ir, const fa_score_node *a, double *exps);
#endif
