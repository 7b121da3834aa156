/* Problems of any class and shape, also such as nobody asks: each has a kernel or is refused as the caller's, by every call alike. */
#include "gen/error.h"
#include "gen/problem.h"
#include "test_full.h"
#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(runtime_problems, .timeout = 600);

static fa_context *open_on(const char *device)
{
    fa_context *ctx;
    fa_options opt = FA_OPTIONS_INIT;
    opt.device = device, opt.cache_dir = "";
    cr_assert_eq(fa_create(&ctx, &opt), FA_OK, "%s", fa_last_error());
    return ctx;
}

static int nothing(void *user, const fa_candidate_info *row)
{
    (void)user, (void)row;
    return 0;
}

static fa_status asked(fa_context *ctx, const fa_problem *p)
{
    char text[256];
    fa_status st = fa_supported(ctx, p), again = fa_explain(ctx, p, NULL, text, sizeof text);
    cr_expect_eq(st, again, "fa_supported %s, fa_explain %s: %s", fa_status_name(st), fa_status_name(again), fa_last_error());
    again = fa_candidates(ctx, p, nothing, NULL);
    cr_expect_eq(st, again, "fa_supported %s, fa_candidates %s: %s", fa_status_name(st), fa_status_name(again), fa_last_error());
    return st;
}

/* What families' own arithmetic did not hold, or a rule of theirs forgot. */
Test(runtime_problems, what_was_a_fault_of_templates)
{
    static const struct {
        const char *text;
        fa_status st;
        const char *says;
    } rows[] = {
        { "bf16,d=64,dv=512,mask=causal,features=lengths+pages+lse-strides,page=128,sq=4,sk=1", FA_OK, "" },
        { "fp16,d=128,dv=128,op=append,features=pages+lengths+hadamard-k+hadamard-v,page=64,b=1024,hq=20,hkv=5,sq=1048576,sk=64,kv=iq4_nl",
          FA_UNSUPPORTED, "append: some 1.7e+10 rows of query heads would need more than 2^31 - 1 blocks" },
        { "fp32,d=64,op=merge,o=e4m3", FA_UNSUPPORTED, "o_dtype is 5 (e4m3); accepted with fp32: 0, fp16 (1), bf16 (2), fp32 (4)" },
        { "fp32,d=40,op=merge,o=s8", FA_UNSUPPORTED, "o_dtype is 7 (s8)" },
        { "bf16,d=264,dv=128,features=lengths,b=268435456,hq=2000,hkv=1000,sq=1000000007", FA_INVALID,
          "b=268435456, hq=2000, sq=1000000007 are 5.369e+20 rows of Q with 264 elements; accepted: 2^50 elements at most" },
        { "fp32,d=128,op=append,b=1000000,hq=512,hkv=512,sq=268435456,sk=1", FA_INVALID, "rows of Q" },
        { "bf16,d=128,b=65536,hq=1,hkv=1,sq=1,sk=1073741824", FA_INVALID, "hkv=1, sk=1073741824 are 7.037e+13 rows of K" },
        { "bf16,d=16,b=65536,hq=1,hkv=1,sq=1,sk=1073741824", FA_OK, "" },
    };
    fa_context *ctx = open_on("sim:sm_90a");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_problem p;
        fa_status st = fa_problem_parse(&p, rows[i].text);
        st = st == FA_OK ? asked(ctx, &p) : st;
        cr_expect_eq(st, rows[i].st, "%s: %s %s", rows[i].text, fa_status_name(st), fa_last_error());
        cr_expect(rows[i].st == FA_OK || strstr(fa_last_error(), rows[i].says), "%s: %s", rows[i].text, fa_last_error());
    }
    fa_destroy(ctx);
}

static uint64_t state;

static uint64_t draw(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

#define ONE(...) ((const int32_t[]){ __VA_ARGS__ }[draw(sizeof(int32_t[]){ __VA_ARGS__ } / sizeof(int32_t))])

static void draw_low_bits(fa_problem *p)
{
    int32_t v;
    p->kv_dtype = ONE(5, 6, 7, 8, 9, 10, 11, 12, 13, 14), p->v_dtype = draw(4) ? 0 : ONE(5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
    p->d = ONE(64, 128, 192, 256, 320, 512), p->dv = ONE(0, 0, 0, 64, 128, 256), v = p->v_dtype ? p->v_dtype : p->kv_dtype;
    p->k_scale_by = p->kv_dtype < FA_Q8_0 ? ONE(0, 1, 2) : 0, p->v_scale_by = v < FA_Q8_0 ? ONE(0, 1, 2) : 0;
    if (p->op == FA_FORWARD && draw(4) == 0)
        p->kv_align = p->kv_dtype >= FA_Q8_0 ? 2 : 0, p->q_dtype = p->dtype == FA_F16 ? FA_F32 : 0;
    if (p->op == FA_APPEND && draw(2))
        p->k_scale_out_by = p->kv_dtype < FA_Q8_0 && !p->k_scale_by ? FA_SCALE_TOKEN : 0;
}

static void draw_eight(fa_problem *p)
{
    bool integers = p->dtype == FA_S8;
    p->q_scale_by = integers ? ONE(1, 2) : ONE(0, 1), p->k_scale_by = integers ? ONE(1, 2) : ONE(0, 1);
    p->v_dtype = integers || !draw(3) ? ONE(FA_F16, FA_BF16) : 0, p->v_scale_by = p->v_dtype ? 0 : ONE(0, 1);
    p->o_dtype = ONE(0, FA_F16, FA_BF16, FA_F32), p->features = p->v_dtype || draw(4) ? p->features : FA_FEATURE_V_COLUMNS;
}

/* Fields fit each other for the most part; one in twenty is anything. */
static fa_problem random_problem(void)
{
    static const int32_t features[][8] = { [FA_FORWARD] = { 0, 1, 3, 4, 7, 33, 64, 1024 },
                                           [FA_BACKWARD] = { 0, 1, 8, 16, 32, 9, 17, 57 },
                                           [FA_MERGE] = { 0 },
                                           [FA_APPEND] = { 0, 1, 3, 4096, 4096 | 8192, 65536 | 1, 131072 | 65536 | 4096, 3 | 65536 } };
    const bool vast = draw(8) == 0;
    fa_problem p = FA_PROBLEM_INIT;
    p.op = ONE(0, 0, 0, 0, 1, 1, 2, 3), p.dtype = p.op ? ONE(1, 2, 4) : ONE(1, 2, 2, 2, 3, 4, 5, 6, 7);
    p.d = ONE(1, 2, 7, 8, 16, 24, 33, 40, 64, 80, 96, 100, 112, 128, 128, 160, 192, 200, 256, 257, 264, 320, 384, 448, 512, 576);
    p.dv = draw(3) ? 0 : ONE(1, 7, 64, 128, 192, 256, 512, 576), p.mask = p.op <= FA_BACKWARD ? ONE(0, 1, 2) : 0;
    p.o_dtype = p.op == FA_MERGE               ? ONE(0, 1, 2, 4, 5, 7)
                : p.op == FA_APPEND || draw(3) ? 0
                                               : FA_F32,
    p.align = draw(3) ? 0 : ONE(16, 8, 4, 2);
    p.b = vast ? ONE(1, 65536, 1000000, INT32_MAX) : ONE(0, 1, 1, 2, 8, 33, 1024),
    p.hkv = vast ? ONE(1, 1000, 65536) : ONE(1, 2, 3, 5, 8, 32);
    p.hq = p.hkv * ONE(1, 1, 2, 4, 7, 8, 16), p.sq = vast ? ONE(1, 1 << 20, 1 << 30) : ONE(1, 1, 2, 5, 16, 17, 64, 100, 1000, 4096, 65536);
    p.sk = draw(2) ? p.sq : ONE(0, 1, 7, 64, 100, 1000, 4096, 8192, 65536), p.features = features[p.op][draw(8)];
    p.page = p.features & (FA_FEATURE_PAGES | FA_FEATURE_SLOTS) ? ONE(1, 2, 16, 64, 128) : 0, p.window = p.mask == 2 ? ONE(0, 1, 4096) : 0;
    p.grad_dtype = p.op == FA_BACKWARD ? ONE(0, 0, FA_F32) : 0;
    if (p.dtype >= FA_E4M3)
        draw_eight(&p);
    else if ((p.op == FA_FORWARD && p.dtype < FA_TF32 && draw(3) == 0) || (p.op == FA_APPEND && draw(3)))
        draw_low_bits(&p);
    if (p.op == FA_APPEND && draw(2))
        p.rotary_dim = ONE(2, 8, 64), p.cos_sin_dtype = ONE(1, 2, 4);
    if (draw(20) == 0)
        fa_problem_set(&p, &fa_problem_fields[draw(FA_PROBLEM_FIELD_COUNT)], ONE(-1, INT32_MIN, INT32_MAX, 1, 3, 1000000000));
    return p;
}

Test(runtime_problems, random_ones_are_computed_or_the_callers_fault)
{
    static const char *const devices[] = { "sim:sm_80", "sim:sm_90a" };
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        fa_context *ctx = open_on(devices[d]);
        int computed = 0, n = full() ? 20000 : 150;
        state = 17 + d;
        for (int i = 0; i < n; i++) {
            fa_problem p = random_problem();
            char text[FA_PROBLEM_TEXT];
            fa_status st = asked(ctx, &p);
            fa_problem_print(text, sizeof text, &p);
            cr_expect(st == FA_OK || st == FA_INVALID || st == FA_UNSUPPORTED || st == FA_NO_FIT, "%s: %s %s", text, fa_status_name(st),
                      fa_last_error());
            computed += st == FA_OK;
        }
        cr_expect_gt(computed, n / 3);
        fa_destroy(ctx);
    }
}

static char logged[1024];
static int lines;

static void log_line(void *user, int level, const char *message)
{
    (void)user;
    if (level <= FA_LOG_WARN)
        lines++, snprintf(logged, sizeof logged, "%s", message);
}

/* A layout that asks for another, slower kernel is told of: by fa_explain(), and in the log once for each class where it takes more than
 * three times as long. */
Test(runtime_problems, what_a_layout_costs_is_told)
{
    static const struct {
        const char *text, *explained, *logged; /* NULL: nothing of it */
    } rows[] = {
        { "bf16,d=576,dv=512,align=8,features=v-in-k,b=8,hq=128,hkv=1,sq=1,sk=8192",
          "\nlayout     rows begin at multiples of 8 bytes: ", ": rows begin at multiples of 8 bytes: " },
        { "bf16,d=257,b=2,hq=16,hkv=16,sq=4096,sk=4096", "us; at multiples of 16, with d and dv at multiples of 8 another kernel runs, ",
          "with d and dv at multiples of 8" },
        { "bf16,d=128,features=lengths+pages,page=1,b=2,hq=16,hkv=16,sq=4096,sk=4096",
          "\nlayout     the size of a page is a multiple of 1 ", "with sizes of pages at multiples of 16" },
        { "fp32,d=128,features=lse-strides,b=2,hq=16,hkv=16,sq=4096,sk=4096",
          "\nlayout     lse has strides of its own: ", "with lse packed" },
        { "bf16,d=128,align=8,b=2,hq=16,hkv=16,sq=4096,sk=4096", "\nlayout     rows begin at multiples of 8 bytes: ", NULL },
        { "bf16,d=128,b=2,hq=16,hkv=16,sq=4096,sk=4096", NULL, NULL },
        { "bf16,d=128,features=lengths+pages,page=16,b=2,hq=16,hkv=16,sq=4096,sk=4096", NULL, NULL },
    };
    fa_context *ctx;
    fa_options opt = FA_OPTIONS_INIT;
    opt.device = "sim:sm_90a", opt.cache_dir = "", opt.log = log_line, opt.log_level = FA_LOG_WARN;
    cr_assert_eq(fa_create(&ctx, &opt), FA_OK, "%s", fa_last_error());
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_problem p;
        char text[8192];
        lines = 0, logged[0] = 0;
        cr_assert_eq(fa_problem_parse(&p, rows[i].text), FA_OK, "%s", fa_last_error());
        cr_expect_eq(fa_explain(ctx, &p, NULL, text, sizeof text), FA_OK, "%s", fa_last_error());
        cr_expect(strstr(text, rows[i].explained ? rows[i].explained : "\nconfig"), "%s: %s", rows[i].text, text);
        cr_expect(rows[i].explained || !strstr(text, "\nlayout"), "%s: %s", rows[i].text, text);
        cr_expect_eq(lines, 0, "asking is no launch: %s", logged);
        for (int twice = 0; twice < 2; twice++)
            cr_expect_eq(fa_supported(ctx, &p), FA_OK, "%s", fa_last_error());
        cr_expect_eq(lines, rows[i].logged != NULL, "%s: %d lines, the last: %s", rows[i].text, lines, logged);
        cr_expect(!rows[i].logged || strstr(logged, rows[i].logged), "%s: %s", rows[i].text, logged);
    }
    fa_destroy(ctx);
}
