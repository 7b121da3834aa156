/* lock: the right to use a device alone. */
#include "lock.h"
#include "clock.h"
#include "gen/error.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* What all map. */
typedef struct board {
    pthread_mutex_t mutex; /* robust: a holder's death frees it */
    atomic_int processes[FA_DEVICE_LOCK_MEMBERS];
} board;

struct fa_device_lock {
    board *board;
    int member;
    bool held;
};

static board *map(int fd)
{
    void *at = mmap(NULL, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

int fa_device_lock_make(void)
{
    pthread_mutexattr_t attr;
    int fd = memfd_create("fagen device lock", MFD_CLOEXEC);
    board *b = fd >= 0 && ftruncate(fd, sizeof *b) == 0 ? map(fd) : NULL;
    int error = errno;
    if (b) {
        pthread_mutexattr_init(&attr);
        pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
        pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(&b->mutex, &attr);
        pthread_mutexattr_destroy(&attr);
        munmap(b, sizeof *b);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

fa_status fa_device_lock_join(fa_device_lock **out, int fd, int member)
{
    struct stat st;
    *out = NULL;
    if (member < 0 || member >= FA_DEVICE_LOCK_MEMBERS)
        return fa_fail(FA_INVALID, "device lock: member is %d; accepted: 0 to %d", member, FA_DEVICE_LOCK_MEMBERS - 1);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size != (off_t)sizeof(board))
        return fa_fail(FA_INVALID, "device lock: file descriptor %d is no device lock", fd);
    fa_device_lock *s = calloc(1, sizeof *s);
    if (!s)
        return fa_fail(FA_NOMEM, "no memory for a device lock");
    s->member = member;
    s->board = map(fd);
    if (!s->board) {
        free(s);
        return fa_fail(FA_IO, "device lock: mmap: %s", strerror(errno));
    }
    *out = s;
    return FA_OK;
}

void fa_device_lock_leave(fa_device_lock *s)
{
    if (!s)
        return;
    fa_device_lock_release(s);
    munmap(s->board, sizeof *s->board);
    free(s);
}

bool fa_device_lock_acquire(fa_device_lock *s, double seconds)
{
    if (!s || s->held)
        return true;
    struct timespec until = fa_clock_in(CLOCK_REALTIME, seconds); /* a clock that is set makes one wait longer or shorter, no more */
    int r = pthread_mutex_timedlock(&s->board->mutex, &until);
    if (r == EOWNERDEAD) /* what it measured died with it */
        r = pthread_mutex_consistent(&s->board->mutex);
    s->held = r == 0;
    return s->held;
}

void fa_device_lock_release(fa_device_lock *s)
{
    if (!s || !s->held)
        return;
    s->held = false;
    pthread_mutex_unlock(&s->board->mutex);
}

void fa_device_lock_report(fa_device_lock *s, int processes)
{
    if (s)
        atomic_store(&s->board->processes[s->member], processes);
}

int fa_device_lock_beside(const fa_device_lock *s)
{
    int n = 0;
    for (int i = 0; s && i < FA_DEVICE_LOCK_MEMBERS; i++)
        n += i == s->member ? 0 : atomic_load(&s->board->processes[i]);
    return n;
}
