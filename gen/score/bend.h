/* bend: how a score changes with its product. */
#ifndef FA_GEN_SCORE_BEND_H
#define FA_GEN_SCORE_BEND_H
#include "ir.h"

/* The derivative of unit * pair by s, unit -1: of pair, as a product of what differs from pair to pair and what is the same for a row;
 * factors that stand above and below cancel. The constant 1 where the score is s and what does not depend on it. -1: there is no more room
 * for nodes. */
int fa_score_bend_of(fa_score_ir *ir, int pair, int unit);

/* y of a derivative that is 1 - y; -1: it is not. P times it is one multiply-add of P and y. */
int fa_score_bend_below_one(const fa_score_ir *ir, int node);

/* Whether the node is finite wherever it is a number. */
bool fa_score_is_finite(const fa_score_ir *ir, int node);
#endif
