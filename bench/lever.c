/* lever: a thin way from a config's text to a launch, for scripts. */
#include "lever.h"
#include "cli/session/ranking.h"
#include "gen/error.h"
#include "gen/pairs.h"
#include "gen/problem.h"
#include "runtime/runtime.h"
#include <stdio.h>
#include <string.h>

static fa_status check(const fa_context *ctx, const fa_problem *in, const void *buf, fa_problem *out)
{
    if (!ctx || !in || !buf)
        return fa_fail(FA_INVALID, "%s: NULL; accepted: none of ctx, p and the buffer may be", !ctx ? "ctx" : !in ? "p" : "buffer");
    return fa_problem_normalize(out, in);
}

fa_status fa_lever_pick(fa_context *ctx, const fa_problem *p, const char *text, char *config, size_t n)
{
    fa_problem q;
    fa_config c;
    fa_gen *g = NULL;
    fa_status st = check(ctx, p, config, &q);
    if (st == FA_OK)
        st = fa_gen_open(&g, fa_context_template_dir(ctx));
    if (st == FA_OK)
        st = cli_pick(g, &q, fa_context_arch(ctx), fa_context_budget(ctx), text, &c);
    fa_gen_close(g);
    if (st == FA_OK && fa_config_print(config, n, &c) >= (int)n)
        st = fa_fail(FA_INVALID, "config: %zu bytes of room; accepted: enough for its text", n);
    return st;
}

fa_status fa_lever_rank(fa_context *ctx, const fa_problem *p, const char *family, int limit, char *lines, size_t n)
{
    fa_problem q;
    fa_gen *g = NULL;
    cli_ranking r;
    size_t at = 0;
    fa_status st = check(ctx, p, lines, &q);
    if (st == FA_OK)
        st = fa_gen_open(&g, fa_context_template_dir(ctx));
    if (st == FA_OK)
        st = cli_rank(g, &q, fa_context_arch(ctx), fa_context_budget(ctx), family, &r);
    fa_gen_close(g);
    if (st != FA_OK)
        return st;
    if (n)
        lines[0] = 0;
    for (size_t i = 0; i < r.n && (limit <= 0 || i < (size_t)limit); i++) {
        char line[512];
        int len = fa_config_print(line, sizeof line, &r.space.points[r.r[i].point].config);
        if (len >= (int)sizeof line || at + (size_t)len + 2 > n)
            break;
        at += (size_t)snprintf(lines + at, n - at, "%s\n", line);
    }
    cli_ranking_free(&r);
    return FA_OK;
}

static void tell(const fa_kernel *k, char *told, size_t n)
{
    int32_t regs = 0, spills = 0, local = 0, smem = 0, threads = 0;
    bool serialized = false;
    for (int i = 0; i < k->steps; i++) {
        const fa_resources *r = &k->resources[i];
        int32_t most = r->spill_stores > r->spill_loads ? r->spill_stores : r->spill_loads;
        regs = r->registers > regs ? r->registers : regs;
        spills = most > spills ? most : spills;
        local = r->stack > local ? r->stack : local;
        smem = k->step[i].smem > smem ? k->step[i].smem : smem;
        threads = k->step[i].threads > threads ? k->step[i].threads : threads;
        serialized = serialized || r->note[0];
    }
    snprintf(told, n, "registers=%d spills=%d local=%d smem=%d threads=%d from=%s serialized=%d", regs, spills, local, smem, threads,
             strcmp(k->from, "compiler") ? "cache" : "compiler", serialized);
}

fa_status fa_lever_plan(fa_context *ctx, const fa_problem *p, const char *config, const fa_lever **out, char *told, size_t n)
{
    fa_problem q;
    fa_config c;
    const fa_plan *plan;
    if (!out || !config)
        return fa_fail(FA_INVALID, "%s: NULL", out ? "config" : "out");
    *out = NULL;
    fa_status st = check(ctx, p, told, &q);
    if (st == FA_OK)
        st = fa_config_parse(&c, config);
    if (st == FA_OK)
        st = fa_plan_make(ctx, &q, &c, "named by a bench", &plan);
    if (st != FA_OK)
        return st;
    tell(plan->kernel, told, n);
    *out = (const fa_lever *)plan;
    return FA_OK;
}

fa_status fa_lever_launch(fa_context *ctx, const fa_lever *plan, const fa_args *args, fa_stream stream)
{
    if (!ctx || !plan)
        return fa_fail(FA_INVALID, "%s: NULL", ctx ? "plan" : "ctx");
    return fa_plan_launch(ctx, (const fa_plan *)plan, args, stream);
}

fa_status fa_lever_workspace(fa_context *ctx, const fa_lever *plan, const fa_args *args, size_t *bytes)
{
    if (!ctx || !plan || !bytes)
        return fa_fail(FA_INVALID, "%s: NULL", !ctx ? "ctx" : plan ? "bytes" : "plan");
    return fa_plan_workspace(ctx, (const fa_plan *)plan, args, bytes);
}

fa_status fa_lever_pairs(const fa_args *a, int64_t band[2], int64_t *pairs, int64_t *first, int64_t *last)
{
    if (!a || !band || !pairs || !first || !last)
        return fa_fail(FA_INVALID, "%s: NULL", a ? "band, pairs, first or last" : "args");
    if (a->sq < 0 || a->sq > FA_MAX_LENGTH || a->sk < 0 || a->sk > FA_MAX_LENGTH)
        return fa_fail(FA_INVALID, "args: sq is %d and sk %d; accepted: 0 to %d", a->sq, a->sk, FA_MAX_LENGTH);
    fa_pairs p = fa_pairs_of(fa_shift_of(a->mask, a->diagonal, a->offset, a->window_left, a->window_right), a->sq, a->sk);
    band[0] = p.band.lo;
    band[1] = p.band.hi;
    *pairs = fa_pairs_count(&p);
    for (int32_t i = 0; i < a->sq; i++) {
        fa_range seen = fa_pairs_keys(&p, (fa_range){ i, i });
        first[i] = seen.first;
        last[i] = seen.last;
    }
    return FA_OK;
}
