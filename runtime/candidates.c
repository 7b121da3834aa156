/* candidates: fa_candidates(), what a choice looks at, row by row. */
#include "gen/error.h"
#include "runtime/args/check.h"
#include "runtime/bundle/set.h"
#include "runtime/choose/jit.h"
#include "runtime/context/context.h"

/* What runs, where it is none of a choice's candidates: a bundle's kernel, or the best of the whole space. */
typedef struct telling {
    fa_context *ctx;
    const fa_selection *runs;
    fa_candidate_fn tell;
    void *user;
    bool told, stopped;
} telling;

static int tell_selection(telling *t)
{
    char config[512];
    const fa_selection *s = t->runs;
    fa_jit_config(t->ctx, &s->config, config, sizeof config);
    fa_candidate_info row = { .size = sizeof row,
                              .source = s->bundle_row ? FA_FROM_BUNDLE : FA_FROM_START,
                              .runs = 1,
                              .config = config,
                              .price = s->seconds,
                              .model = s->bundle_row ? 0 : s->seconds,
                              .chip = "",
                              .date = "",
                              .problem = "",
                              .why = "" };
    t->told = true;
    return t->tell(t->user, &row);
}

/* The first row is what runs. */
static int pass_on(void *user, const fa_candidate_info *row)
{
    telling *t = user;
    if (!t->told && !row->runs && tell_selection(t))
        t->stopped = true;
    t->told = true;
    t->stopped = t->stopped || t->tell(t->user, row);
    return t->stopped;
}

static fa_status tell_all(fa_context *ctx, const fa_problem *p, fa_candidate_fn fn, void *user)
{
    fa_problem q;
    fa_selection runs;
    fa_status st = fa_context_check(ctx);
    if (st == FA_OK && !fn)
        st = fa_fail(FA_INVALID, "tell: NULL; accepted: a function that is told the candidates");
    if (st == FA_OK)
        st = fa_check_problem(&q, p);
    if (st == FA_OK)
        st = fa_select(ctx, &q, &runs, NULL);
    telling t = { .ctx = ctx, .runs = &runs, .tell = fn, .user = user };
    if (st == FA_OK && !ctx->bundle_only)
        st = fa_jit_tell(ctx, &q, &runs, pass_on, &t);
    if (st == FA_OK && !t.told)
        tell_selection(&t);
    return st;
}

fa_status fa_candidates(fa_context *ctx, const fa_problem *p, fa_candidate_fn tell, void *user)
{
    fa_message before;
    fa_message_keep(&before);
    return fa_message_settle(&before, tell_all(ctx, p, tell, user));
}
