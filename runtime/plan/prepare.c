/* prepare: fa_supported(), fa_prepare(), and the miss path of fa_launch(). */
#include "prepare.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "lack.h"
#include "plans.h"
#include "runtime/args/check.h"
#include "runtime/choose/pins.h"
#include "runtime/context/context.h"
#include "table.h"

/* replaces: in place of a plan that has a kernel of its own. */
static fa_status make(fa_context *ctx, const fa_problem *p, bool replaces, const fa_plan **out)
{
    uint64_t pins = atomic_load(&ctx->pins->changes);
    fa_selection selection;
    fa_source source = { 0 };
    fa_status st = fa_select(ctx, p, &selection, &source);
    if (st == FA_OK)
        st = fa_plan_of_selection(ctx, p, &selection, &source, out);
    if (st == FA_OK)
        ((fa_plan *)(uintptr_t)*out)->pins = pins; /* nobody else knows of it yet */
    if (st == FA_OK && !(replaces ? fa_table_put(ctx->table, *out) : (*out = fa_table_add(ctx->table, *out)) != NULL))
        st = fa_fail(FA_NOMEM, "table: host memory");
    fa_source_free(&source);
    if (st == FA_OK && !selection.pin && !selection.bundle_row)
        fa_lack_tell_layout(ctx, &(*out)->key, p, selection.seconds);
    return st;
}

/* Whether the plan is the one that pins as they are now ask for. */
static bool is_pinned(fa_context *ctx, const fa_problem *p, const fa_plan *plan)
{
    fa_selection s;
    fa_message before;
    if (plan->pins == atomic_load(&ctx->pins->changes))
        return true;
    fa_message_keep(&before);
    bool same = fa_select(ctx, p, &s, NULL) == FA_OK && s.pin == plan->pin;
    fa_message_settle(&before, FA_OK);
    return same;
}

/* A plan with a kernel of its own. *replaces: there is one, of other pins. */
static bool is_prepared(fa_context *ctx, const fa_problem *p, const fa_plan_key *key, const fa_plan **out, bool *replaces)
{
    *out = fa_table_find(ctx->table, key);
    bool own = *out && !(*out)->fallback;
    *replaces = own && !is_pinned(ctx, p, *out);
    return own && !*replaces;
}

fa_status fa_prepare_plan(fa_context *ctx, const fa_problem *of, const fa_plan **out)
{
    const fa_problem point = fa_problem_point(of), *p = &point;
    fa_pending me = { .key = fa_plan_key_of(p) };
    fa_status st = FA_OK;
    bool replaces;
    if (is_prepared(ctx, p, &me.key, out, &replaces))
        return FA_OK;
    fa_plans_begin(ctx->plans, &me);
    if (!is_prepared(ctx, p, &me.key, out, &replaces))
        st = make(ctx, p, replaces, out);
    fa_plans_end(ctx->plans, &me);
    return st;
}

static fa_status check(fa_context *ctx, fa_problem *out, const fa_problem *p)
{
    fa_status st = fa_context_check(ctx);
    return st == FA_OK ? fa_check_problem(out, p) : st;
}

fa_status fa_prepare_both(fa_context *ctx, const fa_problem *p, const fa_plan **out, const fa_plan **without)
{
    fa_problem bare = *p;
    *without = NULL;
    fa_status st = fa_prepare_plan(ctx, p, out);
    if (st != FA_OK || ctx->lends || !fa_check_may_lack(p))
        return st;
    bare.features |= FA_FEATURE_NO_WORKSPACE;
    st = fa_prepare_plan(ctx, &bare, without);
    return st == FA_NO_KERNEL ? FA_OK : st; /* no bundle has one: launches bring a workspace */
}

fa_status fa_prepare(fa_context *ctx, const fa_problem *p)
{
    fa_problem q;
    fa_message before;
    const fa_plan *plan, *without;
    fa_status st = check(ctx, &q, p);
    if (st != FA_OK)
        return st;
    fa_message_keep(&before);
    return fa_message_settle(&before, fa_prepare_both(ctx, &q, &plan, &without));
}

/* Tells the log what launches of p cost that bring no workspace, where none is lent. */
static void tell_lack(fa_context *ctx, const fa_problem *p)
{
    fa_problem bare = *p;
    fa_selection s;
    if (ctx->lends || (!(p->features & FA_FEATURE_NO_WORKSPACE) && !fa_check_may_lack(p)))
        return;
    bare.features |= FA_FEATURE_NO_WORKSPACE;
    const fa_plan_key key = fa_plan_key_of(&bare);
    const fa_plan *plan = fa_table_find(ctx->table, &key);
    if (plan)
        fa_lack_tell(ctx, plan->lack, &bare, plan->seconds, plan->seconds_with);
    else if (fa_select(ctx, &bare, &s, NULL) == FA_OK && s.lacks)
        fa_lack_tell(ctx, fa_lack_of(ctx->lacks, &key), &bare, s.seconds, s.seconds_with);
}

fa_status fa_supported(fa_context *ctx, const fa_problem *p)
{
    fa_problem q;
    fa_message before;
    fa_status st = check(ctx, &q, p);
    if (st != FA_OK)
        return st;
    const fa_plan_key key = fa_plan_key_of(&q);
    fa_selection s = { .seconds = 0 };
    fa_message_keep(&before);
    if (!fa_table_find(ctx->table, &key))
        st = fa_select(ctx, &q, &s, NULL);
    if (st == FA_OK)
        tell_lack(ctx, &q);
    if (st == FA_OK && !s.pin)
        fa_lack_tell_layout(ctx, &key, &q, s.seconds);
    return fa_message_settle(&before, st);
}
