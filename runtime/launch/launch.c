/* launch: fa_launch(), and all that happens between the table and the driver. */
#include "launch.h"
#include "empty.h"
#include "gen/error.h"
#include "gen/model.h"
#include "gen/problem.h"
#include "lease.h"
#include "repeat.h"
#include "runtime/args/check.h"
#include "runtime/args/device_data.h"
#include "runtime/args/map.h"
#include "runtime/args/scores.h"
#include "runtime/choose/select.h"
#include "runtime/context/context.h"
#include "runtime/context/driver_cuda.h"
#include "runtime/plan/counter.h"
#include "runtime/plan/lack.h"
#include "runtime/plan/launch_count.h"
#include "runtime/plan/miss.h"
#include "runtime/plan/table.h"
#include "widen.h"

/* A warp's lanes add up as many each. */
#define MOST_SECTION_KEYS (INT32_MAX / 32)

/* Bytes of workspace, and where in it each buffer lies. */
static fa_status workspace_of(const fa_workspace *w, const fa_call *c, size_t *need, int64_t offset[FA_BUFFERS_MAX])
{
    int64_t bytes = fa_workspace_any(w) ? fa_workspace_bytes(w, &c->sizes, offset) : 0;
    *need = bytes > 0 ? (size_t)bytes : 0;
    return bytes >= 0 ? FA_OK
                      : fa_fail(FA_INVALID, "args: the workspace for b=%d, hq=%d, sq=%d, sk=%d exceeds the address space", c->values.b,
                                c->values.hq, c->values.sq, c->values.sk);
}

/* A cluster, and a kernel that may begin early, need the launch with attributes; all else takes the short call. Early (programmatic
 * dependent launch, CUDA C++ Programming Guide): its blocks start where an SM is free once those in front have begun their last work,
 * and wait there themselves until all of that has ended and is visible. */
static CUresult start(const fa_context *ctx, const fa_step *s, CUkernel fn, unsigned grid, CUstream stream, void **arguments,
                      const char **call)
{
    const cu_driver *d = ctx->device.driver;
    bool pdl = s->pdl && !ctx->in_order;
    *call = s->cluster > 1 || pdl ? "cuLaunchKernelEx" : "cuLaunchKernel";
    /* a CUkernel serves whatever context is current; the driver takes it in a CUfunction's place */
    if (s->cluster <= 1 && !pdl)
        return d->cuLaunchKernel((CUfunction)fn, grid, 1, 1, (unsigned)s->threads, 1, 1, (unsigned)s->smem, stream, arguments, NULL);
    CUlaunchAttribute attribute[2];
    unsigned n = 0;
    if (s->cluster > 1)
        attribute[n++] =
            (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = { (unsigned)s->cluster, 1, 1 } };
    if (pdl)
        attribute[n++] = (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                              .value.programmaticStreamSerializationAllowed = 1 };
    CUlaunchConfig config = { .gridDimX = grid,
                              .gridDimY = 1,
                              .gridDimZ = 1,
                              .blockDimX = (unsigned)s->threads,
                              .blockDimY = 1,
                              .blockDimZ = 1,
                              .sharedMemBytes = (unsigned)s->smem,
                              .hStream = stream,
                              .attrs = attribute,
                              .numAttrs = n };
    return d->cuLaunchKernelEx(&config, (CUfunction)fn, arguments, NULL);
}

/* Heads that are walked side by side. Where sequences have lengths of their own the kernel finds how many, by those that it works on. */
static void section(const fa_arch *a, const fa_step *s, fa_call *c, int64_t tile)
{
    fa_values *v = &c->values;
    fa_pairs pairs = { v->sq, v->sk, { v->diag_lo, v->diag_hi } };
    int64_t seen = fa_pairs_keys_most(&pairs, tile), at_work = (int64_t)a->sm_count * (s->per_sm > 1 ? s->per_sm : 1) * tile;
    int64_t keys = fa_step_section_keys(&c->problem, seen, at_work, a->l2_bytes);
    v->section = fa_step_section(s, &c->problem, seen, at_work, a->l2_bytes);
    v->section_keys = (int32_t)(keys < 1 ? 1 : keys < MOST_SECTION_KEYS ? keys : MOST_SECTION_KEYS);
}

/* What depends on the step: the grid, and values of its kernel. A source of one step has them from the launch before where nothing but
 * addresses differs. *grid is 0 where there is nothing to do. */
static fa_status lay_out(const fa_context *ctx, const fa_kernel *k, const fa_step *s, fa_repeat *r, int64_t *grid)
{
    fa_call *c = &r->call;
    fa_values *v = &c->values;
    const fa_arch *a = &ctx->device.arch;
    bool chunked = fa_step_chunked(s);
    if (r->kernel == k->number && k->steps == 1 && !chunked) {
        *grid = r->grid;
        return FA_OK;
    }
    int64_t tile = fa_step_row_tile(s), total = fa_step_total(s, &c->sizes);
    *grid = total > 0 ? fa_step_grid(s, total, a->sm_count) : total;
    if (*grid < 0)
        return fa_fail(FA_INVALID, "args: b=%d, hq=%d, sq=%d, sk=%d: %s would need more than 2^31 - 1 blocks; accepted: smaller batches",
                       v->b, v->hq, v->sq, v->sk, s->entry);
    if (s->keys_most > 0 && v->sk > s->keys_most)
        return fa_fail(FA_UNSUPPORTED,
                       "args: sk is %d; accepted by the config of this launch: up to %d keys, as %s numbers its blocks of them", v->sk,
                       s->keys_most, s->entry);
    v->tiles = s->grid.n ? (int32_t)fa_factor_value(&s->grid.factor[0], &c->sizes) : 1;
    v->total = (int32_t)total;
    section(a, s, c, tile);
    v->joined = fa_maps_joined(s, c);
    r->kernel = k->number;
    r->same = k->steps == 1 && !chunked ? fa_repeat_next() : 0;
    r->grid = *grid;
    return FA_OK;
}

/* One step. One over an empty grid, as over no keys, has nothing to do: the others still write O = 0 and LSE = -inf. */
static fa_status launch_step(fa_context *ctx, const fa_kernel *k, int i, fa_repeat *r, const fa_entered *in, CUstream stream)
{
    const fa_step *s = &k->step[i];
    const cu_driver *d = ctx->device.driver;
    fa_repeat wide;
    if (fa_widen_reads(&k->workspace, s)) {
        wide = *r;
        fa_widen_call(&wide.call, &k->workspace);
        r = &wide;
    }
    fa_call *c = &r->call;
    const CUtensorMap *map[FA_STEP_MAPS] = { NULL };
    _Alignas(8) unsigned char params[FA_PACKED_MAX];
    void *arguments[1 + FA_STEP_MAPS + 1] = { params }; /* ends in NULL, which the driver does not look at */
    int64_t grid;
    fa_status st = lay_out(ctx, k, s, r, &grid);
    if (st != FA_OK || grid == 0)
        return st;
    c->values.counter = 0;
    bool counted = s->counter && ctx->checks_device_data;
    if (s->counter)
        st = fa_counter_take(ctx, in->current, stream, &c->values.counter);
    if (st == FA_OK && counted)
        st = fa_device_data_counters(ctx, c->values.counter, sizeof(uint32_t), FA_INTERNAL, (fa_stream)stream);
    c->values.boxed = fa_maps_boxed(s, c); /* which addresses decide, too */
    if (st == FA_OK && s->n_maps)
        st = fa_maps_encode(map, d, s, r->same, c);
    if (st != FA_OK)
        return fa_wrap(st, "%s", s->entry);
    fa_pack(params, &k->packing, &c->values);
    for (int m = 0; m < s->n_maps; m++)
        arguments[1 + m] = (void *)(uintptr_t)map[m];
    const char *call;
    CUresult got = start(ctx, s, k->fn[i], (unsigned)grid, stream, arguments, &call);
    st = got == CUDA_SUCCESS ? FA_OK : fa_driver_check(d, got, call);
    if (st == FA_OK && counted)
        st = fa_device_data_counters(ctx, c->values.counter, sizeof(uint32_t), FA_INTERNAL, (fa_stream)stream);
    return fa_wrap(st, "%s", s->entry);
}

/* Steps first to end - 1, which are over units or are one that is not. Sums that go from a slice of a group's members to the next lie in
 * the workspace: all slices of some units come before other units. */
static fa_status launch_steps(fa_context *ctx, const fa_kernel *k, int first, int end, fa_repeat *r, const fa_entered *in, CUstream stream)
{
    fa_call *c = &r->call;
    int64_t units = c->sizes.of[FA_EXTENT_UNITS], group = c->sizes.of[FA_EXTENT_MEMBERS], unit = 0, member = 0;
    fa_portion all = { units, group }, at = fa_step_chunked(&k->step[first]) ? fa_workspace_portion(&k->workspace, &c->sizes) : all;
    fa_status st;
    do {
        c->values.unit = (int32_t)unit;
        c->values.member = (int32_t)member;
        c->sizes.of[FA_EXTENT_UNITS] = at.units < units - unit ? at.units : units - unit;
        c->sizes.of[FA_EXTENT_MEMBERS] = at.members < group - member ? at.members : group - member;
        c->values.members = (int32_t)c->sizes.of[FA_EXTENT_MEMBERS];
        st = FA_OK;
        for (int i = first; st == FA_OK && i < end; i++)
            st = launch_step(ctx, k, i, r, in, stream);
        member += at.members;
        if (member >= group)
            member = 0, unit += at.units;
    } while (st == FA_OK && unit < units);
    c->sizes.of[FA_EXTENT_UNITS] = units;
    c->sizes.of[FA_EXTENT_MEMBERS] = group;
    return st;
}

/* The kernel's steps, where the workspace is there. */
static fa_status run_in(fa_context *ctx, const fa_kernel *k, fa_repeat *r, const fa_entered *in, fa_stream stream,
                        const int64_t offset[FA_BUFFERS_MAX], bool lent)
{
    fa_call *c = &r->call;
    bool counted = k->workspace.counters && ctx->checks_device_data;
    fa_status st = FA_OK;
    if (counted)
        st = fa_device_data_counters(ctx, c->values.workspace, FA_WORKSPACE_COUNTERS, lent ? FA_INTERNAL : FA_INVALID, stream);
    for (int i = 0; st == FA_OK && i < k->workspace.n; i++)
        c->values.buffer[i] = c->values.workspace + (uint64_t)offset[i];
    for (int i = 0, end; st == FA_OK && i < k->steps; i = end) {
        for (end = i + 1; end < k->steps && fa_step_chunked(&k->step[i]) && fa_step_chunked(&k->step[end]);)
            end++;
        st = launch_steps(ctx, k, i, end, r, in, (CUstream)stream);
    }
    if (st == FA_OK && counted)
        st = fa_device_data_counters(ctx, c->values.workspace, FA_WORKSPACE_COUNTERS, FA_INTERNAL, stream);
    return st;
}

/* A context of the device is current. */
static fa_status run(fa_context *ctx, const fa_plan *plan, fa_repeat *r, const fa_entered *in, fa_stream stream, bool lends)
{
    const fa_kernel *k = plan->kernel;
    fa_call *c = &r->call;
    fa_lease *lease = NULL;
    int64_t offset[FA_BUFFERS_MAX];
    size_t need;
    c->sizes.of[FA_EXTENT_SMS] = ctx->device.arch.sm_count;
    fa_status st = workspace_of(&k->workspace, c, &need, offset);
    if (st == FA_OK && need && !c->values.workspace && lends)
        st = fa_lease_take(ctx, in->current, (CUstream)stream, need, &lease);
    else if (st == FA_OK)
        st = fa_check_workspace(c, need);
    if (st != FA_OK)
        return st;
    if (lease)
        c->values.workspace = lease->at;
    st = run_in(ctx, k, r, in, stream, offset, lease != NULL);
    if (lease)
        fa_lease_give(lease, st == FA_OK);
    return st;
}

static bool maps_possible(const fa_call *c, char *why, size_t n)
{
    return fa_maps_possible(c, &c->problem, why, n);
}

/* The plan of the call's class and bucket: what the table has, or what a miss gives. */
static fa_status plan_for(fa_context *ctx, fa_repeat *r, const fa_entered *in, fa_stream stream, const fa_plan **out)
{
    char why[160];
    fa_call *c = &r->call;
    fa_check_lacks(c, !ctx->lends);
    r->key.features = c->problem.features;
    r->key.align = c->problem.align;
    r->key.kv_align = c->problem.kv_align;
    *out = fa_table_find(ctx->table, &r->key);
    fa_status st = *out ? FA_OK : fa_miss(ctx, &c->problem, in->current, (CUstream)stream, out);
    if (st == FA_OK && (*out)->kernel->maps && c->problem.align < 16 && !maps_possible(c, why, sizeof why))
        st = fa_fail(FA_UNSUPPORTED, "args: %s; accepted by the family %s, whatever the alignment", why, (*out)->config.family);
    return st;
}

fa_status fa_launch(fa_context *ctx, const fa_args *args, fa_stream stream)
{
    fa_repeat *r;
    fa_entered in;
    fa_status st = fa_context_check(ctx);
    if (st == FA_OK)
        st = fa_scores_check(ctx, args);
    if (st == FA_OK)
        st = fa_repeat_check(&r, args);
    if (st != FA_OK || r->call.empty)
        return st == FA_OK ? fa_empty_launch(ctx, &r->call, stream) : st;
    const fa_plan *plan = NULL;
    st = fa_context_enter(ctx, &in);
    if (st != FA_OK)
        return st;
    if (ctx->checks_device_data && r->call.problem.features & FA_FEATURE_LENGTHS)
        st = fa_device_data_check(ctx, &r->call, stream);
    if (st == FA_OK)
        st = plan_for(ctx, r, &in, stream, &plan);
    if (st == FA_OK && plan->lack)
        fa_lack_tell(ctx, plan->lack, &plan->problem, plan->seconds, plan->seconds_with);
    if (st == FA_OK)
        st = run(ctx, plan, r, &in, stream, ctx->lends);
    if (st == FA_OK && plan->launch_count)
        fa_launch_count_add(plan->launch_count, &r->part);
    fa_context_leave(ctx, &in);
    return st;
}

static fa_status check_class(const fa_plan *of, const fa_problem *call)
{
    char has[FA_FEATURES_TEXT], wants[FA_FEATURES_TEXT];
    const fa_problem *plan = &of->problem;
    const fa_problem_field *f = fa_problem_hindrance(plan, fa_plan_needs_workspace(of), call);
    if (!f)
        return FA_OK;
    return fa_fail(FA_INVALID, "args: %s is %s; accepted by this plan: %s%s", f->member,
                   fa_problem_field_text(wants, sizeof wants, f, fa_problem_serving(call, f)),
                   fa_problem_field_text(has, sizeof has, f, fa_problem_serving(plan, f)), f->less_serves ? " or a multiple of it" : "");
}

static fa_status check_maps(const fa_plan *plan, const fa_call *c)
{
    char why[160];
    if (!plan->kernel->maps || maps_possible(c, why, sizeof why))
        return FA_OK;
    return fa_fail(FA_INVALID, "args: %s; accepted by this plan, which loads by TMA", why);
}

fa_status fa_plan_launch(fa_context *ctx, const fa_plan *plan, const fa_args *args, fa_stream stream)
{
    fa_repeat *r;
    fa_entered in;
    fa_status st = fa_repeat_check(&r, args);
    if (st != FA_OK || r->call.empty)
        return st == FA_OK ? fa_empty_launch(ctx, &r->call, stream) : st;
    st = check_class(plan, &r->call.problem);
    if (st == FA_OK)
        st = check_maps(plan, &r->call);
    if (st == FA_OK)
        st = fa_context_enter(ctx, &in);
    if (st != FA_OK)
        return st;
    st = run(ctx, plan, r, &in, stream, false);
    fa_context_leave(ctx, &in);
    return st;
}

fa_status fa_plan_workspace(fa_context *ctx, const fa_plan *plan, const fa_args *args, size_t *bytes)
{
    fa_call call;
    fa_status st = fa_check_args(&call, args, false);
    *bytes = 0;
    call.sizes.of[FA_EXTENT_SMS] = ctx->device.arch.sm_count;
    return st == FA_OK && !call.empty ? workspace_of(&plan->kernel->workspace, &call, bytes, NULL) : st;
}

/* The most workspace that a call needs of the kernels which it may meet. */
typedef struct most {
    const fa_call *call;
    size_t bytes;
    fa_status status;
    bool any; /* a kernel was there */
} most;

static void consider(most *m, const fa_workspace *w)
{
    size_t bytes = 0;
    m->any = true;
    fa_status st = workspace_of(w, m->call, &bytes, NULL);
    m->status = m->status == FA_OK ? st : m->status;
    m->bytes = bytes > m->bytes ? bytes : m->bytes;
}

static void consider_plan(void *user, const fa_plan *plan)
{
    most *m = user;
    if (fa_miss_serves(plan, &m->call->problem))
        consider(m, &plan->kernel->workspace);
}

/* The kernel that would be chosen, compiling nothing. */
static fa_status consider_choice(fa_context *ctx, most *m)
{
    fa_selection selection;
    fa_source source = { 0 };
    fa_status st = fa_select(ctx, &m->call->problem, &selection, &source);
    if (st == FA_OK)
        consider(m, &source.workspace);
    fa_source_free(&source);
    return st;
}

/* All kernels that a launch of the call's class may meet: the one of its bucket; else, as long as another runs in its place, both. */
static fa_status consider_class(fa_context *ctx, most *m)
{
    fa_message before;
    const fa_plan_key key = fa_plan_key_of(&m->call->problem);
    const fa_plan *plan = fa_table_find(ctx->table, &key);
    if (plan)
        consider(m, &plan->kernel->workspace);
    else if (ctx->on_miss == FA_MISS_NEAREST)
        fa_table_each(ctx->table, consider_plan, m);
    if (m->status != FA_OK || (plan && !plan->fallback))
        return m->status;
    fa_message_keep(&before);
    fa_status st = consider_choice(ctx, m);
    return m->status != FA_OK ? m->status : fa_message_settle(&before, m->any ? FA_OK : st);
}

fa_status fa_workspace_size(fa_context *ctx, const fa_args *args, size_t *bytes)
{
    fa_call call;
    most m = { .call = &call, .status = FA_OK };
    fa_status st = fa_context_check(ctx);
    if (st != FA_OK)
        return st;
    if (!bytes)
        return fa_fail(FA_INVALID, "bytes: NULL; accepted: where to write the size");
    *bytes = 0;
    st = fa_scores_check(ctx, args);
    if (st == FA_OK)
        st = fa_check_args(&call, args, false);
    if (st != FA_OK || call.empty)
        return st;
    call.sizes.of[FA_EXTENT_SMS] = ctx->device.arch.sm_count;
    fa_check_lacks(&call, false);
    st = consider_class(ctx, &m);
    *bytes = st == FA_OK ? m.bytes : 0;
    return st;
}

fa_status fa_workspace_init(fa_context *ctx, void *workspace, size_t size, fa_stream stream)
{
    fa_entered in;
    fa_status st = fa_context_check(ctx);
    if (st != FA_OK || !size)
        return st;
    if (size < FA_WORKSPACE_COUNTERS)
        return fa_fail(FA_INVALID,
                       "size: %zu; accepted: %d bytes of counters and more, as fa_workspace_size() tells, or 0 for no workspace", size,
                       FA_WORKSPACE_COUNTERS);
    if (!workspace || (uintptr_t)workspace % FA_WORKSPACE_ALIGN)
        return fa_fail(FA_INVALID, "workspace: %p; accepted: a device address that is a multiple of %d", workspace, FA_WORKSPACE_ALIGN);
    st = fa_context_enter(ctx, &in);
    if (st != FA_OK)
        return st;
    const cu_driver *d = ctx->device.driver;
    st = fa_driver_check(d, d->cuMemsetD32Async((CUdeviceptr)(uintptr_t)workspace, 0, FA_WORKSPACE_COUNTERS / 4, (CUstream)stream),
                         "cuMemsetD32Async");
    fa_context_leave(ctx, &in);
    return st;
}
