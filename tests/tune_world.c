/* tune_world: a made-up family whose true times are known. */
#include "tune_world.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int32_t rows[] = { 64, 128, 192, 256 }, cols[] = { 32, 48, 64, 80, 96, 112, 128, 160 }, stages[] = { 1, 2, 3, 4 },
                     two[] = { 0, 1 }, four[] = { 0, 1, 2, 3 }, three[] = { 24, 32, 40 };
static const fa_tunable tunables[WORLD_TUNABLES] = {
    { "br", "", rows, 4, NULL, FA_STEP_ANY, false },       { "bc", "", cols, 8, NULL, 2, false },
    { "stages", "", stages, 4, NULL, FA_STEP_ANY, false }, { "path", "", three, 3, NULL, FA_STEP_ANY, false },
    { "order", "", four, 4, NULL, FA_STEP_ANY, false },    { "exp", "", two, 2, NULL, FA_STEP_ANY, false },
};

static int place(int t, const fa_config *c)
{
    int32_t v = fa_config_get(c, tunables[t].name, -1);
    for (size_t i = 0; i < tunables[t].n; i++)
        if (tunables[t].values[i] == v)
            return (int)i;
    return -1;
}

world world_make(uint64_t seed)
{
    world w = { .coupling = 0.05, .error = 0.03, .seed = seed, .listed_departures = 1 };
    fa_random r = { fa_random_mix(seed) };
    for (int t = 0; t < WORLD_TUNABLES; t++) {
        w.best[t] = fa_random_below(&r, (int32_t)tunables[t].n);
        w.slope[t] = (t < 2 ? 0.08 : 0.02) * (0.5 + fa_random_unit(&r));
    }
    return w;
}

/* The first two share a limit, as tiles do. */
static bool runs(const fa_config *c)
{
    return place(0, c) >= 0 && place(1, c) >= 0 && (place(0, c) + 1) * (place(1, c) + 1) <= 20;
}

double world_time(const world *w, const fa_config *c)
{
    double t = 1e-3;
    if (!runs(c))
        return 0;
    for (int i = 0; i < WORLD_TUNABLES; i++)
        t *= 1 + w->slope[i] * abs(place(i, c) - w->best[i]);
    return t * (1 + w->coupling * fmin(abs(place(0, c) - w->best[0]), abs(place(1, c) - w->best[1])));
}

double world_model(const world *w, const fa_config *c)
{
    char text[256];
    uint64_t h = w->seed;
    fa_config_print(text, sizeof text, c);
    for (const char *s = text; *s; s++)
        h = fa_random_mix(h ^ (uint64_t)(unsigned char)*s);
    fa_random r = { h };
    double exact = world_time(w, c), flat = 1e-3; /* it knows the tile, and little of the rest */
    for (int i = 0; i < 2; i++)
        flat *= 1 + w->slope[i] * abs(place(i, c) - w->best[i]);
    return exact > 0 ? flat * (1 + w->error * (2 * fa_random_unit(&r) - 1)) : 0;
}

bool world_lists(const world *w, const fa_config *c)
{
    int away = 0;
    for (int t = 3; t < WORLD_TUNABLES; t++)
        away += place(t, c) != 0;
    return runs(c) && away <= w->listed_departures;
}

static bool at(size_t i, fa_config *out)
{
    *out = (fa_config){ .family = "made_up" };
    for (int t = 0; t < WORLD_TUNABLES; t++) {
        fa_config_set(out, tunables[t].name, tunables[t].values[i % tunables[t].n]);
        i /= tunables[t].n;
    }
    return i == 0;
}

fa_config world_best(const world *w)
{
    fa_config c, best = { .n = 0 };
    for (size_t i = 0; at(i, &c); i++)
        if (world_time(w, &c) > 0 && (!best.n || world_time(w, &c) < world_time(w, &best)))
            best = c;
    return best;
}

size_t world_count(const world *w, bool listed)
{
    fa_config c;
    size_t n = 0;
    for (size_t i = 0; at(i, &c); i++)
        n += listed ? world_lists(w, &c) : world_time(w, &c) > 0;
    return n;
}

void world_list(const world *w, fa_pool *pool)
{
    fa_config c;
    for (size_t i = 0; at(i, &c); i++)
        if (world_lists(w, &c)) {
            fa_pool_entry x = { .config = c, .threads = 128, .tile = { fa_config_get(&c, "br", 0), fa_config_get(&c, "bc", 0) } };
            x.cost.seconds = world_model(w, &c);
            fa_pool_add(pool, &x);
        }
    fa_pool_rank(pool);
}

static bool accept(fa_neighbours *k, const fa_config *c, fa_pool_entry *out)
{
    world *w = k->user;
    w->asked++;
    out->cost.seconds = world_model(w, c);
    out->threads = 128;
    out->tile[0] = fa_config_get(c, "br", 0);
    out->tile[1] = fa_config_get(c, "bc", 0);
    return out->cost.seconds > 0;
}

static bool tunable(fa_neighbours *k, const char *family, size_t i, fa_tunable *out)
{
    (void)k;
    if (strcmp(family, "made_up") || i >= WORLD_TUNABLES)
        return false;
    *out = tunables[i];
    return true;
}

fa_neighbours world_neighbours(world *w)
{
    return (fa_neighbours){ .accept = accept, .tunable = tunable, .user = w };
}
