/* neighbours: the configs next to one: a step of one tunable, and where that alone does not fit, of a second one too; or a move of several
 * together. The family declares what a step and a move are. */
#ifndef FA_AUTOTUNE_STRATEGY_NEIGHBOURS_H
#define FA_AUTOTUNE_STRATEGY_NEIGHBOURS_H
#include "pool.h"

/* What configs there are. Stands between the search and the families, so that a recording and a test can take their place. */
typedef struct fa_neighbours {
    /* Whether the config runs: then its cost, smem, regs and threads are in *out. */
    bool (*accept)(struct fa_neighbours *, const fa_config *c, fa_pool_entry *out);
    /* Tunable i of a family; false past the last. */
    bool (*tunable)(struct fa_neighbours *, const char *family, size_t i, fa_tunable *out);
    /* Move i of a family; false past the last. NULL: there are none. */
    bool (*move)(struct fa_neighbours *, const char *family, size_t i, fa_move *out);
    void *user;
} fa_neighbours;

/* Adds the neighbours of pool->p[centre] that fit to the pool and puts the indexes of those not tried yet into out, at most `most`,
 * best by the model first. Left out is what the model gives more than FA_NEIGHBOURS_CUT times the time of p[centre]. */
#define FA_NEIGHBOURS_CUT 1.3
size_t fa_neighbours_of(fa_neighbours *k, fa_pool *pool, size_t centre, size_t *out, size_t most);

/* The families of a generator, on one problem, arch and budget. */
typedef struct fa_neighbours_site {
    fa_gen *g;
    const fa_problem *p; /* with its shape */
    const fa_arch *a;
    int32_t budget;
} fa_neighbours_site;
fa_neighbours fa_neighbours_of_families(fa_neighbours_site *site); /* the site stays where it is */
#endif
