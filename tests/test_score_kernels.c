/* Score programs in the kernels of every forward family, on the simulator: random shapes, lengths and pages, operands with gaps of NaN,
 * both timings of copies and three schedules, against fp64 over all pairs. 200 problems of 40 kernels; FAGEN_TEST_FULL=1: 2,000. */
#include "score_kernels.h"
#include "test_cache_scratch.h"
#include "test_full.h"

static void run(bool hopper)
{
    int each = full() ? 50 : 5;
    const char *only = getenv("FAGEN_SCORE_KERNEL");
    scratch_make();
    fa_context *ctx =
        hopper ? test_hopper_context(getenv("FAGEN_TEMPLATE_DIR"), scratch, 3) : test_context(getenv("FAGEN_TEMPLATE_DIR"), scratch);
    fa_gen *gen;
    void *workspace;
    SCORE_OK(fa_gen_open(&gen, NULL));
    SCORE_OK(fa_alloc(ctx, &workspace, SCORE_WORKSPACE));
    SCORE_OK(fa_workspace_init(ctx, workspace, SCORE_WORKSPACE, NULL));
    for (size_t n = 0; n < SCORE_KERNELS; n++)
        for (int i = 0; i < each && score_kernels[n].hopper == hopper && (!only || !strcmp(score_kernels[n].name, only)); i++) {
            static const sim_schedule schedules[] = { SIM_IN_ORDER, SIM_RANDOM, SIM_REVERSED };
            score_launch l;
            char where[200];
            uint64_t seed = n * 1000 + (uint64_t)i;
            test_mode(i % 2 ? SIM_LAZY : SIM_EAGER, schedules[i % 3], seed);
            score_draw(ctx, &l, &score_kernels[n], seed);
            cr_assert_eq(score_run(ctx, gen, workspace, &l), FA_OK, "%s: %s", l.kernel->name, fa_last_error());
            double worst = score_worst(&l, where, sizeof where);
            cr_expect_leq(worst, 1, "%s, %d: %s\n  %s\n  b=%d hq=%d hkv=%d sq=%d sk=%d diagonal=%d offset=%d left=%d\n  %.3g: %s",
                          l.kernel->name, i, l.kernel->problem, l.kernel->config, l.b, l.hq, l.hkv, l.sq, l.sk, l.diagonal, l.offset,
                          l.left, worst, where);
            score_close(ctx, &l);
        }
    SCORE_OK(fa_free(ctx, workspace));
    fa_gen_close(gen);
    fa_destroy(ctx);
    scratch_remove();
}

Test(score_kernels, compute_the_programs_scores, .timeout = 600)
{
    run(false);
}

Test(score_kernels, compute_them_on_hopper, .timeout = 600)
{
    run(true);
}
