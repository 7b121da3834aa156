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
