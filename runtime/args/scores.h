/* scores: the score programs of a context. One that was made stays in memory until the context goes, so that an address means one program
 * for ever, and whether an address is one can be told without looking there. Reading takes no lock. */
#ifndef FA_RUNTIME_ARGS_SCORES_H
#define FA_RUNTIME_ARGS_SCORES_H
#include "gen/score/program.h"
#include <fagen.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct fa_scores {
    pthread_mutex_t mutex; /* of changes */
    _Atomic(fa_score *) first;
} fa_scores;

void fa_scores_open(fa_scores *s);
void fa_scores_close(fa_scores *s);

/* FA_INVALID where the arguments name a program that is none of the context's. Nothing is read of arguments whose size is none. */
fa_status fa_scores_check(const fa_context *ctx, const fa_args *args);
#endif
