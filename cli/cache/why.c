/* why: `fagen cache why`: is the kernel there, and if not, what does the nearest one differ in? */
#include "cache.h"
#include "cli/options/arch_names.h"
#include "cli/session/config_text.h"
#include "cli/session/ranking.h"
#include "cli/session/session.h"
#include "cli/text/say.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <string.h>

/* What is asked for. */
typedef struct wanted {
    fa_config config;
    fa_source source;
    char arch[12];
    int ptx;
    fa_key key;
    fa_metadata metadata;
} wanted;

/* What lies in the store. */
typedef struct finding {
    const fa_metadata *want;
    fa_key key;
    char *there, *aside, *damaged_path; /* paths */
    const char *damaged;
    bool loaded, set_aside; /* set_aside: quarantined; else foreign */
    char *near;
    fa_key near_key;
    int differences;
    const char *field;
    char sentence[1400];
    size_t n, told; /* told: kernels whose description holds all of the key */
} finding;

static void near(finding *f, const fa_item *i, const fa_entry *e)
{
    fa_metadata a;
    const char *field;
    char sentence[sizeof f->sentence];
    if (!fa_metadata_parse(&a, e->metadata, e->metadata_size) || !a.whole)
        return;
    f->told++;
    int n = fa_metadata_differ(f->want, &a, &field, sentence, sizeof sentence);
    if (f->near && n >= f->differences)
        return;
    free(f->near);
    f->near = strdup(i->path);
    f->near_key = e->key;
    f->differences = n;
    f->field = field;
    memcpy(f->sentence, sentence, sizeof sentence);
}

static int look(void *user, const fa_item *i)
{
    finding *f = user;
    fa_entry e;
    bool own = i->named && i->key.lo == f->key.lo && i->key.hi == f->key.hi;
    if (!own && i->area != FA_AREA_KERNELS)
        return 0;
    const char *damaged = fa_item_read(i, &e, false);
    if (own && i->area != FA_AREA_KERNELS) {
        free(f->aside);
        f->aside = strdup(i->path);
        f->set_aside = i->area == FA_AREA_QUARANTINE;
    } else if (own && damaged && !f->damaged) {
        f->damaged = damaged;
        f->damaged_path = strdup(i->path);
    } else if (own && !damaged && !f->there) {
        f->there = strdup(i->path);
        f->loaded = i->proved;
    } else if (!own && !damaged) {
        f->n++;
        near(f, i, &e);
    }
    fa_entry_free(&e);
    return 0;
}

/* A context that answers for the arch: the GPU of this machine, where it has that arch, else the chip of the table. */
static fa_status open_for(cli_session *s, cli *c, const char *name)
{
    const fa_arch *arch;
    cli quiet = *c;
    quiet.quiet = true;
    fa_status st = cli_arch_find(&arch, "arch", name);
    if (st != FA_OK)
        return st;
    fa_message before;
    fa_message_keep(&before);
    bool here = fa_message_settle(&before, cli_session_open(s, &quiet, &(cli_where){ .device = "cuda" })) == FA_OK;
    if (here && !strcmp(fa_context_arch(s->ctx)->name, arch->name))
        return FA_OK;
    if (here)
        cli_session_close(s);
    st = cli_session_open(s, &quiet, &(cli_where){ .arch = name });
    if (st == FA_OK)
        fa_context_override_arch(s->ctx, arch, NULL);
    return st;
}

/* What fa_launch() would run: on the device, or as a cubin on the chip that --arch names. */
static fa_status want_launched(wanted *w, cli *c, fa_compiler *compiler, const cache_args *a, const fa_problem *p)
{
    cli_session s = { .ctx = NULL };
    fa_selection selection;
    fa_status st = a->arch && a->device ? fa_fail(FA_INVALID, "--arch and --device contradict each other; accepted: one of them")
                   : a->arch            ? open_for(&s, c, a->arch)
                                        : cli_session_open(&s, c, &(cli_where){ .device = a->device });
    if (st == FA_OK && a->config) {
        st = cli_session_config(&s, p, a->config, &w->config);
        if (st == FA_OK)
            st = fa_render_in(s.ctx, p, &w->config, &w->source);
    } else if (st == FA_OK) {
        st = a->arch ? fa_select_jit(s.ctx, p, &selection, &w->source) : fa_select(s.ctx, p, &selection, &w->source);
        if (st == FA_OK)
            w->config = selection.config;
    }
    if (st == FA_OK) {
        snprintf(w->arch, sizeof w->arch, "%s", fa_context_arch(s.ctx)->name);
        w->ptx = !a->arch && fa_context_driver(s.ctx)->takes_ptx ? 1 : 0;
        st = fa_compiler_key(compiler, &w->source, w->arch, FA_IMAGE_LOADED(w->ptx), &w->key);
    }
    cli_session_close(&s);
    return st;
}

static json_t *path_or_null(const char *path)
{
    return path ? json_string(path) : json_null();
}

static int answer(cli *c, const fa_store *s, const wanted *w, const finding *f)
{
    char key[33], near_key[33], config[CLI_CONFIG_TEXT];
    cli_config_text(config, &w->config);
    fa_key_print(key, w->key);
    fa_key_print(near_key, f->near_key);
    if (c->json) {
        json_t *nearest = f->near && !f->there ? json_pack("{s:s,s:s,s:i,s:s,s:s}", "key", near_key, "path", f->near, "differences",
                                                           f->differences, "field", f->field, "says", f->sentence)
                                               : json_null();
        return cli_answer(c,
                          json_pack("{s:o,s:s,s:s,s:s,s:s,s:s,s:b,s:o,s:b,s:o,s:o,s:o,s:o,s:I}", "roots", cli_roots_json(s), "problem",
                                    w->metadata.problem, "config", config, "arch", w->arch, "kind", w->ptx ? "ptx" : "cubin", "key", key,
                                    "hit", f->there != NULL, "path", path_or_null(f->there), "loaded", f->loaded, "damaged",
                                    f->damaged ? json_string(f->damaged) : json_null(), "quarantined",
                                    path_or_null(f->set_aside ? f->aside : NULL), "foreign", path_or_null(f->set_aside ? NULL : f->aside),
                                    "nearest", nearest, "kernels", (json_int_t)f->n),
                          CLI_EXIT_OK);
    }
    cli_say(stdout, "%s\n%s\n%s for %s, key %s\n", w->metadata.problem, config, w->ptx ? "PTX" : "cubin", w->arch, key);
    if (f->there)
        cli_say(stdout, "hit: %s%s\n", f->there, f->loaded ? "" : "; it has not been loaded here yet");
    else
        fputs("miss: no sound kernel of this key\n", stdout);
    if (f->damaged)
        cli_say(stdout, "  %s: %s\n", f->damaged_path, f->damaged);
    if (f->aside)
        cli_say(stdout, "  %s: %s\n", f->aside,
                f->set_aside ? "set aside, because a process died while it was loaded"
                             : "imported, and not trusted: fagen cache import FILE --trust");
    if (!f->there && f->near)
        cli_say(stdout, "nearest of %zu: %s\n  differs in %d field%s, first in %s\n", f->told, f->near, f->differences,
                f->differences == 1 ? "" : "s", f->sentence);
    else if (!f->there)
        cli_say(stdout, f->n ? "%zu kernels are there, of which none says what its key was made of\n" : "the cache holds no other kernel\n",
                f->n);
    return CLI_EXIT_OK;
}

int cli_cache_why(cli *c, fa_store *s, const cache_args *a, const char *word)
{
    wanted w = { .ptx = 0 };
    fa_problem p;
    int code;
    (void)word;
    fa_compiler *compiler = fa_compiler_open(NULL);
    fa_status st = compiler ? cli_problem_options_read(&a->problem_options, &p) : fa_fail(FA_NOMEM, "no memory for a compiler");
    if (st == FA_OK)
        st = want_launched(&w, c, compiler, a, &p);
    if (st == FA_OK)
        st = fa_build_metadata(&w.metadata, compiler, &w.source, w.arch, FA_IMAGE_LOADED(w.ptx), (fa_subject){ &p, &w.config });
    if (st == FA_OK) {
        finding f = { .want = &w.metadata, .key = w.key };
        fa_scan(s, look, &f);
        code = answer(c, s, &w, &f);
        free(f.there);
        free(f.aside);
        free(f.damaged_path);
        free(f.near);
    } else {
        code = cli_fail(c, st);
    }
    fa_source_free(&w.source);
    fa_compiler_close(compiler);
    return code;
}
