/* The backward operation by its contract: what is refused, what is exactly 0, empty calls, accumulation, equal bits, the device's
 * reference. By default fewer shapes, chips and launches of each kernel. Tests share classes of problems, and so compiled kernels. */
#include "test_full.h"
#include "test_verify_device.h"
#include "verify/operands/number.h"
#include <math.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

enum { Q, K, V, O, LSE, GRAD_O, GRAD_LSE, GRAD_Q, GRAD_K, GRAD_V }; /* rows of gen/operation.c */

#define MMA "flash_bwd_mma:br=32,br_part=32,warps=2,stages=2,q_br=32,q_bc=32,"
#define WGMMA "flash_bwd_wgmma:br=64,box=64,stages=2,q_br=128,q_stages=3,dq=0,ds_bufs=0,"
static const struct {
    const char *types, *config;
    int sms; /* of the simulated H200 it runs on; 0: an A100 */
} kernels[] = { { "fp32", "naive_bwd:tile=64", 0 },
                { "bf16,grad=fp32", "naive_bwd:tile=64", 0 },
                { "fp32", "flash_bwd_ffma:br=32,bc=32", 0 },
                { "bf16,grad=fp32", MMA "bc=32,twins=0,dq=0", 0 },
                { "fp16,grad=fp32", MMA "bc=32,twins=1,dq=0", 0 },
                { "bf16,grad=fp32", MMA "bc=32,twins=0,dq=1", 0 },
                { "fp16,grad=fp32", MMA "bc=32,twins=1,dq=1", 0 },
                { "bf16,grad=fp32", WGMMA "bc=64,twins=0,schedule=0,held=2,grid=2", 1 },
                { "fp16,grad=fp32", WGMMA "bc=128,twins=0,schedule=1,held=0,grid=0", 2 },
                { "bf16,grad=fp32", WGMMA "bc=64,twins=1,schedule=0,held=0,grid=2", 3 },
                { "bf16,grad=fp32", WGMMA "bc=128,twins=0,schedule=1,held=0,spread=1,grid=2", 3 } };
#define KERNELS (int)(sizeof kernels / sizeof *kernels)
#define STEP (full() ? 1 : 11) /* by default every eleventh kernel, from the first or the second on, as tests take turns */
#define LENGTHS 2              /* kernels from here on take sequences of their own lengths */
#define MATRIX 3               /* kernels from here on multiply in matrix units, and load queries that see no key as zeros */

static void setup(void)
{
    test_mode(SIM_EAGER, SIM_IN_ORDER, 0);
}
TestSuite(operation_backward, .init = setup, .timeout = 300);

static fa_problem problem(const char *text)
{
    fa_problem p;
    OK(fa_problem_parse(&p, text));
    return p;
}

/* ---- what is refused ---- */

typedef struct refusal {
    fa_args args;
    const char *part;
    fa_status status;
} refusal;

static fa_args plain(void)
{
    fa_args a = FA_ARGS_INIT;
    a.op = FA_BACKWARD;
    a.dtype = FA_BF16;
    a.d = 64;
    a.b = 2;
    a.hq = 4;
    a.hkv = 2;
    a.sq = 100;
    a.sk = 120;
    fa_tensor *tensors[] = { &a.q, &a.k, &a.v, &a.o, &a.grad_o, &a.grad_q, &a.grad_k, &a.grad_v };
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        tensors[i]->ptr = (void *)(uintptr_t)((i + 1) << 24);
    a.lse = (float *)(uintptr_t)(100 << 20);
    return a;
}

static int refusals(refusal *to)
{
    int n = 0;
#define ROW(set, st, what)                       \
    do {                                         \
        fa_args a = plain();                     \
        set;                                     \
        to[n++] = (refusal){ a, what, FA_##st }; \
    } while (0)
    ROW(a.lse = NULL, INVALID, "lse is NULL; accepted: a device address");
    ROW(a.o.ptr = NULL, INVALID, "o.ptr is NULL");
    ROW(a.grad_o.ptr = NULL, INVALID, "grad_o.ptr is NULL");
    ROW(a.grad_q.ptr = NULL, INVALID, "grad_q.ptr is NULL");
    ROW(a.grad_k.ptr = NULL, INVALID, "grad_k.ptr is NULL");
    ROW(a.grad_v.ptr = NULL, INVALID, "grad_v.ptr is NULL");
    ROW(a.grad_q.ptr = a.q.ptr, INVALID, "grad_q overlaps q");
    ROW(a.grad_v.ptr = a.grad_k.ptr, INVALID, "grad_k overlaps grad_v");
    ROW(a.grad_k.ptr = a.o.ptr, INVALID, "grad_k overlaps o");
    ROW(a.grad_lse = (const float *)a.grad_q.ptr, INVALID, "grad_q overlaps grad_lse");
    ROW((a.grad_q.sb = 25600, a.grad_q.ss = 256, a.grad_q.sh = 32), INVALID, "grad_q.sh is 32; accepted: a stride of at least 64");
    ROW((a.flags = FA_BROADCAST, a.grad_k.ss = 64, a.grad_k.sh = 7680), INVALID, "grad_k.sb is 0");
    ROW((a.grad_o.ss = 64, a.grad_o.sh = 6400), INVALID, "grad_o.sb is 0 and the dimension is 2 long");
    ROW(a.grad_dtype = FA_F16, UNSUPPORTED, "grad_dtype is 1 (fp16); accepted with bf16: 0, bf16 (2), fp32 (4)");
    ROW(a.grad_dtype = 9, INVALID, "grad_dtype is 9");
    ROW(a.dtype = FA_TF32, UNSUPPORTED, "dtype is 3 (tf32); accepted with op=backward: fp16 (1), bf16 (2), fp32 (4)");
    ROW(a.flags = FA_ACCUMULATE, INVALID, "flags has FA_ACCUMULATE and grad_dtype is bf16; accepted with it: fp32 (4)");
    ROW(a.flags = FA_BATCH_INVARIANT, UNSUPPORTED, "flags is 0x2; accepted by this version with op=backward: FA_BROADCAST (0x1), FA_D");
    ROW(a.dropout = 0.5f, INVALID, "rng is NULL; accepted: a device address");
    ROW((a.dropout = 0.5f, a.rng = (const uint64_t *)a.grad_q.ptr), INVALID, "grad_q overlaps rng");
    ROW(a.page_table = (const int32_t *)a.q.ptr, INVALID, "page_table is set: pages of K and V; accepted with op=backward: 0");
    ROW(a.parts = 2, INVALID, "parts is set");
    ROW(a.hq = 5, INVALID, "hq is 5");
#undef ROW
    return n;
}

Test(operation_backward, what_is_refused_by_name)
{
    static refusal row[40];
    int n = refusals(row);
    fa_problem p;
    fa_args a = plain();
    OK(fa_problem_of(&a, &p));
    for (int i = 0; i < n; i++) {
        cr_expect_eq(fa_problem_of(&row[i].args, &p), row[i].status, "%s: %s", row[i].part, fa_last_error());
        cr_expect(strstr(fa_last_error(), row[i].part), "%s does not say: %s", fa_last_error(), row[i].part);
    }
    a.op = FA_FORWARD;
    cr_expect_eq(fa_problem_of(&a, &p), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "grad_o is set: gradients; accepted with op=forward: 0"), "%s", fa_last_error());
}

Test(operation_backward, its_problem_names_gradients_and_determinism)
{
    char text[256];
    fa_args a = plain();
    fa_problem p;
    a.flags = FA_DETERMINISTIC | FA_BROADCAST;
    OK(fa_problem_of(&a, &p));
    fa_problem_print(text, sizeof text, &p);
    cr_expect_str_eq(text,
                     "bf16,d=64,dv=64,mask=none,o=bf16,align=16,op=backward,features=deterministic,b=2,hq=4,hkv=2,sq=100,sk=120,grad=bf16");
    a.grad_dtype = FA_F32;
    a.flags |= FA_ACCUMULATE;
    OK(fa_problem_of(&a, &p));
    cr_expect_eq(p.grad_dtype, FA_F32);
    cr_expect_eq(p.features, FA_FEATURE_DETERMINISTIC, "accumulation is no class of its own");
}

/* ---- launches ---- */

/* Tensors of a problem with random inputs, O and LSE by the library's own forward. */
typedef struct world {
    fa_context *ctx;
    fa_entered in;
    fa_tensors t;
    const fa_plan *plan;
} world;

/* O and LSE are computed by what compiles soonest, where it computes them: no test here is about how they came. */
static void pin_forward(fa_context *ctx, int kernel, const char *rest)
{
    char text[200];
    snprintf(text, sizeof text, "%.4s,%s", kernels[kernel].types, rest);
    fa_problem p = problem(text);
    fa_status st = fa_pin(ctx, &p, "naive:tile=64");
    cr_assert(st == FA_OK || st == FA_UNSUPPORTED, "%s: %s", text, fa_last_error());
}

static void world_open(world *w, int kernel, const char *rest, int window_left, int diagonal, int offset)
{
    char text[200];
    snprintf(text, sizeof text, "%s,op=backward,%s", kernels[kernel].types, rest);
    fa_problem p = problem(text);
    fa_config c = test_config(kernels[kernel].config);
    w->ctx = kernels[kernel].sms ? test_hopper_context(NULL, NULL, kernels[kernel].sms) : test_context(NULL, NULL);
    OK(fa_context_enter(w->ctx, &w->in));
    OK(fa_tensors_open(&w->t, w->ctx, &p));
    w->t.args.window_left = window_left;
    w->t.args.window_right = 0;
    w->t.args.diagonal = diagonal;
    w->t.args.offset = offset;
    pin_forward(w->ctx, kernel, rest);
    OK(fa_tensors_random(&w->t, 5));
    OK(fa_plan_make(w->ctx, &p, &c, NULL, &w->plan));
}

static void world_close(world *w)
{
    fa_tensors_close(&w->t);
    fa_context_leave(w->ctx, &w->in);
    fa_destroy(w->ctx);
}

static float *get(world *w, int operand)
{
    float *x;
    OK(fa_tensors_get(&w->t, operand, &x));
    return x;
}

/* Queries 0 to 19 see no key, and keys from 50 on no query sees. Query 20 sees one key, so that dS = dP - D is 0 but for rounding. */
Test(operation_backward, what_sees_nothing_and_is_not_seen_has_gradients_of_exactly_0)
{
    for (int i = 0; i < KERNELS; i += STEP) {
        world w;
        world_open(&w, i, "d=40,mask=causal,b=2,hq=4,hkv=2,sq=70,sk=90", -1, FA_OFFSET, -20);
        OK(fa_tensors_launch(&w.t, w.plan));
        float *lse = get(&w, LSE), *dq = get(&w, GRAD_Q), *dk = get(&w, GRAD_K), *dv = get(&w, GRAD_V);
        cr_expect(lse[19] == -INFINITY && isfinite(lse[20]), "%g %g", lse[19], lse[20]);
        for (size_t k = 0; k < w.t.count[GRAD_Q]; k++)
            cr_assert((dq[k] == 0) == (k / 40 / 4 % 70 < 20) || k / 40 / 4 % 70 == 20, "%s: dQ[%zu] = %g", kernels[i].config, k, dq[k]);
        for (size_t k = 0; k < w.t.count[GRAD_K]; k++) {
            cr_assert((dk[k] == 0) == (k / 40 / 2 % 90 >= 50), "%s: dK[%zu] = %g", kernels[i].config, k, dk[k]);
            cr_assert((dv[k] == 0) == (k / 40 / 2 % 90 >= 50), "%s: dV[%zu] = %g", kernels[i].config, k, dv[k]);
        }
        free(lse), free(dq), free(dk), free(dv);
        world_close(&w);
    }
}

/* Queries from first to last see no key, and their Q, dO and dLSE are NaN. */
static void queries_that_see_nothing(int kernel, const char *rest, int left, int offset, int first, int last)
{
    static const int inputs[] = { Q, GRAD_O, GRAD_LSE }, outputs[] = { GRAD_Q, GRAD_K, GRAD_V };
    world w;
    float *expected[3], *x;
    world_open(&w, kernel, rest, left, FA_OFFSET, offset);
    const cu_driver *d = fa_context_driver(w.ctx);
    fa_problem *p = &w.t.problem;
    OK(fa_tensors_launch(&w.t, w.plan));
    for (int k = 0; k < 3; k++)
        expected[k] = get(&w, outputs[k]);
    for (int k = 0; k < 3; k++) {
        bool heads_first = inputs[k] == GRAD_LSE; /* [b, hq, sq], else [b, sq, hq, width] */
        size_t width = heads_first ? 1 : w.t.count[inputs[k]] / (size_t)p->b / (size_t)p->hq / (size_t)p->sq;
        size_t bytes = heads_first ? 4 : (size_t)fa_dtype_bytes(p->dtype);
        for (int b = 0; b < p->b; b++)
            for (int h = 0; h < p->hq; h++)
                for (int i = first; i <= last; i++) {
                    size_t row = heads_first ? ((size_t)b * (size_t)p->hq + (size_t)h) * (size_t)p->sq + (size_t)i
                                             : ((size_t)b * (size_t)p->sq + (size_t)i) * (size_t)p->hq + (size_t)h;
                    CUdeviceptr to = w.t.at[inputs[k]] + row * width * bytes;
                    OK(fa_driver_check(d, d->cuMemsetD32Async(to, 0x7fff7fff, width * bytes / 4, NULL), "cuMemsetD32Async"));
                }
    }
    OK(fa_tensors_launch(&w.t, w.plan));
    for (int k = 0; k < 3; k++) {
        x = get(&w, outputs[k]);
        cr_expect(!memcmp(x, expected[k], w.t.count[outputs[k]] * sizeof *x), "%s, %s: operand %d has other bits", kernels[kernel].config,
                  rest, outputs[k]);
        for (size_t i = 0; i < w.t.count[outputs[k]]; i++)
            cr_assert(isfinite(x[i]), "%s, %s: operand %d[%zu] = %g", kernels[kernel].config, rest, outputs[k], i, (double)x[i]);
        free(x);
        free(expected[k]);
    }
    world_close(&w);
}

Test(operation_backward, NaN_in_queries_that_see_no_key_reaches_no_gradient)
{
    for (int i = MATRIX; i < KERNELS; i++) {
        if (full() || i % 8 == 1)
            queries_that_see_nothing(i, "d=40,mask=causal,b=2,hq=4,hkv=2,sq=100,sk=70", -1, -30, 0, 29);
        if (full() || i % 8 == 0)
            queries_that_see_nothing(i, "d=24,mask=window,b=1,hq=2,hkv=1,sq=150,sk=90", 10, 20, 80, 149);
        if (kernels[i].sms && (full() || i % 4 == 3))
            queries_that_see_nothing(i, "d=40,mask=causal,features=lengths,b=2,hq=4,hkv=2,sq=100,sk=70", -1, -30, 0, 29);
        if (kernels[i].sms && (full() || i % 8 == 2))
            queries_that_see_nothing(i, "d=24,mask=window,features=lengths,b=3,hq=2,hkv=1,sq=150,sk=90", 10, 20, 80, 149);
    }
}

Test(operation_backward, rows_with_an_LSE_of_minus_infinity_add_nothing)
{
    static const int outputs[] = { GRAD_Q, GRAD_K, GRAD_V };
    for (int i = full() ? 0 : 1; i < KERNELS; i += STEP) {
        world w;
        world_open(&w, i, "d=40,mask=causal,b=1,hq=2,hkv=1,sq=40,sk=50", -1, 0, 0);
        const cu_driver *d = fa_context_driver(w.ctx);
        OK(fa_driver_check(d, d->cuMemsetD32Async(w.t.at[LSE], 0xff800000, w.t.count[LSE], NULL), "cuMemsetD32Async"));
        OK(fa_tensors_launch(&w.t, w.plan));
        for (int k = 0; k < 3; k++) {
            float *x = get(&w, outputs[k]);
            for (size_t j = 0; j < w.t.count[outputs[k]]; j++)
                cr_assert_eq(x[j], 0, "%s: %d[%zu] = %g", kernels[i].config, outputs[k], j, (double)x[j]);
            free(x);
        }
        world_close(&w);
    }
}

/* Of keys that only the last query sees, V is infinite. What the others get of dQ is as if it was not. flash_bwd_wgmma, whose dS is 0 by
 * P alone, promises that of keys that no query sees. */
Test(operation_backward, what_one_query_sees_stays_with_it)
{
    for (int i = 0; i < KERNELS; i += STEP) {
        world w;
        float *x[2];
        if (kernels[i].sms)
            continue;
        world_open(&w, i, "d=40,mask=causal,b=1,hq=2,hkv=1,sq=50,sk=50", -1, 0, 0);
        const cu_driver *d = fa_context_driver(w.ctx);
        int bytes = strstr(kernels[i].types, "fp32") == kernels[i].types ? 4 : 2;
        for (int k = 0; k < 2; k++) {
            if (k)
                OK(fa_driver_check(d,
                                   d->cuMemsetD32Async(w.t.at[V] + (uint64_t)(49 * 40 * bytes), 0x7fc07fc0, (size_t)(40 * bytes / 4), NULL),
                                   "cuMemsetD32Async"));
            OK(fa_tensors_launch(&w.t, w.plan));
            x[k] = get(&w, GRAD_Q);
        }
        cr_expect(isnan(x[1][49 * 80]), "%s", kernels[i].config);
        cr_expect(!memcmp(x[0], x[1], 49 * 80 * sizeof *x[0]), "%s", kernels[i].config);
        free(x[0]), free(x[1]);
        world_close(&w);
    }
}

/* A dense call whose queries, or keys, are none. */
static void expect_zeros(world *w, const fa_args *args, int operand, const char *config)
{
    fa_args a = *args;
    fa_scratch s = { 0 };
    const cu_driver *d = fa_context_driver(w->ctx);
    OK(fa_driver_check(d, d->cuMemsetD32Async(w->t.at[operand], 0x7fc00000, w->t.count[operand], NULL), "cuMemsetD32Async"));
    OK(fa_scratch_launch(&s, w->ctx, w->plan, &a));
    float *x = get(w, operand);
    for (size_t k = 0; k < w->t.count[operand]; k++)
        cr_assert_eq(x[k], 0, "%s: operand %d[%zu] = %g", config, operand, k, (double)x[k]);
    free(x);
    fa_scratch_free(&s, w->ctx);
}

Test(operation_backward, no_query_and_no_key)
{
    for (int i = full() ? 0 : 1; i < KERNELS; i += STEP) {
        world w;
        world_open(&w, i, "d=40,mask=causal,b=2,hq=2,hkv=1,sq=40,sk=50", -1, 0, 0);
        fa_args a = w.t.args;
        a.sq = 0;
        expect_zeros(&w, &a, GRAD_K, kernels[i].config);
        expect_zeros(&w, &a, GRAD_V, kernels[i].config);
        a = w.t.args;
        a.sk = 0;
        expect_zeros(&w, &a, GRAD_Q, kernels[i].config);
        a.sq = 0;
        OK(fa_launch(w.ctx, &a, NULL));
        a = w.t.args;
        a.b = 0;
        OK(fa_launch(w.ctx, &a, NULL));
        world_close(&w);
    }
}

/* Packed sequences without a row, whose tensors are nowhere. */
Test(operation_backward, no_packed_query_and_no_key)
{
    for (int i = 0; i < KERNELS; i++) {
        world w;
        if (!full() && kernels[i].sms % 2 == 0)
            continue;
        world_open(&w, i, "d=40,mask=causal,features=lengths,b=1,hq=2,hkv=1,sq=40,sk=50", -1, 0, 0);
        fa_args a = w.t.args;
        cr_assert_not_null(a.cu_seqlens_q);
        a.sq = a.total_q = 0;
        a.q.ptr = a.o.ptr = a.grad_o.ptr = a.grad_q.ptr = NULL;
        a.lse = NULL;
        expect_zeros(&w, &a, GRAD_K, kernels[i].config);
        expect_zeros(&w, &a, GRAD_V, kernels[i].config);
        a = w.t.args;
        a.sk = 0;
        expect_zeros(&w, &a, GRAD_Q, kernels[i].config);
        world_close(&w);
    }
}

/* A second and a third launch add what the first one wrote. Rows that no sequence has stay 0. */
static void expect_sums(int kernel, const char *rest)
{
    static const int outputs[] = { GRAD_Q, GRAD_K, GRAD_V };
    world w;
    float *once[3], *thrice;
    world_open(&w, kernel, rest, -1, 0, 0);
    const cu_driver *d = fa_context_driver(w.ctx);
    for (int k = 0; k < 3; k++)
        OK(fa_driver_check(d, d->cuMemsetD32Async(w.t.at[outputs[k]], 0, w.t.count[outputs[k]], NULL), "cuMemsetD32Async"));
    OK(fa_tensors_launch(&w.t, w.plan));
    for (int k = 0; k < 3; k++)
        once[k] = get(&w, outputs[k]);
    w.t.args.flags |= FA_ACCUMULATE;
    OK(fa_tensors_launch(&w.t, w.plan));
    OK(fa_tensors_launch(&w.t, w.plan));
    for (int k = 0; k < 3; k++) {
        size_t set = 0;
        thrice = get(&w, outputs[k]);
        for (size_t x = 0; x < w.t.count[outputs[k]]; x++) {
            cr_assert_float_eq(thrice[x], 3 * once[k][x], 1e-6 * (1 + fabs((double)once[k][x])), "%s, %s: %d[%zu]", kernels[kernel].config,
                               rest, k, x);
            set += thrice[x] != 0;
        }
        cr_expect_gt(set, w.t.count[outputs[k]] / 4, "%s, %s: %zu of %zu", kernels[kernel].config, rest, set, w.t.count[outputs[k]]);
        free(thrice);
        free(once[k]);
    }
    world_close(&w);
}

Test(operation_backward, gradients_are_added_where_that_is_asked_for)
{
    for (int i = 0; i < KERNELS; i += STEP)
        expect_sums(i, full() ? "d=40,mask=none,b=1,hq=4,hkv=2,sq=40,sk=70" : "d=40,mask=causal,b=1,hq=4,hkv=2,sq=40,sk=70");
    for (int i = LENGTHS; i < KERNELS; i += full() ? 1 : 8)
        expect_sums(i, "d=40,mask=causal,features=lengths,b=3,hq=2,hkv=1,sq=40,sk=70");
}

/* On chips of one and three SMs, with `all` or in full form of two as well. config: NULL is what fa_launch() chooses, with a class of its
 * own. */
static void equal_bits(const char *text, const char *config, bool all)
{
    static const int outputs[] = { GRAD_Q, GRAD_K, GRAD_V };
    float *first[3] = { 0 };
    for (int sms = 1; sms <= 3; sms += all || full() ? 1 : 2) {
        fa_problem p = problem(text);
        fa_context *ctx = test_hopper_context(NULL, NULL, sms);
        fa_entered in;
        fa_tensors t;
        const fa_plan *plan = NULL;
        OK(fa_context_enter(ctx, &in));
        OK(fa_tensors_open(&t, ctx, &p));
        OK(fa_tensors_random(&t, 9));
        fa_config c = config ? test_config(config) : (fa_config){ .n = 0 };
        if (config)
            OK(fa_plan_make(ctx, &p, &c, NULL, &plan));
        for (int i = 0; i < (full() ? 3 : 2); i++) {
            test_mode(i == 1 ? SIM_LAZY : SIM_EAGER, i == 0 ? SIM_IN_ORDER : SIM_RANDOM, (uint64_t)(sms + i));
            OK(fa_tensors_launch(&t, plan));
            for (int k = 0; k < 3; k++) {
                float *x;
                OK(fa_tensors_get(&t, outputs[k], &x));
                cr_expect(!first[k] || !memcmp(x, first[k], t.count[outputs[k]] * sizeof *x), "%s: %d SMs, launch %d, %d", text, sms, i, k);
                if (first[k])
                    free(x);
                else
                    first[k] = x;
            }
        }
        fa_tensors_close(&t);
        fa_context_leave(ctx, &in);
        fa_destroy(ctx);
    }
    for (int k = 0; k < 3; k++)
        free(first[k]);
}

Test(operation_backward, deterministic_launches_give_equal_bits)
{
    equal_bits("fp32,d=64,mask=causal,op=backward,features=deterministic,b=1,hq=4,hkv=2,sq=100,sk=100", NULL, false);
    equal_bits("bf16,d=64,mask=causal,op=backward,features=deterministic,b=1,hq=4,hkv=2,sq=150,sk=150", NULL, false);
    equal_bits("fp16,d=128,mask=none,op=backward,features=deterministic,grad=fp32,b=1,hq=4,hkv=1,sq=90,sk=150", NULL, false);
    for (int i = 0; i < KERNELS; i += full() ? 1 : 8) {
        char text[160];
        snprintf(text, sizeof text, "%s,d=64,mask=causal,op=backward,features=deterministic,b=1,hq=4,hkv=2,sq=150,sk=170",
                 kernels[i].types);
        if (!kernels[i].sms)
            equal_bits(text, kernels[i].config, false);
    }
}

/* Four tiles of keys at least: more than a chip has SMs, whose blocks draw them in an order that is the chip's. */
Test(operation_backward, tiles_of_keys_have_equal_bits_whoever_draws_them)
{
    for (int i = MATRIX; i < KERNELS; i += full() ? 1 : 8) {
        char text[160], config[200];
        const char *grid = strstr(kernels[i].config, "grid=");
        if (!grid)
            continue;
        snprintf(text, sizeof text, "%s,d=64,mask=causal,op=backward,features=deterministic,b=1,hq=2,hkv=2,sq=150,sk=170",
                 kernels[i].types);
        for (int value = full() ? 0 : 2; value <= 2; value += 2) {
            snprintf(config, sizeof config, "%.*sgrid=%d", (int)(grid - kernels[i].config), kernels[i].config, value);
            equal_bits(text, config, true);
        }
    }
}

/* Slices of groups: the chunk of the workspace is so small that a launch does a few heads. */
Test(operation_backward, groups_in_slices_have_the_bits_of_whole_ones)
{
    static const int outputs[] = { GRAD_Q, GRAD_K, GRAD_V };
    static const struct {
        const char *rest;
        int heads, launches;                                                   /* so many at a time; launches of each kernel */
    } rows[] = { { "d=64,mask=causal,b=2,hq=6,hkv=2,sq=150,sk=170", 5, 3 },    /* one member of four units at a time */
                 { "d=40,dv=24,mask=none,b=1,hq=5,hkv=1,sq=70,sk=150", 3, 2 }, /* three and two of one */
                 { "d=64,mask=window,features=dropout,b=3,hq=4,hkv=1,sq=130,sk=140", 2, 8 } };
    for (int i = MATRIX; i < KERNELS; i++)
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            world w;
            float *whole[3], *x;
            bool spills = kernels[i].sms || strstr(kernels[i].config, "dq=1");
            if (!spills || (!full() && (i % 2 || (size_t)i % 3 != k))) /* by default every second kernel, in turn one row */
                continue;
            world_open(&w, i, rows[k].rest, 60, 0, 0);
            const fa_problem *p = &w.t.problem;
            fa_kernel *kernel = (fa_kernel *)(uintptr_t)w.plan->kernel;
            fa_sizes sizes = fa_sizes_of(p, 1);
            int64_t tile = kernels[i].sms ? 64 : 16, rows_q = (p->sq + tile - 1) / tile * tile, rows_k = (p->sk + tile - 1) / tile * tile;
            int64_t parts = strstr(kernels[i].config, "spread=1") ? 4 * rows_k * (p->d + p->dv) : 0; /* of dK and dV, beside dS */
            for (int slices = 0; slices < 2; slices++) {
                if (slices)
                    kernel->workspace.chunk = rows[k].heads * (2 * rows_q * rows_k + parts);
                fa_portion at = fa_workspace_portion(&kernel->workspace, &sizes);
                cr_expect_eq(fa_portion_launches(&at, &sizes), slices ? rows[k].launches : 1, "%s: %lld units, %lld members", rows[k].rest,
                             (long long)at.units, (long long)at.members);
                OK(fa_tensors_launch(&w.t, w.plan));
                for (int o = 0; o < 3; o++) {
                    x = get(&w, outputs[o]);
                    cr_expect(!slices || !memcmp(x, whole[o], w.t.count[outputs[o]] * sizeof *x), "%s, %s: operand %d has other bits",
                              kernels[i].config, rows[k].rest, outputs[o]);
                    whole[o] = slices ? (free(whole[o]), free(x), NULL) : x;
                }
            }
            world_close(&w);
        }
}

/* The reference on the device stands in for the CPU's, whatever the types of O and of the gradients. */
Test(operation_backward, the_reference_on_the_device_is_the_oracles_equal)
{
    static const char *const texts[] = { "fp32,d=64,mask=causal,op=backward,b=1,hq=2,hkv=1",
                                         "fp32,d=40,dv=24,mask=window,op=backward,features=deterministic,b=1,hq=2,hkv=2" };
    fa_context *ctx = test_context(NULL, NULL);
    for (int i = 0; i < 2; i++) {
        fa_case c = test_case(texts[i], 90, 120);
        fa_config k = test_config("flash_bwd_ffma:br=64,bc=64");
        const fa_plan *plan;
        fa_trial *t;
        fa_verdict v;
        c.window_left = 30;
        OK(fa_plan_make(ctx, &c.problem, &k, NULL, &plan));
        OK(fa_trial_open(&t, ctx, &c, FA_REFERENCE_DEVICE));
        OK(fa_trial_run(t, plan, &v));
        fa_trial_close(t);
    }
    fa_destroy(ctx);
}
