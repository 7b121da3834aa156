/* lower: what the text of a score program computes, as IR: the text is evaluated once, with nodes in the place of values. Functions are
 * written out where they are called, loops as often as they run; of an if both branches are evaluated, and values that differ become a
 * select. */
#ifndef FA_GEN_SCORE_LOWER_H
#define FA_GEN_SCORE_LOWER_H
#include "ir.h"
#include "tree.h"

/* FA_INVALID with line and column. *out is undefined then. */
fa_status fa_score_lower(fa_score_ir *out, const fa_score_tree *tree);
#endif
