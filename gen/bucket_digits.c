/* bucket_digits: edges where decisions have theirs. */
#include "bucket_digits.h"
#include "batch_kind.h"
#include "format.h"
#include "head_slices.h"
#include "model.h"
#include "shape_rulers.h"
#include "tile_rounds.h"

const int32_t fa_bucket_tiles[FA_BUCKET_TILES] = { 1, 2, 8, 16, 32, FA_FEW_ROWS };

/* Whether K of a cache is of integers that its format has no more about than a scale. */
static bool has_integers(const fa_problem *p)
{
    const fa_format *f = p->op == FA_FORWARD ? fa_format_of(p->kv_dtype) : NULL;
    return f && (f->kind == FA_CODE_SIGNED || (f->kind == FA_CODE_UNSIGNED && f->zero)) && !f->high_at;
}

fa_bucket_digits fa_bucket_digits_of(const fa_problem *p)
{
    int64_t all = fa_problem_group_rows(p);
    fa_ruler r = fa_lengths_ruler(p, all <= FA_FEW_ROWS, fa_problem_before_keys(p));
    bool keys = p->op != FA_MERGE; /* which has none */
    fa_bucket_digits d = { .keys = keys ? fa_keys_step(p->sk, r) : 0,
                           .heads = fa_heads_step((int64_t)p->b * p->hkv, fa_heads_ruler(p)),
                           .group = fa_group_step(p->hq / p->hkv) };
    while (d.rows < FA_BUCKET_TILES && all > fa_bucket_tiles[d.rows])
        d.rows++;
    if (all > fa_bucket_tiles[1] && all <= FA_BUCKET_ROWS_OF_INTEGERS && has_integers(p))
        d.rows = FA_BUCKET_INTEGERS;
    if (d.rows == FA_BUCKET_TILES)
        d.rows += fa_problem_before_keys(p) ? fa_ruler_upto(fa_ruler_rows_before_keys, p->sq) : fa_ruler_nearest(r, p->sq);
    if (p->mask == FA_MASK_WINDOW)
        d.window = fa_ruler_nearest(fa_ruler_octaves, p->window ? p->window : FA_MODEL_WINDOW);
    d.kind = fa_problem_before_keys(p) ? FA_BATCH_CHUNKS : fa_problem_batch_kind(p);
    d.slices = fa_problem_has_head_slices(p) ? fa_head_slices_of(p->hkv) : 0;
    uint32_t rounds = fa_problem_rounds_step(p);
    if (rounds) {
        d.rows = FA_BUCKET_TILES + rounds;
        d.keys = 0;
        d.kind = FA_BATCH_PROMPTS;
    }
    fa_few_tiles few = fa_problem_few_tiles(p);
    if (few.are) {
        d.rows = FA_BUCKET_TILES + few.rows;
        d.keys = few.rounds;
        d.kind = FA_BATCH_PROMPTS;
    }
    return d;
}

bool fa_bucket_is_few(const fa_bucket_digits *d)
{
    return d->rows < FA_BUCKET_TILES || d->rows == FA_BUCKET_INTEGERS;
}
