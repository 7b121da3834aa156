/* search: space -> model -> compile -> verify -> time -> record -> winner. */
#ifndef FA_AUTOTUNE_SEARCH_SEARCH_H
#define FA_AUTOTUNE_SEARCH_SEARCH_H
#include "autotune/candidate/backend.h"

typedef struct fa_search_options {
    int32_t limit;      /* listed candidates that the strategy may take; 0 = 48 (exhaustive: all); -1 = every config that fits.
                           Seeds come on top, at most as many neighbours, or 48, and 32 more of the best */
    double seconds;     /* time budget; 0 = none. On a device 60 % of it is for what is listed, 25 % for neighbours, the rest for finals */
    int32_t threads;    /* compile threads; 0 = one per core, at most 16 */
    bool again;         /* measure again what is on record */
    const char *family; /* NULL = the default families of the problem */
    const char *strategy; /* NULL = "halving"; strategy.h has the others */
    uint64_t seed;        /* of the strategy that draws at random */
    bool unseeded;        /* what ships and what is on record for like problems is not tried first */
    char *const
        *candidate_process; /* the command, NULL-terminated, that serves a candidate process (candidate/process.h): candidates are verified
                       and first timed in that process, so that one that hangs or faults costs only itself. NULL = in this one */
    double hang;            /* seconds after which a candidate in the child has hung; 0 = 20 */
    double patience;        /* seconds that a search which is stopped waits for its compilations to end; 0 = until they end. Then they are
                               left behind: see fa_compile_pool_stop() */
    double device_wait; /* seconds without the site's device lock, after which the search ends: its holder is stopped, or hangs. 0 = 1800 */
    fa_measure_backend *backend; /* in place of the device: a test's. NULL = the device. Borrowed */
    /* Called from the searching thread with what is known so far: t->winner is the best up to now, latest the candidate that was
     * worked on last or NULL, stage "compile", "wait" (for the site's device lock), "verify", "time", "meet" (rounds among the fastest),
     * "final", done 0 to 1. Non-zero return stops the search. */
    int (*progress)(void *user, const fa_tuning *t, const char *stage, const fa_candidate *latest, double done);
    void *user;
} fa_search_options;

/* opt NULL = all defaults. On a real device candidates are verified, timed and recorded as measured; on the simulator and without a
 * device they are compiled for the arch, gated on spills and recorded as modelled. On a device the winner's plan is what the context
 * launches from now on. *out is filled as far as the search came, also on failure: fa_tuning_free it. FA_INTERRUPTED when progress stopped
 * it, when the device lock did not come, or when the time was up before there was any winner. FA_NO_FIT when no config fits; FA_WRONG when
 * all that ran were wrong. */
fa_status fa_search(const fa_site *site, const fa_problem *p, const fa_search_options *opt, fa_tuning *out);
#endif
