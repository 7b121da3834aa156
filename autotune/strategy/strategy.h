/* strategy: which configs of a pool are tried next. It sees the model's times and what was told of those that were tried, and nothing
 * of devices, so that a recording compares strategies as well as a chip does. */
#ifndef FA_AUTOTUNE_STRATEGY_STRATEGY_H
#define FA_AUTOTUNE_STRATEGY_STRATEGY_H
#include "neighbours.h"
#include "verify/operands/random.h"

typedef struct fa_search_state fa_search_state;

typedef struct fa_strategy {
    const char *name, *about;
    int samples;  /* of the first pass of each config */
    bool refines; /* the neighbours of the best are tried when the strategy itself has no more */
    bool draws;   /* by its seed; the others do the same every time */
    bool whole;   /* without a limit it takes all that is listed */
    /* Puts what to try next into out, none of it given yet, at most `most`; 0: it has no more. */
    size_t (*next)(fa_search_state *h, size_t *out, size_t most);
} fa_strategy;

/* "halving" (also for NULL), "exhaustive", "model", "random"; NULL when there is none of that name. */
const fa_strategy *fa_strategy_find(const char *name);
const fa_strategy *fa_strategy_at(size_t i); /* NULL past the last */
const char *fa_strategy_names(void);         /* for messages */

typedef enum fa_phase { FA_PHASE_OWN = 0, FA_PHASE_REFINE, FA_PHASE_DONE } fa_phase;

struct fa_search_state {
    fa_pool *pool;
    fa_neighbours *neighbourhood; /* NULL: nothing is refined */
    const fa_strategy *strategy;
    size_t baseline;                           /* goes first; FA_NOWHERE = none */
    size_t limit, neighbours_most, steps_most; /* listed configs that the strategy may give; neighbours; and more of them, of the best */
    fa_random random;
    fa_phase phase;
    size_t given, neighbours, steps;            /* by the strategy; while refining */
    size_t at;                                  /* the strategy's own place in the pool */
    size_t *expanded, n_expanded, cap_expanded; /* whose neighbours were asked for */
};

/* limit 0: FA_STRATEGY_LIMIT, or all for a strategy that is whole; -1: all. Neighbours are at most as many, or FA_STRATEGY_LIMIT if that
 * is more, and a few of the best on top. The pool is ranked, its seeds added. */
#define FA_STRATEGY_LIMIT 48
void fa_search_state_open(fa_search_state *h, fa_pool *pool, fa_neighbours *neighbours, const fa_strategy *s, int32_t limit, uint64_t seed);
void fa_search_state_close(fa_search_state *h);

/* What to try next: indexes into the pool, marked as given. The seeds come first and do not count. 0: the search is over. The
 * caller tells of all of them before the next call. */
size_t fa_search_state_next(fa_search_state *h, size_t *out, size_t most);
/* seconds 0: it did not run. May be told again when it was measured better. */
void fa_search_state_tell(fa_search_state *h, size_t at, double seconds);
/* What it was told of it; 0 = nothing. */
double fa_search_state_heard(const fa_search_state *h, size_t at);

/* guided.c: takes configs by a model whose times are corrected by what was told so far. */
size_t fa_guided_next(fa_search_state *h, size_t *out, size_t most);
/* Of the first `among` of the pool not tried yet those that promise most, at most `most`; what promises less than FA_GUIDED_WORTH,
 * relative, is left. */
#define FA_GUIDED_WORTH 0.0005
size_t fa_guided_pick(fa_pool *pool, size_t among, size_t *out, size_t most);
#endif
