/* contest: verified candidates against each other on the device until one is left: successive halving in turns, then pairs. */
#ifndef FA_AUTOTUNE_CONTEST_H
#define FA_AUTOTUNE_CONTEST_H
#include "measure.h"
#include "tuning.h"

/* More than this times the best after the first short pass, after the second, and what may meet in the finals. */
#define FA_CONTEST_FIRST 1.5
#define FA_CONTEST_SECOND 1.1
#define FA_CONTEST_FINALISTS 3

typedef struct fa_contest {
    fa_bench *bench;
    /* One more sample of the candidate. Stands between the rounds and the device, so that the rounds are tested without one. */
    fa_status (*sample)(struct fa_contest *, fa_candidate *);
    bool (*stop)(struct fa_contest *); /* true: end now with what there is; may be NULL */
    void *user;
} fa_contest;

fa_status fa_contest_sample(fa_contest *c, fa_candidate *k); /* on the bench */

/* The first pass of a candidate: n samples; sets seconds, spread and count. */
fa_status fa_contest_time(fa_contest *c, fa_candidate *k, int n);

/* Rounds among the n entrants, which all have times; *winner is one of them. Ties go to the smaller footprint: shared memory, then
 * registers; tied candidates end with the same time. */
fa_status fa_contest_run(fa_contest *c, fa_candidate **entrant, size_t n, fa_candidate **winner);
#endif
