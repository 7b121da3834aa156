/* Every config that ships has passed the simulator: each distinct one at three lengths, eager in order, lazy reversed, lazy at random. By
 * default one in eight kernels of gradients runs and one in 45 of the others. Each length goes one of these ways, and the longest all
 * three, of one in four that run. In full form all run, all ways. */
#include "gen/problem.h"
#include "sim/sim.h"
#include "test_full.h"
#include "test_shipped.h"
#include "verify/cases/trial.h"
#include <criterion/criterion.h>
#include <string.h>

#define GRADIENTS_EVERY 8 /* runs by default */
#define FORWARD_EVERY 45
#define ALL_WAYS_EVERY 4 /* of these */

static const sim_options how[] = { { .async = SIM_EAGER },
                                   { .async = SIM_LAZY, .schedule = SIM_REVERSED },
                                   { .async = SIM_LAZY, .schedule = SIM_RANDOM, .seed = 7 } };
#define WAYS (sizeof how / sizeof *how)
static const int32_t lengths[] = { 1, 160, 301 };
#define LENGTHS (sizeof lengths / sizeof *lengths)

/* Bits of dQ that is added up in memory depend on the order of the blocks. */
static bool is_ordered(const fa_config *c)
{
    return strcmp(c->family, "flash_bwd_wgmma") != 0 || !fa_config_get(c, "dq", 0);
}

/* The nth kernel of those that run, row i. The longest length of one in ALL_WAYS_EVERY goes all ways. */
static void run_kernel(fa_context *ctx, size_t n, size_t i)
{
    fa_problem p;
    fa_config config;
    const fa_plan *plan;
    cr_assert_eq(fa_problem_parse(&p, shipped[i].problem), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_config_parse(&config, shipped[i].config), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_plan_make(ctx, &p, &config, "shipped", &plan), FA_OK, "%s: %s", shipped[i].config, fa_last_error());
    for (size_t l = 0; l < LENGTHS; l++) {
        fa_case c;
        fa_trial *t;
        uint64_t bits = 0;
        bool all = full() || (l == LENGTHS - 1 && n % ALL_WAYS_EVERY == 0), first = true;
        p.b = 1, p.hq = p.hkv = 2, p.sq = p.sk = lengths[l];
        cr_assert_eq(fa_case_of(&c, &p, 17 + i), FA_OK, "%s", fa_last_error());
        cr_assert_eq(fa_trial_open(&t, ctx, &c, FA_REFERENCE_ORACLE), FA_OK, "%s", fa_last_error());
        for (size_t h = 0; h < WAYS; h++) {
            fa_verdict v;
            if (!all && h != (n + l) % WAYS)
                continue;
            sim_set_options(&how[h]);
            cr_expect_eq(fa_trial_run(t, plan, &v), FA_OK, "row %zu, N=%d, way %zu: %s", i, lengths[l], h, fa_last_error());
            cr_expect(first || !is_ordered(&config) || v.bits == bits, "row %zu, N=%d: way %zu gives other bits", i, lengths[l], h);
            bits = v.bits;
            first = false;
        }
        fa_trial_close(t);
    }
}

/* Distinct kernels, gradients or others, one in `every`. How many ran. */
static size_t run_kernels(bool gradients, size_t every)
{
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    size_t seen = 0, ran = 0;
    o.device = "sim:sm_90a";
    o.cache_dir = "";
    cr_assert_eq(fa_create(&ctx, &o), FA_OK, "%s", fa_last_error());
    for (size_t i = 0; i < SHIPPED; i++)
        if (!shipped_before(i) && (strstr(shipped[i].problem, ",op=backward,") != NULL) == gradients && seen++ % every == 0)
            run_kernel(ctx, ran++, i);
    fa_destroy(ctx);
    return ran;
}

Test(verify_defaults, shipped_kernels_of_the_forward_pass, .timeout = 3600)
{
    cr_expect_geq(run_kernels(false, full() ? 1 : FORWARD_EVERY), 5);
}

Test(verify_defaults, shipped_kernels_of_gradients, .timeout = 3600)
{
    cr_expect_geq(run_kernels(true, full() ? 1 : GRADIENTS_EVERY), 4);
}
