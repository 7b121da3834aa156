/* Masks of programs in the kernels of every forward family, on the simulator, against fp64 over all pairs: hidden pairs whose score is NaN,
 * rows that see no key, lookups past the last query and key. 72 problems, 12 of every tenth kernel;
 * FAGEN_TEST_FULL=1: fifty of each. */
#include "mask_kernels.h"
#include "score_table.h"
#include "test_full.h"

static void run(bool hopper)
{
    score_table_run(mask_kernels, MASK_KERNELS, hopper, full() ? 1 : 10, false, full() ? 50 : 12, getenv("FAGEN_SCORE_KERNEL"));
}

Test(mask_kernels, hide_what_the_programs_hide, .timeout = 600)
{
    run(false);
}

Test(mask_kernels, hide_it_on_hopper, .timeout = 600)
{
    run(true);
}
