/* What a launch gives for the operands of its score program: what is right, and what is refused with the field's name. */
#include "gen/problem.h"
#include "gen/score/known.h"
#include "runtime/args/check.h"
#include "test_fake_context.h"
#include "test_good_args.h"
#include <float.h>
#include <math.h>
#include <string.h>

TestSuite(score_values, .init = open_bare_context, .fini = close_bare_context, .timeout = 60);

#define TEXT                                                                                                       \
    "cap = scalar(50, 'float', 1, 100)\nslope = f32 'hq'\nn = scalar(3, 'int', -2, 9)\nbias = bf16 'b hq sq sk'\n" \
    "seen = bits 'sq sk'\ntable = i64 '? 2*sk-1'\nwide = scalar(0)\n"                                              \
    "function score(s, b, h, i, j)\n"                                                                              \
    "  return cap * tanh(s / cap) + slope[h] + bias[b][h][i][j] * n + (seen[i][j] and table[n][j] * 1.0 or wide)\nend\n"
enum { CAP, SLOPE, N, BIAS, SEEN, TABLE, WIDE, OPERANDS };

static fa_score *score;
static fa_score_value value[OPERANDS];

/* Of good(): b 2, hq 8, hkv 4, sq 128, sk 256. */
static fa_args with_values(void)
{
    fa_args a = good();
    const int32_t bias[4] = { 2, 8, 128, 256 };
    OK(fa_score_create(ctx, TEXT, &score));
    for (int i = 0; i < OPERANDS; i++)
        value[i] = (fa_score_value)FA_SCORE_VALUE_INIT;
    value[CAP].scalar = 30;
    value[N].scalar = -2;
    value[WIDE].scalar = 1e30;
    value[SLOPE].ptr = AT(10);
    value[SLOPE].extent[0] = 8;
    value[BIAS].ptr = AT(11);
    memcpy(value[BIAS].extent, bias, sizeof bias);
    value[SEEN].ptr = AT(12);
    value[SEEN].extent[0] = 128;
    value[SEEN].extent[1] = 256;
    value[TABLE].ptr = AT(13);
    value[TABLE].extent[0] = 5;
    value[TABLE].extent[1] = 511;
    a.score = score;
    a.score_values = value;
    a.score_value_count = OPERANDS;
    return a;
}

static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

Test(score_values, become_what_kernels_take)
{
    fa_call c;
    fa_args a = with_values();
    value[BIAS].stride[1] = 256 * 128; /* the same in all sequences */
    value[BIAS].stride[2] = -256;
    value[BIAS].stride[3] = 1;
    OK(fa_check_args(&c, &a, true));
    cr_expect_eq(fa_score_known(&c.problem)->ir.operands, OPERANDS);
    cr_expect(c.problem.features & FA_FEATURE_SCORE);
    cr_expect_eq(c.arrays, 4);
    cr_expect_eq(float_of(c.values.score[CAP].scalar), 30.f);
    cr_expect_eq((int32_t)c.values.score[N].scalar, -2);
    cr_expect_eq(float_of(c.values.score[WIDE].scalar), 1e30f);
    const fa_score_given *bias = &c.values.score[BIAS], *seen = &c.values.score[SEEN], *table = &c.values.score[TABLE];
    cr_expect_eq(bias->address, (uint64_t)(uintptr_t)AT(11));
    cr_expect(bias->stride[0] == 0 && bias->stride[1] == 256 * 128 && bias->stride[2] == -256 && bias->stride[3] == 1);
    cr_expect(bias->extent[0] == 2 && bias->extent[1] == 8 && bias->extent[2] == 128 && bias->extent[3] == 256);
    cr_expect(seen->stride[0] == 8 && seen->stride[1] == 1 && seen->extent[1] == 256, "rows of 256 bits are 8 words");
    cr_expect(table->stride[0] == 511 && table->stride[1] == 1);
    cr_expect(table->extent[2] == 1 && table->stride[2] == 0);
}

/* What a launch does not give has the values of its own text, also where another text is the same program. */
Test(score_values, scalars_that_are_not_given_have_those_of_the_text)
{
    static const char *const texts[] = { "c = scalar(50) function score(s, b, h, i, j) return c * tanh(s / c) end",
                                         "k = scalar(30) function score(s, b, h, i, j) return k * tanh(s / k) end" };
    static const float want[] = { 50, 30 };
    for (int i = 0; i < 4; i++) {
        fa_args a = good();
        fa_score *s;
        fa_call c;
        OK(fa_score_create(ctx, texts[i % 2], &s));
        a.score = s;
        OK(fa_check_args(&c, &a, true));
        cr_expect_eq(float_of(c.values.score[0].scalar), want[i % 2]);
    }
}

/* Shapes alone are looked at where there are no addresses, and fa_problem_of() names the program. */
Test(score_values, a_problem_names_the_program)
{
    fa_args a = with_values();
    fa_problem p = FA_PROBLEM_INIT;
    uint64_t id[2];
    OK(fa_problem_of(&a, &p));
    OK(fa_score_id(ctx, score, id));
    cr_expect_eq((uint32_t)p.score_id0, (uint32_t)id[0]);
    cr_expect_eq((uint32_t)p.score_id3, (uint32_t)(id[1] >> 32));
    a.q.ptr = a.k.ptr = a.v.ptr = a.o.ptr = NULL;
    for (int i = 0; i < OPERANDS; i++)
        value[i].ptr = NULL;
    OK(fa_problem_of(&a, &p));
    value[BIAS].extent[3] = 255;
    cr_expect_eq(fa_problem_of(&a, &p), FA_INVALID);
}

/* An array without elements is no trouble, whatever its address, and lies as aligned ones do: a plan for these takes the call. */
Test(score_values, no_keys_is_no_trouble)
{
    fa_args a = with_values();
    fa_call c;
    a.sk = 0;
    value[BIAS].extent[3] = value[SEEN].extent[1] = 0;
    value[TABLE].extent[1] = 0;
    value[BIAS].ptr = value[SEEN].ptr = value[TABLE].ptr = NULL;
    OK(fa_check_args(&c, &a, true));
    cr_expect_eq(c.values.score[BIAS].extent[3], 1);
    cr_expect_neq(c.values.score[BIAS].address, 0, "kernels may read one element");
    cr_expect_eq(c.values.score[BIAS].address % 16, 0);
    cr_expect_eq(c.problem.features & (FA_FEATURE_SCORE_ANYWHERE | FA_FEATURE_SCORE_COLUMNS), 0);
}

static fa_args args;

/* clang-format off */
static void count(double n) { args.score_value_count = (int32_t)n; }
static void no_values(double n) { (void)n, args.score_values = NULL; }
static void no_score(double n) { args.score = NULL, args.score_value_count *= (int32_t)n; }
static void size_of_3(double n) { value[3].size = (uint32_t)n; }
static void size_of_0(double n) { value[0].size = (uint32_t)n; }
static void reserved(double n) { value[SLOPE].reserved = (int32_t)n; }
static void cap(double n) { value[CAP].scalar = n; }
static void whole(double n) { value[N].scalar = n; }
static void wide(double n) { value[WIDE].scalar = n; }
static void scalar_ptr(double n) { value[CAP].ptr = AT(n); }
static void scalar_extent(double n) { value[CAP].extent[2] = (int32_t)n; }
static void scalar_stride(double n) { value[CAP].stride[0] = (int64_t)n; }
static void slope_extent(double n) { value[SLOPE].extent[0] = (int32_t)n; }
static void slope_rank(double n) { value[SLOPE].extent[1] = (int32_t)n; }
static void slope_stride(double n) { value[SLOPE].stride[1] = (int64_t)n; }
static void slope_far(double n) { value[SLOPE].stride[0] = (int64_t)n; }
static void slope_ptr(double n) { value[SLOPE].ptr = (void *)(uintptr_t)n; }
static void bias_ptr(double n) { value[BIAS].ptr = (void *)(uintptr_t)n; }
static void table_ptr(double n) { value[TABLE].ptr = (char *)AT(13) + (int)n; }
static void bias_batch(double n) { value[BIAS].extent[0] = (int32_t)n; }
static void bias_heads(double n) { value[BIAS].extent[1] = (int32_t)n; }
static void bias_keys(double n) { value[BIAS].extent[3] = (int32_t)n; }
static void bias_stride(double n) { value[BIAS].stride[0] = (int64_t)n, value[BIAS].stride[3] = 1; }
static void seen_rows(double n) { value[SEEN].extent[0] = (int32_t)n; }
static void seen_words(double n) { value[SEEN].extent[1] = (int32_t)n; }
static void table_any(double n) { value[TABLE].extent[0] = (int32_t)n; }
static void table_keys(double n) { value[TABLE].extent[1] = (int32_t)n; }
static void grad_ptr(double n) { value[BIAS].grad_ptr = AT(n); }
static void grad_stride(double n) { value[BIAS].grad_stride[2] = (int64_t)n; }
static void on_output(double n) { value[BIAS].ptr = (char *)args.o.ptr + (int)n; }
static void on_lse(double n) { value[SLOPE].ptr = (char *)args.lse + (int)n; }
static void on_workspace(double n) { value[SEEN].ptr = args.workspace = AT(n), args.workspace_size = 4096; }
static void backward(double n) { args.op = (int32_t)n; }
/* clang-format on */

Test(score_values, what_is_wrong_is_refused_by_name)
{
    static const struct {
        void (*change)(double);
        double n;
        const char *says;
    } rows[] = {
        { count, -1, "args: score_value_count is -1; accepted: up to 7, the operands of the program" },
        { count, 8, "args: score_value_count is 8; accepted: up to 7, the operands of the program" },
        { count, 0, "args: score_value_count is 0; accepted: at least 2, as operand 1 of the program, slope, is an array" },
        { count, 5, "args: score_value_count is 5; accepted: at least 6, as operand 5 of the program, table, is an array" },
        { no_values, 0, "args: score_values is NULL and score_value_count is 7; accepted: as many values" },
        { no_score, 1, "args: score is NULL and score_value_count is not 0; accepted: both or neither" },
        { no_score, 0, "args: score is NULL and score_values is set; accepted: both or neither" },
        { size_of_0, 0, "args: score_values[0].size is 0; accepted: sizeof(fa_score_value), set by FA_SCORE_VALUE_INIT" },
        { size_of_0, 1e6, "args: score_values[0].size is 1000000; accepted: sizeof(fa_score_value)" },
        { size_of_3, 8, "args: score_values[3].size is 8; accepted: sizeof(fa_score_value), set by FA_SCORE_VALUE_INIT, the same in all" },
        { reserved, 1, "args: score_values[1].reserved is 1 (slope); accepted: 0" },
        { cap, 0.5, "args: score_values[0].scalar is 0.5 (cap); accepted: 1 to 100" },
        { cap, 101, "args: score_values[0].scalar is 101 (cap); accepted: 1 to 100" },
        { cap, NAN, "args: score_values[0].scalar is nan (cap); accepted: 1 to 100" },
        { whole, 2.5, "args: score_values[2].scalar is 2.5 (n); accepted: integers from -2 to 9" },
        { whole, 10, "args: score_values[2].scalar is 10 (n); accepted: integers from -2 to 9" },
        { wide, INFINITY, "args: score_values[6].scalar is inf (wide); accepted: -3.40282347e+38 to 3.40282347e+38" },
        { wide, -1e39, "args: score_values[6].scalar is -1e+39 (wide); accepted: -3.40282347e+38 to" },
        { scalar_ptr, 7, "args: score_values[0].ptr is set (cap); accepted: NULL, as the operand is a scalar" },
        { scalar_extent, 1, "args: score_values[0].extent is set (cap); accepted: 0, as the operand is a scalar" },
        { scalar_stride, 1, "args: score_values[0].stride is set (cap); accepted: 0, as the operand is a scalar" },
        { slope_extent, 4, "args: score_values[1].extent[0] is 4 (slope); accepted: 8, which the shape \"hq\" comes to here" },
        { slope_extent, 0, "args: score_values[1].extent[0] is 0 (slope); accepted: 8, which the shape \"hq\" comes to here" },
        { slope_rank, 1, "args: score_values[1].extent[1] is 1 (slope); accepted: 0, as the shape is \"hq\"" },
        { slope_stride, 1, "args: score_values[1].stride[1] is 1 (slope); accepted: 0, as the operand has no such index" },
        { slope_far, 4e18, "args: score_values[1].stride[0] is 4000000000000000000 (slope); accepted: offsets below 2^63 bytes" },
        { slope_ptr, 0, "args: score_values[1].ptr is NULL (slope); accepted: the device address of its elements" },
        { slope_ptr, 4098, "args: score_values[1].ptr is 0x1002 (slope); accepted: a multiple of the element's 4 bytes" },
        { bias_ptr, 4097, "args: score_values[3].ptr is 0x1001 (bias); accepted: a multiple of the element's 2 bytes" },
        { table_ptr, 4, "(table); accepted: a multiple of the element's 8 bytes" },
        { bias_batch, 1,
          "args: score_values[3].extent[0] is 1 (bias); accepted: 2, which the shape \"b hq sq sk\" comes to here; a stride "
          "of 0 reads the same for each index" },
        { bias_heads, 4, "args: score_values[3].extent[1] is 4 (bias); accepted: 8, which" },
        { bias_keys, 255, "args: score_values[3].extent[3] is 255 (bias); accepted: 256, which" },
        { bias_stride, 9e18, "args: score_values[3].stride[0] is 9000000000000000000 (bias); accepted: offsets below 2^63 bytes" },
        { seen_rows, 127, "args: score_values[4].extent[0] is 127 (seen); accepted: 128, which the shape \"sq sk\" comes to here" },
        { seen_words, 8, "args: score_values[4].extent[1] is 8 (seen); accepted: 256, which" },
        { table_any, 0, "args: score_values[5].extent[0] is 0 (table); accepted: 1 to 2^30, as the shape is \"? 2*sk-1\"" },
        { table_any, -3, "args: score_values[5].extent[0] is -3 (table); accepted: 1 to 2^30" },
        { table_keys, 512, "args: score_values[5].extent[1] is 512 (table); accepted: 511, which the shape \"? 2*sk-1\" comes to here" },
        { grad_ptr, 9, "args: score_values[3].grad_ptr is set (bias); accepted: NULL, but for gradients" },
        { grad_stride, 9, "args: score_values[3].grad_stride is set (bias); accepted: 0 without grad_ptr" },
        { on_output, 0, "args: o overlaps score_values[3]; accepted: bytes of its own" },
        { on_output, 1000, "args: o overlaps score_values[3]; accepted: bytes of its own" },
        { on_lse, 0, "args: lse overlaps score_values[1]; accepted: bytes of its own" },
        { on_workspace, 20, "args: workspace overlaps score_values[4]; accepted: bytes of its own" },
        { backward, FA_MERGE, "args: score is set: score programs; accepted with op=merge: 0" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_problem p = FA_PROBLEM_INIT;
        args = with_values();
        OK(fa_problem_of(&args, &p));
        rows[i].change(rows[i].n);
        cr_expect_eq(fa_problem_of(&args, &p), FA_INVALID, "row %zu", i);
        cr_expect(strstr(fa_last_error(), rows[i].says), "row %zu\n  %s\n  %s", i, rows[i].says, fa_last_error());
        fa_score_destroy(score);
    }
}
