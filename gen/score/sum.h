/* sum: an integer as a sum of multiples of nodes. */
#ifndef FA_GEN_SCORE_SUM_H
#define FA_GEN_SCORE_SUM_H
#include "ir.h"

#define FA_SCORE_LEAVES_MAX 16

typedef struct fa_score_sum {
    int n;
    int16_t leaf[FA_SCORE_LEAVES_MAX];
    int64_t times[FA_SCORE_LEAVES_MAX]; /* 0 where it cancels */
    int64_t more;
    bool full; /* there are more leaves, or larger multiples, than fit: what is here is no sum of the node */
} fa_score_sum;

/* Adds times * node. whole, by node: those that are not looked into; NULL: none. */
void fa_score_sum_add(fa_score_sum *s, const fa_score_ir *ir, int node, int64_t times, const uint8_t *whole);
#endif
