/* size_limit: writing where the process has a file-size limit (RLIMIT_FSIZE). The kernel sends SIGXFSZ to a thread that writes beyond it,
 * and the signal's default ends the process. Here the limit is an error like a full disk: EFBIG, and no signal. */
#ifndef FA_GEN_SIZE_LIMIT_H
#define FA_GEN_SIZE_LIMIT_H
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

/* As write(). The signal is blocked in the calling thread alone, and one that this write raised is taken; the process's handler, and
 * a signal that was pending before, stay as they are. */
static inline ssize_t fa_write_limited(int fd, const void *bytes, size_t n)
{
    sigset_t one, before, pending;
    sigemptyset(&one);
    sigaddset(&one, SIGXFSZ);
    sigemptyset(&pending);
    bool blocked = pthread_sigmask(SIG_BLOCK, &one, &before) == 0;
    sigpending(&pending);
    ssize_t wrote = write(fd, bytes, n);
    int why = errno;
    if (wrote < 0 && why == EFBIG && !sigismember(&pending, SIGXFSZ))
        while (sigtimedwait(&one, NULL, &(struct timespec){ 0, 0 }) < 0 && errno == EINTR)
            ;
    if (blocked)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return wrote;
}
#endif
