/* baseline: the candidate that all others are held against: what fa_launch() runs where nothing was tuned. */
#ifndef FA_AUTOTUNE_BASELINE_H
#define FA_AUTOTUNE_BASELINE_H
#include "tuning.h"

/* Moves that candidate to the front of the ranked list and points t->baseline at it: what ships for the site's chip or the nearest arch,
 * else the model's best. A shipped config that the space does not list is added; t->candidate has room for one more. family: the only
 * one that is searched, or NULL; a shipped config of another is passed over. */
void fa_baseline_place(fa_tuning *t, fa_gen *g, const fa_site *site, const char *family);
#endif
