/* plan: made once per problem class, kept until the context goes. */
#include "plan.h"
#include "counter.h"
#include "gen/batch_kind.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "lack.h"
#include "launch_count.h"
#include "plans.h"
#include "runtime/bundle/set.h"
#include "runtime/context/context.h"
#include "table.h"
#include <stdio.h>
#include <stdlib.h>

fa_plan_key fa_plan_key_of(const fa_problem *p)
{
    const fa_problem shape = fa_problem_chosen_by(p);
    return (fa_plan_key){
#define CLASS(member) .member = p->member,
#define SHAPE(member)
#define X(member, word, part, kind, serves, shown) part(member)
        FA_PROBLEM_FIELDS(X)
#undef X
#undef SHAPE
#undef CLASS
            .bucket = fa_problem_bucket(&shape),
    };
}

static fa_status keep(fa_context *ctx, const fa_problem *p, const fa_config *c, const char *why, const fa_kernel *k,
                      const fa_plan *fallback, const fa_plan **out)
{
    fa_plan *plan = calloc(1, sizeof *plan);
    fa_launch_count *launch_count = plan && ctx->workload ? calloc(1, sizeof *launch_count) : NULL;
    if (!plan || (ctx->workload && !launch_count)) {
        free(plan);
        return fa_fail(FA_NOMEM, "plan: %zu bytes of host memory", sizeof *plan + (ctx->workload ? sizeof *launch_count : 0));
    }
    plan->launch_count = launch_count;
    plan->key = fa_plan_key_of(p);
    plan->problem = *p;
    plan->config = *c;
    plan->kernel = k;
    plan->fallback = fallback;
    snprintf(plan->why, sizeof plan->why, "%s", why ? why : "named by the caller");
    fa_plans_keep(ctx->plans, plan);
    *out = plan;
    return FA_OK;
}

/* The words that the kernel counts with: no launch of it allocates. */
static fa_status ready_counters(fa_context *ctx, const fa_kernel *k)
{
    fa_entered in;
    bool wanted = false;
    for (int i = 0; i < k->steps; i++)
        wanted = wanted || k->step[i].counter;
    if (!wanted)
        return FA_OK;
    fa_status st = fa_context_enter(ctx, &in);
    if (st != FA_OK)
        return st;
    st = fa_counters_ready(ctx, in.current);
    fa_context_leave(ctx, &in);
    return st;
}

fa_status fa_plan_of_kernel(fa_context *ctx, const fa_problem *p, const fa_config *c, const char *why, const fa_kernel *k,
                            const fa_plan **out)
{
    *out = NULL;
    fa_status st = ready_counters(ctx, k);
    return st == FA_OK ? keep(ctx, p, c, why, k, NULL, out) : st;
}

fa_status fa_plan_of_selection(fa_context *ctx, const fa_problem *p, const fa_selection *c, const fa_source *s, const fa_plan **out)
{
    const fa_kernel *k = NULL;
    char why[sizeof c->where + sizeof c->why + 2];
    snprintf(why, sizeof why, "%s: %s", c->where, c->why);
    *out = NULL;
    fa_status st = c->bundle_row ? fa_bundle_set_load(ctx, c->bundle_row, &k) : FA_OK;
    if (st == FA_OK)
        st = k ? fa_plan_of_kernel(ctx, p, &c->config, why, k, out) : fa_plan_of_source(ctx, p, &c->config, why, s, out);
    if (st == FA_OK) { /* nobody else knows of it before it is in the table */
        fa_plan *own = (fa_plan *)(uintptr_t)*out;
        own->lack = c->lacks ? fa_lack_of(ctx->lacks, &own->key) : NULL;
        own->seconds_with = c->seconds_with;
        own->pin = c->pin;
        own->facts = c->facts;
        own->seconds = c->seconds;
    }
    return st;
}

const fa_plan *fa_plan_of_fallback(fa_context *ctx, const fa_problem *p, const fa_plan *fallback)
{
    const fa_plan *plan;
    fa_message before;
    fa_message_keep(&before);
    bool made = keep(ctx, p, &fallback->config, fallback->why, fallback->kernel, fallback, &plan) == FA_OK;
    fa_message_settle(&before, FA_OK);
    return made ? plan : NULL;
}

bool fa_plan_use(fa_context *ctx, const fa_plan *plan)
{
    return fa_table_put(ctx->table, plan);
}
