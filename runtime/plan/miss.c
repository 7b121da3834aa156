/* miss: compile in the call, run the nearest kernel, or fail. */
#include "miss.h"
#include "background.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "prepare.h"
#include "runtime/choose/select.h"
#include "runtime/context/context.h"
#include "table.h"

bool fa_miss_serves(const fa_plan *plan, const fa_problem *p)
{
    return !plan->fallback && !(p->features & FA_FEATURE_BATCH_INVARIANT) &&
           !fa_problem_hindrance(&plan->problem, fa_plan_needs_workspace(plan), p);
}

typedef struct nearest {
    const fa_problem *p;
    const fa_plan *plan; /* of those seen */
    long far;
} nearest;

static void consider(void *user, const fa_plan *plan)
{
    nearest *n = user;
    const fa_problem *has = &plan->problem, *p = n->p;
    if (!fa_miss_serves(plan, p))
        return;
    /* alignment and pages of less first cost more than any distance in shape */
    long less = (long)fa_problem_align_apart(has, p) + (p->page - has->page), far = less * 1024 + fa_problem_steps(has, p);
    /* of equals the one whose key is less: the table has no order */
    bool nearer = !n->plan || far < n->far || (far == n->far && memcmp(&plan->key, &n->plan->key, sizeof plan->key) < 0);
    if (nearer) {
        n->plan = plan;
        n->far = far;
    }
}

const fa_plan *fa_miss_nearest(fa_context *ctx, const fa_problem *p)
{
    nearest n = { .p = p };
    if (ctx->on_miss == FA_MISS_NEAREST)
        fa_table_each(ctx->table, consider, &n);
    return n.plan;
}

static fa_status refuse(const fa_problem *p)
{
    char line[FA_PROBLEM_TEXT];
    fa_problem_print(line, sizeof line, p);
    return fa_fail(FA_NO_KERNEL,
                   "%s: no kernel is prepared for this shape, and the option on_miss is FA_MISS_FAIL; accepted: what fa_prepare() or "
                   "fa_prepare_range() prepared before",
                   line);
}

/* Compiling and loading are not legal while the stream, or for the legacy stream any other, is captured. */
static fa_status check_capture(const fa_context *ctx, CUstream stream)
{
    bool captured;
    fa_status st = fa_context_captured(ctx, stream, &captured);
    if (st == FA_OK && captured)
        st = fa_fail(FA_CAPTURE, "stream: it is being captured and the kernel is not prepared; call fa_prepare() or fa_launch() with "
                                 "this problem class before the capture");
    return st;
}

fa_status fa_miss(fa_context *ctx, const fa_problem *p, CUcontext current, CUstream stream, const fa_plan **out)
{
    fa_message before;
    *out = NULL;
    if (ctx->on_miss == FA_MISS_FAIL)
        return refuse(p);
    const fa_plan *fallback = fa_miss_nearest(ctx, p);
    if (fallback) {
        *out = fa_background_ask(ctx, p, fallback, current);
        return FA_OK;
    }
    fa_status st = check_capture(ctx, stream);
    if (st != FA_OK)
        return st;
    fa_message_keep(&before);
    st = fa_prepare_plan(ctx, p, out);
    return fa_message_settle(&before, st);
}
