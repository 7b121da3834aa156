/* runs: what fa_launch() runs of a problem's bucket, by all that is on record now. */
#ifndef FA_AUTOTUNE_SEARCH_RUNS_H
#define FA_AUTOTUNE_SEARCH_RUNS_H
#include "autotune/candidate/tuning.h"

/* Fills t->runs for t->problem: fa_choose() with the site's records, the first candidate that renders, as a launch does. Pins are the
 * program's own, and are left out. Without a candidate t->runs.known stays false. FA_NOMEM, FA_TEMPLATE. */
fa_status fa_runs_find(fa_tuning *t, fa_gen *g, const fa_site *site);
#endif
