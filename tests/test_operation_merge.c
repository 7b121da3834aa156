/* Merging of partial results: random cases by the operation's rows, any number of parts by hand, and attention over parts of the keys. */
#include "gen/space.h"
#include "test_cache_scratch.h"
#include "test_verify_device.h"
#include "verify/operands/number.h"
#include "verify/operands/random.h"
#include "verify/operands/tensors.h"
#include "verify/truth/expected.h"
#include <math.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

enum { PART, PART_LSE, O, LSE };

static const char *const chips[] = { "sm_80", "sm_90a" };

static void setup(void)
{
    scratch_make();
    test_mode(SIM_EAGER, SIM_IN_ORDER, 0);
}
TestSuite(operation_merge, .init = setup, .fini = scratch_remove, .timeout = 300);

static fa_context *context(int chip)
{
    fa_options o = FA_OPTIONS_INIT;
    fa_context *ctx;
    o.cache_dir = below("cache");
    OK(fa_create_on(&ctx, &o, sim_open(TEST_CHIPS), chip));
    return ctx;
}

/* ---- random cases ---- */

Test(operation_merge, random_cases_are_right)
{
    int layouts[FA_LAYOUT_KINDS] = { 0 }, teams = 0;
    for (int chip = 0; chip < 2; chip++) {
        fa_context *ctx = context(chip);
        fa_gen *g;
        OK(fa_gen_open(&g, NULL));
        for (uint64_t seed = 0; seed < 14; seed++) {
            fa_case c;
            fa_config k;
            fa_verdict v;
            char line[800];
            fa_case_make_of(&c, fa_operation_find(FA_MERGE), seed + 100 * (uint64_t)chip);
            fa_case_print(line, sizeof line, &c);
            OK(fa_case_config(g, &c, fa_context_arch(ctx), fa_context_budget(ctx), NULL, &k));
            cr_expect(strstr(line, "op=merge") && strstr(line, " part="), "%s", line);
            cr_expect_eq(fa_verify_case(ctx, &c, &k, &v), FA_OK, "%s: %s\n%s", chips[chip], line, fa_last_error());
            layouts[c.layout[PART]]++;
            teams |= fa_config_get(&k, "team", 0);
        }
        fa_gen_close(g);
        fa_destroy(ctx);
    }
    cr_expect(layouts[FA_LAYOUT_PADDED] && layouts[FA_LAYOUT_HEADS] && layouts[FA_LAYOUT_REVERSED], "strides of all kinds");
    cr_expect(teams & 1 && teams >= 16, "small teams and large: %#x", teams);
}

/* ---- any number of parts, by hand ---- */

typedef enum order { PACKED, BETWEEN, HEADS } order; /* of parts: in front; between head and column; [b, parts, hq, sq] with gaps */

typedef struct scene {
    const char *dtype, *o_dtype;
    int32_t dv, b, sq, hq, parts;
    order order;
    int32_t in_place; /* O and LSE take the place of this part; -1 = their own */
    int32_t lse_gap;  /* floats between the parts' LSEs */
    bool turned;      /* lse is [sq, b, hq] */
    int32_t empty;    /* of 10 LSEs: -inf, and NaN in the part */
    const char *config;
} scene;

/* Device memory with what the host last put there. */
typedef struct memory {
    uint8_t *host;
    void *at;
    size_t bytes;
} memory;

static memory memory_make(fa_context *ctx, size_t bytes, fa_random *r)
{
    memory m = { malloc(bytes + 1), NULL, bytes };
    for (size_t i = 0; i < bytes; i++)
        m.host[i] = (uint8_t)fa_random_below(r, 256);
    OK(fa_alloc(ctx, &m.at, bytes ? bytes : 1));
    return m;
}

static void memory_put(fa_context *ctx, const memory *m)
{
    if (m->bytes)
        OK(fa_copy(ctx, m->at, m->host, m->bytes, FA_TO_DEVICE));
}

static void memory_free(fa_context *ctx, memory *m)
{
    OK(fa_free(ctx, m->at));
    free(m->host);
}

typedef struct world {
    fa_args args;
    int32_t dtype, o_dtype;
    memory part, part_lse, o, lse;
} world;

static int64_t rows_of(const scene *s)
{
    return (int64_t)s->b * s->sq * s->hq;
}

static void set_strides(fa_args *a, const scene *s)
{
    int64_t dv = s->dv, gap = dv + 8;
    if (s->order == BETWEEN) {
        a->part_stride = gap;
        a->part.sh = s->parts * gap;
        a->part.ss = s->hq * a->part.sh;
        a->part.sb = s->sq * a->part.ss + 16;
    } else if (s->order == HEADS) {
        a->part.ss = gap;
        a->part.sh = s->sq * gap;
        a->part_stride = s->hq * a->part.sh;
        a->part.sb = s->parts * a->part_stride;
    } else {
        a->part.sh = dv;
        a->part.ss = s->hq * dv;
        a->part.sb = s->sq * a->part.ss;
        a->part_stride = s->b * a->part.sb;
    }
}

static int64_t part_at(const fa_args *a, int64_t i, int64_t batch, int64_t query, int64_t head)
{
    return i * a->part_stride + batch * a->part.sb + query * a->part.ss + head * a->part.sh;
}

static int64_t part_lse_at(const scene *s, int64_t i, int64_t batch, int64_t query, int64_t head)
{
    return i * (rows_of(s) + s->lse_gap) + (batch * s->hq + head) * s->sq + query;
}

static void fill_row(const world *w, const scene *s, int64_t i, int64_t batch, int64_t query, int64_t head, fa_random *r)
{
    int bytes = fa_dtype_bytes(w->dtype);
    bool empty = fa_random_below(r, 10) < s->empty;
    float lse = empty ? -INFINITY : 5 * fa_random_normal(r);
    memcpy(w->part_lse.host + 4 * part_lse_at(s, i, batch, query, head), &lse, 4);
    uint8_t *to = w->part.host + part_at(&w->args, i, batch, query, head) * bytes;
    for (int64_t k = 0; k < s->dv; k++)
        fa_number_store(to + k * bytes, empty ? NAN : fa_random_normal(r), w->dtype);
}

static void fill(const world *w, const scene *s, fa_random *r)
{
    for (int64_t i = 0; i < s->parts; i++)
        for (int64_t batch = 0; batch < s->b; batch++)
            for (int64_t query = 0; query < s->sq; query++)
                for (int64_t head = 0; head < s->hq; head++)
                    fill_row(w, s, i, batch, query, head, r);
}

static void world_open(world *w, fa_context *ctx, const scene *s, uint64_t seed)
{
    fa_random r = { fa_random_mix(seed + 1) };
    fa_args *a = &w->args;
    int dtype, o_dtype;
    *a = (fa_args)FA_ARGS_INIT;
    cr_assert(fa_dtype_parse(&dtype, s->dtype) && fa_dtype_parse(&o_dtype, s->o_dtype));
    a->op = FA_MERGE;
    a->dtype = w->dtype = dtype;
    a->o_dtype = w->o_dtype = o_dtype;
    a->d = s->dv;
    a->b = s->b;
    a->sq = s->sq;
    a->hq = s->hq;
    a->parts = s->parts;
    set_strides(a, s);
    int64_t elements = part_at(a, s->parts, s->b, s->sq, s->hq) + s->dv;
    w->part = memory_make(ctx, (size_t)elements * (size_t)fa_dtype_bytes(dtype), &r);
    w->part_lse = memory_make(ctx, (size_t)(s->parts * (rows_of(s) + s->lse_gap)) * 4, &r);
    w->o = memory_make(ctx, (size_t)(rows_of(s) * (s->dv + 8)) * (size_t)fa_dtype_bytes(o_dtype), &r);
    w->lse = memory_make(ctx, (size_t)rows_of(s) * 4 + 64, &r);
    fill(w, s, &r);
    memory_put(ctx, &w->part);
    memory_put(ctx, &w->part_lse);
    memory_put(ctx, &w->o);
    memory_put(ctx, &w->lse);
    a->part.ptr = w->part.at;
    a->part_lse = w->part_lse.at;
    a->o = (fa_tensor){ w->o.at, s->sq * s->hq * (s->dv + 8), s->hq * (s->dv + 8), s->dv + 8 };
    a->lse = w->lse.at;
    if (s->turned)
        a->lse_ss = (int64_t)s->b * s->hq, a->lse_sb = s->hq, a->lse_sh = 1;
    if (s->in_place >= 0) {
        a->o = a->part;
        a->o.ptr = (uint8_t *)a->part.ptr + s->in_place * a->part_stride * fa_dtype_bytes(dtype);
        a->lse = (float *)w->part_lse.at + part_lse_at(s, s->in_place, 0, 0, 0);
    }
    if (s->order == PACKED)
        a->part = (fa_tensor){ a->part.ptr, 0, 0, 0 };
    a->part_lse_stride = s->lse_gap ? rows_of(s) + s->lse_gap : 0;
}

static void world_close(world *w, fa_context *ctx)
{
    memory_free(ctx, &w->part);
    memory_free(ctx, &w->part_lse);
    memory_free(ctx, &w->o);
    memory_free(ctx, &w->lse);
}

/* One row in fp64, out of what the parts held before the launch. Returns LSE. */
static double expect_row(const world *w, const fa_args *packed, const scene *s, int64_t batch, int64_t query, int64_t head, double *o,
                         double *size)
{
    double m = -INFINITY, l = 0;
    float lse;
    memset(o, 0, (size_t)s->dv * sizeof *o);
    *size = 0;
    for (int64_t i = 0; i < s->parts; i++) {
        memcpy(&lse, w->part_lse.host + 4 * part_lse_at(s, i, batch, query, head), 4);
        m = fmax(m, (double)lse);
    }
    for (int64_t i = 0; i < s->parts; i++) {
        memcpy(&lse, w->part_lse.host + 4 * part_lse_at(s, i, batch, query, head), 4);
        if (lse == -INFINITY)
            continue;
        int bytes = fa_dtype_bytes(w->dtype);
        const uint8_t *from = w->part.host + part_at(packed, i, batch, query, head) * bytes;
        double weight = exp((double)lse - m);
        l += weight;
        for (int64_t k = 0; k < s->dv; k++) {
            double x = (double)fa_number_load(from + k * bytes, w->dtype);
            o[k] += weight * x;
            *size = fmax(*size, fabs(x));
        }
    }
    for (int64_t k = 0; k < s->dv && l != 0; k++)
        o[k] /= l;
    return l == 0 ? -INFINITY : m + log(l);
}

/* Holds what a launch left against fp64, and every other byte against what was there. */
static void world_check(const world *w, fa_context *ctx, const scene *s, const char *what)
{
    const memory *o = s->in_place >= 0 ? &w->part : &w->o, *lse = s->in_place >= 0 ? &w->part_lse : &w->lse;
    uint8_t *now = malloc(o->bytes + 1), *lse_now = malloc(lse->bytes + 1);
    double want[256], size;
    int bytes = fa_dtype_bytes(w->o_dtype), wrong = 0;
    fa_args packed = w->args;
    set_strides(&packed, s);
    OK(fa_copy(ctx, now, o->at, o->bytes, FA_FROM_DEVICE));
    OK(fa_copy(ctx, lse_now, lse->at, lse->bytes, FA_FROM_DEVICE));
    for (int64_t row = 0; row < rows_of(s); row++) {
        int64_t head = row % s->hq, query = row / s->hq % s->sq, batch = row / s->hq / s->sq;
        double top = expect_row(w, &packed, s, batch, query, head, want, &size);
        int64_t gap = s->dv + 8, at = s->in_place >= 0 ? part_at(&packed, s->in_place, batch, query, head) : row * gap;
        int64_t lse_at = s->in_place >= 0 ? part_lse_at(s, s->in_place, batch, query, head)
                         : s->turned      ? (query * s->b + batch) * s->hq + head
                                          : (batch * s->hq + head) * s->sq + query;
        float got;
        for (int64_t k = 0; k < s->dv; k++) {
            uint8_t *x = now + (at + k) * bytes;
            double error = fabs((double)fa_number_load(x, w->o_dtype) - want[k]);
            if (!(error <= size * 0x1p-20 + fa_number_ulp(fabs(want[k]), w->o_dtype) / 2))
                if (!wrong++)
                    cr_expect(0, "%s: row %lld, column %lld: %g, not %g", what, (long long)row, (long long)k,
                              (double)fa_number_load(x, w->o_dtype), want[k]);
            memcpy(x, o->host + (at + k) * bytes, (size_t)bytes);
        }
        memcpy(&got, lse_now + 4 * lse_at, 4);
        cr_expect(top == -INFINITY ? got == -INFINITY : fabs((double)got - top) <= 1e-6 * fmax(1, fabs(top)),
                  "%s: LSE of row %lld: %g, not %g", what, (long long)row, (double)got, top);
        memcpy(lse_now + 4 * lse_at, lse->host + 4 * lse_at, 4);
    }
    cr_expect_eq(wrong, 0, "%s: %d wrong values", what, wrong);
    cr_expect(!memcmp(now, o->host, o->bytes), "%s: nothing but the rows of O is written", what);
    cr_expect(!memcmp(lse_now, lse->host, lse->bytes), "%s: nothing but LSE is written", what);
    free(now);
    free(lse_now);
}

static void play(fa_context *ctx, const scene *s, int number)
{
    world w;
    char what[200];
    snprintf(what, sizeof what, "scene %d on %s: %s to %s, dv=%d, parts=%d", number, fa_context_arch(ctx)->name, s->dtype, s->o_dtype,
             s->dv, s->parts);
    world_open(&w, ctx, s, (uint64_t)number);
    if (s->config) {
        fa_problem p;
        fa_config k = test_config(s->config);
        const fa_plan *plan;
        OK(fa_problem_of(&w.args, &p));
        cr_assert_eq(fa_plan_make(ctx, &p, &k, NULL, &plan), FA_OK, "%s: %s", what, fa_last_error());
        cr_assert_eq(fa_plan_launch(ctx, plan, &w.args, NULL), FA_OK, "%s: %s", what, fa_last_error());
    } else {
        cr_assert_eq(fa_launch(ctx, &w.args, NULL), FA_OK, "%s: %s", what, fa_last_error());
    }
    world_check(&w, ctx, s, what);
    world_close(&w, ctx);
}

static const scene scenes[] = {
    { "fp32", "bf16", 128, 2, 1, 5, 3, PACKED, -1, 0, false, 0, NULL },
    { "fp32", "fp16", 64, 1, 3, 4, 7, HEADS, -1, 5, true, 3, NULL },
    { "fp32", "fp32", 20, 2, 2, 3, 1, PACKED, -1, 0, false, 0, NULL },
    { "fp32", "fp32", 96, 1, 5, 2, 0, PACKED, -1, 0, true, 0, NULL },
    { "fp32", "fp32", 128, 2, 3, 2, 5, PACKED, 0, 0, false, 2, NULL },
    { "fp32", "fp32", 64, 2, 3, 3, 4, BETWEEN, 3, 2, false, 2, NULL },
    { "bf16", "bf16", 128, 1, 2, 8, 6, HEADS, 2, 0, false, 2, NULL },
    { "fp16", "fp32", 80, 2, 1, 3, 9, BETWEEN, -1, 1, false, 3, NULL },
    { "bf16", "bf16", 111, 1, 2, 3, 4, PACKED, -1, 0, true, 1, NULL },
    { "fp32", "fp16", 3, 1, 7, 5, 6, PACKED, -1, 0, false, 2, NULL },
    { "fp32", "bf16", 1, 2, 33, 3, 11, PACKED, -1, 0, false, 2, NULL },
    { "tf32", "fp32", 256, 1, 2, 2, 40, PACKED, -1, 0, false, 5, NULL },
    { "fp16", "fp16", 64, 1, 2, 2, 5, PACKED, -1, 0, false, 10, NULL }, /* all empty */
    { "fp32", "bf16", 128, 1, 1, 3, 97, PACKED, -1, 0, false, 3, "merge:warps=4,team=4,ahead=2" },
    { "fp32", "fp32", 256, 2, 1, 3, 130, HEADS, 77, 3, false, 3, "merge:warps=8,team=8,ahead=2" },
    { "bf16", "bf16", 64, 1, 2, 7, 19, HEADS, 4, 0, false, 3, "merge:warps=8,team=32,ahead=2" },
    { "bf16", "fp32", 40, 2, 1, 3, 30, PACKED, -1, 0, false, 3, "merge:warps=2,team=4,ahead=8" },
    { "fp32", "bf16", 8, 3, 5, 7, 21, BETWEEN, -1, 0, true, 3, "merge:warps=4,team=32,ahead=4" },
};

Test(operation_merge, any_number_of_parts_in_any_place)
{
    for (int chip = 0; chip < 2; chip++) {
        fa_context *ctx = context(chip);
        for (int i = chip; i < (int)(sizeof scenes / sizeof *scenes); i += 2)
            play(ctx, &scenes[i], i);
        fa_destroy(ctx);
    }
}

/* More rows than blocks that are there at a time. */
Test(operation_merge, blocks_take_one_row_after_the_other)
{
    static const scene many[] = {
        { "bf16", "bf16", 16, 2, 300, 3, 3, PACKED, -1, 0, false, 2, "merge:warps=2,team=32,ahead=2" },
        { "fp32", "fp32", 8, 1, 333, 7, 3, PACKED, 1, 0, false, 2, "merge:warps=2,team=4,ahead=2" },
    };
    fa_context *ctx = test_hopper_context(NULL, below("cache"), 1);
    for (int i = 0; i < 2; i++)
        play(ctx, &many[i], 100 + i);
    fa_destroy(ctx);
}

/* ---- numbers that are none ---- */

Test(operation_merge, an_lse_that_is_no_number_makes_its_row_nan)
{
    static const scene s = { "fp32", "fp32", 32, 1, 1, 4, 3, PACKED, -1, 0, false, 0, NULL };
    static const float odd[4] = { NAN, INFINITY, 1, NAN };
    fa_context *ctx = context(0);
    world w;
    float o[4 * 40], lse[4];
    world_open(&w, ctx, &s, 1);
    float *in = (float *)(void *)w.part_lse.host;
    for (int head = 0; head < 4; head++)
        in[1 * 4 + head] = odd[head];
    in[0 * 4 + 3] = in[2 * 4 + 3] = -INFINITY; /* nothing but NaN */
    memory_put(ctx, &w.part_lse);
    OK(fa_launch(ctx, &w.args, NULL));
    OK(fa_copy(ctx, o, w.o.at, sizeof o, FA_FROM_DEVICE));
    OK(fa_copy(ctx, lse, w.lse.at, sizeof lse, FA_FROM_DEVICE));
    for (int head = 0; head < 4; head++) {
        cr_expect_eq(!!isnan(lse[head]), head != 2, "LSE of head %d is %g", head, (double)lse[head]);
        for (int k = 0; k < 32; k++)
            cr_expect_eq(!!isnan(o[head * 40 + k]), head != 2, "head %d, column %d is %g", head, k, (double)o[head * 40 + k]);
    }
    world_close(&w, ctx);
    fa_destroy(ctx);
}

/* ---- refused ---- */

#define REFUSED(change, status, told)                                                                     \
    do {                                                                                                  \
        fa_args a = w.args;                                                                               \
        change;                                                                                           \
        cr_expect_eq(fa_launch(ctx, &a, NULL), status, #change);                                          \
        cr_expect(strstr(fa_last_error(), told), "%s: %s is not in: %s", #change, told, fa_last_error()); \
    } while (0)

Test(operation_merge, what_makes_no_sense_is_refused_by_name)
{
    static const scene s = { "fp32", "fp32", 32, 2, 3, 4, 3, PACKED, -1, 0, false, 0, NULL };
    fa_context *ctx = context(0);
    world w;
    world_open(&w, ctx, &s, 1);
    int64_t n = 2 * 3 * 4 * 32;
    REFUSED(a.parts = -1, FA_INVALID, "parts is -1; accepted: 0 to");
    REFUSED(a.part.ptr = NULL, FA_INVALID, "part.ptr is NULL");
    REFUSED(a.part_lse = NULL, FA_INVALID, "part_lse is NULL");
    REFUSED(a.o.ptr = NULL, FA_INVALID, "o.ptr is NULL");
    REFUSED(a.part_stride = n - 32, FA_INVALID, "part_stride is 736 and parts 3; accepted: a stride with which no two parts share a row");
    REFUSED(a.part_stride = INT64_MAX / 2, FA_INVALID, "part_stride is");
    REFUSED((a.part.sh = 40, a.part.ss = 160, a.part.sb = 480), FA_INVALID, "part_stride is 768");
    REFUSED((a.part.sh = 16, a.part.ss = 160, a.part.sb = 480), FA_INVALID, "part.sh is 16; accepted: a stride of at least 32");
    REFUSED((a.part.sh = 32, a.part.ss = 128), FA_INVALID, "part.sb is 0");
    REFUSED((a.part.sh = 32, a.part.ss = 128, a.flags = FA_BROADCAST), FA_INVALID, "part.sb is 0");
    REFUSED(a.part_lse_stride = 23, FA_INVALID, "part_lse_stride is 23 and parts 3");
    REFUSED(a.part_lse_stride = -23, FA_INVALID, "part_lse_stride is -23");
    REFUSED(a.part_lse = (float *)((char *)w.part_lse.at + 2), FA_INVALID, "part_lse is");
    REFUSED(a.o.ptr = (float *)w.part.at + 32, FA_INVALID, "o overlaps part; accepted: bytes of its own, or all of one part's");
    REFUSED(a.o.ptr = w.part.at, FA_INVALID, "o overlaps part"); /* of other strides */
    REFUSED((a.o = a.part, a.o.ptr = (float *)w.part.at + n / 2), FA_INVALID, "o overlaps part");
    REFUSED((a.o = a.part, a.o_dtype = FA_BF16), FA_INVALID, "o overlaps part");
    REFUSED((a.o = a.part, a.o.ptr = w.part_lse.at), FA_INVALID, "o overlaps part_lse");
    REFUSED(a.lse = (float *)w.part_lse.at + 1, FA_INVALID, "lse overlaps part_lse");
    REFUSED((a.lse = w.part_lse.at, a.lse_sb = 4, a.lse_sh = 1, a.lse_ss = 8), FA_INVALID, "lse overlaps part_lse");
    REFUSED(a.lse = a.o.ptr, FA_INVALID, "lse");
    REFUSED((a.lse_sb = 12, a.lse_sh = 3, a.lse_ss = 0), FA_INVALID, "lse_ss is 0");
    REFUSED(a.mask = FA_MASK_CAUSAL, FA_INVALID, "mask is causal; accepted with op=merge: none");
    REFUSED(a.seqlens_q = w.lse.at, FA_INVALID, "seqlens_q is set: lengths in device memory; accepted with op=merge: 0");
    REFUSED(a.page_size = 16, FA_INVALID, "page_size is set");
    REFUSED(a.grad_o.ptr = w.lse.at, FA_INVALID, "grad_o is set");
    REFUSED((a.op = FA_FORWARD, a.parts = 0), FA_INVALID, "part is set: merging of partial results; accepted with op=forward: 0");
    REFUSED((a.dtype = FA_BF16, a.o_dtype = FA_F16), FA_UNSUPPORTED, "o_dtype is 1 (fp16); accepted with bf16: 0, bf16 (2), fp32 (4)");
    world_close(&w, ctx);
    fa_destroy(ctx);
}

/* Launches that differ in addresses alone are looked at in those alone. */
Test(operation_merge, a_repeat_is_checked_in_its_addresses)
{
    static const scene s = { "bf16", "bf16", 64, 1, 2, 3, 4, PACKED, 1, 0, false, 3, NULL };
    fa_context *ctx = context(0);
    world w;
    world_open(&w, ctx, &s, 3);
    const fa_args in_place = w.args;
    fa_args a = in_place;
    void *own;
    OK(fa_alloc(ctx, &own, 2 * 3 * 64 * 2));
    a.o.ptr = own;
    a.lse = w.lse.at;
    OK(fa_launch(ctx, &a, NULL));
    a.o.ptr = (char *)in_place.o.ptr + 16;
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "o overlaps part;"), "%s", fa_last_error());
    a.o.ptr = own;
    a.lse = in_place.lse + 1;
    cr_expect_eq(fa_launch(ctx, &a, NULL), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "lse overlaps part_lse;"), "%s", fa_last_error());
    OK(fa_launch(ctx, &in_place, NULL));
    world_check(&w, ctx, &s, "in place");
    OK(fa_free(ctx, own));
    world_close(&w, ctx);
    fa_destroy(ctx);
}

/* What was prepared is what is launched, whatever is said of keys; parts and types do not matter to the class but for the parts' own. */
Test(operation_merge, preparing_and_launching_agree)
{
    static const scene s = { "fp32", "bf16", 64, 2, 3, 4, 3, PACKED, -1, 0, false, 0, NULL };
    fa_options o = FA_OPTIONS_INIT;
    fa_context *ctx;
    fa_problem p, derived;
    world w;
    char why[4096];
    size_t bytes;
    o.cache_dir = below("cache");
    o.on_miss = FA_MISS_FAIL;
    OK(fa_create_on(&ctx, &o, sim_open(TEST_CHIPS), 1));
    world_open(&w, ctx, &s, 1);
    OK(fa_problem_parse(&p, "tf32,d=128,dv=64,o=bf16,op=merge,b=2,hq=4,sq=3"));
    cr_expect(p.d == 64 && p.dtype == FA_F32 && p.o_dtype == FA_BF16);
    OK(fa_supported(ctx, &p));
    cr_expect_eq(fa_launch(ctx, &w.args, NULL), FA_NO_KERNEL);
    OK(fa_problem_of(&w.args, &derived));
    cr_expect(derived.op == FA_MERGE && derived.d == 64 && derived.hkv == 4 && derived.sk == 3 && derived.features == 0);
    OK(fa_prepare(ctx, &p));
    OK(fa_launch(ctx, &w.args, NULL));
    w.args.hkv = 3, w.args.sk = 77, w.args.diagonal = FA_TOP_LEFT;
    OK(fa_launch(ctx, &w.args, NULL));
    OK(fa_workspace_size(ctx, &w.args, &bytes));
    cr_expect_eq(bytes, 0);
    OK(fa_explain(ctx, NULL, &w.args, why, sizeof why));
    cr_expect(strstr(why, "op=merge") && strstr(why, "merge:") && strstr(why, "hit"), "%s", why);
    world_close(&w, ctx);
    fa_destroy(ctx);
}

/* ---- the bytes of the model ---- */

Test(operation_merge, the_model_counts_the_bytes_that_move)
{
    static const char *const configs[] = { "merge:warps=4,team=1,ahead=4", "merge:warps=4,team=8,ahead=2" };
    fa_context *ctx = context(0);
    fa_problem p;
    fa_gen *g;
    OK(fa_gen_open(&g, NULL));
    OK(fa_problem_parse(&p, "fp32,d=64,o=bf16,op=merge,b=2,hq=4,sq=5"));
    fa_problem_fill_shape(&p);
    for (int i = 0; i < 2; i++) {
        fa_config k = test_config(configs[i]);
        const fa_plan *plan;
        fa_tensors t;
        fa_entered in;
        fa_cost cost;
        OK(fa_plan_make(ctx, &p, &k, NULL, &plan));
        sim_counters counted = test_traced(ctx, &p, plan, &in, &t);
        OK(fa_model_cost(g, &p, &k, fa_context_arch(ctx), 0, &cost));
        uint64_t rows = 2 * 4 * 5, parts = rows * FA_PARTS_TYPICAL * 64 * 4, lses = rows * FA_PARTS_TYPICAL * 4;
        const uint64_t read[] = { [PART] = parts }, written[] = { [O] = rows * 64 * 2, [LSE] = rows * 4 };
        for (int at = 0; at < counted.tensors; at++)
            for (int operand = PART; operand <= LSE; operand++)
                if (counted.tensor[at].base == t.at[operand])
                    cr_expect((operand == PART_LSE ? counted.tensor[at].read >= lses
                                                   : counted.tensor[at].read == (operand == PART ? read[PART] : 0)) &&
                                  counted.tensor[at].write == (operand == PART || operand == PART_LSE ? 0 : written[operand]),
                              "%s: operand %d: %llu read, %llu written", configs[i], operand, (unsigned long long)counted.tensor[at].read,
                              (unsigned long long)counted.tensor[at].write);
        cr_expect_eq(counted.tensors, 4);
        cr_expect_eq((uint64_t)fa_traffic_total(&cost.traffic), parts + lses + written[O] + written[LSE], "each byte once");
        fa_tensors_close(&t);
        fa_context_leave(ctx, &in);
    }
    fa_gen_close(g);
    fa_destroy(ctx);
}

/* ---- attention over parts of the keys ---- */

static void *upload(fa_context *ctx, const float *x, int64_t n)
{
    uint16_t *host = malloc((size_t)n * 2);
    void *at;
    for (int64_t i = 0; i < n; i++)
        host[i] = fa_number_to_bf16(x[i]);
    OK(fa_alloc(ctx, &at, (size_t)n * 2));
    OK(fa_copy(ctx, at, host, (size_t)n * 2, FA_TO_DEVICE));
    free(host);
    return at;
}

/* Launches over three ranges of the keys into fp32 parts, merged, hold to the rule of one launch over all. */
Test(operation_merge, attention_in_parts_is_attention)
{
    enum { B = 2, HQ = 4, HKV = 2, SQ = 40, SK = 90, D = 64, PARTS = 3, ROWS = B * SQ * HQ };
    static const int cut[PARTS + 1] = { 0, 37, 80, SK };
    static float q[ROWS * D], kv[2][B * SK * HKV * D], o[ROWS * D], lse[ROWS];
    static uint16_t o_bits[ROWS * D];
    fa_random r = { 5 };
    for (int i = 0; i < ROWS * D; i++)
        q[i] = fa_number_round(fa_random_normal(&r), FA_BF16);
    for (int i = 0; i < 2 * B * SK * HKV * D; i++)
        kv[i % 2][i / 2] = fa_number_round(fa_random_normal(&r), FA_BF16);
    for (int chip = 0; chip < 2; chip++) {
        fa_context *ctx = context(chip);
        void *parts, *lses, *out,
            *at[3] = { upload(ctx, q, ROWS * D), upload(ctx, kv[0], B * SK * HKV * D), upload(ctx, kv[1], B * SK * HKV * D) };
        fa_args a = FA_ARGS_INIT, m = FA_ARGS_INIT;
        OK(fa_alloc(ctx, &parts, PARTS * sizeof o));
        OK(fa_alloc(ctx, &lses, PARTS * sizeof lse));
        OK(fa_alloc(ctx, &out, sizeof o_bits));
        a.dtype = FA_BF16, a.o_dtype = FA_F32, a.mask = FA_MASK_CAUSAL;
        m.b = a.b = B, m.hq = a.hq = HQ, m.sq = a.sq = SQ, m.d = a.d = D, a.hkv = HKV;
        a.q.ptr = at[0];
        a.k.sb = a.v.sb = SK * HKV * D, a.k.ss = a.v.ss = HKV * D, a.k.sh = a.v.sh = D;
        for (int i = 0; i < PARTS; i++) {
            a.k.ptr = (uint16_t *)at[1] + cut[i] * HKV * D;
            a.v.ptr = (uint16_t *)at[2] + cut[i] * HKV * D;
            a.sk = cut[i + 1] - cut[i];
            a.diagonal = FA_OFFSET; /* the whole's, counted from the part's first key: the last part is seen by few rows */
            a.offset = SK - SQ - cut[i];
            a.o.ptr = (float *)parts + i * ROWS * D;
            a.lse = (float *)lses + i * ROWS;
            a.workspace = NULL;
            OK(fa_workspace_size(ctx, &a, &a.workspace_size));
            if (a.workspace_size) {
                OK(fa_alloc(ctx, &a.workspace, a.workspace_size));
                OK(fa_workspace_init(ctx, a.workspace, a.workspace_size, NULL));
            }
            OK(fa_launch(ctx, &a, NULL));
            OK(fa_free(ctx, a.workspace));
        }
        m.op = FA_MERGE, m.dtype = FA_F32, m.o_dtype = FA_BF16, m.parts = PARTS;
        m.part.ptr = parts, m.part_lse = lses, m.o.ptr = out, m.lse = lses; /* LSE in the first part's place */
        OK(fa_launch(ctx, &m, NULL));
        OK(fa_copy(ctx, o_bits, out, sizeof o_bits, FA_FROM_DEVICE));
        OK(fa_copy(ctx, lse, lses, sizeof lse, FA_FROM_DEVICE));
        for (int i = 0; i < ROWS * D; i++)
            o[i] = fa_number_from_bf16(o_bits[i]);

        fa_reference_call call = { .op = fa_operation_find(FA_FORWARD), .scale = 0.125f, .in = { q, kv[0], kv[1] } };
        const float *const got[FA_OPERANDS_MAX] = { [3] = o, [4] = lse };
        fa_expected e;
        fa_verdict v;
        OK(fa_problem_parse(&call.problem, "bf16,d=64,mask=causal,b=2,hq=4,hkv=2,sq=40,sk=90"));
        call.band = fa_band_of(&call.problem, FA_BOTTOM_RIGHT, 0, -1, -1);
        OK(fa_expected_open(&e, &call));
        OK(fa_expected_exact(&e));
        OK(fa_expected_finish(&e));
        cr_expect(fa_expected_judge(&e, got, &v), "%s: %s", chips[chip], v.text);
        fa_expected_close(&e);
        for (int i = 0; i < 3; i++)
            OK(fa_free(ctx, at[i]));
        OK(fa_free(ctx, parts));
        OK(fa_free(ctx, lses));
        OK(fa_free(ctx, out));
        fa_destroy(ctx);
    }
}
