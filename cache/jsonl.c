/* jsonl: lines appended whole, read with forgiveness. */
#include "jsonl.h"
#include "gen/size_limit.h"
#include "line_set.h"
#include "root.h"
#include "trusted_file.h"
#include "wait.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTEMPTS 8

/* Whether the file ends inside a line: a writer was killed, or the disk was full. */
static bool torn(int fd, const struct stat *st)
{
    char last = 0;
    return st->st_size > 0 && (pread(fd, &last, 1, st->st_size - 1) != 1 || last != '\n');
}

/* text: lines without the last newline. */
static bool append(int fd, const struct stat *st, bool apart, const char *text, size_t n, const char **trouble)
{
    fa_text whole = { 0 };
    *trouble = !S_ISREG(st->st_mode) ? "not a regular file" : fa_untrusted_reason(st);
    if (!*trouble && (uint64_t)st->st_size + n + 2 > FA_FILE_CAP)
        *trouble = "the file is full";
    if (*trouble)
        return false;
    /* without a lock another may be writing: an empty line costs nothing */
    if (apart || torn(fd, st))
        fa_text_str(&whole, "\n");
    fa_text_add(&whole, text, n);
    fa_text_str(&whole, "\n");
    ssize_t wrote = -1;
    *trouble = "out of memory";
    if (!whole.oom) {
        do
            wrote = fa_write_limited(fd, whole.s, whole.n);
        while (wrote < 0 && errno == EINTR);
        *trouble = wrote < 0 ? strerror(errno) : "the disk is full";
    }
    bool ok = !whole.oom && wrote == (ssize_t)whole.n;
    fa_text_free(&whole);
    return ok;
}

/* Opens the file and takes its lock, where that can be had. One that was taken away between the two is opened once more. */
static int open_locked(int dir, const char *file, int flags, fa_wait *w, bool *locked, struct stat *st)
{
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        int fd = openat(dir, file, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        if (fd < 0)
            return -1;
        *locked = fa_wait_lock(fd, w) == 0;
        int why = fstat(fd, st) == 0 ? 0 : errno;
        if (!why && (st->st_nlink > 0 || !S_ISREG(st->st_mode)))
            return fd;
        close(fd);
        errno = why;
        if (why)
            return -1;
    }
    errno = ENOENT;
    return -1;
}

static bool append_text(int dir, const char *file, const char *text, size_t n, bool last, fa_wait *w, const char **trouble)
{
    struct stat st;
    bool locked = false;
    int fd = open_locked(dir, file, O_RDWR | O_CREAT | O_APPEND, w, &locked, &st);
    if (fd < 0) {
        *trouble = strerror(errno);
        return false;
    }
    bool ok = append(fd, &st, !locked, text, n, trouble);
    if (ok && last && fsync(fd) != 0) {
        *trouble = strerror(errno);
        ok = false;
    }
    flock(fd, LOCK_UN); /* a forked child may still hold the descriptor */
    close(fd);
    return ok;
}

bool fa_jsonl_append(int dir, const char *file, const char *line, size_t n, fa_wait *w, const char **trouble)
{
    if (n == 0 || n > FA_LINE_CAP || memchr(line, '\n', n) || memchr(line, 0, n)) {
        *trouble = "not a line";
        return false;
    }
    return append_text(dir, file, line, n, false, w, trouble);
}

bool fa_jsonl_append_lines(int dir, const char *file, const char *lines, size_t n, fa_wait *w, const char **trouble)
{
    return n == 0 || append_text(dir, file, lines, n - 1, true, w, trouble);
}

static bool read_at(int fd, char *to, size_t n, off_t from)
{
    for (size_t done = 0; done < n;) {
        ssize_t r = pread(fd, to + done, n - done, from + (off_t)done);
        if (r <= 0 && !(r < 0 && errno == EINTR))
            return false;
        done += r > 0 ? (size_t)r : 0;
    }
    return true;
}

static bool write_at(int fd, const char *bytes, size_t n, off_t at)
{
    for (size_t done = 0; done < n;) {
        ssize_t w = pwrite(fd, bytes + done, n - done, at + (off_t)done);
        if (w <= 0 && !(w < 0 && errno == EINTR))
            return false;
        done += w > 0 ? (size_t)w : 0;
    }
    return true;
}

/* Others appended as well: newlines go over the bytes of each of the lines, which needs neither room nor their lock. */
static bool blank(int fd, char *there, size_t size, off_t from, const char *lines, size_t n)
{
    fa_line_set ours = { .n = 0 };
    bool ok = true;
    for (const char *p = lines, *end = lines + n, *nl; p < end && (nl = memchr(p, '\n', (size_t)(end - p))); p = nl + 1)
        fa_line_set_add(&ours, p, (size_t)(nl - p));
    for (char *p = there, *end = there + size, *nl; ok && p < end && (nl = memchr(p, '\n', (size_t)(end - p))); p = nl + 1)
        if (nl > p && fa_line_set_has(&ours, p, (size_t)(nl - p))) {
            memset(p, '\n', (size_t)(nl - p));
            ok = write_at(fd, p, (size_t)(nl - p), from + (p - there));
        }
    ok = ok && !ours.oom;
    fa_line_set_free(&ours);
    return ok;
}

/* *gone: nothing of the file is left. */
static bool take_back(int fd, const struct stat *st, bool locked, int64_t size, const char *lines, size_t n, bool *gone)
{
    off_t from = size < 0 ? 0 : size;
    *gone = size < 0 && locked && st->st_size == 0;
    if (!S_ISREG(st->st_mode) || fa_untrusted_reason(st) || st->st_size <= from || (uint64_t)st->st_size > FA_FILE_CAP)
        return true;
    size_t more = (size_t)(st->st_size - from);
    char *there = malloc(more);
    bool ok = there && read_at(fd, there, more, from);
    if (ok) {
        size_t apart = there[0] == '\n';
        bool alone = locked && more - apart <= n && !memcmp(there + apart, lines, more - apart);
        ok = alone ? ftruncate(fd, from) == 0 : blank(fd, there, more, from, lines, n);
        *gone = ok && alone && size < 0;
    }
    free(there);
    return ok;
}

bool fa_jsonl_take_back(int dir, const char *file, int64_t size, const char *lines, size_t n, fa_wait *w)
{
    struct stat st;
    bool locked = false, gone = false;
    int fd = open_locked(dir, file, O_RDWR, w, &locked, &st);
    if (fd < 0)
        return errno == ENOENT;
    bool ok = take_back(fd, &st, locked, size, lines, n, &gone);
    if (gone)
        unlinkat(dir, file, 0);
    flock(fd, LOCK_UN);
    close(fd);
    return ok;
}

bool fa_jsonl_read(int dir, const char *file, fa_jsonl_fn *f, void *user, const char **trouble)
{
    char *bytes = NULL;
    size_t size = 0, number = 0;
    fa_file_state got = fa_trusted_read(dir, file, FA_FILE_CAP, &bytes, &size, NULL, trouble);
    if (got != FA_FILE_OK)
        return got == FA_FILE_ABSENT;
    for (char *p = bytes, *end = bytes + size; p < end;) {
        char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((nl ? nl : end) - p);
        number++;
        p[n] = 0; /* the byte past the end belongs to the buffer as well */
        if (n > 0 && n <= FA_LINE_CAP && !memchr(p, 0, n))
            f(user, p, n, number);
        p += n + 1;
    }
    free(bytes);
    return true;
}
