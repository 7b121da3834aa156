/* Score programs in the kernels of every forward family, on the simulator: random shapes, lengths and pages, operands with gaps of NaN,
 * both timings of copies and three schedules, against fp64 over all pairs. 100 problems of every second of 40 kernels, since
 * compiling one costs more than ten problems of it; FAGEN_TEST_FULL=1: 2,000 of all. */
#include "score_kernels.h"
#include "score_table.h"
#include "test_full.h"

static void run(bool hopper)
{
    score_table_run(score_kernels, SCORE_KERNELS, hopper, full() ? 1 : 2, full() ? 50 : 5, getenv("FAGEN_SCORE_KERNEL"));
}

Test(score_kernels, compute_the_programs_scores, .timeout = 600)
{
    run(false);
}

Test(score_kernels, compute_them_on_hopper, .timeout = 600)
{
    run(true);
}
