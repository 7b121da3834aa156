/* Dropout: Philox against the known answers of Random123; what each family drops, read out of O and dV, against gen/pairs.h; forward and
 * backward launches against the oracle; what is refused. On the simulator. */
#include "gen/error.h"
#include "gen/pairs.h"
#include "gen/philox.h"
#include "test_full.h"
#include "test_verify_device.h"
#include "verify/operands/random.h"
#include <criterion/parameterized.h>
#include <math.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- the function ---- */

Test(dropout, philox_gives_the_known_answers_of_random123)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } rows[] = { /* kat_vectors, philox 4x32, 7 rounds */
                 { { 0, 0, 0, 0 }, { 0, 0 }, { 0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48 } },
                 { { ~0u, ~0u, ~0u, ~0u }, { ~0u, ~0u }, { 0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662 } },
                 { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
                   { 0xa4093822, 0x299f31d0 },
                   { 0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a } }
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint32_t out[4];
        fa_philox(out, rows[i].counter, rows[i].key);
        cr_expect_arr_eq(out, rows[i].out, sizeof out, "row %zu: %08x %08x %08x %08x", i, out[0], out[1], out[2], out[3]);
    }
}

Test(dropout, probabilities_become_thresholds_and_scales)
{
    static const struct {
        float p;
        uint32_t below;
        float scale;
    } rows[] = { { 0, 0, 1 },
                 { 0.5f, 0x4000, 2 },
                 { 0.25f, 0x2000, 1 / 0.75f },
                 { 0.1f, 3277, 0x8000 / (0x8000 - 3277.f) },
                 { 1e-5f, 0, 1 },
                 { 0x1p-15f, 1, 0x8000 / 32767.f },
                 { 1 - 0x1p-24f, 0x7fff, 0x1p15f } };
    for (size_t i = 0; i < COUNT(rows); i++) {
        cr_expect_eq(fa_dropout_below(rows[i].p), rows[i].below, "%g: %08x", (double)rows[i].p, fa_dropout_below(rows[i].p));
        cr_expect_eq(fa_dropout_scale(rows[i].p), rows[i].scale, "%g: %g", (double)rows[i].p, (double)fa_dropout_scale(rows[i].p));
    }
    /* what kernels of before take */
    cr_expect_eq(fa_dropout_word_below(0.25f), 0x40000000);
    cr_expect_eq(fa_dropout_word_below(0x1p-32f), 1);
    cr_expect_eq(fa_dropout_word_below(1 - 0x1p-24f), 0xffffff00u);
}

/* Shares of n trials with probability p, in standard deviations from it. */
static double deviation(int64_t kept, int64_t n, double p)
{
    return fabs((double)kept - (double)n * p) / sqrt((double)n * p * (1 - p));
}

/* Of one head, of neighbours in every direction, of other heads, seeds and offsets: as if tossed one by one. */
Test(dropout, kept_shares_are_those_of_independent_tosses)
{
    enum { N = 256, HEADS = 3 };
    static const float ps[] = { 0.1f, 0.5f, 0.9f };
    static const struct {
        uint64_t seed, offset;
        int64_t head, query, key; /* steps to the other pair */
    } steps[] = { { 0, 0, 0, 1, 0 },  { 0, 0, 0, 0, 1 },  { 0, 0, 0, 8, 0 }, { 0, 0, 0, 0, 8 },          { 0, 0, 0, 8, 8 },
                  { 0, 0, 0, 16, 0 }, { 0, 0, 0, 0, 16 }, { 0, 0, 1, 0, 0 }, { 1, 0, 0, 0, 0 },          { 0, 1, 0, 0, 0 },
                  { 0, 0, 0, 1, -1 }, { 0, 0, 1, 16, 0 }, { 0, 1, 1, 0, 0 }, { 1ull << 32, 0, 0, 0, 0 }, { 0, 1ull << 32, 0, 0, 0 } };
    for (size_t i = 0; i < COUNT(ps); i++) {
        fa_dropout d = fa_dropout_of(ps[i], 42, 7);
        double p = 1 - (double)ps[i];
        int64_t kept = 0;
        for (int64_t at = 0; at < HEADS * N * N; at++)
            kept += fa_pairs_kept(&d, at / N / N, at / N % N, at % N) != 0;
        cr_expect_lt(deviation(kept, HEADS * N * N, p), 4, "p=%g keeps %lld", (double)ps[i], (long long)kept);
        for (size_t s = 0; s < COUNT(steps); s++) {
            fa_dropout other = fa_dropout_of(ps[i], 42 + steps[s].seed, 7 + steps[s].offset);
            int64_t both = 0;
            for (int64_t at = 0; at < N * N; at++)
                both += fa_pairs_kept(&d, 5, at / N, at % N + 1) != 0 &&
                        fa_pairs_kept(&other, 5 + steps[s].head, at / N + steps[s].query, at % N + 1 + steps[s].key) != 0;
            cr_expect_lt(deviation(both, N * N, p * p), 6, "p=%g, step %zu: %lld of both", (double)ps[i], s, (long long)both);
        }
    }
}

/* ---- what kernels drop ---- */

#define FFMA "flash_fwd_ffma:"
#define MMA "flash_fwd_mma:"
#define BWD "flash_bwd_mma:"
#define WGMMA "flash_fwd_wgmma:ctas=1,feeder=40,box=32,stages_k=2,stages_v=2,sections=1,rescale=2,exp=0,"
#define GRAD "flash_bwd_wgmma:br=64,box=32,stages=2,"

typedef struct kernel {
    const char *problem, *config;
    bool hopper;
} kernel;

/* Heads of V are not shared in the backward problems, whose dV would be sums over heads. */
static const kernel kernels[] = {
    { "fp32,d=32,dv=96,mask=none,features=dropout,b=2,hq=4,hkv=2", "naive:tile=64", false },
    { "bf16,d=32,dv=96,mask=none,features=dropout,b=2,hq=4,hkv=2", "naive:tile=64", false },
    { "fp32,d=32,dv=96,mask=none,features=dropout,b=2,hq=4,hkv=2", FFMA "br=16,bc=32,warps=1,pack=0", false },
    { "fp32,d=32,dv=96,mask=none,features=dropout,b=2,hq=4,hkv=2", FFMA "br=64,bc=96,warps=4,pack=1", false },
    { "fp16,d=32,dv=96,mask=none,features=dropout,b=2,hq=4,hkv=2",
      MMA "br=16,bc=16,warps=1,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=0,ctas=1", false },
    { "bf16,d=32,dv=96,mask=none,features=dropout,b=2,hq=4,hkv=2",
      MMA "br=128,bc=48,warps=4,stages_k=2,stages_v=1,order=1,q_regs=1,pack=0,lag=8,ctas=1", false },
    { "bf16,d=32,dv=96,mask=none,features=dropout,b=2,hq=6,hkv=2",
      MMA "br=32,bc=64,warps=2,stages_k=2,stages_v=2,order=2,q_regs=1,pack=1,lag=8,ctas=1", false },
    { "tf32,d=32,dv=96,mask=none,features=dropout,b=2,hq=4,hkv=2",
      MMA "br=64,bc=32,warps=4,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=0,ctas=1", false },
    { "tf32,d=32,dv=96,mask=none,features=dropout,b=2,hq=6,hkv=2",
      MMA "br=32,bc=32,warps=2,stages_k=1,stages_v=1,order=0,q_regs=0,pack=1,lag=0,ctas=1", false },
    { "fp32,d=32,dv=96,mask=none,op=backward,features=dropout,b=2,hq=2,hkv=2", "naive_bwd:tile=64", false },
    { "fp32,d=32,dv=96,mask=none,op=backward,features=dropout,b=2,hq=2,hkv=2", "flash_bwd_ffma:br=32,bc=64", false },
    { "bf16,d=32,dv=96,mask=none,op=backward,features=dropout,b=2,hq=2,hkv=2",
      BWD "br=32,br_part=16,bc=64,warps=2,twins=0,stages=1,dq=0,q_br=64,q_bc=16", false },
    { "fp16,d=32,dv=96,mask=none,op=backward,features=dropout,b=2,hq=2,hkv=2",
      BWD "br=64,br_part=64,bc=32,warps=2,twins=0,stages=2,dq=1,q_br=64,q_bc=32", false },
    { "bf16,d=32,dv=96,mask=none,op=backward,features=dropout,b=2,hq=2,hkv=2",
      BWD "br=32,br_part=32,bc=32,warps=4,twins=1,stages=2,dq=0,q_br=64,q_bc=32", false },
    { "fp16,d=32,dv=96,mask=none,op=backward,features=dropout,b=2,hq=2,hkv=2",
      BWD "br=32,br_part=32,bc=64,warps=4,twins=1,stages=2,dq=1,q_br=128,q_bc=16", false },
    { "fp16,d=32,dv=96,mask=none,features=dropout,b=2,hq=4,hkv=2",
      WGMMA "br=64,schedule=0,bc=48,q_bufs=2,ahead=1,cluster=1,convert=0,o_path=0,grid=2", true },
    { "bf16,d=32,dv=96,mask=none,features=dropout,b=2,hq=4,hkv=2",
      WGMMA "br=128,schedule=2,bc=64,q_bufs=1,ahead=0,cluster=1,convert=1,o_path=2,grid=0", true },
    { "bf16,d=32,dv=96,mask=none,op=backward,features=dropout,b=2,hq=2,hkv=2",
      GRAD "bc=64,twins=0,schedule=0,dq=0,ds_bufs=0,grid=2,held=0,q_br=128,q_stages=3", true },
    { "fp16,d=32,dv=96,mask=none,op=backward,features=dropout,b=2,hq=2,hkv=2",
      GRAD "bc=64,twins=1,schedule=0,dq=0,ds_bufs=0,grid=0,held=0,q_br=128,q_stages=3", true },
    { "bf16,d=64,dv=96,mask=none,op=backward,features=dropout,b=2,hq=2,hkv=2",
      GRAD "bc=128,twins=0,schedule=1,dq=1,ds_bufs=2,grid=2,held=0,q_br=128,q_stages=4", true },
};

#define SQ 75
#define SK 91
#define P 0.3f
static const uint64_t rng[2] = { 0x123456789abcdef0u, 0x500000007u };

/* Row i of V, and of dO, is 1 in column i alone: O is P as it was dropped, and dV the same turned. */
typedef struct unit_rows {
    const fa_operation *op;
    fa_problem problem;
    fa_random random;
} unit_rows;

static float value(void *user, int operand, size_t i)
{
    unit_rows *u = user;
    const char *name = u->op->operand[operand].name;
    bool v = !strcmp(name, "v");
    if (!v && strcmp(name, "grad_o"))
        return strcmp(name, "grad_lse") ? fa_random_normal(&u->random) : 0;
    size_t heads = (size_t)(v ? u->problem.hkv : u->problem.hq), rows = v ? SK : SQ, width = (size_t)u->problem.dv;
    return i / width / heads % rows == i % width ? 1 : 0;
}

/* A launch with the state of random numbers in device memory; *out: O of a forward problem, dV of a backward one. */
static void launch(fa_context *ctx, const kernel *k, float probability, const uint64_t state[2], float **out, size_t *n)
{
    fa_config config = test_config(k->config);
    const fa_plan *plan;
    fa_tensors t;
    fa_entered in;
    fa_case c = test_case(k->problem, SQ, SK);
    unit_rows u = { fa_operation_find(c.problem.op), c.problem, { 5 } };
    OK(fa_plan_make(ctx, &c.problem, &config, NULL, &plan));
    OK(fa_context_enter(ctx, &in));
    OK(fa_tensors_open(&t, ctx, &c.problem));
    memcpy(t.rng, state, sizeof t.rng);
    t.args.dropout = probability;
    OK(fa_tensors_fill(&t, value, &u));
    OK(fa_tensors_launch(&t, plan));
    int at = fa_operand_index(u.op, c.problem.op == FA_FORWARD ? "o" : "grad_v");
    *n = t.count[at];
    OK(fa_tensors_get(&t, at, out));
    fa_tensors_close(&t);
    fa_context_leave(ctx, &in);
}

static fa_context *context_of(const kernel *k)
{
    return k->hopper ? test_hopper_context(NULL, NULL, 3) : test_context(NULL, NULL);
}

/* Parameters hold no pointers: each test is a process of its own. */
ParameterizedTestParameters(dropout, every_tiling_drops_the_same)
{
    static int numbers[COUNT(kernels)];
    for (size_t i = 0; i < COUNT(kernels); i++)
        numbers[i] = (int)i;
    return cr_make_param_array(int, numbers, COUNT(kernels));
}

ParameterizedTest(int *number, dropout, every_tiling_drops_the_same, .timeout = 600)
{
    const kernel *k = &kernels[*number];
    if (!full() && *number % 6 != 0)
        return; /* others have its family, type and way of dQ */
    fa_context *ctx = context_of(k);
    fa_dropout d = fa_dropout_of(P, rng[0], rng[1]);
    fa_problem p = test_case(k->problem, SQ, SK).problem;
    bool forward = p.op == FA_FORWARD;
    float *x, *again;
    size_t n, kept = 0, wrong = 0, pairs = (size_t)p.b * (size_t)p.hq * SQ * SK;
    test_mode(SIM_EAGER, SIM_IN_ORDER, 0);
    launch(ctx, k, P, rng, &x, &n);
    for (int64_t b = 0; b < p.b; b++)
        for (int64_t h = 0; h < p.hq; h++)
            for (int64_t i = 0; i < SQ; i++)
                for (int64_t j = 0; j < SK; j++) {
                    int64_t at = forward ? ((b * SQ + i) * p.hq + h) * p.dv + j : ((b * SK + j) * p.hkv + h) * p.dv + i;
                    bool is = x[at] != 0, should = fa_pairs_kept(&d, b * p.hq + h, i, j) != 0;
                    kept += is;
                    wrong += is != should;
                    cr_expect(is == should || wrong > 3, "%s: batch %d, head %d, query %d, key %d is %s", k->config, (int)b, (int)h, (int)i,
                              (int)j, is ? "kept" : "dropped");
                }
    cr_expect_eq(wrong, 0, "%s: %zu of %zu pairs are wrong", k->config, wrong, pairs);
    cr_expect_lt(deviation((int64_t)kept, (int64_t)pairs, 1 - (double)P), 4, "%s keeps %zu of %zu", k->config, kept, pairs);
    /* the same bits in another order of warps, others with another offset */
    test_mode(SIM_LAZY, SIM_REVERSED, 0);
    launch(ctx, k, P, rng, &again, &n);
    cr_expect_arr_eq(again, x, n * sizeof *x, "%s: other bits", k->config);
    free(again);
    launch(ctx, k, P, (const uint64_t[2]){ rng[0], rng[1] + 1 }, &again, &n);
    cr_expect_neq(memcmp(again, x, n * sizeof *x), 0, "%s: the offset changes nothing", k->config);
    free(again);
    free(x);
    fa_destroy(ctx);
}

/* Nothing is dropped where the probability is below 2^-16: the same bits as of a kernel without dropout. */
Test(dropout, where_nothing_is_dropped_bits_are_those_without_dropout, .timeout = 600)
{
    for (size_t i = 0; i < COUNT(kernels); i += full() ? 1 : 10) {
        const char *feature = strstr(kernels[i].problem, "features=dropout,");
        char text[160];
        kernel without = kernels[i];
        float *x, *y;
        size_t n, m;
        fa_context *ctx = context_of(&kernels[i]);
        snprintf(text, sizeof text, "%.*s%s", (int)(feature - kernels[i].problem), kernels[i].problem,
                 feature + strlen("features=dropout,"));
        without.problem = text;
        test_mode(SIM_EAGER, SIM_IN_ORDER, 0);
        launch(ctx, &kernels[i], 1.5e-5f, rng, &x, &n);
        launch(ctx, &without, 0, rng, &y, &m);
        cr_assert_eq(n, m);
        cr_expect_arr_eq(x, y, n * sizeof *x, "%s", kernels[i].config);
        free(x);
        free(y);
        fa_destroy(ctx);
    }
}

/* Seed and offset are read by each launch, as by each replay of a graph: nothing of them is kept with a plan. */
Test(dropout, the_state_is_read_by_each_launch, .timeout = 300)
{
    fa_context *ctx = test_context(NULL, NULL);
    fa_case c = test_case("bf16,d=32,dv=96,mask=none,features=dropout,b=1,hq=2,hkv=2", SQ, SK);
    unit_rows u = { fa_operation_find(FA_FORWARD), c.problem, { 5 } };
    int o = fa_operand_index(u.op, "o"), state = fa_operand_index(u.op, "rng");
    fa_tensors t;
    fa_entered in;
    test_mode(SIM_EAGER, SIM_IN_ORDER, 0);
    OK(fa_context_enter(ctx, &in));
    OK(fa_tensors_open(&t, ctx, &c.problem));
    OK(fa_tensors_fill(&t, value, &u));
    for (uint64_t offset = 0; offset < 3; offset++) {
        const uint64_t now[2] = { 1ull << 60, offset << 31 };
        fa_dropout d = fa_dropout_of(t.args.dropout, now[0], now[1]);
        float *x;
        size_t wrong = 0;
        cr_assert_eq(fa_context_driver(ctx)->cuMemcpyHtoD(t.at[state], now, sizeof now), CUDA_SUCCESS);
        OK(fa_tensors_launch(&t, NULL));
        OK(fa_tensors_get(&t, o, &x));
        for (int64_t i = 0; i < SQ; i++)
            for (int64_t j = 0; j < SK; j++)
                wrong += (x[(i * 2 + 1) * 96 + j] != 0) != (fa_pairs_kept(&d, 1, i, j) != 0);
        cr_expect_eq(wrong, 0, "offset %llu: %zu pairs", (unsigned long long)now[1], wrong);
        free(x);
    }
    fa_tensors_close(&t);
    fa_context_leave(ctx, &in);
    fa_destroy(ctx);
}

/* ---- against the oracle ---- */

typedef struct class
{
    const char *problem, *families; /* words between blanks */
    bool hopper;
} class;

static const class classes[] = {
    { "fp16,d=64,mask=causal,features=dropout", "flash_fwd_mma naive", false },
    { "bf16,d=40,dv=24,mask=window,features=dropout,o=fp32", "flash_fwd_mma", false },
    { "tf32,d=32,dv=40,mask=causal,features=dropout", "flash_fwd_mma", false },
    { "fp32,d=40,dv=33,mask=window,features=dropout", "flash_fwd_ffma naive", false },
    { "bf16,d=64,mask=causal,features=lengths+dropout", "flash_fwd_mma", false },
    { "fp16,d=32,mask=none,features=lengths+dropout+lse-strides", "flash_fwd_mma", false },
    { "bf16,d=32,mask=causal,features=lengths+pages+dropout,page=16", "flash_fwd_mma", false },
    { "fp32,d=32,mask=causal,op=backward,features=dropout", "flash_bwd_ffma naive_bwd", false },
    { "fp32,d=40,dv=24,mask=window,op=backward,features=lengths+dropout", "flash_bwd_ffma naive_bwd", false },
    { "bf16,d=64,mask=causal,op=backward,features=dropout", "flash_bwd_mma naive_bwd", false },
    { "fp16,d=24,dv=40,mask=none,op=backward,features=dropout+deterministic,grad=fp32", "flash_bwd_mma", false },
    { "bf16,d=32,mask=causal,op=backward,features=lengths+dropout", "flash_bwd_mma", false },
    { "fp16,d=40,dv=33,mask=window,op=backward,features=lengths+dropout+lse-strides", "flash_bwd_mma", false },
    { "bf16,d=64,mask=causal,features=dropout", "flash_fwd_wgmma", true },
    { "fp16,d=64,mask=window,features=lengths+dropout", "flash_fwd_wgmma", true },
    { "bf16,d=64,mask=none,features=lengths+pages+dropout,page=16", "flash_fwd_wgmma", true },
    { "bf16,d=64,mask=causal,op=backward,features=dropout", "flash_bwd_wgmma", true },
    { "fp16,d=96,dv=64,mask=window,op=backward,features=dropout+deterministic,grad=fp32", "flash_bwd_wgmma", true },
    { "fp16,d=64,mask=causal,op=backward,features=lengths+dropout", "flash_bwd_wgmma", true },
};
#define SEEDS (full() ? 40 : 1) /* of a class and a family */

ParameterizedTestParameters(dropout, launches_agree_with_the_oracle)
{
    static const int by_default[] = { 0, 3, 6, 11, 14, 17 }; /* they have the families, types, masks and lengths of the others */
    static int numbers[COUNT(classes)];
    size_t n = full() ? COUNT(classes) : COUNT(by_default);
    for (size_t i = 0; i < n; i++)
        numbers[i] = full() ? (int)i : by_default[i];
    return cr_make_param_array(int, numbers, n);
}

static void run_case(fa_context *ctx, fa_gen *g, const fa_problem *p, const char *family, uint64_t seed)
{
    static const sim_schedule schedules[] = { SIM_IN_ORDER, SIM_REVERSED, SIM_RANDOM };
    fa_case c;
    fa_config config;
    fa_verdict v;
    char line[1200];
    fa_case_make_class(&c, p, seed % 2 ? FA_CASE_MANY : FA_CASE_FEW, seed);
    fa_case_print(line, sizeof line, &c);
    cr_assert(strstr(line, " dropout="), "%s", line);
    fa_status st = fa_case_config(g, &c, fa_context_arch(ctx), fa_context_budget(ctx), family, &config);
    if (st == FA_UNSUPPORTED && strstr(fa_last_error(), "TMA"))
        return; /* strides of the case */
    cr_assert_eq(st, FA_OK, "%s: %s", line, fa_last_error());
    test_mode(seed % 2 ? SIM_LAZY : SIM_EAGER, schedules[seed % 3], seed);
    cr_expect_eq(fa_verify_case(ctx, &c, &config, &v), FA_OK, "%s: %s\n%s", family, line, fa_last_error());
}

ParameterizedTest(int *number, dropout, launches_agree_with_the_oracle, .timeout = 1800)
{
    const class *of = &classes[*number];
    fa_context *ctx = of->hopper ? test_hopper_context(NULL, NULL, 5) : test_context(NULL, NULL);
    fa_problem p;
    fa_gen *g;
    OK(fa_gen_open(&g, NULL));
    OK(fa_problem_parse(&p, of->problem));
    for (const char *s = of->families; *s; s += strspn(s, " ")) {
        char family[32];
        size_t n = strcspn(s, " ");
        snprintf(family, sizeof family, "%.*s", (int)n, s);
        for (int seed = 0; seed < SEEDS; seed++)
            run_case(ctx, g, &p, family, (uint64_t)(seed + 101 * *number));
        s += n;
    }
    fa_gen_close(g);
    fa_destroy(ctx);
}

/* ---- the arguments ---- */

static fa_args plain(int op)
{
    fa_args a = FA_ARGS_INIT;
    fa_tensor *tensors[] = { &a.q, &a.k, &a.v, &a.o, &a.grad_o, &a.grad_q, &a.grad_k, &a.grad_v };
    a.op = op;
    a.dtype = FA_BF16;
    a.d = 64;
    a.b = 2;
    a.hq = a.hkv = 2;
    a.sq = a.sk = 100;
    for (size_t i = 0; i < (op == FA_FORWARD ? 4 : COUNT(tensors)); i++)
        tensors[i]->ptr = (void *)(uintptr_t)((i + 1) << 24);
    a.lse = (float *)(uintptr_t)(100 << 20);
    a.rng = (const uint64_t *)(uintptr_t)(200 << 20);
    a.dropout = 0.1f;
    return a;
}

Test(dropout, arguments_are_refused_by_name)
{
    static const struct {
        float p;
        uintptr_t rng;
        uint32_t flags;
        const char *part;
    } rows[] = {
        { -0.5f, 200 << 20, 0, "args: dropout is -0.5; accepted: the probability of a weight to be dropped, 0 to below 1" },
        { 1, 200 << 20, 0, "args: dropout is 1; accepted: the probability of a weight to be dropped, 0 to below 1" },
        { NAN, 200 << 20, 0, "args: dropout is nan" },
        { INFINITY, 200 << 20, 0, "args: dropout is inf" },
        { 0.1f, 0, 0, "args: rng is NULL; accepted: a device address" },
        { 0.1f, (200 << 20) + 4, 0, "accepted: a multiple of the element's 8 bytes" },
        { 0.1f, 4 << 24, 0, "overlaps rng" },
    };
    fa_problem p;
    for (int op = FA_FORWARD; op <= FA_BACKWARD; op++) {
        fa_args a = plain(op);
        OK(fa_problem_of(&a, &p));
        cr_expect_eq(p.features, FA_FEATURE_DROPOUT);
        for (size_t i = 0; i < COUNT(rows); i++) {
            if (op == FA_BACKWARD && strstr(rows[i].part, "overlaps"))
                continue; /* O is an input there */
            a.dropout = rows[i].p;
            a.rng = (const uint64_t *)rows[i].rng;
            cr_expect_eq(fa_problem_of(&a, &p), FA_INVALID, "%s", rows[i].part);
            cr_expect(strstr(fa_last_error(), rows[i].part), "%s does not say: %s", fa_last_error(), rows[i].part);
        }
        a.dropout = 0; /* then rng is not looked at */
        a.rng = (const uint64_t *)(uintptr_t)1;
        OK(fa_problem_of(&a, &p));
        cr_expect_eq(p.features, 0);
    }
    fa_args a = plain(FA_FORWARD);
    a.flags = FA_BATCH_INVARIANT;
    cr_expect_eq(fa_problem_of(&a, &p), FA_UNSUPPORTED);
    cr_expect(strstr(fa_last_error(), "features has batch-invariant and dropout; accepted: one of them"), "%s", fa_last_error());
    a = (fa_args)FA_ARGS_INIT;
    a.op = FA_MERGE;
    a.dropout = 0.1f;
    cr_expect_eq(fa_problem_of(&a, &p), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "args: dropout is set: dropout; accepted with op=merge: 0"), "%s", fa_last_error());
}

/* Families without it decline, and say so; the choice falls on one that has it. */
Test(dropout, families_without_it_decline)
{
    static const char *const declining[] = { "decode_ffma", "decode_mma", "flash1_fwd", "tiled" };
    fa_context *ctx = test_context(NULL, NULL);
    fa_args a = plain(FA_FORWARD);
    fa_problem p;
    fa_gen *g;
    char text[4096];
    a.sq = 1;
    OK(fa_problem_of(&a, &p));
    OK(fa_explain(ctx, &p, NULL, text, sizeof text));
    cr_expect(strstr(text, "flash_fwd_mma"), "%s", text);
    OK(fa_gen_open(&g, NULL));
    for (size_t i = 0; i < COUNT(declining); i++) {
        fa_case c = test_case("bf16,d=64,mask=none,features=dropout", 1, 100);
        fa_config config;
        fa_status st = fa_case_config(g, &c, fa_context_arch(ctx), fa_context_budget(ctx), declining[i], &config);
        cr_expect_eq(st, FA_UNSUPPORTED, "%s", declining[i]);
        cr_expect(strstr(fa_last_error(), "it computes without dropout"), "%s: %s", declining[i], fa_last_error());
    }
    fa_gen_close(g);
    fa_destroy(ctx);
}
