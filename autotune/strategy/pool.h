/* pool: the configs that a search may try, what the model says of each and what became of those that were tried. Candidates of a
 * device, rows of a recording and rows that a test makes up are all the same to a strategy. */
#ifndef FA_AUTOTUNE_STRATEGY_POOL_H
#define FA_AUTOTUNE_STRATEGY_POOL_H
#include "gen/model.h"
#include "gen/space.h"

/* Why a config is in the pool. */
typedef enum fa_origin {
    FA_LISTED = 0,   /* of the space */
    FA_SEED = 1,     /* it won elsewhere: shipped, or on record for a like problem */
    FA_NEIGHBOUR = 2 /* next to one that is fast; it may be one that the space does not list */
} fa_origin;
const char *fa_origin_name(fa_origin o); /* "listed" "seed" "neighbour" */

typedef struct fa_pool_entry {
    fa_config config;
    fa_cost cost;                /* the model's */
    double rank;                 /* what orders them: the model's seconds, more for each further variation of one tile */
    int32_t smem, regs, threads; /* the family's estimate */
    int32_t tile[2];             /* fa_gen_tile: rows, columns; zeros where the family declares none */
    fa_origin origin;
    bool given;     /* a strategy has named it */
    bool told;      /* and its outcome is known: */
    double seconds; /* of a launch; 0 = it did not run */
} fa_pool_entry;

typedef struct fa_pool {
    fa_pool_entry *p; /* the listed ones by rank, then what was added, as it came */
    size_t n, cap;
    size_t listed; /* of the space */
    size_t *slot;  /* hash table of indexes, a power of two slots; NULL before the first config is asked for */
    size_t slots;
} fa_pool;

#define FA_NOWHERE ((size_t)-1)

/* Copies x and returns its index; of a config that is there already, that one's, whose origin becomes FA_SEED where x says so.
 * FA_NOWHERE when memory ran out. */
size_t fa_pool_add(fa_pool *pool, const fa_pool_entry *x);
size_t fa_pool_find(fa_pool *pool, const fa_config *c); /* FA_NOWHERE: not there */
/* Orders what was added so far by rank and declares it listed. Indexes change: before anything is given. */
void fa_pool_rank(fa_pool *pool);
/* Adds every config of the space that fits and that the model prices, ranked. *space: the listing, the caller's to free also on failure. */
fa_status fa_pool_list(fa_pool *pool, fa_gen *g, const fa_problem *p, const fa_arch *a, int32_t budget, const char *family,
                       fa_space *space);
/* The cheapest by the model, of which there is one. */
size_t fa_pool_cheapest(const fa_pool *pool);
/* The best that ran, FA_NOWHERE where none did. */
size_t fa_pool_best(const fa_pool *pool);
void fa_pool_free(fa_pool *pool);
#endif
