/* tally: how often a plan was launched: a number for each of some threads, on cache lines of their own. */
#ifndef FA_RUNTIME_PLAN_TALLY_H
#define FA_RUNTIME_PLAN_TALLY_H
#include <stdatomic.h>
#include <stdint.h>

#define FA_TALLY_PARTS 16 /* more threads than these share them */

typedef struct fa_tally {
    struct {
        _Atomic uint64_t launches;
        char apart[64 - sizeof(uint64_t)];
    } part[FA_TALLY_PARTS];
} fa_tally; /* zeros: none */

/* A part for a thread that has none: 1 to FA_TALLY_PARTS, in turns. */
uint32_t fa_tally_part(void);

/* One more. *part is the thread's own, 0 before its first. No lock, no allocation. */
static inline void fa_tally_add(fa_tally *t, uint32_t *part)
{
    if (!*part)
        *part = fa_tally_part();
    atomic_fetch_add_explicit(&t->part[*part - 1].launches, 1, memory_order_relaxed);
}

uint64_t fa_tally_sum(const fa_tally *t);
#endif
