/* workers: pieces of one job at once, each on a thread. */
#ifndef FA_RUNTIME_BUILD_WORKERS_H
#define FA_RUNTIME_BUILD_WORKERS_H
#include <fagen.h>

#define FA_WORKERS_MOST 16

/* Calls piece(user, i) for i = 0 ... n - 1, n at most FA_WORKERS_MOST: 0 in this thread, the others in threads that end before this
 * returns, or in this one where none could be started. Returns the status of the first that failed, with its message. */
fa_status fa_workers_run(int n, fa_status (*piece)(void *user, int i), void *user);
#endif
