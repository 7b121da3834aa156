/* generators: a short list under a mutex, which is held for no longer than it takes to look. */
#include "generators.h"
#include "context.h"

fa_status fa_generator_take(fa_context *ctx, fa_gen **out)
{
    pthread_mutex_lock(&ctx->gen_mutex);
    *out = ctx->idle_gens ? ctx->gen[--ctx->idle_gens] : NULL;
    pthread_mutex_unlock(&ctx->gen_mutex);
    if (*out)
        return FA_OK;
    /* of a user's folder every family is looked at: a fault in any of them is told */
    return ctx->template_dir ? fa_gen_open(out, ctx->template_dir) : fa_gen_open_lazy(out);
}

void fa_generator_give(fa_context *ctx, fa_gen *g)
{
    if (!g)
        return;
    pthread_mutex_lock(&ctx->gen_mutex);
    bool kept = ctx->idle_gens < FA_GENERATORS_KEPT;
    if (kept)
        ctx->gen[ctx->idle_gens++] = g;
    pthread_mutex_unlock(&ctx->gen_mutex);
    if (!kept)
        fa_gen_close(g);
}

void fa_generators_close(fa_context *ctx)
{
    while (ctx->idle_gens)
        fa_gen_close(ctx->gen[--ctx->idle_gens]);
}
