/* search: space -> model -> compile -> verify -> time -> record -> winner. */
#ifndef FA_AUTOTUNE_SEARCH_H
#define FA_AUTOTUNE_SEARCH_H
#include "tuning.h"

typedef struct fa_search_options {
    int32_t limit;          /* candidates kept after the model's ranking; 0 = 48; -1 = every config that fits */
    double seconds;         /* time budget; 0 = none */
    int32_t threads;        /* compile threads; 0 = one per core, at most 8 */
    bool again;             /* measure anew what is on record */
    const char *family;     /* NULL = the default families of the problem */
    /* Called from the searching thread with what is known so far: t->winner is the best up to now, latest the candidate that was
     * worked on last or NULL, stage "compile", "verify", "time", "final", done 0 to 1. Non-zero return stops the search. */
    int (*progress)(void *user, const fa_tuning *t, const char *stage, const fa_candidate *latest, double done);
    void *user;
} fa_search_options;

/* opt NULL = all defaults. On a real device candidates are verified, timed and recorded as measured; on the simulator and without a
 * device they are compiled for the arch, gated on spills and recorded as modelled. On a device the winner's plan is what the context launches from
 * now on. *out is filled as far as the search came, also on failure: fa_tuning_free it. FA_INTERRUPTED when progress stopped it, or
 * when the time was up before there was any winner. FA_NO_FIT when no config fits; FA_WRONG when all that ran were wrong. */
fa_status fa_search(const fa_site *site, const fa_problem *p, const fa_search_options *opt, fa_tuning *out);
#endif
