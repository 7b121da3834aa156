/* oracle_threads: the oracles' work by as many threads as it is worth. */
#ifndef FA_VERIFY_TRUTH_ORACLE_THREADS_H
#define FA_VERIFY_TRUTH_ORACLE_THREADS_H
#include "oracle.h"
#include <stdatomic.h>

/* Runs work(job) in this thread and in others, which take units in turn until none is left. rows: query rows of all heads, each over all
 * keys of `a`. oom: what a thread without memory sets. FA_INTERRUPTED where the simulator was interrupted meanwhile. */
fa_status fa_oracle_threads(void *(*work)(void *job), void *job, const fa_attention *a, int64_t rows, const atomic_bool *oom);
#endif
