/* file: whole files, in and out. */
#include "file.h"
#include "cache/output.h"
#include "gen/error.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

fa_status cli_file_write(const char *path, const void *head, size_t n_head, const void *body, size_t n)
{
    fa_output o;
    fa_status st = fa_output_open(&o, path);
    if (st == FA_OK)
        st = fa_output_write(&o, head, n_head);
    if (st == FA_OK)
        st = fa_output_write(&o, body, n);
    fa_status closed = fa_output_close(&o, st == FA_OK);
    return st == FA_OK ? closed : st;
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
