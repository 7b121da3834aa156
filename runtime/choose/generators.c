/* generators: a short list under a mutex, which is held for no longer than it takes to look. */
#include "generators.h"
#include "runtime/context/context.h"

fa_status fa_generator_take(fa_context *ctx, fa_gen **out)
{
    fa_generators *gs = ctx->generators;
    pthread_mutex_lock(&gs->mutex);
    *out = gs->n ? gs->idle[--gs->n] : NULL;
    pthread_mutex_unlock(&gs->mutex);
    if (*out)
        return FA_OK;
    /* of a user's folder every family is looked at: a fault in any of them is told */
    return ctx->template_dir ? fa_gen_open(out, ctx->template_dir) : fa_gen_open_lazy(out);
}

void fa_generator_give(fa_context *ctx, fa_gen *g)
{
    fa_generators *gs = ctx->generators;
    if (!g)
        return;
    pthread_mutex_lock(&gs->mutex);
    bool kept = gs->n < FA_GENERATORS_KEPT;
    if (kept)
        gs->idle[gs->n++] = g;
    pthread_mutex_unlock(&gs->mutex);
    if (!kept)
        fa_gen_close(g);
}

void fa_generators_close(fa_generators *gs)
{
    while (gs->n)
        fa_gen_close(gs->idle[--gs->n]);
}
