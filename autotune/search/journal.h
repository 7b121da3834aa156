/* journal: the records of one search: what earlier ones already know, and each new outcome as it comes. */
#ifndef FA_AUTOTUNE_SEARCH_JOURNAL_H
#define FA_AUTOTUNE_SEARCH_JOURNAL_H
#include "autotune/candidate/tuning.h"
#include "cache/newest.h"

typedef struct fa_journal {
    const fa_site *site;
    fa_problem problem;
    fa_how how;
    fa_records old;  /* of the problem and chip, oldest first */
    fa_newest known; /* of those, what may be recalled: the newest of each config and text */
    char compiler[24], driver[24];
} fa_journal;

/* FA_NO_NVRTC without a compiler: records name it. FA_NOMEM. */
fa_status fa_journal_open(fa_journal *j, const fa_site *site, const fa_problem *p, fa_how how);
void fa_journal_close(fa_journal *j);

/* Takes the outcome of the newest record of the same config, text, compiler, shape bucket and kind. False if there is none.
 * Thread-safe. c->source is set. */
bool fa_journal_recall(const fa_journal *j, fa_candidate *c);
/* Whether there is a record of the problem's shape bucket and kind. */
bool fa_journal_knows(const fa_journal *j);
/* Appends c's outcome. */
void fa_journal_note(const fa_journal *j, const fa_candidate *c);
#endif
