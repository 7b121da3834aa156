/* quota: the size of the store, held at each put by looking at the files of one group. There is no count on disk that a killed
 * process could leave wrong. */
#include "quota.h"
#include "root.h"
#include "trusted_file.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FOLDERS 256
#define GROUP_LEAST ((int64_t)64 << 20)
#define EVICT_MOST 8 /* by one put: it adds one */
#define RENEW_SECONDS 3600
#define FUTURE_SECONDS 86400

void fa_quota_touch(int dir, const char *name, const struct stat *st)
{
    time_t now = time(NULL);
    if (now - st->st_mtime > RENEW_SECONDS || st->st_mtime - now > RENEW_SECONDS)
        utimensat(dir, name, NULL, AT_SYMLINK_NOFOLLOW);
}

int64_t fa_quota_used(const struct stat *st)
{
    return st->st_mtim.tv_sec - time(NULL) > FUTURE_SECONDS ? 0 : (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

typedef struct kept {
    int64_t used, size; /* ns since 1970, bytes */
    int folder;
    char name[FA_NAME_SIZE];
} kept;

typedef struct group {
    kept *k;
    size_t n, cap;
    int64_t sum;
} group;

static void add(group *g, int folder, const char *name, const struct stat *st)
{
    g->sum += st->st_size;
    if (g->n == g->cap) {
        size_t cap = g->cap ? 2 * g->cap : 64;
        kept *grown = realloc(g->k, cap * sizeof *grown);
        if (!grown)
            return;
        g->k = grown;
        g->cap = cap;
    }
    kept *k = &g->k[g->n++];
    *k = (kept){ .used = fa_quota_used(st), .size = st->st_size, .folder = folder };
    memcpy(k->name, name, sizeof k->name);
}

static int open_folder(int kernels, int folder)
{
    char name[8];
    const char *trouble;
    snprintf(name, sizeof name, "%02x", (unsigned)folder);
    return fa_trusted_dir(kernels, name, false, &trouble);
}

static void count(group *g, int kernels, int folder)
{
    struct stat st;
    DIR *d = fa_place_names(open_folder(kernels, folder));
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));)
        if (strlen(e->d_name) == FA_NAME_SIZE - 1 && fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            add(g, folder, e->d_name, &st);
    closedir(d);
}

static int by_use(const void *a, const void *b)
{
    const kept *x = a, *y = b;
    return (x->used > y->used) - (x->used < y->used);
}

/* Another process may have removed it first: it is gone. */
static void evict(int kernels, const kept *k)
{
    int dir = open_folder(kernels, k->folder);
    if (dir < 0)
        return;
    unlinkat(dir, k->name, 0);
    close(dir);
}

static int groups_of(const fa_store *s)
{
    int groups = 1;
    while (groups < FOLDERS && s->limit / (2 * groups) >= GROUP_LEAST)
        groups *= 2;
    return groups;
}

/* The first folder of the key's group. */
static int first_of(const fa_store *s, fa_key k)
{
    int each = FOLDERS / groups_of(s);
    return (int)(k.hi >> 56) / each * each;
}

static void hold(fa_store *s, fa_key put, size_t most)
{
    if (s->limit < 0 || s->writer < 0)
        return;
    const char *trouble;
    char own[FA_NAME_SIZE];
    group g = { NULL, 0, 0, 0 };
    int groups = groups_of(s), first = first_of(s, put);
    size_t evicted = 0;
    int kernels = fa_trusted_dir(s->root[s->writer].v1, "kernels", false, &trouble);
    if (kernels < 0)
        return;
    fa_entry_name(own, put);
    for (int i = 0; i < FOLDERS / groups; i++)
        count(&g, kernels, first + i);
    if (g.sum > s->limit / groups && g.n) {
        qsort(g.k, g.n, sizeof *g.k, by_use);
        for (size_t i = 0; i < g.n && evicted < most && g.sum > s->limit / groups; i++)
            if (strcmp(g.k[i].name, own)) {
                evict(kernels, &g.k[i]);
                g.sum -= g.k[i].size;
                evicted++;
            }
    }
    free(g.k);
    close(kernels);
}

void fa_quota_keep(fa_store *s, fa_key put)
{
    hold(s, put, EVICT_MOST);
}

void fa_quota_settle(fa_store *s, fa_quota_debt *d)
{
    if (d->n)
        hold(s, d->last, d->n * EVICT_MOST);
    *d = (fa_quota_debt){ .n = 0 };
}

void fa_quota_owe(fa_store *s, fa_quota_debt *d, fa_key put, size_t size)
{
    int64_t most = s->limit / groups_of(s);
    if (d->n && first_of(s, d->last) != first_of(s, put))
        fa_quota_settle(s, d);
    d->last = put;
    d->n++;
    d->bytes += (int64_t)size;
    if (d->bytes >= (most < GROUP_LEAST ? most : GROUP_LEAST))
        fa_quota_settle(s, d);
}
