/* slope: what is linear in the key, or in the query. */
#ifndef FA_GEN_SCORE_SLOPE_H
#define FA_GEN_SCORE_SLOPE_H
#include "ir.h"

/* What the leaf, FA_SCORE_J or FA_SCORE_I, is multiplied by in a node that is linear in it, as a number of the node's type; -1: it is not,
 * or there is no more room. of: what those depend on that are made of the leaf. */
int fa_score_slope_by(fa_score_ir *ir, int node, unsigned of, fa_score_op leaf);

/* The same of the key. */
int fa_score_slope_of(fa_score_ir *ir, int node);
#endif
