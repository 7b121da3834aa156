/* hot: the host's part of a launch of decoding, whose keys and values are those of each layer of a model in turn. */
#include "autotune/device/samples.h"
#include "bench/dev/dev.h"
#include "cli/options/command.h"
#include "cli/session/no_launch.h"
#include "cli/session/session.h"
#include "cli/text/progress.h"
#include "cli/text/table.h"
#include "gen/error.h"
#include <stdlib.h>
#include <string.h>

typedef struct hot_args {
    cli_common common;
    cli_where where;
    int32_t layers, b, hq, hkv, keys, d, page, batches;
} hot_args;

#define FIELD(f) .at = offsetof(hot_args, f)
/* clang-format off */
static const cli_option options[] = {
    { .name = "layers", .type = &cli_int, FIELD(layers), .value = "N",
      .help = "caches that take turns", .preset = "80", .min = 1, .max = 1000 },
    { .name = "batch", .letter = 'b', .type = &cli_int, FIELD(b), .value = "B", .help = "sequences", .preset = "8", .min = 1, .max = 4096 },
    { .name = "heads", .letter = 'H', .type = &cli_int, FIELD(hq), .value = "H",
      .help = "query heads", .preset = "32", .min = 1, .max = 1024 },
    { .name = "kv-heads", .type = &cli_int, FIELD(hkv), .value = "H", .help = "key/value heads", .preset = "8", .min = 1, .max = 1024 },
    { .name = "keys", .type = &cli_int, FIELD(keys), .value = "N",
      .help = "keys of a sequence", .preset = "1024", .min = 1, .max = 1 << 20 },
    { .name = "head-dim", .letter = 'd', .type = &cli_int, FIELD(d), .value = "D",
      .help = "head_dim", .preset = "128", .min = 8, .max = 256 },
    { .name = "page", .type = &cli_int, FIELD(page), .value = "N", .help = "tokens of a page", .preset = "64", .min = 1, .max = 4096 },
    { .name = "samples", .type = &cli_int, FIELD(batches), .value = "N",
      .help = "samples of 1000 launches each", .preset = "45", .min = 1, .max = FA_SAMPLES_MAX },
    { .name = NULL },
};
/* clang-format on */
static const cli_group groups[] = { { "The model", options, 0 }, CLI_WHERE(hot_args), CLI_COMMON, { NULL, NULL, 0 } };

#define SAMPLE 1000 /* launches of one sample */
#define WARM 5      /* samples that do not count: they warm the host's caches */

typedef enum form { DENSE, LENT, LENGTHS, PAGES, FORMS } form; /* LENT: dense, with a workspace of the context */
static const char *const form_name[FORMS] = { "dense", "lent", "lengths", "pages" };

/* All in device memory; nothing is ever written to it or read from it but the counters, since no kernel runs. */
typedef struct memory {
    void *q, *o, *lengths, *table, *workspace, **kv; /* kv: k and v of each layer */
} memory;

static void give_back(fa_context *ctx, const hot_args *a, memory *m)
{
    void *one[] = { m->q, m->o, m->lengths, m->table, m->workspace };
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        fa_free(ctx, one[i]);
    for (int32_t i = 0; m->kv && i < 2 * a->layers; i++)
        fa_free(ctx, m->kv[i]);
    free(m->kv);
}

static int32_t row_pages(const hot_args *a)
{
    return (a->keys + a->page - 1) / a->page;
}

static fa_status take(fa_context *ctx, const hot_args *a, memory *m)
{
    size_t rows = (size_t)a->b, query = rows * (size_t)a->hq * (size_t)a->d * 2, pages = rows * (size_t)row_pages(a);
    struct {
        void **at;
        size_t bytes;
    } one[] = { { &m->q, query }, { &m->o, query }, { &m->lengths, rows * 4 }, { &m->table, pages * 4 } };
    fa_status st = FA_OK;
    m->kv = calloc(2 * (size_t)a->layers, sizeof *m->kv);
    if (!m->kv)
        return fa_fail(FA_NOMEM, "out of memory");
    for (size_t i = 0; i < sizeof one / sizeof *one && st == FA_OK; i++)
        st = fa_alloc(ctx, one[i].at, one[i].bytes);
    for (int32_t i = 0; i < 2 * a->layers && st == FA_OK; i++)
        st = fa_alloc(ctx, &m->kv[i], pages * (size_t)a->page * (size_t)a->hkv * (size_t)a->d * 2);
    return st;
}

static fa_args args_of(const hot_args *a, form f, const memory *m)
{
    fa_args g = FA_ARGS_INIT;
    g.dtype = FA_BF16;
    g.d = a->d;
    g.b = a->b;
    g.hq = a->hq;
    g.hkv = a->hkv;
    g.sq = 1;
    g.sk = a->keys;
    g.q.ptr = m->q;
    g.o.ptr = m->o;
    int64_t row = (int64_t)a->hkv * a->d;
    g.k = g.v = (fa_tensor){ NULL, (f == PAGES ? a->page : a->keys) * row, row, a->d };
    if (f >= LENGTHS)
        g.seqlens_k = m->lengths;
    if (f == PAGES) {
        g.page_table = m->table;
        g.page_table_stride = row_pages(a);
        g.page_size = a->page;
        g.pages = a->b * row_pages(a);
    }
    return g;
}

static fa_status launch(fa_context *ctx, fa_args *g, const memory *m, int32_t layer)
{
    g->k.ptr = m->kv[2 * layer];
    g->v.ptr = m->kv[2 * layer + 1];
    return fa_launch(ctx, g, NULL);
}

/* Times of a launch that hits, over the first `layers` caches in turn. */
static fa_status time_form(fa_context *ctx, const hot_args *a, form f, int32_t layers, memory *m, fa_samples *out)
{
    fa_args g = args_of(a, f, m);
    size_t bytes = 0;
    g.k.ptr = m->kv[0];
    g.v.ptr = m->kv[1];
    fa_status st = fa_workspace_size(ctx, &g, &bytes);
    fa_free(ctx, m->workspace);
    m->workspace = NULL;
    if (f == LENT)
        bytes = 0;
    if (st == FA_OK && bytes)
        st = fa_alloc(ctx, &m->workspace, bytes);
    if (st == FA_OK && bytes)
        st = fa_workspace_init(ctx, m->workspace, bytes, NULL);
    g.workspace = m->workspace;
    g.workspace_size = bytes;
    for (int i = 0; i < a->batches + WARM && st == FA_OK && !cli_interrupted(); i++) {
        double start = cli_clock();
        for (int32_t k = 0, layer = 0; k < SAMPLE && st == FA_OK; k++, layer = layer + 1 < layers ? layer + 1 : 0)
            st = launch(ctx, &g, m, layer);
        if (i >= WARM)
            fa_samples_add(out, (cli_clock() - start) / SAMPLE);
    }
    return st;
}

/* One row: what it took, or why it did not run. */
static void tell(cli_table *t, json_t *list, form f, int32_t layers, fa_status st, const fa_samples *s)
{
    json_t *row = json_pack("{s:s,s:i}", "form", form_name[f], "layers", layers);
    if (st == FA_OK) {
        json_object_set_new(row, "seconds", cli_json_number(fa_samples_median(s)));
        json_object_set_new(row, "spread", cli_json_number(fa_samples_spread(s)));
        json_object_set_new(row, "samples", json_integer(s->n));
        cli_table_cells(t, "%s\t%d\t%s\t%.1f %%\t%d\t", form_name[f], layers, cli_show_seconds(fa_samples_median(s)),
                        100 * fa_samples_spread(s), s->n);
    } else {
        json_object_set_new(row, "why", json_string(fa_last_error()));
        cli_table_cells(t, "%s\t%d\t-\t-\t-\t%s", form_name[f], layers, fa_last_error());
    }
    json_array_append_new(list, row);
}

static fa_status time_all(const cli_session *s, const hot_args *a, bool *failed, cli_table *table, json_t *list)
{
    cu_driver driver = cli_no_launch(fa_context_driver(s->ctx));
    fa_context *ctx = NULL;
    memory m = { .kv = NULL };
    fa_status st = cli_session_again(&ctx, s, &a->where, NULL, &driver);
    if (st == FA_OK)
        st = take(ctx, a, &m);
    for (form f = DENSE; f < FORMS && st == FA_OK && !cli_interrupted(); f++)
        for (int few = 1; few >= 0; few--) {
            int32_t layers = few ? 1 : a->layers;
            fa_samples t = { .n = 0 };
            fa_status one = time_form(ctx, a, f, layers, &m, &t);
            *failed = *failed || one != FA_OK;
            tell(table, list, f, layers, one, &t);
        }
    give_back(ctx, a, &m);
    fa_destroy(ctx);
    return st == FA_OK && cli_interrupted() ? fa_fail(FA_INTERRUPTED, "interrupted") : st;
}

static int run(cli *c, const void *args, int n, char **words)
{
    const hot_args *a = args;
    cli_session s;
    cli_table table;
    char chip[80];
    bool failed = false;
    (void)n, (void)words;
    cli_interrupt_watch();
    fa_status st = cli_session_open(&s, c, &a->where);
    if (st != FA_OK)
        return cli_fail(c, st);
    cli_table_open(&table, "what >layers >median >spread >samples why_not");
    json_t *list = json_array();
    st = time_all(&s, a, &failed, &table, list);
    json_t *doc = json_pack("{s:o,s:o}", "device", cli_session_json(&s), "hot", list);
    cli_session_chip(&s, chip, sizeof chip);
    cli_session_close(&s);
    int code = failed ? CLI_EXIT_USAGE : CLI_EXIT_OK;
    if (st != FA_OK || c->json)
        fa_text_free(&table.cells);
    if (st == FA_OK && c->json)
        return cli_answer(c, doc, code);
    json_decref(doc);
    if (st != FA_OK)
        return cli_fail(c, st);
    printf("the host's time before the driver's launch, beside %s\n", chip);
    cli_table_print(&table, c);
    return code;
}

const cli_command dev_hot = {
    .name = "hot",
    .summary = "times the host's part of a launch of decoding, over the caches of many layers",
    .usage = "[--layers N] [--batch B] [--keys N] [--page N]",
    .about =
        "One query row for each sequence, bf16: dense, dense with a workspace that the context lends, with lengths on the device, and with "
        "pages; the keys and values of one layer each time, then those of all layers in turn. The driver's own launch is left out, and no "
        "kernel runs. Exits 1 where a form is refused.",
    .examples = "fagen-dev hot --device cuda:0\nfagen-dev hot --layers 32 --batch 64 --json",
    .groups = groups,
    .size = sizeof(hot_args),
    .run = run,
};
