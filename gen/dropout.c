/* dropout: which word of Philox decides on a pair. */
#include "dropout.h"
#include "philox.h"
#include <math.h>

uint32_t fa_dropout_below(float probability)
{
    double words = rint((double)probability * 0x1p32);
    return words < 0x1p32 ? (uint32_t)words : UINT32_MAX;
}

float fa_dropout_scale(float probability)
{
    return (float)(1 / (1 - (double)probability));
}

fa_dropout fa_dropout_of(float probability, uint64_t seed, uint64_t offset)
{
    return (fa_dropout){ seed, offset, fa_dropout_below(probability), fa_dropout_scale(probability) };
}

/* Of 16 places in a row 0 to 7 share their calls with 8 to 15. */
static uint32_t block(int64_t place)
{
    return (uint32_t)(place / 16 * 8 + place % 8);
}

bool fa_dropout_keeps(const fa_dropout *d, int64_t head, int64_t query, int64_t key)
{
    const uint32_t counter[4] = { (uint32_t)d->offset, (uint32_t)head, block(query), block(key) };
    const uint32_t keys[2] = { (uint32_t)d->seed, (uint32_t)(d->seed >> 32) ^ (uint32_t)(d->offset >> 32) };
    uint32_t word[4];
    fa_philox(word, counter, keys);
    return word[query / 8 % 2 * 2 + key / 8 % 2] >= d->below;
}
