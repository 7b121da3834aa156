/* score_table: kernels of a table run problems that a seed draws, under both timings of copies and three schedules, against fp64. */
#ifndef FA_TESTS_SCORE_TABLE_H
#define FA_TESTS_SCORE_TABLE_H
#include "score_launch.h"
#include "test_cache_scratch.h"

/* The first of its family in a table in which no nth kernel is of that family. */
static inline bool score_is_sole(const score_kernel *kernels, size_t n, size_t nth, size_t at)
{
    size_t length = strcspn(kernels[at].config, ":") + 1;
    for (size_t i = 0; i < n; i++)
        if (!strncmp(kernels[i].config, kernels[at].config, length) && (i < at || i % nth == 0))
            return false;
    return true;
}

/* `each` problems of every nth kernel of the table, with `families` also of each family's first, where it is of the arch. only: the name
 * of one; NULL: these. */
static inline void score_table_run(const score_kernel *kernels, size_t n, bool hopper, size_t nth, bool families, int each,
                                   const char *only)
{
    scratch_make();
    fa_context *ctx =
        hopper ? test_hopper_context(getenv("FAGEN_TEMPLATE_DIR"), scratch, 3) : test_context(getenv("FAGEN_TEMPLATE_DIR"), scratch);
    fa_gen *gen;
    void *workspace;
    SCORE_OK(fa_gen_open(&gen, NULL));
    SCORE_OK(fa_alloc(ctx, &workspace, SCORE_WORKSPACE));
    SCORE_OK(fa_workspace_init(ctx, workspace, SCORE_WORKSPACE, NULL));
    for (size_t at = 0; at < n; at++) {
        bool taken = only ? !strcmp(kernels[at].name, only) : at % nth == 0 || (families && score_is_sole(kernels, n, nth, at));
        for (int i = 0; i < each && taken && kernels[at].hopper == hopper; i++) {
            static const sim_schedule schedules[] = { SIM_IN_ORDER, SIM_RANDOM, SIM_REVERSED };
            score_launch l;
            char where[200];
            uint64_t seed = at * 1000 + (uint64_t)i;
            test_mode(i % 2 ? SIM_LAZY : SIM_EAGER, schedules[i % 3], seed);
            score_draw(ctx, &l, &kernels[at], seed);
            cr_assert_eq(score_run(ctx, gen, workspace, &l), FA_OK, "%s: %s", l.kernel->name, fa_last_error());
            double worst = score_worst(&l, where, sizeof where);
            cr_expect_leq(worst, 1, "%s, %d: %s\n  %s\n  b=%d hq=%d hkv=%d sq=%d sk=%d diagonal=%d offset=%d left=%d\n  %.3g: %s",
                          l.kernel->name, i, l.kernel->problem, l.kernel->config, l.b, l.hq, l.hkv, l.sq, l.sk, l.diagonal, l.offset,
                          l.left, worst, where);
            score_close(ctx, &l);
        }
    }
    SCORE_OK(fa_free(ctx, workspace));
    fa_gen_close(gen);
    fa_destroy(ctx);
    scratch_remove();
}
#endif
