/* A directory of its own for each test of the cache, removed afterwards. */
#ifndef TEST_CACHE_SCRATCH_H
#define TEST_CACHE_SCRATCH_H
#include <ftw.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch[256];

static inline void scratch_make(void)
{
    snprintf(scratch, sizeof scratch, "/tmp/fagen-test-XXXXXX");
    if (!mkdtemp(scratch))
        abort();
}

/* In memory where there is such a place: for tests that write much, and need no disk. */
static inline void scratch_make_light(void)
{
    snprintf(scratch, sizeof scratch, "%s/fagen-test-XXXXXX", access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(scratch))
        abort();
}

static inline int scratch_unlink(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static inline void scratch_remove(void)
{
    nftw(scratch, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

/* What lies in a store's files of kernels and records: their names and bytes, in any order. Locks, temporary files and empty folders do not
 * count. */
static uint64_t scratch_sum;
static inline int scratch_add(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)type, (void)ftw;
    if (!S_ISREG(st->st_mode) || strstr(path, "/v1/locks/") || strstr(path, "/v1/loading/") || strstr(path, "/.put-"))
        return 0;
    uint64_t h = 14695981039346656037u;
    for (const char *p = path; *p; p++)
        h = (h ^ (unsigned char)*p) * 1099511628211u;
    FILE *f = fopen(path, "rb");
    for (int c; f && (c = getc(f)) != EOF;)
        h = (h ^ (unsigned)c) * 1099511628211u;
    if (f)
        fclose(f);
    scratch_sum += h ^ h >> 29;
    return 0;
}

static inline uint64_t scratch_sum_of(const char *root)
{
    scratch_sum = 0;
    nftw(root, scratch_add, 16, FTW_PHYS);
    return scratch_sum;
}

/* A path below the scratch directory; valid until the eighth call after it. */
__attribute__((format(printf, 1, 2))) static inline const char *below(const char *fmt, ...)
{
    static char ring[8][512];
    static int at;
    char *s = ring[at++ % 8];
    int n = snprintf(s, sizeof ring[0], "%s/", scratch);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s + n, sizeof ring[0] - (size_t)n, fmt, ap);
    va_end(ap);
    return s;
}

static inline char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        abort();
    char *buf = calloc(1, 1 << 20);
    *n = fread(buf, 1, (1 << 20) - 1, f);
    fclose(f);
    return buf;
}

static inline void spill(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
        abort();
}
#endif
