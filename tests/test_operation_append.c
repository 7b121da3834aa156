/* Appending to a cache: random cases bit for bit, rotation and transform of numbers that are known, slots that several tokens have, what is
 * refused, and the bytes of the model. */
#include "gen/format.h"
#include "gen/space.h"
#include "test_cache_scratch.h"
#include "test_verify_device.h"
#include "verify/operands/number.h"
#include "verify/operands/random.h"
#include "verify/operands/tensors.h"
#include <math.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())
#define COUNT(a) (sizeof(a) / sizeof *(a))

static void setup(void)
{
    scratch_make();
    test_mode(SIM_EAGER, SIM_IN_ORDER, 0);
}
TestSuite(operation_append, .init = setup, .fini = scratch_remove, .timeout = 300);

static fa_context *context(int chip)
{
    fa_options o = FA_OPTIONS_INIT;
    fa_context *ctx;
    o.cache_dir = below("cache");
    OK(fa_create_on(&ctx, &o, sim_open(TEST_CHIPS), chip));
    return ctx;
}

/* ---- random cases ---- */

static void random_cases(int chip, uint64_t first, int n)
{
    fa_context *ctx = context(chip);
    fa_gen *g;
    OK(fa_gen_open(&g, NULL));
    for (uint64_t seed = first; seed < first + (uint64_t)n; seed++) {
        fa_case c;
        fa_config k;
        fa_verdict v;
        char line[1200];
        fa_case_make_of(&c, fa_operation_find(FA_APPEND), seed);
        fa_case_print(line, sizeof line, &c);
        cr_assert_eq(c.problem.op, FA_APPEND, "%s", line);
        OK(fa_case_config(g, &c, fa_context_arch(ctx), fa_context_budget(ctx), NULL, &k));
        cr_expect_eq(fa_verify_case(ctx, &c, &k, &v), FA_OK, "%s\n%s", line, fa_last_error());
    }
    fa_gen_close(g);
    fa_destroy(ctx);
}

Test(operation_append, random_cases_are_right_to_the_bit)
{
    random_cases(0, 0, 5);
    test_mode(SIM_LAZY, SIM_RANDOM, 3);
    random_cases(1, 20, 5);
}

Test(operation_append, cases_meet_every_class)
{
    int32_t features = 0, k = 0, v = 0, scales = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        fa_case c;
        fa_case_make_of(&c, fa_operation_find(FA_APPEND), seed + FA_CASE_FREE);
        const fa_problem *p = &c.problem;
        features |= p->features;
        k |= 1 << p->kv_dtype;
        v |= 1 << p->v_dtype;
        scales |= 1 << p->k_scale_by | 8 << p->v_scale_by | 64 << p->k_scale_out_by | 512 << p->v_scale_out_by;
    }
    cr_expect_eq(features, fa_operation_find(FA_APPEND)->features, "%#x", (unsigned)features);
    cr_expect_eq(k, 0x7ff7, "%#x", (unsigned)k);
    cr_expect_eq(v, 0x7ff7, "%#x", (unsigned)v);
    cr_expect_eq(scales, 07 | 070 | 0500 | 05000, "%#o", (unsigned)scales);
}

/* ---- by hand: fp32, two KV heads of four, one query head for each ---- */

enum { D = 8, HKV = 2, ROWS = 16, TOKENS = 6, RD = 4, POSITIONS = 5 };

typedef struct world {
    fa_context *ctx;
    float new_k[TOKENS][HKV][D], new_v[TOKENS][HKV][D], q[TOKENS][HKV][D], angles[POSITIONS][RD];
    int64_t slots[TOKENS];
    int32_t positions[TOKENS];
    uint64_t skipped;
    float k[ROWS][HKV][D], v[ROWS][HKV][D], q_out[TOKENS][HKV][D]; /* what a launch left */
    fa_args args;
} world;

static void *upload(fa_context *ctx, const void *from, size_t bytes)
{
    void *at;
    OK(fa_alloc(ctx, &at, bytes));
    OK(fa_copy(ctx, at, from, bytes, FA_TO_DEVICE));
    return at;
}

static void world_open(world *w, fa_context *ctx)
{
    *w = (world){ .ctx = ctx, .args = FA_ARGS_INIT };
    for (int t = 0; t < TOKENS; t++)
        for (int h = 0; h < HKV; h++)
            for (int i = 0; i < D; i++) {
                w->new_k[t][h][i] = (float)(100 * t + 10 * h + i);
                w->new_v[t][h][i] = -w->new_k[t][h][i];
                w->q[t][h][i] = w->new_k[t][h][i] + 0.5f;
            }
    for (int t = 0; t < TOKENS; t++)
        w->slots[t] = 2 * t, w->positions[t] = t % POSITIONS;
    memset(w->k, 0x11, sizeof w->k);
    memset(w->v, 0x11, sizeof w->v);
    fa_args *a = &w->args;
    a->op = FA_APPEND, a->dtype = FA_F32, a->d = D, a->b = 1, a->sq = TOKENS, a->sk = ROWS, a->hq = a->hkv = HKV;
    a->page_size = 4, a->pages = ROWS / 4;
    a->new_k.ptr = upload(ctx, w->new_k, sizeof w->new_k);
    a->new_v.ptr = upload(ctx, w->new_v, sizeof w->new_v);
    a->q.ptr = upload(ctx, w->q, sizeof w->q);
    a->q_out.ptr = upload(ctx, w->q_out, sizeof w->q_out);
    a->k.ptr = upload(ctx, w->k, sizeof w->k);
    a->v.ptr = upload(ctx, w->v, sizeof w->v);
    a->slots = upload(ctx, w->slots, sizeof w->slots);
    a->positions = upload(ctx, w->positions, sizeof w->positions);
    a->cos_sin = upload(ctx, w->angles, sizeof w->angles);
    a->skipped = upload(ctx, &w->skipped, sizeof w->skipped);
    a->cos_sin_dtype = FA_F32, a->rotary_dim = RD, a->rotary_positions = POSITIONS, a->position_bytes = 4;
}

static void put(const world *w, const void *at, const void *from, size_t bytes)
{
    OK(fa_copy(w->ctx, (void *)(uintptr_t)at, from, bytes, FA_TO_DEVICE));
}

/* Launches and fetches. config NULL: as chosen. */
/* One launch, of a config where one is named. */
static void launch_as(fa_context *ctx, fa_args *a, const char *config)
{
    if (!config) {
        OK(fa_launch(ctx, a, NULL));
        return;
    }
    fa_problem p;
    fa_config k = test_config(config);
    const fa_plan *plan;
    fa_scratch memory = { 0 };
    fa_entered in;
    OK(fa_context_enter(ctx, &in));
    OK(fa_problem_of(a, &p));
    OK(fa_plan_make(ctx, &p, &k, NULL, &plan));
    OK(fa_scratch_launch(&memory, ctx, plan, a));
    fa_scratch_free(&memory, ctx);
    fa_context_leave(ctx, &in);
}

static void play(world *w, const char *config)
{
    put(w, w->args.slots ? w->args.slots : w->args.k.ptr, w->slots, sizeof w->slots);
    put(w, w->args.k.ptr, w->k, sizeof w->k);
    put(w, w->args.v.ptr, w->v, sizeof w->v);
    if (w->args.cos_sin)
        put(w, w->args.cos_sin, w->angles, sizeof w->angles);
    if (w->args.positions)
        put(w, w->args.positions, w->positions, sizeof w->positions);
    put(w, w->args.skipped, &w->skipped, sizeof w->skipped);
    launch_as(w->ctx, &w->args, config);
    OK(fa_copy(w->ctx, w->k, w->args.k.ptr, sizeof w->k, FA_FROM_DEVICE));
    OK(fa_copy(w->ctx, w->v, w->args.v.ptr, sizeof w->v, FA_FROM_DEVICE));
    OK(fa_copy(w->ctx, w->q_out, w->args.q_out.ptr, sizeof w->q_out, FA_FROM_DEVICE));
    OK(fa_copy(w->ctx, &w->skipped, w->args.skipped, sizeof w->skipped, FA_FROM_DEVICE));
}

static void world_close(world *w)
{
    const void *all[] = { w->args.new_k.ptr, w->args.new_v.ptr, w->args.q.ptr,   w->args.q_out.ptr, w->args.k.ptr,
                          w->args.v.ptr,     w->args.slots,     w->args.cos_sin, w->args.positions, w->args.skipped };
    for (size_t i = 0; i < COUNT(all); i++)
        OK(fa_free(w->ctx, (void *)(uintptr_t)all[i]));
    fa_destroy(w->ctx);
}

/* A quarter turn: cos 0, sin 1. Of halves (x0, x1, x2, x3) becomes (-x2, -x3, x0, x1), of pairs (-x1, x0, -x3, x2). */
Test(operation_append, a_quarter_turn)
{
    static const int from[2][RD] = { { 2, 3, 0, 1 }, { 1, 0, 3, 2 } }, sign[2][RD] = { { -1, -1, 1, 1 }, { -1, 1, -1, 1 } };
    world w;
    world_open(&w, context(0));
    for (int i = 0; i < POSITIONS; i++)
        w.angles[i][0] = w.angles[i][1] = i == 1 ? 1 : 0, w.angles[i][2] = w.angles[i][3] = i == 1 ? 0 : 1; /* position 1: no turn */
    for (int style = 0; style < 2; style++) {
        w.args.rotary_style = style;
        play(&w, NULL);
        for (int t = 0; t < TOKENS; t++)
            for (int h = 0; h < HKV; h++)
                for (int i = 0; i < D; i++) {
                    bool turns = t % POSITIONS != 1 && i < RD;
                    float k = turns ? (float)sign[style][i] * w.new_k[t][h][from[style][i]] : w.new_k[t][h][i];
                    float q = turns ? (float)sign[style][i] * w.q[t][h][from[style][i]] : w.q[t][h][i];
                    cr_expect_eq(w.k[2 * t][h][i], k, "style %d: k[%d, %d, %d] is %g, not %g", style, t, h, i, (double)w.k[2 * t][h][i],
                                 (double)k);
                    cr_expect_eq(w.q_out[t][h][i], q, "style %d: q[%d, %d, %d]", style, t, h, i);
                    cr_expect_eq(w.v[2 * t][h][i], w.new_v[t][h][i]);
                    cr_expect_eq(memcmp(&w.k[2 * t + 1][h][i], "\x11\x11\x11\x11", 4), 0, "a slot of no token is as it was");
                }
    }
    cr_expect_eq(w.skipped, 0);
    world_close(&w);
}

/* One product is rounded before the other is added: x cos - y sin of numbers whose fused difference is another. */
Test(operation_append, each_product_is_rounded)
{
    world w;
    world_open(&w, context(1));
    const float x = 1 + 0x1p-12f, y = 1 + 0x1p-11f;
    for (int t = 0; t < TOKENS; t++)
        for (int h = 0; h < HKV; h++)
            w.new_k[t][h][0] = x, w.new_k[t][h][2] = y;
    for (int i = 0; i < POSITIONS; i++)
        w.angles[i][0] = x, w.angles[i][2] = 1;
    put(&w, w.args.new_k.ptr, w.new_k, sizeof w.new_k);
    play(&w, NULL);
    cr_expect_eq(w.k[0][0][0], 0, "%a: 0 with products rounded, 2^-24 where one is fused", (double)w.k[0][0][0]);
    world_close(&w);
}

/* A unit row becomes a row of the matrix; twice the transform is what it was. */
Test(operation_append, the_transform_is_sylvesters)
{
    world w;
    world_open(&w, context(0));
    w.args.append_flags = FA_HADAMARD_K | FA_HADAMARD_V;
    OK(fa_free(w.ctx, (void *)(uintptr_t)w.args.cos_sin));
    OK(fa_free(w.ctx, (void *)(uintptr_t)w.args.positions));
    w.args.cos_sin = NULL, w.args.positions = NULL;
    w.args.cos_sin_dtype = w.args.rotary_dim = w.args.rotary_positions = w.args.position_bytes = 0;
    memset(w.new_k, 0, sizeof w.new_k);
    for (int t = 0; t < TOKENS; t++)
        w.new_k[t][1][t] = 1;
    put(&w, w.args.new_k.ptr, w.new_k, sizeof w.new_k);
    put(&w, w.args.new_v.ptr, w.new_k, sizeof w.new_k);
    put(&w, w.args.q.ptr, w.new_k, sizeof w.new_k);
    play(&w, NULL);
    for (int t = 0; t < TOKENS; t++)
        for (int i = 0; i < D; i++) {
            float one = (float)(1 / sqrt(8.0)) * (__builtin_popcount((unsigned)(t & i)) % 2 ? -1.f : 1.f);
            cr_expect(w.k[2 * t][1][i] == one && w.v[2 * t][1][i] == one && w.q_out[t][1][i] == one && w.k[2 * t][0][i] == 0, "%d, %d", t,
                      i);
        }
    world_close(&w);
}

/* ---- codes ---- */

enum { WIDE = 64, MANY = 12 };

/* Numbers that rounding has trouble with, beside others; those of codes and of ties between two when they are divided by the scale. */
static float trouble(fa_random *r, const fa_format *f, float scale)
{
    static const float odd[] = { 0, -0.f, INFINITY, -INFINITY, 1e38f, -3e38f, 1e-40f, -1e-45f, 448, -57344, 127.5f, 0x1p-10f };
    uint32_t code = (uint32_t)fa_random_below(r, fa_format_codes(f));
    double one = fa_format_number(f, code), next = fa_format_number(f, (code + 1) % (uint32_t)fa_format_codes(f));
    switch (fa_random_below(r, 8)) {
    case 0:
        return odd[fa_random_below(r, (int32_t)COUNT(odd))];
    case 1:
        return fa_random_below(r, 6) ? (float)one : NAN;
    case 2:
        return (float)one * scale;
    case 3:
        return (float)((one + next) / 2) * scale;
    case 4:
        return nextafterf((float)((one + next) / 2) * scale, fa_random_below(r, 2) ? INFINITY : -INFINITY);
    default:
        return fa_random_normal(r) * exp2f((float)fa_random_within(r, -12, 12)) * scale;
    }
}

/* One launch of MANY rows of one head of a type into a cache of the format: by scales of rows that are given, found, or of blocks. Numbers
 * of 16 bits are often as far from 0 as another one, on either side. */
static void quantize(fa_context *ctx, int32_t type, int32_t dtype, bool finds, const float scale[MANY], uint64_t seed, const char *config)
{
    static float x[MANY][WIDE], got_scale[MANY];
    static uint16_t narrow[MANY][WIDE];
    static uint8_t got[MANY * 2 * WIDE];
    const fa_format *f = fa_format_of(dtype);
    fa_random r = { fa_random_mix(seed) };
    fa_args a = FA_ARGS_INIT;
    int32_t row = (int32_t)fa_format_bytes(f, WIDE);
    for (int t = 0; t < MANY; t++)
        for (int i = 0; i < WIDE; i++)
            x[t][i] = t == 0                ? 0
                      : t < 3 && i % 7 == 3 ? (t == 1 ? NAN : -INFINITY)
                                            : trouble(&r, f, fabsf(scale[t]) < 1e30f ? scale[t] : 1);
    for (int t = 0; t < MANY && type != FA_F32; t++)
        for (int i = 0; i < WIDE; i++) {
            if (t > 4 && fa_random_below(&r, 2))
                x[t][i] = ldexpf(fa_random_below(&r, 2) ? 1 : -1, t - 10) * (float)(100 + fa_random_below(&r, 3));
            fa_number_store(&narrow[t][i], x[t][i], type);
            x[t][i] = fa_number_load(&narrow[t][i], type);
        }
    memset(got, 0x55, sizeof got);
    a.op = FA_APPEND, a.dtype = type, a.kv_dtype = config ? FA_Q4_0 : dtype, a.v_dtype = dtype, a.d = WIDE, a.b = 1, a.sq = a.sk = MANY,
    a.hq = a.hkv = 1;
    a.new_k.ptr = a.new_v.ptr = type == FA_F32 ? upload(ctx, x, sizeof x) : upload(ctx, narrow, sizeof narrow);
    a.k.ptr = upload(ctx, got, sizeof got);
    a.v.ptr = upload(ctx, got, sizeof got);
    void *scales = upload(ctx, scale, MANY * sizeof *scale), *of_v = upload(ctx, scale, MANY * sizeof *scale);
    const fa_scale by = { .ptr = scales, .dtype = FA_F32, .by = FA_SCALE_TOKEN, .sb = MANY, .ss = 1, .sh = 1 };
    if (!f->scale_dtype) {
        fa_scale *k = finds ? &a.k_scale_out : &a.k_scale, *v = finds ? &a.v_scale_out : &a.v_scale;
        *k = *v = by;
        v->ptr = of_v;
    }
    launch_as(ctx, &a, config);
    OK(fa_copy(ctx, got, a.v.ptr, (size_t)(MANY * row), FA_FROM_DEVICE));
    OK(fa_copy(ctx, got_scale, of_v, sizeof got_scale, FA_FROM_DEVICE));
    for (int t = 0; t < MANY; t++) {
        uint8_t want[2 * WIDE] = { 0 };
        float own = finds ? fa_format_amax_scale(f, x[t], WIDE) : scale[t];
        if (f->scale_dtype)
            fa_format_quantize_row(f, want, x[t], WIDE);
        for (int i = 0; i < WIDE && !f->scale_dtype; i++)
            fa_format_set_code(f, want, i, fa_format_quantize(f, x[t][i], own));
        for (int i = 0; i < row; i++)
            cr_expect_eq(got[t * row + i], want[i], "%s, row %d by %g: byte %d is %02x, not %02x; x is %a", f->name, t, (double)own, i,
                         got[t * row + i], want[i], (double)x[t][i % WIDE]);
        if (finds)
            cr_expect(memcmp(&got_scale[t], &own, sizeof own) == 0 || (isnan(own) && isnan(got_scale[t])), "%s, row %d: scale %a, not %a",
                      f->name, t, (double)got_scale[t], (double)own);
    }
    void *const all[] = { a.new_k.ptr, a.k.ptr, a.v.ptr, scales, of_v };
    for (size_t i = 0; i < COUNT(all); i++)
        OK(fa_free(ctx, all[i]));
}

Test(operation_append, codes_are_those_of_the_definition)
{
    static const float usual[MANY] = { 1, 0.05f, 3, 1e-3f, 0.7f, 1.0000001f, 0.33333334f, 12345, 1e-9f, 1, 1, 0.1f },
                       odd[MANY] = { 0, 0, 1e-42f, 0x1p-149f, 3e38f, INFINITY, NAN, -0.25f, 0x1p61f, 0x1.8p-61f, -0.f, 1e25f };
    for (int32_t dtype = FA_E4M3; dtype <= FA_NVFP4; dtype++)
        for (int chip = dtype != FA_E4M3; chip < 2; chip++) {
            fa_context *ctx = context(dtype == FA_E4M3 ? chip : dtype % 2); /* conversions of a chip's own, and by bits */
            for (uint64_t seed = 0; seed < 4; seed++)
                quantize(ctx, FA_F32, dtype, false, seed % 2 ? odd : usual, seed, NULL);
            for (uint64_t seed = 0; seed < 2 && !fa_format_of(dtype)->scale_dtype; seed++)
                quantize(ctx, FA_F32, dtype, true, usual, 10 + seed, NULL);
            fa_destroy(ctx);
        }
    /* Where lanes have four pieces of a row each. */
    static const int32_t integers[] = { FA_Q8_0, FA_Q4_0 }, types[] = { FA_F32, FA_BF16, FA_F16 };
    fa_context *ctx = context(1);
    for (size_t i = 0; i < COUNT(integers) * COUNT(types); i++)
        for (uint64_t seed = 0; seed < 4; seed++)
            quantize(ctx, types[i / COUNT(integers)], integers[i % COUNT(integers)], false, seed % 2 ? odd : usual, 20 + seed,
                     "append:warps=2,token_heads=4,claims=0");
    fa_destroy(ctx);
}

/* ---- who stays, who is skipped ---- */

static void slots_of(world *w, const int64_t slots[TOKENS])
{
    memcpy(w->slots, slots, sizeof w->slots);
    memset(w->k, 0x11, sizeof w->k);
    w->skipped = 40;
}

static const char *const ways[] = { "append:warps=4,token_heads=1,claims=0", "append:warps=2,token_heads=2,claims=1" };

Test(operation_append, of_two_tokens_for_one_slot_the_later_stays)
{
    for (int i = 0; i < 2 * (int)COUNT(ways); i++) {
        world w;
        world_open(&w, context(i / 2));
        for (int k = 0; k < POSITIONS; k++)
            w.angles[k][0] = w.angles[k][1] = 1;
        slots_of(&w, (int64_t[TOKENS]){ 7, 3, 7, 3, 3, 15 });
        play(&w, ways[i % 2]);
        cr_expect(w.k[7][1][7] == 217 && w.k[3][0][0] == 400 && w.k[15][1][1] == 511 && w.v[7][1][7] == -217, "%s: %g %g", ways[i % 2],
                  (double)w.k[7][1][7], (double)w.k[3][0][0]);
        cr_expect_eq(w.skipped, 40, "a token that another takes the place of is not skipped");
        cr_expect_eq(w.q_out[0][0][0], 0.5f, "its query is there");
        /* The last one's position is none: the one before it stays. */
        w.positions[4] = POSITIONS, w.positions[5] = -1;
        slots_of(&w, (int64_t[TOKENS]){ 7, 3, 7, 3, 3, 7 });
        play(&w, ways[i % 2]);
        cr_expect(w.k[7][0][0] == 200 && w.k[3][0][0] == 300, "%s: %g %g", ways[i % 2], (double)w.k[7][0][0], (double)w.k[3][0][0]);
        cr_expect_eq(w.skipped, 42);
        cr_expect(isnan(w.q_out[4][0][0]) && isnan(w.q_out[5][1][7]) && w.q_out[3][0][7] == 307.5f, "no angle, no query");
        world_close(&w);
    }
}

Test(operation_append, slots_outside_the_cache_are_skipped_and_counted)
{
    world w;
    world_open(&w, context(1));
    for (int k = 0; k < POSITIONS; k++)
        w.angles[k][0] = w.angles[k][1] = 1;
    for (size_t i = 0; i < COUNT(ways); i++) {
        slots_of(&w, (int64_t[TOKENS]){ -1, ROWS, ROWS - 1, INT64_MIN, (int64_t)1 << 32, ((int64_t)1 << 34) + 2 });
        play(&w, ways[i]);
        cr_expect_eq(w.skipped, 45, "%llu", (unsigned long long)w.skipped);
        cr_expect_eq(w.k[ROWS - 1][0][1], 201);
        for (int row = 0; row < ROWS - 1; row++)
            cr_expect_eq(memcmp(w.k[row], "\x11\x11\x11\x11", 4), 0, "row %d", row);
        cr_expect_eq(w.q_out[0][0][0], 0.5f, "queries of skipped tokens are rotated");
    }
    world_close(&w);
}

/* The same rows by slots, by a page table and by lengths alone; positions given and counted. */
Test(operation_append, every_way_to_say_where_leaves_the_same_cache)
{
    static const int32_t length[1] = { 11 }, table[4] = { 2, 0, 3, 1 };
    float by_slots[TOKENS][HKV][D];
    for (int way = 0; way < 3; way++) {
        world w;
        world_open(&w, context(0));
        void *lengths = upload(w.ctx, length, sizeof length), *pages = upload(w.ctx, table, sizeof table);
        float wide[16][RD];
        for (int i = 0; i < 16; i++)
            wide[i][0] = wide[i][1] = (float)(i + 1) / 16, wide[i][2] = wide[i][3] = (float)i / 8;
        OK(fa_free(w.ctx, (void *)(uintptr_t)w.args.cos_sin));
        void *angles = upload(w.ctx, wide, sizeof wide);
        const void *slots = w.args.slots, *positions = w.args.positions;
        w.args.cos_sin = NULL;
        for (int t = 0; t < TOKENS; t++) { /* keys 5 to 10 */
            w.positions[t] = 5 + t;
            w.slots[t] = 4 * table[(5 + t) / 4] + (5 + t) % 4;
        }
        put(&w, slots, w.slots, sizeof w.slots);
        put(&w, positions, w.positions, sizeof w.positions);
        fa_args a = w.args;
        a.cos_sin = angles, a.rotary_positions = 16;
        if (way)
            a.positions = NULL, a.position_bytes = 0, a.slots = NULL, a.seqlens_k = lengths;
        if (way == 1)
            a.page_table = pages;
        if (way == 2)
            a.page_size = a.pages = 0;
        OK(fa_launch(w.ctx, &a, NULL));
        OK(fa_copy(w.ctx, w.k, a.k.ptr, sizeof w.k, FA_FROM_DEVICE));
        for (int t = 0; t < TOKENS; t++) {
            const float *got = &w.k[way == 2 ? 5 + t : w.slots[t]][0][0];
            if (!way)
                memcpy(by_slots[t], got, sizeof by_slots[t]);
            else
                cr_expect_eq(memcmp(by_slots[t], got, sizeof by_slots[t]), 0, "way %d, token %d", way, t);
        }
        OK(fa_free(w.ctx, lengths));
        OK(fa_free(w.ctx, pages));
        OK(fa_free(w.ctx, angles));
        world_close(&w);
    }
}

/* ---- what is refused ---- */

Test(operation_append, what_is_wrong_is_named)
{
    world w;
    fa_context *ctx = context(0);
    world_open(&w, ctx);
    const fa_args good = w.args;
    int32_t table = 0;
    const void *device = w.args.k.ptr;
#define ROW(change, status, text)                                                           \
    do {                                                                                    \
        fa_args a = good;                                                                   \
        change;                                                                             \
        cr_expect_eq(fa_launch(ctx, &a, NULL), status, "%s: %s", #change, fa_last_error()); \
        cr_expect(strstr(fa_last_error(), text), "%s: %s", #change, fa_last_error());       \
    } while (0)
    ROW(a.new_k.ptr = NULL, FA_INVALID, "new_k.ptr is NULL");
    ROW(a.k.ptr = NULL, FA_INVALID, "k.ptr is NULL");
    ROW(a.q_out.ptr = NULL, FA_INVALID, "q_out.ptr is NULL and q.ptr is set; accepted: both or neither");
    ROW(a.v.ptr = a.k.ptr, FA_INVALID, "overlaps");
    ROW(a.k.ptr = a.new_k.ptr, FA_INVALID, "k overlaps new_k");
    ROW(a.q_out.ptr = a.q.ptr, FA_INVALID, "q_out overlaps q");
    ROW((a.k.ss = HKV * D, a.k.sh = D), FA_INVALID, "k.sb is 0; accepted: a stride of at least 8 elements");
    ROW((a.flags = FA_BROADCAST, a.k.sb = 64, a.k.ss = 16), FA_INVALID, "k.sh is 0; accepted: a stride of at least 8 elements");
    ROW((a.k.sb = 64, a.k.ss = 16, a.k.sh = 4), FA_INVALID, "k.sh is 4; accepted: a stride of at least 8 elements");
    ROW(a.mask = FA_MASK_CAUSAL, FA_INVALID, "mask is causal; accepted with op=append: none");
    ROW(a.page_size = 0, FA_INVALID, "page_size is 0; accepted with slots");
    ROW(a.pages = -1, FA_INVALID, "pages is -1; accepted with slots");
    ROW((a.page_table = &table, a.seqlens_k = &table), FA_INVALID, "slots and page_table are set");
    ROW((a.cu_seqlens_k = &table, a.total_k = 1), FA_INVALID, "slots and cu_seqlens_k are set");
    ROW(a.page_table_stride = 4, FA_INVALID, "page_table_stride is 4 and page_table is NULL");
    ROW(a.rotary_dim = 3, FA_INVALID, "rotary_dim is 3; accepted with cos_sin and d=8: an even number from 2 to 8");
    ROW(a.rotary_dim = 10, FA_INVALID, "rotary_dim is 10");
    ROW(a.rotary_dim = 0, FA_INVALID, "rotary_dim is 0");
    ROW(a.rotary_style = 2, FA_INVALID, "rotary_style is 2; accepted: FA_ROTARY_HALVES (0), FA_ROTARY_PAIRS (1)");
    ROW(a.cos_sin_dtype = FA_TF32, FA_INVALID, "cos_sin_dtype is 3");
    ROW(a.rotary_positions = 0, FA_INVALID, "rotary_positions is 0");
    ROW(a.position_bytes = 2, FA_INVALID, "position_bytes is 2; accepted with positions: 4, 8");
    ROW(a.positions = NULL, FA_INVALID, "position_bytes is 4; accepted where positions is NULL: 0");
    ROW(a.cos_sin = NULL, FA_INVALID, "cos_sin_dtype is 4 and cos_sin is NULL");
    ROW((a.cos_sin = NULL, a.cos_sin_dtype = a.rotary_dim = a.rotary_positions = a.position_bytes = 0), FA_INVALID,
        "positions is set and cos_sin is NULL");
    ROW(a.cos_sin = (const char *)a.cos_sin + 4, FA_INVALID, "a multiple of 8 bytes");
    ROW(a.positions = (const char *)a.positions + 2, FA_INVALID, "positions is");
    ROW(a.append_flags = 4, FA_INVALID, "append_flags is 0x4; accepted: FA_HADAMARD_K (0x1), FA_HADAMARD_V (0x2)");
    ROW((a.b = 1 << 20, a.sq = 1 << 20), FA_INVALID, "2^31 - 1 new rows");
    ROW(a.kv_dtype = 99, FA_INVALID, "kv_dtype is 99");
    ROW(a.o_dtype = FA_F16, FA_INVALID, "o_dtype is 1");
    ROW(a.k_scale_out.ptr = device, FA_INVALID, "k_scale_out.by is 0; accepted: FA_SCALE_FOLDED (1), FA_SCALE_TOKEN (2)");
    ROW((a.k_scale_out = (fa_scale){ .ptr = device, .dtype = FA_F32, .by = FA_SCALE_TOKEN }), FA_INVALID,
        "k_scale_out_by is 2; accepted with fp32 in K: 0");
    ROW((a.kv_dtype = FA_E4M3, a.k_scale_out = (fa_scale){ .ptr = device, .dtype = FA_F32, .by = FA_SCALE_FOLDED }), FA_INVALID,
        "k_scale_out_by is 1; accepted: FA_SCALE_TOKEN (2)");
    ROW((a.kv_dtype = FA_S8, a.k_scale = a.k_scale_out = (fa_scale){ .ptr = device, .dtype = FA_F32, .by = FA_SCALE_TOKEN }), FA_INVALID,
        "k_scale_out_by is 2, and scales of K are given; accepted: one of them");
    ROW((a.kv_dtype = FA_S8, a.k_scale_out = (fa_scale){ .ptr = device, .dtype = FA_F32, .by = FA_SCALE_TOKEN }), FA_INVALID,
        "k_scale_out.sb is 0; accepted: a stride of at least 1 elements");
    ROW(a.kv_dtype = FA_Q8_0, FA_UNSUPPORTED, "kv_dtype is 8 (q8_0) and rows have 8 elements; accepted with it: a multiple of 32");
    ROW(a.lse = a.q_out.ptr, FA_OK, "");
    ROW(a.parts = 1, FA_INVALID, "parts is set: merging of partial results; accepted with op=append: 0");
    ROW(a.flags = FA_BATCH_INVARIANT, FA_UNSUPPORTED, "with op=append: FA_BROADCAST");
    ROW((a.d = 6, a.append_flags = FA_HADAMARD_K), FA_UNSUPPORTED, "d is 6 and features has hadamard-k; accepted with it: a power of two");
    /* A repeat looks at addresses, too. */
    OK(fa_launch(ctx, &good, NULL));
    ROW(a.cos_sin = (const char *)a.cos_sin + 4, FA_INVALID, "a multiple of 8 bytes");
    world_close(&w);
}

/* Two sequences that append to one token of a page are found where device memory is looked at. */
Test(operation_append, pages_of_two_sequences_are_found)
{
    world w;
    world_open(&w, context(0));
    const int32_t length[2] = { 6, 5 }, apart[4] = { 0, 1, 2, 3 }, shared[4] = { 0, 1, 2, 1 };
    void *lengths = upload(w.ctx, length, sizeof length), *table = upload(w.ctx, apart, sizeof apart);
    fa_args a = w.args;
    a.slots = NULL, a.positions = NULL, a.position_bytes = 0, a.rotary_positions = 5;
    a.b = 2, a.sq = 3, a.sk = 8, a.seqlens_k = lengths, a.page_table = table;
    OK(fa_launch(w.ctx, &a, NULL));
    put(&w, table, shared, sizeof shared);
    cr_expect_eq(fa_launch(w.ctx, &a, NULL), FA_INVALID);
    cr_expect(strstr(fa_last_error(), "page_table[1][1] is 1, and another new key has token 0 of that page"), "%s", fa_last_error());
    OK(fa_free(w.ctx, lengths));
    OK(fa_free(w.ctx, table));
    world_close(&w);
}

/* ---- a launch like others ---- */

Test(operation_append, preparing_and_launching_agree)
{
    fa_options o = FA_OPTIONS_INIT;
    fa_context *ctx;
    fa_problem p, derived;
    world w;
    char why[4096];
    o.cache_dir = below("cache");
    o.on_miss = FA_MISS_FAIL;
    OK(fa_create_on(&ctx, &o, sim_open(TEST_CHIPS), 1));
    world_open(&w, ctx);
    OK(fa_problem_parse(&p, "tf32,d=8,op=append,features=slots+positions,page=4,rotary=4,cos=fp32,b=1,hq=2,hkv=2,sq=6,sk=16"));
    cr_expect(p.dtype == FA_F32 && p.features & FA_FEATURE_ROTARY);
    OK(fa_supported(ctx, &p));
    cr_expect_eq(fa_launch(ctx, &w.args, NULL), FA_NO_KERNEL);
    OK(fa_problem_of(&w.args, &derived));
    cr_expect(derived.op == FA_APPEND && derived.features == p.features && derived.page == 4 && derived.rotary_dim == 4 &&
              derived.cos_sin_dtype == FA_F32 && derived.kv_dtype == 0);
    OK(fa_prepare(ctx, &p));
    OK(fa_launch(ctx, &w.args, NULL));
    w.args.q.ptr = NULL; /* of the same class without queries */
    void *q_out = w.args.q_out.ptr;
    w.args.q_out.ptr = NULL, w.args.skipped = NULL;
    OK(fa_launch(ctx, &w.args, NULL));
    w.args.sq = 0;
    OK(fa_launch(ctx, &w.args, NULL));
    w.args.sq = TOKENS;
    OK(fa_explain(ctx, NULL, &w.args, why, sizeof why));
    cr_expect(strstr(why, "op=append") && strstr(why, "append:") && strstr(why, "hit"), "%s", why);
    OK(fa_free(ctx, q_out));
    w.args.q_out.ptr = NULL;
    fa_destroy(ctx);
}

static const struct {
    const char *problem, *wrong;
} problems[] = {
    { "bf16,d=64,op=append,rotary=65", "rotary_dim is 65; accepted with d=64: an even number from 2 to 64" },
    { "bf16,d=64,op=append,rotary=64", "cos_sin_dtype is 0" },
    { "bf16,d=64,op=append,features=positions", "rotary_dim is 0 and features has positions" },
    { "bf16,d=64,op=append,features=slots", "page is 0 and features has slots" },
    { "bf16,d=64,op=append,features=slots+pages+lengths,page=16", "features has pages and slots" },
    { "bf16,d=64,op=append,mask=causal", "mask is causal; accepted with op=append: none" },
    { "bf16,d=64,op=append,features=dropout", "accepted: lengths+pages+slots" },
    { "bf16,d=64,op=append,features=positions64,rotary=64,cos=fp32", "positions64 and no positions" },
    { "bf16,d=64,rotary=64,cos=fp32", "rotary_dim is 64: rotation beside attention, which this version does not compute" },
    { "bf16,d=64,features=slots", "features is slots, which this version does not compute" },
    { "bf16,d=64,kv=fp16", "kv_dtype is 1" },
};

Test(operation_append, problems_that_are_none_are_named)
{
    for (size_t i = 0; i < COUNT(problems); i++) {
        fa_problem p;
        cr_expect_neq(fa_problem_parse(&p, problems[i].problem), FA_OK, "%s", problems[i].problem);
        cr_expect(strstr(fa_last_error(), problems[i].wrong), "%s: %s", problems[i].problem, fa_last_error());
    }
}

/* ---- the bytes of the model ---- */

Test(operation_append, the_model_counts_the_bytes_that_move)
{
    fa_context *ctx = context(0);
    fa_problem p;
    fa_gen *g;
    const fa_plan *plan;
    fa_tensors t;
    fa_entered in;
    fa_cost cost;
    fa_config k = test_config("append:warps=4,token_heads=2,claims=1");
    const fa_operation *op = fa_operation_find(FA_APPEND);
    OK(fa_gen_open(&g, NULL));
    OK(fa_problem_parse(&p, "bf16,d=64,op=append,kv=fp32,features=slots,page=16,b=2,hq=4,hkv=2,sq=9,sk=64"));
    OK(fa_plan_make(ctx, &p, &k, NULL, &plan));
    sim_counters counted = test_traced(ctx, &p, plan, &in, &t);
    OK(fa_model_cost(g, &p, &k, fa_context_arch(ctx), 0, &cost));
    uint64_t rows = 2 * 9 * 2 * 64, q = 2 * 9 * 4 * 64;
    const struct {
        fa_operand_id id;
        uint64_t read, written;
    } of[] = { { FA_ID_new_k, rows * 2, 0 }, { FA_ID_new_v, rows * 2, 0 }, { FA_ID_q, q * 2, 0 },
               { FA_ID_q_out, 0, q * 2 },    { FA_ID_k, 0, rows * 4 },     { FA_ID_v, 0, rows * 4 } };
    uint64_t all = 0;
    for (size_t i = 0; i < COUNT(of); i++) {
        int found = 0;
        for (int at = 0; at < counted.tensors; at++)
            if (counted.tensor[at].base == t.at[fa_operand_slot(op, of[i].id)]) {
                found++;
                cr_expect(counted.tensor[at].read == of[i].read && counted.tensor[at].write == of[i].written, "%s: %llu read, %llu written",
                          op->operand[fa_operand_slot(op, of[i].id)].name, (unsigned long long)counted.tensor[at].read,
                          (unsigned long long)counted.tensor[at].write);
            }
        cr_expect_eq(found, 1);
        all += of[i].read + of[i].written;
    }
    cr_expect_eq((uint64_t)fa_traffic_total(&cost.traffic), all + 2 * 9 * (8 + 12 + 12), "rows, slots, and the table of them");
    fa_tensors_close(&t);
    fa_context_leave(ctx, &in);
    fa_gen_close(g);
    fa_destroy(ctx);
}
