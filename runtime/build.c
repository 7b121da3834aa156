/* build: from text to a loaded kernel, compiled at most once per key across threads and processes. */
#include "build.h"
#include "cache/lock.h"
#include "context.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

static void json_text(fa_text *t, const char *name, const char *s)
{
    fa_text_fmt(t, "%s\"%s\":\"", t->n > 1 ? "," : "", name);
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            fa_text_fmt(t, "\\%c", *s);
        else if ((unsigned char)*s < 0x20 || (unsigned char)*s >= 0x7f)
            fa_text_fmt(t, "\\u%04x", (unsigned)(unsigned char)*s);
        else
            fa_text_add(t, s, 1);
    fa_text_str(t, "\"");
}

/* The description of an entry: what a person asks of `fagen cache ls`. */
static void describe(fa_entry *e, const fa_nvrtc *n, const fa_source *s, int kind, fa_subject about)
{
    char line[512], date[32];
    struct tm tm;
    time_t now = time(NULL);
    fa_compile_options o;
    fa_text t = {0};
    fa_text_str(&t, "{");
    if (about.problem && fa_problem_print_key(line, sizeof line, about.problem) < (int)sizeof line)
        json_text(&t, "problem", line);
    if (about.config && fa_config_print(line, sizeof line, about.config) < (int)sizeof line)
        json_text(&t, "config", line);
    json_text(&t, "source", s->name);
    json_text(&t, "arch", e->arch);
    json_text(&t, "compiler", n->identity);
    fa_compile_options_make(&o, n, e->arch, kind);
    fa_text_str(&t, ",\"options\":[");
    for (int i = 0; i < o.n; i++)
        fa_text_fmt(&t, "%s\"%s\"", i ? "," : "", o.list[i]);
    fa_text_str(&t, "]");
    json_text(&t, "fagen", FA_VERSION_STRING);
    if (gmtime_r(&now, &tm) && strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &tm))
        json_text(&t, "date", date);
    fa_text_str(&t, "}");
    if (t.oom)
        fa_text_free(&t);
    e->about = t.s;
    e->about_size = t.n;
}

fa_status fa_build_image(fa_store *store, fa_compiler *c, const fa_source *s, const char *arch, int kind, fa_subject about,
                         bool fresh, fa_entry *out, bool *cached)
{
    fa_key k;
    const fa_nvrtc *n;
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
            if (fa_compiler_nvrtc(c, &n) == FA_OK)
                describe(out, n, s, kind, about);
            fa_entry_put(store, out);
        }
        fa_lock_drop(&lock);
    }
    if (cached)
        *cached = hit;
    return st;
}

fa_status fa_build(fa_context *ctx, const fa_source *s, fa_subject about, const fa_kernel **out)
{
    const char *arch = ctx->device.arch.name;
    int ptx = ctx->device.driver->takes_ptx ? 1 : 0;
    fa_key key;
    fa_entry e;
    fa_kernel *k = NULL;
    fa_entered in;
    bool cached = false;
    *out = NULL;
    fa_status st = fa_compiler_key(ctx->compiler, s, arch, ptx, &key);
    if (st != FA_OK)
        return st;
    *out = fa_context_kernel(ctx, key, s->steps, s->step);
    if (*out)
        return FA_OK;
    st = fa_build_image(ctx->store, ctx->compiler, s, arch, ptx, about, false, &e, &cached);
    if (st != FA_OK)
        return st;
    st = fa_context_enter(ctx, &in);
    if (st != FA_OK) {
        fa_entry_free(&e);
        return st;
    }
    st = fa_kernel_load(&k, &ctx->device, &e, s);
    if (st == FA_DEVICE && cached) {
        fa_log_say(&ctx->log, FA_LOG_WARN, "a cached kernel was refused and is compiled anew: %s", fa_last_error());
        fa_entry_free(&e);
        st = fa_build_image(ctx->store, ctx->compiler, s, arch, ptx, about, true, &e, &cached);
        if (st == FA_OK)
            st = fa_kernel_load(&k, &ctx->device, &e, s);
    }
    fa_context_leave(ctx, &in);
    if (st == FA_OK) {
        snprintf(k->from, sizeof k->from, "%s", cached ? "disk cache" : "compiler");
        fa_log_say(&ctx->log, FA_LOG_INFO, "kernel %s for %s from the %s: %d registers, %d bytes spilled", s->name, arch,
                   k->from, k->resources[0].registers, k->resources[0].spill_stores);
        *out = fa_context_keep(ctx, k);
    }
    fa_entry_free(&e);
    return st;
}
