/* exit: a count of the work under way, and the handler that waits for it. */
#include "exit.h"
#include "gen/error.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended;
static int working; /* of all threads */
static atomic_bool exiting;
static _Thread_local int own; /* of this thread */

static void make_condition(void)
{
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(&ended, &a);
    pthread_condattr_destroy(&a);
}

static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&mutex);
}

static void in_child(void)
{
    make_condition();
    working = own;
    pthread_mutex_unlock(&mutex);
}

static void prepare(void)
{
    make_condition();
    pthread_atfork(before_fork, after_fork, in_child);
}

static void ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
}

/* A thread that exits in the middle of its own work, as a handler of signals may, does not wait for itself. */
static void wait_for_others(void)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += FA_EXIT_SECONDS;
    atomic_store(&exiting, true);
    pthread_mutex_lock(&mutex);
    while (working > own && pthread_cond_timedwait(&ended, &mutex, &end) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&mutex);
}

void fa_exit_watch(void)
{
    ready();
    pthread_mutex_lock(&mutex); /* as fork() does: a child would find the lock of atexit() taken by a thread that it has not */
    atexit(wait_for_others);
    pthread_mutex_unlock(&mutex);
}

static void *stay_last(void *user)
{
    fa_exit_guard *g = user;
    for (long pause = 100000; !atomic_load(&g->over); pause += 400) { /* 0.1 ms */
        fa_exit_watch();
        nanosleep(&(struct timespec){ .tv_nsec = pause }, NULL);
    }
    return NULL;
}

void fa_exit_guard_begin(fa_exit_guard *g)
{
    sigset_t all, before;
    atomic_init(&g->over, false);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the program's handlers run in its own threads */
    g->running = pthread_create(&g->thread, NULL, stay_last, g) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void fa_exit_guard_end(fa_exit_guard *g)
{
    atomic_store(&g->over, true);
    if (g->running)
        pthread_join(g->thread, NULL);
}

fa_status fa_exit_begin(const char *what)
{
    ready();
    pthread_mutex_lock(&mutex);
    bool refused = fa_exiting();
    working += !refused;
    own += !refused;
    pthread_mutex_unlock(&mutex);
    return refused ? fa_fail(FA_INTERRUPTED, "%s: the process exits, and begins no such work", what) : FA_OK;
}

void fa_exit_end(void)
{
    pthread_mutex_lock(&mutex);
    working--;
    own--;
    pthread_cond_broadcast(&ended);
    pthread_mutex_unlock(&mutex);
}

bool fa_exiting(void)
{
    return atomic_load_explicit(&exiting, memory_order_relaxed);
}
