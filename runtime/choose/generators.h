/* generators: those of a context. A thread that misses has one to itself, so that no lock is held while candidates are priced or text is
 * rendered. */
#ifndef FA_RUNTIME_CHOOSE_GENERATORS_H
#define FA_RUNTIME_CHOOSE_GENERATORS_H
#include "gen/gen.h"
#include <pthread.h>

#define FA_GENERATORS_KEPT 4

typedef struct fa_generators {
    pthread_mutex_t mutex; /* of all below */
    fa_gen *idle[FA_GENERATORS_KEPT];
    int32_t n;
} fa_generators;

/* One that is idle, or a new one; *out is NULL on failure. Thread-safe. */
fa_status fa_generator_take(fa_context *ctx, fa_gen **out);
/* It is idle again. NULL is fine. */
void fa_generator_give(fa_context *ctx, fa_gen *g);
void fa_generators_close(fa_generators *gs);
#endif
