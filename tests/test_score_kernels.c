/* Score programs in the kernels of every forward family, on the simulator: random shapes, lengths and pages, operands with gaps of NaN,
 * both timings of copies and three schedules, against fp64 over all pairs. Ten problems of every ninth kernel and of the first of
 * each family that has none of those, as compiling one costs some twenty problems of it. FAGEN_TEST_FULL=1: 50 of each. */
#include "score_kernels.h"
#include "score_table.h"
#include "test_full.h"

static void run(bool hopper)
{
    score_table_run(score_kernels, SCORE_KERNELS, hopper, full() ? 1 : 9, true, full() ? 50 : 10, getenv("FAGEN_SCORE_KERNEL"));
}

static fa_context *open_hopper(fa_gen **gen, void **workspace)
{
    scratch_make();
    test_mode(SIM_EAGER, SIM_IN_ORDER, 1);
    fa_context *ctx = test_hopper_context(getenv("FAGEN_TEMPLATE_DIR"), scratch, 3);
    SCORE_OK(fa_gen_open(gen, NULL));
    SCORE_OK(fa_alloc(ctx, workspace, SCORE_WORKSPACE));
    SCORE_OK(fa_workspace_init(ctx, *workspace, SCORE_WORKSPACE, NULL));
    return ctx;
}
static void close_hopper(fa_context *ctx, fa_gen *gen)
{
    fa_gen_close(gen);
    fa_destroy(ctx);
    scratch_remove();
}

/* Rows whose maximum stays have P up to 2^96: with V of such numbers sums become infinite, and these rows are computed again. */
Test(score_kernels, sums_beyond_fp32_are_computed_again, .timeout = 120)
{
    const score_kernel *k = score_kernels;
    void *workspace;
    fa_gen *gen;
    char where[200];
    score_launch l;
    while (strcmp(k->name, "wgmma_high") != 0)
        k++;
    fa_context *ctx = open_hopper(&gen, &workspace);
    for (uint64_t seed = 0; seed < 3; seed++) {
        score_draw(ctx, &l, k, seed);
        size_t n = (size_t)l.total_k * (size_t)l.hkv * (size_t)l.d;
        for (size_t i = 0; i < n; i++)
            l.v[i] *= 0x1p80f;
        SCORE_OK(fa_free(ctx, (void *)l.args.v.ptr));
        l.args.v.ptr = score_tensor(ctx, &l, l.v, n);
        SCORE_OK(score_run(ctx, gen, workspace, &l));
        for (size_t i = 0; i < n; i++)
            l.v[i] *= 0x1p-80f;
        for (size_t i = 0; i < (size_t)l.total_q * (size_t)l.hq * (size_t)l.d; i++)
            l.o[i] *= 0x1p-80f;
        double worst = score_worst(&l, where, sizeof where);
        cr_expect_leq(worst, 1, "%d: %.3g: %s", (int)seed, worst, where);
        score_close(ctx, &l);
    }
    close_hopper(ctx, gen);
}

/* Whether tanh is a polynomial is asked of all rows of a warp, and what it is of each product: a row beside one with large scores has the
 * bits that it has beside others. */
Test(score_kernels, rows_follow_from_their_own_scores, .timeout = 120)
{
    score_kernel k = { 0 };
    void *workspace;
    fa_gen *gen;
    score_launch l;
    int differ = 0, moved = 0;
    for (size_t i = 0; i < SCORE_KERNELS; i++)
        if (!strcmp(score_kernels[i].name, "wgmma_cap_small"))
            k = score_kernels[i];
    k.problem = "bf16,d=64,mask=none"; /* all blocks but a tile's first may be of such products, and are */
    k.q_scale = 1;
    fa_context *ctx = open_hopper(&gen, &workspace);
    for (uint64_t seed = 0; seed < 3; seed++) {
        score_draw(ctx, &l, &k, seed);
        size_t row = (size_t)l.hq * (size_t)l.d, n = (size_t)l.total_q * row, sq = (size_t)l.sq, large = sq - 1;
        size_t sums = (size_t)l.total_q * (size_t)l.hq;
        float *before = malloc(sums * sizeof *before);
        cr_assert(before);
        SCORE_OK(score_run(ctx, gen, workspace, &l));
        memcpy(before, l.lse, sums * sizeof *before);
        for (size_t i = large * row; i < sq * row; i++)
            l.q[i] *= 32;
        SCORE_OK(fa_free(ctx, (void *)l.args.q.ptr));
        l.args.q.ptr = score_tensor(ctx, &l, l.q, n);
        SCORE_OK(score_run(ctx, gen, workspace, &l));
        for (size_t i = 0; i < sums; i++) {
            bool other = memcmp(&before[i], &l.lse[i], sizeof(float)) != 0;
            bool is_large = i / sq < (size_t)l.hq && i % sq == large; /* of the first sequence, [b, hq, sq] */
            differ += other && !is_large;
            moved += other && is_large;
        }
        free(before);
        score_close(ctx, &l);
    }
    cr_expect_eq(differ, 0, "LSE of %d other rows is not what it was", differ);
    cr_expect_gt(moved, 0);
    close_hopper(ctx, gen);
}

Test(score_kernels, compute_the_programs_scores, .timeout = 600)
{
    run(false);
}

Test(score_kernels, compute_them_on_hopper, .timeout = 600)
{
    run(true);
}
