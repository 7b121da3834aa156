/* workers: threads that render and compile candidates, in order, while the caller uses those that are done. */
#ifndef FA_AUTOTUNE_WORKERS_H
#define FA_AUTOTUNE_WORKERS_H
#include "journal.h"

typedef struct fa_workers fa_workers;

/* threads 0 = one per core, at most 8. The candidates and the journal stay where they are until fa_workers_stop. */
fa_status fa_workers_start(fa_workers **out, const fa_site *site, const fa_journal *j, fa_candidate *candidates, size_t n, int threads,
                           bool again);

/* Waits for candidate i, at most until `seconds` from now (< 0: for ever). Then either it is decided (recalled, or it failed: the
 * caller notes it) or its regs, spills, source and, on a device, plan are set. False when the time is up. A failure that is no
 * candidate's fault (no compiler, no memory) is in *fatal, with its message. */
bool fa_workers_wait(fa_workers *w, size_t i, double seconds, fa_status *fatal);

/* Lets the threads finish what they are at, and frees. NULL is fine. */
void fa_workers_stop(fa_workers *w);
#endif
