/* tournament: verified candidates against each other until one is left: rounds among ever fewer, then the finals in pairs. */
#ifndef FA_AUTOTUNE_SEARCH_TOURNAMENT_H
#define FA_AUTOTUNE_SEARCH_TOURNAMENT_H
#include "autotune/candidate/backend.h"
#include "verify/operands/random.h"

/* More than this times the best after the first short pass, after a round, and what meets in the finals. */
#define FA_TOURNAMENT_FIRST 1.3
#define FA_TOURNAMENT_SECOND 1.1
#define FA_TOURNAMENT_LAST 1.03
#define FA_TOURNAMENT_FINALISTS 8
#define FA_TOURNAMENT_FIELD 24 /* most that meet in a round */
/* Finals end when every pair's 95 % interval excludes 1 or is within this; what is closer than this is a tie. */
#define FA_TOURNAMENT_TIE 0.0025

typedef struct fa_tournament {
    fa_measure_backend *backend;
    bool (*stop)(struct fa_tournament *); /* true: end now with what there is; may be NULL */
    void *user;
    fa_random order;       /* which goes after which, drawn again each time: a kernel's clock is what the one before left it; 0 is fine */
    fa_candidate *culprit; /* whose sample failed, where one did */
    fa_candidate *guest;   /* meets in every round and in the finals, however slow, so that others are held against it; may be NULL */
} fa_tournament;

/* One more round among those of the n entrants that are within `times` the fastest of them by level, FA_TOURNAMENT_FIELD at most: n samples
 * of each in passes over all, which replace their old ones. Entrants are sorted by their levels, which know where the clock was at each
 * sample; *left: how many met. Taken again where the clock moved. */
fa_status fa_tournament_round(fa_tournament *c, fa_candidate **entrant, size_t n, double times, int samples, size_t *left);

/* The last common round and the finals, of entrants that met before; *met: how many of them were in that round, the first ones. Those near
 * the best meet in pairs, in a newly drawn order for each
 * round. *winner is one of them. Ties go to the smaller footprint, shared memory, then registers; tied candidates end with the same time.
 * The times of all are those of the last common round, but for what the pairs say. Finalists get a time with a warm L2. */
fa_status fa_tournament_final(fa_tournament *c, fa_candidate **entrant, size_t n, size_t *met, fa_candidate **winner);
#endif
