/* flash_fwd_wgmma over sequences of their own lengths, packed, padded and in pages, on a simulated H200 of few SMs: configs drawn at random
 * for a table of classes, and cases of prompts and of few queries in strides that TMA takes. Both timings of asynchronous copies, all
 * schedules of warps, and every sequence beside NaN in all others. */
#include "forward.h"
#include "test_full.h"
#include "test_verify_device.h"
#include "verify/operands/random.h"
#include <criterion/parameterized.h>

#define FAMILY "flash_fwd_wgmma"
#define SMS 3                     /* a block walks several tiles */
#define CASES (full() ? 60 : 4)   /* of a class */
#define CONFIGS (full() ? 20 : 1) /* that they share: compiling costs more than running */
#define SIX_EVERY 6               /* of these cases all six combinations are run and compared */
#define ALONE_EVERY 2             /* of these each sequence is run beside NaN in all others */
#define ALONE_MOST 6              /* sequences of such a case */
#define FEW_EVERY 4               /* of these cases one has few queries, of one sequence and head */
#define CUT_KEYS 1500             /* and so many keys more: its tiles are cut into parts */

/* Every mask with packed rows and with pages, every type, boxes of each width, rows of odd lengths, O in fp32. */
static const char *const classes[] = {
    "bf16,d=128,mask=causal,features=lengths",
    "fp16,d=64,mask=window,features=lengths+lse-strides",
    "bf16,d=128,features=lengths",
    "bf16,d=64,mask=causal,features=lengths+pages,page=16",
    "fp16,d=128,mask=window,features=lengths+pages,page=64",
    "bf16,d=64,features=lengths+pages,page=128",
    "fp16,d=256,mask=causal,features=lengths",
    "bf16,d=256,mask=window,features=lengths+pages,page=32",
    "fp16,d=96,dv=64,mask=causal,features=lengths+pages+lse-strides,page=32",
    "bf16,d=72,dv=40,mask=window,features=lengths",
    "bf16,d=192,dv=128,mask=causal,o=fp32,features=lengths+pages,page=64",
    "fp16,d=80,mask=causal,o=fp32,features=lengths",
    "bf16,d=128,mask=causal,features=lse-strides",
};
#define CLASSES (sizeof classes / sizeof *classes)

ParameterizedTestParameters(hopper_lengths, cases)
{
    static int numbers[CLASSES];
    size_t n = 0;
    for (size_t i = 0; i < CLASSES; i++)
        if (full() || i % 3 == 0) /* others have its type, mask, width and pages */
            numbers[n++] = (int)i;
    return cr_make_param_array(int, numbers, n);
}

static fa_case make(const fa_problem *class, int number, int at, uint64_t seed)
{
    fa_case c;
    fa_case_make_class(&c, class, at % FEW_EVERY == 3 ? FA_CASE_FEW : FA_CASE_MANY, seed);
    if (at % FEW_EVERY == 3)
        c.problem.b = c.problem.hq = c.problem.hkv = 1, c.problem.sk += CUT_KEYS;
    c.choice = (uint32_t)(number * CONFIGS + at % CONFIGS);
    for (int i = 0; i < FA_TENSORS; i++)
        if (c.layout[i] == FA_LAYOUT_REVERSED || c.layout[i] == FA_LAYOUT_FAR)
            c.layout[i] = seed % 2 ? FA_LAYOUT_HEADS : FA_LAYOUT_PADDED;
    return c;
}

static void run_case(fa_context *ctx, fa_gen *g, const fa_case *c, int at)
{
    static const sim_schedule schedules[] = { SIM_IN_ORDER, SIM_REVERSED, SIM_RANDOM };
    fa_config config;
    fa_trial *t;
    const fa_plan *plan;
    fa_verdict v;
    uint64_t bits = 0;
    char text[512], line[1000];
    fa_case_print(line, sizeof line, c);
    cr_assert_eq(fa_case_config(g, c, fa_context_arch(ctx), fa_context_budget(ctx), FAMILY, &config), FA_OK, "%s: %s", line,
                 fa_last_error());
    fa_config_print(text, sizeof text, &config);
    cr_assert_eq(fa_plan_make(ctx, &c->problem, &config, NULL, &plan), FA_OK, "%s, %s: %s", line, text, fa_last_error());
    cr_assert_eq(fa_trial_open(&t, ctx, c, FA_REFERENCE_ORACLE), FA_OK, "%s: %s", line, fa_last_error());
    int runs = at % SIX_EVERY == 0 ? 6 : 1, mode = (int)(fa_random_mix(c->seed) % 6);
    for (int i = 0; i < runs; i++, mode = (mode + 1) % 6) {
        test_mode(mode % 2 ? SIM_LAZY : SIM_EAGER, schedules[mode / 2], c->seed);
        cr_expect_eq(fa_trial_run(t, plan, &v), FA_OK, "%s: %s\n%s", text, fa_last_error(), line);
        cr_expect_eq(test_counter(ctx), 0, "%s: the counter is not put back\n%s", text, line);
        cr_expect(i == 0 || v.bits == bits, "%s: other bits under combination %d\n%s", text, mode, line);
        bits = v.bits;
    }
    for (int32_t i = 0; i < fa_trial_sequences(t) && c->problem.b <= ALONE_MOST && at % ALONE_EVERY == 0; i++)
        cr_expect_eq(fa_trial_alone(t, plan, i, &v), FA_OK, "%s: %s\n%s", text, fa_last_error(), line);
    fa_trial_close(t);
}

ParameterizedTest(int *number, hopper_lengths, cases, .timeout = 900)
{
    fa_context *ctx = test_hopper_context(NULL, NULL, SMS);
    fa_problem class;
    fa_gen *g;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK);
    cr_assert_eq(fa_problem_parse(&class, classes[*number]), FA_OK, "%s", fa_last_error());
    for (int at = 0; at < CASES; at++) {
        fa_case c = make(&class, *number, at, (uint64_t)(*number * 1000 + at));
        run_case(ctx, g, &c, at);
    }
    fa_gen_close(g);
    fa_destroy(ctx);
}
