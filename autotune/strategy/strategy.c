/* strategy: which configs of a pool are tried next. */
#include "strategy.h"
#include <stdlib.h>
#include <string.h>

#define CENTRES 4      /* the best few whose neighbours are looked at */
#define NEAR 1.03      /* of them, those within this of the best */
#define LEVEL 1.002    /* what is as fast as the best, as far as a round tells */
#define BATCH 24       /* configs between two looks: a round each time, and a compiler for each core */
#define NEIGHBOURS 128 /* neighbours of one config: more than there are */
#define STEPS 16       /* neighbours of the best that come on top of what is given by the corrected model */

/* The listed by rank. */
static size_t by_rank(fa_search_state *h, size_t *out, size_t most)
{
    size_t n = 0;
    for (; n < most && h->at < h->pool->listed; h->at++)
        if (!h->pool->p[h->at].given)
            out[n++] = h->at;
    return n;
}

/* Any of the listed. */
static size_t at_random(fa_search_state *h, size_t *out, size_t most)
{
    size_t n = 0, left = 0;
    for (size_t i = 0; i < h->pool->listed; i++)
        left += !h->pool->p[i].given;
    for (size_t i = 0; i < h->pool->listed && n < most; i++) /* selection sampling: Knuth, volume 2, 3.4.2, algorithm S */
        if (!h->pool->p[i].given) {
            if (fa_random_unit(&h->random) * (double)left < (double)(most - n))
                out[n++] = i;
            left--;
        }
    return n;
}

static const fa_strategy table[] = {
    { "halving", "the best by the model, in ever longer rounds among ever fewer, then the neighbours of the fastest", 3, true, false, false,
      by_rank },
    { "exhaustive", "every config that fits (or as many as the limit says, best by the model first), all with the same samples", 5, false,
      false, true, by_rank },
    { "model", "by a model that each measurement corrects, as long as it promises a gain, then the neighbours of the fastest", 3, true,
      false, false, fa_guided_next },
    { "random", "configs drawn at random: what the others must beat", 3, false, true, false, at_random },
};

const fa_strategy *fa_strategy_at(size_t i)
{
    return i < sizeof table / sizeof *table ? &table[i] : NULL;
}

const fa_strategy *fa_strategy_find(const char *name)
{
    const fa_strategy *s;
    for (size_t i = 0; (s = fa_strategy_at(i)); i++)
        if (!name || !strcmp(s->name, name))
            return s;
    return NULL;
}

const char *fa_strategy_names(void)
{
    return "halving, exhaustive, model, random";
}

void fa_search_state_open(fa_search_state *h, fa_pool *pool, fa_neighbours *neighbours, const fa_strategy *s, int32_t limit, uint64_t seed)
{
    *h = (fa_search_state){ .pool = pool,
                            .neighbourhood = neighbours,
                            .strategy = s,
                            .baseline = FA_NOWHERE,
                            .limit = (size_t)limit,
                            .random = { fa_random_mix(seed) } };
    if (limit < 0 || (limit == 0 && s->whole))
        h->limit = pool->listed;
    else if (limit == 0)
        h->limit = FA_STRATEGY_LIMIT;
    h->neighbours_most = h->limit > FA_STRATEGY_LIMIT ? h->limit : FA_STRATEGY_LIMIT;
    h->steps_most = STEPS;
}

void fa_search_state_close(fa_search_state *h)
{
    free(h->expanded);
    *h = (fa_search_state){ .pool = NULL };
}

static size_t seeds(fa_search_state *h, size_t *out, size_t most)
{
    size_t n = 0;
    if (h->baseline != FA_NOWHERE && n < most && !h->pool->p[h->baseline].given) {
        h->pool->p[h->baseline].given = true;
        out[n++] = h->baseline;
    }
    for (size_t i = 0; i < h->pool->n && n < most; i++)
        if (h->pool->p[i].origin == FA_SEED && !h->pool->p[i].given) {
            h->pool->p[i].given = true;
            out[n++] = i;
        }
    return n;
}

static bool was_expanded(const fa_search_state *h, size_t at)
{
    for (size_t i = 0; i < h->n_expanded; i++)
        if (h->expanded[i] == at)
            return true;
    return false;
}

static bool expand(fa_search_state *h, size_t at)
{
    if (h->n_expanded == h->cap_expanded) {
        size_t cap = h->cap_expanded ? 2 * h->cap_expanded : 16;
        size_t *grown = realloc(h->expanded, cap * sizeof *grown);
        if (!grown)
            return false;
        h->expanded = grown;
        h->cap_expanded = cap;
    }
    h->expanded[h->n_expanded++] = at;
    return true;
}

/* The fastest that ran and whose neighbours were not asked for. */
static size_t next_centre(const fa_search_state *h, double most)
{
    const fa_pool_entry *p = h->pool->p;
    size_t best = FA_NOWHERE;
    for (size_t i = 0; i < h->pool->n; i++)
        if (p[i].told && p[i].seconds > 0 && p[i].seconds <= most && (best == FA_NOWHERE || p[i].seconds < p[best].seconds) &&
            !was_expanded(h, i))
            best = i;
    return best;
}

/* Gives what is in out, and counts it. */
static size_t give(fa_search_state *h, const size_t *out, size_t n, size_t *count)
{
    for (size_t i = 0; i < n; i++)
        h->pool->p[out[i]].given = true;
    *count += n;
    return n;
}

/* The neighbours of the best few come into the pool; of all that is there, what the corrected model thinks most of is tried. From the
 * second batch on the neighbours of the best go first, whatever the model thinks: two hunts that met different configs end beside each
 * other. When the model promises nothing more, the neighbours of what is as fast as the best are tried too, until none of them is faster.
 */
static size_t refine(fa_search_state *h, size_t *out, size_t most)
{
    size_t best = fa_pool_best(h->pool), n = 0, some[NEIGHBOURS];
    if (best == FA_NOWHERE || !h->neighbourhood || !h->strategy->refines)
        return 0;
    size_t left = h->neighbours_most > h->neighbours ? h->neighbours_most - h->neighbours : 0, room = most < left ? most : left;
    for (int i = 0; i < CENTRES; i++) {
        size_t centre = next_centre(h, h->pool->p[best].seconds * NEAR);
        if (centre == FA_NOWHERE || !expand(h, centre))
            break;
        fa_neighbours_of(h->neighbourhood, h->pool, centre, some, NEIGHBOURS);
    }
    if (h->neighbours > 0) {
        size_t steps = h->steps_most - h->steps;
        steps = steps < most ? steps : most;
        n = give(h, out, fa_neighbours_of(h->neighbourhood, h->pool, best, out, steps < BATCH ? steps : BATCH), &h->steps);
        room = most - n < left ? most - n : left;
    }
    n += give(h, out + n, fa_guided_pick(h->pool, h->pool->n, out + n, room < BATCH - n ? room : BATCH - n), &h->neighbours);
    if (n)
        return n;
    double level = h->pool->p[best].seconds * LEVEL;
    for (size_t i = 0; i < h->pool->n && n < room && n < BATCH; i++) {
        const fa_pool_entry *p = &h->pool->p[i];
        if (p->told && p->seconds > 0 && p->seconds <= level)
            n += give(h, out + n, fa_neighbours_of(h->neighbourhood, h->pool, i, out + n, (room < BATCH ? room : BATCH) - n),
                      &h->neighbours);
    }
    return n;
}

size_t fa_search_state_next(fa_search_state *h, size_t *out, size_t most)
{
    size_t n = 0;
    if (h->phase == FA_PHASE_OWN) {
        n = seeds(h, out, most);
        size_t left = h->limit > h->given ? h->limit - h->given : 0, room = most - n < left ? most - n : left;
        size_t own = room ? h->strategy->next(h, out + n, room) : 0;
        for (size_t i = 0; i < own; i++)
            h->pool->p[out[n + i]].given = true;
        h->given += own;
        n += own;
        if (n)
            return n;
        h->phase = FA_PHASE_REFINE;
    }
    if (h->phase == FA_PHASE_REFINE && (n = refine(h, out, most)) == 0)
        h->phase = FA_PHASE_DONE;
    return n;
}

void fa_search_state_tell(fa_search_state *h, size_t at, double seconds)
{
    h->pool->p[at].told = true;
    h->pool->p[at].seconds = seconds;
}

double fa_search_state_heard(const fa_search_state *h, size_t at)
{
    return h->pool->p[at].told ? h->pool->p[at].seconds : 0;
}
