/* An operand that only this file knows: a weight of each query head, by which its scores are multiplied. A row, a line of a kernel and a
 * formula are enough for forward calls to be checked, drawn, launched, verified and measured with it. */
#include "gen/gen.h"
#include "runtime/launch/repeat.h"
#include "test_good_args.h"
#include "test_template_edit.h"
#include "test_verify_device.h"
#include "verify/truth/oracle.h"
#include "verify/truth/oracle_backward.h"
#include "verify/truth/reference.h"
#include <math.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

/* ---- the row ---- */

static const fa_operand weight = { .name = "head_weight",
                                   .rank = 1,
                                   .extent = { FA_EXTENT_HQ },
                                   .type = FA_TYPE_F32,
                                   .drawn = FA_DRAWN_FACTOR,
                                   .at = offsetof(fa_args, part_lse), /* stands in for a field of its own */
                                   .doc = "what a head's scores are multiplied by" };

/* ---- the kernel: the family naive ---- */

static const edit taken = { "naive.lua", "\"scale hq group sq sk", "\"head_weight scale hq group sq sk" },
                  weighted = { "naive.cu", "  float *const s = (float *)p.scores + t.scores;\n",
                               "  for (int i = 0; i < 16; i++) sum[i / 4][i % 4] *= p.head_weight[t.head];\n"
                               "  float *const s = (float *)p.scores + t.scores;\n" },
                  of_the_first = { "naive.cu", "  float *const s = (float *)p.scores + t.scores;\n",
                                   "  for (int i = 0; i < 16; i++) sum[i / 4][i % 4] *= p.head_weight[0];\n"
                                   "  float *const s = (float *)p.scores + t.scores;\n" };

/* ---- the formula ---- */

static double score(const fa_attention *a, double s, int64_t head, int64_t query, int64_t key)
{
    (void)query, (void)key;
    return s * (double)fa_attention_input(a, weight.name)[head % a->hq];
}

static fa_status exact(const fa_reference_call *c, double *const out[FA_OPERANDS_MAX])
{
    fa_attention a = fa_reference_attention(c);
    a.score = score;
    return fa_oracle_exact(&a, out[fa_operand_slot(c->op, FA_ID_o)], out[fa_operand_slot(c->op, FA_ID_lse)]);
}

static fa_status naive(const fa_reference_call *c, float *const out[FA_OPERANDS_MAX], double *rounding_factor)
{
    fa_attention a = fa_reference_attention(c);
    a.score = score;
    return fa_oracle_naive(&a, c->problem.dtype, c->problem.o_dtype, out[fa_operand_slot(c->op, FA_ID_o)], rounding_factor);
}

static const fa_reference_row reference = { .op = FA_FORWARD, .exact = exact, .naive = naive, .scores = "lse" };

/* ---- what follows ---- */

static fa_context *ctx;

static void add(const edit *kernel)
{
    cr_assert(fa_operand_add(FA_FORWARD, &weight));
    cr_assert(fa_reference_add(&reference));
    write_edited(&taken);
    write_edited(kernel);
    test_mode(SIM_EAGER, SIM_IN_ORDER, 0);
    ctx = test_context(scratch, scratch);
}

static void done(void)
{
    fa_destroy(ctx);
    scratch_remove();
}
TestSuite(operand_toy, .init = scratch_make, .fini = done, .timeout = 120);

static const fa_operation *forward(void)
{
    return fa_operation_find(FA_FORWARD);
}

/* Cases by number, as of every other call: shapes, groups, masks, types, strides. Returns how many are right. */
static int right_cases(int cases)
{
    fa_gen *g;
    int right = 0;
    OK(fa_gen_open(&g, scratch));
    for (int seed = 0; seed < cases; seed++) {
        fa_case c;
        fa_config k;
        fa_verdict v;
        char line[1000];
        fa_case_make(&c, (uint64_t)seed);
        fa_case_print(line, sizeof line, &c);
        OK(fa_case_config(g, &c, fa_context_arch(ctx), fa_context_budget(ctx), "naive", &k));
        fa_status st = fa_verify_case(ctx, &c, &k, &v);
        cr_expect(st == FA_OK || st == FA_WRONG, "%s: %s", line, fa_last_error());
        right += st == FA_OK;
    }
    fa_gen_close(g);
    return right;
}

Test(operand_toy, random_cases_are_right)
{
    add(&weighted);
    cr_expect_eq(right_cases(6), 6, "%s", fa_last_error());
}

Test(operand_toy, and_wrong_where_the_kernel_takes_another_heads_weight)
{
    add(&of_the_first);
    cr_expect(right_cases(4) < 3, "cases of one head, or of no key, cannot tell");
}

Test(operand_toy, a_launch_is_checked_by_the_row)
{
    fa_args a = good();
    fa_repeat *r;
    add(&weighted);
    cr_expect_eq(fa_repeat_check(&r, &a), FA_INVALID);
    cr_expect_str_eq(fa_last_error(), "args: head_weight is NULL; accepted: a device address");
    a.part_lse = (const float *)((char *)AT(9) + 2);
    cr_expect_eq(fa_repeat_check(&r, &a), FA_INVALID);
    cr_expect_str_eq(fa_last_error(), "args: head_weight is 0x900000002; accepted: a multiple of the element's 4 bytes");
    a.part_lse = a.o.ptr;
    cr_expect_eq(fa_repeat_check(&r, &a), FA_INVALID);
    cr_expect_str_eq(fa_last_error(), "args: o overlaps head_weight; accepted: bytes of its own");
    a.part_lse = AT(9);
    OK(fa_repeat_check(&r, &a));
    int at = fa_operand_index(forward(), weight.name);
    cr_expect_eq(r->call.values.operand[at].address, (uint64_t)(uintptr_t)AT(9));
    r->kernel = 1;
    a.part_lse = AT(10);
    OK(fa_repeat_check(&r, &a));
    cr_expect(r->kernel == 1 && r->call.values.operand[at].address == (uint64_t)(uintptr_t)AT(10), "another address alone is a repeat");
    a.op = FA_BACKWARD;
    a.grad_o.ptr = AT(11), a.grad_q.ptr = AT(12), a.grad_k.ptr = AT(13), a.grad_v.ptr = AT(14);
    cr_expect_eq(fa_repeat_check(&r, &a), FA_INVALID);
    cr_expect(!strncmp(fa_last_error(), "args: part_lse is set: ", 23), "an operation that has no such row: %s", fa_last_error());
}

/* What is measured on: weights above 0, in fp32 beside fp32 tensors too. */
Test(operand_toy, tensors_to_measure_on_have_it)
{
    fa_problem p;
    fa_tensors t;
    fa_entered in;
    float *x;
    add(&weighted);
    OK(fa_problem_parse(&p, "fp32,d=16,b=1,hq=6,hkv=3,sq=5,sk=7"));
    OK(fa_context_enter(ctx, &in));
    OK(fa_tensors_open(&t, ctx, &p));
    OK(fa_tensors_random(&t, 1));
    OK(fa_tensors_get(&t, fa_operand_index(forward(), weight.name), &x));
    for (int h = 0; h < 6; h++)
        cr_expect(x[h] > 0.2f && x[h] < 5 && (!h || x[h] != x[h - 1]), "head %d: %g", h, (double)x[h]);
    cr_expect_eq(t.count[fa_operand_index(forward(), weight.name)], 6);
    free(x);
    fa_tensors_close(&t);
    fa_context_leave(ctx, &in);
}

/* What the oracle does not know it refuses. */
Test(operand_toy, bounds_and_gradients_of_it_are_refused)
{
    add(&weighted);
    fa_reference_call c = { .op = forward(), .problem = FA_PROBLEM_INIT };
    fa_backward b = { .of = fa_reference_attention(&c) };
    b.of.score = score;
    cr_expect_eq(fa_oracle_bounds(&b.of, FA_F32, FA_F32, NULL, NULL), FA_UNSUPPORTED);
    cr_expect(strstr(fa_last_error(), "no bounds"), "%s", fa_last_error());
    cr_expect_eq(fa_backward_exact(&b, NULL, NULL, NULL), FA_UNSUPPORTED);
    cr_expect(strstr(fa_last_error(), "no gradients"), "%s", fa_last_error());
}
