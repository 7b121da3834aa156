/* Searching a family whose tunables have names of its own: steps and moves are what it declares, and the search ends at its best. */
#include "autotune/strategy/strategy.h"
#include "gen/problem.h"
#include "rowwise.h"
#include "test_gen_toy.h"
#include <math.h>

typedef struct world {
    char dir[64];
    fa_gen *g;
    fa_problem p;
    fa_neighbours_site site;
    fa_neighbours neighbours;
} world;

static void world_open(world *w, const char *lua)
{
    toy_dir(w->dir, rowwise_cu);
    toy_write(w->dir, "toy.lua", lua);
    cr_assert_eq(fa_gen_open(&w->g, w->dir), FA_OK, "%s", fa_last_error());
    w->p = shaped_problem("fp32,d=32,b=4,hq=32,hkv=32,sq=4096,sk=4096");
    w->site = (fa_neighbours_site){ w->g, &w->p, fa_arch_find("sm_80"), 0 };
    w->neighbours = fa_neighbours_of_families(&w->site);
}

static void world_close(world *w)
{
    fa_gen_close(w->g);
    toy_remove(w->dir, NULL);
}

static fa_config config(const world *w, const char *text)
{
    fa_config c;
    cr_assert_eq(fa_gen_config_parse(w->g, &c, text), FA_OK, "%s", fa_last_error());
    return c;
}

/* The neighbours of a config, by their text for people: "|a|b|". */
static void neighbours(world *w, const char *centre, char *out, size_t n)
{
    fa_pool pool = { .n = 0 };
    fa_pool_entry x = { .config = config(w, centre) };
    size_t at[64], len = 1;
    x.cost.seconds = 1; /* dearer than all: no neighbour is too dear */
    size_t from = fa_pool_add(&pool, &x), found = fa_neighbours_of(&w->neighbours, &pool, from, at, 64);
    snprintf(out, n, "|");
    for (size_t i = 0; i < found && len < n; i++) {
        char text[256];
        fa_gen_config_print(w->g, text, sizeof text, &pool.p[at[i]].config);
        len += (size_t)snprintf(out + len, n - len, "%s|", text);
    }
    fa_pool_free(&pool);
}

Test(tune_family, neighbours_are_the_declared_steps_and_moves)
{
    static const struct {
        const char *config;
        bool is;
    } rows[] = {
        { "toy:span=32,chunk=4,walk=forward,guests=1", true }, /* a step of span */
        { "toy:span=96,chunk=4,walk=forward,guests=1", true },   { "toy:span=128,chunk=4,walk=forward,guests=1", false }, /* two */
        { "toy:span=64,chunk=2,walk=forward,guests=1", true },   { "toy:span=64,chunk=16,walk=forward,guests=1", false },
        { "toy:span=64,chunk=4,walk=backward,guests=1", true },  { "toy:span=64,chunk=4,walk=forward,guests=4", true },
        { "toy:span=64,chunk=4,walk=forward,guests=16", false }, /* 16 guests of 64 rows have too few registers; with 32 rows: */
        { "toy:span=32,chunk=4,walk=forward,guests=16", true },  /* repaired by a step of span */
        { "toy:span=96,chunk=2,walk=forward,guests=1", true },   /* the move */
        { "toy:span=32,chunk=8,walk=forward,guests=1", true },   /* and back */
        { "toy:span=96,chunk=8,walk=forward,guests=1", false },  { "toy:span=32,chunk=2,walk=forward,guests=1", false },
    };
    world w;
    char all[4096], one[300];
    world_open(&w, rowwise_lua);
    neighbours(&w, "toy:span=64,chunk=4,walk=forward,guests=1", all, sizeof all);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(one, sizeof one, "|%s|", rows[i].config);
        cr_expect_eq(strstr(all, one) != NULL, rows[i].is, "%s of %s", rows[i].config, all);
    }
    /* at the end of the list the move has one direction; a value that the family does not have is nowhere */
    neighbours(&w, "toy:span=32,chunk=4,walk=forward,guests=1", all, sizeof all);
    cr_expect(strstr(all, "|toy:span=64,chunk=2,walk=forward,guests=1|") && !strstr(all, "chunk=8,walk=backward"), "%s", all);
    world_close(&w);
}

/* The same family without its moves: what only they reach is no neighbour. */
Test(tune_family, moves_are_what_adds_them)
{
    world w;
    char all[4096], lua[8192];
    snprintf(lua, sizeof lua, "%s", rowwise_lua);
    char *at = strstr(lua, "moves = {");
    cr_assert_not_null(at);
    memcpy(at, "other", 5);
    world_open(&w, lua);
    neighbours(&w, "toy:span=64,chunk=4,walk=forward,guests=1", all, sizeof all);
    cr_expect(strstr(all, "|toy:span=96,chunk=4,walk=forward,guests=1|"), "%s", all);
    cr_expect_not(strstr(all, "|toy:span=96,chunk=2,walk=forward,guests=1|"), "%s", all);
    world_close(&w);
}

/* True times that no model knows: the fewer places from the best, the faster. */
static double truth(const fa_config *c)
{
    return 1e-4 * (1 + 0.1 * fabs(log2(fa_config_get(c, "span", 0) / 96.0)) + 0.2 * fabs(log2(fa_config_get(c, "chunk", 0) / 8.0)) +
                   0.05 * !fa_config_get(c, "walk", 0) + 0.02 * (fa_config_get(c, "guests", 0) != 4));
}

Test(tune_family, every_strategy_that_refines_finds_its_best)
{
    static const char *const strategies[] = { "halving", "model" };
    for (size_t i = 0; i < 2; i++) {
        world w;
        fa_space space;
        fa_pool pool = { .n = 0 };
        fa_search_state h;
        size_t at[64], n, tiles = 0;
        double least = INFINITY;
        fa_config best = { .n = 0 };
        char text[256];
        world_open(&w, rowwise_lua);
        cr_assert_eq(fa_pool_list(&pool, w.g, &w.p, w.site.a, 0, "toy", &space), FA_OK, "%s", fa_last_error());
        for (size_t k = 0; k < pool.n; k++) {
            const fa_pool_entry *x = &pool.p[k];
            cr_expect(x->tile[0] == fa_config_get(&x->config, "span", 0) && x->tile[1] == fa_config_get(&x->config, "chunk", 0));
            tiles += k < 8 && (x->tile[0] != pool.p[0].tile[0] || x->tile[1] != pool.p[0].tile[1]);
        }
        cr_expect_gt(tiles, 0, "the first few by rank are not all of one tile");
        fa_search_state_open(&h, &pool, &w.neighbours, fa_strategy_find(strategies[i]), 8, 0);
        while ((n = fa_search_state_next(&h, at, 8)) > 0)
            for (size_t k = 0; k < n; k++) {
                double t = truth(&pool.p[at[k]].config);
                if (t < least) {
                    least = t;
                    best = pool.p[at[k]].config;
                }
                fa_search_state_tell(&h, at[k], t);
            }
        fa_gen_config_print(w.g, text, sizeof text, &best);
        cr_expect_str_eq(text, "toy:span=96,chunk=8,walk=backward,guests=4", "%s found %s", strategies[i], text);
        cr_expect_lt(h.given + h.neighbours + h.steps, pool.listed, "without trying everything");
        fa_search_state_close(&h);
        fa_pool_free(&pool);
        fa_space_free(&space);
        world_close(&w);
    }
}

/* Packing groups that there are not is the same kernel by another name, whatever the tunable is called. */
Test(tune_family, packing_without_groups_is_left_out)
{
    static const char lua[] =
        "return { doc = 'x', tunables = { { 'shared', { { 0, 'no' }, { 1, 'yes' } }, 's' } }, constraints = {},\n"
        "  supports = function() return true end, layout = function() return { bytes = 0, threads = 32 } end,\n"
        "  steps = function(p, c) return { { entry = 'x', grid = c.shared == 1 and 'rows/32 hkv b' or 'sq/32 hq b' } } end,\n"
        "  work = function() return { rows = 32, cols = 32, unit = 'ffma' } end }\n";
    for (int groups = 0; groups < 2; groups++) {
        world w;
        fa_space space;
        fa_pool pool = { .n = 0 };
        fa_pool_entry x;
        world_open(&w, lua);
        w.p.hq = groups ? 64 : 32;
        cr_assert_eq(fa_pool_list(&pool, w.g, &w.p, w.site.a, 0, "toy", &space), FA_OK, "%s", fa_last_error());
        cr_expect_eq(pool.n, groups ? 2 : 1);
        fa_config c = config(&w, "toy:shared=yes");
        cr_expect_eq(w.neighbours.accept(&w.neighbours, &c, &x), groups == 1);
        fa_pool_free(&pool);
        fa_space_free(&space);
        world_close(&w);
    }
}
