/* verify: cases, random or of a grid, run and held against attention in fp64. */
#include "cli/options/problem_list.h"
#include "cli/options/usual_shape.h"
#include "cli/session/config_text.h"
#include "cli/session/session.h"
#include "cli/session/simulator.h"
#include "cli/text/progress.h"
#include "cli/text/say.h"
#include "cli/text/table.h"
#include "commands.h"
#include "gen/error.h"
#include "gen/format.h"
#include "gen/problem.h"
#include "verify/cases/trial.h"
#include "verify/operands/random.h"
#include <string.h>

typedef struct verify_args {
    cli_common common;
    cli_where where;
    cli_sim sim;
    uint64_t seed, schedule_seed;
    int32_t count, async, schedule;
    int32_t lengths, values;
    cli_problem_lists lists;
    const char *config, *family;
    bool verbose;
} verify_args;

#define TRIES_MOST 100 /* numbers of cases per case of a family */
#define FIELD(f) .at = offsetof(verify_args, f)
static const cli_word asyncs[] = { { "eager", SIM_EAGER }, { "lazy", SIM_LAZY }, { NULL, 0 } };
static const cli_word schedules[] = { { "in-order", SIM_IN_ORDER }, { "reversed", SIM_REVERSED }, { "random", SIM_RANDOM }, { NULL, 0 } };
static const cli_word values[] = {
    { "drawn", 0 }, { "wide", FA_VALUES_WIDE }, { "beyond", FA_VALUES_BEYOND }, { "seen", FA_VALUES_SEEN }, { NULL, 0 }
};
/* clang-format off */
static const cli_option random_options[] = {
    { .name = "seed", .letter = 's', .type = &cli_seed, FIELD(seed), .value = "N",
      .help = "the first case; a case is its number", .preset = "0" },
    { .name = "count", .letter = 'N', .type = &cli_int, FIELD(count), .value = "M",
      .help = "cases", .preset = "12", .min = 1, .max = 100000000 },
    { .name = "family", .type = &cli_text, FIELD(family), .value = "NAME",
      .help = "only this kernel family, and only the cases that it computes (default: any that is not kept for comparison)" },
    { .name = "verbose", .letter = 'v', FIELD(verbose), .help = "a line for every case, not only for failures" },
    { .name = NULL },
};
static const cli_option launch_options[] = {
    { .name = "config", .letter = 'c', .type = &cli_text, FIELD(config), .value = "CONFIG",
      .help = "with a grid: run this config (default: what fa_launch chooses)" },
    CLI_LENGTHS_ROW(offsetof(verify_args, lengths)),
    { .name = "values", .type = &cli_choice, FIELD(values), .value = "KIND",
      .help = "what inputs hold: what the case draws; Q and K over 40 powers of two, each element held against a bound of its own; scores near "
              "and beyond what fp32 holds; NaN and infinities in V of keys that some queries see", .preset = "drawn", .words = values },
    { .name = NULL },
};
static const cli_option sim_options_table[] = {
    { .name = "sim-async", .type = &cli_choice, FIELD(async), .value = "WHEN",
      .help = "when asynchronous copies take place", .preset = "eager",
      .words = asyncs },
    { .name = "schedule", .type = &cli_choice, FIELD(schedule), .value = "ORDER", .help = "in which order the warps of a block run",
      .preset = "in-order", .words = schedules },
    { .name = "schedule-seed", .type = &cli_seed, FIELD(schedule_seed), .value = "N", .help = "of --schedule random", .preset = "1" },
    { .name = NULL },
};
/* clang-format on */
static const cli_group groups[] = {
    { "Random cases", random_options, 0 },
    CLI_PROBLEM_LISTS(verify_args,
                      "Problems instead: every combination of these lists (default: " CLI_SHAPE_OF_SIMULATOR(CLI_SHAPE_TEXT) ")"),
    { "What is launched", launch_options, 0 },
    CLI_WHERE(verify_args),
    { "The simulator", sim_options_table, 0 },
    CLI_SIM(verify_args),
    CLI_COMMON,
    { NULL, NULL, 0 }
};

/* The verdicts so far. */
typedef struct tally {
    cli *c;
    cli_table table;
    json_t *list;
    int32_t ran, failed, skipped;
    fa_status first; /* of the failures that are no verdict */
    char message[2048];
} tally;

/* config NULL: what fa_launch chooses. False when going on makes no sense. */
static bool judge(tally *t, fa_context *ctx, const fa_case *k, const fa_config *config, bool verbose)
{
    fa_verdict v = { .ok = false };
    char text[512], used[512] = "as chosen";
    fa_status st = fa_verify_case(ctx, k, config, &v);
    if (st == FA_INTERRUPTED && cli_interrupted()) /* no verdict */
        return false;
    t->ran++;
    t->failed += st != FA_OK;
    if (st != FA_OK && t->first == FA_OK) {
        t->first = st;
        snprintf(t->message, sizeof t->message, "%s", fa_last_error());
    }
    fa_case_print(text, sizeof text, k);
    if (t->c->json) {
        if (config)
            cli_config_text(used, config);
        json_array_append_new(t->list, json_pack("{s:s,s:s,s:b,s:s,s:o,s:o,s:o,s:o,s:s}", "case", text, "config", used, "ok", st == FA_OK,
                                                 "status", fa_status_name(st), "rule", v.rule ? json_string(v.rule) : json_null(),
                                                 "max_error", cli_json_number(v.o.most), "allowed", cli_json_number(v.most), "naive_error",
                                                 cli_json_number(v.naive.most), "message", st == FA_OK ? "" : fa_last_error()));
    } else if (st != FA_OK || verbose) {
        cli_table_cells(&t->table, "%s\t%.2e\t%.2e\t%.2e\t%s", st == FA_OK ? "ok" : "FAIL", v.o.most, v.most, v.naive.most,
                        st == FA_OK ? text : fa_last_error());
    }
    return st != FA_NO_NVRTC && st != FA_NOMEM && st != FA_TEMPLATE && !cli_interrupted();
}

static bool has_grid(const verify_args *a)
{
    return cli_problem_lists_given(&a->lists) || a->config;
}

/* Multiply-adds of one product of a problem of a grid, which the CPU has to do as well; on a simulator they are the device's, too. */
#define WORK_DEVICE 3e8
#define WORK_SIMULATED 4e6

/* The same class and group at a size that is soon checked; a chunk after a cached prefix stays one. */
static void cut_down(fa_problem *p, double most)
{
    int32_t part = p->features & FA_FEATURE_LENGTHS && p->sq < p->sk ? 8 : 2;
    while ((double)p->b * p->hq * p->sq * p->sk * p->d > most) {
        if (p->b > 2)
            p->b /= 2;
        else if (p->sk > 512 || (p->hkv == 1 && p->sk > 1)) {
            int32_t least = p->sk > part ? p->sk / part : 1;
            p->sq = p->sq > least ? least : p->sq;
            p->sk /= 2;
        } else if (p->hkv > 1) {
            int32_t group = p->hq / p->hkv;
            p->hkv /= 2;
            p->hq = p->hkv * group;
        } else {
            return;
        }
    }
}

/* A case of a problem of the lists. */
static fa_status list_case(fa_case *out, const verify_args *a, const fa_problem *asked, bool simulated)
{
    fa_problem cut = *asked, *p = &cut;
    if (a->lists.grid)
        cut_down(&cut, simulated ? WORK_SIMULATED : WORK_DEVICE);
    const fa_program *program;
    fa_score_scalars scalars;
    fa_status st = fa_case_of(out, p, a->seed);
    if (st == FA_OK)
        st = cli_score_read(&a->lists.score, &program, &scalars);
    if (st == FA_OK && program)
        out->scalars = scalars;
    out->ragged = fa_ragged_typical(asked, a->seed); /* a mixed batch stays one with two sequences */
    if (st == FA_OK && p->mask == FA_MASK_WINDOW) {
        out->window_left = p->window ? p->window : p->sk / 4;
        out->window_right = 0;
    }
    if (st == FA_OK && a->lengths)
        out->ragged.k = a->lengths - 1;
    return st;
}

/* The compile-time part of a random case with the features; one of few, so that many cases compile little. */
static fa_status class_of(fa_problem *out, const verify_args *a, int32_t op, uint64_t seed)
{
    static const struct {
        int32_t dtype, d, dv, mask, page;
    } classes[] = {
        { FA_BF16, 128, 0, FA_MASK_NONE, 16 },    { FA_BF16, 64, 0, FA_MASK_CAUSAL, 64 },  { FA_F16, 128, 0, FA_MASK_CAUSAL, 1 },
        { FA_BF16, 64, 0, FA_MASK_WINDOW, 16 },   { FA_F16, 64, 0, FA_MASK_NONE, 128 },    { FA_BF16, 96, 64, FA_MASK_CAUSAL, 32 },
        { FA_BF16, 128, 0, FA_MASK_WINDOW, 128 }, { FA_TF32, 64, 0, FA_MASK_CAUSAL, 16 },  { FA_BF16, 256, 0, FA_MASK_CAUSAL, 16 },
        { FA_F16, 72, 40, FA_MASK_NONE, 8 },      { FA_BF16, 192, 128, FA_MASK_NONE, 64 }, { FA_BF16, 80, 0, FA_MASK_CAUSAL, 2 },
    };
    fa_random r = { fa_random_mix(seed ^ 0x636c617373) };
    uint32_t i = (uint32_t)fa_random_below(&r, (int32_t)(sizeof classes / sizeof *classes));
    bool pages = a->lists.page || a->lists.features & FA_FEATURE_PAGES;
    fa_problem p = FA_PROBLEM_INIT;
    p.op = op;
    p.dtype = op == FA_BACKWARD && (classes[i].dtype == FA_TF32 || i % 3 == 1) ? FA_F32 : classes[i].dtype;
    p.d = classes[i].d;
    p.dv = classes[i].dv;
    p.mask = classes[i].mask;
    p.dtype = a->lists.low.kv && p.dtype == FA_TF32 ? FA_BF16 : p.dtype;
    const fa_format *formats[] = { fa_format_of(a->lists.low.kv), fa_format_of(a->lists.low.v) };
    int32_t block = 1; /* rows of whole blocks */
    for (int k = 0; k < 2; k++)
        block = formats[k] && formats[k]->block > block ? formats[k]->block : block;
    p.d = p.d / block * block, p.dv = (p.dv + block - 1) / block * block;
    fa_status st = cli_low_set(&p, &a->lists.low);
    if (st == FA_OK)
        st = cli_features_set(&p, a->lists.features, a->lists.page ? a->lists.page : pages ? classes[i].page : 0);
    return st == FA_OK ? fa_problem_normalize(out, &p) : st;
}

/* Case `number` of the random ones. */
static fa_status random_case(fa_case *out, const verify_args *a, int32_t op, uint64_t number)
{
    fa_problem class;
    const fa_program *program;
    fa_status st = cli_score_read(&a->lists.score, &program, NULL);
    if (st != FA_OK)
        return st;
    bool low = a->lists.low.kv || a->lists.low.v || a->lists.low.scale;
    if (!a->lists.features && !a->lists.page && !low) {
        fa_case_make_of(out, fa_operation_find(op), number);
        if (program)
            fa_case_set_score(out, program, true);
        return FA_OK;
    }
    st = class_of(&class, a, op, number);
    if (st == FA_OK)
        fa_case_make_class(out, &class, (!low || number % 8 == 7) && fa_random_mix(number) % 2 ? FA_CASE_MANY : FA_CASE_FEW, number);
    if (st == FA_OK && a->lengths)
        out->ragged.k = a->lengths - 1;
    if (st == FA_OK && program)
        fa_case_set_score(out, program, true);
    return st;
}

static fa_status all(tally *t, const verify_args *a, const cli_session *s, const cli_problem_list *list)
{
    fa_context *ctx = s->ctx;
    bool grid = has_grid(a);
    int32_t total = grid ? (int32_t)list->n : a->count;
    int64_t tried = 0, most = a->family ? (int64_t)total * TRIES_MOST : total;
    cli_progress bar = { .c = t->c };
    fa_config config;
    fa_gen *g = NULL;
    int32_t op = FA_FORWARD; /* of random cases for which the lists say nothing */
    const cli_list *ops = &a->lists.op;
    fa_status st = FA_OK;
    if (!grid)
        st = cli_gen_open(&g);
    for (size_t i = 0; st == FA_OK && a->family && i < fa_gen_families(g); i++)
        if (!strcmp(fa_gen_family(g, i), a->family))
            op = fa_gen_operation(g, i);
    for (; (a->family ? t->ran : tried) < total && tried < most && st == FA_OK && !cli_interrupted(); tried++) {
        fa_case k;
        char line[600] = "verify ";
        st = grid ? list_case(&k, a, &list->row[tried].problem, s->simulated)
                  : random_case(&k, a, ops->n ? ops->v[tried % ops->n] - 1 : op, a->seed + (uint64_t)tried);
        if (st == FA_OK && !grid) {
            fa_status fits = fa_case_config(g, &k, fa_context_arch(ctx), fa_context_budget(ctx), a->family, &config);
            if (fits == FA_NO_FIT || fits == FA_UNSUPPORTED) { /* the case names a class that this chip has no config for */
                t->skipped++;
                continue;
            }
            st = fits;
        }
        if (st == FA_OK && a->config)
            st = cli_session_config(s, &k.problem, a->config, &config);
        if (st != FA_OK)
            break;
        if (a->values)
            fa_case_set_values(&k, (fa_case_values)a->values);
        fa_case_print(line + 7, sizeof line - 7, &k);
        cli_progress_tell(&bar, line, (double)(a->family ? t->ran : tried) / total);
        if (!judge(t, ctx, &k, grid && !a->config ? NULL : &config, a->verbose))
            break;
    }
    cli_progress_end(&bar);
    fa_gen_close(g);
    if (st == FA_OK && !t->ran && t->skipped && !cli_interrupted())
        return fa_fail(FA_UNSUPPORTED,
                       "none of %lld cases has a config of %s on %s; random cases have head_dims to 256 and no products of 8 bits, and "
                       "caches with --features or --kv alone: others are named by -d, --dv, --dtype and their like, with --config %s",
                       (long long)tried, a->family ? a->family : "any family", fa_context_arch(ctx)->name,
                       a->family ? a->family : "FAMILY");
    return st;
}

static int summarize(tally *t, const cli_session *s, double seconds)
{
    bool stopped = cli_interrupted();
    int code = stopped ? CLI_EXIT_INTERRUPTED : t->failed ? cli_exit_of(t->first) : CLI_EXIT_OK;
    char chip[80];
    if (t->c->json)
        return cli_answer(t->c,
                          json_pack("{s:o,s:i,s:i,s:i,s:b,s:o,s:o}", "device", cli_session_json(s), "ran", t->ran, "failed", t->failed,
                                    "skipped", t->skipped, "interrupted", stopped, "seconds", cli_json_number(seconds), "cases", t->list),
                          code);
    if (t->table.rows)
        cli_table_print(&t->table, t->c);
    cli_say(stdout, "%d of %d cases are right on %s", t->ran - t->failed, t->ran, cli_session_chip(s, chip, sizeof chip));
    cli_say(stdout, "%s in %s", s->simulated ? ", simulated," : "", cli_show_seconds(seconds));
    if (t->skipped)
        cli_say(stdout, "; %d skipped: no config fits", t->skipped);
    cli_say(stdout, "%s\n", stopped ? "; interrupted" : "");
    if (t->failed)
        cli_say(stderr, "fagen verify: %d failed; the first: %s\n", t->failed, t->message);
    return code;
}

static int run(cli *c, const void *args, int n, char **words)
{
    const verify_args *a = args;
    cli_session s;
    sim_options o = { .async = (sim_async)a->async, .schedule = (sim_schedule)a->schedule, .seed = a->schedule_seed };
    tally t = { .c = c };
    cli_problem_list list = { .n = 0 };
    (void)n, (void)words;
    cli_interrupt_watch();
    fa_status st = cli_session_open(&s, c, &a->where);
    if (st == FA_OK && !s.simulated && (a->async != SIM_EAGER || a->schedule != SIM_IN_ORDER)) {
        cli_session_close(&s);
        st = fa_fail(FA_INVALID, "--sim-async and --schedule are of the simulator; accepted with them: --device sim:ARCH");
    }
    if (st == FA_OK && (st = cli_sim_set(&a->sim, s.simulated, &o)) != FA_OK)
        cli_session_close(&s);
    if (st == FA_OK && a->family && has_grid(a)) {
        cli_session_close(&s);
        st = fa_fail(FA_INVALID, "--family draws random cases; accepted with a grid: --config FAMILY");
    }
    if (st != FA_OK)
        return cli_fail(c, st);
    sim_set_options(&o);
    t.list = json_array();
    cli_table_open(&t.table, "verdict >max_error >allowed >naive case");
    double start = cli_clock();
    st = has_grid(a) ? cli_problem_list_make(&list, &a->lists, &cli_lists_of_simulator) : FA_OK;
    if (st == FA_OK)
        st = all(&t, a, &s, &list);
    cli_problem_list_free(&list);
    int code;
    if (st == FA_OK) {
        code = summarize(&t, &s, cli_clock() - start);
    } else {
        code = cli_fail(c, st);
        json_decref(t.list);
        fa_text_free(&t.table.cells);
    }
    if (st == FA_OK && !c->json)
        json_decref(t.list);
    cli_sim_tell(c, &a->sim);
    cli_session_close(&s);
    return code;
}

const cli_command cli_verify = {
    .name = "verify",
    .summary = "runs many cases and holds each against attention in fp64",
    .usage = "[--seed N --count M | -d LIST --dtype LIST --mask LIST -n LIST]",
    .about =
        "Without a grid, cases are drawn by number: shapes, strides, masks, layouts, values and the config all follow from it, so that a "
        "failure is replayed by --seed N --count 1. --features, --page and --kv alone draw cases of serving over such caches. Problems of "
        "a "
        "--grid are cut down in batch, heads and lengths, to what the CPU checks soon. With --family, numbers that the family does not "
        "compute are passed over. The rule: at "
        "most twice the error of the naive algorithm of the same precision (with --values each element within a bound of its own), no "
        "byte changed outside the outputs. Exits 4 when a result is wrong.",
    .examples = "fagen verify --count 100\nfagen verify --family flash_fwd_wgmma --count 500 --device cuda:0\nfagen verify --features "
                "lengths,pages --count 50\nfagen verify --seed 17 "
                "--count 1 -v --device sim:sm_80 --sim-async lazy --schedule reversed\n"
                "fagen verify -d 64,128 --dtype fp16,bf16 --mask none,causal -n 128,333 -v",
    .groups = groups,
    .size = sizeof(verify_args),
    .run = run,
};
