/* key: a kernel of the disk cache: what it is, what it uses, whether the templates would still give it. */
#include "cache/record.h"
#include "cli/session/config_text.h"
#include "cli/text/say.h"
#include "cli/text/table.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "kernel_report.h"
#include "show.h"
#include <string.h>

enum { KEY_LEAST = 6, KEY_MOST = 32 };

bool show_is_key(const char *word)
{
    size_t n = strspn(word, "0123456789abcdef");
    return !word[n] && n >= KEY_LEAST && n <= KEY_MOST;
}

typedef struct search {
    const char *hex;
    fa_key key;
    char arch[12], path[512];
    size_t n;
} search;

static int match(void *user, const fa_entry *e, const char *path, const char *damaged)
{
    search *s = user;
    char key[33];
    fa_key_print(key, e->key);
    if (damaged || strncmp(key, s->hex, strlen(s->hex)))
        return 0;
    if (s->n && s->key.lo == e->key.lo && s->key.hi == e->key.hi) /* of another root */
        return 0;
    s->n++;
    s->key = e->key;
    snprintf(s->arch, sizeof s->arch, "%s", e->arch);
    snprintf(s->path, sizeof s->path, "%s", path);
    return 0;
}

static fa_status find(fa_store *store, const char *hex, search *s, fa_entry *out)
{
    *s = (search){ .hex = hex };
    fa_entry_each(store, match, s);
    if (s->n != 1)
        return fa_fail(
            FA_INVALID,
            "%s: %zu kernels of the cache have a key that begins so; accepted: the digits of one, as fagen cache ls --json tells them", hex,
            s->n);
    return fa_entry_get(store, s->key, s->arch, out) ? FA_OK : fa_fail(FA_IO, "%s: cannot be read", s->path);
}

/* Rendered again: whether it gives the key that the entry has. */
typedef struct again {
    fa_source source;
    bool same;
    char why[300];
} again;

static void render_again(const search *s, const fa_entry *e, const json_t *about, again *out)
{
    const char *problem = json_string_value(json_object_get(about, "problem")),
               *config = json_string_value(json_object_get(about, "config"));
    const fa_arch *arch = fa_arch_find(s->arch);
    fa_compiler *compiler = fa_compiler_open(NULL);
    fa_gen *g = NULL;
    fa_problem p;
    fa_config c;
    fa_key key;
    *out = (again){ .same = false };
    fa_status st = problem && config && arch && compiler ? FA_OK : fa_fail(FA_INVALID, "its description names no problem and config");
    if (st == FA_OK)
        st = fa_problem_parse(&p, problem);
    if (st == FA_OK)
        st = fa_config_parse(&c, config);
    if (st == FA_OK)
        st = cli_gen_open(&g);
    if (st == FA_OK)
        st = fa_render(g, &p, &c, arch, 0, &out->source);
    static const int kinds[] = { FA_IMAGE_STEPS, FA_IMAGE_CUBIN, FA_IMAGE_LEAN };
    for (size_t i = 0; st == FA_OK && i < sizeof kinds / sizeof *kinds && !out->same; i++) {
        st = fa_compiler_key(compiler, &out->source, s->arch, e->ptx | kinds[i], &key);
        out->same = st == FA_OK && key.lo == s->key.lo && key.hi == s->key.hi;
    }
    snprintf(out->why, sizeof out->why, "%s",
             st != FA_OK ? fa_last_error()
             : out->same ? ""
                         : "the text, the options or the compiler are others now");
    fa_gen_close(g);
    fa_compiler_close(compiler);
}

/* Each kernel that the compiler's log tells of. */
static json_t *resources(const fa_entry *e)
{
    static const char before[] = "entry function '";
    json_t *list = json_array();
    for (const char *p = e->log ? strstr(e->log, before) : NULL; p; p = strstr(p, before)) {
        char name[64];
        p += sizeof before - 1;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(p, "'"), p);
        fa_resources r = fa_resources_parse(e->log, name);
        if (r.known)
            json_array_append_new(list, json_pack("{s:s,s:i,s:i,s:i,s:s}", "entry", name, "registers", r.registers, "spill_stores",
                                                  r.spill_stores, "spill_loads", r.spill_loads, "note", r.note));
    }
    return list;
}

static const char *said(const json_t *about, const char *name)
{
    const char *s = json_string_value(json_object_get(about, name));
    return s ? s : "not told";
}

static void print(const search *s, const fa_entry *e, const json_t *about, const json_t *used, const again *r)
{
    char key[33];
    size_t i;
    json_t *k;
    fa_key_print(key, s->key);
    cli_say(stdout,
            "kernel     %s, %s for %s, %zu bytes\nfile       %s\nproblem    %s\nconfig     %s\ncompiled   %s by fagen %s, %s\noptions    ",
            key, e->ptx ? "PTX" : "a cubin", s->arch, e->image_size, s->path, said(about, "problem"), said(about, "config"),
            said(about, "date"), said(about, "fagen"), said(about, "compiler"));
    json_array_foreach(json_object_get(about, "options"), i, k) cli_say(stdout, "%s%s", i ? " " : "", json_string_value(k));
    putchar('\n');
    json_array_foreach(used, i, k)
        cli_say(stdout, "resources  %s: %d registers, %d + %d bytes spilled%s%s\n", said(k, "entry"),
                (int)json_integer_value(json_object_get(k, "registers")), (int)json_integer_value(json_object_get(k, "spill_stores")),
                (int)json_integer_value(json_object_get(k, "spill_loads")), said(k, "note")[0] ? "; " : "", said(k, "note"));
    cli_say(stdout, "today      %s%s\n", r->same ? "this fagen gives the same key" : "this fagen would not load it: ", r->why);
    if (json_object_get(about, "problem"))
        cli_say(stdout, "why it     fagen show --problem '%s'\n", said(about, "problem"));
}

static int image(cli *c, const show_args *a, const search *s, const fa_entry *e, const again *r)
{
    bool missing = false;
    fa_text t = { 0 };
    fa_status st = FA_OK;
    if (a->source && !r->same)
        st = fa_fail(FA_INVALID, "--source: the cache keeps no text, and %s; accepted: a key that this fagen gives", r->why);
    else if (a->source)
        fa_text_add(&t, r->source.text, r->source.text_size);
    else if (a->ptx != (e->ptx != 0))
        st = fa_fail(FA_INVALID, "--%s: %s is %s; accepted: --%s, or the problem in place of the key", a->ptx ? "ptx" : "sass", s->hex,
                     e->ptx ? "PTX" : "a cubin", e->ptx ? "ptx" : "sass");
    else if (a->ptx)
        fa_text_add(&t, e->image, e->image_size - 1);
    else
        st = cli_sass(e->image, e->image_size, &t, &missing);
    return show_form(c, a, st, &t, missing);
}

static void warn(void *user, const char *message)
{
    cli_note(user, "%s", message);
}

int show_key(cli *c, const show_args *a, const char *hex)
{
    search s;
    again r;
    fa_entry e = { .ptx = 0 };
    char key[33], config[CLI_CONFIG_TEXT];
    int code = CLI_EXIT_OK;
    fa_store *store = fa_store_open(NULL, warn, c);
    fa_status st = store ? find(store, hex, &s, &e) : fa_fail(FA_NOMEM, "no memory for the cache");
    fa_store_close(store);
    if (st != FA_OK)
        return cli_fail(c, st);
    json_t *about = e.metadata ? json_loadb(e.metadata, e.metadata_size, 0, NULL) : NULL, *used = resources(&e);
    render_again(&s, &e, about, &r);
    if (json_is_string(json_object_get(about, "config"))) /* the file has numbers for all values */
        json_object_set_new(about, "config", json_string(cli_config_named(config, said(about, "config"))));
    fa_key_print(key, s.key);
    if (a->source || a->ptx || a->sass)
        code = image(c, a, &s, &e, &r);
    else if (c->json)
        code = cli_answer(c,
                          json_pack("{s:s,s:s,s:s,s:b,s:I,s:O,s:O,s:b,s:s}", "key", key, "path", s.path, "arch", s.arch, "ptx", e.ptx,
                                    "bytes", (json_int_t)e.image_size, "about", about ? about : json_null(), "kernels", used, "same_today",
                                    r.same, "why", r.why),
                          CLI_EXIT_OK);
    else
        print(&s, &e, about, used, &r);
    json_decref(about);
    json_decref(used);
    fa_source_free(&r.source);
    fa_entry_free(&e);
    return code;
}
