/* run: a search under way, shared by search.c (the whole), attempt.c (one candidate) and rounds.c (candidates among each other):
 * search.c calls the two others, rounds.c calls attempt.c, and all of them what stands first here. */
#ifndef FA_AUTOTUNE_SEARCH_RUN_H
#define FA_AUTOTUNE_SEARCH_RUN_H
#include "autotune/strategy/strategy.h"
#include "compile_pool.h"
#include "search.h"
#include "tournament.h"

typedef struct fa_search_run {
    const fa_site *site;
    fa_search_options opt;
    fa_tuning *t;
    fa_gen *g;
    fa_pool pool;
    fa_neighbours_site neighbours_site;
    fa_neighbours neighbours;
    fa_search_state state;
    size_t cap; /* of t->candidate */
    fa_journal journal;
    fa_measure_backend *backend; /* NULL until the first candidate is ready for it */
    fa_tournament tournament;
    double start, flops;
    double slower;     /* in a round than in a first pass, as the last round told */
    double share;      /* of the time budget, up to which the present phase may go on */
    double done;       /* of the phase, as was last told */
    double base, span; /* of `done`: where the present phase begins, and how much of the whole it is */
    bool late;         /* the phase's time is up */
    bool interrupted;
    double waited; /* > 0: seconds for the device lock, which ended the search */
} fa_search_run;

double fa_search_run_left(const fa_search_run *s); /* seconds of the phase; < 0: no limit */
bool fa_search_run_over(fa_search_run *s);         /* the phase's time is up, or the search was stopped */
void fa_search_run_tell(fa_search_run *s, const char *stage, const fa_candidate *latest, double done); /* done: of the phase */

/* The device is this search's until it gives the lock back. The wait counts neither for the budget nor as elapsed. False: interrupted,
 * which a wait longer than opt.device_wait is too. */
bool fa_search_run_device(fa_search_run *s);

/* The backend, opened when first needed. */
fa_status fa_search_run_backend(fa_search_run *s);

/* attempt.c */
/* What a failure means for the candidate. FA_OK when the search can go on. */
fa_status fa_attempt_failed(fa_search_run *s, fa_candidate *c, fa_status st);
/* Compiles, verifies, times and notes n candidates from t->candidate[from]. */
fa_status fa_attempt_all(fa_search_run *s, size_t from, size_t n);

/* rounds.c */
/* Rounds among the fastest, so that the strategy knows better times than those of the first pass; from: the first of the newest batch. */
fa_status fa_rounds_meet(fa_search_run *s, size_t from);
/* The last common round, the finals, and the winner. */
fa_status fa_rounds_final(fa_search_run *s);
/* The times of all that met go on record, however the search ended: what a report shows is there. */
void fa_rounds_note(fa_search_run *s);
#endif
