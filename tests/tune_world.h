/* tune_world: a made-up family whose true times are known, for the suites of the search: six tunables, a time that is a product of how far
 * each is from its best value, a model that is off by up to `error`, and combinations that run though no list has them. */
#ifndef FA_TEST_TUNE_WORLD_H
#define FA_TEST_TUNE_WORLD_H
#include "autotune/strategy/strategy.h"

#define WORLD_TUNABLES 6

typedef struct world {
    int best[WORLD_TUNABLES];     /* index of the best value of each tunable */
    double slope[WORLD_TUNABLES]; /* relative, per step away from it */
    double coupling;              /* of the first two: what both being off costs or spares */
    double error;                 /* of the model, relative */
    uint64_t seed;
    int listed_departures; /* a config with more of the last three away from their first value is not listed */
    long asked;            /* configs asked for as neighbours */
} world;

world world_make(uint64_t seed);
double world_time(const world *w, const fa_config *c); /* seconds; 0 = it does not run */
double world_model(const world *w, const fa_config *c);
fa_config world_best(const world *w); /* found by going through all of them */
bool world_lists(const world *w, const fa_config *c);
size_t world_count(const world *w, bool listed);
void world_list(const world *w, fa_pool *pool); /* ranked */
fa_neighbours world_neighbours(world *w);
#endif
