/* bounds: a mask solved for the key, or for the query: where every condition on it is linear in it, with ends that depend on the other
 * alone, what a tile sees of it lies between two bounds, and nothing is to be scanned. */
#ifndef FA_GEN_SCORE_BOUNDS_H
#define FA_GEN_SCORE_BOUNDS_H
#include "sum.h"
#include "tiles.h"

enum {
    FA_SCORE_BOUNDS_MAX = 128, /* nodes of a solution */
    FA_SCORE_STEPS_OF_HALF = 3 /* sums of a condition: one, and one for each quotient */
};

/* What a node of a solution is; x is the solved one. */
typedef enum fa_score_bound_kind {
    FA_SCORE_BOUND_UNKNOWN, /* nothing is known of x */
    FA_SCORE_BOUND_FREE,    /* a truth, or its contrary, that does not depend on x */
    FA_SCORE_BOUND_HALF,    /* times * x <= T, below */
    FA_SCORE_BOUND_AND,
    FA_SCORE_BOUND_OR
} fa_score_bound_kind;

/* T of a half begins at 0. Each step takes its sum away; then, but for the last step, T is (T + 1) * by - 1 where the quotient is at most
 * T, or T * by where it is at least -T. */
typedef struct fa_score_bound_step {
    fa_score_sum rest;
    int by; /* node: the divisor, above 0; -1: of the last step */
    bool at_least;
} fa_score_bound_step;

typedef struct fa_score_bound {
    uint8_t kind;
    bool contrary; /* FREE */
    int16_t node;  /* FREE */
    int16_t x, y;  /* AND, OR */
    int times;     /* HALF: a whole number, 0 too */
    int steps;
    fa_score_bound_step step[FA_SCORE_STEPS_OF_HALF];
} fa_score_bound;

typedef struct fa_score_bounds {
    const fa_score_tiles *tiles;
    fa_score_op of; /* FA_SCORE_J: bounds of keys of a tile's queries; FA_SCORE_I: of queries of its keys */
    int n, root;
    bool exact;     /* what lies between is one interval for each row: a scan finds no more */
    bool two_ended; /* which ends at both sides */
    bool in_runs;   /* a quotient has an end: rows beside each other begin at the same key, or end there */
    /* Where such a quotient is one of a query and a number by the divisor, all alike for all pairs: the nodes of the sum and of the
     * divisor. -1: it is none. */
    int run_of, run_by;
    fa_score_bound node[FA_SCORE_BOUNDS_MAX];
} fa_score_bounds;

/* Where tiles has a mask. What cannot be solved is unknown in the solution; a root that is so bounds nothing. */
void fa_score_bounds_of(fa_score_bounds *out, const fa_score_tiles *tiles, fa_score_op of);
/* The same of n truths that all have to hold, at least one. */
void fa_score_bounds_of_all(fa_score_bounds *out, const fa_score_tiles *tiles, fa_score_op of, const int16_t *truth, int n);
#endif
