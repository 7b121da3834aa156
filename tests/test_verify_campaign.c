/* Random problems on the simulator, under both timings of asynchronous copies and all schedules of warps. Any failure is replayed by
 * `fagen verify --seed N`. */
#include "test_full.h"
#include "test_verify_device.h"
#include <criterion/parameterized.h>

#define CASES (full() ? 1200 : 16) /* nearly each compiles a kernel of its own; suites of families draw theirs, too */
#define CHUNKS 12
#define SIX_EVERY 12 /* of these cases all six combinations are run and compared */

ParameterizedTestParameters(verify_campaign, seeds)
{
    static int first[CHUNKS];
    for (int i = 0; i < CHUNKS; i++)
        first[i] = i * CASES / CHUNKS;
    return cr_make_param_array(int, first, CHUNKS);
}

static void run_seed(fa_context *ctx, fa_gen *g, uint64_t seed)
{
    static const sim_schedule schedules[] = { SIM_IN_ORDER, SIM_REVERSED, SIM_RANDOM };
    fa_case c;
    fa_config config;
    fa_trial *t;
    const fa_plan *plan;
    char text[512];
    fa_case_make(&c, seed);
    cr_assert_eq(fa_case_config(g, &c, fa_context_arch(ctx), fa_context_budget(ctx), NULL, &config), FA_OK, "%s", fa_last_error());
    fa_config_print(text, sizeof text, &config);
    cr_assert_eq(fa_plan_make(ctx, &c.problem, &config, NULL, &plan), FA_OK, "seed %llu, %s: %s", (unsigned long long)seed, text,
                 fa_last_error());
    cr_assert_eq(fa_trial_open(&t, ctx, &c, FA_REFERENCE_ORACLE), FA_OK, "%s", fa_last_error());
    int runs = seed % SIX_EVERY == 0 ? 6 : 1, at = (int)(seed % 6);
    uint64_t bits = 0;
    for (int i = 0; i < runs; i++, at = (at + 1) % 6) {
        fa_verdict v;
        test_mode(at % 2 ? SIM_LAZY : SIM_EAGER, schedules[at / 2], seed);
        cr_assert_eq(fa_trial_run(t, plan, &v), FA_OK, "%s: %s", text, fa_last_error());
        cr_assert(i == 0 || v.bits == bits, "seed %llu, %s: other bits under combination %d", (unsigned long long)seed, text, at);
        bits = v.bits;
    }
    fa_trial_close(t);
}

ParameterizedTest(int *first, verify_campaign, seeds, .timeout = 600)
{
    fa_gen *g;
    fa_context *ctx = test_context(NULL, NULL);
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK);
    for (int i = 0; i < CASES / CHUNKS; i++)
        run_seed(ctx, g, (uint64_t)(*first + i));
    fa_gen_close(g);
    fa_destroy(ctx);
}
