/* replay: a strategy on a recording. */
#include "bench/dev/replay.h"
#include "gen/error.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_MOST 64

const size_t fa_replay_marks[FA_REPLAY_MARKS] = { 8, 16, 32, 48, 96 };

static fa_take *find(const fa_recording *r, const fa_config *c)
{
    for (size_t i = 0; i < r->n; i++)
        if (fa_config_equal(&r->take[i].config, c))
            return &r->take[i];
    return NULL;
}

bool fa_recording_add(fa_recording *r, const fa_take *t)
{
    fa_take *same = find(r, &t->config);
    if (same) {
        *same = *t;
        return true;
    }
    if (r->n == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 64;
        fa_take *grown = realloc(r->take, cap * sizeof *grown);
        if (!grown)
            return false;
        r->take = grown;
        r->cap = cap;
    }
    r->take[r->n++] = *t;
    return true;
}

double fa_recording_best(const fa_recording *r)
{
    double best = 0;
    for (size_t i = 0; i < r->n; i++)
        if (r->take[i].seconds > 0 && (best == 0 || r->take[i].seconds < best))
            best = r->take[i].seconds;
    return best;
}

void fa_recording_free(fa_recording *r)
{
    free(r->take);
    *r = (fa_recording){ .n = 0 };
}

/* The neighbours of a recording: only what was measured; the values of a tunable are those that occur, in their order. */
typedef struct stage {
    const fa_recording *r;
    int32_t values[FA_CONFIG_MAX][VALUES_MOST];
} stage;

static bool accept(fa_neighbours *k, const fa_config *c, fa_pool_entry *out)
{
    const fa_take *t = find(((stage *)k->user)->r, c);
    if (!t)
        return false;
    out->cost.seconds = t->modelled;
    out->threads = t->threads;
    memcpy(out->tile, t->tile, sizeof out->tile);
    return true;
}

static bool tunable(fa_neighbours *k, const char *family, size_t i, fa_tunable *out)
{
    stage *s = k->user;
    int32_t *v = i < FA_CONFIG_MAX ? s->values[i] : NULL;
    size_t n = 0;
    *out = (fa_tunable){ .name = "", .doc = "" };
    for (size_t t = 0; t < s->r->n && v; t++) {
        const fa_config *c = &s->r->take[t].config;
        if (strcmp(c->family, family) || i >= (size_t)c->n)
            continue;
        size_t at = 0;
        while (at < n && v[at] < c->tunable[i].value)
            at++;
        if ((at < n && v[at] == c->tunable[i].value) || n == VALUES_MOST)
            continue;
        memmove(v + at + 1, v + at, (n - at) * sizeof *v);
        v[at] = c->tunable[i].value;
        n++;
        out->name = c->tunable[i].name;
    }
    out->values = v;
    out->n = n;
    out->step = fa_tunable_step(n);
    return n > 0;
}

fa_status fa_replay_run(const fa_recording *r, const fa_strategy *s, int32_t limit, uint64_t seed, fa_replay *out)
{
    fa_pool pool = { .n = 0 };
    fa_search_state h;
    double best = fa_recording_best(r), least = INFINITY;
    size_t *at = malloc((r->n + 1) * sizeof *at), n, mark = 0;
    stage *world = calloc(1, sizeof *world);
    fa_status st = at && world ? FA_OK : fa_fail(FA_NOMEM, "no memory for a recording of %zu configs", r->n);
    *out = (fa_replay){ .tried = 0 };
    if (st == FA_OK && best <= 0)
        st = fa_fail(FA_INVALID, "the recording has no config that ran; accepted: at least one");
    for (size_t i = 0; i < r->n && st == FA_OK; i++) {
        fa_pool_entry x = { .config = r->take[i].config,
                            .threads = r->take[i].threads,
                            .tile = { r->take[i].tile[0], r->take[i].tile[1] } };
        x.cost.seconds = r->take[i].modelled;
        if (fa_pool_add(&pool, &x) == FA_NOWHERE)
            st = fa_fail(FA_NOMEM, "no memory for a recording of %zu configs", r->n);
    }
    if (st == FA_OK) {
        world->r = r;
        fa_neighbours near = { .accept = accept, .tunable = tunable, .user = world };
        fa_pool_rank(&pool);
        fa_search_state_open(&h, &pool, &near, s, limit, seed);
        while ((n = fa_search_state_next(&h, at, r->n)) > 0)
            for (size_t i = 0; i < n; i++) {
                double t = find(r, &pool.p[at[i]].config)->seconds;
                fa_search_state_tell(&h, at[i], t);
                least = t > 0 ? fmin(least, t) : least;
                out->tried++;
                if (!out->until && least <= (1 + FA_REPLAY_NEAR) * best)
                    out->until = out->tried;
                if (mark < FA_REPLAY_MARKS && out->tried == fa_replay_marks[mark])
                    out->regret[mark++] = least / best - 1;
            }
        fa_search_state_close(&h);
        out->end = least / best - 1;
        while (mark < FA_REPLAY_MARKS)
            out->regret[mark++] = out->end; /* it was done before */
    }
    fa_pool_free(&pool);
    free(world);
    free(at);
    return st;
}
