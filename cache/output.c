/* output: where a name leads, then a rename or a stream. */
#include "output.h"
#include "gen/error.h"
#include "trusted_file.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MOST 40 /* as the kernel follows */
#define ATTEMPTS 16

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static fa_output *all;

static void list(fa_output *o)
{
    pthread_mutex_lock(&mutex);
    o->next = all;
    all = o;
    o->listed = true;
    pthread_mutex_unlock(&mutex);
}

static void unlist(fa_output *o)
{
    pthread_mutex_lock(&mutex);
    for (fa_output **p = &all; *p; p = &(*p)->next)
        if (*p == o) {
            *p = o->next;
            break;
        }
    o->listed = false;
    pthread_mutex_unlock(&mutex);
}

void fa_output_forsake(void)
{
    pthread_mutex_lock(&mutex); /* for good: what is not there cannot be renamed */
    for (const fa_output *o = all; o; o = o->next)
        unlink(o->temp);
}

static fa_status fail(const char *path, const char *why)
{
    return fa_fail(FA_IO, "%.500s%s: cannot be written: %s", strcmp(path, "-") ? path : "standard output", strlen(path) > 500 ? "..." : "",
                   why);
}

/* Length of the folder's part of a path, with its slash. */
static size_t folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* The number of the process's own descriptor that a path names through /proc or /dev/fd, or -1. Its file has no name that could be
 * renamed over: others hold the same one. */
static int own_descriptor(const char *path)
{
    char own[64], folder[PATH_MAX], at[PATH_MAX];
    size_t n = folder_of(path);
    const char *digits = path + n;
    if (n == 0 || n >= sizeof folder || !*digits || strspn(digits, "0123456789") != strlen(digits) || strlen(digits) > 9)
        return -1;
    memcpy(folder, path, n);
    folder[n] = 0;
    snprintf(own, sizeof own, "/proc/%ld/fd", (long)getpid());
    return realpath(folder, at) && !strcmp(at, own) ? (int)strtol(digits, NULL, 10) : -1;
}

/* Follows the links of the last name, so that what they name is written; it need not exist. Heap, or NULL with errno. *fd: the
 * descriptor that the name turned out to be, else -1. */
static char *follow(const char *path, int *fd)
{
    char *at = strdup(path);
    *fd = -1;
    for (int i = 0; at; i++) {
        char to[PATH_MAX];
        struct stat st;
        if ((*fd = own_descriptor(at)) >= 0 || lstat(at, &st) != 0 || !S_ISLNK(st.st_mode))
            return at;
        ssize_t n = readlink(at, to, sizeof to - 1);
        if (n < 0 || n == (ssize_t)sizeof to - 1 || i == LINKS_MOST) {
            errno = n < 0 ? errno : i == LINKS_MOST ? ELOOP : ENAMETOOLONG;
            free(at);
            return NULL;
        }
        to[n] = 0;
        char *next = NULL;
        if (asprintf(&next, "%.*s%s", to[0] == '/' ? 0 : (int)folder_of(at), at, to) < 0)
            next = NULL;
        free(at);
        at = next;
    }
    return NULL;
}

/* A new file beside the target, of the mode that the umask gives. */
static int open_beside(fa_output *o)
{
    size_t n = folder_of(o->target);
    o->temp = malloc(n + 40);
    if (!o->temp)
        return -1;
    memcpy(o->temp, o->target, n);
    for (int i = 0; i < ATTEMPTS; i++) {
        uint64_t r;
        if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
            break;
        sprintf(o->temp + n, ".fagen-%016llx", (unsigned long long)r);
        list(o); /* before it is there, so that none is forgotten */
        o->fd = open(o->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (o->fd >= 0)
            return o->fd;
        int why = errno;
        unlist(o);
        errno = why;
        if (why != EEXIST) /* NO BRANCH: two random names do not meet */
            break;
    }
    return -1;
}

/* What is replaced lends its mode, and its owner where that is allowed. */
static bool inherit(int fd, const struct stat *old)
{
    struct stat st;
    bool other = fstat(fd, &st) == 0 && (st.st_uid != old->st_uid || st.st_gid != old->st_gid);
    if (other && fchown(fd, old->st_uid, old->st_gid) != 0)
        errno = 0; /* it is the writer's then, as a new file would be */
    return fchmod(fd, old->st_mode & 0777) == 0;
}

static fa_status begin(fa_output *o, int own)
{
    struct stat st;
    bool there = own < 0 && stat(o->target, &st) == 0; /* by the kernel's rules for links, which follow() does not know */
    /* NOLINTBEGIN(bugprone-branch-clone) errno is of the call just before */
    if (own >= 0)
        o->fd = fcntl(own, F_DUPFD_CLOEXEC, 0);
    else if (!there && errno != ENOENT)
        return fail(o->path, strerror(errno));
    else if (there && S_ISDIR(st.st_mode))
        return fa_fail(FA_IO, "%.500s: is a directory; accepted: a file name", o->path);
    else if (there && !S_ISREG(st.st_mode))
        o->fd = open(o->target, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    else if (there && faccessat(AT_FDCWD, o->target, W_OK, AT_EACCESS) != 0)
        return fail(o->path, strerror(errno));
    else if (open_beside(o) >= 0 && there && !inherit(o->fd, &st)) {
        fa_status status = fail(o->path, strerror(errno));
        fa_output_close(o, false);
        return status;
    }
    /* NOLINTEND(bugprone-branch-clone) */
    return o->fd >= 0 ? FA_OK : fail(o->path, strerror(errno));
}

fa_status fa_output_open(fa_output *o, const char *path)
{
    struct stat st;
    int own = -1;
    *o = (fa_output){ .path = path, .fd = -1 };
    if (!strcmp(path, "-")) {
        if (fflush(stdout) != 0 || (o->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)) < 0)
            return fail(path, strerror(errno));
        return FA_OK;
    }
    if (stat(path, &st) != 0 && errno != ENOENT) /* a link that may not be followed is not followed here either */
        return fail(path, strerror(errno));
    o->target = follow(path, &own);
    if (own == STDOUT_FILENO)
        fflush(stdout);
    fa_status status = o->target ? begin(o, own) : fail(path, strerror(errno));
    if (status != FA_OK || !o->listed) { /* nothing to rename */
        free(o->target);
        o->target = NULL;
    }
    if (status != FA_OK) {
        free(o->temp);
        o->temp = NULL;
    }
    return status;
}

fa_status fa_output_check(const char *path)
{
    struct stat st;
    fa_output o;
    if (!strcmp(path, "-") || (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
        return FA_OK;
    fa_status status = fa_output_open(&o, path);
    return status == FA_OK ? fa_output_close(&o, false) : status;
}

fa_status fa_output_write(fa_output *o, const void *bytes, size_t n)
{
    const char *trouble;
    return fa_write_all(o->fd, bytes, n, &trouble) ? FA_OK : fail(o->path, trouble);
}

fa_status fa_output_close(fa_output *o, bool keep)
{
    int why = 0;
    if (o->fd < 0)
        return FA_OK;
    if (keep && o->listed && fsync(o->fd) != 0)
        why = errno;
    if (close(o->fd) != 0 && !why)
        why = errno;
    o->fd = -1;
    bool kept = keep && !why;
    if (o->listed) {
        if (kept && rename(o->temp, o->target) != 0) {
            kept = false;
            why = errno;
        }
        if (!kept)
            unlink(o->temp);
        unlist(o);
    }
    free(o->temp);
    free(o->target);
    o->temp = o->target = NULL;
    return keep && !kept ? fail(o->path, strerror(why)) : FA_OK;
}
