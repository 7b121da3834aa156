/* Score programs through fa_launch() on the simulator: random cases of programs that ship, what a repeated launch reads again, NaN of an
 * operand, a launch beside one without. */
#include "gen/score/known.h"
#include "gen/score/shipped.h"
#include "test_verify_device.h"
#include "verify/operands/score_operands.h"
#include <math.h>

TestSuite(verify_scores, .timeout = 600);

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

static const fa_program *shipped(const char *name)
{
    const fa_program *p;
    const fa_score_file *file = fa_score_shipped_find(name, strlen(name));
    cr_assert(file, "%s", name);
    OK(fa_score_known_read(&p, file->name, file->bytes, file->size));
    return p;
}

/* A class of kernels: cases of it differ in all that is not compiled. FAGEN_TEST_FULL=1: more cases, and of every row; else one of every
 * second of the first, in turns of many queries and of few: score_kernels has the most problems. */
static const struct {
    const char *program, *class;
    int device; /* of TEST_CHIPS */
} rows[] = {
    { "softcap", "bf16,d=64,mask=causal", 0 },
    { "softcap_sink", "fp16,d=64,features=lengths+pages,page=16", 0 },
    { "alibi", "fp32,d=20,mask=window", 0 },
    { "bias_bf16", "bf16,d=128", 1 },
    { "relative", "tf32,d=32,mask=causal", 0 },
    { "sink", "bf16,d=64,mask=causal,features=lengths", 1 },
    { "t5", "bf16,d=64", 1 },
    { "softcap_alibi", "fp16,d=80,mask=causal,features=lengths+pages,page=8", 1 },
    { "temperature_rows", "fp16,d=40,dv=24,mask=causal", 0 },
    { "documents", "bf16,d=64", 1 },
    { "padding", "bf16,d=48,mask=window", 0 },
    { "matrix", "fp16,d=128,features=lengths+pages,page=16", 1 },
    { "prefix", "fp32,d=16", 0 },
    { "tree", "fp16,d=64", 1 },
    { "blocks", "tf32,d=32,mask=causal,features=lengths", 0 },
    { "chunked", "bf16,d=96,features=lengths", 1 },
    { "window", "fp16,d=72,dv=40", 0 },
    { "matrix_u8", "bf16,d=64,mask=causal", 1 },
};

#define ROWS_OF_ALL 11

Test(verify_scores, random_cases_are_right)
{
    bool full = getenv("FAGEN_TEST_FULL") != NULL;
    int ran = 0;
    for (int device = 0; device < 2; device++) {
        fa_context *ctx;
        fa_options o = FA_OPTIONS_INIT;
        o.cache_dir = "";
        test_mode(device ? SIM_LAZY : SIM_EAGER, device ? SIM_RANDOM : SIM_IN_ORDER, 7);
        OK(fa_create_on(&ctx, &o, sim_open(TEST_CHIPS), device));
        for (size_t i = full ? 0 : 1; i < (full ? sizeof rows / sizeof *rows : ROWS_OF_ALL); i += full ? 1 : 2)
            for (uint64_t seed = 1; seed <= (full ? 60 : 1) && rows[i].device == device; seed++) {
                fa_problem class;
                fa_case c;
                fa_verdict v;
                fa_config config;
                fa_gen *g;
                OK(fa_problem_parse(&class, rows[i].class));
                fa_case_make_class(&c, &class, (full ? seed : i / 2) % 2 ? FA_CASE_MANY : FA_CASE_FEW, seed * 977 + i);
                fa_case_set_score(&c, shipped(rows[i].program), true);
                c.choice = full ? (uint32_t)(seed / 3) : (uint32_t)i;
                OK(fa_gen_open(&g, NULL));
                OK(fa_case_config(g, &c, fa_context_arch(ctx), fa_context_budget(ctx), NULL, &config));
                fa_gen_close(g);
                cr_expect_eq(fa_verify_case(ctx, &c, &config, &v), FA_OK, "%s: %s", config.family, fa_last_error());
                ran++;
            }
        fa_destroy(ctx);
    }
    cr_expect_geq(ran, 5);
}

/* A softcap of two values, ALiBi of two arrays, another program at the same addresses, none: what each writes, by O's sum. */
typedef struct small {
    fa_context *ctx;
    fa_args a;
    void *slopes[2];
} small;

enum { N = 24, D = 32 };

static void *upload(fa_context *ctx, const float *x, size_t n)
{
    void *to;
    OK(fa_alloc(ctx, &to, n * 4));
    OK(fa_copy(ctx, to, x, n * 4, FA_TO_DEVICE));
    return to;
}

static void open_small(small *s)
{
    static float x[3 * N * 2 * D], slope[2][2] = { { 0.5f, -0.25f }, { 0.125f, 2 } };
    void *out;
    s->ctx = test_context(NULL, "");
    s->a = (fa_args)FA_ARGS_INIT;
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = (float)((i * 7919 + 13) % 257) / 64 - 2;
    OK(fa_alloc(s->ctx, &out, N * 2 * D * 4));
    s->a.dtype = FA_F32;
    s->a.d = D;
    s->a.b = 1;
    s->a.hq = s->a.hkv = 2;
    s->a.sq = s->a.sk = N;
    s->a.q.ptr = upload(s->ctx, x, N * 2 * D);
    s->a.k.ptr = upload(s->ctx, x + N * 2 * D, N * 2 * D);
    s->a.v.ptr = upload(s->ctx, x + 2 * N * 2 * D, N * 2 * D);
    s->a.o.ptr = out;
    for (int i = 0; i < 2; i++)
        s->slopes[i] = upload(s->ctx, slope[i], 2);
}

static double launched(small *s)
{
    static float o[N * 2 * D];
    double sum = 0;
    OK(fa_launch(s->ctx, &s->a, NULL));
    OK(fa_copy(s->ctx, o, s->a.o.ptr, sizeof o, FA_FROM_DEVICE));
    for (size_t i = 0; i < sizeof o / sizeof *o; i++)
        sum += (double)o[i] * (double)(i % 17 + 1);
    return sum;
}

Test(verify_scores, a_repeated_launch_reads_its_values_again)
{
    small s;
    fa_score *cap, *alibi, *same;
    fa_score_value value = FA_SCORE_VALUE_INIT;
    test_mode(SIM_EAGER, SIM_IN_ORDER, 1);
    open_small(&s);
    double plain = launched(&s);
    OK(fa_score_create(s.ctx, "c = scalar(50) function score(s, b, h, i, j) return c * tanh(s / c) end", &cap));
    OK(fa_score_create(s.ctx, "k = scalar(2) function score(s, b, h, i, j) return k * tanh(s / k) end", &same));
    OK(fa_score_create(s.ctx, "m = f32 'hq' function score(s, b, h, i, j) return s + m[h] * (j - i) end", &alibi));
    s.a.score = cap;
    s.a.score_values = &value;
    s.a.score_value_count = 1;
    value.scalar = 2;
    double two = launched(&s);
    cr_expect_eq(launched(&s), two);
    value.scalar = 1; /* in place: nothing of fa_args changes */
    double one = launched(&s);
    cr_expect_neq(one, two);
    value.scalar = 2;
    cr_expect_eq(launched(&s), two);
    s.a.score_values = NULL; /* the value of each text */
    s.a.score_value_count = 0;
    cr_expect(fabs(launched(&s) - plain) < fabs(two - plain) / 20 && launched(&s) != plain, "50 hardly bends them");
    s.a.score = same;
    cr_expect_eq(launched(&s), two);
    s.a.score = alibi;
    s.a.score_values = &value;
    s.a.score_value_count = 1;
    value = (fa_score_value)FA_SCORE_VALUE_INIT;
    value.ptr = s.slopes[0];
    value.extent[0] = 2;
    double first = launched(&s);
    value.ptr = s.slopes[1];
    double second = launched(&s);
    cr_expect(first != second && first != plain);
    value.ptr = s.slopes[0];
    cr_expect_eq(launched(&s), first);
    s.a.score = NULL;
    s.a.score_values = NULL;
    s.a.score_value_count = 0;
    cr_expect_eq(launched(&s), plain);
    fa_destroy(s.ctx);
}

/* An object that another context's program takes the place of, at one address: no launch runs the former program's kernel. */
Test(verify_scores, an_object_that_serves_again_is_another)
{
    small s;
    fa_score *cap, *temperature;
    fa_context *other;
    fa_options o = FA_OPTIONS_INIT;
    test_mode(SIM_EAGER, SIM_IN_ORDER, 1);
    open_small(&s);
    OK(fa_score_create(s.ctx, "c = scalar(1) function score(s, b, h, i, j) return c * tanh(s / c) end", &cap));
    s.a.score = cap;
    double capped = launched(&s);
    o.cache_dir = "";
    OK(fa_create_on(&other, &o, sim_open(TEST_CHIPS), 0));
    fa_destroy(s.ctx); /* its buffers stay with the device */
    OK(fa_score_create(other, "c = scalar(3) function score(s, b, h, i, j) return c * s end", &temperature));
    cr_expect_eq(temperature, cap, "the test is of objects that serve again");
    s.ctx = other;
    double hot = launched(&s);
    cr_expect_neq(hot, capped);
    s.a.score = NULL;
    s.a.scale = 3 / sqrtf(D);
    cr_expect(fabs(launched(&s) - hot) < 1e-3 * fabs(hot));
    fa_destroy(other);
}

/* Prepared, explained and sized by its problem, as by its arguments. */
Test(verify_scores, a_problem_with_a_program_is_prepared)
{
    small s;
    fa_score *cap;
    fa_problem p = FA_PROBLEM_INIT;
    size_t bytes;
    char text[8192];
    test_mode(SIM_EAGER, SIM_IN_ORDER, 1);
    open_small(&s);
    OK(fa_score_create(s.ctx, "c = scalar(1) function score(s, b, h, i, j) return c * tanh(s / c) end", &cap));
    s.a.score = cap;
    OK(fa_problem_of(&s.a, &p));
    OK(fa_supported(s.ctx, &p));
    OK(fa_prepare(s.ctx, &p));
    OK(fa_workspace_size(s.ctx, &s.a, &bytes));
    OK(fa_explain(s.ctx, NULL, &s.a, text, sizeof text));
    cr_expect(strstr(text, "features=score") && strstr(text, "\nscore      score: score, of c\n"), "%s", text);
    cr_expect(strstr(text, "hit: prepared") || strstr(text, "prepared"), "%s", text);
    launched(&s);
    fa_destroy(s.ctx);
}

/* An element that a visible pair reads: NaN spoils its row and no other. */
Test(verify_scores, nan_of_an_operand_stays_with_its_row)
{
    small s;
    fa_score *bias;
    static float x[2 * N * N], o[N * 2 * D];
    fa_score_value value = FA_SCORE_VALUE_INIT;
    test_mode(SIM_EAGER, SIM_IN_ORDER, 1);
    open_small(&s);
    OK(fa_score_create(s.ctx, "t = f32 'hq sq sk' function score(s, b, h, i, j) return s + t[h][i][j] end", &bias));
    x[(1 * N + 5) * N + 3] = NAN;  /* head 1, query 5: seen */
    x[(0 * N + 7) * N + 20] = NAN; /* head 0, query 7, of a key that is hidden */
    value.ptr = upload(s.ctx, x, sizeof x / sizeof *x);
    value.extent[0] = 2;
    value.extent[1] = value.extent[2] = N;
    s.a.mask = FA_MASK_CAUSAL;
    s.a.score = bias;
    s.a.score_values = &value;
    s.a.score_value_count = 1;
    OK(fa_launch(s.ctx, &s.a, NULL));
    OK(fa_copy(s.ctx, o, s.a.o.ptr, sizeof o, FA_FROM_DEVICE));
    for (int i = 0; i < N; i++)
        for (int h = 0; h < 2; h++)
            for (int c = 0; c < D; c++)
                cr_expect_eq(isnan(o[(i * 2 + h) * D + c]) != 0, i == 5 && h == 1, "query %d, head %d", i, h);
    fa_destroy(s.ctx);
}

/* Kernels of Hopper bring rows of an array with an element for each pair by TMA, where they can. */
Test(verify_scores, rows_that_cannot_be_copied_are_told)
{
    enum { ROWS = 1024, HEADS = 16, BYTES = 1 << 22 };
    static const struct {
        int64_t row, key;
        int offset;
        const char *told; /* NULL: nothing */
    } arrays[] = {
        { ROWS, 1, 0, NULL },
        { ROWS + 8, 1, 16, NULL },
        { ROWS + 4, 1, 0, "\nlayout     x: rows begin at multiples of 8 bytes; fastest: 16\n" },
        { ROWS, 1, 2, "\nlayout     x: rows begin at multiples of 2 bytes; fastest: 16\n" },
        { 1, ROWS, 0, NULL },
        { 1, ROWS + 1, 0,
          "\nlayout     x: keys are 1025 elements apart, so that each is read by itself; fastest: 1, or queries side by side" },
    };
    fa_context *ctx = test_hopper_context(NULL, "", 132);
    fa_args a = FA_ARGS_INIT;
    fa_score_value x = FA_SCORE_VALUE_INIT;
    void *at[5];
    fa_score *bias;
    for (int i = 0; i < 5; i++)
        OK(fa_alloc(ctx, &at[i], BYTES));
    OK(fa_score_create(ctx, "x = bf16 'sq sk' function score(s, b, h, i, j) return s + x[i][j] end", &bias));
    a.dtype = FA_BF16, a.d = 64, a.b = 1, a.hq = a.hkv = HEADS, a.sq = a.sk = ROWS;
    a.q.ptr = at[0], a.k.ptr = at[1], a.v.ptr = at[2], a.o.ptr = at[3];
    a.score = bias, a.score_values = &x, a.score_value_count = 1;
    x.extent[0] = x.extent[1] = ROWS;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        char text[8192];
        x.ptr = (char *)at[4] + arrays[i].offset;
        x.stride[0] = arrays[i].row, x.stride[1] = arrays[i].key;
        OK(fa_explain(ctx, NULL, &a, text, sizeof text));
        cr_expect(arrays[i].told ? strstr(text, arrays[i].told) != NULL : !strstr(text, "layout     x:"), "%zu: %s", i, text);
    }
    fa_destroy(ctx);
}
