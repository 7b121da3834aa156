/* pool: the configs that a search may try. */
#include "pool.h"
#include "gen/error.h"
#include <stdlib.h>
#include <string.h>

#define SAME 1e-3 /* modelled times this close are the same */
#define ECHO 0.02

const char *fa_origin_name(fa_origin o)
{
    static const char *const names[] = { "listed", "seed", "neighbour" };
    return (unsigned)o < 3 ? names[o] : "?";
}

/* Where the search for a config begins: of its values, which tell configs of one family apart. */
static size_t first_slot(const fa_pool *pool, const fa_config *c)
{
    uint64_t h = 0;
    for (int i = 0; i < c->n; i++)
        if (fa_config_tells(c, i))
            h = (h ^ (uint32_t)c->tunable[i].value) * 0x9e3779b97f4a7c15u; /* Knuth, volume 3, 6.4: multiplicative hashing */
    return (size_t)(h >> 32) & (pool->slots - 1);
}

static void enter(fa_pool *pool, size_t at)
{
    size_t k = first_slot(pool, &pool->p[at].config);
    while (pool->slot[k] != FA_NOWHERE)
        k = (k + 1) & (pool->slots - 1);
    pool->slot[k] = at;
}

/* False when memory ran out. */
static bool make_table(fa_pool *pool)
{
    size_t slots = 64;
    while (slots < 2 * pool->cap)
        slots *= 2;
    free(pool->slot);
    pool->slots = 0;
    pool->slot = malloc(slots * sizeof *pool->slot);
    if (!pool->slot)
        return false;
    pool->slots = slots;
    for (size_t k = 0; k < slots; k++)
        pool->slot[k] = FA_NOWHERE;
    for (size_t i = 0; i < pool->n; i++)
        enter(pool, i);
    return true;
}

static void drop_table(fa_pool *pool)
{
    free(pool->slot);
    pool->slot = NULL;
    pool->slots = 0;
}

size_t fa_pool_find(fa_pool *pool, const fa_config *c)
{
    if (!pool->slots && !make_table(pool)) { /* slowly, then */
        for (size_t i = 0; i < pool->n; i++)
            if (fa_config_equal(&pool->p[i].config, c))
                return i;
        return FA_NOWHERE;
    }
    for (size_t k = first_slot(pool, c); pool->slot[k] != FA_NOWHERE; k = (k + 1) & (pool->slots - 1))
        if (fa_config_equal(&pool->p[pool->slot[k]].config, c))
            return pool->slot[k];
    return FA_NOWHERE;
}

static size_t append(fa_pool *pool, const fa_pool_entry *x)
{
    if (pool->n == pool->cap) {
        size_t cap = pool->cap ? 2 * pool->cap : 256;
        fa_pool_entry *grown = realloc(pool->p, cap * sizeof *grown);
        if (!grown)
            return FA_NOWHERE;
        pool->p = grown;
        pool->cap = cap;
        drop_table(pool);
    }
    pool->p[pool->n] = *x;
    if (pool->slots)
        enter(pool, pool->n);
    return pool->n++;
}

size_t fa_pool_add(fa_pool *pool, const fa_pool_entry *x)
{
    size_t at = fa_pool_find(pool, &x->config);
    if (at == FA_NOWHERE)
        return append(pool, x);
    if (x->origin == FA_SEED)
        pool->p[at].origin = FA_SEED;
    return at;
}

static int cheaper(const void *a, const void *b)
{
    const fa_pool_entry *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* The model gives many variations of one tile the same time. Each further one counts as ECHO slower than the one before, so that a
 * limit leaves more than one tile. */
void fa_pool_rank(fa_pool *pool)
{
    fa_pool_entry *p = pool->p;
    pool->listed = pool->n;
    drop_table(pool);
    for (size_t i = 0; i < pool->n; i++)
        p[i].rank = p[i].cost.seconds;
    if (pool->n)
        qsort(p, pool->n, sizeof *p, cheaper);
    for (size_t i = 0; i < pool->n; i++) {
        int echoes = 0;
        for (size_t j = i; j-- > 0 && p[j].cost.seconds >= p[i].cost.seconds * (1 - SAME);)
            echoes += !strcmp(p[j].config.family, p[i].config.family) && p[j].threads == p[i].threads && p[j].tile[0] == p[i].tile[0] &&
                      p[j].tile[1] == p[i].tile[1];
        p[i].rank *= 1 + ECHO * echoes;
    }
    if (pool->n)
        qsort(p, pool->n, sizeof *p, cheaper);
}

typedef struct listing {
    fa_pool *pool;
    const fa_gen *g;
    const fa_space *space;
    const fa_problem *p;
    bool full;
    const char *unpacked; /* the family of the last config that does not pack groups; NULL = none yet */
} listing;

static void list_one(void *user, size_t point, const fa_cost *cost)
{
    listing *l = user;
    const fa_point *pt = &l->space->points[point];
    /* without groups, packing them is the same kernel by another name, of a family that can do without; those come first */
    if (!cost->packed)
        l->unpacked = pt->config.family;
    else if (l->p->hq == l->p->hkv && l->unpacked && !strcmp(l->unpacked, pt->config.family))
        return;
    fa_pool_entry x = { .config = pt->config, .cost = *cost, .smem = pt->smem, .regs = pt->regs, .threads = pt->threads };
    fa_gen_tile(l->g, &x.config, x.tile);
    l->full |= append(l->pool, &x) == FA_NOWHERE; /* the space names each config once */
}

fa_status fa_pool_list(fa_pool *pool, fa_gen *g, const fa_problem *p, const fa_arch *a, int32_t budget, const char *family, fa_space *space)
{
    listing l = { pool, g, space, p, false, NULL };
    fa_status st = fa_space_list(g, p, a, budget, family, space);
    if (st == FA_OK)
        st = fa_space_check(space, p, a, budget);
    if (st == FA_OK)
        st = fa_model_space(g, p, space, a, list_one, &l);
    if (st == FA_OK && l.full)
        st = fa_fail(FA_NOMEM, "no memory for %zu candidates", space->fitting);
    if (st == FA_OK && !pool->n)
        st = fa_wrap(FA_UNSUPPORTED, "no config has a model");
    if (st == FA_OK)
        fa_pool_rank(pool);
    return st;
}

size_t fa_pool_cheapest(const fa_pool *pool)
{
    size_t best = 0;
    for (size_t i = 1; i < pool->n; i++)
        if (pool->p[i].cost.seconds < pool->p[best].cost.seconds)
            best = i;
    return best;
}

size_t fa_pool_best(const fa_pool *pool)
{
    size_t best = FA_NOWHERE;
    for (size_t i = 0; i < pool->n; i++)
        if (pool->p[i].told && pool->p[i].seconds > 0 && (best == FA_NOWHERE || pool->p[i].seconds < pool->p[best].seconds))
            best = i;
    return best;
}

void fa_pool_free(fa_pool *pool)
{
    free(pool->p);
    free(pool->slot);
    *pool = (fa_pool){ .n = 0 };
}
