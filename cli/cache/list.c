/* list: `fagen cache ls` and `fagen cache stat`. */
#include "cache.h"
#include "cache/metadata.h"
#include "cache/record.h"
#include "cli/session/config_text.h"
#include "cli/text/say.h"
#include "cli/text/table.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <string.h>

typedef struct listing {
    cli_table table;
    json_t *list;
    const char *const *archs;
    size_t n, damaged, aside;
    double bytes;
} listing;

static bool listed(const listing *l, const fa_entry *e)
{
    const char *const *a = l->archs;
    while (a && *a && strcmp(*a, e->arch))
        a++;
    return !a || *a;
}

/* A problem's text without what follows from the rest: dv as d, O in the type of Q, no mask, rows at 16 bytes. --problem reads either. */
static void brief_of(char *buf, size_t n, const char *text)
{
    fa_problem p;
    fa_message before;
    size_t at = 0;
    char usual[4][24] = { "mask=none", "align=16" };
    fa_message_keep(&before);
    if (fa_message_settle(&before, fa_problem_parse(&p, text)) != FA_OK) {
        snprintf(buf, n, "%s", text);
        return;
    }
    snprintf(usual[2], sizeof usual[2], "dv=%d", p.d);
    snprintf(usual[3], sizeof usual[3], "o=%s", fa_dtype_name(p.dtype));
    buf[0] = 0;
    for (const char *s = text; *s && at < n; s += *s == ',') {
        int len = (int)strcspn(s, ",");
        bool follows = false;
        for (int i = 0; i < 4; i++)
            follows = follows || ((int)strlen(usual[i]) == len && !strncmp(s, usual[i], (size_t)len));
        if (!follows)
            at += (size_t)snprintf(buf + at, n - at, "%s%.*s", at ? "," : "", len, s);
        s += len;
    }
}

static int add(void *user, const fa_item *i)
{
    listing *l = user;
    fa_entry e;
    fa_metadata a = { .problem = "" };
    char key[33] = "";
    const char *damaged = fa_item_read(i, &e, false), *state = damaged ? "FAIL" : i->area == FA_AREA_KERNELS ? "OK" : fa_area_name(i->area);
    if (!damaged)
        fa_metadata_parse(&a, e.metadata, e.metadata_size);
    if (i->named)
        fa_key_print(key, i->key);
    if (listed(l, &e)) {
        char config[CLI_CONFIG_TEXT], brief[sizeof a.problem];
        cli_config_named(config, a.config);
        brief_of(brief, sizeof brief, a.problem);
        l->n += i->area == FA_AREA_KERNELS;
        l->aside += i->area != FA_AREA_KERNELS;
        l->damaged += damaged != NULL;
        l->bytes += (double)e.image_size;
        json_array_append_new(l->list, json_pack("{s:s,s:s,s:s,s:s,s:b,s:b,s:I,s:I,s:s,s:s,s:s,s:s,s:s,s:o}", "key", key, "path", i->path,
                                                 "where", fa_area_name(i->area), "arch", e.arch, "ptx", e.ptx, "loaded", i->proved, "bytes",
                                                 (json_int_t)e.image_size, "file_bytes", (json_int_t)i->size, "used",
                                                 cli_show_time(i->used), "problem", a.problem, "config", config, "compiler", a.compiler,
                                                 "date", a.date, "damaged", damaged ? json_string(damaged) : json_null()));
        cli_table_cells(&l->table, "%.12s\t%s\t%s\t%s\t%zu\t%.10s\t%s\t%s", key[0] ? key : "?", state, e.arch,
                        damaged ? ""
                        : e.ptx ? "ptx"
                                : "cubin",
                        e.image_size, i->used ? cli_show_time(i->used) : "?", damaged ? damaged : brief, damaged ? i->path : config);
    }
    fa_entry_free(&e);
    return 0;
}

/* Records by outcome and kind. */
static json_t *count_records(const fa_records *rs, size_t *measured, size_t *modelled, size_t *failed)
{
    for (size_t i = 0; i < rs->n; i++) {
        *failed += rs->r[i].outcome != FA_RAN;
        *measured += rs->r[i].outcome == FA_RAN && rs->r[i].how == FA_MEASURED;
        *modelled += rs->r[i].outcome == FA_RAN && rs->r[i].how == FA_MODELLED;
    }
    return json_pack("{s:I,s:I,s:I}", "measured", (json_int_t)*measured, "model", (json_int_t)*modelled, "failed", (json_int_t)*failed);
}

static void print_root(const fa_store *s, size_t i)
{
    bool writable;
    const char *trouble, *path = fa_store_root_at(s, i, &writable, &trouble);
    cli_say(stdout, "%s (%s)%s%s\n", path,
            writable                ? "read and write"
            : trouble && trouble[0] ? "not used"
                                    : "read only",
            trouble && trouble[0] ? ": " : "", trouble && trouble[0] ? trouble : "");
}

int cli_cache_ls(cli *c, fa_store *s, const cache_args *args, const char *word)
{
    const char *archs[CLI_LIST_MAX + 1];
    listing l = { .n = 0 };
    size_t measured = 0, modelled = 0, failed = 0;
    int code = CLI_EXIT_OK;
    (void)word;
    fa_status st = cli_cache_archs(args->arch, archs, &l.archs);
    if (st != FA_OK)
        return cli_fail(c, st);
    l.list = json_array();
    cli_table_open(&l.table, "key state arch kind >bytes used problem config");
    fa_scan(s, add, &l);
    fa_records rs = fa_records_load(s, NULL, NULL);
    json_t *records = count_records(&rs, &measured, &modelled, &failed);
    if (c->json) {
        code = cli_answer(c,
                          json_pack("{s:o,s:o,s:o,s:I,s:o}", "roots", cli_roots_json(s), "kernels", l.list, "records", records, "damaged",
                                    (json_int_t)l.damaged, "bytes", cli_json_number(l.bytes)),
                          CLI_EXIT_OK);
        fa_text_free(&l.table.cells);
    } else {
        for (size_t i = 0; fa_store_root_at(s, i, NULL, NULL); i++)
            print_root(s, i);
        if (l.n + l.aside)
            cli_table_print(&l.table, c);
        else
            fa_text_free(&l.table.cells);
        cli_say(stdout, "%zu kernels, %s", l.n, cli_show_bytes(l.bytes));
        if (l.aside)
            cli_say(stdout, ", %zu set aside", l.aside);
        cli_say(stdout, "%s; records: %zu measured, %zu by the model, %zu of failures\n",
                l.damaged ? ", some damaged: they are compiled again when wanted" : "", measured, modelled, failed);
        json_decref(l.list);
        json_decref(records);
    }
    fa_records_free(&rs);
    return code;
}

/* Of one root. */
typedef struct tally {
    size_t n[FA_AREAS], loaded, files, lines, bad;
    int64_t bytes[FA_AREAS];
    int64_t oldest; /* ns; of kernels/; 0 = none */
    int64_t record_bytes;
    char last[256]; /* the file of records before */
} tally;

typedef struct tallies {
    tally *t;
    size_t n;
} tallies;

static int count_item(void *user, const fa_item *i)
{
    tallies *all = user;
    tally *t = &all->t[i->root];
    t->n[i->area]++;
    t->bytes[i->area] += i->size;
    t->loaded += i->area == FA_AREA_KERNELS && i->proved;
    if (i->area == FA_AREA_KERNELS && (!t->oldest || i->used < t->oldest))
        t->oldest = i->used;
    return 0;
}

static void count_line(void *user, const fa_record_line *line)
{
    tallies *all = user;
    tally *t = &all->t[line->root];
    char file[256];
    snprintf(file, sizeof file, "%s/%s", line->chip, line->file);
    t->files += strcmp(file, t->last) != 0;
    memcpy(t->last, file, sizeof file);
    t->lines += line->record != NULL;
    t->bad += line->record == NULL;
    t->record_bytes += (int64_t)line->size;
}

static json_t *tally_json(const fa_store *s, size_t root, const tally *t)
{
    bool writable;
    const char *trouble, *path = fa_store_root_at(s, root, &writable, &trouble);
    json_t *o = json_pack("{s:s,s:b,s:s,s:I,s:o,s:{s:I,s:I,s:I,s:I}}", "path", path, "writable", writable, "trouble",
                          trouble ? trouble : "", "loaded", (json_int_t)t->loaded, "oldest",
                          t->oldest ? json_string(cli_show_time(t->oldest)) : json_null(), "records", "files", (json_int_t)t->files,
                          "lines", (json_int_t)t->lines, "unreadable", (json_int_t)t->bad, "bytes", (json_int_t)t->record_bytes);
    for (int b = 0; b < FA_AREAS; b++)
        json_object_set_new(o, fa_area_name((fa_area)b),
                            json_pack("{s:I,s:I}", "files", (json_int_t)t->n[b], "bytes", (json_int_t)t->bytes[b]));
    return o;
}

static void print_tally(const tally *t)
{
    cli_say(stdout, "  kernels     %zu, %s; %zu were loaded here without harm", t->n[FA_AREA_KERNELS],
            cli_show_bytes((double)t->bytes[FA_AREA_KERNELS]), t->loaded);
    if (t->oldest)
        cli_say(stdout, "; longest unused since %.10s", cli_show_time(t->oldest));
    cli_say(stdout, "\n  foreign     %zu, %s: imported and not trusted\n", t->n[FA_AREA_FOREIGN],
            cli_show_bytes((double)t->bytes[FA_AREA_FOREIGN]));
    cli_say(stdout, "  quarantine  %zu, %s: loading them killed a process\n", t->n[FA_AREA_QUARANTINE],
            cli_show_bytes((double)t->bytes[FA_AREA_QUARANTINE]));
    cli_say(stdout, "  records     %zu in %zu files, %s", t->lines, t->files, cli_show_bytes((double)t->record_bytes));
    cli_say(stdout, t->bad ? "; %zu lines are torn or not known, and skipped\n" : "\n", t->bad);
}

int cli_cache_stat(cli *c, fa_store *s, const cache_args *args, const char *word)
{
    size_t n = 0;
    int code = CLI_EXIT_OK;
    (void)args, (void)word;
    while (fa_store_root_at(s, n, NULL, NULL))
        n++;
    tallies all = { calloc(n + 1, sizeof(tally)), n };
    if (!all.t)
        return cli_fail(c, fa_fail(FA_NOMEM, "no memory for %zu roots", n));
    fa_scan(s, count_item, &all);
    fa_records_each(s, NULL, NULL, count_line, &all);
    if (c->json) {
        json_t *roots = json_array();
        for (size_t i = 0; i < n; i++)
            json_array_append_new(roots, tally_json(s, i, &all.t[i]));
        code = cli_answer(c, json_pack("{s:o,s:I}", "roots", roots, "limit", (json_int_t)fa_store_limit(s)), CLI_EXIT_OK);
    } else {
        for (size_t i = 0; i < n; i++) {
            print_root(s, i);
            print_tally(&all.t[i]);
        }
        if (!n)
            fputs("no cache\n", stdout);
        cli_say(stdout, "kernels may take %s: what was used longest ago goes when a new one exceeds it (fa_options.cache_limit)\n",
                cli_show_bytes((double)fa_store_limit(s)));
    }
    free(all.t);
    return code;
}
