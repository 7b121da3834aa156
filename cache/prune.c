/* prune: a list of the files, oldest use first, and a walk that removes those that were picked. */
#include "prune.h"
#include "root.h"
#include <stdlib.h>
#include <string.h>

typedef struct candidate {
    fa_area area;
    fa_key key;
    bool named, picked, fits; /* fits: of an arch that may go */
    int64_t size, used;
    char *name; /* of a file whose name is no key */
} candidate;

typedef struct list {
    candidate *c;
    size_t n, cap;
    const fa_prune *p;
    bool oom;
    void (*tell)(void *user, const char *path, int64_t size);
    void *user;
    fa_pruned *out;
} list;

static bool fits(const fa_prune *p, const fa_item *i)
{
    fa_entry e;
    if (!p->archs)
        return true;
    bool yes = false;
    if (!fa_item_read(i, &e, false))
        for (const char *const *a = p->archs; *a && !yes; a++)
            yes = strcmp(*a, e.arch) == 0;
    fa_entry_free(&e);
    return yes;
}

static int collect(void *user, const fa_item *i)
{
    list *l = user;
    if (!i->writable)
        return 0;
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 256;
        candidate *grown = realloc(l->c, cap * sizeof *grown);
        if (!grown) {
            l->oom = true;
            return 1;
        }
        l->c = grown;
        l->cap = cap;
    }
    candidate *c = &l->c[l->n];
    *c = (candidate){ .area = i->area, .named = i->named, .size = i->size, .used = i->used, .fits = fits(l->p, i) };
    if (i->named)
        c->key = i->key;
    else if (!(c->name = strdup(i->name))) {
        l->oom = true;
        return 1;
    }
    l->n++;
    return 0;
}

static int by_use(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    return (x->used > y->used) - (x->used < y->used);
}

/* Oldest use first in l. */
static void pick(list *l)
{
    const fa_prune *p = l->p;
    int64_t left = 0;
    for (size_t i = 0; i < l->n; i++) {
        candidate *c = &l->c[i];
        c->picked = c->fits && (p->before > 0 ? c->used < p->before : p->to < 0);
        left += c->picked ? 0 : c->size;
    }
    for (size_t i = 0; i < l->n && p->to >= 0 && left > p->to; i++)
        if (l->c[i].fits && !l->c[i].picked) {
            l->c[i].picked = true;
            left -= l->c[i].size;
        }
}

static int key_order(fa_key a, fa_key b)
{
    return a.hi != b.hi ? (a.hi > b.hi) - (a.hi < b.hi) : (a.lo > b.lo) - (a.lo < b.lo);
}

static int by_key(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->area != y->area)
        return (int)x->area - (int)y->area;
    if (x->named != y->named)
        return (int)x->named - (int)y->named;
    return x->named ? key_order(x->key, y->key) : strcmp(x->name, y->name);
}

/* The second walk: a file that was used since the first is not old any more. */
static int remove_one(void *user, const fa_item *i)
{
    list *l = user;
    if (!i->writable)
        return 0;
    candidate probe = { .area = i->area, .named = i->named, .key = i->key, .name = (char *)i->name };
    const candidate *c = l->n ? bsearch(&probe, l->c, l->n, sizeof *l->c, by_key) : NULL;
    bool goes = c && c->picked && i->used <= c->used;
    if (goes && l->tell)
        l->tell(l->user, i->path, i->size);
    if (goes && !l->p->dry_run)
        goes = fa_item_remove(i);
    *(goes ? &l->out->n : &l->out->left) += 1;
    *(goes ? &l->out->bytes : &l->out->left_bytes) += i->size;
    return 0;
}

bool fa_prune_run(fa_store *s, const fa_prune *p, void (*tell)(void *user, const char *path, int64_t size), void *user, fa_pruned *out)
{
    list l = { .p = p, .tell = tell, .user = user, .out = out };
    *out = (fa_pruned){ 0, 0, 0, 0 };
    fa_scan(s, collect, &l);
    if (!l.oom && l.n) {
        qsort(l.c, l.n, sizeof *l.c, by_use);
        pick(&l);
        qsort(l.c, l.n, sizeof *l.c, by_key);
        fa_scan(s, remove_one, &l);
    }
    for (size_t i = 0; i < l.n; i++)
        free(l.c[i].name);
    free(l.c);
    return !l.oom;
}
