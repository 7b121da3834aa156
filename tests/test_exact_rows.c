/* Rows that kernels compute again: any finite logits give what scores in fp32 give, and NaN or infinity in a row of V stays with the
 * queries that may see that key. Held against fp64, in every family of the forward pass and each way in which its rows end. */
#include "forward.h"
#include "test_full.h"
#include "test_template_edit.h"
#include "test_verify_device.h"
#include "verify/truth/oracle.h"
#include <criterion/parameterized.h>
#include <math.h>

#define OK(x) cr_assert_eq((x), FA_OK, "%s", fa_last_error())
#define COUNT(a) (sizeof(a) / sizeof *(a))
enum { LSE = FA_TENSORS };

#define WGMMA "flash_fwd_wgmma:ctas=1,feeder=40,sections=1,cluster=1,exp=0,"
#define SPLIT "split_wgmma:ctas=1,feeder=40,q_bufs=1,ahead=0,sections=1,cluster=1,rescale=4,exp=0,convert=1,o_path=0,"
#define DECODE "ctas=1,kv_lanes=1,sm_shares=1,min_turns=1"
static const struct {
    const char *types, *features, *config;
    int sq, sk;
    bool hopper;
} kernels[] = {
    { "bf16,d=64", "", WGMMA "br=128,bc=64,box=64,stages_k=2,stages_v=2,q_bufs=2,ahead=1,schedule=0,convert=1,grid=2,rescale=3,o_path=2",
      200, 200, true },
    { "bf16,d=72", "", WGMMA "br=64,bc=48,box=16,stages_k=2,stages_v=2,q_bufs=1,ahead=0,schedule=0,convert=1,grid=2,rescale=3,o_path=0",
      150, 170, true },
    { "fp16,d=32", "", WGMMA "br=128,bc=64,box=32,stages_k=2,stages_v=2,q_bufs=1,ahead=0,schedule=1,convert=0,grid=0,rescale=2,o_path=1",
      200, 150, true },
    { "bf16,d=64", "lengths",
      WGMMA "br=64,bc=64,box=64,stages_k=2,stages_v=2,q_bufs=1,ahead=0,schedule=0,convert=1,grid=2,rescale=3,o_path=2", 90, 400, true },
    { "bf16,d=64", "lengths+pages",
      WGMMA "br=64,bc=64,box=64,stages_k=2,stages_v=2,q_bufs=1,ahead=0,schedule=0,convert=1,grid=2,rescale=0,o_path=0", 90, 300, true },
    { "bf16,d=64", "dropout",
      WGMMA "br=64,bc=64,box=64,stages_k=2,stages_v=2,q_bufs=1,ahead=0,schedule=0,convert=1,grid=2,rescale=3,o_path=2", 100, 130, true },
    { "bf16,d=40", "", "flash_fwd_mma:br=64,bc=32,warps=2,stages_k=1,stages_v=1,order=0,q_regs=0,pack=1,lag=8,ctas=1", 70, 130, false },
    { "fp16,d=36,align=8", "", "flash_fwd_mma:br=64,bc=48,warps=4,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=0,ctas=1", 70, 130,
      false },
    { "tf32,d=32", "", "flash_fwd_mma:br=32,bc=32,warps=2,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=8,ctas=1", 70, 130, false },
    { "bf16,d=64", "lengths", "flash_fwd_mma:br=64,bc=32,warps=4,stages_k=1,stages_v=1,order=0,q_regs=0,pack=1,lag=8,ctas=1", 80, 300,
      false },
    { "fp32,d=40", "", "flash_fwd_ffma:br=32,bc=32,warps=2,pack=1", 70, 130, false },
    { "fp32,d=33,align=4", "dropout", "flash_fwd_ffma:br=64,bc=64,warps=4,pack=0", 70, 130, false },
    { "fp32,d=40", "", "naive:tile=64", 70, 130, false },
    { "bf16,d=40", "", "tiled:tile=32,row=2048", 70, 130, false },
    { "fp32,d=40", "", "flash1_fwd:br=16,bc=32", 70, 130, false },
    { "bf16,d=40,o=bf16", "", "flash1_fwd:br=32,bc=16", 70, 130, false },
    { "bf16,d=64", "", "decode_mma:br=16,bk=32,row_warps=1,key_warps=2,stages=2,combine=0," DECODE, 5, 400, true },
    { "bf16,d=64", "lengths+pages", "decode_mma:br=16,bk=32,row_warps=1,key_warps=2,stages=2,combine=0," DECODE, 5, 400, true },
    { "bf16,d=64", "lengths+batch-invariant", "decode_mma:br=16,bk=32,row_warps=1,key_warps=2,stages=2,combine=0," DECODE, 5, 700, true },
    { "fp16,d=64", "", "decode_ffma:br=2,bk=16,row_warps=1,key_warps=2,dot_lanes=4,stages=2,combine=1," DECODE, 3, 300, true },
    { "bf16,d=64", "", "decode_wgmma:br=64,bk=64,row_warps=4,key_warps=1,stages=2,combine=0," DECODE, 16, 300, true },
    { "bf16,d=64", "lengths", "mixed_mma:br=64,bc=32,warps=4,stages_k=1,stages_v=1,order=0,q_regs=1,pack=1,lag=8,ctas=1", 60, 300, false },
    { "bf16,d=64", "lengths",
      "mixed_wgmma:br=128,ctas=1,feeder=40,schedule=1,bc=64,box=64,stages_k=2,stages_v=2,q_bufs=1,ahead=0,"
      "grid=2,sections=1,cluster=1,rescale=3,exp=0,convert=1,o_path=0",
      90, 300, true },
    { "bf16,d=64", "", WGMMA "br=128,bc=64,box=64,stages_k=2,stages_v=2,q_bufs=1,ahead=0,schedule=1,convert=1,grid=2,rescale=4,o_path=2",
      200, 330, true },
    { "bf16,d=64", "",
      "flash_fwd_wgmma:ctas=1,feeder=40,sections=1,cluster=1,exp=16,br=64,bc=80,box=64,stages_k=2,stages_v=2,q_bufs=2,ahead=1,schedule=0,"
      "convert=1,grid=2,rescale=4,o_path=1",
      100, 250, true },
    { "bf16,d=64", "lengths",
      WGMMA "br=64,bc=64,box=64,stages_k=2,stages_v=2,q_bufs=1,ahead=0,schedule=0,convert=1,grid=2,rescale=4,o_path=2", 60, 400, true },
    { "bf16,d=72", "lengths",
      WGMMA "br=64,bc=48,box=64,stages_k=2,stages_v=2,q_bufs=1,ahead=0,schedule=0,convert=1,grid=2,rescale=4,o_path=2", 60, 400, true },
    { "bf16,d=64", "", SPLIT "br=64,bc=64,box=64,stages_k=2,stages_v=2,schedule=0,grid=2,parts=3,combine=1", 45, 400, true },
    { "bf16,d=72", "", SPLIT "br=128,bc=48,box=16,stages_k=2,stages_v=2,schedule=1,grid=1,parts=3,combine=0", 60, 400, true },
    /* tiles with rows that see no key beside others that do */
    { "bf16,d=64", "", WGMMA "br=128,bc=64,box=64,stages_k=2,stages_v=2,q_bufs=1,ahead=0,schedule=1,convert=1,grid=2,rescale=4,o_path=2",
      200, 110, true },
};

/* Inputs: multiples of 1/8 out of a seed, so that products are exact, and what is out of the ordinary. */
typedef struct inputs {
    fa_problem problem;
    int kind, odd; /* odd: a row of V, from the last, with a value that is not finite; -1: none */
    float value;
} inputs;
enum { ORDINARY, HUGE_ROWS, NO_HUGE_ROWS, HUGE_LATE, ALL_LOW, FROM_FAR, TO_FAR, FROM_LOW, RISING, STEEP, BEYOND };

/* Scores close to -2^24 in log2 units: those of eight keys are on this side of it, and all others, a little beyond, still weigh. Three
 * columns whose products are multiples of 8 make one, the coarse one first. */
static float near_far(const fa_problem *p, bool q, size_t column, size_t key, bool near)
{
    static const int coarse[] = { 8192, 64, 8 }, step[] = { 64, 32, 1 };
    if (column > 2)
        return 0;
    if (q)
        return (float)-coarse[column];
    int rest = (int)(0x1p24 * sqrt(p->d) / 1.4426950408889634), k = 0;
    for (size_t i = 0; i <= column; i++)
        k = rest / (coarse[i] * step[i]) * step[i], rest -= coarse[i] * k;
    const int by = (int)(key % 2);
    return (float)(column < 2 ? k : near ? k - by : k + 2 + by);
}

static float value(void *user, int operand, size_t i)
{
    const inputs *in = user;
    const fa_problem *p = &in->problem;
    const bool q = operand == FA_Q;
    const size_t width = (size_t)(operand == FA_V ? p->dv : p->d), heads = (size_t)(q ? p->hq : p->hkv), row = i / width / heads;
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u + (uint64_t)operand * 0xd1342543de82ef95u;
    x ^= x >> 29, x *= 0xbf58476d1ce4e5b9u, x ^= x >> 32;
    const float ordinary = (float)(int)(x % 17) / 8 - 1;
    if (operand == FA_V)
        return in->odd >= 0 && row % (size_t)p->sk == (size_t)(p->sk - 1 - in->odd) && i % width == 3 ? in->value : ordinary;
    const float huge = p->dtype == FA_F16 ? 8192 : 0x1p20f, lowest = p->dtype == FA_F16 ? 32768 : 0x1p20f;
    const size_t keys = (size_t)p->sk, key = row % keys;
    switch (in->kind) {
    case HUGE_ROWS: /* of every three queries one; keys are large, the other queries small by as much */
    case NO_HUGE_ROWS:
        return ordinary * (!q ? huge : row % 3 == 0 && in->kind == HUGE_ROWS ? huge : 1 / huge);
    case HUGE_LATE: /* one key in 37 has large scores, either way: maxima rise from ordinary to huge ones, and all are ties */
        return q                ? (i % width == 0 ? (row % 2 ? -16384 : 16384) : ordinary / 8)
               : i % width == 0 ? (row % 37 == 5 ? 32768 : 0)
               : row % 37 == 5  ? 0
                                : ordinary;
    case ALL_LOW: /* about -1e10, some of them the same */
        return i % width == 0 ? (q ? -65536.f / 2 : 65536.f / 4 * (float)(1 + row % 5 / 4)) : 0;
    case FROM_FAR:
    case TO_FAR:
        return near_far(p, q, i % width, key, in->kind == FROM_FAR ? key + 8 >= keys : key < 8);
    case FROM_LOW: /* far below but for a third of the keys */
        if (i % width == 0)
            return q ? -lowest * (1 + (float)(row % 7) / 8) : key / (keys / 3) != 1 ? lowest : 0;
        return q ? ordinary / 8 : key / (keys / 3) != 1 ? 0 : ordinary;
    case RISING: /* from about 0 at the last key to 2^115 times as much at the first; of later queries from 2^150 down to 2^35 */
    case STEEP:  /* ten times as many powers of two, of which a block of keys has more than fp32 holds */
        if (i % width == 0)
            return q ? (row % (size_t)p->sq < 64 ? 16 : -16) : (float)((keys - 1 - key) * (in->kind == STEEP ? 400 : 40) / keys);
        if (i % width == 1)
            return q ? (row % (size_t)p->sq < 64 ? 0 : 16) : 52;
        return ordinary / 8;
    case BEYOND:
        return i % width == 0 ? 0x1p70f * (q ? -1 : 1) : 0;
    default:
        return ordinary;
    }
}

/* Which folder of templates the kernels come from; NULL: those in the library. */
static const char *templates;

typedef struct outcome {
    float *o, *lse;
    double *want_o, *want_lse;
    size_t rows, width;
} outcome;

/* What scores that rise may make infinite. */
static bool keeps_maximum(int kernel)
{
    return strstr(kernels[kernel].config, "rescale=4") != NULL;
}

/* Parts of which all scores are beyond 2^24 are added to others near it as they are. */
static bool adds_parts(int kernel)
{
    return strstr(kernels[kernel].config, "parts=") != NULL;
}

static void launch(int kernel, const char *mask, inputs *in, outcome *out)
{
    char text[200];
    const char *features = kernels[kernel].features;
    const int sms = keeps_maximum(kernel) && (*features || adds_parts(kernel)) ? 8 : 2; /* so many that tiles come in parts */
    fa_context *ctx = kernels[kernel].hopper ? test_hopper_context(templates, NULL, sms) : test_context(templates, NULL);
    fa_problem *p = &in->problem;
    fa_config c = test_config(kernels[kernel].config);
    const fa_plan *plan = NULL;
    fa_tensors t;
    fa_entered entered;
    fa_sequences sequences;
    snprintf(text, sizeof text, "%s,mask=%s,b=2,hq=2,hkv=1,sq=%d,sk=%d%s%s%s", kernels[kernel].types, mask, kernels[kernel].sq,
             kernels[kernel].sk, *features ? ",features=" : "", features, strstr(features, "pages") ? ",page=16" : "");
    OK(fa_problem_parse(p, text));
    OK(fa_context_enter(ctx, &entered));
    OK(fa_tensors_open(&t, ctx, p));
    if (!strcmp(mask, "window"))
        t.args.window_left = 20, t.args.window_right = 3;
    OK(fa_tensors_fill(&t, value, in));
    OK(fa_plan_make(ctx, p, &c, NULL, &plan));
    OK(fa_tensors_launch(&t, plan));
    OK(fa_tensors_get(&t, FA_O, &out->o));
    OK(fa_tensors_get(&t, LSE, &out->lse));
    OK(fa_tensors_sequences(&t, &sequences));
    float *inputs_of[3];
    for (int x = 0; x < 3; x++)
        OK(fa_tensors_get(&t, x, &inputs_of[x]));
    out->rows = t.count[LSE];
    out->width = (size_t)p->dv;
    out->want_o = calloc(t.count[FA_O], sizeof(double));
    out->want_lse = calloc(t.count[LSE], sizeof(double));
    const fa_dropout dropout = fa_dropout_of(t.args.dropout, t.rng[0], t.rng[1]);
    const fa_attention a = { .b = p->b,
                             .hq = p->hq,
                             .hkv = p->hkv,
                             .sq = p->sq,
                             .sk = p->sk,
                             .d = p->d,
                             .dv = p->dv,
                             .scale = t.args.scale > 0 ? t.args.scale : (float)(1 / sqrt(p->d)),
                             .q = inputs_of[0],
                             .k = inputs_of[1],
                             .v = inputs_of[2],
                             .sequences = &sequences,
                             .dropout = t.args.dropout > 0 ? &dropout : NULL };
    OK(fa_oracle_exact(&a, out->want_o, out->want_lse));
    for (int x = 0; x < 3; x++)
        free(inputs_of[x]);
    fa_sequences_close(&sequences);
    fa_tensors_close(&t);
    fa_context_leave(ctx, &entered);
    fa_destroy(ctx);
}
static void drop(outcome *o)
{
    free(o->o), free(o->lse), free(o->want_o), free(o->want_lse);
}

/* The places of what is not finite are equal, and the rest is within what 16 bits of P and O allow. False: how says where not. */
static bool right(int kernel, const char *mask, inputs in, char how[400])
{
    outcome r;
    size_t wrong = 0, wrong_lse = 0, at = 0, at_lse = 0;
    launch(kernel, mask, &in, &r);
    for (size_t i = 0; i < r.rows * r.width; i++)
        if (isfinite(r.o[i]) != isfinite(r.want_o[i]) || fabs(r.o[i] - r.want_o[i]) > 0.03)
            at = wrong++ ? at : i;
    for (size_t i = 0; i < r.rows; i++)
        if (r.lse[i] != r.want_lse[i] && !(isfinite(r.want_lse[i]) && fabs(r.lse[i] - r.want_lse[i]) <= 0.01 + 1e-5 * fabs(r.want_lse[i])))
            at_lse = wrong_lse++ ? at_lse : i;
    snprintf(how, 400, "%zu of O, the first in column %zu of row %zu: %g, wanted %g; %zu of LSE, the first is %zu: %.9g, wanted %.9g",
             wrong, at % r.width, at / r.width, (double)r.o[at], r.want_o[at], wrong_lse, at_lse, (double)r.lse[at_lse],
             r.want_lse[at_lse]);
    drop(&r);
    return !wrong && !wrong_lse;
}

static const struct {
    const char *name;
    inputs in;
} scenes[] = {
    { "ordinary inputs", { .odd = -1 } },
    { "NaN in V", { .odd = 1, .value = NAN } },
    { "-inf in V", { .odd = 40, .value = -INFINITY } },
    { "huge rows", { .odd = -1, .kind = HUGE_ROWS } },
    { "huge scores late", { .odd = -1, .kind = HUGE_LATE } },
    { "all scores low", { .odd = -1, .kind = ALL_LOW } },
    { "scores from far, last keys near", { .odd = -1, .kind = FROM_FAR } }, /* but where scores are rounded once they have their scale */
    { "scores from far, first keys near", { .odd = -1, .kind = TO_FAR } },
    { "few scores that are not low", { .odd = -1, .kind = FROM_LOW } },
    { "scores that rise, or fall, from block to block", { .odd = -1, .kind = RISING } },
    { "scores that rise by more than fp32 holds", { .odd = -1, .kind = STEEP } },
};
static const char *const masks[] = { "causal", "window", "none" };

static bool rounds_scaled(int kernel)
{
    static const char *const families[] = { "naive", "tiled", "flash1" };
    for (size_t i = 0; i < COUNT(families); i++)
        if (!strncmp(kernels[kernel].config, families[i], strlen(families[i])))
            return true;
    return false;
}

ParameterizedTestParameters(exact_rows, against_fp64)
{
    static int numbers[COUNT(kernels)];
    size_t n = 0;
    for (size_t i = 0; i < COUNT(kernels); i++)
        if (full() || i % 6 == 0 || keeps_maximum((int)i)) /* by default every sixth: most of the time is compiling */
            numbers[n++] = (int)i;
    return cr_make_param_array(int, numbers, n);
}
ParameterizedTest(int *kernel, exact_rows, against_fp64, .timeout = 600)
{
    char how[400];
    test_mode(SIM_EAGER, SIM_IN_ORDER, 0);
    for (size_t m = 0; m < COUNT(masks); m++) /* by default one mask, and every third scene */
        for (size_t s = 0; s < COUNT(scenes); s++)
            if (((scenes[s].in.kind != FROM_FAR && scenes[s].in.kind != TO_FAR) || !(rounds_scaled(*kernel) || adds_parts(*kernel))) &&
                (full() || (m == (size_t)*kernel % 2 && (s + (size_t)*kernel / 2) % 3 == 0) ||
                 (!m && (scenes[s].in.kind == STEEP || isnan(scenes[s].in.value)) && keeps_maximum(*kernel))))
                cr_expect(right(*kernel, masks[m], scenes[s].in, how), "%s, %s, %s: %s", kernels[*kernel].config, masks[m], scenes[s].name,
                          how);
}

/* Rows that are not far have the bits that they have beside rows that are not. */
Test(exact_rows, huge_rows_leave_the_others_their_bits, .timeout = 600)
{
    test_mode(SIM_EAGER, SIM_IN_ORDER, 0);
    for (int kernel = 0; kernel < (int)COUNT(kernels); kernel += full() ? 1 : 10) { /* even ones are compiled for this mask */
        outcome r[2];
        inputs in = { .odd = -1, .kind = HUGE_ROWS };
        launch(kernel, "causal", &in, &r[0]);
        in.kind = NO_HUGE_ROWS;
        launch(kernel, "causal", &in, &r[1]);
        const size_t heads = (size_t)in.problem.hq;
        const size_t n = heads * r[0].width; /* of a row */
        size_t others = 0;
        for (size_t row = 0; row < r[0].rows / heads; row++)
            others += row % 3 && memcmp(r[0].o + row * n, r[1].o + row * n, n * sizeof(float));
        cr_expect_eq(others, 0, "%s: %zu rows", kernels[kernel].config, others);
        drop(&r[0]);
        drop(&r[1]);
    }
}

/* Scores beyond fp32, of keys that a query sees, are no weight of 0: O and LSE are not finite, and not those of a query without keys. */
Test(exact_rows, scores_beyond_fp32, .timeout = 600)
{
    test_mode(SIM_EAGER, SIM_IN_ORDER, 0);
    for (int kernel = 0; kernel < (int)COUNT(kernels); kernel += full() ? 1 : 6) {
        if (!strncmp(kernels[kernel].types, "fp16", 4))
            continue; /* its products stay below */
        outcome r;
        inputs in = { .odd = -1, .kind = BEYOND };
        launch(kernel, "causal", &in, &r);
        size_t lse = 0, o = 0;
        for (size_t i = 0; i < r.rows; i++)
            lse += r.want_lse[i] != -INFINITY && !isnan(r.lse[i]) && r.lse[i] != INFINITY;
        for (size_t i = 0; i < r.rows * r.width; i++)
            o += r.want_o[i] != 0 && isfinite(r.o[i]);
        cr_expect(!lse && !o, "%s: %zu of %zu LSE and %zu of O are numbers, such as %g, %g", kernels[kernel].config, lse, r.rows, o,
                  (double)r.lse[0], (double)r.o[0]);
        drop(&r);
    }
}

/* ---- faults ---- */

static const struct {
    edit edit;
    int kernel, mask, scene;
} faults[] = {
    /* exponents */
    { { "softmax.cu", "m == -infinity() ? 0.f : r", "r" }, 6, 0, 0 },
    { { "softmax.cu", "m == -infinity() ? 0.f : r", "fabsf(r) > FAR ? 0.f : r" }, 10, 2, 7 },
    { { "softmax.cu", "__fmul_ru(m, scale_log2)", "__fmul_rn(m, scale_log2)" }, 10, 2, 8 },
    { { "hopper_softmax.cu", "fabsf(rise) > 16384.f", "false" }, 1, 1, 7 },
    { { "softmax.cu", "return fabsf(m * scale_log2) > FAR;", "return m == -infinity();" }, 6, 0, 3 },
    { { "softmax.cu", "return fabsf(m * scale_log2) > FAR;", "return m == -infinity();" }, 0, 0, 4 },
    { { "exact_keys.cu", "exp2_approx((s - top) * $(pr.unit_log2))", "exp2_approx(fmaf(s, p.scale_log2, -top * p.scale_log2))" }, 6, 0, 3 },
    { { "exact_keys.cu", "exp2_approx((s - top) * $(pr.unit_log2))", "exp2_approx(fmaf(s, p.scale_log2, -top * p.scale_log2))" },
      16,
      0,
      3 },
    { { "hopper_store.cu", "if ((again >> h & 1) == 0) store_lse", "store_lse" }, 0, 0, 3 },
    /* values that a row may not see */
    { { "epilogue.cu", "top > 0x7f800000", "false" }, 6, 0, 1 },
    { { "hopper_rows.cu", "if (top > 0x7f800000) again", "if (false) again" }, 0, 0, 1 },
    { { "hopper_rows.cu", "if (top > 0x7f800000) again", "if (false) again" }, 1, 0, 1 },
    { { "hopper_store.cu", "taint[n % 4] = fmaf(o[4 * n], o[4 * n + 1], taint[n % 4]);", ";" }, 0, 0, 1 },
    { { "exact_rows.cu", "min(query + REACH, sequence.sq() - 1)", "query" }, 6, 0, 1 },
    { { "exact_rows.cu", "max(query - REACH, 0)", "query" }, 6, 1, 2 },
    { { "exact_columns.cu", "|| not_finite(sum.o) &&", "|| false &&" }, 16, 0, 1 },
    { { "fma.cu", "!= UNSEEN)", "!= 2.f)" }, 12, 0, 1 },
    /* rows computed again */
    { { "epilogue.cu", "i * 8 + quad", "i * 8 + quad / 2" }, 6, 0, 3 },
    { { "hopper_store.cu", "(col % BOX / 8 ^ swizzle) * 16", "col % BOX / 8 * 16" }, 2, 0, 4 },
    { { "hopper_store.cu", "\"is_far(state[0].m, %s) || is_far(state[1].m, %s)\"", "\"false\"" }, 0, 2, 3 },
    { { "hopper_store.cu", "      if (threadIdx.x % 128 == 0) tma_wait();\n", "" }, 0, 2, 4 },
    { { "hopper_store.cu", "tma_wait();\n      named_wait(8 + wg, 128);", "tma_wait();" }, 0, 2, 4 },
    { { "exact_rows.cu", "pr.drop_pair, \"e\"", "function() end, \"e\"" }, 5, 0, 3 },
    { { "exact_keys.cu", "(key - entry * p.page_size) * stride", "key % 8 * stride" }, 17, 0, 3 },
    /* rows that keep their maximum */
    { { "hopper_softmax.cu", "  const float shift[2] = {state[0].m, state[1].m};\n#pragma unroll\n  for (int n = EARLY",
        "  const float shift[2] = {state[0].m, state[0].m};\n#pragma unroll\n  for (int n = EARLY" },
      23,
      2,
      0 },
    { { "hopper_softmax.cu", "const int at = (n - EARLY) * EARLY", "const int at = (n - EARLY) / 2 * EARLY" }, 24, 2, 0 },
    { { "hopper_softmax.cu", "    state[h].l *= keep[h];\n  }\n#pragma unroll\n  for (int i = 0; i < NO",
        "  }\n#pragma unroll\n  for (int i = 0; i < NO" },
      23,
      2,
      9 },
    { { "hopper_softmax.cu", "if (!moved) keep[0] = keep[1] = 1.f;", "if (!moved) keep[0] = keep[1] = 2.f;" }, 23, 2, 9 },
};

ParameterizedTestParameters(exact_rows, faults_are_noticed)
{
    static int numbers[COUNT(faults)];
    for (size_t i = 0; i < COUNT(faults); i++)
        numbers[i] = (int)i;
    return cr_make_param_array(int, numbers, full() ? COUNT(faults) : 4);
}
ParameterizedTest(int *turn, exact_rows, faults_are_noticed, .timeout = 600, .init = scratch_make, .fini = scratch_remove)
{
    char how[400];
    const int i = full() ? *turn : *turn * 4;
    sim_options o = { .async = SIM_LAZY, .max_steps = 200000000 };
    char error[512];
    cr_assert(sim_checks_parse("race-global=off", o.checks, error), "%s", error); /* the values have to show it */
    sim_set_options(&o);
    write_edited(&faults[i].edit);
    templates = scratch;
    cr_expect(!right(faults[i].kernel, masks[faults[i].mask], scenes[faults[i].scene].in, how),
              "nothing noticed \"%s\" in the place of \"%s\"", faults[i].edit.replace, faults[i].edit.find);
}
