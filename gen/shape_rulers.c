/* shape_rulers: the parts as tables. */
#include "shape_rulers.h"
#include "batch_kind.h"
#include "problem.h"

#define GROUP_EXACT 32 /* query heads of a KV head, up to which each number is a step */
#define HEADS_STEPS 63 /* the last, of few rows that of more than some 12,000 */

static const fa_ruler_part octaves[] = { { 0, 0, 0 } };
static const fa_ruler_part halves[] = { { 0, 1, 0 } };
static const fa_ruler_part rows[] = { { 0, 1, 0 }, { 8, 2, 16 }, { 13, 1, 36 } };
/* As long rows as keys: octaves, of many waves. */
static const fa_ruler_part rows_as_keys[] = { { 0, 1, 0 }, { 8, 2, 16 }, { 13, 1, 36 }, { 15, 0, 40 } };
/* Of gradients: quarters up to 32768. Few heads of long rows have one wave of tiles or two, and each takes long. */
static const fa_ruler_part rows_of_gradients[] = { { 0, 1, 0 }, { 8, 2, 16 }, { 15, 1, 44 } };
static const fa_ruler_part rows_of_few_tiles[] = { { 0, 1, 0 }, { 8, 2, 16 }, { 15, 0, 44 } };
static const fa_ruler_part rows_before_keys[] = { { 0, 0, 0 },  { 1, 1, 1 },   { 2, 2, 3 },   { 3, 3, 7 },
                                                  { 8, 4, 47 }, { 10, 3, 79 }, { 11, 2, 87 }, { 13, 1, 95 } };
static const fa_ruler_part rows_of_rounds[] = { { 0, 1, 0 }, { 8, 3, 16 }, { 13, 0, 56 } };
/* Of KV heads: each number to 16, for it multiplies all tiles, and eighths of octaves to 128, up to which chips have a wave or two of
 * tiles; with more than 1024 every chip has several waves. */
static const fa_ruler_part kv_heads[] = { { 0, 0, 0 }, { 1, 1, 1 }, { 2, 2, 3 }, { 3, 3, 7 }, { 4, 3, 15 }, { 7, 2, 39 }, { 10, 0, 51 } };
/* Of few rows, whose tiles are as many as KV heads: eighths to 512; a step ends with the last tile of a wave over FA_WAVE_SMS. */
static const fa_ruler_part heads_of_few[] = {
    { 0, 0, 0 }, { 1, 1, 1 }, { 2, 2, 3 }, { 3, 3, 7 }, { 4, 3, 15 }, { 9, 2, 55 }, { 10, 0, 59 }
};
/* Of gradients that may have few tiles, without groups, each number to 32: a head more may be a round more. */
static const fa_ruler_part heads_of_few_tiles[] = { { 0, 0, 0 },  { 1, 1, 1 },  { 2, 2, 3 },  { 3, 3, 7 },
                                                    { 4, 4, 15 }, { 5, 2, 31 }, { 10, 0, 51 } };
/* Gradients have no tiles to cut, and several rounds of them sooner. */
static const fa_ruler_part heads_of_gradients[] = { { 0, 0, 0 }, { 1, 1, 1 }, { 2, 2, 3 }, { 3, 3, 7 }, { 4, 2, 15 }, { 10, 0, 39 } };

/* clang-format off */
#define RULER(a) { (a), sizeof(a) / sizeof *(a) }
/* clang-format on */
const fa_ruler fa_ruler_octaves = RULER(octaves), fa_ruler_halves = RULER(halves), fa_ruler_rows = RULER(rows);
const fa_ruler fa_ruler_rows_of_few_tiles = RULER(rows_of_few_tiles), fa_ruler_rows_before_keys = RULER(rows_before_keys);
const fa_ruler fa_ruler_rows_of_rounds = RULER(rows_of_rounds);
static const fa_ruler ruler_as_keys = RULER(rows_as_keys), ruler_of_gradients = RULER(rows_of_gradients),
                      ruler_of_kv_heads = RULER(kv_heads);
static const fa_ruler ruler_of_few = RULER(heads_of_few), ruler_of_few_tiles = RULER(heads_of_few_tiles);
static const fa_ruler ruler_of_heads_of_gradients = RULER(heads_of_gradients);

bool fa_problem_may_have_few_tiles(const fa_problem *p)
{
    return p->op == FA_BACKWARD && p->mask == FA_MASK_NONE && !(p->features & (FA_FEATURE_LENGTHS | FA_FEATURE_BATCH_INVARIANT));
}

/* With lengths in device memory they cover their octave anyway. Few rows leave no waves of tiles: halves are fine enough for their keys. */
fa_ruler fa_lengths_ruler(const fa_problem *p, bool few, bool before)
{
    if (p->features & FA_FEATURE_LENGTHS)
        return fa_ruler_octaves;
    if (!few && p->op == FA_BACKWARD)
        return fa_problem_may_have_few_tiles(p) ? fa_ruler_rows_of_few_tiles : ruler_of_gradients;
    return few ? fa_ruler_halves : before ? fa_ruler_rows : ruler_as_keys;
}

uint32_t fa_keys_step(int64_t sk, fa_ruler r)
{
    uint32_t least = fa_ruler_nearest(r, FA_KEYS_LEAST), step = fa_ruler_nearest(r, sk);
    step = step > least ? step - least : 0;
    return step < FA_KEYS_STEPS ? step : FA_KEYS_STEPS;
}

int32_t fa_ruler_length(fa_ruler r, uint32_t step)
{
    int64_t v = fa_ruler_value(r, step);
    return v < FA_MAX_LENGTH ? (int32_t)v : FA_MAX_LENGTH;
}

bool fa_problem_before_keys(const fa_problem *p)
{
    bool dense = p->op == FA_FORWARD && !(p->features & FA_FEATURE_LENGTHS);
    return dense && p->sq < p->sk && fa_problem_group_rows(p) > FA_FEW_ROWS && fa_keys_step(p->sk, fa_ruler_rows) > 0;
}

/* Where V lies in K, tiles of one KV head are as many as SMs, or half as many: a cluster has a tile then, and a second round costs half. */
fa_ruler fa_heads_ruler(const fa_problem *p)
{
    bool any = p->features & FA_FEATURE_LENGTHS && !(p->features & FA_FEATURE_V_IN_K);
    if (any)
        return fa_ruler_octaves;
    if (p->op != FA_FORWARD)
        return fa_problem_may_have_few_tiles(p) && p->hq == p->hkv ? ruler_of_few_tiles : ruler_of_heads_of_gradients;
    return fa_problem_group_rows(p) <= FA_FEW_ROWS ? ruler_of_few : ruler_of_kv_heads;
}

static bool is_of_few(fa_ruler r)
{
    return r.part == heads_of_few;
}

uint32_t fa_heads_step(int64_t n, fa_ruler r)
{
    const int64_t most = (int64_t)1 << 31, before = (n - 1) / FA_WAVE_SMS * FA_WAVE_SMS; /* tiles of the waves before the last */
    uint32_t step = fa_ruler_nearest(r, n < most ? n : most);
    if (is_of_few(r) && n <= 512 && fa_ruler_value(r, step) <= before)
        step++;
    return step < HEADS_STEPS ? step : HEADS_STEPS;
}

int64_t fa_heads_stand(const fa_problem *p)
{
    const fa_ruler r = fa_heads_ruler(p);
    return fa_ruler_value(r, fa_heads_step((int64_t)p->b * p->hkv, r));
}

uint32_t fa_group_step(int32_t group)
{
    return group <= GROUP_EXACT ? (uint32_t)group : GROUP_EXACT + fa_floor_log2((group - 1) / GROUP_EXACT) + 1;
}

int32_t fa_group_of(uint32_t step)
{
    return step <= GROUP_EXACT ? (int32_t)step : GROUP_EXACT << (step - GROUP_EXACT);
}
