/* pin: fa_pin() and fa_unpin(). */
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "runtime/args/check.h"
#include "runtime/choose/jit.h"
#include "runtime/choose/pins.h"
#include "runtime/context/context.h"

static fa_status pin(fa_context *ctx, const fa_problem *p, const char *config)
{
    fa_problem q;
    fa_config c;
    fa_status st = fa_context_check(ctx);
    if (st == FA_OK)
        st = fa_check_problem(&q, p);
    if (st == FA_OK && !config)
        st = fa_fail(FA_INVALID, "config: NULL; accepted: the text of a config, as fa_candidates() tells them");
    if (st == FA_OK && ctx->bundle_only)
        st = fa_fail(FA_NO_KERNEL, "pin: the context was made with bundle_only = 1, and nothing is compiled; accepted: another context");
    if (st != FA_OK)
        return st;
    q = fa_problem_point(&q);
    st = fa_jit_pinnable(ctx, &q, config, &c);
    return st == FA_OK ? fa_pins_set(ctx->pins, &q, &c) : fa_wrap(st, "pin");
}

fa_status fa_pin(fa_context *ctx, const fa_problem *p, const char *config)
{
    fa_message before;
    fa_message_keep(&before);
    return fa_message_settle(&before, pin(ctx, p, config));
}

fa_status fa_unpin(fa_context *ctx, const fa_problem *p)
{
    fa_problem q;
    fa_message before;
    fa_message_keep(&before);
    fa_status st = fa_context_check(ctx);
    if (st == FA_OK && p)
        st = fa_check_problem(&q, p);
    if (st == FA_OK && p)
        q = fa_problem_point(&q);
    if (st == FA_OK)
        fa_pins_drop(ctx->pins, p ? &q : NULL);
    return fa_message_settle(&before, st);
}
