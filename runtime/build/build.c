/* build: from text to a loaded kernel, compiled at most once per key across threads and processes. */
#include "build.h"
#include "cache/load_marker.h"
#include "cache/lock.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "kernels.h"
#include "runtime/context/context.h"
#include "runtime/context/exit.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

fa_status fa_build_metadata(fa_metadata *out, fa_compiler *c, const fa_source *s, const char *arch, int kind, fa_subject about)
{
    const fa_nvrtc *n;
    const char *keyed[FA_COMPILER_KEYED];
    fa_compile_options o;
    memset(out, 0, sizeof *out);
    fa_status st = fa_compiler_nvrtc(c, &n);
    if (st != FA_OK)
        return st;
    fa_compile_options_make(&o, n, arch, fa_image_kind(s, kind));
    out->n_options = fa_compile_options_keyed(&o, keyed);
    for (int i = 0; i < out->n_options; i++)
        snprintf(out->options[i], sizeof out->options[i], "%s", keyed[i]);
    if (!about.problem || fa_problem_print_key(out->problem, sizeof out->problem, about.problem) >= (int)sizeof out->problem)
        out->problem[0] = 0;
    if (!about.config || fa_config_print(out->config, sizeof out->config, about.config) >= (int)sizeof out->config)
        out->config[0] = 0;
    snprintf(out->source, sizeof out->source, "%s", s->name);
    memcpy(out->text, s->hash, sizeof out->text);
    snprintf(out->arch, sizeof out->arch, "%s", arch);
    snprintf(out->compiler, sizeof out->compiler, "%s", n->identity);
    snprintf(out->fagen, sizeof out->fagen, "%s", FA_VERSION_STRING);
    out->format = FA_FORMAT_VERSION;
    fa_text_date(out->date, sizeof out->date, time(NULL));
    return FA_OK;
}

/* The description of an entry: what a person asks of `fagen cache`. Best effort: an entry without one is as good a kernel. */
static void describe(fa_entry *e, fa_compiler *c, const fa_source *s, int kind, fa_subject about)
{
    fa_metadata a;
    fa_text t = { 0 };
    if (fa_build_metadata(&a, c, s, e->arch, kind, about) != FA_OK || !fa_metadata_print(&a, &t))
        fa_text_free(&t);
    e->metadata = t.s;
    e->metadata_size = t.n;
}

fa_status fa_build_image(fa_store *store, fa_compiler *c, const fa_source *s, const char *arch, int kind, fa_subject about, bool fresh,
                         fa_entry *out, bool *cached)
{
    fa_key k;
    bool hit = false;
    memset(out, 0, sizeof *out);
    fa_status st = fa_compiler_key(c, s, arch, kind, &k);
    if (st != FA_OK)
        return st;
    if (!fresh)
        hit = fa_entry_get(store, k, arch, out);
    if (!hit) {
        fa_lock lock = fa_lock_take(store, k);
        if (!fresh)
            hit = fa_entry_get(store, k, arch, out);
        if (!hit)
            st = fa_compile(c, s, arch, kind, out);
        if (!hit && st == FA_OK) {
            describe(out, c, s, kind, about);
            fa_entry_put(store, out);
        }
        fa_lock_drop(&lock);
    }
    if (cached)
        *cached = hit;
    return st;
}

static fa_status load(fa_context *ctx, fa_kernel **k, const fa_entry *e, const fa_source *s)
{
    fa_status st = fa_exit_begin("load");
    if (st != FA_OK)
        return st;
    fa_load_marker marker = fa_load_marker_set(ctx->store, e);
    st = fa_kernel_load(k, &ctx->device, e, s);
    fa_load_marker_clear(&marker, st == FA_OK);
    fa_exit_end();
    return st;
}

/* What the compiler told of each step: nothing where the driver compiles PTX. */
static void say(const fa_context *ctx, const fa_kernel *k, const fa_source *s)
{
    fa_text t = { 0 };
    for (int i = 0; i < k->steps; i++)
        if (k->resources[i].known)
            fa_text_fmt(&t, "%s%s: %d registers, %d + %d bytes spilled", t.n ? "; " : "", k->step[i].entry, k->resources[i].registers,
                        k->resources[i].spill_stores, k->resources[i].spill_loads);
    fa_log_say(&ctx->log, FA_LOG_INFO, "kernel %s for %s from the %s: %s", s->name, ctx->device.arch.name, k->from,
               t.n ? fa_text_cstr(&t) : "PTX, whose registers are known where it is compiled");
    fa_text_free(&t);
}

fa_status fa_build(fa_context *ctx, const fa_source *s, fa_subject about, const fa_kernel **out)
{
    const char *arch = ctx->device.arch.name;
    int kind = FA_IMAGE_LOADED(ctx->device.driver->takes_ptx);
    fa_key key;
    fa_entry e;
    fa_kernel *k = NULL;
    fa_entered in;
    bool cached = false;
    *out = NULL;
    fa_status st = fa_compiler_key(ctx->compiler, s, arch, kind, &key);
    if (st != FA_OK)
        return st;
    *out = fa_kernels_find(ctx->kernels, key, s->steps, s->step);
    if (*out)
        return FA_OK;
    st = fa_build_image(ctx->store, ctx->compiler, s, arch, kind, about, false, &e, &cached);
    if (st != FA_OK)
        return st;
    st = fa_context_enter(ctx, &in);
    if (st != FA_OK) {
        fa_entry_free(&e);
        return st;
    }
    st = load(ctx, &k, &e, s);
    if (st == FA_DEVICE && cached) {
        fa_log_say(&ctx->log, FA_LOG_WARN, "a cached kernel was refused and is compiled again: %s", fa_last_error());
        fa_entry_free(&e);
        st = fa_build_image(ctx->store, ctx->compiler, s, arch, kind, about, true, &e, &cached);
        if (st == FA_OK)
            st = load(ctx, &k, &e, s);
    }
    fa_context_leave(ctx, &in);
    if (st == FA_OK) {
        snprintf(k->from, sizeof k->from, "%s", cached ? "disk cache" : "compiler");
        say(ctx, k, s);
        *out = fa_kernels_keep(ctx->kernels, &ctx->device, k);
    }
    fa_entry_free(&e);
    return st;
}
