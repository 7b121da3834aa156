/* derive: derivatives of nodes, as nodes of the same IR. */
#ifndef FA_GEN_SCORE_DERIVE_H
#define FA_GEN_SCORE_DERIVE_H
#include "ir.h"

/* The derivative of `of` by the leaf or lookup `by`, a number with a fraction, all else held; where a function has a corner, that of one
 * side. Integers and truths are constants. -1: there is no more room. A derivative of tanh and exp reads their values. */
int fa_score_derive(fa_score_ir *ir, int of, int by);
#endif
