/* pairs: what is a function of (sequence, head, query, key), on the host: the twin of templates/pairs/, which kernels print. Argument
 * checks, tensor maps, oracles, poison, the model and the scripts of bench/ ask here. Queries and keys count from the sequence's first. */
#ifndef FA_GEN_PAIRS_H
#define FA_GEN_PAIRS_H
#include <fagen.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- seen or hidden ---- */

/* A mask before lengths are known: query i sees key j when lo <= j - i - off <= hi, where off is keys less queries of the sequence if
 * `relative`, else 0. Both saturate at FA_MAX_LENGTH of either sign, which no length passes: unbounded is that, too. */
typedef struct fa_shift {
    bool relative;
    int32_t lo, hi;
} fa_shift;
/* mask is a fa_mask; the others as in fa_args, of any size; left and right are read for FA_MASK_WINDOW alone. */
fa_shift fa_shift_of(int mask, int diagonal, int64_t offset, int64_t left, int64_t right);

/* Where query i of a sequence lies among its keys without `relative`, at i + offset; saturates as the others. */
int32_t fa_offset_of(int diagonal, int64_t offset);

/* The mask's diagonals as a launch uses them: key j is visible to query i when i + lo <= j <= i + hi. lo <= hi. */
typedef struct fa_band {
    int64_t lo, hi;
} fa_band;

/* The pairs of one sequence, of every head. */
typedef struct fa_pairs {
    int64_t sq, sk;
    fa_band band;
} fa_pairs;
/* The band is clamped to -sq and sk, beyond which no pair is. Lengths: 0 to FA_MAX_LENGTH. */
fa_pairs fa_pairs_of(fa_shift shift, int64_t sq, int64_t sk);

/* The band of a problem's lengths and mask. */
fa_band fa_band_of(const fa_problem *p, int diagonal, int64_t offset, int64_t left, int64_t right);

/* The size of a window where a problem says none: the keys that a row sees beside its own. */
#define FA_MODEL_WINDOW 1024
/* That of a problem, which tells no more than a window's size: bottom-right, all of a window to the left, FA_MODEL_WINDOW keys where it is
 * 0. */
fa_band fa_band_of_problem(const fa_problem *p);

/* first to last, both included; none where last < first. */
typedef struct fa_range {
    int64_t first, last;
} fa_range;

/* The keys that some query of a range sees, and the queries that see some key of a range. A range of one asks about that one. No pair lies
 * outside, and each in between is of some pair. The range that is asked about lies within the sequence, or is none. */
fa_range fa_pairs_keys(const fa_pairs *p, fa_range queries);
fa_range fa_pairs_queries(const fa_pairs *p, fa_range keys);
/* The same of all queries, of all keys: what of the sequence is of any pair. first is at most sk, at most sq. */
fa_range fa_pairs_all_keys(const fa_pairs *p);
fa_range fa_pairs_all_queries(const fa_pairs *p);

/* Keys that any `rows` consecutive queries see, at most. */
int64_t fa_pairs_keys_most(const fa_pairs *p, int64_t rows);

/* Visible pairs of a head: exact, at most 2^60. */
int64_t fa_pairs_count(const fa_pairs *p);
/* Their share of all pairs; 1 where there is none. */
double fa_pairs_share(const fa_pairs *p);

/* What a tile meets when it walks the other side in blocks of `width`, of which the first begins at 0: blocks that hold a visible pair, and
 * those of them in which every pair is one. A block that the sequence ends in is not full. All others of the sequence are empty. */
typedef struct fa_blocks {
    fa_range some, full;
    int64_t empty, partial, whole; /* how many */
} fa_blocks;
fa_blocks fa_pairs_key_blocks(const fa_pairs *p, fa_range queries, int64_t width);
fa_blocks fa_pairs_query_blocks(const fa_pairs *p, fa_range keys, int64_t width);

/* ---- kept or dropped ----
 *
 * Which probabilities a launch drops is a function of the seed, the offset, the head and the place of the pair, and of nothing else.
 * Philox4x32-7 (philox.h) gives four words for eight pairs, query i or i + 8 and keys j and j + 1 or j + 8 and j + 9, where i mod 16 and
 * j mod 16 are below 8 and j is even:
 *     key       {seed, low half; seed, high half ^ offset, high half}
 *     counter   {offset, low half; b hq + h; i / 16 * 8 + i % 8; (j / 16 * 8 + j % 8) / 2}
 *     words     (i, j) (i, j + 8) (i + 8, j) (i + 8, j + 8), the even key's in the lower 16 bits, the odd one's in the upper
 * A pair is kept where the lower 15 of its 16 bits are at least `below`. */
typedef struct fa_dropout {
    uint64_t seed, offset;
    uint32_t below; /* what is below it is dropped; 0 = nothing is */
    float scale;    /* of what is kept: 1 / (1 - below / 2^15) */
} fa_dropout;

/* probability: of a pair to be dropped, 0 to below 1. */
fa_dropout fa_dropout_of(float probability, uint64_t seed, uint64_t offset);
uint32_t fa_dropout_below(float probability);      /* probability * 2^15 to the nearest, at most 2^15 - 1 */
uint32_t fa_dropout_word_below(float probability); /* the same of 2^32: what kernels of before ask for, which bundles may hold */
float fa_dropout_scale(float probability);

/* What the probability of a pair is multiplied by: 0 where it is dropped. NULL: no dropout, 1. head: b hq + h, of query head h of sequence
 * b. */
double fa_pairs_kept(const fa_dropout *d, int64_t head, int64_t query, int64_t key);
#endif
