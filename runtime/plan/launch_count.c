/* launch_count: which thread counts where, and the sum. */
#include "launch_count.h"

uint32_t fa_launch_count_part(void)
{
    static atomic_uint threads;
    return atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % FA_LAUNCH_COUNT_PARTS + 1;
}

uint64_t fa_launch_count_sum(const fa_launch_count *t)
{
    uint64_t n = 0;
    for (int i = 0; i < FA_LAUNCH_COUNT_PARTS; i++)
        n += atomic_load_explicit(&t->part[i].launches, memory_order_relaxed);
    return n;
}
