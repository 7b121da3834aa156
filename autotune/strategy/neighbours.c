/* neighbours: the configs next to one. */
#include "neighbours.h"
#include "gen/space.h"
#include <stdlib.h>

#define NEIGHBOURS_MOST 256

/* Where a value stands among those of the tunable; -1 = nowhere. */
static int place(const fa_tunable *t, int32_t value)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->values[i] == value)
            return (int)i;
    return -1;
}

typedef struct found {
    fa_neighbours *neighbours;
    fa_pool *pool;
    double most; /* seconds of the model */
    size_t at[NEIGHBOURS_MOST], n;
} found;

/* The config's index if it may be tried, else FA_NOWHERE. */
static size_t admit(found *f, const fa_config *c)
{
    fa_pool_entry x = { .config = *c, .origin = FA_NEIGHBOUR };
    size_t at = fa_pool_find(f->pool, c);
    if (at == FA_NOWHERE && f->neighbours->accept(f->neighbours, c, &x)) {
        x.config = *c;
        x.origin = FA_NEIGHBOUR;
        x.rank = x.cost.seconds;
        at = fa_pool_add(f->pool, &x);
    }
    return at;
}

static void take(found *f, size_t at)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->at[i] == at)
            return;
    if (f->n < NEIGHBOURS_MOST && f->pool->p[at].cost.seconds <= f->most)
        f->at[f->n++] = at;
}

/* The best by the model of what differs from c in one step of one more tunable than `not`. */
static size_t repaired(found *f, const fa_config *c, int not )
{
    size_t best = FA_NOWHERE;
    fa_tunable t;
    for (int j = 0; j < c->n; j++) {
        int at = j != not &&f->neighbours->tunable(f->neighbours, c->family, (size_t)j, &t) ? place(&t, c->tunable[j].value) : -1;
        for (int step = -1; at >= 0 && step <= 1; step += 2) {
            if (at + step < 0 || at + step >= (int)t.n)
                continue;
            fa_config other = *c;
            other.tunable[j].value = t.values[at + step];
            size_t i = admit(f, &other);
            if (i != FA_NOWHERE && (best == FA_NOWHERE || f->pool->p[i].cost.seconds < f->pool->p[best].cost.seconds))
                best = i;
        }
    }
    return best;
}

/* The config after the move, taken up or down, if all values are there and it may be tried. */
static size_t moved(found *f, const fa_config *c, const fa_move *m, int sign)
{
    fa_config other = *c;
    fa_tunable t;
    for (int i = 0; i < m->n; i++) {
        int number = m->part[i].tunable;
        int own = f->neighbours->tunable(f->neighbours, c->family, (size_t)number, &t) ? place(&t, c->tunable[number].value) : -1;
        int at = own + sign * m->part[i].by;
        if (own < 0 || at < 0 || at >= (int)t.n)
            return FA_NOWHERE;
        other.tunable[number].value = t.values[at];
    }
    return admit(f, &other);
}

size_t fa_neighbours_of(fa_neighbours *k, fa_pool *pool, size_t centre, size_t *out, size_t most)
{
    const fa_config c = pool->p[centre].config;
    found f = { .neighbours = k, .pool = pool, .most = FA_NEIGHBOURS_CUT * pool->p[centre].cost.seconds };
    fa_tunable t;
    for (int i = 0; i < c.n; i++) {
        int own = k->tunable(k, c.family, (size_t)i, &t) ? place(&t, c.tunable[i].value) : -1;
        for (int v = 0; own >= 0 && v < (int)t.n; v++) {
            if (v == own || (t.step != FA_STEP_ANY && abs(v - own) > t.step))
                continue;
            fa_config other = c;
            other.tunable[i].value = t.values[v];
            size_t at = admit(&f, &other);
            if (at == FA_NOWHERE)
                at = repaired(&f, &other, i);
            if (at != FA_NOWHERE && at != centre)
                take(&f, at);
        }
    }
    fa_move m;
    for (size_t i = 0; k->move && k->move(k, c.family, i, &m); i++)
        for (int sign = -1; sign <= 1; sign += 2) {
            size_t at = moved(&f, &c, &m, sign);
            if (at != FA_NOWHERE)
                take(&f, at);
        }
    size_t n = 0;
    while (n < most) { /* the cheapest that is left */
        size_t best = FA_NOWHERE;
        for (size_t i = 0; i < f.n; i++)
            if (f.at[i] != FA_NOWHERE && !pool->p[f.at[i]].given &&
                (best == FA_NOWHERE || pool->p[f.at[i]].cost.seconds < pool->p[f.at[best]].cost.seconds))
                best = i;
        if (best == FA_NOWHERE)
            break;
        out[n++] = f.at[best];
        f.at[best] = FA_NOWHERE;
    }
    return n;
}

static bool accept(fa_neighbours *k, const fa_config *c, fa_pool_entry *out)
{
    const fa_neighbours_site *s = k->user;
    fa_point pt;
    if (fa_model_named(s->g, s->p, c, s->a, s->budget, 0, &pt, &out->cost) != FA_OK)
        return false;
    if (out->cost.packed && s->p->hq == s->p->hkv) /* without groups, packing them is the same kernel by another name */
        return false;
    fa_gen_tile(s->g, c, out->tile);
    out->smem = pt.smem;
    out->regs = pt.regs;
    out->threads = pt.threads;
    return true;
}

static bool tunable(fa_neighbours *k, const char *family, size_t i, fa_tunable *out)
{
    const fa_neighbours_site *s = k->user;
    return fa_gen_tunable(s->g, family, i, out);
}

static bool move(fa_neighbours *k, const char *family, size_t i, fa_move *out)
{
    const fa_neighbours_site *s = k->user;
    return fa_gen_move(s->g, family, i, out);
}

fa_neighbours fa_neighbours_of_families(fa_neighbours_site *site)
{
    return (fa_neighbours){ .accept = accept, .tunable = tunable, .move = move, .user = site };
}
