/* range: intervals of nodes: all values that a node has where its leaves lie in given ranges. Kleene's logic for truths; rounding in fp32
 * is covered by a step outward. What is proven so: sums inside 32 bits, divisors other than 0, blocks of keys that are hidden or seen as
 * a whole. */
#ifndef FA_GEN_SCORE_RANGE_H
#define FA_GEN_SCORE_RANGE_H
#include "ir.h"

/* Where pairs lie, lengths included; what an array's elements are is asked by `look`. */
typedef struct fa_score_box {
    fa_score_range b, h, i, j, s, off, sq, sk, group;
    fa_score_range scalar[FA_SCORE_OPERANDS_MAX];
    /* The elements of an array at indices out of these ranges; NULL: anything that its type holds. */
    fa_score_range (*look)(void *user, int operand, const fa_score_range *index);
    void *user;
    const uint8_t *given; /* by node, not 0 where its range is a table's: sums do not look into its arguments; NULL: there are no tables */
} fa_score_box;

/* All that any launch may have. Scalars: of the program. */
fa_score_box fa_score_box_widest(const fa_score_ir *ir);

/* The range of one node, whose arguments' ranges are in `of`. */
fa_score_range fa_score_range_of(const fa_score_ir *ir, int node, const fa_score_range *of, const fa_score_box *box);

/* Of every node, 0 to ir->n - 1. */
void fa_score_ranges(const fa_score_ir *ir, const fa_score_box *box, fa_score_range *of);

/* As wide as fp32 may compute it: a few roundings outward. */
fa_score_range fa_score_range_rounded(fa_score_range r);
fa_score_range fa_score_range_hull(fa_score_range x, fa_score_range y);
/* All that an array's element may be, of its type alone. */
fa_score_range fa_score_range_of_element(const fa_score_operand *o);

/* Whether a mask, or any truth, holds: always, never, or it depends. */
typedef enum fa_score_verdict { FA_SCORE_NEVER, FA_SCORE_ALWAYS, FA_SCORE_DEPENDS } fa_score_verdict;
fa_score_verdict fa_score_range_verdict(const fa_score_range *truth);
#endif
