/* jit: opened with the context, used on a miss. */
#include "jit.h"
#include "cache/rates.h"
#include "gen/error.h"
#include "gen/files.h"
#include "generators.h"
#include "runtime/build/build.h"
#include "runtime/bundle/precompiled.h"
#include "runtime/context/context.h"
#include <stdlib.h>
#include <string.h>

static void store_warns(void *user, const char *message)
{
    const fa_context *ctx = user;
    fa_log_say(&ctx->log, FA_LOG_WARN, "%s", message);
}

fa_status fa_jit_open(fa_context *ctx, const fa_options *o, const fa_environment *env)
{
    const char *cache = o->bundle_only ? "" : o->cache_dir ? o->cache_dir : env->cache_dir;
    const char *templates = o->template_dir ? o->template_dir : env->template_dir;
    if (templates && templates[0] && !o->bundle_only) { /* now, and not at a miss; with bundle_only nothing is rendered */
        fa_status st = fa_files_check(templates, o->template_dir ? "options: template_dir" : "FAGEN_TEMPLATE_DIR");
        if (st != FA_OK)
            return st;
    }
    ctx->store = fa_store_open(cache, store_warns, ctx);
    if (ctx->store && o->cache_limit)
        fa_store_set_limit(ctx->store, o->cache_limit);
    ctx->compiler = fa_compiler_open(o->nvrtc ? o->nvrtc : env->nvrtc);
    if (templates && templates[0])
        ctx->template_dir = strdup(templates);
    if (!ctx->store || !ctx->compiler || (templates && templates[0] && !ctx->template_dir))
        return fa_fail(FA_NOMEM, "context: host memory");
    fa_rates rates;
    if (fa_rates_load(ctx->store, ctx->device.arch.chip, &rates))
        fa_arch_calibrate(&ctx->device.arch, &rates);
    /* The first kernel needs the library, if only for its version. Opened here, it is not being opened by another thread when this one
     * leaves main(). Where there is none, a miss tells. */
    const fa_nvrtc *nvrtc;
    if (!o->bundle_only)
        fa_compiler_nvrtc(ctx->compiler, &nvrtc);
    return FA_OK;
}

void fa_jit_close(fa_context *ctx)
{
    fa_generators_close(ctx->generators);
    fa_compiler_close(ctx->compiler);
    fa_store_close(ctx->store);
    free(ctx->template_dir);
}

bool fa_jit_compiles(fa_context *ctx)
{
    const fa_nvrtc *nvrtc;
    return fa_compiler_nvrtc(ctx->compiler, &nvrtc) != FA_NO_NVRTC;
}

void fa_jit_describe(fa_context *ctx, const fa_source *s, fa_text *t)
{
    fa_key k;
    fa_entry e;
    char hex[33];
    const char *arch = ctx->device.arch.name;
    if (fa_precompiled_has(ctx, s)) {
        fa_text_fmt(t, "kernel     compiled with the library, in %s\n", ctx->precompiled->path);
        return;
    }
    fa_status st = fa_compiler_key(ctx->compiler, s, arch, FA_IMAGE_LOADED(ctx->device.driver->takes_ptx), &k);
    if (st != FA_OK) {
        fa_text_fmt(t, "kernel     not compiled%s: %s\n", st == FA_NO_NVRTC ? ", and no compiler" : "", fa_last_error());
        return;
    }
    bool there = fa_entry_get(ctx->store, k, arch, &e);
    if (there)
        fa_entry_free(&e);
    fa_key_print(hex, k);
    fa_text_fmt(t, "kernel     %s, key %s\n", there ? "in the disk cache" : "not compiled yet", hex);
}
