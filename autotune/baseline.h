/* baseline: the config that all others are held against: what fa_launch() runs where nothing was tuned. */
#ifndef FA_AUTOTUNE_BASELINE_H
#define FA_AUTOTUNE_BASELINE_H
#include "neighbours.h"
#include "tuning.h"

/* Its place in the ranked pool: what ships for the site's chip or the nearest arch, else the model's best. A shipped config that the space
 * does not list is added; it is a seed. family: the only one that is searched, or NULL; a shipped config of another is passed over. from
 * tells which it was. */
size_t fa_baseline_find(fa_pool *pool, fa_neighbours *neighbours, const fa_site *site, const fa_problem *p, const char *family,
                        char from[64]);

/* Whether some winner that ships, of whatever family and arch, runs the problem here: then fa_select() takes no guess. */
bool fa_baseline_ships(fa_neighbours *neighbours, const fa_site *site, const fa_problem *p);
#endif
