/* tune: fa_tune(), the public face of the search. */
#include "gen/error.h"
#include "runtime/args/struct_size.h"
#include "runtime/choose/jit.h"
#include "search.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct listener {
    fa_context *ctx;
    fa_tune_options opt;
} listener;

static int pass_on(void *user, const fa_tuning *t, const char *stage, const fa_candidate *latest, double done)
{
    const listener *l = user;
    char line[512], config[400], best[64] = "";
    if (!l->opt.progress)
        return 0;
    config[0] = 0;
    if (latest)
        fa_jit_config(l->ctx, &latest->config, config, sizeof config);
    if (t->winner)
        snprintf(best, sizeof best, ", best %.4g us", t->winner->seconds * 1e6);
    snprintf(line, sizeof line, "%s %s%s", stage, config, best);
    return l->opt.progress(l->opt.user, line, done);
}

fa_status fa_tune(fa_context *ctx, const fa_problem *p, const fa_tune_options *opt)
{
    listener l = { .ctx = ctx, .opt = FA_TUNE_OPTIONS_INIT };
    fa_tuning t;
    if (!ctx || !p)
        return fa_fail(FA_INVALID, "tune: ctx or p is NULL");
    fa_status st = fa_context_check(ctx);
    if (st != FA_OK)
        return st;
    if (fa_context_bundle_only(ctx))
        return fa_fail(FA_NO_KERNEL, "tune: the context was made with bundle_only = 1, and nothing is compiled; accepted: another context");
    if (opt)
        st = fa_struct_size_check(opt, opt->size, offsetof(fa_tune_options, seconds), sizeof *opt, "tune_options");
    if (st != FA_OK)
        return st;
    if (opt)
        memcpy(&l.opt, opt, opt->size < sizeof l.opt ? opt->size : sizeof l.opt);
    if (l.opt.reserved)
        return fa_fail(FA_INVALID, "tune options: reserved is %d; accepted: 0", l.opt.reserved);
    fa_search_options s = { .limit = l.opt.limit, .seconds = l.opt.seconds, .threads = l.opt.threads, .progress = pass_on, .user = &l };
    fa_site site = fa_site_of(ctx);
    fa_message before;
    fa_message_keep(&before);
    st = fa_search(&site, p, &s, &t);
    fa_tuning_free(&t);
    return fa_message_settle(&before, st);
}
