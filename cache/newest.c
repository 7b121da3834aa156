/* newest: a table of configs and tags. */
#include "newest.h"
#include <stdlib.h>

struct fa_newest_slot {
    const fa_record *r; /* NULL: free */
    uint64_t hash, tag;
};

static uint64_t hash_of(const fa_config *c, uint64_t tag)
{
    uint64_t h = fa_config_hash(c) ^ tag * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

/* Where it is, or would be. */
static size_t find(const fa_newest *t, const fa_config *c, uint64_t tag, uint64_t hash)
{
    size_t i = hash & (t->cap - 1);
    while (t->slot[i].r && (t->slot[i].hash != hash || t->slot[i].tag != tag || !fa_config_equal(&t->slot[i].r->config, c)))
        i = (i + 1) & (t->cap - 1);
    return i;
}

static bool grow(fa_newest *t)
{
    fa_newest grown = { .n = t->n, .cap = t->cap ? 2 * t->cap : 256, .oom = t->oom };
    grown.slot = calloc(grown.cap, sizeof *grown.slot);
    if (!grown.slot) {
        t->oom = true;
        return false;
    }
    for (size_t k = 0; k < t->cap; k++)
        if (t->slot[k].r) {
            size_t i = t->slot[k].hash & (grown.cap - 1);
            while (grown.slot[i].r)
                i = (i + 1) & (grown.cap - 1);
            grown.slot[i] = t->slot[k];
        }
    free(t->slot);
    *t = grown;
    return true;
}

bool fa_newest_add(fa_newest *t, const fa_record *r, uint64_t tag)
{
    uint64_t hash = hash_of(&r->config, tag);
    if (2 * t->n >= t->cap && !grow(t))
        return true;
    size_t i = find(t, &r->config, tag, hash);
    if (t->slot[i].r)
        return false;
    t->slot[i] = (struct fa_newest_slot){ r, hash, tag };
    t->n++;
    return true;
}

const fa_record *fa_newest_find(const fa_newest *t, const fa_config *c, uint64_t tag)
{
    return t->cap ? t->slot[find(t, c, tag, hash_of(c, tag))].r : NULL;
}

void fa_newest_free(fa_newest *t)
{
    free(t->slot);
    *t = (fa_newest){ .n = 0 };
}
