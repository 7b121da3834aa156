/* upkeep: `fagen cache verify`, `prune`, `export` and `import`. */
#include "cache.h"
#include "cache/archive.h"
#include "cache/metadata.h"
#include "cache/prune.h"
#include "cache/record_text.h"
#include "cli/text/say.h"
#include "gen/error.h"
#include <string.h>
#include <sys/stat.h>
#include <time.h>

typedef struct checking {
    cli *c;
    fa_store *store;
    json_t *list;
    bool repair;
    size_t files, damaged, removed, lines, bad;
} checking;

static void found(checking *k, const char *path, const char *why, bool removed)
{
    k->damaged++;
    k->removed += removed;
    json_array_append_new(k->list, json_pack("{s:s,s:s,s:b}", "path", path, "damaged", why, "removed", removed));
    if (!k->c->json)
        cli_say(stdout, "%s: %s%s\n", path, why, removed ? ": removed" : "");
}

static int check_item(void *user, const fa_item *i)
{
    checking *k = user;
    fa_entry e;
    fa_metadata a;
    k->files++;
    const char *damaged = fa_item_read(i, &e, false);
    if (!damaged && fa_metadata_parse(&a, e.metadata, e.metadata_size) && a.whole) {
        fa_key key = fa_metadata_key(&a);
        if (key.lo != e.key.lo || key.hi != e.key.hi)
            damaged = "its key does not follow from its description";
    }
    /* what stands for a kernel of a root that is only read is empty */
    if (damaged && i->area == FA_AREA_QUARANTINE && i->size == 0)
        damaged = NULL;
    if (damaged)
        found(k, i->path, damaged, k->repair && fa_item_remove(i));
    fa_entry_free(&e);
    return 0;
}

static void check_line(void *user, const fa_record_line *line)
{
    checking *k = user;
    char path[1200];
    k->lines++;
    if (line->record)
        return;
    snprintf(path, sizeof path, "%s/v1/records/%s/%s", fa_store_root_at(k->store, line->root, NULL, NULL), line->chip, line->file);
    if (!line->text) {
        found(k, path, line->trouble, false);
        return;
    }
    k->bad++;
    if (!k->c->json)
        cli_say(stdout, "%s:%zu: no record that this version knows: skipped\n", path, line->number);
}

int cli_cache_verify(cli *c, fa_store *s, const cache_args *a, const char *word)
{
    checking k = { .c = c, .store = s, .list = json_array(), .repair = a->repair };
    (void)word;
    fa_scan(s, check_item, &k);
    fa_records_each(s, NULL, NULL, check_line, &k);
    int code = k.damaged > k.removed ? CLI_EXIT_WRONG : CLI_EXIT_OK;
    if (c->json)
        return cli_answer(c,
                          json_pack("{s:o,s:I,s:I,s:I,s:I,s:I,s:o}", "roots", cli_roots_json(s), "files", (json_int_t)k.files, "damaged",
                                    (json_int_t)k.damaged, "removed", (json_int_t)k.removed, "lines", (json_int_t)k.lines,
                                    "unreadable_lines", (json_int_t)k.bad, "found", k.list),
                          code);
    json_decref(k.list);
    cli_say(stdout, "%zu kernels read: %zu damaged, %zu removed; %zu lines of records read: %zu skipped\n", k.files, k.damaged, k.removed,
            k.lines, k.bad);
    if (code)
        cli_note(c, "--repair removes what is damaged, where the root can be written; none of it is ever loaded");
    return code;
}

typedef struct gone {
    cli *c;
    json_t *list;
} gone;

static void tell(void *user, const char *path, int64_t size)
{
    const gone *g = user;
    json_array_append_new(g->list, json_pack("{s:s,s:I}", "path", path, "bytes", (json_int_t)size));
    if (!g->c->json)
        cli_say(stdout, "%s  %s\n", path, cli_show_bytes((double)size));
}

int cli_cache_prune(cli *c, fa_store *s, const cache_args *a, const char *word)
{
    const char *archs[CLI_LIST_MAX + 1];
    gone g = { .c = c };
    fa_prune p = { .to = a->to, .dry_run = a->dry_run };
    fa_pruned out;
    (void)word;
    fa_status st = cli_cache_archs(a->arch, archs, &p.archs);
    if (st == FA_OK && !a->arch && !(a->older > 0) && a->to < 0)
        st =
            fa_fail(FA_INVALID, "prune: what goes? accepted: --older AGE, --to SIZE, --arch ARCH, or several; --to 0 removes every kernel");
    if (st == FA_OK && !fa_store_root(s))
        st = fa_fail(FA_IO, "there is no cache root that can be written; FAGEN_CACHE_DIR names one");
    if (st != FA_OK)
        return cli_fail(c, st);
    if (a->older > 0)
        p.before = (int64_t)((double)time(NULL) - a->older) * 1000000000;
    g.list = json_array();
    if (!fa_prune_run(s, &p, tell, &g, &out)) {
        json_decref(g.list);
        return cli_fail(c, fa_fail(FA_NOMEM, "no memory for the list of files"));
    }
    if (c->json)
        return cli_answer(c,
                          json_pack("{s:s,s:b,s:I,s:I,s:I,s:I,s:o}", "root", fa_store_root(s), "dry_run", a->dry_run, "removed",
                                    (json_int_t)out.n, "bytes", (json_int_t)out.bytes, "left", (json_int_t)out.left, "left_bytes",
                                    (json_int_t)out.left_bytes, "files", g.list),
                          CLI_EXIT_OK);
    json_decref(g.list);
    cli_say(stdout, "%zu kernels %s, %s; ", out.n, a->dry_run ? "would go" : "removed", cli_show_bytes((double)out.bytes));
    cli_say(stdout, "%zu left, %s\n", out.left, cli_show_bytes((double)out.left_bytes));
    return CLI_EXIT_OK;
}

static int export_text(cli *c, const cache_args *a, const char *word, bool to_stdout)
{
    fa_status st = c->json && to_stdout
                       ? fa_fail(FA_INVALID, "--json and records that go to \"-\" both want standard output; accepted: one "
                                             "of them")
                       : cli_cache_tell_records(c, a, word);
    if (st != FA_OK)
        return cli_fail(c, st);
    if (c->json)
        return cli_answer(c, json_pack("{s:s}", "output", word), CLI_EXIT_OK);
    if (!to_stdout || !c->quiet)
        cli_say(to_stdout ? stderr : stdout, "wrote %s\n", word);
    return CLI_EXIT_OK;
}

int cli_cache_export(cli *c, fa_store *s, const cache_args *a, const char *word)
{
    const char *archs[CLI_LIST_MAX + 1];
    const char *const *list;
    fa_archive_count n;
    bool to_stdout = !strcmp(word, "-");
    fa_status st = cli_cache_archs(a->arch, archs, &list);
    if (st == FA_OK && a->only_records)
        return export_text(c, a, word, to_stdout);
    if (st == FA_OK && c->json && to_stdout)
        st = fa_fail(FA_INVALID, "--json and an archive that goes to \"-\" both want standard output; accepted: one of them");
    if (st == FA_OK && list && (!list[0] || list[1]))
        st = fa_fail(FA_INVALID, "--arch is \"%.60s\"; accepted by export: one arch, or none for all", a->arch);
    if (st == FA_OK)
        st = fa_archive_export(s, word, list ? list[0] : NULL, a->records, &n);
    if (st != FA_OK)
        return cli_fail(c, st);
    if (c->json)
        return cli_answer(c,
                          json_pack("{s:s,s:I,s:I,s:I,s:I}", "output", word, "kernels", (json_int_t)n.entries, "records",
                                    (json_int_t)n.lines, "skipped", (json_int_t)n.skipped, "bytes", (json_int_t)n.bytes),
                          CLI_EXIT_OK);
    if (to_stdout && c->quiet)
        return CLI_EXIT_OK;
    FILE *to = to_stdout ? stderr : stdout;
    cli_say(to, "wrote %s: %zu kernels, %zu records, %s", word, n.entries, n.lines, cli_show_bytes((double)n.bytes));
    cli_say(to, n.skipped ? "; %zu kernels left out: damaged, or made by an older fagen\n" : "\n", n.skipped);
    return CLI_EXIT_OK;
}

/* Whether the file is a text of records; what cannot be read is not. */
static bool is_text(const char *path)
{
    char bytes[32];
    struct stat st;
    FILE *f = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "rbe") : NULL; /* a FIFO would hold it */
    size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f)
        fclose(f);
    return fa_record_text_begins(bytes, n);
}

/* Of records that went through fa_records_import(). */
static void tell_records(const fa_records_count *r)
{
    cli_say(
        stdout,
        "%d records: %d verified and added, %d there already, %d measured here, %d slower than these, %d wrong here, %d of other chips\n",
        r->records, r->added, r->there, r->measured, r->slower, r->wrong, r->elsewhere);
}

int cli_cache_import(cli *c, fa_store *s, const cache_args *a, const char *word)
{
    fa_archive_count n = { .bytes = 0 };
    fa_records_count r = FA_RECORDS_COUNT_INIT;
    bool text = is_text(word), checked = text || !a->trust;
    fa_status st = text && a->trust ? fa_fail(FA_INVALID, "--trust: %s holds no kernels; accepted: an archive beside it", word) : FA_OK;
    if (st == FA_OK && checked)
        st = cli_cache_take_records(c, a, word, !text, &r);
    if (st == FA_OK && !text)
        st = fa_archive_import(s, word, a->trust, a->trust, &n);
    if (st != FA_OK)
        return cli_fail(c, st);
    if (c->json)
        return cli_answer(c,
                          json_pack("{s:s,s:s,s:b,s:I,s:I,s:I,s:I,s:i,s:i,s:i,s:i}", "input", word, "root", fa_store_root(s), "trusted",
                                    a->trust, "kernels", (json_int_t)n.entries, "kernels_there", (json_int_t)n.entries_there, "records",
                                    (json_int_t)n.lines + r.added, "records_there", (json_int_t)n.lines_there + r.there, "records_measured",
                                    r.measured, "records_slower", r.slower, "records_wrong", r.wrong, "records_elsewhere", r.elsewhere),
                          CLI_EXIT_OK);
    if (!text)
        cli_say(stdout, "%s: %zu kernels new, %zu there already", fa_store_root(s), n.entries, n.entries_there);
    if (!text && a->trust)
        cli_say(stdout, "; %zu records new, %zu there already", n.lines, n.lines_there);
    if (!text)
        cli_say(stdout, "\n");
    if (checked && (text || r.records))
        tell_records(&r);
    if (n.entries && !a->trust)
        cli_note(c,
                 "the kernels were kept aside and are not loaded: whoever made %s decides what they do to the GPU. "
                 "Once you trust it: fagen cache import %s --trust",
                 word, word);
    return CLI_EXIT_OK;
}
