/* far: where a function of key - query no longer changes, as a table of buckets beyond its last. There a block of pairs has one value. */
#ifndef FA_GEN_SCORE_FAR_H
#define FA_GEN_SCORE_FAR_H
#include "ir.h"

/* Which distances: those below a bound, or those above one. */
typedef enum fa_score_side { FA_SCORE_BELOW, FA_SCORE_ABOVE, FA_SCORE_SIDES } fa_score_side;

typedef struct fa_score_far {
    int base;      /* an integer that is key - query, or its negative, and what is the same for all pairs of a tile */
    bool negative; /* its negative */
    bool has[FA_SCORE_SIDES];
    int32_t at[FA_SCORE_SIDES]; /* of the base, or of its negative: up to here, or from here on, nothing changes */
} fa_score_far;

/* Of a node that depends on query and key by key - query alone. */
fa_score_far fa_score_far_of(const fa_score_ir *ir, int node);
#endif
