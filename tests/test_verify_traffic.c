/* What the simulator counts is what the model says: bytes of each tensor to the byte, and no bank conflict in the loop over keys. */
#include "forward.h"
#include "test_full.h"
#include "test_verify_device.h"

typedef struct moved {
    uint64_t read[FA_TENSORS], write[FA_TENSORS], lse;
    sim_counters all;
} moved;

static moved run(fa_context *ctx, const fa_case *c, const char *config)
{
    fa_trial *t;
    const fa_plan *plan;
    fa_verdict v;
    moved m = { .lse = 0 };
    fa_config k = test_config(config);
    cr_assert_eq(fa_plan_make(ctx, &c->problem, &k, NULL, &plan), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_trial_open(&t, ctx, c, FA_REFERENCE_ORACLE), FA_OK, "%s", fa_last_error());
    sim_counters_reset();
    cr_assert_eq(fa_trial_run(t, plan, &v), FA_OK, "%s", fa_last_error());
    sim_counters_get(&m.all);
    const fa_args *a = fa_trial_args(t);
    const void *at[FA_TENSORS] = { a->q.ptr, a->k.ptr, a->v.ptr, a->o.ptr };
    for (int i = 0; i < m.all.tensors; i++) {
        uint64_t base = m.all.tensor[i].base, end = base + m.all.tensor[i].size;
        for (int x = 0; x < FA_TENSORS; x++)
            if ((uintptr_t)at[x] >= base && (uintptr_t)at[x] < end) {
                m.read[x] = m.all.tensor[i].read;
                m.write[x] = m.all.tensor[i].write;
            }
        if (a->lse && (uintptr_t)a->lse >= base && (uintptr_t)a->lse < end)
            m.lse = m.all.tensor[i].write;
    }
    fa_trial_close(t);
    return m;
}

typedef struct row {
    const char *problem, *config;
    int sq, sk, left, right, diagonal, lse;
} row;
#define MMA "flash_fwd_mma:"
/* clang-format off */
static const row rows[] = {
    { "bf16,d=64,mask=none,b=2,hq=4,hkv=2", MMA "br=64,bc=32,warps=2,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=0,ctas=1", 100, 130, -1, -1, 0, 1 },
    { "bf16,d=64,mask=causal,b=2,hq=4,hkv=2", MMA "br=64,bc=32,warps=2,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=0,ctas=1", 100, 130, -1, -1, 0, 1 },
    { "bf16,d=64,mask=causal,b=1,hq=6,hkv=2", MMA "br=32,bc=48,warps=2,stages_k=2,stages_v=2,order=2,q_regs=1,pack=1,lag=8,ctas=1", 70, 90, -1, -1, 0, 0 },
    { "fp16,d=128,mask=window,b=1,hq=2,hkv=2", MMA "br=32,bc=64,warps=1,stages_k=2,stages_v=1,order=1,q_regs=0,pack=0,lag=0,ctas=1", 90, 120, 17, 3, 0, 1 },
    { "fp16,d=96,dv=64,mask=window,b=1,hq=6,hkv=2", MMA "br=16,bc=32,warps=1,stages_k=1,stages_v=2,order=0,q_regs=1,pack=1,lag=8,ctas=1", 90, 60, 17, 30, 1, 1 },
    { "fp16,d=24,dv=40,mask=causal,b=1,hq=2,hkv=1", MMA "br=64,bc=16,warps=4,stages_k=2,stages_v=1,order=0,q_regs=0,pack=0,lag=0,ctas=1", 65, 33, -1, -1, 0, 1 },
    { "bf16,d=33,mask=causal,b=1,hq=2,hkv=1", MMA "br=32,bc=32,warps=2,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=0,ctas=1", 50, 77, -1, -1, 0, 1 },
    { "bf16,d=20,dv=36,o=fp32,mask=none,b=1,hq=2,hkv=1", MMA "br=32,bc=32,warps=2,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=0,ctas=1", 50, 77, -1, -1, 0, 0 },
    { "tf32,d=64,mask=causal,b=1,hq=4,hkv=2", MMA "br=32,bc=32,warps=2,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=0,ctas=1", 100, 100, -1, -1, 0, 1 },
    { "tf32,d=40,mask=window,b=1,hq=4,hkv=2", MMA "br=64,bc=16,warps=2,stages_k=2,stages_v=2,order=2,q_regs=1,pack=1,lag=0,ctas=1", 70, 100, 9, -1, 0, 1 },
    { "fp32,d=64,mask=causal,b=1,hq=4,hkv=2", "flash_fwd_ffma:br=32,bc=32,warps=2,pack=0", 100, 100, -1, -1, 0, 1 },
    { "fp32,d=36,dv=20,mask=window,b=1,hq=4,hkv=2", "flash_fwd_ffma:br=64,bc=64,warps=4,pack=1", 50, 100, -1, 9, 0, 1 },
};
/* clang-format on */

Test(verify_traffic, bytes_are_the_models, .timeout = 300)
{
    fa_context *ctx = test_context(NULL, NULL);
    test_mode(SIM_EAGER, SIM_IN_ORDER, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        fa_case c = test_case(r->problem, r->sq, r->sk);
        c.window_left = r->left;
        c.window_right = r->right;
        c.diagonal = r->diagonal;
        c.lse = r->lse;
        fa_config k = test_config(r->config);
        moved m = run(ctx, &c, r->config);
        fa_traffic t = fa_model_flash2(&c.problem, fa_config_get(&k, "br", 0), fa_config_get(&k, "pack", 0), fa_case_band(&c), r->lse);
        /* clang-format off */
        const struct { const char *name; double counted, modelled; } facts[] = {
            { "read of Q", (double)m.read[FA_Q], t.read_q }, { "read of K", (double)m.read[FA_K], t.read_k },
            { "read of V", (double)m.read[FA_V], t.read_v }, { "write of O", (double)m.write[FA_O], t.write_o },
            { "write of LSE", (double)m.lse, t.write_lse },
            { "all reads", (double)m.all.global_read, fa_traffic_read(&t) }, { "all writes", (double)m.all.global_write, fa_traffic_write(&t) },
        };
        /* clang-format on */
        for (size_t x = 0; x < sizeof facts / sizeof *facts; x++)
            cr_expect_eq(facts[x].counted, facts[x].modelled, "%s %dx%d, %s: %s: %.0f bytes counted, %.0f modelled", r->problem, r->sq,
                         r->sk, r->config, facts[x].name, facts[x].counted, facts[x].modelled);
    }
    fa_destroy(ctx);
}

/* ---- systems of the literature ---- */

/* Which algorithm of the model counts a config, by its family, and by which tunables. */
static fa_traffic literature(const char *config, const fa_problem *p, fa_band band)
{
    static const struct {
        const char *family, *algorithm, *rows, *cols;
    } counted[] = { { "flash1_fwd", "flash1", "br", "bc" }, { "tiled", "tiled2d", "tile", "tile" } };
    fa_config k = test_config(config);
    const fa_algorithm *a;
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        for (size_t n = 0; !strcmp(k.family, counted[i].family) && (a = fa_algorithm_row(n)); n++)
            if (!strcmp(a->name, counted[i].algorithm)) {
                fa_tile tile = { fa_config_get(&k, counted[i].rows, 0), fa_config_get(&k, counted[i].cols, 0), false };
                return a->traffic(p, &tile, band);
            }
    cr_assert_fail("%s: no algorithm", config);
    return (fa_traffic){ 0 };
}

static void same_bytes(const moved *m, const fa_traffic *t, const char *problem, int sq, int sk, const char *config)
{
    /* clang-format off */
    const struct { const char *name; double counted, modelled; } facts[] = {
        { "read of Q", (double)m->read[FA_Q], t->read_q }, { "read of K", (double)m->read[FA_K], t->read_k },
        { "read of V", (double)m->read[FA_V], t->read_v }, { "write of O", (double)m->write[FA_O], t->write_o },
        { "all reads", (double)m->all.global_read, fa_traffic_read(t) }, { "all writes", (double)m->all.global_write, fa_traffic_write(t) },
    };
    /* clang-format on */
    for (size_t x = 0; x < sizeof facts / sizeof *facts; x++)
        cr_expect_eq(facts[x].counted, facts[x].modelled, "%s %dx%d, %s: %s: %.0f bytes counted, %.0f modelled", problem, sq, sk, config,
                     facts[x].name, facts[x].counted, facts[x].modelled);
}

/* fp32, no LSE: what `fagen model` tells of FlashAttention-1 and of two-dimensional tiles, and what the family's config costs by the model.
 */
Test(verify_traffic, flash1_and_tiles_move_the_literatures_bytes, .timeout = 300)
{
    static const char *const configs[] = { "flash1_fwd:br=64,bc=64", "flash1_fwd:br=16,bc=32", "tiled:tile=64,row=2048",
                                           "tiled:tile=32,row=2048" };
    fa_context *ctx = test_context(NULL, NULL);
    fa_gen *g;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK, "%s", fa_last_error());
    test_mode(SIM_EAGER, SIM_IN_ORDER, 1);
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        for (int n = 128; n <= 512; n *= 2) {
            fa_case c = test_case("fp32,d=64,mask=none,b=1,hq=1,hkv=1", n, n);
            fa_config k = test_config(configs[i]);
            fa_cost cost;
            fa_band all = fa_case_band(&c);
            c.lse = 0;
            bool tiled = !strcmp(k.family, "tiled");
            fa_traffic t = tiled ? fa_model_tiled2d(&c.problem, fa_config_get(&k, "tile", 0), all, 4)
                                 : fa_model_flash1(&c.problem, fa_config_get(&k, "br", 0), fa_config_get(&k, "bc", 0), all);
            moved m = run(ctx, &c, configs[i]);
            same_bytes(&m, &t, "fp32,d=64", n, n, configs[i]);
            cr_assert_eq(fa_model_cost(g, &c.problem, &k, fa_arch_find("sm_80"), 0, &cost), FA_OK, "%s", fa_last_error());
            cr_expect_eq(cost.bytes, fa_traffic_total(&t), "%s, n=%d: %.0f bytes of the cost", configs[i], n, cost.bytes);
        }
    fa_gen_close(g);
    fa_destroy(ctx);
}

/* The same under masks, with groups, other types and ragged sizes. */
static const row older[] = {
    { "fp32,d=64,mask=causal,b=2,hq=4,hkv=2", "flash1_fwd:br=32,bc=16", 100, 130, -1, -1, 0, 0 },
    { "bf16,d=40,dv=72,mask=window,b=1,hq=3,hkv=1", "flash1_fwd:br=16,bc=32", 90, 75, 17, 3, 0, 0 },
    { "fp16,d=33,dv=20,o=fp32,mask=causal,b=1,hq=2,hkv=1", "flash1_fwd:br=64,bc=64", 130, 40, -1, -1, 0, 0 },
    { "fp32,d=24,dv=40,mask=window,b=1,hq=2,hkv=1", "flash1_fwd:br=16,bc=16", 60, 70, 5, 9, 1, 0 },
    { "fp32,d=64,mask=causal,b=2,hq=4,hkv=2", "tiled:tile=32,row=2048", 100, 130, -1, -1, 0, 0 },
    { "bf16,d=40,dv=72,mask=window,b=1,hq=3,hkv=1", "tiled:tile=16,row=2048", 90, 75, 17, 3, 0, 0 },
    { "fp16,d=33,dv=20,o=fp32,mask=causal,b=1,hq=2,hkv=1", "tiled:tile=64,row=8192", 130, 40, -1, -1, 0, 0 },
    { "fp32,d=24,dv=200,mask=window,b=1,hq=2,hkv=1", "tiled:tile=16,row=2048", 60, 70, 5, 9, 1, 0 },
};

Test(verify_traffic, flash1_and_tiles_under_masks, .timeout = 300)
{
    fa_context *ctx = test_context(NULL, NULL);
    test_mode(SIM_LAZY, SIM_REVERSED, 1);
    for (size_t i = 0; i < sizeof older / sizeof *older; i++) {
        const row *r = &older[i];
        fa_case c = test_case(r->problem, r->sq, r->sk);
        c.window_left = r->left;
        c.window_right = r->right;
        c.diagonal = r->diagonal;
        c.lse = r->lse;
        moved m = run(ctx, &c, r->config);
        fa_traffic t = literature(r->config, &c.problem, fa_case_band(&c));
        same_bytes(&m, &t, r->problem, r->sq, r->sk, r->config);
    }
    fa_destroy(ctx);
}

/* The head_dim after d: every multiple of 8 in full form; else each remainder by 128 bytes, the width of the banks, a wide one, the widest.
 */
static int next_d(int d, int bytes)
{
    int once = 128 / bytes + 8;
    return full() || d < once ? d + 8 : d == once ? 168 : d + 88;
}

/* Twice as many keys take twice the turns of the loop and nothing else more. */
static void check_conflicts(fa_context *ctx, const char *problem, const char *config, int block)
{
    fa_case c = test_case(problem, 32, 4 * block);
    moved a = run(ctx, &c, config);
    c.problem.sk = 8 * block;
    moved b = run(ctx, &c, config);
    uint64_t passes = b.all.shared_wavefronts - a.all.shared_wavefronts, ideal = b.all.shared_ideal - a.all.shared_ideal;
    cr_expect_gt(ideal, 0);
    cr_expect_eq(passes, ideal, "%s, %s: %llu passes for %llu", problem, config, (unsigned long long)passes, (unsigned long long)ideal);
}

Test(verify_traffic, no_bank_conflicts_16_bit, .timeout = 600)
{
    static const char *const configs[] = {
        MMA "br=16,bc=48,warps=1,stages_k=2,stages_v=2,order=2,q_regs=1,pack=0,lag=8,ctas=1",
        MMA "br=32,bc=32,warps=2,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=0,ctas=1",
    };
    fa_context *ctx = test_context(NULL, NULL);
    test_mode(SIM_EAGER, SIM_IN_ORDER, 1);
    for (int d = 8; d <= 256; d = next_d(d, 2)) {
        int wide = d > 200 || d / 8 % 2 == 0; /* the other config keeps Q in registers */
        char problem[80];
        snprintf(problem, sizeof problem, "%s,d=%d,mask=none,b=1,hq=1,hkv=1", d % 16 ? "bf16" : "fp16", d);
        check_conflicts(ctx, problem, configs[wide], wide ? 32 : 48);
    }
    fa_destroy(ctx);
}

Test(verify_traffic, no_bank_conflicts_32_bit, .timeout = 600)
{
    fa_context *ctx = test_context(NULL, NULL);
    test_mode(SIM_EAGER, SIM_IN_ORDER, 1);
    for (int d = 8; d <= 256; d = next_d(d, 4)) {
        char problem[80];
        snprintf(problem, sizeof problem, "tf32,d=%d,mask=none,b=1,hq=1,hkv=1", d);
        check_conflicts(ctx, problem, MMA "br=16,bc=16,warps=1,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=0,ctas=1", 16);
        if (d % 24)
            continue;
        snprintf(problem, sizeof problem, "fp32,d=%d,mask=none,b=1,hq=1,hkv=1", d);
        check_conflicts(ctx, problem, "flash_fwd_ffma:br=32,bc=32,warps=2,pack=0", 32);
    }
    fa_destroy(ctx);
}
