/* Every config that ships has passed the simulator: each distinct one, eager in order, lazy reversed, lazy at random. By default the
 * longest length of every sixth one goes all three ways, each other length one of them; in full form all lengths go all ways. */
#include "autotune/trial.h"
#include "gen/problem.h"
#include "sim/sim.h"
#include "test_full.h"
#include "test_shipped.h"
#include <criterion/criterion.h>
#include <string.h>

Test(verify_defaults, every_shipped_config_on_the_simulator)
{
    static const sim_options how[] = { { .async = SIM_EAGER },
                                       { .async = SIM_LAZY, .schedule = SIM_REVERSED },
                                       { .async = SIM_LAZY, .schedule = SIM_RANDOM, .seed = 7 } };
    static const int32_t lengths[] = { 1, 160, 301 };
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    size_t kernels = 0;
    o.device = "sim:sm_90a";
    o.cache_dir = "";
    cr_assert_eq(fa_create(&ctx, &o), FA_OK, "%s", fa_last_error());
    for (size_t i = 0; i < SHIPPED; i++) {
        fa_problem p;
        fa_config config;
        const fa_plan *plan;
        if (shipped_before(i))
            continue;
        kernels++;
        cr_assert_eq(fa_problem_parse(&p, shipped[i].problem), FA_OK, "%s", fa_last_error());
        cr_assert_eq(fa_config_parse(&config, shipped[i].config), FA_OK, "%s", fa_last_error());
        cr_assert_eq(fa_plan_make(ctx, &p, &config, "shipped", &plan), FA_OK, "%s: %s", shipped[i].config, fa_last_error());
        for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
            fa_case c;
            fa_trial *t;
            p.b = 1, p.hq = p.hkv = 2, p.sq = p.sk = lengths[n];
            cr_assert_eq(fa_case_of(&c, &p, 17 + i), FA_OK, "%s", fa_last_error());
            cr_assert_eq(fa_trial_open(&t, ctx, &c, FA_REFERENCE_ORACLE), FA_OK, "%s", fa_last_error());
            uint64_t bits = 0;
            bool all = full() || (n == sizeof lengths / sizeof *lengths - 1 && i % 6 == 0), first = true;
            for (size_t h = 0; h < sizeof how / sizeof *how; h++) {
                fa_verdict v;
                if (!all && h != (i + n) % (sizeof how / sizeof *how))
                    continue;
                sim_set_options(&how[h]);
                cr_expect_eq(fa_trial_run(t, plan, &v), FA_OK, "row %zu, N=%d, way %zu: %s", i, lengths[n], h, fa_last_error());
                cr_expect(first || v.bits == bits, "row %zu, N=%d: way %zu gives other bits", i, lengths[n], h);
                bits = v.bits;
                first = false;
            }
            fa_trial_close(t);
        }
    }
    cr_expect_geq(kernels, 20);
    fa_destroy(ctx);
}
