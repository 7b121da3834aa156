/* cache: what lies on disk. */
#include "cache/entry.h"
#include "cache/record.h"
#include "command.h"
#include "gen/error.h"
#include "table.h"
#include <string.h>

typedef struct cache_args {
    cli_common common;
} cache_args;
static const cli_group groups[] = { CLI_COMMON, { NULL, NULL, 0 } };

typedef struct listing {
    cli_table table;
    json_t *list;
    size_t n, damaged;
    double bytes;
} listing;

/* A string of the description that lies inside an entry; "" where it has none. */
static const char *about(const json_t *j, const char *name)
{
    const char *s = json_string_value(json_object_get(j, name));
    return s ? s : "";
}

static int add(void *user, const fa_entry *e, const char *path, const char *damaged)
{
    listing *l = user;
    char key[33];
    json_t *j = damaged || !e->about ? NULL : json_loadb(e->about, e->about_size, 0, NULL);
    fa_key_print(key, e->key);
    l->n++;
    l->damaged += damaged != NULL;
    l->bytes += (double)e->image_size;
    json_array_append_new(l->list, json_pack("{s:s,s:s,s:s,s:b,s:I,s:s,s:s,s:s,s:s,s:o}", "key", damaged ? "" : key, "path", path, "arch", damaged ? "" : e->arch,
                                             "ptx", e->ptx, "bytes", (json_int_t)e->image_size, "problem", about(j, "problem"), "config",
                                             about(j, "config"), "compiler", about(j, "compiler"), "date", about(j, "date"), "damaged",
                                             damaged ? json_string(damaged) : json_null()));
    cli_table_cell(&l->table, "%s", damaged ? "FAIL" : "OK");
    cli_table_cell(&l->table, "%s", damaged ? "" : e->arch);
    cli_table_cell(&l->table, "%s", e->ptx ? "ptx" : "cubin");
    cli_table_cell(&l->table, "%zu", e->image_size);
    cli_table_cell(&l->table, "%.10s", about(j, "date"));
    cli_table_cell(&l->table, "%s", damaged ? damaged : about(j, "problem"));
    cli_table_cell(&l->table, "%s", damaged ? path : about(j, "config"));
    json_decref(j);
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

static json_t *roots_json(const fa_store *s)
{
    json_t *roots = json_array();
    bool writable;
    const char *trouble, *path;
    for (size_t i = 0; (path = fa_store_root_at(s, i, &writable, &trouble)) != NULL; i++)
        json_array_append_new(roots, json_pack("{s:s,s:b,s:s}", "path", path, "writable", writable, "trouble", trouble ? trouble : ""));
    return roots;
}

static void warn(void *user, const char *message)
{
    cli_note(user, "%s", message);
}

static int list(cli *c)
{
    listing l = { .list = json_array() };
    size_t measured = 0, modelled = 0, failed = 0;
    bool writable;
    const char *trouble, *path;
    fa_store *s = fa_store_open(NULL, warn, c);
    if (!s) {
        json_decref(l.list);
        return cli_fail(c, fa_fail(FA_NOMEM, "no memory for the cache"));
    }
    cli_table_open(&l.table, "state arch kind >bytes date problem config");
    fa_entry_each(s, add, &l);
    fa_records rs = fa_records_load(s, NULL, NULL);
    json_t *records = count_records(&rs, &measured, &modelled, &failed);
    int code = CLI_EXIT_OK;
    if (c->json) {
        code = cli_answer(c, json_pack("{s:o,s:o,s:o,s:I,s:o}", "roots", roots_json(s), "kernels", l.list, "records", records, "damaged",
                                       (json_int_t)l.damaged, "bytes", cli_json_number(l.bytes)),
                          CLI_EXIT_OK);
        fa_text_free(&l.table.cells);
    } else {
        for (size_t i = 0; (path = fa_store_root_at(s, i, &writable, &trouble)) != NULL; i++)
            printf("%s (%s)%s%s\n", path, writable ? "read and write" : trouble && trouble[0] ? "not used" : "read only",
                   trouble && trouble[0] ? ": " : "", trouble && trouble[0] ? trouble : "");
        if (l.n)
            cli_table_print(&l.table, c);
        else
            fa_text_free(&l.table.cells);
        printf("%zu kernels, %s", l.n, cli_show_bytes(l.bytes));
        printf("%s; records: %zu measured, %zu by the model, %zu of failures\n", l.damaged ? ", some damaged: they are compiled anew when wanted" : "",
               measured, modelled, failed);
        json_decref(l.list);
        json_decref(records);
    }
    fa_records_free(&rs);
    fa_store_close(s);
    return code;
}

static int run(cli *c, const void *args, int n, char **words)
{
    (void)args;
    if (n == 0 || strcmp(words[0], "ls"))
        return cli_fail(c, fa_fail(FA_INVALID, "%s%.40s%s; accepted: ls", n ? "cache: unknown word \"" : "cache: what about it?", n ? words[0] : "",
                                   n ? "\"" : ""));
    return list(c);
}

const cli_command cli_cache = {
    .name = "cache", .summary = "what lies in the cache: kernels and records",
    .usage = "ls",
    .about = "ls lists every compiled kernel of every root of the search path (FAGEN_CACHE_DIR) with its problem and config, and counts the records. "
             "Deleting files of the cache is always safe: what is missing is made anew.",
    .examples = "fagen cache ls\nfagen cache ls --json",
    .groups = groups, .size = sizeof(cache_args), .words = 1, .run = run,
};
