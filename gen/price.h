/* price: what one step of a source costs on one chip, by what its family says of the step's work. */
#ifndef FA_GEN_PRICE_H
#define FA_GEN_PRICE_H
#include "model.h"
#include "work.h"

/* Blocks of scores that the row tiles of one head visit: in all, and in the longest and shortest tile; and, where rows walk in groups,
 * what the groups visit in all. */
typedef struct fa_visits {
    double all, longest, shortest, groups;
} fa_visits;

/* What depends on the tile alone, and is counted row tile by row tile. */
typedef struct fa_tile_counts {
    double rows, cols, group;
    int pack;
    const fa_algorithm *algorithm;
    fa_visits visits;
    fa_traffic traffic;
} fa_tile_counts;
#define FA_TILE_COUNTS 256 /* a power of two */

/* A problem with its shape on a chip. */
typedef struct fa_pricing {
    const fa_problem *problem;
    const fa_arch *arch;
    fa_band band;
    double flops;
    fa_tile_counts *known; /* FA_TILE_COUNTS of them, zeroed before the first step, or NULL */
} fa_pricing;

/* How often a step is launched: a portion of the units at a time, and of each group's members (fa_workspace_portion); launches: steps that
 * are priced as this one. last: what the last launch over units has, of the units of the others, or 0: as many. */
typedef struct fa_repeats {
    double units, members, launches, last;
} fa_repeats;

/* All launches of the step by itself; bound, flops and intensity are left to the caller. regs: per thread. family: for messages. */
fa_status fa_price_step(const fa_pricing *x, const char *family, const fa_step *s, const fa_work *w, int regs, fa_repeats in, fa_cost *out);
#endif
