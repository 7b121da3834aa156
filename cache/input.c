/* input: one file that a person names. */
#include "input.h"
#include "gen/error.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

fa_status fa_input_read(const char *path, size_t cap, fa_status large, char **out, size_t *n)
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
        s = fa_fail(large, "%s: %lld bytes; accepted: at most %zu", path, (long long)st.st_size, cap);
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
