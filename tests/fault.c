/* fault: see the header. */
#include "fault.h"
#include "gen/error.h"
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

static _Thread_local struct {
    bool armed, fired;
    fault_kind kind;
    long left, nth;
    int error;
    const char *what, *only;
} now;
static _Thread_local long live;

/* What a thread keeps from its first failure on is there before anything is counted; fork() takes it along. */
__attribute__((constructor)) static void fail_first(void)
{
    fa_fail(FA_INTERNAL, "no fault yet");
}

void fault_arm(fault_kind kind, long nth, int error)
{
    now.armed = true;
    now.fired = false;
    now.kind = kind;
    now.left = now.nth = nth;
    now.error = error;
    now.what = "nothing";
    now.only = NULL;
}

void fault_arm_call(const char *name, long nth, int error)
{
    fault_arm(FAULT_IO, nth, error);
    now.only = name;
}

long fault_seen(void)
{
    return now.nth - now.left;
}

bool fault_disarm(const char **what)
{
    now.armed = false;
    if (what)
        *what = now.what;
    return now.fired;
}

static bool hits(fault_kind kind, const char *what)
{
    if (!now.armed || now.kind != kind || (now.only && strcmp(now.only, what)) || --now.left)
        return false;
    now.fired = true;
    now.what = what;
    return true;
}

/* An I/O call that fails as a whole. */
static bool fails(const char *what)
{
    if ((now.armed && now.error == FAULT_SHORT) || !hits(FAULT_IO, what))
        return false;
    errno = now.error;
    return true;
}

#pragma GCC visibility push(default) /* libc's own calls come here as well */

/* --- I/O. The next definition, libc's or a sanitizer's, does the work. --- */

#define NEXT(f) ((__typeof__(&f))next_##f)
/* clang-format off */
#define CALLS(X)                                                                                                              \
    X(open) X(openat) X(mkdir) X(mkdirat) X(fstat) X(fstatat) X(stat) X(read) X(pread) X(write) X(fsync) X(fdatasync) X(rename)  \
    X(renameat) X(unlink) X(unlinkat) X(flock) X(faccessat) X(access) X(close) X(fdopendir) X(opendir) X(readdir) X(closedir)   \
    X(pwrite) X(getrandom) X(futimens) X(utimensat) X(fchmod) X(ftruncate) X(getpwuid_r) X(mkostemp)
/* clang-format on */
#define NAMED(f) static void *next_##f;
CALLS(NAMED)
#undef NAMED

const char *fault_call(int i)
{
#define NAME(f) #f,
    static const char *const names[] = { CALLS(NAME) NULL };
#undef NAME
    return names[i];
}

/* Before main, so that looking names up is no part of a test. */
__attribute__((constructor)) static void find(void)
{
#define FIND(f) next_##f = dlsym(RTLD_NEXT, #f);
    CALLS(FIND)
#undef FIND
}

static bool makes(int flags)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

int open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = makes(flags) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    if (!next_open)
        find(); /* by a constructor that runs before ours */
    return fails("open") ? -1 : NEXT(open)(path, flags, mode);
}

int openat(int at, const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = makes(flags) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return fails("openat") ? -1 : NEXT(openat)(at, path, flags, mode);
}

int close(int fd)
{
    if (!next_close)
        find();
    int rc = NEXT(close)(fd); /* a close that fails has closed */
    return fails("close") ? -1 : rc;
}

int closedir(DIR *d)
{
    int rc = NEXT(closedir)(d);
    return fails("closedir") ? -1 : rc;
}

ssize_t read(int fd, void *to, size_t n)
{
    if (!next_read)
        find();
    if (now.armed && now.error == FAULT_SHORT && n > 1 && hits(FAULT_IO, "read"))
        n /= 2;
    return fails("read") ? -1 : NEXT(read)(fd, to, n);
}

ssize_t write(int fd, const void *from, size_t n)
{
    if (!next_write)
        find();
    if (now.armed && now.error == FAULT_SHORT && n > 1 && hits(FAULT_IO, "write"))
        n /= 2;
    return fails("write") ? -1 : NEXT(write)(fd, from, n);
}

#define INT(name, declared, passed)                   \
    int name declared                                 \
    {                                                 \
        if (!next_##name)                             \
            find();                                   \
        return fails(#name) ? -1 : NEXT(name) passed; \
    }
INT(mkdir, (const char *path, mode_t mode), (path, mode))
INT(mkdirat, (int at, const char *path, mode_t mode), (at, path, mode))
INT(fstat, (int fd, struct stat *st), (fd, st))
INT(fstatat, (int at, const char *path, struct stat *st, int flags), (at, path, st, flags))
INT(stat, (const char *path, struct stat *st), (path, st))
INT(fsync, (int fd), (fd))
INT(fdatasync, (int fd), (fd))
INT(rename, (const char *from, const char *to), (from, to))
INT(renameat, (int at, const char *from, int bt, const char *to), (at, from, bt, to))
INT(unlink, (const char *path), (path))
INT(unlinkat, (int at, const char *path, int flags), (at, path, flags))
INT(flock, (int fd, int how), (fd, how))
INT(faccessat, (int at, const char *path, int mode, int flags), (at, path, mode, flags))
INT(access, (const char *path, int mode), (path, mode))
INT(futimens, (int fd, const struct timespec t[2]), (fd, t))
INT(utimensat, (int at, const char *path, const struct timespec t[2], int flags), (at, path, t, flags))
INT(fchmod, (int fd, mode_t mode), (fd, mode))
INT(mkostemp, (char *name, int flags), (name, flags))
INT(ftruncate, (int fd, off_t n), (fd, n))

ssize_t pread(int fd, void *to, size_t n, off_t at)
{
    return fails("pread") ? -1 : NEXT(pread)(fd, to, n, at);
}

ssize_t pwrite(int fd, const void *from, size_t n, off_t at)
{
    return fails("pwrite") ? -1 : NEXT(pwrite)(fd, from, n, at);
}

ssize_t getrandom(void *to, size_t n, unsigned flags)
{
    return fails("getrandom") ? -1 : NEXT(getrandom)(to, n, flags);
}

DIR *fdopendir(int fd)
{
    return fails("fdopendir") ? NULL : NEXT(fdopendir)(fd);
}

DIR *opendir(const char *path)
{
    return fails("opendir") ? NULL : NEXT(opendir)(path);
}

struct dirent *readdir(DIR *d)
{
    return fails("readdir") ? NULL : NEXT(readdir)(d);
}

int getpwuid_r(uid_t uid, struct passwd *pw, char *buf, size_t n, struct passwd **out)
{
    if (!fails("getpwuid_r"))
        return NEXT(getpwuid_r)(uid, pw, buf, n, out);
    *out = NULL;
    return errno;
}

int fault_descriptors(void)
{
    int n = 0;
    DIR *d = NEXT(opendir)("/proc/self/fd");
    while (d && NEXT(readdir)(d))
        n++;
    if (d)
        NEXT(closedir)(d);
    return n;
}

/* --- allocators --- */

bool fault_allocates(void)
{
#ifdef SANITIZED
    return false;
#else
    return true;
#endif
}

long fault_live(void)
{
    return live;
}

#ifndef SANITIZED
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t m);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);

static void *counted(void *p)
{
    live += p != NULL;
    return p;
}

static void *refused(void)
{
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t n)
{
    return hits(FAULT_ALLOC, "malloc") ? refused() : counted(__libc_malloc(n));
}

void *calloc(size_t n, size_t m)
{
    return hits(FAULT_ALLOC, "calloc") ? refused() : counted(__libc_calloc(n, m));
}

void *aligned_alloc(size_t align, size_t n)
{
    return hits(FAULT_ALLOC, "aligned_alloc") ? refused() : counted(__libc_memalign(align, n));
}

int posix_memalign(void **out, size_t align, size_t n)
{
    *out = hits(FAULT_ALLOC, "posix_memalign") ? NULL : counted(__libc_memalign(align, n));
    return *out ? 0 : ENOMEM;
}

void *realloc(void *p, size_t n)
{
    if (n && hits(FAULT_GROW, "realloc"))
        return refused();
    void *q = __libc_realloc(p, n);
    live += (q != NULL) - (p != NULL && (q || !n));
    return q;
}

void free(void *p)
{
    live -= p != NULL;
    __libc_free(p);
}
#endif
