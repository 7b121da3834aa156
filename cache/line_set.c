/* line_set: a table of hashes. */
#include "line_set.h"
#include <stdlib.h>
#include <xxhash.h>

static uint64_t hash_of(const char *line, size_t n)
{
    uint64_t h = XXH3_64bits(line, n);
    return h + !h;
}

static size_t find(const fa_line_set *l, uint64_t hash)
{
    size_t i = hash & (l->cap - 1);
    while (l->slot[i] && l->slot[i] != hash)
        i = (i + 1) & (l->cap - 1);
    return i;
}

static bool grow(fa_line_set *l)
{
    fa_line_set grown = { .n = l->n, .cap = l->cap ? 2 * l->cap : 1024, .oom = l->oom };
    grown.slot = calloc(grown.cap, sizeof *grown.slot);
    if (!grown.slot) {
        l->oom = true;
        return false;
    }
    for (size_t i = 0; i < l->cap; i++)
        if (l->slot[i])
            grown.slot[find(&grown, l->slot[i])] = l->slot[i];
    free(l->slot);
    *l = grown;
    return true;
}

bool fa_line_set_add(fa_line_set *l, const char *line, size_t n)
{
    uint64_t hash = hash_of(line, n);
    if (2 * l->n >= l->cap && !grow(l))
        return true;
    size_t i = find(l, hash);
    bool fresh = !l->slot[i];
    l->slot[i] = hash;
    l->n += fresh;
    return fresh;
}

bool fa_line_set_has(const fa_line_set *l, const char *line, size_t n)
{
    return l->cap && l->slot[find(l, hash_of(line, n))];
}

void fa_line_set_free(fa_line_set *l)
{
    free(l->slot);
    *l = (fa_line_set){ .n = 0 };
}
