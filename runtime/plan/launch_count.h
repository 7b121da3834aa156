/* launch_count: how often a plan was launched: a number for each of some threads, on cache lines of their own. */
#ifndef FA_RUNTIME_PLAN_LAUNCH_COUNT_H
#define FA_RUNTIME_PLAN_LAUNCH_COUNT_H
#include <stdatomic.h>
#include <stdint.h>

#define FA_LAUNCH_COUNT_PARTS 16 /* more threads than these share them */

typedef struct fa_launch_count {
    struct {
        _Atomic uint64_t launches;
        char apart[64 - sizeof(uint64_t)];
    } part[FA_LAUNCH_COUNT_PARTS];
} fa_launch_count; /* zeros: none */

/* A part for a thread that has none: 1 to FA_LAUNCH_COUNT_PARTS, in turn. */
uint32_t fa_launch_count_part(void);

/* One more. *part is the thread's own, 0 before its first. No lock, no allocation. */
static inline void fa_launch_count_add(fa_launch_count *t, uint32_t *part)
{
    if (!*part)
        *part = fa_launch_count_part();
    atomic_fetch_add_explicit(&t->part[*part - 1].launches, 1, memory_order_relaxed);
}

uint64_t fa_launch_count_sum(const fa_launch_count *t);
#endif
