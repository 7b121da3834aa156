/* trusted_file: every open of the cache, with its checks on the descriptor rather than on the path. */
#include "trusted_file.h"
#include "gen/size_limit.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *fa_untrusted_reason(const struct stat *st)
{
    if (st->st_uid != geteuid() && st->st_uid != 0)
        return "owned by another user";
    if (st->st_mode & S_IWGRP)
        return "group-writable";
    if (st->st_mode & S_IWOTH)
        return "writable by others";
    return NULL;
}

int fa_trusted_dir(int at, const char *name, bool make, const char **trouble)
{
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (at == AT_FDCWD ? 0 : O_NOFOLLOW);
    int fd = openat(at, name, flags);
    if (fd < 0 && errno == ENOENT && make) {
        /* the loser of a race finds the winner's directory and checks it like any other */
        int rc = mkdirat(at, name, 0700);
        if (rc != 0 && errno != EEXIST) {
            *trouble = strerror(errno);
            return -1;
        }
        if (rc == 0 && at != AT_FDCWD)
            fsync(at); /* what is made to last inside a directory lasts only with it */
        fd = openat(at, name, flags);
    }
    if (fd < 0) {
        *trouble = strerror(errno);
        return -1;
    }
    struct stat st;
    const char *foreign = fstat(fd, &st) != 0 ? strerror(errno) : fa_untrusted_reason(&st);
    if (foreign) {
        *trouble = foreign;
        close(fd);
        return -1;
    }
    return fd;
}

DIR *fa_place_names(int fd)
{
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d && fd >= 0)
        close(fd);
    return d;
}

static fa_file_state read_all(int fd, size_t n, char *to, const char **trouble)
{
    for (size_t done = 0; done < n;) {
        ssize_t r = read(fd, to + done, n - done);
        if (r > 0)
            done += (size_t)r;
        else if (r == 0) {
            *trouble = "cut short while it was read";
            return FA_FILE_BAD;
        } else if (errno != EINTR) {
            *trouble = strerror(errno);
            return FA_FILE_TROUBLE;
        }
    }
    return FA_FILE_OK;
}

fa_file_state fa_trusted_read(int at, const char *name, size_t cap, char **bytes, size_t *size, struct stat *out, const char **trouble)
{
    fa_file_state result = FA_FILE_BAD;
    char *buf = NULL;
    *bytes = NULL;
    *size = 0;
    /* O_NONBLOCK: a FIFO must not hold us; no effect on regular files */
    int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        *trouble = errno == ELOOP ? "a symbolic link" : strerror(errno);
        return errno == ENOENT ? FA_FILE_ABSENT : errno == ELOOP || errno == ENXIO ? FA_FILE_BAD : FA_FILE_TROUBLE;
    }
    struct stat st;
    if (fstat(fd, &st) != 0) {
        *trouble = strerror(errno);
        result = FA_FILE_TROUBLE;
    } else if (!S_ISREG(st.st_mode))
        *trouble = "not a regular file";
    else if (fa_untrusted_reason(&st))
        *trouble = fa_untrusted_reason(&st);
    else if (st.st_size < 0 || (uint64_t)st.st_size > cap)
        *trouble = "too large";
    else if (!(buf = malloc((size_t)st.st_size + 1))) {
        *trouble = "out of memory";
        result = FA_FILE_TROUBLE;
    } else
        result = read_all(fd, (size_t)st.st_size, buf, trouble);
    close(fd);
    if (result != FA_FILE_OK) {
        free(buf);
        return result;
    }
    buf[st.st_size] = 0;
    *bytes = buf;
    *size = (size_t)st.st_size;
    if (out)
        *out = st;
    return FA_FILE_OK;
}

bool fa_write_all(int fd, const void *bytes, size_t n, const char **trouble)
{
    const char *p = bytes;
    while (n > 0) {
        ssize_t w = fa_write_limited(fd, p, n);
        if (w < 0 && errno != EINTR) {
            *trouble = strerror(errno);
            return false;
        }
        if (w > 0) {
            p += w;
            n -= (size_t)w;
        }
    }
    return true;
}

void fa_file_name(char *out, size_t n, const char *text, const char *suffix)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789,=+-_.";
    size_t room = n - 1 - strlen(suffix), len = 0;
    for (; text[len] && len < room; len++)
        out[len] = strchr(plain, text[len]) ? text[len] : '_';
    if (len == 0)
        out[len++] = '_';
    if (out[0] == '.')
        out[0] = '_';
    strcpy(out + len, suffix);
}
