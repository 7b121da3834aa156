/* Random problems for flash_fwd_wgmma on a simulated H200 with two SMs: kernels that cover the pairs of its tunables' values as far as
 * they go, problems of all masks with ragged lengths, grouped heads and strides, under both timings of asynchronous copies and all
 * schedules of warps.
 *
 *   FAGEN_CAMPAIGN=KERNELSxCASES     another number of kernels, and of cases for each */
#include "forward.h"
#include "test_pairs_kernels.h"
#include "test_verify_device.h"
#include <math.h>

#define KERNELS 9
#define CASES 7     /* of a kernel */
#define SIX_EVERY 6 /* of these cases all six combinations are run and compared */

/* Every two of mask, type and type of O, and every head_dim in two of the masks. */
static const char *const problems[] = {
    "bf16,d=64,mask=none",         "fp16,d=64,mask=causal",         "bf16,d=64,mask=window,o=fp32",
    "fp16,d=72,mask=causal",       "bf16,d=72,dv=40,mask=window",   "bf16,d=80,mask=none",
    "fp16,d=80,mask=window",       "bf16,d=96,mask=causal,o=fp32",  "fp16,d=96,dv=48,mask=none",
    "bf16,d=112,mask=window",      "fp16,d=112,mask=causal",        "bf16,d=128,mask=causal",
    "fp16,d=128,mask=none",        "bf16,d=192,dv=128,mask=causal", "fp16,d=192,dv=128,mask=window,o=fp32",
    "bf16,d=256,mask=none",        "fp16,d=256,mask=causal",        "bf16,d=40,dv=24,mask=none,o=fp32",
    "fp16,d=8,dv=136,mask=causal", "bf16,d=16,dv=64,mask=window",
};
#define PROBLEMS (sizeof problems / sizeof *problems)

/* ---- which kernels ---- */

/* What makes no other text of the kernel's body than numbers of registers is not varied on purpose. */
static bool is_factor(const char *tunable)
{
    return strcmp(tunable, "feeder") != 0 && strcmp(tunable, "ctas") != 0;
}

static int of_problem(int32_t out[4], const fa_problem *p, size_t number)
{
    (void)number;
    out[0] = p->d * 1000 + p->dv;
    out[1] = p->mask;
    out[2] = p->o_dtype == FA_F32;
    return 3;
}

static const kernel_choice choice = { .family = "flash_fwd_wgmma",
                                      .problems = problems,
                                      .n_problems = PROBLEMS,
                                      .seed = 11,
                                      .is_factor = is_factor,
                                      .of_problem = of_problem,
                                      .work_most = 4e6,
                                      .more_q = 130 };

static fa_case make(const kernel *k, uint64_t seed)
{
    fa_case c;
    fa_case_make(&c, FA_CASE_FREE + seed);
    if (c.scale > 0)
        c.scale *= (float)sqrt((double)c.problem.d / k->problem.d);
    suit_kernel(&c, &choice, k, seed);
    return c;
}

/* ---- run ---- */

static void run_case(fa_context *ctx, const fa_plan *plan, const fa_case *c, const char *config, uint64_t seed)
{
    static const sim_schedule schedules[] = { SIM_IN_ORDER, SIM_REVERSED, SIM_RANDOM };
    fa_trial *t;
    cr_assert_eq(fa_trial_open(&t, ctx, c, FA_REFERENCE_ORACLE), FA_OK, "%s", fa_last_error());
    int runs = seed % SIX_EVERY == 0 ? 6 : 1, at = (int)(seed % 6);
    uint64_t bits = 0;
    if (runs == 1)
        at = (int)(seed / SIX_EVERY + seed) % 6;
    for (int i = 0; i < runs; i++, at = (at + 1) % 6) {
        fa_verdict v;
        test_mode(at % 2 ? SIM_LAZY : SIM_EAGER, schedules[at / 2], seed);
        cr_expect_eq(fa_trial_run(t, plan, &v), FA_OK, "%s, combination %d: %s", config, at, fa_last_error());
        cr_expect_eq(test_counter(ctx), 0, "%s: the counter is not put back", config);
        if (i > 0 && v.bits != bits) {
            char line[700];
            fa_case_print(line, sizeof line, c);
            cr_expect_fail("%s: other bits under combination %d: %s", config, at, line);
        }
        bits = v.bits;
    }
    fa_trial_close(t);
}

Test(hopper_campaign, random_problems, .timeout = 3600)
{
    static kernel kernels[4096];
    const char *how = getenv("FAGEN_CAMPAIGN");
    size_t most = KERNELS;
    int cases = CASES;
    cr_assert(!how || !*how || (sscanf(how, "%zux%d", &most, &cases) == 2 && most <= 4096),
              "FAGEN_CAMPAIGN is \"%s\"; accepted: KERNELSxCASES", how);
    choose_kernels(&choice, kernels, most);
    fa_context *ctx = test_hopper_context(NULL, NULL, 2);
    for (size_t k = 0; k < most; k++) {
        const fa_plan *plan;
        char text[512];
        fa_config_print(text, sizeof text, &kernels[k].config);
        cr_assert_eq(fa_plan_make(ctx, &kernels[k].problem, &kernels[k].config, NULL, &plan), FA_OK, "%s: %s", text, fa_last_error());
        for (int i = 0; i < cases; i++) {
            uint64_t seed = k * (uint64_t)cases + (uint64_t)i;
            fa_case c = make(&kernels[k], seed);
            run_case(ctx, plan, &c, text, seed);
        }
    }
    printf("%zu kernels, %zu cases\n", most, most * (size_t)cases);
    cr_expect_geq(most * (size_t)cases, how && *how ? 1 : KERNELS * CASES);
    fa_destroy(ctx);
}
