/* oracle_threads: one thread for each so many multiply-adds, up to the cores. */
#include "oracle_threads.h"
#include "gen/error.h"
#include "sim/sim.h"
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#define THREADS_MOST 8
#define WORK_OF_A_THREAD 2e6 /* multiply-adds worth starting one for */

fa_status fa_oracle_threads(void *(*work)(void *job), void *job, const fa_attention *a, int64_t rows, const atomic_bool *oom)
{
    pthread_t thread[THREADS_MOST];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    double most = (double)rows * a->sk * (a->d + a->dv) / WORK_OF_A_THREAD;
    int n = (int)fmin(fmin((double)cores, THREADS_MOST), most), started = 0;
    for (; started < n - 1; started++)
        if (pthread_create(&thread[started], NULL, work, job))
            break;
    work(job);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    if (sim_interrupted())
        return fa_fail(FA_INTERRUPTED, "the oracle was interrupted");
    return atomic_load(oom) ? fa_fail(FA_NOMEM, "no memory for %d scores of the oracle", a->sk) : FA_OK;
}
