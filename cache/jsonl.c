/* jsonl: lines appended whole, read with forgiveness. */
#include "jsonl.h"
#include "gen/size_limit.h"
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

/* Whether the file ends inside a line: a writer was killed, or the disk was full. */
static bool torn(int fd, const struct stat *st)
{
    char last = 0;
    return st->st_size > 0 && (pread(fd, &last, 1, st->st_size - 1) != 1 || last != '\n');
}

static bool append(int fd, const char *line, size_t n, fa_wait *w, const char **trouble)
{
    struct stat st;
    fa_text whole = { 0 };
    int unlocked = fa_wait_lock(fd, w);
    if (fstat(fd, &st) != 0) {
        *trouble = strerror(errno);
        return false;
    }
    *trouble = !S_ISREG(st.st_mode) ? "not a regular file" : fa_untrusted_reason(&st);
    if (!*trouble && (uint64_t)st.st_size + n + 2 > FA_FILE_CAP)
        *trouble = "the file is full";
    if (*trouble)
        return false;
    /* without a lock another may be writing: an empty line costs nothing */
    if (unlocked || torn(fd, &st))
        fa_text_str(&whole, "\n");
    fa_text_add(&whole, line, n);
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

bool fa_jsonl_append(int dir, const char *file, const char *line, size_t n, fa_wait *w, const char **trouble)
{
    if (n == 0 || n > FA_LINE_CAP || memchr(line, '\n', n) || memchr(line, 0, n)) {
        *trouble = "not a line";
        return false;
    }
    int fd = openat(dir, file, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0) {
        *trouble = strerror(errno);
        return false;
    }
    bool ok = append(fd, line, n, w, trouble);
    flock(fd, LOCK_UN); /* a forked child may still hold the descriptor */
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
