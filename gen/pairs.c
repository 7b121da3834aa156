/* pairs: diagonals, what lies between them, and which word of Philox decides on a pair. */
#include "pairs.h"
#include "philox.h"
#include "problem.h"
#include <math.h>

#define FAR ((int64_t)1 << 40) /* beyond every length, and sums of three do not overflow */

static int64_t clamp(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* ---- seen or hidden ---- */

fa_shift fa_shift_of(int mask, int diagonal, int64_t offset, int64_t left, int64_t right)
{
    int64_t fixed = diagonal == FA_OFFSET ? clamp(offset, -FAR, FAR) : 0;
    fa_shift s = { diagonal == FA_BOTTOM_RIGHT, -FA_MAX_LENGTH, FA_MAX_LENGTH };
    if (mask == FA_MASK_WINDOW && left >= 0)
        s.lo = (int32_t)clamp(fixed - clamp(left, 0, FAR), -FA_MAX_LENGTH, FA_MAX_LENGTH);
    if (mask == FA_MASK_CAUSAL)
        s.hi = (int32_t)clamp(fixed, -FA_MAX_LENGTH, FA_MAX_LENGTH);
    if (mask == FA_MASK_WINDOW && right >= 0)
        s.hi = (int32_t)clamp(fixed + clamp(right, 0, FAR), -FA_MAX_LENGTH, FA_MAX_LENGTH);
    return s;
}

int32_t fa_offset_of(int diagonal, int64_t offset)
{
    return diagonal == FA_OFFSET ? (int32_t)clamp(offset, -FA_MAX_LENGTH, FA_MAX_LENGTH) : 0;
}

fa_pairs fa_pairs_of(fa_shift shift, int64_t sq, int64_t sk)
{
    int64_t off = shift.relative ? sk - sq : 0;
    return (fa_pairs){ sq, sk, { clamp(off + shift.lo, -sq, sk), clamp(off + shift.hi, -sq, sk) } };
}

fa_band fa_band_of(const fa_problem *p, int diagonal, int64_t offset, int64_t left, int64_t right)
{
    return fa_pairs_of(fa_shift_of(p->mask, diagonal, offset, left, right), p->sq, p->sk).band;
}

fa_band fa_band_of_problem(const fa_problem *p)
{
    return fa_band_of(p, FA_BOTTOM_RIGHT, 0, p->window ? p->window : FA_MODEL_WINDOW, 0);
}

/* Queries in the place of keys, and keys in that of queries. */
static fa_pairs turned(const fa_pairs *p)
{
    return (fa_pairs){ p->sk, p->sq, { -p->band.hi, -p->band.lo } };
}

fa_range fa_pairs_keys(const fa_pairs *p, fa_range queries)
{
    int64_t first = queries.first + p->band.lo, last = queries.last + p->band.hi;
    fa_range r = { first > 0 ? first : 0, last < p->sk ? last : p->sk - 1 };
    return queries.last < queries.first ? (fa_range){ r.first, r.first - 1 } : r;
}

fa_range fa_pairs_queries(const fa_pairs *p, fa_range keys)
{
    fa_pairs t = turned(p);
    return fa_pairs_keys(&t, keys);
}

fa_range fa_pairs_all_keys(const fa_pairs *p)
{
    return fa_pairs_keys(p, (fa_range){ 0, p->sq - 1 });
}

fa_range fa_pairs_all_queries(const fa_pairs *p)
{
    return fa_pairs_queries(p, (fa_range){ 0, p->sk - 1 });
}

int64_t fa_pairs_keys_most(const fa_pairs *p, int64_t rows)
{
    int64_t most = p->band.hi - p->band.lo + rows;
    return most < p->sk ? most : p->sk;
}

/* The sum of clamp(t, 0, n) for t = a ... a + rows - 1: the keys up to a diagonal. At most 2^60. */
static int64_t keys_below(int64_t a, int64_t rows, int64_t n)
{
    int64_t end = a + rows; /* past the last t */
    int64_t first = clamp(a, 0, n), last = clamp(end, 0, n);
    int64_t ramp = (last * (last - 1) - first * (first - 1)) / 2;
    int64_t full = end > n ? end - (a > n ? a : n) : 0;
    return ramp + full * n;
}

int64_t fa_pairs_count(const fa_pairs *p)
{
    if (p->sq <= 0 || p->sk <= 0 || p->band.hi < p->band.lo)
        return 0;
    return keys_below(p->band.hi + 1, p->sq, p->sk) - keys_below(p->band.lo, p->sq, p->sk);
}

double fa_pairs_share(const fa_pairs *p)
{
    return p->sq > 0 && p->sk > 0 ? (double)fa_pairs_count(p) / ((double)p->sq * (double)p->sk) : 1;
}

fa_blocks fa_pairs_key_blocks(const fa_pairs *p, fa_range queries, int64_t width)
{
    fa_range some = fa_pairs_keys(p, queries), first = fa_pairs_keys(p, (fa_range){ queries.first, queries.first });
    fa_range last = fa_pairs_keys(p, (fa_range){ queries.last, queries.last });
    int64_t all = (p->sk + width - 1) / width;
    if (some.last < some.first)
        return (fa_blocks){ { 0, -1 }, { 0, -1 }, all, 0, 0 };
    fa_blocks b = { .some = { some.first / width, some.last / width } };
    /* What all rows see begins where the last one does, and ends where the first one does. */
    b.full = (fa_range){ (last.first + width - 1) / width, (first.last + 1) / width - 1 };
    if (b.full.last < b.full.first)
        b.full = (fa_range){ 0, -1 };
    b.whole = b.full.last - b.full.first + 1;
    b.partial = b.some.last - b.some.first + 1 - b.whole;
    b.empty = all - b.partial - b.whole;
    return b;
}

fa_blocks fa_pairs_query_blocks(const fa_pairs *p, fa_range keys, int64_t width)
{
    fa_pairs t = turned(p);
    return fa_pairs_key_blocks(&t, keys, width);
}

/* ---- kept or dropped ---- */

#define ONE_OF_BITS 0x8000 /* 15 bits decide on a pair */

uint32_t fa_dropout_below(float probability)
{
    double below = rint((double)probability * ONE_OF_BITS);
    return below < ONE_OF_BITS ? (uint32_t)below : ONE_OF_BITS - 1;
}

uint32_t fa_dropout_word_below(float probability)
{
    double words = rint((double)probability * 0x1p32);
    return words < 0x1p32 ? (uint32_t)words : UINT32_MAX;
}

float fa_dropout_scale(float probability)
{
    return (float)(1 / (1 - (double)fa_dropout_below(probability) / ONE_OF_BITS));
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

double fa_pairs_kept(const fa_dropout *d, int64_t head, int64_t query, int64_t key)
{
    if (!d)
        return 1;
    const uint32_t counter[4] = { (uint32_t)d->offset, (uint32_t)head, block(query), block(key) / 2 };
    const uint32_t keys[2] = { (uint32_t)d->seed, (uint32_t)(d->seed >> 32) ^ (uint32_t)(d->offset >> 32) };
    uint32_t word[4];
    fa_philox(word, counter, keys);
    uint32_t bits = word[query / 8 % 2 * 2 + key / 8 % 2] >> key % 2 * 16 & (ONE_OF_BITS - 1);
    return bits >= d->below ? (double)d->scale : 0;
}
