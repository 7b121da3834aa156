/* baseline: the config that all others are held against: what fa_launch() runs where nothing was tuned. */
#ifndef FA_AUTOTUNE_SEARCH_BASELINE_H
#define FA_AUTOTUNE_SEARCH_BASELINE_H
#include "autotune/candidate/tuning.h"
#include "autotune/strategy/neighbours.h"

typedef struct fa_baseline {
    size_t at;     /* its place in the ranked pool */
    char from[64]; /* "shipped winner of NVIDIA H200" */
} fa_baseline;

/* fa_choose() by what ships alone, for the problem's point: the first candidate that also runs the problem itself. One that the space does
 * not list is added to the pool; it is a seed. family: the only one that is searched, or NULL; candidates of others are passed over. Where
 * none is left, the model's best. */
fa_status fa_baseline_find(fa_baseline *out, fa_pool *pool, fa_neighbours *neighbours, fa_gen *g, const fa_site *site, const fa_problem *p,
                           const char *family);
#endif
