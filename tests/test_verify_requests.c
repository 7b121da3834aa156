/* One request never sees another, shown of kernels as they ship: for each sequence of a batch, the rows of all others count as never
 * written; the launch's O and LSE of that sequence are written as a whole, and are what they are without. Those of the others are not,
 * which shows that the way of the bytes was followed. */
#include "runtime/plan/plan.h"
#include "test_cache_scratch.h"
#include "test_verify_device.h"

TestSuite(verify_requests, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

enum { B = 3, HQ = 4, HKV = 2 };

static const struct {
    const char *class, *config;
    int hopper, sq, sk;
} kernels[] = {
    { "bf16,d=64,mask=none", "flash_fwd_mma:lag=8,ctas=1,br=32,bc=32,warps=2,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0", 0, 37, 75 },
    { "bf16,d=40,mask=causal", "flash_fwd_mma:lag=8,ctas=1,br=64,bc=48,warps=2,stages_k=2,stages_v=2,order=2,q_regs=1,pack=1", 0, 37, 75 },
    { "fp32,d=40,mask=causal", "flash_fwd_ffma:br=32,bc=32,warps=2,pack=0", 0, 37, 75 },
    { "bf16,d=64,mask=causal", "naive:tile=64", 0, 37, 75 },
    { "bf16,d=64,mask=none", "decode_mma:br=16,bk=32,row_warps=1,key_warps=4,stages=3,ctas=1,kv_lanes=1,combine=0,sm_shares=1,min_turns=1",
      0, 1, 777 },
    { "bf16,d=72,mask=none", "decode_mma:br=32,bk=16,row_warps=2,key_warps=2,stages=2,ctas=2,kv_lanes=8,combine=1,sm_shares=2,min_turns=4",
      1, 5, 300 },
    { "bf16,d=64,mask=none",
      "flash_fwd_wgmma:ctas=1,feeder=40,sections=1,cluster=1,exp=0,stages_k=2,stages_v=2,box=64,bc=48,br=64,schedule=0,q_bufs=1,ahead=0,"
      "rescale=2,convert=0,o_path=0,grid=0",
      1, 70, 75 },
    { "bf16,d=64,mask=causal",
      "flash_fwd_wgmma:ctas=1,feeder=40,sections=1,cluster=1,exp=0,stages_k=2,stages_v=2,box=64,bc=48,br=128,schedule=1,q_bufs=2,ahead=1,"
      "rescale=3,convert=1,o_path=1,grid=2",
      1, 70, 75 },
};

static void *device(fa_context *ctx, size_t bytes)
{
    void *at;
    cr_assert_eq(fa_alloc(ctx, &at, bytes), FA_OK, "%s", fa_last_error());
    return at;
}
static void fill(fa_context *ctx, void *at, size_t count, int bytes, uint64_t seed)
{
    uint8_t *host = malloc(count * (size_t)bytes);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        float x = (float)(int32_t)(seed >> 32) * 0x1p-30f;
        uint32_t u;
        memcpy(&u, &x, 4);
        u = bytes == 2 ? u >> 16 : u;
        memcpy(host + i * (size_t)bytes, &u, (size_t)bytes);
    }
    cr_assert_eq(fa_copy(ctx, at, host, count * (size_t)bytes, FA_TO_DEVICE), FA_OK, "%s", fa_last_error());
    free(host);
}
static uint64_t at(const void *p, size_t more)
{
    return (uint64_t)(uintptr_t)p + more;
}

static void each_request(fa_context *ctx, size_t n)
{
    const char *config = kernels[n].config;
    fa_problem p;
    fa_config c = test_config(config);
    const fa_plan *plan;
    fa_args a = FA_ARGS_INIT;
    cr_assert_eq(fa_problem_parse(&p, kernels[n].class), FA_OK, "%s", fa_last_error());
    p.b = B, p.hq = HQ, p.hkv = HKV, p.sq = kernels[n].sq, p.sk = kernels[n].sk;
    cr_assert_eq(fa_plan_make(ctx, &p, &c, NULL, &plan), FA_OK, "%s: %s", config, fa_last_error());
    int bytes = p.dtype == FA_F32 ? 4 : 2;
    size_t rows = (size_t)(p.sq * HQ * p.d), keys = (size_t)(p.sk * HKV * p.d), row = rows * (size_t)bytes, key = keys * (size_t)bytes,
           states = (size_t)(HQ * p.sq) * 4;
    a.dtype = p.dtype, a.d = p.d, a.b = B, a.hq = HQ, a.hkv = HKV, a.sq = (int)p.sq, a.sk = (int)p.sk, a.mask = p.mask;
    a.q = (fa_tensor){ device(ctx, B * row), (int64_t)rows, (int64_t)HQ * p.d, p.d };
    a.k = (fa_tensor){ device(ctx, B * key), (int64_t)keys, (int64_t)HKV * p.d, p.d };
    a.v = (fa_tensor){ device(ctx, B * key), (int64_t)keys, (int64_t)HKV * p.d, p.d };
    a.o = (fa_tensor){ device(ctx, B * row), (int64_t)rows, (int64_t)HQ * p.d, p.d };
    a.lse = device(ctx, B * states);
    cr_assert_eq(fa_plan_workspace(ctx, plan, &a, &a.workspace_size), FA_OK, "%s", fa_last_error());
    a.workspace = a.workspace_size ? device(ctx, a.workspace_size) : NULL;
    uint8_t *whole = malloc(B * row), *alone = malloc(B * row);
    for (int i = -1; i < B; i++) { /* -1: nothing is forgotten */
        fill(ctx, (void *)a.q.ptr, B * rows, bytes, 1), fill(ctx, (void *)a.k.ptr, B * keys, bytes, 2);
        fill(ctx, (void *)a.v.ptr, B * keys, bytes, 3);
        cr_assert_eq(sim_forget(at(a.o.ptr, 0), B * row), 0);
        cr_assert_eq(sim_forget(at(a.lse, 0), B * states), 0);
        if (a.workspace_size) {
            size_t counters = a.workspace_size < 65536 ? a.workspace_size : 65536;
            uint8_t *zero = calloc(1, counters);
            cr_assert_eq(sim_forget(at(a.workspace, 0), a.workspace_size), 0);
            cr_assert_eq(fa_copy(ctx, a.workspace, zero, counters, FA_TO_DEVICE), FA_OK, "%s", fa_last_error());
            free(zero);
        }
        for (int b = 0; b < B && i >= 0; b++)
            if (b != i)
                cr_assert(!sim_forget(at(a.q.ptr, (size_t)b * row), row) && !sim_forget(at(a.k.ptr, (size_t)b * key), key) &&
                          !sim_forget(at(a.v.ptr, (size_t)b * key), key));
        sim_options o;
        test_mode(i & 1 ? SIM_LAZY : SIM_EAGER, SIM_RANDOM, (uint64_t)i);
        sim_get_options(&o);
        o.open_stores = i >= 0;
        if (i >= 0)
            o.checks[SIM_CHECK_UNWRITTEN] = SIM_OFF; /* others branch on their values */
        sim_set_options(&o);
        cr_assert_eq(fa_plan_launch(ctx, plan, &a, NULL), FA_OK, "%s: %s", config, fa_last_error());
        cr_assert_eq(fa_copy(ctx, i < 0 ? whole : alone, a.o.ptr, B * row, FA_FROM_DEVICE), FA_OK, "%s", fa_last_error());
        for (int b = 0; b < B; b++) {
            int64_t in_o = sim_unwritten(at(a.o.ptr, (size_t)b * row), row), in_lse = sim_unwritten(at(a.lse, (size_t)b * states), states);
            if (i < 0 || b == i)
                cr_expect(in_o == -1 && in_lse == -1, "%s: sequence %d of %d: O from byte %lld on, LSE from byte %lld on", config, b, i,
                          (long long)in_o, (long long)in_lse);
            else
                cr_expect(in_o == 0 && in_lse == 0, "%s: sequence %d is defined, without what it is made of: %lld, %lld", config, b,
                          (long long)in_o, (long long)in_lse);
        }
        if (i >= 0)
            cr_expect(!memcmp(whole + (size_t)i * row, alone + (size_t)i * row, row), "%s: sequence %d", config, i);
    }
    free(whole), free(alone);
    void *all[] = { (void *)a.q.ptr, (void *)a.k.ptr, (void *)a.v.ptr, (void *)a.o.ptr, a.lse, a.workspace };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        cr_assert_eq(fa_free(ctx, all[i]), FA_OK, "%s", fa_last_error());
}

static void each_kernel(int hopper)
{
    fa_context *ctx = hopper ? test_hopper_context(NULL, "", 2) : test_context(NULL, "");
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i].hopper == hopper)
            each_request(ctx, i);
    fa_destroy(ctx);
}
Test(verify_requests, see_themselves_alone)
{
    each_kernel(0);
}
Test(verify_requests, see_themselves_alone_on_hopper)
{
    each_kernel(1);
}
