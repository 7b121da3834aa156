/* tile_rounds: tiles are counted at the heads and lengths that stand for a step. */
#include "tile_rounds.h"
#include "batch_kind.h"
#include "problem.h"
#include "shape_rulers.h"

/* Of dense prompts without a mask tiles take equal time, and whole rounds of them over the SMs: a tile more than one round or two costs a
 * half or a third more. Between so many tiles, for FA_WAVE_SMS, of as many rows as the fastest have up to 128 columns and beyond. */
#define ROUNDS_LEAST 117
#define ROUNDS_MOST 297
#define ROUNDS_ROWS 192
#define ROUNDS_ROWS_WIDE 128
#define ROUNDS_QUERIES 256 /* and so many rows or more */
#define ROUNDS_LONGEST 8192
#define GRAD_QUERIES 192 /* and of gradients */

static int64_t query_heads(const fa_problem *p)
{
    return fa_heads_stand(p) * fa_group_of(fa_group_step(p->hq / p->hkv));
}

/* Where rounds begin and end to decide a length goes with the quarter of an octave that it is nearest to, if that is within. */
uint32_t fa_problem_rounds_step(const fa_problem *p)
{
    bool dense = p->op == FA_FORWARD && !(p->features & (FA_FEATURE_LENGTHS | FA_FEATURE_BATCH_INVARIANT));
    if (!dense || p->mask != FA_MASK_NONE || p->sq != p->sk || fa_problem_group_rows(p) <= FA_FEW_ROWS)
        return 0;
    int64_t heads = query_heads(p), high = p->dv <= 128 ? ROUNDS_ROWS : ROUNDS_ROWS_WIDE;
    const fa_ruler r = fa_ruler_rows_of_rounds;
    const int64_t of[] = { fa_ruler_value(r, fa_ruler_upto(r, p->sq)),
                           fa_ruler_value(fa_ruler_rows, fa_ruler_nearest(fa_ruler_rows, p->sq)) };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        int64_t all = (of[i] + high - 1) / high * heads;
        if (of[i] >= ROUNDS_QUERIES && of[i] <= ROUNDS_LONGEST && all >= ROUNDS_LEAST && all <= ROUNDS_MOST)
            return fa_ruler_upto(r, of[i]);
    }
    return 0;
}

static int64_t blocks_of(int64_t heads, int64_t sk, int64_t keys)
{
    return heads * ((sk + keys - 1) / keys);
}

/* 0: one round of either; 1: two of 64 keys; 2: and two of 128; 3: three of 64 and more. */
#define ROUNDS_TWO 2
static uint32_t rounds_of_keys(int64_t heads, int64_t sk)
{
    int64_t small = blocks_of(heads, sk, 64);
    return (small > FA_WAVE_SMS) + (blocks_of(heads, sk, 128) > FA_WAVE_SMS) + (small > 2 * FA_WAVE_SMS);
}

fa_few_tiles fa_problem_few_tiles(const fa_problem *p)
{
    fa_few_tiles x = { .are = false };
    if (!fa_problem_may_have_few_tiles(p) || p->sq != p->sk || fa_problem_group_rows(p) <= FA_FEW_ROWS)
        return x;
    const fa_ruler r = fa_ruler_rows_of_few_tiles;
    int64_t heads = query_heads(p);
    if (heads > FA_WAVE_SMS)
        return x;
    x.rows = fa_ruler_nearest(r, p->sq);
    x.rounds = rounds_of_keys(heads, p->sq);
    x.are = fa_ruler_value(r, x.rows) >= GRAD_QUERIES && rounds_of_keys(heads, fa_ruler_first(r, x.rows)) < ROUNDS_TWO;
    return x;
}

int32_t fa_few_tiles_length(uint32_t rows, uint32_t rounds, int64_t heads)
{
    int64_t sq = fa_ruler_value(fa_ruler_rows_of_few_tiles, rows);
    while (rounds_of_keys(heads, sq) < rounds)
        sq = (sq + 63) / 64 * 64 + 1;
    while (rounds_of_keys(heads, sq) > rounds)
        sq = (sq - 1) / 64 * 64;
    return (int32_t)sq;
}

bool fa_problem_same_rounds(const fa_problem *in, int32_t sms)
{
    fa_problem p = *in;
    fa_problem_fill_shape(&p);
    return sms == FA_WAVE_SMS && fa_problem_few_tiles(&p).are;
}
