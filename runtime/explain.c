/* explain: which kernel, from where, and why, in a few lines. */
#include "check.h"
#include "choose.h"
#include "context.h"
#include "gen/error.h"
#include "gen/model.h"
#include "gen/problem.h"
#include <string.h>

static void tell_problem(fa_text *t, const fa_context *ctx, const fa_problem *p)
{
    char line[256];
    fa_problem_print(line, sizeof line, p);
    fa_text_fmt(t, "problem    %s\n", line);
    fa_text_fmt(t, "device     %s (%s through %s), %d bytes of shared memory per block\n", ctx->device.arch.chip,
                ctx->device.arch.name, ctx->device.driver->name, ctx->budget);
}

static void tell_config(fa_text *t, const fa_config *c, const char *why)
{
    char line[512];
    fa_config_print(line, sizeof line, c);
    fa_text_fmt(t, "config     %s\nwhy        %s\n", line, why);
}

static void tell_steps(fa_text *t, const fa_step *s, int n, const fa_problem *p, int32_t sm_count)
{
    fa_problem q = *p;
    fa_problem_fill_shape(&q);
    for (int i = 0; i < n; i++)
        fa_text_fmt(t, "launch     %s: %lld blocks of %d threads, %d bytes of shared memory\n", s[i].entry,
                    (long long)fa_step_grid(&s[i], fa_step_total(&s[i], q.b, q.hq, q.hkv, q.sq, q.sk), sm_count), s[i].threads, s[i].smem);
}

static void tell_plan(fa_text *t, const fa_plan *plan, const fa_problem *p, int32_t sm_count)
{
    const fa_kernel *k = plan->kernel;
    char key[33];
    tell_config(t, &plan->config, plan->why);
    fa_key_print(key, k->key);
    fa_text_fmt(t, "kernel     loaded, from the %s, key %s\n", k->from, key);
    for (int i = 0; i < k->steps; i++)
        if (k->resources[i].known)
            fa_text_fmt(t, "resources  %s: %d registers, %d + %d bytes spilled, %d bytes of local memory\n",
                        k->step[i].entry, k->resources[i].registers, k->resources[i].spill_stores,
                        k->resources[i].spill_loads, k->resources[i].stack);
    tell_steps(t, k->step, k->steps, p, sm_count);
}

static fa_status tell_choice(fa_text *t, fa_context *ctx, const fa_problem *p)
{
    fa_choice c;
    fa_source s = {0};
    fa_key k;
    fa_entry e;
    char hex[33];
    fa_status st = fa_choose(ctx, p, &c, &s);
    if (st != FA_OK)
        return st;
    fa_text why = {0};
    fa_text_fmt(&why, "%s: %s", c.where, c.why);
    tell_config(t, &c.config, fa_text_cstr(&why));
    fa_text_free(&why);
    if (fa_compiler_key(ctx->compiler, &s, ctx->device.arch.name, ctx->device.driver->takes_ptx ? 1 : 0, &k) != FA_OK)
        fa_text_fmt(t, "kernel     not compiled, and no compiler: %s\n", fa_last_error());
    else {
        bool there = fa_entry_get(ctx->store, k, ctx->device.arch.name, &e);
        if (there)
            fa_entry_free(&e);
        fa_key_print(hex, k);
        fa_text_fmt(t, "kernel     %s, key %s\n", there ? "in the disk cache" : "not compiled yet", hex);
    }
    tell_steps(t, s.step, s.steps, p, ctx->device.arch.sm_count);
    fa_source_free(&s);
    return FA_OK;
}

fa_status fa_explain(fa_context *ctx, const fa_problem *p, const fa_args *args, char *buf, size_t n)
{
    fa_problem q;
    fa_call call;
    fa_text t = {0};
    if (!ctx)
        return fa_fail(FA_INVALID, "ctx: NULL; accepted: a context of fa_create()");
    if (!buf || !n)
        return fa_fail(FA_INVALID, "buf: %p of %zu bytes; accepted: room for text", (void *)buf, n);
    buf[0] = 0;
    fa_status st = args ? fa_check_args(&call, args, args->q.ptr != NULL) : fa_check_problem(&q, p);
    if (st != FA_OK)
        return st;
    if (args && call.empty) {
        fa_text_str(&t, "nothing is launched: b or sq is 0\n");
    } else {
        if (args)
            q = call.problem;
        tell_problem(&t, ctx, &q);
        const fa_plan *plan = fa_table_find(&ctx->table, fa_plan_key_of(&q));
        if (plan)
            tell_plan(&t, plan, &q, ctx->device.arch.sm_count);
        else
            st = tell_choice(&t, ctx, &q);
    }
    if (st == FA_OK && t.oom)
        st = fa_fail(FA_NOMEM, "explain: host memory");
    size_t len = strnlen(fa_text_cstr(&t), n - 1);
    memcpy(buf, fa_text_cstr(&t), st == FA_OK ? len : 0);
    buf[st == FA_OK ? len : 0] = 0;
    fa_text_free(&t);
    return st;
}
