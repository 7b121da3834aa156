/* bench: times on the device, of fagen's kernel and of those kept for comparison; what each does on the simulator; or the host's part of a
 * launch. */
#include "autotune/device/measure.h"
#include "cli/options/problem_list.h"
#include "cli/options/usual_shape.h"
#include "cli/session/config_text.h"
#include "cli/session/counts.h"
#include "cli/session/no_launch.h"
#include "cli/session/ranking.h"
#include "cli/session/session.h"
#include "cli/session/simulated_time.h"
#include "cli/session/simulator.h"
#include "cli/text/progress.h"
#include "cli/text/say.h"
#include "cli/text/table.h"
#include "commands.h"
#include "gen/error.h"
#include "gen/model.h"
#include "gen/problem.h"
#include "verify/operands/tensors.h"
#include "verify/operands/work.h"
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct bench_args {
    cli_common common;
    cli_where where;
    cli_sim sim;
    cli_problem_lists lists;
    int32_t samples, lengths;
    const char *systems;
    bool host, counts;
} bench_args;

#define FIELD(f) .at = offsetof(bench_args, f)
/* clang-format off */
static const cli_option options[] = {
    { .name = "samples", .type = &cli_int, FIELD(samples), .value = "N",
      .help = "samples of each time, at least 200 us each", .preset = "20", .min = 3,
      .max = FA_SAMPLES_MAX },
    CLI_LENGTHS_ROW(offsetof(bench_args, lengths)),
    { .name = "systems", .type = &cli_text, FIELD(systems), .value = "LIST",
      .help = "families beside fagen's kernel: all that are kept for comparison, none, or names", .preset = "all" },
    { .name = "counts", FIELD(counts), .help = "what the simulator of the chip counts, instead of times; on a simulator the default" },
    { .name = "host", FIELD(host), .help = "the host's time: a first launch cold and warm, and a launch that hits" },
    { .name = NULL },
};
/* clang-format on */
static const cli_group groups[] = { CLI_PROBLEM_LISTS(bench_args,
                                                      "Problems: every combination of the lists (default: " CLI_SHAPE_OF_GPU(
                                                          CLI_SHAPE_TEXT) "; on the simulator " CLI_SHAPE_OF_SIMULATOR(CLI_SHAPE_TEXT) ")"),
                                    { "What is done", options, 0 },
                                    CLI_WHERE(bench_args),
                                    CLI_SIM(bench_args),
                                    CLI_COMMON,
                                    { NULL, NULL, 0 } };

/* What holds where the lists say nothing. */

typedef struct bench {
    cli *c;
    const bench_args *a;
    cli_session *s;
    cli_table table;
    json_t *list;
    fa_context *sim; /* of --counts */
    fa_gen *g;
    cli_systems systems;
} bench;

static fa_status measure(bench *b, const fa_problem *p, const fa_plan *plan, fa_samples *t, fa_work *w)
{
    fa_bench *on = NULL;
    fa_sequences s = { .of = NULL };
    int launches = 0;
    *t = (fa_samples){ .n = 0 };
    *w = (fa_work){ .flops = 0 };
    fa_status st = fa_bench_open(&on, b->s->ctx, p, b->a->lengths);
    for (int i = 0; i < b->a->samples && st == FA_OK; i++)
        st = fa_bench_sample(on, plan, &launches, t);
    if (st == FA_OK)
        st = fa_bench_sequences(on, &s);
    if (st == FA_OK)
        *w = fa_work_of(p, &s);
    fa_sequences_close(&s);
    fa_bench_close(on);
    return st;
}

/* A system's time; false when it has no memory or no kernel: that is part of the answer. */
static bool time_system(bench *b, const fa_problem *p, const char *family, fa_samples *t)
{
    const fa_plan *plan = NULL;
    fa_work w;
    return cli_systems_plan(b->s->ctx, b->g, p, family, &plan) && measure(b, p, plan, t, &w) == FA_OK;
}

/* The table's row of a kernel; times: how much longer it takes than fagen's, 0 = it is fagen's. */
static void time_row(bench *b, const char *kernel, const fa_samples *t, const fa_work *w, double times, const char *by, const char *problem)
{
    double seconds = fa_samples_median(t);
    cli_table_cells(&b->table, "%s\t%s\t%.1f %%\t%.1f\t%.0f\t%s\t%s\t%s", kernel, cli_show_seconds(seconds), 100 * fa_samples_spread(t),
                    w->flops / seconds / 1e12, w->kv_bytes / seconds / 1e9, cli_show_if(times > 0, "%.1fx", times), by, problem);
}

static fa_status time_one(bench *b, const fa_problem *p)
{
    fa_samples ours = { .n = 0 }, theirs;
    char text[FA_PROBLEM_TEXT];
    fa_work w;
    fa_status st = measure(b, p, NULL, &ours, &w);
    if (st != FA_OK)
        return st;
    fa_selection selection;
    char config[512];
    st = fa_select(b->s->ctx, p, &selection, NULL);
    if (st != FA_OK)
        return st;
    cli_config_text(config, &selection.config);
    double t = fa_samples_median(&ours);
    fa_problem_print(text, sizeof text, p);
    time_row(b, "fagen", &ours, &w, 0, selection.where, text);
    json_t *others = json_object();
    for (int i = 0; i < b->systems.n && !cli_interrupted(); i++) {
        if (!time_system(b, p, b->systems.name[i], &theirs))
            continue;
        double its = fa_samples_median(&theirs);
        time_row(b, b->systems.name[i], &theirs, &w, its / t, "model", text);
        json_object_set_new(others, b->systems.name[i],
                            json_pack("{s:o,s:o,s:o,s:o,s:o}", "seconds", cli_json_number(its), "spread",
                                      cli_json_number(fa_samples_spread(&theirs)), "tflops", cli_json_number(w.flops / its / 1e12),
                                      "kv_gbs", cli_json_number(w.kv_bytes / its / 1e9), "speedup", cli_json_number(its / t)));
    }
    json_array_append_new(
        b->list,
        json_pack("{s:s,s:s,s:s,s:s,s:o,s:o,s:i,s:o,s:o,s:o,s:o}", "problem", text, "config", config, "from", selection.where, "why",
                  selection.why, "seconds", cli_json_number(t), "spread", cli_json_number(fa_samples_spread(&ours)), "samples", ours.n,
                  "tflops", cli_json_number(w.flops / t / 1e12), "kv_gbs", cli_json_number(w.kv_bytes / t / 1e9), "lengths",
                  p->features & FA_FEATURE_LENGTHS ? json_string(cli_spread_name(b->a->lengths)) : json_null(), "systems", others));
    return FA_OK;
}

static fa_status count_one(bench *b, const fa_problem *p)
{
    return cli_counts_add(b->sim, b->g, p, b->a->lengths, &b->systems, &b->table, b->list);
}

/* Every problem of the lists. */
static fa_status each(bench *b, fa_status (*one)(bench *b, const fa_problem *p))
{
    cli_problem_list list;
    cli_progress bar = { .c = b->c };
    fa_status st = cli_problem_list_make(&list, &b->a->lists, b->sim ? &cli_lists_of_simulator : &cli_lists_of_gpu);
    for (size_t i = 0; i < list.n && st == FA_OK && b->sim; i++)
        st = cli_simulated_time(b->c, b->s, &list.row[i].problem, b->systems.n);
    for (size_t i = 0; i < list.n && st == FA_OK && !cli_interrupted(); i++) {
        const fa_problem *p = &list.row[i].problem;
        char line[96];
        snprintf(line, sizeof line, "bench d=%d sq=%d sk=%d", p->d, p->sq, p->sk);
        cli_progress_tell(&bar, line, (double)i / (double)list.n);
        st = one(b, p);
    }
    cli_progress_end(&bar);
    cli_problem_list_free(&list);
    return st == FA_INTERRUPTED && cli_interrupted() ? FA_OK : st; /* what was done before it is the answer */
}

static int bench_device(cli *c, const bench_args *a, cli_session *s)
{
    bench b = { .c = c, .a = a, .s = s, .list = json_array() };
    char chip[80];
    cli_table_open(&b.table, "kernel >time >spread >TFLOP/s >GB/s_of_K,V >as_long config_by problem");
    fa_status st = fa_gen_open(&b.g, fa_context_template_dir(s->ctx));
    if (st == FA_OK)
        st = cli_systems_of(&b.systems, b.g, FA_FORWARD, a->systems);
    if (st == FA_OK)
        st = each(&b, time_one);
    fa_gen_close(b.g);
    int code = st != FA_OK ? cli_fail(c, st) : cli_interrupted() ? CLI_EXIT_INTERRUPTED : CLI_EXIT_OK;
    if (c->json && st == FA_OK)
        return cli_answer(c, json_pack("{s:o,s:b,s:o}", "device", cli_session_json(s), "interrupted", cli_interrupted(), "times", b.list),
                          code);
    if (!c->json && b.table.rows) {
        cli_say(stdout, "%s, median of %d samples, inputs cold in L2\n", cli_session_chip(s, chip, sizeof chip), a->samples);
        cli_table_print(&b.table, c);
    } else {
        fa_text_free(&b.table.cells);
    }
    json_decref(b.list);
    return code;
}

/* On the simulator of the session's chip: the session's own, or one beside the GPU. */
static int bench_counts(cli *c, const bench_args *a, cli_session *s)
{
    bench b = { .c = c, .a = a, .s = s, .list = json_array() };
    sim_options o = { .threads = (int)sysconf(_SC_NPROCESSORS_ONLN) };
    const cu_driver *sim = s->simulated ? fa_context_driver(s->ctx) : sim_open(fa_context_arch(s->ctx)->name);
    fa_entered in = { .pushed = false };
    fa_options on = FA_OPTIONS_INIT;
    on.sram_budget = a->where.sram;
    fa_status st = sim ? fa_create_on(&b.sim, &on, sim, s->simulated ? fa_context_device(s->ctx)->ordinal : 0)
                       : fa_fail(FA_UNSUPPORTED, "--counts: there is no simulator of %s", fa_context_arch(s->ctx)->name);
    if (st == FA_OK)
        st = fa_context_enter(b.sim, &in);
    if (st == FA_OK)
        st = fa_gen_open(&b.g, fa_context_template_dir(b.sim));
    if (st == FA_OK)
        st = cli_systems_of(&b.systems, b.g, FA_FORWARD, a->systems);
    if (st == FA_OK)
        st = cli_sim_set(&a->sim, true, &o);
    sim_set_options(&o);
    cli_table_open(&b.table, CLI_COUNTS_HEADS);
    if (st == FA_OK)
        st = each(&b, count_one);
    fa_gen_close(b.g);
    if (b.sim)
        fa_context_leave(b.sim, &in);
    int code = st != FA_OK ? cli_fail(c, st) : cli_interrupted() ? CLI_EXIT_INTERRUPTED : CLI_EXIT_OK;
    if (!c->json && st == FA_OK && b.table.rows) {
        cli_say(stdout, "%s, what one launch does on the simulator; a simulator has no times\n", fa_context_arch(b.sim)->name);
        cli_table_print(&b.table, c);
    } else {
        fa_text_free(&b.table.cells);
    }
    if (c->json && st == FA_OK)
        code = cli_answer(c,
                          json_pack("{s:o,s:s,s:b,s:O}", "device", cli_session_json(s), "simulator", fa_context_arch(b.sim)->name,
                                    "interrupted", cli_interrupted(), "counts", b.list),
                          code);
    fa_destroy(b.sim);
    json_decref(b.list);
    cli_sim_tell(c, &a->sim);
    return code;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

#define HOST_REPEATS 5 /* of the cold and warm first launches */
#define HOT_BATCH 1000 /* launches of one sample */

typedef struct host_times {
    fa_samples cold, warm, hot;
} host_times;

/* A first launch in a fresh context on a cache directory that is empty (cold) or filled (warm), up to the driver's launch. */
static fa_status first_launch(const cli_session *s, const cli_where *w, const char *cache, const cu_driver *driver, const fa_args *args,
                              fa_samples *t, fa_context **keep)
{
    fa_context *ctx = NULL;
    fa_status st = cli_session_again(&ctx, s, w, cache, driver);
    double start = cli_clock();
    if (st == FA_OK)
        st = fa_launch(ctx, args, NULL);
    if (st == FA_OK)
        fa_samples_add(t, cli_clock() - start);
    if (keep && st == FA_OK)
        *keep = ctx;
    else
        fa_destroy(ctx);
    return st;
}

static fa_status time_host(const cli_session *s, const bench_args *a, const fa_tensors *t, host_times *out)
{
    cu_driver driver = cli_no_launch(fa_context_driver(s->ctx));
    fa_context *hot = NULL;
    fa_status st = FA_OK;
    for (int i = 0; i < HOST_REPEATS && st == FA_OK && !cli_interrupted(); i++) {
        char dir[] = "/tmp/fagen-bench-XXXXXX";
        if (!mkdtemp(dir))
            return fa_fail(FA_IO, "/tmp: no directory can be made there");
        st = first_launch(s, &a->where, dir, &driver, &t->args, &out->cold, NULL);
        if (st == FA_OK)
            st = first_launch(s, &a->where, dir, &driver, &t->args, &out->warm, i == HOST_REPEATS - 1 ? &hot : NULL);
        nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    for (int i = 0; i < 50 && st == FA_OK && hot && !cli_interrupted(); i++) {
        double start = cli_clock();
        for (int k = 0; k < HOT_BATCH && st == FA_OK; k++)
            st = fa_launch(hot, &t->args, NULL);
        if (i >= 5) /* the first batches warm the host's caches */
            fa_samples_add(&out->hot, (cli_clock() - start) / HOT_BATCH);
    }
    fa_destroy(hot);
    return st;
}

static int bench_host(cli *c, const bench_args *a, cli_session *s)
{
    cli_problem_list list;
    fa_problem p;
    fa_tensors t = { .ctx = NULL };
    host_times h = { .cold = { .n = 0 } };
    char text[FA_PROBLEM_TEXT], chip[80];
    fa_status st = cli_problem_list_make(&list, &a->lists, &cli_lists_of_gpu);
    p = st == FA_OK ? list.row[0].problem : (fa_problem)FA_PROBLEM_INIT;
    cli_problem_list_free(&list);
    if (st == FA_OK)
        st = fa_tensors_open(&t, s->ctx, &p);
    if (st == FA_OK)
        st = fa_scratch_provide(&t.scratch, s->ctx, NULL, &t.args); /* as large as any kernel of the class needs */
    if (st == FA_OK)
        st = time_host(s, a, &t, &h);
    fa_tensors_close(&t);
    if (st == FA_OK && cli_interrupted())
        st = fa_fail(FA_INTERRUPTED, "interrupted");
    if (st != FA_OK)
        return cli_fail(c, st);
    const struct {
        const char *key, *title;
        const fa_samples *t;
    } rows[] = { { "cold", "first launch, cold: select, render, compile, store, load", &h.cold },
                 { "warm", "first launch, warm: select, render, disk cache, load", &h.warm },
                 { "hot", "a launch that hits, without the driver's own launch", &h.hot } };
    fa_problem_print(text, sizeof text, &p);
    json_t *doc = json_pack("{s:o,s:s}", "device", cli_session_json(s), "problem", text);
    cli_table table;
    cli_table_open(&table, ">median >spread >samples what");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_object_set_new(doc, rows[i].key,
                            json_pack("{s:o,s:o,s:i}", "seconds", cli_json_number(fa_samples_median(rows[i].t)), "spread",
                                      cli_json_number(fa_samples_spread(rows[i].t)), "samples", rows[i].t->n));
        cli_table_cells(&table, "%s\t%.1f %%\t%d\t%s", cli_show_seconds(fa_samples_median(rows[i].t)), 100 * fa_samples_spread(rows[i].t),
                        rows[i].t->n, rows[i].title);
    }
    if (c->json) {
        fa_text_free(&table.cells);
        return cli_answer(c, doc, CLI_EXIT_OK);
    }
    cli_say(stdout, "%s\nthe host's time before the driver's launch, beside %s\n", text, cli_session_chip(s, chip, sizeof chip));
    cli_table_print(&table, c);
    json_decref(doc);
    return CLI_EXIT_OK;
}

static int run(cli *c, const void *args, int n, char **words)
{
    const bench_args *a = args;
    cli_session s;
    (void)n, (void)words;
    cli_interrupt_watch();
    fa_status st = cli_session_open(&s, c, &a->where);
    if (st == FA_OK && (st = cli_sim_set(&a->sim, a->counts || s.simulated, &(sim_options){ .threads = 0 })) != FA_OK)
        cli_session_close(&s);
    if (st != FA_OK)
        return cli_fail(c, st);
    int code = a->host ? bench_host(c, a, &s) : a->counts || s.simulated ? bench_counts(c, a, &s) : bench_device(c, a, &s);
    cli_session_close(&s);
    return code;
}

const cli_command cli_bench = {
    .name = "bench",
    .summary =
        "times of fagen's kernel and of the systems of the literature, what each does on the simulator, or the host's part of a launch",
    .usage = "[-d LIST] [-n LIST] [--dtype LIST] [--mask LIST] [--systems LIST] [--counts] | --host",
    .about = "On a GPU: medians over events, what fa_launch chooses, and beside it the families that fagen keeps for comparison, on the "
             "same device: how long each takes, and how many times as long. On a simulator, or with --counts on the simulator of the GPU's "
             "chip: what one launch of each does, in instructions, bytes through memory and bank conflicts. With --host: how long a first "
             "launch takes with an empty cache and with a filled one, and what fa_launch itself costs on a hit: the driver's launch is "
             "replaced by "
             "one that returns at once, so that only fagen's time is left; this runs without a GPU too.",
    .examples = "fagen bench -d 64,128 -n 1024,4096,16384 --mask none,causal\nfagen bench -d 64 -t fp32 -n 512,1024,2048,4096 --systems "
                "naive,flash1_fwd,tiled\nfagen bench --host\nfagen bench --counts -d 64 -n 256 --heads 2\nfagen bench -d 128 --json",
    .groups = groups,
    .size = sizeof(bench_args),
    .run = run,
};
