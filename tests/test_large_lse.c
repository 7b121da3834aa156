/* P of the backward pass where LSE is large: at most 1, and off by no more than the factor exp(|LSE| 2^-23) that fagen.h states; an LSE
 * that is no number gives NaN, one of -inf zeros. dO is the identity, so that dV is P transposed; with V of ones and D = 0, dS is P. */
#include "test_full.h"
#include "test_verify_device.h"
#include "verify/operands/number.h"
#include <criterion/parameterized.h>
#include <math.h>

#define OK(x) cr_assert_eq((x), FA_OK, "%s", fa_last_error())
#define COUNT(a) (sizeof(a) / sizeof *(a))
#define D 64 /* and queries */
#define SK 100
#define SUM_ROUNDING 0x1p-6 /* of sums of dQ and dK, and of their type */

enum { Q, K, V, O, LSE, GRAD_O, GRAD_LSE, GRAD_Q, GRAD_K, GRAD_V };

#define MMA "flash_bwd_mma:br=32,br_part=32,bc=32,warps=2,twins=0,stages=2,"
#define WGMMA "flash_bwd_wgmma:br=64,box=64,"
static const struct {
    const char *types, *config;
    bool hopper;
} kernels[] = {
    { "bf16", "naive_bwd:tile=64", false },
    { "fp32", "naive_bwd:tile=64", false },
    { "fp32", "flash_bwd_ffma:br=32,bc=32", false },
    { "bf16", MMA "dq=0,q_br=32,q_bc=32", false },
    { "bf16", MMA "dq=1,q_br=64,q_bc=32", false },
    { "bf16", WGMMA "bc=64,twins=0,schedule=0,dq=0,ds_bufs=0,held=0,stages=2,q_br=128,q_stages=3,grid=2", true },
    { "bf16", WGMMA "bc=64,twins=1,schedule=0,dq=0,ds_bufs=0,held=0,stages=2,q_br=128,q_stages=3,grid=2", true },
    { "bf16", WGMMA "bc=128,twins=0,schedule=1,dq=1,ds_bufs=2,held=0,stages=2,q_br=128,q_stages=4,grid=2", true },
};

/* By default every fourth, and the last. */
static size_t some(int numbers[COUNT(kernels)])
{
    size_t n = 0;
    for (size_t i = 0; i < COUNT(kernels); i++)
        if (full() || i % 4 == 0 || i + 1 == COUNT(kernels))
            numbers[n++] = (int)i;
    return n;
}

ParameterizedTestParameters(large_lse, kernels)
{
    static int numbers[COUNT(kernels)];
    return cr_make_param_array(int, numbers, some(numbers));
}

/* Of all elements of a row. Neighbouring numbers of bf16 have products of every last digit. */
static float query(size_t i)
{
    static const float large[] = { 8256, 8000, 7744, 1000, 1004, 3008, 123, 64, 9.5f, 1, -8256, -1000, 20480, 21120, 40192, 40448 };
    return fa_number_round(large[i % COUNT(large)] * (i < 32 ? 1 : 1.0078125f), FA_BF16);
}

/* Two thirds of the keys share a score. */
static float key(size_t j)
{
    return j % 3 ? 8256 : 8192 - 64 * (float)(j % 7);
}

typedef struct call {
    const char *types;
    float scale;
    const float *lse, *grad_lse; /* of each query; grad_lse NULL: ones, so that D = 0 */
    bool opposite;               /* Q is -1, so that scores are far below 0 */
} call;

static float value(void *user, int operand, size_t i)
{
    const call *how = user;
    size_t row = i / D;
    if (operand == Q)
        return how->opposite ? -1 : query(row);
    if (operand == K)
        return key(row);
    if (operand == GRAD_O)
        return i % D == row ? 1 : 0;
    return 1;
}

typedef struct gradients {
    float *q, *k, *v;
} gradients;

static void free_gradients(gradients *g)
{
    free(g->q);
    free(g->k);
    free(g->v);
}

static void put_ones(const fa_tensors *t)
{
    static uint8_t ones[D * D * 4];
    int dtype = fa_operand_dtype(&t->op->operand[O], &t->problem), bytes = fa_dtype_bytes(dtype);
    for (int i = 0; i < D * D; i++)
        fa_number_store(ones + i * bytes, 1, dtype);
    OK(fa_copy(t->ctx, (void *)(uintptr_t)t->at[O], ones, (size_t)(D * D * bytes), FA_TO_DEVICE));
}

/* One that scores keep all of their digits with, and two that they do not, of which one has a product with log2(e) that rounds far. */
static const float scales[] = { 0.125f, 0.1f, 0.09325f };

/* O is ones. */
static gradients launch(int kernel, const call *how)
{
    char text[160];
    gradients g;
    fa_context *ctx = kernels[kernel].hopper ? test_hopper_context(NULL, NULL, 2) : test_context(NULL, NULL);
    fa_problem p;
    fa_config c = test_config(kernels[kernel].config);
    const fa_plan *plan = NULL;
    fa_tensors t;
    fa_entered in;
    snprintf(text, sizeof text, "%s,d=%d,mask=none,op=backward,grad=fp32,b=1,hq=1,hkv=1,sq=%d,sk=%d", how->types, D, D, SK);
    test_mode(SIM_EAGER, SIM_IN_ORDER, 0);
    OK(fa_problem_parse(&p, text));
    OK(fa_context_enter(ctx, &in));
    OK(fa_tensors_open(&t, ctx, &p));
    OK(fa_tensors_fill(&t, value, (void *)how));
    put_ones(&t);
    t.args.scale = how->scale;
    OK(fa_copy(ctx, (void *)(uintptr_t)t.at[LSE], how->lse, D * sizeof *how->lse, FA_TO_DEVICE));
    if (how->grad_lse)
        OK(fa_copy(ctx, (void *)(uintptr_t)t.at[GRAD_LSE], how->grad_lse, D * sizeof *how->grad_lse, FA_TO_DEVICE));
    OK(fa_plan_make(ctx, &p, &c, NULL, &plan));
    OK(fa_tensors_launch(&t, plan));
    OK(fa_tensors_get(&t, GRAD_Q, &g.q));
    OK(fa_tensors_get(&t, GRAD_K, &g.k));
    OK(fa_tensors_get(&t, GRAD_V, &g.v));
    fa_tensors_close(&t);
    fa_context_leave(ctx, &in);
    fa_destroy(ctx);
    return g;
}

static double score(int i, int j, float scale)
{
    return (double)query((size_t)i) * key((size_t)j) * D * scale;
}

/* The largest score of a query; *rest: LSE less that. */
static double largest(int i, float scale, double *rest)
{
    double m = -INFINITY, sum = 0;
    for (int k = 0; k < SK; k++)
        m = fmax(m, score(i, k, scale));
    for (int k = 0; k < SK; k++)
        sum += exp(score(i, k, scale) - m);
    *rest = log(sum);
    return m;
}

/* What P of a pair may be. */
typedef struct range {
    double least, most;
} range;

static range probability(int i, int j, float scale)
{
    double lost, m = largest(i, scale, &lost), x = score(i, j, scale) - m - lost, off = fabs(m + lost) * 0x1p-23;
    return (range){ exp(x - off) * (1 - 0x1p-7) - 1e-30, fmin(1, exp(x + off) * (1 + 0x1p-7)) };
}

static void check(int kernel, float scale)
{
    float lse[D];
    for (int i = 0; i < D; i++) {
        double rest, m = largest(i, scale, &rest);
        lse[i] = (float)(m + rest);
    }
    gradients g = launch(kernel, &(call){ kernels[kernel].types, scale, lse, NULL, false });
    const char *config = kernels[kernel].config;
    range(*p)[SK] = malloc(sizeof *p * D);
    int wrong = 0;
    for (int i = 0; i < D; i++)
        for (int j = 0; j < SK; j++) {
            p[i][j] = probability(i, j, scale);
            float got = g.v[j * D + i];
            if (!(got >= p[i][j].least && got <= p[i][j].most) && wrong++ < 4)
                cr_expect(false, "%s, query %d of LSE %g, key %d: P is %g, not in %g to %g", config, i, (double)lse[i], j, (double)got,
                          p[i][j].least, p[i][j].most);
        }
    for (int i = 0; i < D; i++) {
        range sum = { 0, 0 };
        for (int j = 0; j < SK; j++)
            sum = (range){ sum.least + p[i][j].least * key((size_t)j) * scale, sum.most + p[i][j].most * key((size_t)j) * scale };
        float got = g.q[i * D + i];
        cr_expect(got >= sum.least * (1 - SUM_ROUNDING) - 1e-20 && got <= sum.most * (1 + SUM_ROUNDING),
                  "%s, query %d of LSE %g: dQ is %g, not in %g to %g", config, i, (double)lse[i], (double)got, sum.least, sum.most);
    }
    for (int j = 0; j < SK; j++) {
        range sum = { 0, 0 };
        for (int i = 0; i < D; i++) {
            double q = query((size_t)i) * scale;
            sum.least += q * (q > 0 ? p[i][j].least : p[i][j].most);
            sum.most += q * (q > 0 ? p[i][j].most : p[i][j].least);
        }
        float got = g.k[j * D + 1];
        double rounding = SUM_ROUNDING * (fabs(sum.least) + fabs(sum.most));
        cr_expect(got >= sum.least - rounding && got <= sum.most + rounding, "%s, key %d: dK is %g, not in %g to %g", config, j,
                  (double)got, sum.least, sum.most);
    }
    free(p);
    free_gradients(&g);
}

ParameterizedTest(int *kernel, large_lse, kernels, .timeout = 600)
{
    for (size_t i = 0; i < COUNT(scales); i++)
        check(*kernel, scales[i]);
}

ParameterizedTestParameters(large_lse, no_number)
{
    static int numbers[COUNT(kernels)];
    return cr_make_param_array(int, numbers, some(numbers));
}

ParameterizedTest(int *kernel, large_lse, no_number, .timeout = 600)
{
    static const float odd[] = { NAN, INFINITY, -INFINITY };
    for (size_t n = 0; n < COUNT(odd); n++) {
        float lse[D];
        for (int i = 0; i < D; i++)
            lse[i] = odd[n];
        gradients g = launch(*kernel, &(call){ kernels[*kernel].types, scales[0], lse, NULL, false });
        int wrong = 0;
        for (int i = 0; i < SK * D; i++) {
            float of[] = { g.k[i], g.v[i], g.q[i % (D * D)] };
            for (int k = 0; k < 3; k++)
                wrong += odd[n] == -INFINITY ? of[k] != 0 : !isnan(of[k]);
        }
        cr_expect_eq(wrong, 0, "%s, LSE %g: %d elements are not %s", kernels[*kernel].config, (double)odd[n], wrong,
                     odd[n] == -INFINITY ? "0" : "NaN");
        free_gradients(&g);
    }
}

/* Keys after the last are zeros in shared memory, with a P of 1 where LSE is far below 0. Their dS, -D, is beyond fp16 here, and would
 * make dQ NaN. */
Test(large_lse, keys_behind_the_last, .timeout = 600)
{
    float lse[D], grad_lse[D];
    for (int i = 0; i < D; i++) {
        lse[i] = -1000;
        grad_lse[i] = 1e5f;
    }
    for (size_t k = 0; k < COUNT(kernels); k++) {
        bool halves = strstr(kernels[k].config, "mma") != NULL;
        gradients g = launch((int)k, &(call){ halves ? "fp16" : kernels[k].types, scales[0], lse, grad_lse, true });
        int wrong = 0;
        for (int i = 0; i < D * D; i++)
            wrong += !isfinite(g.q[i]);
        cr_expect_eq(wrong, 0, "%s: %d elements of dQ are not finite", kernels[k].config, wrong);
        free_gradients(&g);
    }
}
