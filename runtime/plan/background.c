/* background: one thread, which takes the jobs in the order they came. */
#include "background.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "prepare.h"
#include "runtime/context/context.h"
#include "runtime/context/driver_cuda.h"
#include "runtime/context/exit.h"
#include "table.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

void fa_background_open(fa_background *b)
{
    *b = (fa_background){ .running = false };
    pthread_mutex_init(&b->mutex, NULL);
    pthread_cond_init(&b->asked, NULL);
}

void fa_background_close(fa_background *b)
{
    pthread_mutex_lock(&b->mutex);
    b->stop = true;
    bool running = b->running;
    pthread_cond_signal(&b->asked);
    pthread_mutex_unlock(&b->mutex);
    if (running)
        pthread_join(b->thread, NULL);
    for (fa_job *j = b->first, *next; j; j = next) {
        next = j->next;
        free(j);
    }
    pthread_cond_destroy(&b->asked);
    pthread_mutex_destroy(&b->mutex);
}

/* The next three are called with the mutex held. */
static fa_job *find(const fa_background *b, const fa_plan_key *key)
{
    fa_job *j = b->first;
    while (j && !fa_plan_key_equal(&j->key, key))
        j = j->next;
    return j;
}

static fa_job *next_waiting(const fa_background *b)
{
    fa_job *j = b->waiting ? b->first : NULL;
    while (j && j->state != FA_JOB_WAITING)
        j = j->next;
    return j;
}

static void append(fa_background *b, fa_job *j)
{
    *(b->last ? &b->last->next : &b->first) = j;
    b->last = j;
}

static void tell(const fa_context *ctx, const fa_problem *p, const char *error)
{
    char line[FA_PROBLEM_TEXT];
    fa_problem_print(line, sizeof line, p);
    if (error)
        fa_log_say(&ctx->log, FA_LOG_ERROR, "no better kernel for %s; the nearest one goes on, and only fa_prepare() tries again: %s", line,
                   error);
    else
        fa_log_say(&ctx->log, FA_LOG_INFO, "the kernel of its own for %s is ready, and runs from now on", line);
}

/* In the CUDA context of the launch that missed: the words that some kernels count with belong to one. */
static fa_status make(fa_context *ctx, const fa_job *j)
{
    const cu_driver *d = ctx->device.driver;
    const fa_plan *plan;
    CUcontext popped;
    fa_status st = fa_driver_check(d, d->cuCtxPushCurrent(j->current), "cuCtxPushCurrent");
    if (st != FA_OK)
        return st;
    st = fa_prepare_plan(ctx, &j->problem, &plan);
    d->cuCtxPopCurrent(&popped);
    return st;
}

static void *work(void *user)
{
    fa_context *ctx = user;
    fa_background *b = ctx->background;
    /* else a load would be refused while any other thread captures, and would spoil that capture; best effort: it may not capture */
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    ctx->device.driver->cuThreadExchangeStreamCaptureMode(&mode);
    pthread_mutex_lock(&b->mutex);
    for (;;) {
        fa_job *j = NULL;
        while (!b->stop && (fa_exiting() || !(j = next_waiting(b))))
            pthread_cond_wait(&b->asked, &b->mutex);
        if (b->stop)
            break;
        b->waiting--;
        j->state = FA_JOB_COMPILING;
        pthread_mutex_unlock(&b->mutex);
        bool made = make(ctx, j) == FA_OK; /* of a job that is being compiled, this thread alone writes */
        pthread_mutex_lock(&b->mutex);
        j->state = made ? FA_JOB_DONE : FA_JOB_FAILED;
        if (!made)
            snprintf(j->error, sizeof j->error, "%s", fa_last_error());
        pthread_mutex_unlock(&b->mutex);
        if (!fa_exiting()) /* else what the log writes to may be gone */
            tell(ctx, &j->problem, made ? NULL : j->error);
        pthread_mutex_lock(&b->mutex);
    }
    pthread_mutex_unlock(&b->mutex);
    return NULL;
}

/* The mutex is held. The thread takes no signal that is meant for the process: its handlers run where the program expects them. */
static int start(fa_context *ctx)
{
    static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS };
    fa_background *b = ctx->background;
    sigset_t none, before;
    if (b->running)
        return 0;
    sigfillset(&none);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&none, own[i]);
    pthread_sigmask(SIG_SETMASK, &none, &before);
    int error = pthread_create(&b->thread, NULL, work, ctx);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    b->running = error == 0;
    return error;
}

/* The mutex is held, and the table had no plan. A bucket is in the table before its job is in the queue: it is never asked for twice. */
static const fa_plan *enqueue(fa_context *ctx, const fa_problem *p, const fa_plan *fallback, CUcontext current)
{
    fa_background *b = ctx->background;
    fa_job *j = b->waiting < FA_BACKGROUND_MOST ? calloc(1, sizeof *j) : NULL;
    const fa_plan *own = j ? fa_plan_of_fallback(ctx, p, fallback) : NULL, *there = own ? fa_table_add(ctx->table, own) : NULL;
    if (!there || there != own) {
        free(j);
        return there ? there : fallback;
    }
    *j = (fa_job){ .problem = *p, .key = own->key, .current = current, .state = FA_JOB_WAITING };
    int error = start(ctx);
    if (error) {
        j->state = FA_JOB_FAILED;
        snprintf(j->error, sizeof j->error, "pthread_create: error %d", error);
    } else {
        b->waiting++;
    }
    append(b, j);
    pthread_cond_signal(&b->asked);
    return own;
}

const fa_plan *fa_background_ask(fa_context *ctx, const fa_problem *p, const fa_plan *fallback, CUcontext current)
{
    fa_background *b = ctx->background;
    fa_job failed = { .state = FA_JOB_WAITING };
    const fa_plan_key key = fa_plan_key_of(p);
    pthread_mutex_lock(&b->mutex);
    const fa_plan *plan = fa_table_find(ctx->table, &key);
    if (!plan) {
        plan = enqueue(ctx, p, fallback, current);
        if (!b->running && b->last)
            failed = *b->last;
    }
    pthread_mutex_unlock(&b->mutex);
    if (failed.state == FA_JOB_FAILED)
        tell(ctx, p, failed.error);
    return plan;
}

bool fa_background_look(fa_background *b, const fa_plan_key *key, fa_job *out)
{
    pthread_mutex_lock(&b->mutex);
    const fa_job *j = find(b, key);
    if (j)
        *out = *j;
    pthread_mutex_unlock(&b->mutex);
    return j != NULL;
}
