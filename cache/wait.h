/* wait: waiting for a file lock that another process holds, and when that ends. The kernel frees the lock of a holder that dies; one that
 * is stopped (SIGSTOP, a debugger) or hangs keeps it. So each wait of the cache for another process has an end, after which the waiter goes
 * on without the lock: locks here save work, and nothing is wrong without them. */
#ifndef FA_CACHE_WAIT_H
#define FA_CACHE_WAIT_H
#include "store.h"

#define FA_WAIT_MOST 60.0  /* seconds; also where no compile was seen */
#define FA_WAIT_LEAST 10.0 /* of a busy machine, where a compile takes longer than those before */

typedef struct fa_wait {
    fa_store *store;
    double most; /* seconds; < 0 = by the store's rule, filled in where another has the lock */
    bool over;   /* set: they were up, and another has the lock */
} fa_wait;

/* The rule: twice the longest compile seen, within FA_WAIT_LEAST and FA_WAIT_MOST. Seen: by this store since it was opened, or by any
 * process that left its figure in the root that takes new files (locks/longest, whole seconds as text). */
double fa_wait_rule(fa_store *s);
/* A lock was held for so long by one that compiled; what is no compile, by its length, does not count. */
void fa_wait_saw(fa_store *s, double seconds);

/* Takes flock(LOCK_EX), asking again until it is free or w->most is over. 0, or an errno: EWOULDBLOCK with w->over set, or that of a file
 * system where locks do not work. */
int fa_wait_lock(int fd, fa_wait *w);
double fa_wait_clock(void); /* seconds of CLOCK_MONOTONIC */
#endif
