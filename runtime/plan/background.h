/* background: kernels that are compiled beside launches: a queue of shape buckets, and the context's one thread that works through it. */
#ifndef FA_RUNTIME_PLAN_BACKGROUND_H
#define FA_RUNTIME_PLAN_BACKGROUND_H
#include "plan.h"
#include <pthread.h>

#define FA_BACKGROUND_MOST 64 /* jobs that wait */

typedef enum fa_job_state { FA_JOB_WAITING, FA_JOB_COMPILING, FA_JOB_DONE, FA_JOB_FAILED } fa_job_state;

/* One bucket whose better kernel was asked for. */
typedef struct fa_job {
    fa_problem problem; /* of the launch that missed */
    fa_plan_key key;
    CUcontext current; /* of that launch: the kernel is readied in it */
    fa_job_state state;
    char error[512]; /* FA_JOB_FAILED: why */
    struct fa_job *next;
} fa_job;

typedef struct fa_background {
    pthread_mutex_t mutex; /* guards all below; held for no call that compiles or loads */
    pthread_cond_t asked;
    pthread_t thread;
    bool running, stop;
    int waiting;          /* jobs in FA_JOB_WAITING */
    fa_job *first, *last; /* in the order they were asked for; what is done stays, for fa_explain() */
} fa_background;

void fa_background_open(fa_background *b);
/* Ends the thread after the job that it is at, and forgets the others. */
void fa_background_close(fa_background *b);

/* Has the kernel of p's own bucket chosen, compiled, loaded and put into the table, by a thread that starts with the first job. Returns
 * the plan that launches of p run now: one with the fallback's kernel, which is in the table from here on, so that each
 * bucket is asked for once; the bucket's own, if it has one by now; the fallback, where the queue is full or memory ran out. Thread-safe.
 */
const fa_plan *fa_background_ask(fa_context *ctx, const fa_problem *p, const fa_plan *fallback, CUcontext current);

/* A copy of the bucket's job; false where it was never asked for. */
bool fa_background_look(fa_background *b, const fa_plan_key *key, fa_job *out);
#endif
