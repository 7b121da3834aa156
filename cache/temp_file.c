/* temp_file: made under a name of its own, locked while its maker lives. */
#include "temp_file.h"
#include "trusted_file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PREFIX ".put-"
#define ATTEMPTS 16
#define DEAD_SECONDS 3600 /* where locks do not work: no put takes that long */

/* False when a sweeper was between the open and the lock: the file is, or will be, gone. */
static bool ours(int fd)
{
    struct stat st;
    int rc;
    do
        rc = flock(fd, LOCK_EX | LOCK_NB);
    while (rc != 0 && errno == EINTR);
    if (rc != 0 && errno == EWOULDBLOCK)
        return false;
    return fstat(fd, &st) != 0 || st.st_nlink > 0;
}

bool fa_temp_file_open(fa_temp_file *d, int dir, const char **trouble)
{
    *d = (fa_temp_file){ .dir = dir, .fd = -1 };
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        uint64_t r[2];
        if (getrandom(r, sizeof r, 0) != (ssize_t)sizeof r)
            break;
        snprintf(d->name, sizeof d->name, PREFIX "%016llx%016llx", (unsigned long long)r[0], (unsigned long long)r[1]);
        d->fd = openat(dir, d->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (d->fd >= 0 && ours(d->fd))
            return true;
        if (d->fd < 0 && errno != EEXIST) /* NO BRANCH: two random names of 128 bits do not meet */
            break;
        fa_temp_file_drop(d);
    }
    *trouble = strerror(errno);
    d->fd = -1;
    return false;
}

bool fa_temp_file_publish(fa_temp_file *d, int to, const char *name, const char **trouble)
{
    /* some network file systems tell of a full disk only when a descriptor is closed: that is done before the rename, on a copy,
     * so that the lock is held until after it */
    int copy = fcntl(d->fd, F_DUPFD_CLOEXEC, 0);
    bool ok = copy >= 0 && fsync(d->fd) == 0;
    if (copy >= 0)
        ok = close(copy) == 0 && ok;
    ok = ok && renameat(d->dir, d->name, to, name) == 0;
    if (!ok) {
        *trouble = strerror(errno);
        fa_temp_file_drop(d);
        return false;
    }
    fsync(to); /* the entry is whole either way; this only makes it last */
    close(d->fd);
    d->fd = -1;
    return true;
}

void fa_temp_file_drop(fa_temp_file *d)
{
    if (d->fd < 0)
        return;
    unlinkat(d->dir, d->name, 0);
    close(d->fd);
    d->fd = -1;
}

static bool old(int dir, const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           llabs((long long)(time(NULL) - st.st_mtime)) > DEAD_SECONDS; /* or of the future */
}

static void sweep_one(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool dead;
    if (fd < 0)
        dead = old(dir, name);
    else if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        dead = true;
    else
        dead = errno != EWOULDBLOCK && old(dir, name);
    if (dead)
        unlinkat(dir, name, 0);
    if (fd >= 0)
        close(fd);
}

void fa_temp_file_sweep(int dir)
{
    DIR *d = fa_place_names(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));)
        if (strncmp(e->d_name, PREFIX, sizeof PREFIX - 1) == 0)
            sweep_one(dir, e->d_name);
    closedir(d);
}
