/* From fa_create() to numbers, on the simulator: judged against fp64. */
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

TestSuite(runtime_sim, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

enum { B = 1, HQ = 2, HKV = 1, SQ = 37, SK = 53, D = 64 };

static uint16_t bf16(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static float from_bf16(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static void fill(uint16_t *x, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = bf16((float)(int32_t)(seed >> 32) * 0x1p-30f);
    }
}

static uint16_t q[B * SQ * HQ * D], k[B * SK * HKV * D], v[B * SK * HKV * D], o[B * SQ * HQ * D];
static float lse[B * HQ * SQ];

/* Largest error of O and of LSE; off as in fagen.h. */
static void judge(const fa_args *a, double worst[2])
{
    worst[0] = worst[1] = 0;
    for (int h = 0; h < HQ; h++)
        for (int i = 0; i < SQ; i++) {
            double s[SK], m = -INFINITY, sum = 0;
            for (int j = 0; j < a->sk; j++) {
                int off = a->sk - SQ, at = j - (i + off);
                bool seen = a->mask == FA_MASK_NONE || (a->mask == FA_MASK_CAUSAL && at <= 0) ||
                            (a->mask == FA_MASK_WINDOW && at >= -a->window_left && at <= a->window_right);
                s[j] = 0;
                for (int e = 0; e < D; e++)
                    s[j] += (double)from_bf16(q[(i * HQ + h) * D + e]) * from_bf16(k[j * D + e]);
                s[j] = seen ? s[j] / 8 : -INFINITY;
                m = fmax(m, s[j]);
            }
            for (int j = 0; j < a->sk; j++)
                sum += s[j] = m == -INFINITY ? 0 : exp(s[j] - m);
            for (int e = 0; e < D; e++) {
                double x = 0;
                for (int j = 0; j < a->sk; j++)
                    x += s[j] * from_bf16(v[j * D + e]);
                double err = fabs((sum > 0 ? x / sum : 0) - from_bf16(o[(i * HQ + h) * D + e]));
                worst[0] = err <= worst[0] ? worst[0] : err;
            }
            double expect = sum > 0 ? m + log(sum) : -INFINITY, got = lse[h * SQ + i];
            double err = expect == got ? 0 : fabs(expect - got);
            worst[1] = err <= worst[1] ? worst[1] : err;
        }
}

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

Test(runtime_sim, launches_compute_attention)
{
    fa_context *ctx;
    fa_options opt = FA_OPTIONS_INIT;
    void *at[5];
    void *host[5] = { q, k, v, o, lse };
    const size_t size[5] = { sizeof q, sizeof k, sizeof v, sizeof o, sizeof lse };
    opt.device = "sim:sm_80";
    opt.cache_dir = scratch;
    OK(fa_create(&ctx, &opt));
    fill(q, sizeof q / 2, 1);
    fill(k, sizeof k / 2, 2);
    fill(v, sizeof v / 2, 3);
    for (int i = 0; i < 5; i++) {
        OK(fa_alloc(ctx, &at[i], size[i]));
        OK(fa_copy(ctx, at[i], host[i], size[i], FA_TO_DEVICE));
    }
    for (int mask = FA_MASK_NONE; mask <= FA_MASK_WINDOW + 1; mask++) {
        fa_args a = FA_ARGS_INIT;
        double worst[2];
        a.dtype = FA_BF16;
        a.d = D;
        a.b = B;
        a.hq = HQ;
        a.hkv = HKV;
        a.sq = SQ;
        a.sk = mask > FA_MASK_WINDOW ? 0 : SK; /* the last round: rows that see no key */
        a.mask = mask % (FA_MASK_WINDOW + 1);
        a.window_left = 9;
        a.window_right = 2;
        a.q.ptr = at[0];
        a.k.ptr = at[1];
        a.v.ptr = at[2];
        a.o.ptr = at[3];
        a.lse = at[4];
        for (int i = 3; i < 5; i++) { /* NaN wherever nothing is written */
            memset(host[i], 0xff, size[i]);
            OK(fa_copy(ctx, at[i], host[i], size[i], FA_TO_DEVICE));
        }
        OK(fa_launch(ctx, &a, NULL));
        for (int i = 3; i < 5; i++)
            OK(fa_copy(ctx, host[i], at[i], size[i], FA_FROM_DEVICE));
        judge(&a, worst);
        cr_expect(worst[0] < 0.02 && worst[1] < 1e-4, "mask %d, sk %d: O is off by %g, LSE by %g", a.mask, a.sk, worst[0], worst[1]);
    }
    for (int i = 0; i < 5; i++)
        OK(fa_free(ctx, at[i]));
    fa_destroy(ctx);
}

Test(runtime_sim, memory_goes_there_and_back)
{
    fa_context *ctx;
    fa_options opt = FA_OPTIONS_INIT;
    void *at, *none = &at;
    unsigned char there[1000], back[1000];
    opt.device = "sim:sm_80";
    opt.cache_dir = "";
    OK(fa_create(&ctx, &opt));
    OK(fa_alloc(ctx, &at, sizeof there));
    cr_assert_eq((uintptr_t)at % 256, 0);
    for (size_t i = 0; i < sizeof there; i++)
        there[i] = (unsigned char)(i * 7 + 1);
    OK(fa_copy(ctx, at, there, sizeof there, FA_TO_DEVICE));
    OK(fa_copy(ctx, back, at, sizeof back, FA_FROM_DEVICE));
    cr_assert_arr_eq(back, there, sizeof there);
    cr_assert_eq(fa_copy(ctx, at, there, (size_t)1 << 40, FA_TO_DEVICE), FA_DEVICE, "past the end of the allocation");
    cr_assert_eq(fa_alloc(ctx, &none, SIZE_MAX / 2), FA_NOMEM, "%s", fa_last_error());
    cr_assert_null(none);
    OK(fa_free(ctx, at));
    cr_assert_eq(fa_free(ctx, at), FA_DEVICE, "freed twice");
    fa_destroy(ctx);
}

enum { KEYS = 3001, N = HQ * D };

/* One query, whose keys are split. */
static fa_args open_query(fa_context **ctx, fa_workspace_source whose)
{
    static uint16_t keys[KEYS * D], values[KEYS * D];
    fa_options opt = FA_OPTIONS_INIT;
    fa_args a = FA_ARGS_INIT;
    opt.device = getenv("FAGEN_TEST_DEVICE") ? getenv("FAGEN_TEST_DEVICE") : "sim:sm_80";
    opt.cache_dir = below("cache");
    opt.workspace = (int32_t)whose;
    OK(fa_create(ctx, &opt));
    fill(q, N, 1), fill(keys, KEYS * D, 2), fill(values, KEYS * D, 3);
    a.dtype = FA_BF16, a.d = D, a.b = B, a.hq = HQ, a.hkv = HKV, a.sq = 1, a.sk = KEYS;
    cr_assert_eq(fa_alloc(*ctx, &a.q.ptr, N * 2) | fa_alloc(*ctx, &a.o.ptr, N * 2), FA_OK);
    cr_assert_eq(fa_alloc(*ctx, &a.k.ptr, KEYS * D * 2) | fa_alloc(*ctx, &a.v.ptr, KEYS * D * 2), FA_OK);
    cr_assert_eq(fa_copy(*ctx, a.q.ptr, q, N * 2, FA_TO_DEVICE) | fa_copy(*ctx, a.k.ptr, keys, KEYS * D * 2, FA_TO_DEVICE) |
                     fa_copy(*ctx, a.v.ptr, values, KEYS * D * 2, FA_TO_DEVICE),
                 FA_OK);
    return a;
}

/* O, and something else where it was. */
static void fetch(fa_context *ctx, const fa_args *a, uint16_t out[N])
{
    static const uint16_t nothing[N];
    OK(fa_copy(ctx, out, a->o.ptr, N * 2, FA_FROM_DEVICE));
    OK(fa_copy(ctx, a->o.ptr, nothing, N * 2, FA_TO_DEVICE));
}

/* An engine that allocates by itself: with a workspace the keys are split, without they are not. */
Test(runtime_sim, few_rows_run_with_a_workspace_and_without)
{
    static uint16_t plain[N], split[N], again[N];
    fa_context *ctx;
    fa_args a = open_query(&ctx, FA_WORKSPACE_CALLER);
    size_t bytes;
    char text[8192];
    OK(fa_launch(ctx, &a, NULL));
    fetch(ctx, &a, plain);
    OK(fa_explain(ctx, NULL, &a, text, sizeof text));
    const char *cost = strstr(text, "workspace  args.workspace is NULL, and the option workspace is FA_WORKSPACE_CALLER: ");
    double without = 0, with = 0;
    cr_assert(cost && strstr(text, "hit"), "%s", text);
    cr_expect_eq(sscanf(strchr(strchr(cost, ':'), ' '), " %lf us; with one of fa_workspace_size() bytes another kernel runs, %lf us",
                        &without, &with),
                 2, "%s", text);
    cr_expect(without > with && with > 0, "%g us without, %g us with", without, with);
    OK(fa_workspace_size(ctx, &a, &bytes));
    cr_assert_gt(bytes, 0);
    OK(fa_alloc(ctx, &a.workspace, bytes));
    a.workspace_size = bytes;
    OK(fa_workspace_init(ctx, a.workspace, bytes, NULL));
    OK(fa_launch(ctx, &a, NULL));
    fetch(ctx, &a, split);
    OK(fa_explain(ctx, NULL, &a, text, sizeof text));
    cr_expect(!strstr(text, "args.workspace is NULL") && strstr(text, " bytes, of args.workspace\n"), "%s", text);
    for (int i = 0; i < N; i++)
        cr_assert(fabsf(from_bf16(plain[i]) - from_bf16(split[i])) < 0.01f && plain[i], "%d", i);
    a.workspace = NULL, a.workspace_size = 0;
    OK(fa_launch(ctx, &a, NULL));
    fetch(ctx, &a, again);
    cr_expect(!memcmp(plain, again, sizeof plain));
    OK(fa_workspace_held(ctx, &bytes));
    cr_expect_eq(bytes, 0);
    fa_destroy(ctx);
}

/* A driver tells some time after a graph is destroyed. */
static void await_held(fa_context *ctx, size_t bytes)
{
    size_t held;
    do {
        OK(fa_workspace_release(ctx, NULL));
        OK(fa_workspace_held(ctx, &held));
    } while (held != bytes);
}

/* The kernel and the bits of a workspace that the caller brings; on streams, in graphs, and for programs of an older header. */
Test(runtime_sim, a_lent_workspace_gives_the_same_bits)
{
    static uint16_t given[N], lent[N];
    fa_context *ctx;
    fa_args a = open_query(&ctx, FA_WORKSPACE_CONTEXT), none = a;
    const cu_driver *d = fa_context_driver(ctx);
    size_t bytes, held;
    char text[8192];
    OK(fa_workspace_size(ctx, &a, &a.workspace_size));
    OK(fa_alloc(ctx, &a.workspace, a.workspace_size));
    OK(fa_workspace_init(ctx, a.workspace, a.workspace_size, NULL));
    OK(fa_launch(ctx, &a, NULL));
    fetch(ctx, &a, given);
    for (int i = 0; i < 3; i++) { /* the second finds zeros that the first left */
        none.size = i < 2 ? sizeof none : offsetof(fa_args, workspace);
        OK(fa_launch(ctx, &none, NULL));
        fetch(ctx, &a, lent);
        cr_expect(!memcmp(given, lent, sizeof lent), "launch %d", i);
    }
    none.size = sizeof none;
    OK(fa_explain(ctx, NULL, &none, text, sizeof text));
    cr_expect(strstr(text, " bytes, which the context lends to launches that bring none\n") && strstr(text, "hit: prepared"), "%s", text);
    OK(fa_workspace_held(ctx, &bytes));
    cr_expect(bytes >= a.workspace_size && bytes < a.workspace_size + 65536, "%zu of %zu", bytes, a.workspace_size);
    CUcontext primary;
    CUstream stream[2];
    CUgraph graph[2];
    CUgraphExec exec[3];
    cr_assert_eq(d->cuDevicePrimaryCtxRetain(&primary, fa_context_device(ctx)->handle), CUDA_SUCCESS);
    cr_assert_eq(d->cuCtxPushCurrent(primary), CUDA_SUCCESS);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(d->cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(d->cuStreamBeginCapture(stream[i], CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
        for (int n = 0; n < 2; n++)
            OK(fa_launch(ctx, &none, (fa_stream)stream[i]));
        cr_assert_eq(d->cuStreamEndCapture(stream[i], &graph[i]), CUDA_SUCCESS);
        cr_assert_eq(d->cuGraphInstantiate(&exec[i], graph[i], 0), CUDA_SUCCESS);
    }
    cr_assert_eq(d->cuGraphInstantiate(&exec[2], graph[0], 0), CUDA_SUCCESS);
    OK(fa_workspace_held(ctx, &held));
    cr_expect_eq(held, 3 * bytes, "one of the stream, one of each graph");
    OK(fa_workspace_release(ctx, NULL));
    OK(fa_workspace_held(ctx, &held));
    cr_expect_eq(held, 2 * bytes, "graphs keep theirs");
    for (int i = 0; i < 6; i++) {
        cr_assert_eq(d->cuGraphLaunch(exec[i % 3], stream[i / 3]), CUDA_SUCCESS);
        fetch(ctx, &a, lent);
        cr_expect(!memcmp(given, lent, sizeof lent), "replay %d", i);
    }
    cr_expect_eq(d->cuGraphDestroy(graph[0]) | d->cuGraphExecDestroy(exec[0]), CUDA_SUCCESS);
    OK(fa_workspace_release(ctx, NULL));
    OK(fa_workspace_held(ctx, &held));
    cr_expect_eq(held, 2 * bytes, "its second instance is there");
    cr_expect_eq(d->cuGraphExecDestroy(exec[2]) | d->cuGraphDestroy(graph[1]), CUDA_SUCCESS);
    await_held(ctx, bytes);
    cr_assert_eq(d->cuGraphLaunch(exec[1], stream[0]), CUDA_SUCCESS);
    cr_expect_eq(d->cuGraphExecDestroy(exec[1]), CUDA_SUCCESS);
    await_held(ctx, 0);
    for (int i = 0; i < 2; i++)
        cr_expect_eq(d->cuStreamDestroy(stream[i]), CUDA_SUCCESS);
    d->cuCtxPopCurrent(&primary);
    d->cuDevicePrimaryCtxRelease(fa_context_device(ctx)->handle);
    fa_destroy(ctx);
}

/* A capture in any mode, of this thread: launches on another stream, which are prepared, get and give back memory meanwhile, leave it be.
 */
Test(runtime_sim, launches_beside_a_capture)
{
    static uint16_t alone[N], beside[N];
    fa_context *ctx;
    fa_args a = open_query(&ctx, FA_WORKSPACE_CONTEXT), other = a;
    const cu_driver *d = fa_context_driver(ctx);
    CUcontext primary;
    CUstream captured;
    OK(fa_launch(ctx, &a, NULL));
    fetch(ctx, &a, alone);
    cr_assert_eq(d->cuDevicePrimaryCtxRetain(&primary, fa_context_device(ctx)->handle), CUDA_SUCCESS);
    cr_assert_eq(d->cuCtxPushCurrent(primary), CUDA_SUCCESS);
    cr_assert_eq(d->cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    for (int mode = CU_STREAM_CAPTURE_MODE_GLOBAL; mode <= CU_STREAM_CAPTURE_MODE_RELAXED; mode++) {
        CUstream stream;
        CUgraph graph;
        CUgraphExec exec;
        cr_assert_eq(d->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(d->cuStreamBeginCapture(captured, (CUstreamCaptureMode)mode), CUDA_SUCCESS);
        OK(fa_launch(ctx, &a, (fa_stream)captured));
        OK(fa_launch(ctx, &a, (fa_stream)stream)); /* lends */
        other.sk = KEYS / (2 << mode);
        OK(fa_launch(ctx, &other, (fa_stream)stream)); /* prepares */
        OK(fa_workspace_release(ctx, &(fa_stream){ (fa_stream)stream }));
        cr_assert_eq(d->cuStreamEndCapture(captured, &graph), CUDA_SUCCESS, "mode %d", mode);
        cr_assert_eq(d->cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
        cr_assert_eq(d->cuGraphLaunch(exec, captured), CUDA_SUCCESS);
        fetch(ctx, &a, beside);
        cr_expect(!memcmp(alone, beside, sizeof alone), "mode %d", mode);
        cr_assert_eq(d->cuGraphExecDestroy(exec) | d->cuGraphDestroy(graph) | d->cuStreamDestroy(stream), CUDA_SUCCESS);
    }
    cr_expect_eq(d->cuStreamDestroy(captured), CUDA_SUCCESS);
    d->cuCtxPopCurrent(&primary);
    d->cuDevicePrimaryCtxRelease(fa_context_device(ctx)->handle);
    fa_destroy(ctx);
}

/* ---- tensors in one buffer, [b, s, 8, h, d] ---- */

enum { SLOTS = 8, ROWS = 64, SLOT = HQ * D, ALL = SLOTS * ROWS * SLOT };

static void give_workspace(fa_context *ctx, fa_args *a)
{
    OK(fa_workspace_size(ctx, a, &a->workspace_size));
    if (!a->workspace_size)
        return;
    OK(fa_alloc(ctx, &a->workspace, a->workspace_size));
    OK(fa_workspace_init(ctx, a->workspace, a->workspace_size, NULL));
}

/* Forward, then backward; q, k, v, o, do, dq, dk, dv as they lie. */
static void train(fa_context *ctx, const fa_tensor t[SLOTS], float *lse_at)
{
    fa_args a = FA_ARGS_INIT;
    a.dtype = FA_BF16, a.d = D, a.b = B, a.hq = a.hkv = HQ, a.sq = a.sk = ROWS, a.mask = FA_MASK_CAUSAL;
    a.q = t[0], a.k = t[1], a.v = t[2], a.o = t[3], a.lse = lse_at;
    give_workspace(ctx, &a);
    OK(fa_launch(ctx, &a, NULL));
    OK(fa_free(ctx, a.workspace));
    a.workspace = NULL, a.workspace_size = 0;
    a.op = FA_BACKWARD, a.flags = FA_DETERMINISTIC;
    a.grad_o = t[4], a.grad_q = t[5], a.grad_k = t[6], a.grad_v = t[7];
    give_workspace(ctx, &a);
    OK(fa_launch(ctx, &a, NULL));
    OK(fa_free(ctx, a.workspace));
}

/* Outputs between the rows of inputs and of each other: the bits of tensors of their own, and nothing else is written. */
static void expect_same_bits(const char *chip)
{
    static uint16_t all[ALL], got[ALL], own[ROWS * SLOT];
    fa_options opt = FA_OPTIONS_INIT;
    fa_context *ctx;
    fa_tensor in_one[SLOTS], apart[SLOTS];
    void *one, *sums;
    opt.device = chip, opt.cache_dir = scratch;
    OK(fa_create(&ctx, &opt));
    fill(all, ALL, 5);
    OK(fa_alloc(ctx, &one, sizeof all));
    OK(fa_alloc(ctx, &sums, ROWS * HQ * sizeof(float)));
    OK(fa_copy(ctx, one, all, sizeof all, FA_TO_DEVICE));
    for (int i = 0; i < SLOTS; i++) {
        for (int r = 0; r < ROWS; r++)
            memcpy(own + r * SLOT, all + (r * SLOTS + i) * SLOT, SLOT * sizeof *own);
        apart[i] = (fa_tensor)FA_TENSOR_INIT;
        OK(fa_alloc(ctx, &apart[i].ptr, sizeof own));
        OK(fa_copy(ctx, apart[i].ptr, own, sizeof own, FA_TO_DEVICE));
        in_one[i] = (fa_tensor){ (uint16_t *)one + i * SLOT, ROWS * SLOTS * SLOT, SLOTS * SLOT, D };
    }
    train(ctx, apart, sums);
    train(ctx, in_one, sums);
    OK(fa_copy(ctx, got, one, sizeof got, FA_FROM_DEVICE));
    for (int i = 0; i < SLOTS; i++) {
        OK(fa_copy(ctx, own, apart[i].ptr, sizeof own, FA_FROM_DEVICE));
        for (int r = 0; r < ROWS; r++)
            cr_assert(!memcmp(own + r * SLOT, got + (r * SLOTS + i) * SLOT, SLOT * sizeof *own), "slot %d, row %d", i, r);
        OK(fa_free(ctx, apart[i].ptr));
    }
    fa_destroy(ctx);
}

Test(runtime_sim, one_buffer_holds_a_training_step)
{
    expect_same_bits("sim:sm_80");
}

Test(runtime_sim, one_buffer_holds_a_training_step_on_hopper)
{
    expect_same_bits("sim:sm_90a");
}
