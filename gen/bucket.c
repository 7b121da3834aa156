/* bucket: the digits' number, and a shape in the middle. */
#include "bucket.h"
#include "batch_kind.h"
#include "bucket_digits.h"
#include "head_slices.h"
#include "problem.h"
#include "shape_rulers.h"
#include "tile_rounds.h"
#include <stdlib.h>

#define HEADS_MAX (1 << 16) /* of a problem */

uint32_t fa_problem_bucket(const fa_problem *in)
{
    fa_problem p = *in;
    fa_problem_fill_shape(&p);
    fa_bucket_digits d = fa_bucket_digits_of(&p);
    return d.rows | d.keys << 7 | d.heads << 13 | d.group << 19 | d.window << 25 | (d.kind | d.slices) << 30;
}

/* Heads that are slices of two and no more, in sequences that make a number of the step of `all`: those of a bucket are such. */
static void settle_pairs(fa_problem *p, int64_t all, fa_ruler r)
{
    static const int32_t usual[] = { 6, 5, 3, 2 }; /* models' */
    enum { USUAL = sizeof usual / sizeof *usual };
    const uint32_t step = fa_heads_step(all, r);
    for (int32_t i = 0;; i++) {
        int32_t hkv = i < USUAL ? usual[i] : 7 + i - USUAL;
        for (int64_t b = all / hkv; b <= all / hkv + 1; b++)
            if (fa_head_slices_of(hkv) == FA_SLICES_OF_TWO && b > 0 && fa_heads_step(b * hkv, r) == step) {
                p->hkv = hkv;
                p->b = (int32_t)b;
                return;
            }
    }
}

/* b * hkv = heads. Few KV heads to a sequence, as models have them: what else is equal, sequences and heads are to a kernel. Where slices
 * of heads count, with the same. */
static void settle_heads(fa_problem *p, int64_t all, int32_t group)
{
    if (p->features & FA_FEATURE_BATCH_INVARIANT) {
        p->b = FA_BATCH_TYPICAL;
        p->hkv = (int32_t)(all / FA_BATCH_TYPICAL);
        return;
    }
    bool lengths = p->features & FA_FEATURE_LENGTHS;
    int64_t hkv = 1, most = lengths ? all / FA_BATCH_TYPICAL : 8;
    if (fa_problem_has_head_slices(p)) {
        static const int32_t least[] = { [FA_SLICES_OF_EIGHT] = 8, [FA_SLICES_OF_FOUR] = 4, [FA_SLICES_NONE] = 1 };
        fa_head_slices of = fa_head_slices_of(p->hkv);
        if (of == FA_SLICES_OF_TWO) {
            settle_pairs(p, all, fa_heads_ruler(p));
            return;
        }
        hkv = least[of];
        most = of == FA_SLICES_OF_EIGHT ? most : hkv;
    }
    while (all % (2 * hkv) == 0 && 2 * hkv <= most && 2 * hkv * group <= HEADS_MAX)
        hkv *= 2;
    p->hkv = (int32_t)hkv;
    p->b = (int32_t)(all / hkv);
}

/* Chunks are of few sequences. */
static void settle_chunks(fa_problem *p, int64_t all, int32_t group)
{
    p->b = 1;
    while (all / p->b * group > HEADS_MAX && all % (2 * p->b) == 0)
        p->b *= 2;
    p->hkv = (int32_t)(all / p->b);
}

/* sq of the step that is nearest its middle; before more keys its last. */
static void settle_rows(fa_problem *p, const fa_bucket_digits *d, int32_t group)
{
    if (fa_bucket_is_few(d)) {
        p->sq = (d->rows == FA_BUCKET_INTEGERS ? FA_BUCKET_ROWS_OF_INTEGERS : fa_bucket_tiles[d->rows]) / group;
        return;
    }
    bool dense = !(p->features & FA_FEATURE_LENGTHS), before = d->kind == FA_BATCH_CHUNKS, rounds = d->kind == FA_BATCH_PROMPTS;
    if (dense && rounds && p->op == FA_BACKWARD) {
        p->sq =
            fa_few_tiles_length(d->rows - FA_BUCKET_TILES, d->keys, fa_ruler_value(fa_heads_ruler(p), d->heads) * fa_group_of(d->group));
        return;
    }
    fa_ruler r = dense && before   ? fa_ruler_rows_before_keys
                 : dense && rounds ? fa_ruler_rows_of_rounds
                                   : fa_lengths_ruler(p, false, before);
    p->sq = fa_ruler_length(r, d->rows - FA_BUCKET_TILES);
    if ((int64_t)p->sq * group <= FA_FEW_ROWS)
        p->sq = FA_FEW_ROWS / group + 1;
}

/* sk of the step, on the side of sq that the kind of the batch says. */
static void settle_keys(fa_problem *p, const fa_bucket_digits *d)
{
    bool dense = !(p->features & FA_FEATURE_LENGTHS);
    fa_ruler r = fa_lengths_ruler(p, fa_bucket_is_few(d), d->kind == FA_BATCH_CHUNKS);
    p->sk = fa_ruler_length(r, d->keys + fa_ruler_nearest(r, FA_KEYS_LEAST));
    if (d->kind == FA_BATCH_PROMPTS) {
        p->sk = p->sq;
    } else if (d->kind == FA_BATCH_ANY &&
               (fa_problem_rounds_step(p) || fa_problem_few_tiles(p).are)) { /* more queries than keys, or fewer */
        p->sk = p->sq - 1;
    } else if (d->kind != FA_BATCH_ANY && p->sk <= p->sq) {
        while (dense && fa_keys_step(p->sq + 1, r) > d->keys) /* steps of rows are the finer ones */
            p->sq--;
        p->sk = p->sq + p->sq / 4;
        if (p->sk == p->sq || fa_keys_step(p->sk, r) != d->keys)
            p->sk = p->sq + 1;
    } else if (d->kind == FA_BATCH_ANY && !dense && !fa_bucket_is_few(d) && p->sq <= p->sk) { /* more queries than keys */
        p->sk = p->sq - p->sq / 4;
        if (p->sk == p->sq || fa_keys_step(p->sk, r) != d->keys)
            p->sk = p->sq - 1;
    }
}

static fa_problem representative(const fa_problem *in)
{
    fa_problem p = *in;
    fa_problem_fill_shape(&p);
    fa_bucket_digits d = fa_bucket_digits_of(&p);
    int32_t group = fa_group_of(d.group);
    int64_t all = fa_ruler_value(fa_heads_ruler(&p), d.heads);
    settle_heads(&p, all, group);
    if (d.kind == FA_BATCH_CHUNKS && p.features & FA_FEATURE_LENGTHS)
        settle_chunks(&p, all, group);
    p.hq = p.hkv * group;
    settle_rows(&p, &d, group);
    settle_keys(&p, &d);
    if (p.mask == FA_MASK_WINDOW)
        p.window = 1 << d.window;
    fa_problem_fill_shape(&p); /* of a merge: it has no keys */
    return p;
}

fa_problem fa_problem_point(const fa_problem *in)
{
    const fa_problem p = fa_problem_chosen_by(in);
    return representative(&p);
}

int fa_problem_steps(const fa_problem *a, const fa_problem *b)
{
    const fa_problem x = fa_problem_point(a), y = fa_problem_point(b);
    const int64_t of[][2] = {
        { x.sq, y.sq },
        { x.sk, y.sk },
        { (int64_t)x.b * x.hkv, (int64_t)y.b * y.hkv },
        { x.hq / x.hkv, y.hq / y.hkv },
        { x.window ? x.window : 1, y.window ? y.window : 1 },
    };
    int far = 0;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        far += abs((int)fa_ruler_nearest(fa_ruler_halves, of[i][0]) - (int)fa_ruler_nearest(fa_ruler_halves, of[i][1]));
    return far;
}
