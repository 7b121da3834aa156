/* explain: which kernel, from where, and why, in a few lines. */
#include "gen/batch_kind.h"
#include "gen/error.h"
#include "gen/model.h"
#include "gen/problem.h"
#include "gen/score/known.h"
#include "runtime/args/check.h"
#include "runtime/args/map.h"
#include "runtime/args/scores.h"
#include "runtime/bundle/set.h"
#include "runtime/choose/jit.h"
#include "runtime/context/context.h"
#include "runtime/plan/background.h"
#include "runtime/plan/lack.h"
#include "runtime/plan/miss.h"
#include "runtime/plan/table.h"
#include <stdio.h>
#include <string.h>

#define LAYOUT_TIMES 1.5 /* of the time: another layout is told of */

/* "score      softcap.lua: score and sink, of cap, z" */
static void tell_score(fa_text *t, const fa_program *program)
{
    if (!program)
        return;
    static const char *const words[FA_SCORE_ROOTS] = { "score", "mask", "sink" };
    const int16_t *root = program->ir.root;
    fa_text_fmt(t, "score      %s: ", program->name);
    for (int i = 0, n = 0; i < FA_SCORE_ROOTS; i++)
        if (root[i] >= 0)
            fa_text_fmt(t, "%s%s", n++ ? " and " : "", words[i]);
    for (int k = 0; k < program->ir.operands; k++)
        fa_text_fmt(t, "%s%s", k ? ", " : ", of ", program->ir.operand[k].name);
    fa_text_str(t, "\n");
}

static void tell_problem(fa_text *t, const fa_context *ctx, const fa_problem *p)
{
    char line[FA_PROBLEM_TEXT];
    fa_problem_print(line, sizeof line, p);
    fa_text_fmt(t, "problem    %s\n", line);
    tell_score(t, fa_score_known(p));
    fa_text_fmt(t, "device     %s (%s through %s), %d bytes of shared memory per block\n", ctx->device.arch.chip, ctx->device.arch.name,
                ctx->device.driver->name, ctx->budget);
}

/* Arrays of such kernels as bring an element for each pair into shared memory, where these do not lie as is fastest: "layout     bias: rows
 * begin at multiples of 2 bytes; fastest: 16". What queries side by side take is less than that tells of. */
static void tell_arrays(fa_text *t, const fa_problem *p, const fa_program *program, const fa_score_given *given)
{
    for (int i = 0; p->features & FA_FEATURE_SCORE_ANYWHERE && i < program->planes.n; i++) {
        const fa_score_plane *plane = &program->planes.of[i];
        const fa_score_given *g = &given[plane->operand];
        const char *name = program->ir.operand[plane->operand].name;
        int last = plane->rank - 1;
        int64_t at = (int64_t)(g->address % 16), apart = g->extent[last] > 1 ? g->stride[last] : 1;
        for (int r = 0; r < last; r++)
            at |= g->stride[r] * plane->bytes;
        if (apart != 1)
            fa_text_fmt(t, "layout     %s: keys are %lld elements apart, so that each is read by itself; fastest: 1%s\n", name,
                        (long long)apart, plane->bytes == 2 ? ", or queries side by side, in columns at multiples of 16 bytes" : "");
        else if (at % 16)
            fa_text_fmt(t, "layout     %s: rows begin at multiples of %lld bytes%s; fastest: 16\n", name, (long long)(at & -at),
                        plane->bytes == 4 ? ", so that they come 4 bytes at a time" : "");
    }
}

/* A config that the batch has no say in: by which shape it is chosen. */
static void tell_invariant(fa_text *t, const fa_problem *p)
{
    char line[FA_PROBLEM_TEXT];
    fa_problem shape = fa_problem_chosen_by(p);
    if (!(p->features & FA_FEATURE_BATCH_INVARIANT))
        return;
    fa_problem_print(line, sizeof line, &shape);
    fa_text_fmt(t, "invariant  the config is that of %s, whatever the batch; a sequence's own lengths say where its keys are cut\n", line);
}

static void tell_config(fa_text *t, fa_context *ctx, const fa_config *c, const char *why)
{
    char line[512];
    fa_jit_config(ctx, c, line, sizeof line);
    fa_text_fmt(t, "config     %s\nwhy        %s\n", line, why);
}

/* What runs a class: a plan that is ready, or what would be chosen. */
typedef struct answer {
    const fa_plan *plan; /* NULL: the two below */
    bool hit;            /* the plan is in the table; else it is the nearest, and serves */
    fa_selection selection;
    fa_source source;
    const fa_step *step;
    int32_t steps;
} answer;

static fa_status look(fa_context *ctx, const fa_problem *p, answer *out)
{
    const fa_plan_key key = fa_plan_key_of(p);
    *out = (answer){ .plan = fa_table_find(ctx->table, &key) };
    out->hit = out->plan != NULL;
    if (!out->hit)
        out->plan = fa_miss_nearest(ctx, p);
    fa_status st = out->plan ? FA_OK : fa_select(ctx, p, &out->selection, &out->source);
    out->step = out->plan ? out->plan->kernel->step : out->source.step;
    out->steps = out->plan ? out->plan->kernel->steps : out->source.steps;
    return st;
}

/* As fa_launch() decides: what takes maps does not run where TMA cannot address the tensors. why tells, if that is so; also where
 * the alignment alone had already ruled out the kernel that rows at multiples of 16 bytes would get. */
static fa_status look_for_call(fa_context *ctx, fa_problem *p, const fa_call *c, answer *out, char *why, size_t n)
{
    fa_problem best = *p;
    answer other;
    fa_status st = look(ctx, p, out);
    if (st != FA_OK || !c || fa_maps_possible(c, p, why, n)) {
        why[0] = 0;
        return st;
    }
    best.align = 0;
    bool lost = fa_problem_normalize(&best, &best) == FA_OK && best.align > p->align && look(ctx, &best, &other) == FA_OK;
    if (lost) {
        lost = fa_steps_map(other.step, other.steps);
        fa_source_free(&other.source);
    }
    if (!lost)
        why[0] = 0;
    return FA_OK;
}

static void tell_steps(fa_text *t, const fa_context *ctx, const answer *a, const fa_problem *p, const char *why)
{
    fa_problem q = *p;
    fa_problem_fill_shape(&q);
    fa_sizes sizes = fa_sizes_of(&q, ctx->device.arch.sm_count);
    fa_portion portion = fa_workspace_portion(a->plan ? &a->plan->kernel->workspace : &a->source.workspace, &sizes);
    for (int i = 0; i < a->steps; i++) {
        const fa_step *s = &a->step[i];
        int64_t total = fa_step_total(s, &sizes);
        if (total == 0) {
            fa_text_fmt(t, "launch     %s: none, there is nothing for it to do\n", s->entry);
            continue;
        }
        int64_t launches = fa_step_chunked(s) ? fa_portion_launches(&portion, &sizes) : 1;
        fa_text_fmt(t, "launch     %s: %lld blocks of %d threads, %d bytes of shared memory%s", s->entry,
                    (long long)fa_step_grid(s, total, ctx->device.arch.sm_count), s->threads, s->smem,
                    s->pdl && !ctx->in_order ? ", may begin early" : "");
        if (launches > 1)
            fa_text_fmt(t, ", in %lld launches", (long long)launches);
        fa_text_fmt(t, "\n");
        if (s->per_sm || s->cluster > 1 || s->counter)
            fa_text_fmt(t, "scheduler  %s: ", s->entry);
        if (s->per_sm)
            fa_text_fmt(t, "persistent, at most %d per SM for %s%lld tiles%s", s->per_sm,
                        p->features & FA_FEATURE_LENGTHS ? "what the lengths make of " : "", (long long)total,
                        s->counter ? ", taken from a counter" : "");
        else if (s->cluster > 1 || s->counter)
            fa_text_fmt(t, "one %s per tile%s", s->cluster > 1 ? "cluster" : "block", s->counter ? ", taken from a counter" : "");
        if (s->cluster > 1)
            fa_text_fmt(t, ", clusters of %d", s->cluster);
        if (s->per_sm || s->cluster > 1 || s->counter)
            fa_text_str(t, "\n");
    }
    if (fa_steps_map(a->step, a->steps))
        fa_text_str(t, "loads      by TMA\n");
    else if (why[0])
        fa_text_fmt(t, "loads      plain, not by TMA: %s\n", why);
}

static void tell_plan(fa_text *t, fa_context *ctx, const fa_plan *plan)
{
    const fa_kernel *k = plan->kernel;
    char key[33];
    tell_config(t, ctx, &plan->config, plan->why);
    fa_key_print(key, k->key);
    fa_text_fmt(t, "kernel     loaded, from the %s, key %s\n", k->from, key);
    for (int i = 0; i < k->steps; i++)
        if (k->resources[i].known)
            fa_text_fmt(t, "resources  %s: %d registers, %d + %d bytes spilled, %d bytes of local memory\n", k->step[i].entry,
                        k->resources[i].registers, k->resources[i].spill_stores, k->resources[i].spill_loads, k->resources[i].stack);
    for (int i = 0; i < k->steps; i++)
        if (k->resources[i].note[0])
            fa_text_fmt(t, "slow       %s: %s\n", k->step[i].entry, k->resources[i].note);
}

static void tell_selection(fa_text *t, fa_context *ctx, const answer *a)
{
    fa_text why = { 0 };
    fa_text_fmt(&why, "%s: %s", a->selection.where, a->selection.why);
    tell_config(t, ctx, &a->selection.config, fa_text_cstr(&why));
    fa_text_free(&why);
    if (a->selection.bundle_row)
        fa_text_fmt(t, "kernel     in the bundle, check %s\n", a->selection.bundle_row->image->check);
    else
        fa_jit_describe(ctx, &a->source, t);
}

/* A launch that finds no plan, and none that serves. */
static void tell_miss(fa_text *t, const fa_context *ctx)
{
    if (ctx->on_miss == FA_MISS_FAIL)
        fa_text_str(t, "table      miss: FA_NO_KERNEL, as the option on_miss says, until fa_prepare() or fa_prepare_range()\n");
    else
        fa_text_str(t, "table      miss: the first launch prepares this kernel, or is FA_CAPTURE under capture\n");
}

/* The kernel that takes the place of the one that runs meanwhile, and what has become of it. job: NULL where it was not asked for. */
static void tell_better(fa_text *t, fa_context *ctx, const fa_problem *p, const fa_job *job)
{
    static const char *const states[] = { "waits to be compiled", "is being compiled", "is ready",
                                          "failed, and only fa_prepare() tries again: " };
    char line[512];
    fa_selection selection;
    if (fa_select(ctx, p, &selection, NULL) == FA_OK)
        fa_jit_config(ctx, &selection.config, line, sizeof line);
    else
        snprintf(line, sizeof line, "none is found: %.480s", fa_last_error());
    fa_text_fmt(t, "better     %s: %s%s\n", line, job ? states[job->state] : "the next launch asks for it",
                job && job->state == FA_JOB_FAILED ? job->error : "");
}

static void tell_table(fa_text *t, fa_context *ctx, const fa_problem *p, const answer *a)
{
    char line[FA_PROBLEM_TEXT];
    fa_job job;
    const fa_plan_key key = fa_plan_key_of(p);
    bool asked = a->plan && fa_background_look(ctx->background, &key, &job);
    const fa_plan *fallback = !a->plan || !a->hit ? a->plan : a->plan->fallback;
    if (!a->plan) {
        tell_miss(t, ctx);
    } else if (!fallback) {
        fa_text_fmt(t, "table      hit: prepared%s\n",
                    asked && job.state == FA_JOB_DONE ? " in the background, while launches ran the nearest kernel" : "");
    } else {
        fa_problem_print(line, sizeof line, &fallback->problem);
        fa_text_fmt(t, "table      nearest: the kernel above, prepared for %s, runs until the better one is ready\n", line);
        tell_better(t, ctx, p, asked ? &job : NULL);
    }
}

/* What another layout of the same tensors would run, where that is much faster. */
static void tell_layout(fa_text *t, fa_context *ctx, const fa_problem *p, const answer *a)
{
    char cost[256];
    bool known = a->plan ? !a->plan->pin : !a->selection.pin;
    if (known && fa_jit_neighbour(ctx, p, a->plan ? a->plan->seconds : a->selection.seconds, LAYOUT_TIMES, cost, sizeof cost))
        fa_text_fmt(t, "layout     %s\n", cost);
}

/* How much a launch needs, and whose it is; of a class that brings none, what that costs. */
static void tell_workspace(fa_text *t, const fa_context *ctx, const fa_problem *p, const fa_call *c, const answer *a)
{
    char cost[128];
    const fa_workspace *w = a->plan ? &a->plan->kernel->workspace : &a->source.workspace;
    bool lacks = a->plan ? a->plan->lack != NULL : a->selection.lacks;
    if (lacks) {
        fa_lack_print(cost, sizeof cost, a->plan ? a->plan->seconds : a->selection.seconds,
                      a->plan ? a->plan->seconds_with : a->selection.seconds_with);
        fa_text_fmt(t, "workspace  %s: %s\n",
                    c ? "args.workspace is NULL, and the option workspace is FA_WORKSPACE_CALLER" : "of kernels that need none", cost);
    }
    if (!fa_workspace_any(w))
        return;
    fa_problem q = *p;
    fa_problem_fill_shape(&q);
    fa_sizes sizes = c ? c->sizes : fa_sizes_of(&q, 0);
    sizes.of[FA_EXTENT_SMS] = ctx->device.arch.sm_count;
    int64_t bytes = fa_workspace_bytes(w, &sizes, NULL);
    bool given = c && c->values.workspace;
    if (bytes > 0)
        fa_text_fmt(t, "workspace  %lld bytes, %s\n", (long long)bytes,
                    given        ? "of args.workspace"
                    : ctx->lends ? "which the context lends to launches that bring none"
                                 : "of args.workspace: the option workspace is FA_WORKSPACE_CALLER, and a launch without is FA_INVALID");
}

/* The whole text; the caller frees it. */
static fa_status compose(fa_context *ctx, const fa_problem *p, const fa_args *args, fa_text *t)
{
    fa_problem q;
    fa_call call;
    fa_status st = fa_context_check(ctx);
    if (st != FA_OK)
        return st;
    st = args ? fa_scores_check(ctx, args) : fa_check_problem(&q, p);
    if (st == FA_OK && args)
        st = fa_check_given(&call, args);
    if (st != FA_OK)
        return st;
    if (args && call.empty) {
        fa_text_str(t, "nothing is launched: b or sq is 0\n");
    } else {
        if (args) {
            fa_check_lacks(&call, !ctx->lends && args->q.ptr != NULL);
            q = call.problem;
        }
        answer found;
        char why[160] = "";
        st = look_for_call(ctx, &q, args ? &call : NULL, &found, why, sizeof why);
        if (st == FA_OK) {
            tell_problem(t, ctx, &q);
            tell_invariant(t, &q);
            tell_workspace(t, ctx, &q, args ? &call : NULL, &found);
            if (found.plan)
                tell_plan(t, ctx, found.plan);
            else
                tell_selection(t, ctx, &found);
            tell_layout(t, ctx, &q, &found);
            tell_table(t, ctx, &q, &found);
            tell_steps(t, ctx, &found, &q, why);
            if (args && fa_score_known(&q) && fa_steps_map(found.step, found.steps))
                tell_arrays(t, &q, fa_score_known(&q), call.values.score);
            if (found.plan && found.plan->facts)
                fa_text_fmt(t, "chosen     by the facts %016llx\n", (unsigned long long)found.plan->facts);
            fa_jit_candidates(ctx, &q, t);
        }
        fa_source_free(&found.source);
    }
    fa_text_make_plain(t); /* records and bundles come from anywhere */
    return st == FA_OK && t->oom ? fa_fail(FA_NOMEM, "explain: host memory") : st;
}

fa_status fa_explain(fa_context *ctx, const fa_problem *p, const fa_args *args, char *buf, size_t n)
{
    fa_text t = { 0 };
    fa_message before;
    if (!buf || !n)
        return fa_fail(FA_INVALID, "buf: %p of %zu bytes; accepted: room for text", (void *)buf, n);
    fa_message_keep(&before);
    fa_status st = fa_message_settle(&before, compose(ctx, p, args, &t));
    size_t len = st == FA_OK ? strnlen(fa_text_cstr(&t), n - 1) : 0;
    memcpy(buf, fa_text_cstr(&t), len);
    buf[len] = 0;
    fa_text_free(&t);
    return st;
}

fa_status fa_explain_size(fa_context *ctx, const fa_problem *p, const fa_args *args, size_t *bytes)
{
    fa_text t = { 0 };
    fa_message before;
    if (!bytes)
        return fa_fail(FA_INVALID, "bytes: NULL; accepted: where to write the size");
    fa_message_keep(&before);
    fa_status st = fa_message_settle(&before, compose(ctx, p, args, &t));
    *bytes = st == FA_OK ? t.n + 1 : 0;
    fa_text_free(&t);
    return st;
}
