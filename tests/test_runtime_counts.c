/* A persistent kernel that draws its tiles, on the simulator: every tile once in each launch, on streams and out of graphs. */
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include "test_gen_toy.h"

static const char lua[] =
    "return { doc = 'x', default = false, tunables = { { 'cluster', { 1, 2 }, 'n' } }, constraints = {},\n"
    "  supports = function() return true end, layout = function() return { bytes = 0, threads = 32, regs = 32 } end,\n"
    "  steps = function(p, c) return { { entry = 'toy', grid = 'sq hq b', per_sm = 1, cluster = c.cluster, counter = 1 } } end }\n";

/* LSE[tile] += 1. Who draws the last number of all puts 0 back. */
static const char cu[] = "struct Params {\n"
                         "//| for _, x in ipairs(params) do\n"
                         "  $(x.type) $(x.name);\n"
                         "//| end\n"
                         "};\n"
                         "extern \"C\" __global__ void __launch_bounds__(32) toy(const Params P) {\n"
                         "  if (threadIdx.x) return;\n"
                         "  for (;;) {\n"
                         "    int tile = atomicAdd(P.counter, 1u);\n"
                         "    if (tile == P.total + gridDim.x - 1) *P.counter = 0;\n"
                         "    if (tile >= P.total) return;\n"
                         "    P.lse[tile] += 1;\n"
                         "  }\n"
                         "}\n";

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())
#define CU(call) cr_assert_eq((call), CUDA_SUCCESS, "%s", #call)

enum { B = 2, H = 3, S = 70, ROWS = B * H * S }; /* more tiles than the chip has SMs */

static void expect(fa_context *ctx, void *lse, float times, const char *when)
{
    float got[ROWS];
    OK(fa_copy(ctx, got, lse, sizeof got, FA_FROM_DEVICE));
    for (int i = 0; i < ROWS; i++)
        cr_assert_eq(got[i], times, "%s: tile %d ran %g times of %g", when, i, got[i], times);
}

Test(runtime_counts, every_tile_once, .timeout = 300)
{
    char dir[64];
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    fa_args a = FA_ARGS_INIT;
    fa_problem p, raw = FA_PROBLEM_INIT;
    fa_config c;
    const fa_plan *plan;
    void *at[4];
    float zero[ROWS] = { 0 };
    CUstream stream;
    CUgraph graph[2];
    CUgraphExec exec[2];
    fa_entered in;
    scratch_make();
    toy_dir(dir, cu);
    toy_write(dir, "toy.lua", lua);
    o.device = "sim:sm_90a";
    o.cache_dir = scratch;
    o.template_dir = dir;
    OK(fa_create(&ctx, &o));
    a.dtype = raw.dtype = FA_BF16;
    a.d = raw.d = 8;
    a.b = B, a.hq = a.hkv = H, a.sq = a.sk = S;
    for (int i = 0; i < 4; i++)
        OK(fa_alloc(ctx, &at[i], ROWS * 16));
    a.q.ptr = a.k.ptr = a.v.ptr = at[0];
    a.o.ptr = at[1];
    a.lse = at[2];
    OK(fa_problem_normalize(&p, &raw));
    OK(fa_config_parse(&c, "toy:cluster=1"));
    OK(fa_plan_make(ctx, &p, &c, NULL, &plan));
    OK(fa_copy(ctx, at[2], zero, sizeof zero, FA_TO_DEVICE));
    for (int i = 1; i <= 3; i++) {
        OK(fa_plan_launch(ctx, plan, &a, NULL));
        expect(ctx, at[2], (float)i, "launched");
    }
    const cu_driver *d = fa_context_driver(ctx);
    OK(fa_context_enter(ctx, &in));
    CU(d->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int g = 0; g < 2; g++) {
        CU(d->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        OK(fa_plan_launch(ctx, plan, &a, (fa_stream)stream));
        OK(fa_plan_launch(ctx, plan, &a, (fa_stream)stream));
        CU(d->cuStreamEndCapture(stream, &graph[g]));
        CU(d->cuGraphInstantiate(&exec[g], graph[g], 0));
    }
    expect(ctx, at[2], 3, "captured, not launched");
    for (int i = 0; i < 3; i++) {
        CU(d->cuGraphLaunch(exec[i % 2], stream));
        OK(fa_plan_launch(ctx, plan, &a, (fa_stream)stream));
    }
    CU(d->cuStreamSynchronize(stream));
    expect(ctx, at[2], 3 + 3 * 3, "graphs and launches by turns");
    OK(fa_config_parse(&c, "toy:cluster=2"));
    OK(fa_plan_make(ctx, &p, &c, NULL, &plan));
    OK(fa_plan_launch(ctx, plan, &a, (fa_stream)stream));
    expect(ctx, at[2], 13, "in clusters");
    for (int g = 0; g < 2; g++) {
        CU(d->cuGraphExecDestroy(exec[g]));
        CU(d->cuGraphDestroy(graph[g]));
    }
    CU(d->cuStreamDestroy(stream));
    fa_context_leave(ctx, &in);
    for (int i = 0; i < 4; i++)
        OK(fa_free(ctx, at[i]));
    fa_destroy(ctx);
    toy_remove(dir, NULL);
    scratch_remove();
}

/* ---- counters that are not 0 ---- */

static const char leaving_lua[] =
    "return { doc = 'x', default = false, tunables = { { 'leave', { 0, 1, 2 }, 'n' } }, constraints = {},\n"
    "  supports = function() return true end, layout = function() return { bytes = 0, threads = 32, regs = 32 } end,\n"
    "  workspace = function() return 'counters' end,\n"
    "  steps = function(p, c) return { { entry = 'toy', grid = 'b', counter = 1 } } end }\n";

/* 1: a word of the workspace stays, 2: the word of the launch. */
static const char leaving_cu[] = "struct Params {\n"
                                 "//| for _, x in ipairs(params) do\n"
                                 "  $(x.type) $(x.name);\n"
                                 "//| end\n"
                                 "};\n"
                                 "extern \"C\" __global__ void __launch_bounds__(32) toy(const Params P) {\n"
                                 "  if (threadIdx.x || blockIdx.x) return;\n"
                                 "  if ($(c.leave) == 1) ((unsigned *)P.workspace)[16383] = 9;\n"
                                 "  if ($(c.leave) == 2) *P.counter = 7;\n"
                                 "  P.lse[0] += 1;\n"
                                 "}\n";

/* A launch of the kernel that leaves something or nothing, where the workspace's word `at` was `word`. */
static fa_status launch_leaving(fa_context *ctx, const fa_args *a, int leave, int at, uint32_t word, fa_stream stream)
{
    fa_problem p, raw = FA_PROBLEM_INIT;
    fa_config c;
    const fa_plan *plan;
    char text[32];
    raw.dtype = a->dtype, raw.d = a->d;
    snprintf(text, sizeof text, "toy:leave=%d", leave);
    OK(fa_problem_normalize(&p, &raw));
    OK(fa_config_parse(&c, text));
    OK(fa_plan_make(ctx, &p, &c, NULL, &plan));
    OK(fa_workspace_init(ctx, a->workspace, a->workspace_size, NULL));
    OK(fa_copy(ctx, (uint32_t *)a->workspace + at, &word, sizeof word, FA_TO_DEVICE));
    return fa_plan_launch(ctx, plan, a, stream);
}

static void told(fa_status got, fa_status want, const char *text)
{
    cr_expect_eq(got, want, "%s, not %s: %s", fa_status_name(got), fa_status_name(want), fa_last_error());
    cr_expect(want == FA_OK || strstr(fa_last_error(), text), "\"%s\" is not in: %s", text, fa_last_error());
}

Test(runtime_counts, counters_are_zero_before_and_after, .timeout = 300)
{
    enum { WORDS = 16384 };
    char dir[64];
    scratch_make();
    toy_dir(dir, leaving_cu);
    toy_write(dir, "toy.lua", leaving_lua);
    for (int32_t option = -1; option <= 1; option++) { /* never, as on a simulator, always */
        fa_context *ctx;
        fa_options o = FA_OPTIONS_INIT;
        fa_args a = FA_ARGS_INIT;
        float ran, none = 0;
        void *at[3], *workspace;
        o.device = "sim:sm_90a";
        o.cache_dir = scratch;
        o.template_dir = dir;
        o.check_device_data = option;
        OK(fa_create(&ctx, &o));
        for (int i = 0; i < 3; i++)
            OK(fa_alloc(ctx, &at[i], 4096));
        OK(fa_alloc(ctx, &workspace, WORDS * 4 + 256));
        a.dtype = FA_BF16, a.d = 8, a.b = 1, a.hq = a.hkv = 1, a.sq = a.sk = 4;
        a.q.ptr = a.k.ptr = a.v.ptr = at[0], a.o.ptr = at[1], a.lse = at[2];
        a.workspace = workspace, a.workspace_size = WORDS * 4 + 256;
        OK(fa_copy(ctx, at[2], &none, sizeof none, FA_TO_DEVICE));
        fa_status bad = option < 0 ? FA_OK : FA_INVALID, left = option < 0 ? FA_OK : FA_INTERNAL;
        told(launch_leaving(ctx, &a, 0, 0, 0, NULL), FA_OK, "");
        told(launch_leaving(ctx, &a, 0, 0, 1, NULL), bad, "args: workspace: counter 0 of the one at");
        told(launch_leaving(ctx, &a, 0, WORDS - 1, 0x80000000, NULL), bad, "counter 16383 of the one at");
        told(launch_leaving(ctx, &a, 0, WORDS, ~0u, NULL), FA_OK, "after the counters");
        OK(fa_copy(ctx, &ran, at[2], sizeof ran, FA_FROM_DEVICE));
        cr_expect_eq(ran, option < 0 ? 4 : 2, "what is refused is not launched: %g", ran);
        told(launch_leaving(ctx, &a, 1, 0, 0, NULL), left, "counter 16383 at");
        told(launch_leaving(ctx, &a, 2, 0, 0, NULL), left, "counter 0 at");
        static uint32_t words[FA_COUNTER_WORDS];
        float then;
        memset(words, 3, sizeof words); /* whichever word a launch is given */
        OK(fa_copy(ctx, (void *)(uintptr_t)atomic_load(&ctx->counters)->words, words, sizeof words, FA_TO_DEVICE));
        OK(fa_copy(ctx, &ran, at[2], sizeof ran, FA_FROM_DEVICE));
        told(launch_leaving(ctx, &a, 0, 0, 0, NULL), left, "counter 0 at");
        OK(fa_copy(ctx, &then, at[2], sizeof then, FA_FROM_DEVICE));
        cr_expect_eq(then - ran, option < 0 ? 1 : 0, "nothing is launched with a word that is not 0: %g", then - ran);
        fa_destroy(ctx);
    }
    toy_remove(dir, NULL);
    scratch_remove();
}

/* Where a stream is captured nothing can be looked at; the option that insists says so. */
Test(runtime_counts, counters_of_captured_launches, .timeout = 300)
{
    char dir[64];
    scratch_make();
    toy_dir(dir, leaving_cu);
    toy_write(dir, "toy.lua", leaving_lua);
    for (int32_t option = 0; option <= 1; option++) {
        fa_context *ctx;
        fa_options o = FA_OPTIONS_INIT;
        fa_args a = FA_ARGS_INIT;
        fa_entered in;
        CUstream stream;
        CUgraph graph;
        void *memory;
        o.device = "sim:sm_90a";
        o.cache_dir = scratch;
        o.template_dir = dir;
        o.check_device_data = option;
        OK(fa_create(&ctx, &o));
        OK(fa_alloc(ctx, &memory, 1 << 18));
        a.dtype = FA_BF16, a.d = 8, a.b = 1, a.hq = a.hkv = 1, a.sq = a.sk = 4;
        a.q.ptr = a.k.ptr = a.v.ptr = memory, a.o.ptr = (char *)memory + 4096, a.lse = (float *)memory + 2048;
        a.workspace = (char *)memory + 65536, a.workspace_size = 65536;
        OK(fa_context_enter(ctx, &in));
        told(launch_leaving(ctx, &a, 0, 0, 5, NULL), FA_INVALID, "counter 0");
        const cu_driver *d = fa_context_driver(ctx);
        fa_problem p, raw = FA_PROBLEM_INIT;
        fa_config c;
        const fa_plan *plan;
        raw.dtype = a.dtype, raw.d = a.d;
        OK(fa_problem_normalize(&p, &raw));
        OK(fa_config_parse(&c, "toy:leave=0"));
        OK(fa_plan_make(ctx, &p, &c, NULL, &plan));
        CU(d->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU(d->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        told(fa_plan_launch(ctx, plan, &a, (fa_stream)stream), option ? FA_CAPTURE : FA_OK, "check_device_data is 1");
        CU(d->cuStreamEndCapture(stream, &graph));
        CU(d->cuGraphDestroy(graph));
        CU(d->cuStreamDestroy(stream));
        fa_context_leave(ctx, &in);
        fa_destroy(ctx);
    }
    toy_remove(dir, NULL);
    scratch_remove();
}
