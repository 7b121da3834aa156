/* workers: threads that are joined at once. */
#include "workers.h"
#include "gen/error.h"
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct worker {
    fa_status (*piece)(void *user, int i);
    void *user;
    int i;
    fa_status status;
    char message[2048];
    pthread_t thread;
    bool running;
} worker;

static void *work(void *user)
{
    worker *w = user;
    w->status = w->piece(w->user, w->i);
    if (w->status != FA_OK)
        snprintf(w->message, sizeof w->message, "%s", fa_last_error());
    return NULL;
}

/* The program's handlers of signals run in its own threads. */
static void start(worker *w)
{
    static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS };
    sigset_t none, before;
    sigfillset(&none);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&none, own[i]);
    pthread_sigmask(SIG_SETMASK, &none, &before);
    w->running = pthread_create(&w->thread, NULL, work, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

fa_status fa_workers_run(int n, fa_status (*piece)(void *user, int i), void *user)
{
    worker w[FA_WORKERS_MOST];
    int failed = -1;
    for (int i = 0; i < n; i++)
        w[i] = (worker){ .piece = piece, .user = user, .i = i };
    for (int i = 1; i < n; i++)
        start(&w[i]);
    for (int i = 0; i < n; i++)
        if (!w[i].running)
            work(&w[i]);
    for (int i = n - 1; i >= 0; i--) {
        if (w[i].running)
            pthread_join(w[i].thread, NULL);
        failed = w[i].status != FA_OK ? i : failed;
    }
    return failed < 0 ? FA_OK : fa_fail(w[failed].status, "%s", w[failed].message);
}
