/* Gradients of the operands of score programs, on the simulator: of every kind of index, held against differences of the loss in fp64. */
#include "gen/score/eval.h"
#include "gen/score/program.h"
#include "gen/templates.h"
#include "runtime/args/check.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include "test_full.h"
#include "test_verify_device.h"
#include "verify/operands/number.h"
#include <math.h>

TestSuite(score_gradients, .timeout = 900);

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

enum { B = 2, HQ = 4, HKV = 2, SQ = 70, SK = 90, ELEMENTS = 1 << 17, SAMPLES = 12, WORKSPACE = 32 << 20, SAID = 400 };

static const struct row {
    const char *name, *text, *class, *config;
    int hopper;
    bool lengths, often;
} rows[] = {
    { "alibi and a sink",
      "m = f32 'hq' z = f32 'hq' function score(s, b, h, i, j) return s + m[h] * (j - i - off) end "
      "function sink(b, h, i) return z[h] end",
      "fp32,d=16,mask=causal", "flash_bwd_ffma:br=16,bc=16", 0, false, true },
    { "a softcap's number", "cap = scalar(3, 'float', 0.5, 10) function score(s, b, h, i, j) return cap * tanh_exact(s / cap) end",
      "fp32,d=16,mask=none", "flash_bwd_ffma:br=16,bc=16", 0, false, false },
    { "a table of distances and one of buckets",
      "t = f32 'hq sq+sk-1' u = f32 'hq 7' "
      "function score(s, b, h, i, j) return s + t[h][j - i + sq - 1] + u[h][min(abs(j - i) // 8, 6)] end",
      "fp32,d=16,mask=window", "flash_bwd_ffma:br=32,bc=16", 0, false, true },
    { "the same of sequences",
      "t = f32 'hq sq+sk-1' u = f32 '7' "
      "function score(s, b, h, i, j) return s + t[h][j - i + sq - 1] * u[min(abs(j - i) // 8, 6)] end",
      "fp32,d=16,mask=causal", "naive_bwd:tile=64", 0, true, false },
    { "rows and keys",
      "r = f32 'b sq' k = f32 'hkv sk' z = f32 'b sq' function score(s, b, h, i, j) return s * r[b][i] + k[h // group][j] end "
      "function sink(b, h, i) return z[b][i] * 0.5 end",
      "fp32,d=16,mask=none", "naive_bwd:tile=64", 0, true, true },
    { "an element for each pair",
      "d = f32 'b hq sq sk' e = f32 'sq sk' function score(s, b, h, i, j) return s + d[b][h][i][j] * 0.5 + e[i][j] * s end",
      "fp32,d=16,mask=causal", "flash_bwd_ffma:br=16,bc=16", 0, false, true },
    { "a bf16 table and a mask",
      "t = bf16 'hq 32' w = scalar(9, 'int', 1, 100) function score(s, b, h, i, j) return s + t[h][min(max(i - j, 0), 31)] end "
      "function mask(b, h, i, j) return i - j < w end",
      "bf16,d=20,mask=causal", "flash_bwd_mma:br=32,br_part=32,bc=32,warps=2,twins=0,stages=1,dq=spill,q_br=32,q_bc=16", 0, false, true },
    { "alibi of bf16 products", "m = f32 'b hq' function score(s, b, h, i, j) return 2 * tanh_exact((s + m[b][h] * (j - i)) / 2) end",
      "bf16,d=20,mask=none", "flash_bwd_mma:br=32,br_part=32,bc=32,warps=2,twins=0,stages=1,dq=recompute,q_br=32,q_bc=16", 0, true, false },
    { "rows, keys, distances and buckets under a mask that leaves tiles out",
      "r = f32 'b sq' k = f32 'hq sk' t = f32 'hq sq+sk-1' z = f32 'hq' "
      "function score(s, b, h, i, j) return s * r[b][i] + k[h][j] + t[h][j - i + sq - 1] end "
      "function mask(b, h, i, j) return (i // 64 + j // 64 + h) % 2 == 0 and (i + j) % 5 ~= 0 end "
      "function sink(b, h, i) return z[h] end",
      "fp32,d=16,mask=none", "flash_bwd_ffma:br=16,bc=16", 0, false, true },
    { "pairs under a mask that leaves tiles out, of sequences",
      "d = f32 'b hq sq sk' c = scalar(2, 'float', 1, 9) "
      "function score(s, b, h, i, j) return c * s + d[b][h][i][j] end function mask(b, h, i, j) return i // 64 ~= j // 64 or i == b end",
      "bf16,d=20,mask=causal", "flash_bwd_mma:br=32,br_part=32,bc=32,warps=2,twins=0,stages=1,dq=recompute,q_br=32,q_bc=16", 0, true,
      false },
    { "all kinds, in many steps, beside tables of a mask",
      "r = f32 'b sq' k = f32 'hq sk' t = f32 'hq sq+sk-1' d = f32 'b hq sq sk' z = f32 'hq' x = f32 'b sq' y = f32 'b sk' "
      "function score(s, b, h, i, j) return s * r[b][i] + k[h][j] + t[h][j - i + sq - 1] + d[b][h][i][j] end "
      "function mask(b, h, i, j) return x[b][i] <= 1.5 * y[b][j // 8 * 8] end "
      "function sink(b, h, i) return z[h] end",
      "bf16,d=64,mask=none",
      "flash_bwd_wgmma:br=64,bc=128,twins=0,held=0,schedule=plain,box=64,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4,"
      "spread=2",
      1, false, false },
    { "alibi and a sink on wgmma",
      "m = f32 'hq' z = f32 'hq' function score(s, b, h, i, j) return s + m[h] * (j - i - off) end "
      "function sink(b, h, i) return z[h] end",
      "bf16,d=80,mask=causal",
      "flash_bwd_wgmma:br=64,bc=128,twins=0,held=0,schedule=plain,box=16,stages=2,dq=spill,ds_bufs=0,grid=per_tile,q_br=128,q_stages=4", 1,
      false, true },
};

static int D; /* head_dim of the row at hand */

typedef struct world {
    const fa_score_ir *ir;
    fa_score_data data;
    double *element[FA_SCORE_OPERANDS_MAX];
    float *q, *k, *v, *grad_o, *grad_lse;
    int sq[B], sk[B], mask;
} world;

static double drawn(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / (1 << 23) - 1;
}

static int64_t place_of(const world *w, int k, const int64_t *index)
{
    int64_t at = 0;
    for (int r = 0; r < w->ir->operand[k].rank; r++)
        at = at * w->data.extent[k][r] + index[r];
    return at;
}

static double read_element(void *user, int k, const int64_t *index)
{
    const world *w = user;
    return w->element[k][place_of(w, k, index)];
}

/* sum(dO O) + sum(dLSE LSE). */
static double loss(world *w, float scale)
{
    static double value[FA_SCORE_ROOM];
    const fa_score_ir *ir = w->ir;
    int score = ir->root[FA_SCORE_ROOT_SCORE], mask = ir->root[FA_SCORE_ROOT_MASK], sink = ir->root[FA_SCORE_ROOT_SINK];
    double sum = 0;
    for (int b = 0; b < B; b++)
        for (int h = 0; h < HQ; h++)
            for (int i = 0; i < w->sq[b]; i++) {
                double s[SK], m = -INFINITY, l = 0, dot = 0;
                int64_t row = ((int64_t)b * SQ + i) * HQ + h, at = ((int64_t)b * HQ + h) * SQ + i;
                fa_score_data data = w->data;
                data.sq = w->sq[b], data.sk = w->sk[b], data.off = data.sk - data.sq;
                for (int j = 0; j < w->sk[b]; j++) {
                    int64_t off = data.off, hidden = (w->mask && j > i + off) || (w->mask == FA_MASK_WINDOW && j < i + off - 20);
                    fa_score_pair pair = { b, h, i, j, 0 };
                    s[j] = -INFINITY;
                    if (hidden || (mask >= 0 && fa_score_eval(ir, mask, &data, &pair, value) == 0))
                        continue;
                    for (int c = 0; c < D; c++)
                        pair.s += (double)w->q[row * D + c] * w->k[(((int64_t)b * SK + j) * HKV + h / (HQ / HKV)) * D + c];
                    pair.s *= (double)scale;
                    s[j] = score < 0 ? pair.s : fa_score_eval(ir, score, &data, &pair, value);
                    m = fmax(m, s[j]);
                }
                double z = sink < 0 ? -INFINITY : fa_score_eval(ir, sink, &data, &(fa_score_pair){ b, h, i, 0, 0 }, value);
                m = fmax(m, z);
                if (m == -INFINITY)
                    continue;
                for (int j = 0; j < w->sk[b]; j++) {
                    double e = exp(s[j] - m), of = 0;
                    l += e;
                    for (int c = 0; c < D && e > 0; c++)
                        of += (double)w->grad_o[row * D + c] * w->v[(((int64_t)b * SK + j) * HKV + h / (HQ / HKV)) * D + c];
                    dot += e * of;
                }
                l += exp(z - m);
                sum += dot / l + (double)w->grad_lse[at] * (m + log(l));
            }
    return sum;
}

static float *numbers(size_t n, double size, bool half, uint64_t *state)
{
    float *x = malloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)(size * drawn(state));
        x[i] = half ? fa_number_from_bf16(fa_number_to_bf16(x[i])) : x[i];
    }
    return x;
}

static void *to_device(fa_context *ctx, const void *x, size_t bytes)
{
    void *to;
    OK(fa_alloc(ctx, &to, bytes + 16));
    if (x)
        OK(fa_copy(ctx, to, x, bytes, FA_TO_DEVICE));
    return to;
}

static void *tensor(fa_context *ctx, const float *x, size_t n, bool half)
{
    uint16_t *bits = malloc(n * 2 + 2);
    for (size_t i = 0; half && i < n; i++)
        bits[i] = fa_number_to_bf16(x[i]);
    void *to = to_device(ctx, half ? (const void *)bits : x, n * (half ? 2 : 4));
    free(bits);
    return to;
}

static fa_status launched(fa_context *ctx, fa_gen *g, fa_args *a, const char *config)
{
    fa_problem p = FA_PROBLEM_INIT;
    fa_config c;
    const fa_plan *plan;
    OK(fa_problem_of(a, &p));
    OK(fa_gen_config_parse(g, &c, config));
    OK(fa_plan_make(ctx, &p, &c, NULL, &plan));
    return fa_plan_launch(ctx, plan, a, NULL);
}

/* Of one row: what a launch gives, against differences; the worst over what is accepted, and what it is of. */
static double check(fa_context *ctx, fa_gen *g, void *workspace, const struct row *row, char said[SAID])
{
    double all = 0;
    said[0] = 0;
    static float got[ELEMENTS];
    uint64_t state = (uint64_t)(row - rows) + 77;
    fa_problem class;
    fa_program *program;
    fa_score *score;
    fa_score_value value[FA_SCORE_OPERANDS_MAX];
    world w = { .data = { .group = HQ / HKV, .read = read_element, .user = &w } };
    fa_args a = FA_ARGS_INIT;
    OK(fa_problem_parse(&class, row->class));
    D = class.d;
    const size_t rows_q = (size_t)B * SQ * HQ, nq = rows_q * (size_t)D, nk = (size_t)B * SK * HKV * (size_t)D;
    OK(fa_program_read(&program, "row", row->text, strlen(row->text)));
    OK(fa_score_create(ctx, row->text, &score));
    bool half = class.dtype == FA_BF16;
    w.ir = &program->ir;
    w.mask = class.mask;
    w.q = numbers(nq, 1, half, &state), w.k = numbers(nk, 1, half, &state), w.v = numbers(nk, 1, half, &state);
    w.grad_o = numbers(nq, 1, half, &state), w.grad_lse = numbers(rows_q, 1, false, &state);
    for (int b = 0; b < B; b++)
        w.sq[b] = row->lengths ? SQ - 7 - 30 * b : SQ, w.sk[b] = row->lengths ? SK - 21 * b : SK;
    const int64_t length[FA_SCORE_LENGTHS] = { B, HQ, HKV, SQ, SK, B * SQ, B * SK };
    for (int k = 0; k < program->ir.operands; k++) {
        const fa_score_operand *o = &program->ir.operand[k];
        size_t n = 1;
        value[k] = (fa_score_value)FA_SCORE_VALUE_INIT;
        for (int r = 0; r < o->rank; r++) {
            int64_t extent = o->extent[r].more;
            for (int i = 0; i < FA_SCORE_LENGTHS; i++)
                extent += o->extent[r].times[i] * length[i];
            value[k].extent[r] = (int32_t)(w.data.extent[k][r] = extent);
            n *= (size_t)extent;
        }
        cr_assert_leq(n, ELEMENTS);
        value[k].scalar = w.data.scalar[k] = o->value;
        if (o->type == FA_SCORE_F32)
            value[k].grad_ptr = to_device(ctx, NULL, n * 4);
        if (o->scalar)
            continue;
        bool bf16 = o->element == FA_SCORE_ELEMENT_BF16;
        float *x = numbers(n, 0.3, bf16, &state);
        w.element[k] = malloc(n * sizeof(double));
        for (size_t i = 0; i < n; i++)
            w.element[k][i] = (double)x[i];
        value[k].ptr = tensor(ctx, x, n, bf16);
        free(x);
    }
    a.dtype = class.dtype;
    a.d = D;
    a.b = B, a.hq = HQ, a.hkv = HKV, a.sq = SQ, a.sk = SK;
    a.mask = class.mask;
    a.window_left = 20, a.window_right = 0;
    a.q.ptr = tensor(ctx, w.q, nq, half), a.k.ptr = tensor(ctx, w.k, nk, half), a.v.ptr = tensor(ctx, w.v, nk, half);
    a.o.ptr = to_device(ctx, NULL, nq * 4);
    a.lse = to_device(ctx, NULL, rows_q * 4);
    if (row->lengths)
        a.seqlens_q = to_device(ctx, w.sq, sizeof w.sq), a.seqlens_k = to_device(ctx, w.sk, sizeof w.sk);
    fa_args forward = a;
    a.op = FA_BACKWARD;
    a.flags = FA_DETERMINISTIC;
    a.grad_o.ptr = tensor(ctx, w.grad_o, nq, half);
    a.grad_lse = to_device(ctx, w.grad_lse, rows_q * 4);
    a.grad_q.ptr = to_device(ctx, NULL, nq * 4), a.grad_k.ptr = to_device(ctx, NULL, nk * 4), a.grad_v.ptr = to_device(ctx, NULL, nk * 4);
    fa_score_value given[FA_SCORE_OPERANDS_MAX];
    memcpy(given, value, sizeof given);
    for (int k = 0; k < program->ir.operands; k++)
        given[k].grad_ptr = NULL;
    forward.score = a.score = score;
    forward.score_values = given, a.score_values = value;
    forward.score_value_count = a.score_value_count = program->ir.operands;
    OK(fa_launch(ctx, &forward, NULL));
    a.workspace = workspace;
    a.workspace_size = WORKSPACE;
    if (launched(ctx, g, &a, row->config) != FA_OK) { /* the simulator's checks */
        snprintf(said, SAID, "%s: %s", row->name, fa_last_error());
        return 1e30;
    }
    float scale = (float)(1 / sqrt(D));
    for (int k = 0; k < program->ir.operands; k++) {
        const fa_score_operand *o = &program->ir.operand[k];
        size_t n = 1;
        double most = 0, worst = 0;
        char where[160] = "";
        if (!value[k].grad_ptr)
            continue;
        for (int r = 0; r < o->rank; r++)
            n *= (size_t)value[k].extent[r];
        OK(fa_copy(ctx, got, value[k].grad_ptr, n * 4, FA_FROM_DEVICE));
        for (size_t i = 0; i < n; i++)
            most = fmax(most, fabs((double)got[i]));
        for (size_t i = 0; i < (n < SAMPLES ? n : SAMPLES); i++) {
            size_t at = n <= SAMPLES ? i : (size_t)(n * (i + 0.5 * (drawn(&state) + 1)) / SAMPLES);
            at = at < n ? at : n - 1;
            double *x = o->scalar ? &w.data.scalar[k] : &w.element[k][at], own = *x, step = 1e-4;
            *x = own + step;
            double up = loss(&w, scale);
            *x = own - step;
            double difference = (up - loss(&w, scale)) / (2 * step), far = fabs((double)got[at] - difference);
            *x = own;
            if (!(far <= worst)) {
                worst = isnan(far) ? INFINITY : far;
                snprintf(where, sizeof where, "element %zu of %zu is %.8g, should be %.8g", at, n, (double)got[at], difference);
            }
        }
        worst /= (half ? 1e-2 : 2e-5) * (most + 0.02) + 1e-6;
        if (worst > all) {
            all = worst;
            snprintf(said, SAID, "%s: gradient of %s: %s (largest %.3g)", row->name, o->name, where, most);
        }
    }
    fa_program_free(program);
    fa_score_destroy(score);
    for (int k = 0; k < FA_SCORE_OPERANDS_MAX; k++)
        free(w.element[k]);
    free(w.q), free(w.k), free(w.v), free(w.grad_o), free(w.grad_lse);
    return all;
}

static fa_context *opened(const char *template_dir, int device, fa_gen **g, void **workspace)
{
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    o.cache_dir = "";
    o.template_dir = template_dir;
    test_mode(SIM_LAZY, SIM_RANDOM, 3);
    OK(fa_create_on(&ctx, &o, sim_open(TEST_CHIPS), device));
    OK(fa_gen_open(g, template_dir));
    OK(fa_alloc(ctx, workspace, WORKSPACE));
    OK(fa_workspace_init(ctx, *workspace, WORKSPACE, NULL));
    return ctx;
}

Test(score_gradients, are_differences_of_the_loss)
{
    for (int hopper = 0; hopper < 2; hopper++) {
        fa_gen *g;
        void *workspace;
        char said[SAID];
        fa_context *ctx = opened(NULL, hopper, &g, &workspace);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            if (rows[i].hopper == hopper && (rows[i].often || full()))
                cr_expect_leq(check(ctx, g, workspace, &rows[i], said), 1, "%s", said);
        fa_gen_close(g);
        fa_destroy(ctx);
    }
}

/* ---- launches without a row ---- */

enum { GAP = 5 };

static const struct none {
    int b, sq, sk, flags;
    bool zeros;
} nones[] = {
    { 0, 8, 8, FA_DETERMINISTIC, true },
    { 2, 0, 0, FA_DETERMINISTIC, true },
    { 2, 0, 8, FA_DETERMINISTIC, true },
    { 2, 8, 0, FA_DETERMINISTIC, true },
    { 0, 8, 8, FA_DETERMINISTIC | FA_ACCUMULATE, false },
    { 2, 0, 0, FA_ACCUMULATE, false },
    { 2, 0, 8, FA_ACCUMULATE, false },
};

/* No pair adds to a gradient: it is 0, or what it was; between its elements nothing changes. Of arrays without elements none is written. */
Test(score_gradients, are_zeros_where_no_pair_is)
{
    static const char text[] = "c = scalar(2, 'float', 1, 9) m = f32 'hq 3' t = f32 'hq 2 4' r = f32 'b sq' "
                               "function score(s, b, h, i, j) return c * s + m[h][0] + t[h][1][min(max(j - i, 0), 3)] + r[b][i] end";
    fa_gen *g;
    void *workspace;
    static float was[128], got[128];
    fa_context *ctx = opened(NULL, 0, &g, &workspace);
    fa_score *score;
    OK(fa_score_create(ctx, text, &score));
    for (int i = 0; i < 128; i++)
        was[i] = 1 + (float)i;
    for (size_t n = 0; n < sizeof nones / sizeof *nones; n++) {
        const struct none *row = &nones[n];
        fa_score_value value[4] = { FA_SCORE_VALUE_INIT, FA_SCORE_VALUE_INIT, FA_SCORE_VALUE_INIT, FA_SCORE_VALUE_INIT };
        fa_args a = FA_ARGS_INIT;
        static const float numbers[4096];
        a.op = FA_BACKWARD, a.dtype = FA_F32, a.grad_dtype = FA_F32, a.d = 16, a.b = row->b, a.hq = a.hkv = 4, a.sq = row->sq;
        a.sk = row->sk, a.flags = row->flags;
        fa_tensor *tensors[] = { &a.q, &a.k, &a.v, &a.o, &a.grad_o, &a.grad_q, &a.grad_k, &a.grad_v };
        for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
            tensors[i]->ptr = to_device(ctx, numbers, sizeof numbers);
        a.lse = to_device(ctx, numbers, 1024);
        value[0].scalar = 2;
        float *grad = to_device(ctx, was, sizeof was), *one = to_device(ctx, was, 4), *none = to_device(ctx, was, 4);
        value[1].ptr = value[2].ptr = value[3].ptr = to_device(ctx, numbers, sizeof numbers);
        value[1].extent[0] = value[2].extent[0] = 4, value[1].extent[1] = 3, value[2].extent[1] = 2, value[2].extent[2] = 4;
        value[3].extent[0] = row->b, value[3].extent[1] = row->sq;
        value[0].grad_ptr = one;
        value[1].grad_ptr = grad, value[1].grad_stride[0] = 3 + GAP, value[1].grad_stride[1] = 1; /* rows with gaps, up to 27 */
        value[2].grad_ptr = grad + 32;                                                            /* packed */
        value[3].grad_ptr = row->sq && row->b ? grad + 96 : none;
        a.score = score, a.score_values = value, a.score_value_count = 4;
        OK(fa_launch(ctx, &a, NULL));
        OK(fa_copy(ctx, got, grad, sizeof got, FA_FROM_DEVICE));
        for (int i = 0; i < 64; i++) {
            bool element = i < 32 ? i % (3 + GAP) < 3 : true;
            cr_expect_eq(got[i], element && row->zeros ? 0 : was[i], "row %zu: number %d is %g", n, i, (double)got[i]);
        }
        for (int i = 64; i < 96; i++)
            cr_expect_eq(got[i], was[i], "row %zu: number %d is %g", n, i, (double)got[i]);
        OK(fa_copy(ctx, got, one, 4, FA_FROM_DEVICE));
        cr_expect_eq(got[0], row->zeros ? 0 : was[0]);
        OK(fa_copy(ctx, got, none, 4, FA_FROM_DEVICE));
        cr_expect_eq(got[0], was[0], "row %zu: of an array without elements", n);
    }
    fa_gen_close(g);
    fa_destroy(ctx);
}

/* ---- faults ---- */

/* clang-format off */
static const struct {
    const char *name, *find, *replace;
    int row; /* of rows: which notices */
    const char *file; /* NULL: grad_operands.cu */
} faults[] = {
    { "the sink's sign", "$(pr.dscore(\"e\", \"0.f\", \"delta_of(p, sequence, head, row)\"))", "e * delta_of(p, sequence, head, row)",
      0, NULL },
    { "a sum without one of its lanes", "for (int lane = 8; lane > 0; lane /= 2) all +=", "for (int lane = 4; lane > 0; lane /= 2) all +=",
      0, NULL },
    { "dP left out", "$(pr.dscore(\"e\", pr.kept(\"dp[i][j]\"), \"delta\"))", "$(pr.dscore(\"e\", \"0.f\", \"delta\"))", 0, NULL },
    { "a diagonal beside", "const int key = own + row - half * PAIRS;", "const int key = own + row + 1 - half * PAIRS;", 2, NULL },
    { "half of a band", "half < 2", "half < 1", 2, NULL },
    { "distances below 0 with those above", "(x < 0 ?", "(x < -1000000 ?", 2, NULL },
    { "the distance that an element says, and no other", "end = min(end, $(fixed.x) + 1)", "end = min(end, $(fixed.x))", 2, NULL },
    { "rows past the length", "row < sequence.sq() && lse != -infinity() ? ", "true ? ", 4, NULL },
    { "queries of a key in one warp alone", "for (int i = 0; i < 16; i++) all += shared", "for (int i = 0; i < 8; i++) all += shared",
      4, NULL },
    { "keys of another head", "plane * p.sk + x]", "plane / p.group * p.group * p.sk + x]", 4, NULL },
    { "one head where all add up", "head < $(over.h < 0 and \"p.hq\" or \"h0 + 1\")", "head < h0 + 1", 5, NULL },
    { "the mask of the program", "$(pr.and_sees(\"head\", \"in_row\", \"in_key\"))", "", 6, NULL },
    { "D of another row of sixteen", "row % 8 / 2 * 4 + row / 8 % 2 * 2 + row % 2", "row % 16", 11, NULL },
    { "the first half of the keys twice", "first_key = threadIdx.x / 128 * 32;", "first_key = 0;", 6, "pair_products.cu" },
    { "columns past 64", "k0 < WIDTH; k0 += PAIRS_DEPTH", "k0 < min(WIDTH, PAIRS_DEPTH); k0 += PAIRS_DEPTH", 11, "pair_products.cu" },
    { "tiles of a key by another's marks", "marks_of_keys(p, sequence, head, key0, PAIRS).some(row0, PAIRS)",
      "marks_of_keys(p, sequence, head, key0, PAIRS).some(key0, PAIRS)", 8, NULL },
    { "a band's keys of the first tile alone", "between(max(key0, 0), key0 + PAIRS - 1)", "between(max(key0, 0), max(key0, 0))", 8, NULL },
    { "tiles of a query by another's marks", "marks_of_queries(p, sequence, head, row0, PAIRS).some(key0, PAIRS)",
      "marks_of_queries(p, sequence, head, row0, PAIRS).some(row0, PAIRS)", 8, NULL },
};
/* clang-format on */
#define FAULTS (sizeof faults / sizeof *faults)
#define EVERY 12 /* of faults, but in full form */

static void plant(size_t n)
{
    const fa_template_file *t = fa_template_files;
    const char *file = faults[n].file ? faults[n].file : "grad_operands.cu";
    char path[512];
    while (t->name && strcmp(t->name, file) != 0)
        t++;
    cr_assert_not_null(t->name);
    const char *at = strstr(t->bytes, faults[n].find);
    cr_assert_not_null(at, "%s: the text is not there any more: %s", faults[n].name, faults[n].find);
    snprintf(path, sizeof path, "%s/%s", scratch, file);
    FILE *out = fopen(path, "w");
    cr_assert_not_null(out);
    fprintf(out, "%.*s%s%s", (int)(at - t->bytes), t->bytes, faults[n].replace, at + strlen(faults[n].find));
    fclose(out);
}

Test(score_gradients, faults_are_noticed)
{
    for (size_t n = 0; n < FAULTS; n += full() ? 1 : EVERY) {
        fa_gen *g;
        void *workspace;
        char said[SAID];
        const struct row *row = &rows[faults[n].row];
        scratch_make();
        plant(n);
        fa_context *ctx = opened(scratch, row->hopper, &g, &workspace);
        cr_expect_gt(check(ctx, g, workspace, row, said), 1, "%zu: %s is right all the same", n, faults[n].name);
        fa_gen_close(g);
        fa_destroy(ctx);
        scratch_remove();
    }
}

/* ---- what is refused ---- */

static const char many[] = "rel = f32 'hq 32' idx = i32 'b sq sk' n = scalar(3, 'int', 1, 9) c = scalar(2, 'float', 1, 9) m = f32 'hq 4' "
                           "function score(s, b, h, i, j) return c * tanh(s / c) + rel[h][idx[b][i][j]] + m[h][min(n, 3)] + m[h][0] end";
enum { REL, IDX, N, CAP, M, OPERANDS };

static fa_score_value given_value[OPERANDS];
static fa_args args;

/* clang-format off */
static void grads(int k, uintptr_t at) { given_value[k].grad_ptr = (void *)at; }
static void misaligned(void) { grads(M, 0x90002); }
static void no_stride(void) { grads(M, 0x90000), given_value[M].grad_stride[0] = 4; }
static void no_index(void) { grads(CAP, 0x90000), given_value[CAP].grad_stride[0] = 1; }
static void no_second_index(void) { grads(M, 0x90000), given_value[M].grad_stride[2] = 1; }
static void of_an_integer(void) { grads(N, 0x90000); }
static void of_integers(void) { grads(IDX, 0x90000); }
static void by_a_lookup(void) { grads(REL, 0x90000); }
static void over_an_operand(void) { grads(M, (uintptr_t)given_value[REL].ptr + 8); }
static void over_a_gradient(void) { grads(M, (uintptr_t)args.grad_k.ptr); }
static void over_another(void) { grads(M, 0x90000), grads(CAP, 0x9000c); }
static void forward(void)
{
    grads(M, 0x90000);
    args.op = FA_FORWARD;
    args.grad_o = args.grad_q = args.grad_k = args.grad_v = (fa_tensor)FA_TENSOR_INIT;
}
static void a_mask_has_none(void) { grads(IDX, 0x90004); }
static void stride_alone(void) { given_value[M].grad_stride[0] = 1; }
/* clang-format on */

static const struct {
    void (*change)(void);
    fa_status status;
    const char *says;
} bad[] = {
    { misaligned, FA_INVALID, "args: score_values[4].grad_ptr is set (m); accepted: a multiple of 4 bytes" },
    { no_stride, FA_INVALID, "args: score_values[4].grad_stride[1] is 0 (m); accepted: a stride for each index, or 0 in all for packed" },
    { no_index, FA_INVALID, "args: score_values[3].grad_stride is set (c); accepted: 0, as the operand has no such index" },
    { no_second_index, FA_INVALID, "args: score_values[4].grad_stride is set (m); accepted: 0, as the operand has no such index" },
    { of_an_integer, FA_INVALID, "args: score_values[2].grad_ptr is set (n); accepted: NULL, as the operand has no gradient" },
    { of_integers, FA_INVALID, "args: score_values[1].grad_ptr is set (idx); accepted: NULL, as the operand has no gradient" },
    { by_a_lookup, FA_UNSUPPORTED,
      "gradient of rel is not deterministic: index depends on idx[b][i][j]; accepted: an index of b, h and one of" },
    { over_an_operand, FA_INVALID, "args: score_values[4].grad_ptr overlaps score_values[0]; accepted: bytes of its own" },
    { over_a_gradient, FA_INVALID, "grad_k overlaps score_values[4].grad_ptr" },
    { over_another, FA_INVALID, "score_values[3].grad_ptr overlaps score_values[4].grad_ptr" },
    { forward, FA_INVALID, "args: score_values[4].grad_ptr is set (m); accepted: NULL, but for gradients" },
    { a_mask_has_none, FA_INVALID, "score_values[1].grad_ptr is set (idx)" },
    { stride_alone, FA_INVALID, "args: score_values[4].grad_stride is set (m); accepted: 0 without grad_ptr" },
};

static void good_args(fa_score *score)
{
    static const int32_t extents[OPERANDS][4] = { { 4, 32 }, { 1, 8, 8 }, { 0 }, { 0 }, { 4, 4 } };
    args = (fa_args)FA_ARGS_INIT;
    args.op = FA_BACKWARD;
    args.dtype = FA_F32;
    args.d = 16;
    args.b = 1, args.hq = args.hkv = 4, args.sq = args.sk = 8;
    args.score = score;
    args.score_values = given_value;
    args.score_value_count = OPERANDS;
    fa_tensor *tensors[] = { &args.q, &args.k, &args.v, &args.o, &args.grad_o, &args.grad_q, &args.grad_k, &args.grad_v };
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        tensors[i]->ptr = (void *)(uintptr_t)(0x10000 + i * 0x1000);
    args.lse = (float *)(uintptr_t)0x30000;
    for (int k = 0; k < OPERANDS; k++) {
        given_value[k] = (fa_score_value)FA_SCORE_VALUE_INIT;
        memcpy(given_value[k].extent, extents[k], sizeof given_value[k].extent);
        given_value[k].ptr = extents[k][0] ? (void *)(uintptr_t)(0x40000 + k * 0x1000) : NULL;
    }
    given_value[N].scalar = given_value[CAP].scalar = 2;
}

Test(score_gradients, bad_input_is_refused)
{
    fa_context *ctx = test_context(NULL, "");
    fa_score *score;
    fa_call call;
    OK(fa_score_create(ctx, many, &score));
    good_args(score);
    grads(M, 0x90000), grads(CAP, 0x90100);
    OK(fa_check_args(&call, &args, true));
    cr_expect_eq(call.problem.score_grads, 1 << M | 1 << CAP);
    cr_expect_eq(call.values.score[M].grad, 0x90000);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        good_args(score);
        bad[i].change();
        cr_expect_eq(fa_check_args(&call, &args, true), bad[i].status, "row %zu: %s", i, fa_last_error());
        cr_expect(strstr(fa_last_error(), bad[i].says), "row %zu\n  %s\n  %s", i, bad[i].says, fa_last_error());
    }
    fa_destroy(ctx);
}

/* The word of problems: bits of operands that have a gradient, of the backward pass with a program. */
Test(score_gradients, problems_name_operands)
{
    static const char deep[] = "t = f32 'hq 64' function score(s, b, h, i, j) for n = 0, 13 do s = s + t[h][n] end return s end";
    fa_context *ctx = test_context(NULL, "");
    fa_score *score[2];
    OK(fa_score_create(ctx, many, &score[0]));
    OK(fa_score_create(ctx, deep, &score[1]));
    fa_call call;
    good_args(score[0]);
    OK(fa_check_args(&call, &args, true));
    const struct {
        int32_t grads, op;
        const char *says;
    } asked[] = {
        { 1 << M, FA_BACKWARD, NULL },
        { 1 << M, FA_FORWARD, "score_grads is 0x10; accepted without op=backward: 0" },
        { 1 << 7, FA_BACKWARD, "score_grads is 0x80; accepted: bits of the program's 5 operands" },
        { 1 << N, FA_BACKWARD, "score_grads has operand 2, n, which has no gradient; accepted: numbers with a fraction" },
    };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        fa_problem p = call.problem, out;
        p.op = asked[i].op;
        p.grad_dtype = p.op == FA_BACKWARD ? p.grad_dtype : 0;
        p.score_grads = asked[i].grads;
        cr_expect_eq(fa_problem_normalize(&out, &p), asked[i].says ? FA_INVALID : FA_OK, "row %zu: %s", i, fa_last_error());
        cr_expect(!asked[i].says || strstr(fa_last_error(), asked[i].says), "row %zu: %s", i, fa_last_error());
    }
    good_args(score[1]);
    args.score_value_count = 1;
    given_value[0].extent[1] = 64;
    grads(0, 0x90000);
    cr_expect_eq(fa_check_args(&call, &args, true), FA_UNSUPPORTED);
    cr_expect(strstr(fa_last_error(), "at more than 12 places"), "%s", fa_last_error());
    fa_problem plain = FA_PROBLEM_INIT, out;
    plain.dtype = FA_F32, plain.d = 16, plain.op = FA_BACKWARD, plain.score_grads = 1;
    cr_expect_eq(fa_problem_normalize(&out, &plain), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "score_grads is 0x1; accepted without a score program: 0"), "%s", fa_last_error());
    fa_destroy(ctx);
}
