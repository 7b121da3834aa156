/* load_marker: a file in loading/, locked by its owner; not empty while the driver is at work. */
#include "load_marker.h"
#include "root.h"
#include "trusted_file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTEMPTS 8

static const fa_root *writer(const fa_store *s)
{
    return s->writer < 0 ? NULL : &s->root[s->writer];
}

/* The entry's file in a root, or -1. */
static int open_entry(const fa_root *r, fa_key k)
{
    char name[FA_NAME_SIZE];
    const char *trouble;
    int kernels, dir = fa_root_folder(r, k, name, &kernels, &trouble);
    int fd = dir < 0 ? -1 : openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (kernels >= 0)
        close(kernels);
    if (dir >= 0)
        close(dir);
    return fd;
}

static bool locked(int fd, int how)
{
    int rc;
    do
        rc = flock(fd, how | LOCK_NB);
    while (rc != 0 && errno == EINTR);
    return rc == 0;
}

fa_load_marker fa_load_marker_set(fa_store *s, const fa_entry *e)
{
    fa_load_marker c = { s, -1, e->key };
    const fa_root *r = writer(s);
    const char *trouble;
    char name[33];
    int dir = e->proved || !r ? -1 : fa_trusted_dir(r->v1, "loading", false, &trouble);
    if (dir < 0)
        return c;
    fa_key_print(name, e->key);
    for (int attempt = 0; attempt < ATTEMPTS && c.fd < 0; attempt++) {
        struct stat st;
        int fd = openat(dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        if (fd < 0)
            break;
        /* shared: others may load the same at once. A sweeper may have been between the open and the lock: once more then */
        if (!locked(fd, LOCK_SH)) {
            bool swept = errno == EWOULDBLOCK;
            close(fd);
            if (swept)
                continue;
            unlinkat(dir, name, 0);
            break;
        }
        if (fstat(fd, &st) != 0 || st.st_nlink == 0)
            close(fd);
        else if (!S_ISREG(st.st_mode) || !fa_write_all(fd, "loading\n", 8, &trouble)) {
            unlinkat(dir, name, 0);
            close(fd);
            break;
        } else
            c.fd = fd;
    }
    close(dir);
    return c;
}

void fa_load_marker_clear(fa_load_marker *c, bool loaded)
{
    if (c->fd < 0)
        return;
    const fa_root *r = writer(c->store);
    const char *trouble;
    char name[33];
    struct stat st;
    int entry = loaded ? open_entry(r, c->key) : -1;
    if (entry >= 0) {
        if (fstat(entry, &st) == 0 && S_ISREG(st.st_mode))
            fchmod(entry, st.st_mode & 0555);
        close(entry);
    }
    /* the last process that loads it takes the mark away */
    int dir = fa_trusted_dir(r->v1, "loading", false, &trouble);
    if (dir >= 0) {
        fa_key_print(name, c->key);
        if (locked(c->fd, LOCK_EX) && fstat(c->fd, &st) == 0 && st.st_nlink > 0)
            unlinkat(dir, name, 0);
        close(dir);
    }
    close(c->fd);
    c->fd = -1;
}

static bool proved(const fa_root *r, fa_key k)
{
    struct stat st;
    int fd = open_entry(r, k);
    bool yes = fd >= 0 && fstat(fd, &st) == 0 && !(st.st_mode & S_IWUSR);
    if (fd >= 0)
        close(fd);
    return yes;
}

/* The file goes to quarantine/; an entry of a root that is only read leaves an empty one there, which stands for it. */
static void set_aside(fa_store *s, const fa_root *r, fa_key k)
{
    char name[FA_NAME_SIZE];
    const char *trouble;
    int kernels, dir = fa_root_folder(r, k, name, &kernels, &trouble);
    int quarantine = fa_trusted_dir(r->v1, "quarantine", true, &trouble);
    if (quarantine >= 0 && (dir < 0 || renameat(dir, name, quarantine, name) != 0)) {
        int fd = openat(quarantine, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        if (fd >= 0)
            close(fd);
    }
    fa_store_advise(s, FA_CAUSE_QUARANTINE,
                    "a process died while it loaded the kernel %.32s: set aside in %s/%s/quarantine, and compiled again", name, r->path,
                    FA_FORMAT_DIR);
    int open[] = { kernels, dir, quarantine };
    for (int i = 0; i < 3; i++)
        if (open[i] >= 0)
            close(open[i]);
}

static void sweep_one(fa_store *s, const fa_root *r, int loading, const char *name)
{
    struct stat st;
    fa_key k;
    int fd = openat(loading, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    /* an empty one: its maker died before it loaded anything, or is about to find it gone and make another */
    if (locked(fd, LOCK_EX) && fstat(fd, &st) == 0 && st.st_nlink > 0) {
        if (st.st_size > 0 && fa_key_parse(&k, name) && !proved(r, k))
            set_aside(s, r, k);
        unlinkat(loading, name, 0);
    }
    close(fd);
}

void fa_load_marker_sweep(fa_store *s, const fa_root *r)
{
    const char *trouble;
    DIR *d = fa_place_names(fa_trusted_dir(r->v1, "loading", false, &trouble));
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.')
            sweep_one(s, r, dirfd(d), e->d_name);
    closedir(d);
}
