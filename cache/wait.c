/* wait: flock() has no time limit of its own, so the lock is asked for again and again, ever less often. */
#include "wait.h"
#include "root.h"
#include "temp_file.h"
#include "trusted_file.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define FIGURE "longest"
#define FIGURE_BYTES 64
#define COMPILE_LEAST 0.05 /* seconds: less is a look into the cache */
#define GROWS 1.25         /* a figure on disk is replaced by one that is so much larger: it is written a few times in a store's life */
#define ASK_FIRST 0.001    /* seconds between two questions: doubled each time */
#define ASK_MOST 0.05

double fa_wait_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int locks_of(const fa_store *s)
{
    const char *trouble;
    return s->writer < 0 ? -1 : fa_trusted_dir(s->root[s->writer].v1, "locks", false, &trouble);
}

/* 0: none is known. */
static double figure_of(int locks)
{
    char *bytes = NULL;
    size_t n = 0;
    const char *trouble;
    if (locks < 0 || fa_trusted_read(locks, FIGURE, FIGURE_BYTES, &bytes, &n, NULL, &trouble) != FA_FILE_OK)
        return 0;
    double seconds = strtod(bytes, NULL);
    free(bytes);
    return isfinite(seconds) && seconds > 0 ? seconds : 0;
}

/* Takes the larger of both. */
static double longest(fa_store *s, double seconds)
{
    pthread_mutex_lock(&s->mutex);
    s->longest = fmax(s->longest, seconds);
    seconds = s->longest;
    pthread_mutex_unlock(&s->mutex);
    return seconds;
}

double fa_wait_rule(fa_store *s)
{
    if (s->wait_most > 0)
        return s->wait_most;
    int locks = locks_of(s);
    double seen = longest(s, figure_of(locks));
    if (locks >= 0)
        close(locks);
    return seen > 0 ? fmin(fmax(2 * seen, FA_WAIT_LEAST), FA_WAIT_MOST) : FA_WAIT_MOST;
}

void fa_wait_saw(fa_store *s, double seconds)
{
    char text[FIGURE_BYTES];
    const char *trouble;
    fa_temp_file temp;
    double before = seconds < COMPILE_LEAST ? 0 : longest(s, 0);
    if (seconds < COMPILE_LEAST || longest(s, seconds) < before * GROWS)
        return;
    int locks = locks_of(s);
    int kernels = locks < 0 || seconds < figure_of(locks) * GROWS
                      ? -1
                      : fa_trusted_dir(s->root[s->writer].v1, "kernels", false, &trouble); /* where temporary files of the dead are swept */
    if (kernels >= 0 && fa_temp_file_open(&temp, kernels, &trouble)) {
        int n = snprintf(text, sizeof text, "%.0f\n", fmax(1, seconds)); /* whole ones: no locale tells its decimal point */
        if (fa_write_all(temp.fd, text, (size_t)n, &trouble))
            fa_temp_file_publish(&temp, locks, FIGURE, &trouble);
        fa_temp_file_drop(&temp);
    }
    if (kernels >= 0)
        close(kernels);
    if (locks >= 0)
        close(locks);
}

int fa_wait_lock(int fd, fa_wait *w)
{
    double from = fa_wait_clock(), pause = ASK_FIRST;
    w->over = false;
    for (;;) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return 0;
        int why = errno;
        if (why != EINTR && why != EWOULDBLOCK)
            return why;
        if (why == EINTR)
            continue;
        if (w->most < 0)
            w->most = fa_wait_rule(w->store);
        double left = from + w->most - fa_wait_clock();
        if (left <= 0) {
            w->over = true;
            return why;
        }
        pause = fmin(fmin(pause, left), ASK_MOST);
        nanosleep(&(struct timespec){ .tv_nsec = (long)(1e9 * pause) }, NULL);
        pause *= 2;
    }
}
