/* relatives: a table of features and fields that make little difference to the walk over keys. */
#include "relatives.h"
#include "gen/batch_kind.h"
#include "gen/pairs.h"
#include "gen/problem.h"
#include "gen/score/kernel.h"
#include "gen/score/known.h"
#include "gen/score/tiles.h"

#define PAGE_TUNED 16 /* fa_problem.page of most winners with pages */
#define PAGE_LARGE 64 /* of some others */

static bool scored(const fa_problem *p)
{
    return p->features & FA_FEATURE_SCORE;
}

/* Of few rows a mask makes little difference. */
static bool masked_by_score(const fa_problem *p)
{
    const fa_program *program = scored(p) ? fa_score_known(p) : NULL;
    return program && program->ir.root[FA_SCORE_ROOT_MASK] >= 0 && p->op == FA_FORWARD && p->mask == FA_MASK_NONE &&
           !fa_problem_few_rows(p);
}

/* Where arrays decide which blocks of keys are seen, tiles begin and end more often, and warpgroups let blocks pass: of that winners
 * without a program know little. */
static bool scanned(const fa_problem *p)
{
    fa_score_tiles t;
    if (!masked_by_score(p) || p->features & FA_FEATURE_LENGTHS)
        return false;
    fa_score_tiles_of(&t, &fa_score_known(p)->ir);
    return fa_score_tiles_filled(&t);
}

/* Gradients that leave dS in memory go through it slice by slice, and under a mask each slice ends with its longest tile: of that winners
 * without one know nothing. */
static bool masked_gradients(const fa_problem *p)
{
    const fa_program *program = scored(p) ? fa_score_known(p) : NULL;
    return program && program->ir.root[FA_SCORE_ROOT_MASK] >= 0 && p->op == FA_BACKWARD;
}

/* Arrays that go with the key cost more in narrow tiles, and of short rows numbers of a distance and a tanh, too: of that winners without
 * one know little. */
static bool costs_by_tile(const fa_problem *p)
{
    const fa_program *program = scored(p) ? fa_score_known(p) : NULL;
    fa_score_kernel k;
    return program && p->op == FA_FORWARD && !(p->features & FA_FEATURE_LENGTHS) && !fa_problem_few_rows(p) &&
           fa_score_kernel_of(&k, &program->ir) && (k.aheads > 0 || (p->d + p->dv <= 128 && (k.of_distance >= 0 || k.tanh_of >= 0)));
}

/* Kernels that add a term to each row's sum, and compute nothing of a pair: their tiles are those without a program. */
static bool of_rows_alone(const fa_problem *p)
{
    const fa_program *program = scored(p) ? fa_score_known(p) : NULL;
    fa_score_kernel k;
    return program && p->op == FA_FORWARD && program->ir.root[FA_SCORE_ROOT_MASK] < 0 && fa_score_kernel_of(&k, &program->ir) && k.pair < 0;
}

static void drop_score(fa_problem *p)
{
    fa_score_known_name(p, NULL);
}

static bool few_masked(const fa_problem *p)
{
    return p->mask != FA_MASK_NONE && fa_problem_few_rows(p);
}

/* A mask that few rows hardly feel; of a window they see as many keys. */
static void drop_mask(fa_problem *p)
{
    fa_pairs pairs = { p->sq, p->sk, fa_band_of_problem(p) };
    p->sk = p->mask == FA_MASK_WINDOW && p->window ? (int32_t)fa_pairs_keys_most(&pairs, p->sq) : p->sk;
    p->mask = FA_MASK_NONE;
    p->window = 0;
}

static bool window(const fa_problem *p)
{
    return p->mask == FA_MASK_WINDOW;
}

static void as_causal(fa_problem *p)
{
    p->mask = FA_MASK_CAUSAL;
    p->window = 0;
}

static bool other_gradients(const fa_problem *p)
{
    return p->op == FA_BACKWARD && p->grad_dtype != p->dtype;
}

static void own_gradients(fa_problem *p)
{
    p->grad_dtype = p->dtype;
}

static bool other_pages(const fa_problem *p)
{
    return p->features & FA_FEATURE_PAGES && p->page != PAGE_TUNED;
}

static void tuned_pages(fa_problem *p)
{
    p->page = p->page > PAGE_LARGE ? PAGE_LARGE : PAGE_TUNED;
}

static bool in_pages(const fa_problem *p)
{
    return p->features & FA_FEATURE_PAGES;
}

static void drop_pages(fa_problem *p)
{
    p->features &= ~FA_FEATURE_PAGES;
    p->page = 0;
}

/* Of long sequences and short ones in one batch dense winners know nothing. */
static bool alike_lengths(const fa_problem *p)
{
    return p->features & FA_FEATURE_LENGTHS && (fa_problem_few_rows(p) || fa_problem_batch_kind(p) == FA_BATCH_PROMPTS);
}

static void drop_lengths(fa_problem *p)
{
    p->features &= ~FA_FEATURE_LENGTHS;
}

/* Of many rows kernels are those of 16 bits, after one that makes these. */
static bool low_prompts(const fa_problem *p)
{
    return p->op == FA_FORWARD && p->kv_dtype && !fa_problem_few_rows(p);
}

static void widened(fa_problem *p)
{
    p->kv_dtype = p->v_dtype = 0;
    p->k_scale_by = p->v_scale_by = 0;
    p->kv_align = 0;
}

/* One after the other, each on what the ones before left. A rule without functions is of a feature that is dropped where it is there. */
static const struct rule {
    int32_t feature;
    bool (*holds)(const fa_problem *);
    void (*change)(fa_problem *);
    double apart;
} rules[] = {
    { FA_FEATURE_NO_WORKSPACE, NULL, NULL, 0 },
    { FA_FEATURE_SCORE_ANYWHERE, NULL, NULL, 0 },
    { FA_FEATURE_SCORE_COLUMNS, NULL, NULL, 0 },
    { 0, of_rows_alone, drop_score, 0 },
    { 0, scored, drop_score, 0.5 },
    { 0, low_prompts, widened, 0.25 },
    { 0, few_masked, drop_mask, 0.25 },
    { FA_FEATURE_BATCH_INVARIANT, NULL, NULL, 0.5 },
    { FA_FEATURE_LSE_STRIDES, NULL, NULL, 0.1 },
    { FA_FEATURE_DETERMINISTIC, NULL, NULL, 0.25 },
    { FA_FEATURE_DROPOUT, NULL, NULL, 0.5 },
    { 0, other_gradients, own_gradients, 0.25 },
    { 0, other_pages, tuned_pages, 0.25 },
    { 0, in_pages, drop_pages, 0.5 },
    { 0, alike_lengths, drop_lengths, 0.5 },
    { 0, window, as_causal, 1 },
};

#define MASKED_APART 0.5 /* a score program's mask from one of the launch, which winners without a program have */
#define GRADIENTS_APART 6
#define BY_TILE_APART 6
#define SCANNED_APART 6
#define PAGES_APART 0.5 /* keys in pages are walked as keys that are not */

static void add(fa_relative *out, int *n, const fa_problem *p, double apart, bool own)
{
    if (*n < FA_RELATIVES_MAX)
        out[(*n)++] = (fa_relative){ *p, apart, own };
}

/* The class, and where lengths are on the device the same with pages. */
static void add_both(fa_relative *out, int *n, const fa_problem *p, double apart, bool own)
{
    fa_problem paged = *p;
    add(out, n, p, apart, own);
    if (!(p->features & FA_FEATURE_LENGTHS) || p->features & FA_FEATURE_PAGES)
        return;
    paged.features |= FA_FEATURE_PAGES;
    paged.page = PAGE_TUNED;
    add(out, n, &paged, apart + PAGES_APART, false);
}

int fa_relatives_of(const fa_problem *p, fa_relative out[FA_RELATIVES_MAX])
{
    fa_problem q = *p;
    double apart = 0;
    int n = 0;
    bool own = true;
    add_both(out, &n, &q, 0, true);
    if (masked_gradients(p))
        apart = GRADIENTS_APART;
    else if (costs_by_tile(p))
        apart = BY_TILE_APART;
    else if (scanned(p))
        apart = SCANNED_APART;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *r = &rules[i];
        if (r->holds ? !r->holds(&q) : !(q.features & r->feature))
            continue;
        own = own && r->apart == 0;
        q.features &= ~r->feature;
        if (r->change)
            r->change(&q);
        apart += r->apart;
        add_both(out, &n, &q, apart, own);
    }
    if (masked_by_score(p)) {
        as_causal(&q);
        add_both(out, &n, &q, apart + MASKED_APART, false);
    }
    return n;
}
