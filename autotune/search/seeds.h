/* seeds: configs that won elsewhere and are worth trying here: what ships for the chip or its nearest relative, and what is on record for
 * the problem, for other shapes of its class and for the other 16-bit type. */
#ifndef FA_AUTOTUNE_SEARCH_SEEDS_H
#define FA_AUTOTUNE_SEARCH_SEEDS_H
#include "autotune/candidate/tuning.h"
#include "autotune/strategy/neighbours.h"

#define FA_SEEDS_MOST 32

/* Adds to the pool, as FA_SEED, those that `accept` of the neighbours takes for p (normalized, with its shape). Seeds that are there
 * already are marked. */
void fa_seeds_add(fa_pool *pool, fa_neighbours *neighbours, const fa_site *site, const fa_problem *p);
#endif
