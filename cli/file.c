/* file: whole or not there. */
#include "file.h"
#include "gen/error.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool put(int fd, const char *s, size_t n)
{
    while (n) {
        ssize_t k = write(fd, s, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        s += k;
        n -= (size_t)k;
    }
    return true;
}

fa_status cli_file_write(const char *path, const void *head, size_t n_head, const void *body, size_t n)
{
    char temp[4096];
    struct stat st;
    if (!strcmp(path, "-"))
        return fwrite(head, 1, n_head, stdout) == n_head && fwrite(body ? body : "", 1, n, stdout) == n && fflush(stdout) == 0
                   ? FA_OK : fa_fail(FA_IO, "standard output: %s", strerror(errno));
    bool special = stat(path, &st) == 0 && !S_ISREG(st.st_mode); /* /dev/null, a pipe: nothing to rename over */
    if (special && S_ISDIR(st.st_mode))
        return fa_fail(FA_IO, "%s: is a directory; accepted: a file name", path);
    if (!special && snprintf(temp, sizeof temp, "%s.XXXXXX", path) >= (int)sizeof temp)
        return fa_fail(FA_IO, "%.80s...: the name is too long", path);
    int fd = special ? open(path, O_WRONLY | O_CLOEXEC) : mkostemp(temp, O_CLOEXEC);
    if (fd < 0)
        return fa_fail(FA_IO, "%s: cannot be written: %s", path, strerror(errno));
    bool ok = put(fd, head, n_head) && put(fd, body, n);
    if (!special) {
        mode_t mask = umask(0);
        umask(mask);
        ok = ok && fchmod(fd, 0666 & ~mask) == 0 && fsync(fd) == 0;
    }
    int why = errno;
    ok = close(fd) == 0 && ok;
    if (ok && !special && rename(temp, path) != 0) {
        ok = false;
        why = errno;
    }
    if (!ok && !special)
        unlink(temp);
    return ok ? FA_OK : fa_fail(FA_IO, "%s: cannot be written: %s", path, strerror(why));
}

fa_status cli_file_read(const char *path, size_t cap, char **out, size_t *n)
{
    struct stat st;
    *out = NULL;
    *n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fa_fail(FA_IO, "%s: cannot be read: %s", path, strerror(errno));
    fa_status s = FA_OK;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        s = fa_fail(FA_IO, "%s: not a regular file", path);
    else if ((uint64_t)st.st_size > cap)
        s = fa_fail(FA_IO, "%s: %lld bytes; accepted: at most %zu", path, (long long)st.st_size, cap);
    else if (!(*out = malloc((size_t)st.st_size + 1)))
        s = fa_fail(FA_NOMEM, "%s: no memory for %lld bytes", path, (long long)st.st_size);
    while (s == FA_OK && *n < (size_t)st.st_size) {
        ssize_t k = read(fd, *out + *n, (size_t)st.st_size - *n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            s = fa_fail(FA_IO, "%s: %s", path, k < 0 ? strerror(errno) : "became shorter while it was read");
        else
            *n += (size_t)k;
    }
    close(fd);
    if (s == FA_OK) {
        (*out)[*n] = 0;
    } else {
        free(*out);
        *out = NULL;
    }
    return s;
}
