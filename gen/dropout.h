/* dropout: which probabilities a launch drops: a function of the seed, the offset, the head and the place of the pair, and of nothing else.
 *
 * Philox4x32-10 (philox.h) gives four words for four pairs, query i or i + 8 and key j or j + 8, where i mod 16 and j mod 16 are below 8:
 *     key       {seed, low half; seed, high half ^ offset, high half}
 *     counter   {offset, low half; b hq + h; i / 16 * 8 + i % 8; j / 16 * 8 + j % 8}
 *     words     (i, j) (i, j + 8) (i + 8, j) (i + 8, j + 8)
 * A pair is kept where its word is at least `below`. templates/pairs/philox.cu is the same function. */
#ifndef FA_GEN_DROPOUT_H
#define FA_GEN_DROPOUT_H
#include <stdbool.h>
#include <stdint.h>

typedef struct fa_dropout {
    uint64_t seed, offset;
    uint32_t below; /* words below it are dropped; 0 = none is */
    float scale;    /* of what is kept: 1 / (1 - probability) */
} fa_dropout;

/* probability: of a pair to be dropped, 0 to below 1. */
fa_dropout fa_dropout_of(float probability, uint64_t seed, uint64_t offset);
uint32_t fa_dropout_below(float probability); /* probability * 2^32 to the nearest */
float fa_dropout_scale(float probability);

/* head: b hq + h, of query head h of sequence b; query, key: in the sequence, from 0. */
bool fa_dropout_keeps(const fa_dropout *d, int64_t head, int64_t query, int64_t key);
#endif
