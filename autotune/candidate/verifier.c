/* verifier: verifies the candidates of one problem before they are timed. */
#include "verifier.h"
#include "gen/batch_kind.h"
#include "gen/problem.h"

/* Odd lengths, so that tails of tiles are met. */
#define MEDIUM_SQ 509
#define MEDIUM_SK 1021
#define SMALL_SQ 75
#define SMALL_SK 139
#define SEQUENCES 5 /* of problems whose sequences have their own lengths */

/* Of whole prompts, which have as many queries as keys: as many pairs as the others. */
#define MEDIUM_PROMPT 277
#define SMALL_PROMPT 102

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static fa_status make_case(fa_case *c, const fa_problem *p, int32_t sq, int32_t sk, int32_t prompt)
{
    fa_problem cut = *p;
    fa_ragged_how how = fa_ragged_typical(p, 0x7265666572656575); /* of the whole problem: five sequences would be a mixed batch */
    if (how.batch == FA_BATCH_PROMPTS)
        sq = sk = prompt;
    int32_t group = least(p->hq / p->hkv, 4);
    cut.b = p->features & FA_FEATURE_LENGTHS ? SEQUENCES : least(p->b, 2);
    cut.hkv = least(p->hkv, group > 1 ? 1 : 2);
    cut.hq = cut.hkv * group;
    cut.sq = least(p->sq, sq);
    cut.sk = least(p->sk, sk);
    fa_status st = fa_case_of(c, &cut, how.seed);
    c->window_left = sk / 5;
    c->window_right = 0;
    c->ragged = how;
    return st;
}

/* The small one's lengths: at the borders of tiles and pages, one of no key; pages that sequences share, and a wide table. */
static void make_ragged(fa_case *c)
{
    fa_ragged_how *h = &c->ragged;
    h->forms |= FA_FORM_SEQLENS_Q;
    h->batch = FA_BATCH_ANY;
    h->q = FA_SPREAD_UNIFORM;
    h->k = FA_SPREAD_EDGES;
    h->quantiles = 0;
    h->idle = 1;
    h->page_size *= 3;
    h->spare = h->wide = h->shared = 2;
}

fa_status fa_verifier_open(fa_verifier *r, fa_context *ctx, const fa_problem *p, bool medium)
{
    fa_case c;
    *r = (fa_verifier){ NULL, NULL };
    fa_status st = make_case(&c, p, SMALL_SQ, SMALL_SK, SMALL_PROMPT);
    c.values = FA_VALUES_HEAVY;
    c.hidden = FA_HIDDEN_NAN;
    for (int i = 0; i < FA_OPERANDS_MAX; i++)
        c.layout[i] = FA_LAYOUT_PADDED;
    if (c.ragged.forms)
        make_ragged(&c);
    if (st == FA_OK)
        st = fa_trial_open(&r->small, ctx, &c, FA_REFERENCE_ORACLE);
    bool on_cpu = p->features || p->kv_dtype || fa_problem_eight(p); /* no reference family computes it: few rows of it */
    if (st == FA_OK && medium)
        st = make_case(&c, p, on_cpu ? SMALL_SQ : MEDIUM_SQ, MEDIUM_SK, p->kv_dtype ? SMALL_PROMPT : MEDIUM_PROMPT);
    if (st == FA_OK && medium)
        st = fa_trial_open(&r->medium, ctx, &c, FA_REFERENCE_DEVICE);
    if (st != FA_OK)
        fa_verifier_close(r);
    return st;
}

void fa_verifier_close(fa_verifier *r)
{
    fa_trial_close(r->small);
    fa_trial_close(r->medium);
    *r = (fa_verifier){ NULL, NULL };
}

fa_status fa_verifier_judge(fa_verifier *r, const fa_plan *plan)
{
    fa_verdict v;
    fa_status st = fa_trial_run(r->small, plan, &v);
    return st == FA_OK && r->medium ? fa_trial_run(r->medium, plan, &v) : st;
}
