/* scores: score programs as objects of contexts. One list of the process has all objects; it grows and is never freed, and an object whose
 * context went serves again. So whether an address is an object, and whose, can be told without looking there, and reading takes no lock.
 */
#ifndef FA_RUNTIME_ARGS_SCORES_H
#define FA_RUNTIME_ARGS_SCORES_H
#include "gen/score/program.h"
#include <fagen.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define FA_SCORE_SHAPE 640

struct fa_score {
    fa_score *next;
    _Atomic(fa_context *) ctx;                         /* NULL: free */
    const fa_program *program;                         /* known to the process */
    uint64_t number;                                   /* no two objects had one, at any time */
    atomic_int references;                             /* 0: destroyed */
    char shape[FA_SCORE_OPERANDS_MAX][FA_SCORE_SHAPE]; /* of arrays, as text */
    fa_score_operand operand[FA_SCORE_OPERANDS_MAX];   /* names and values of scalars as this text has them */
};

/* What a context has of them. */
typedef struct fa_scores {
    pthread_mutex_t mutex; /* of changes of its objects */
} fa_scores;

void fa_scores_open(fa_scores *s);
void fa_scores_close(fa_context *ctx); /* its objects are free */

/* The program that the arguments name, of any context; NULL where they name none. FA_INVALID where the address is no such object. Nothing
 * is read of arguments whose size is none. */
fa_status fa_scores_find(const fa_score **out, const fa_args *args);

/* FA_INVALID where the arguments name a program that is none of the context's. */
fa_status fa_scores_check(const fa_context *ctx, const fa_args *args);
#endif
