/* Strategies on a world whose true times are known: what they try, in which order, when they end, how near they come. */
#include "tune_world.h"
#include <criterion/criterion.h>
#include <math.h>

typedef struct run {
    size_t tried, listed, unlisted;
    double best;  /* true seconds, over those of the world's best */
    size_t until; /* tries until within 1 % of it; 0 = never */
} run;

static run go(world *w, const char *strategy, int32_t limit, uint64_t seed, const fa_config *plant, size_t batch)
{
    fa_pool pool = { .n = 0 };
    fa_neighbours neighbours = world_neighbours(w);
    fa_search_state h;
    fa_config best = world_best(w);
    double least = INFINITY, truth = world_time(w, &best);
    run r = { 0 };
    world_list(w, &pool);
    if (plant) {
        fa_pool_entry x = { .config = *plant, .origin = FA_SEED };
        x.cost.seconds = world_model(w, plant);
        cr_assert_neq(fa_pool_add(&pool, &x), FA_NOWHERE);
    }
    fa_search_state_open(&h, &pool, &neighbours, fa_strategy_find(strategy), limit, seed);
    size_t at[1024], n;
    while ((n = fa_search_state_next(&h, at, batch)) > 0) {
        cr_assert_leq(n, batch);
        for (size_t i = 0; i < n; i++) {
            const fa_pool_entry *p = &pool.p[at[i]];
            cr_assert(p->given && !p->told, "nothing is tried twice");
            double t = world_time(w, &p->config);
            cr_assert(t > 0);
            if (plant && r.tried == 0)
                cr_assert(fa_config_equal(&p->config, plant), "seeds go first");
            least = fmin(least, t);
            r.tried++;
            r.listed += world_lists(w, &p->config);
            r.unlisted += !world_lists(w, &p->config);
            if (!r.until && least <= 1.01 * truth)
                r.until = r.tried;
            fa_search_state_tell(&h, at[i], t);
        }
    }
    cr_assert_eq(h.phase, FA_PHASE_DONE);
    cr_assert_eq(fa_search_state_next(&h, at, batch), 0, "over is over");
    r.best = least / truth;
    fa_search_state_close(&h);
    fa_pool_free(&pool);
    return r;
}

Test(tune_strategy, names)
{
    cr_assert_str_eq(fa_strategy_find(NULL)->name, "halving");
    for (size_t i = 0; fa_strategy_at(i); i++) {
        cr_assert_eq(fa_strategy_find(fa_strategy_at(i)->name), fa_strategy_at(i));
        cr_assert(strstr(fa_strategy_names(), fa_strategy_at(i)->name));
    }
    cr_assert_null(fa_strategy_find("annealing"));
}

Test(tune_strategy, exhaustive_takes_every_listed_config_and_no_other)
{
    world w = world_make(1);
    run r = go(&w, "exhaustive", 0, 0, NULL, 1024);
    cr_assert_eq(r.tried, world_count(&w, true));
    cr_assert_eq(r.unlisted, 0);
    r = go(&w, "exhaustive", 20, 0, NULL, 7);
    cr_assert_eq(r.tried, 20);
}

Test(tune_strategy, the_first_are_the_model_s_best)
{
    world w = world_make(2);
    fa_pool pool = { .n = 0 };
    fa_search_state h;
    size_t at[16];
    world_list(&w, &pool);
    for (size_t i = 1; i < pool.n; i++)
        cr_assert_geq(pool.p[i].rank, pool.p[i - 1].rank);
    cr_assert_eq(pool.listed, world_count(&w, true));
    fa_search_state_open(&h, &pool, NULL, fa_strategy_find("halving"), 10, 0);
    cr_assert_eq(fa_search_state_next(&h, at, 16), 10);
    for (size_t i = 0; i < 10; i++) {
        cr_assert_eq(at[i], i);
        fa_search_state_tell(&h, i, world_time(&w, &pool.p[i].config));
    }
    cr_assert_eq(fa_search_state_next(&h, at, 16), 0, "without neighbours there is nothing to refine");
    fa_search_state_close(&h);
    fa_pool_free(&pool);
}

Test(tune_strategy, neighbours_lead_to_a_best_that_is_not_listed)
{
    int found = 0, alone = 0, unlisted = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        world w = world_make(seed);
        fa_config best = world_best(&w);
        unlisted += !world_lists(&w, &best);
        run r = go(&w, "halving", 48, 0, NULL, 1024);
        found += r.best <= 1.01;
        cr_assert_leq(r.tried, 2 * 48);
        r = go(&w, "exhaustive", 48, 0, NULL, 1024);
        alone += r.best <= 1.01;
    }
    cr_assert_geq(unlisted, 10, "%d", unlisted);
    cr_assert_geq(found, 38, "%d of 40", found);
    cr_assert_lt(alone, 30, "%d of 40 without neighbours: the world is too easy to tell", alone);
}

/* With a budget of neighbours that the corrected model alone would spend elsewhere. */
Test(tune_strategy, no_step_from_the_best_is_left_out)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        world w = world_make(seed);
        fa_pool pool = { .n = 0 };
        fa_neighbours neighbours = world_neighbours(&w);
        fa_search_state h;
        size_t at[256], n;
        world_list(&w, &pool);
        fa_search_state_open(&h, &pool, &neighbours, fa_strategy_find("halving"), 12, 0);
        h.neighbours_most = 24;
        while ((n = fa_search_state_next(&h, at, 256)) > 0)
            for (size_t i = 0; i < n; i++)
                fa_search_state_tell(&h, at[i], world_time(&w, &pool.p[at[i]].config));
        cr_assert_leq(h.neighbours, h.neighbours_most);
        cr_assert_leq(h.steps, h.steps_most);
        n = fa_neighbours_of(&neighbours, &pool, fa_pool_best(&pool), at, 256);
        cr_expect(n == 0 || h.steps == h.steps_most, "world %d: %zu steps from the best were not taken", (int)seed, n);
        fa_search_state_close(&h);
        fa_pool_free(&pool);
    }
}

Test(tune_strategy, a_seed_that_is_the_best_is_found_at_once)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        world w = world_make(seed);
        fa_config best = world_best(&w);
        for (size_t i = 0; fa_strategy_at(i); i++) {
            run r = go(&w, fa_strategy_at(i)->name, 12, seed, &best, 64);
            cr_assert_eq(r.until, 1);
            cr_assert_float_eq(r.best, 1, 1e-12);
        }
    }
}

Test(tune_strategy, random_is_its_seed_and_is_the_worst)
{
    double drawn = 0, corrected = 0, halved = 0;
    int other = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        world w = world_make(seed);
        run a = go(&w, "random", 24, seed, NULL, 1024), b = go(&w, "random", 24, seed, NULL, 1024),
            c = go(&w, "random", 24, seed + 1, NULL, 1024);
        cr_assert_eq(a.tried, 24);
        cr_assert_eq(a.best, b.best);
        other += a.best != c.best;
        drawn += a.best / 20;
        corrected += go(&w, "model", 24, 0, NULL, 1024).best / 20;
        halved += go(&w, "halving", 24, 0, NULL, 1024).best / 20;
    }
    cr_assert_gt(other, 10, "another seed draws others");
    cr_assert_lt(corrected, drawn);
    cr_assert_lt(halved, drawn);
}

Test(tune_strategy, the_corrected_model_stops_when_nothing_is_promised)
{
    int near = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        world w = world_make(seed);
        run r = go(&w, "model", -1, 0, NULL, 1024);
        near += r.best <= 1.02;
        cr_assert_lt(r.tried, world_count(&w, true) / 2, "%zu", r.tried);
    }
    cr_assert_geq(near, 38, "%d of 40", near);
}

Test(tune_strategy, what_failed_is_no_centre)
{
    world w = world_make(3);
    fa_pool pool = { .n = 0 };
    fa_neighbours neighbours = world_neighbours(&w);
    fa_search_state h;
    size_t at[64];
    world_list(&w, &pool);
    fa_search_state_open(&h, &pool, &neighbours, fa_strategy_find("halving"), 8, 0);
    size_t n = fa_search_state_next(&h, at, 64);
    cr_assert_eq(n, 8);
    for (size_t i = 0; i < n; i++)
        fa_search_state_tell(&h, at[i], 0);
    w.asked = 0;
    cr_assert_eq(fa_search_state_next(&h, at, 64), 0);
    cr_assert_eq(w.asked, 0);
    fa_search_state_close(&h);
    fa_pool_free(&pool);
}

Test(tune_strategy, neighbours_differ_little_and_are_repaired_where_one_step_does_not_run)
{
    world w = world_make(4);
    fa_neighbours neighbours = world_neighbours(&w);
    fa_pool pool = { .n = 0 };
    fa_config c;
    size_t at[128];
    cr_assert_eq(fa_config_parse(&c, "made_up:br=256,bc=96,stages=2,path=24,order=0,exp=0"), FA_OK); /* 4 x 5 is the limit of what runs */
    w.slope[0] = w.slope[1] = 0.01;
    fa_pool_entry x = { .config = c };
    x.cost.seconds = world_model(&w, &c);
    size_t centre = fa_pool_add(&pool, &x), n = fa_neighbours_of(&neighbours, &pool, centre, at, 128);
    bool wider = false;
    for (size_t i = 0; i < n; i++) {
        const fa_config *k = &pool.p[at[i]].config;
        int differs = 0;
        for (int t = 0; t < c.n; t++)
            differs += c.tunable[t].value != k->tunable[t].value;
        cr_assert(differs == 1 || differs == 2);
        cr_assert_gt(world_time(&w, k), 0);
        cr_assert_eq(pool.p[at[i]].origin, FA_NEIGHBOUR);
        cr_assert(i == 0 || pool.p[at[i]].cost.seconds >= pool.p[at[i - 1]].cost.seconds, "the model's best first");
        wider |= fa_config_get(k, "bc", 0) == 112 && fa_config_get(k, "br", 0) == 192;
    }
    cr_assert(wider, "112 columns fit with fewer rows");
    cr_assert_gt(n, 8);
    fa_pool_free(&pool);
}

/* What a config promises comes of its own tunables alone: by one more, that it does not have, the correction would be less certain, and the
 * search would go on. */
Test(tune_strategy, what_promises_too_little_is_left)
{
    for (int row = 0; row < 2; row++) {
        fa_pool pool = { .n = 0 };
        size_t out[4];
        for (int i = 0; i < 2; i++) {
            fa_pool_entry x = { .config = { .family = "made_up" } };
            fa_config_set(&x.config, "br", 64 + i); /* the second one's value was not measured */
            x.cost.seconds = i == 0 ? 1e-3 : 1e-3 * exp(row ? 0.0160 : 0.0140);
            cr_assert_eq(fa_pool_add(&pool, &x), (size_t)i);
        }
        pool.p[0].given = pool.p[0].told = true;
        pool.p[0].seconds = pool.p[0].cost.seconds; /* as modelled: the correction's error is the least, 0.01, its variance 1 + 0.3 */
        cr_assert_eq(fa_guided_pick(&pool, 2, out, 4), row ? 0 : 1, "%s", row ? "0.0004 is promised" : "0.0006 is promised");
        fa_pool_free(&pool);
    }
}
