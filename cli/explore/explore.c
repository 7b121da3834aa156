/* explore: the design space of a problem on one chip, as a page for people, as CSV and as JSON. */
#include "explore.h"
#include "cli/files/file.h"
#include "cli/options/arch_names.h"
#include "cli/options/grid.h"
#include "cli/options/problem_options.h"
#include "cli/session/session.h"
#include "cli/text/progress.h"
#include "cli/text/say.h"
#include "cli/text/table.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "runtime/context/environment.h"
#include <string.h>

typedef struct explore_args {
    cli_common common;
    cli_problem_options problem_options;
    cli_where where;
    const char *arch, *chip, *family, *page, *csv;
    int32_t simulate;
} explore_args;

#define FIELD(f) .at = offsetof(explore_args, f)
/* clang-format off */
static const cli_option options[] = {
    { .name = "arch", .letter = 'a', .type = &cli_text, FIELD(arch), .value = "ARCH",
      .help = "the chip, instead of --device: sm_80, h200, ..." },
    { .name = "family", .type = &cli_text, FIELD(family), .value = "NAME",
      .help = "only this kernel family (default: those that serve the problem)" },
    { .name = "chip", .type = &cli_text, FIELD(chip), .value = "NAME",
      .help = "whose measured times are shown: its name, as `fagen cache ls` has it, or a part of that, as h200 (default: the device, else "
              "the one with most records, else the one whose times ship with fagen)" },
    { .name = "simulate", .type = &cli_int, FIELD(simulate), .value = "N",
      .help = "tiles whose best config the simulator runs and counts", .preset = "3",
      .min = 0, .max = 1000 },
    { .name = NULL },
};
/* clang-format on */
static const cli_option outputs[] = {
    { .name = "output",
      .letter = 'o',
      .type = &cli_text,
      FIELD(page),
      .value = "FILE",
      .help = "the page (default: explore.html, unless --csv or --json)" },
    { .name = "csv", .type = &cli_text, FIELD(csv), .value = "FILE", .help = "one line per config that fits; - is standard output" },
    { .name = NULL },
};
static const cli_group groups[] = {
    { "The problem (default: head_dim 128, length 4096, batch and heads of the grid `default`, whose times ship)",
      cli_problem_options_table, offsetof(explore_args, problem_options) },
    { "What is explored", options, 0 },
    { "What is written", outputs, 0 },
    CLI_DEVICE(explore_args),
    CLI_COMMON,
    { NULL, NULL, 0 }
};

/* Where it looks: a device, or a row of the table of archs; and the records. */
typedef struct subject {
    cli_session session;
    const fa_arch *arch;
    const char *chip;
    fa_store *store, *own; /* own: opened here */
    int32_t budget;
} subject;

static void warn(void *user, const char *message)
{
    cli_note(user, "%s", message);
}

static fa_status find_subject(subject *at, cli *c, const explore_args *a)
{
    if (a->arch && a->where.device)
        return fa_fail(FA_INVALID, "--arch and --device are two ways to name the chip; accepted: one of them");
    *at = (subject){ .chip = a->chip };
    if (a->arch) {
        cli_chip chip = { .arch = a->arch, .sram = a->where.sram };
        fa_status st = cli_chip_arch(&chip, &at->arch);
        if (st != FA_OK)
            return st;
        at->budget = cli_chip_budget(&chip, at->arch);
    } else {
        cli quiet = *c;
        quiet.quiet = true;
        fa_status st = cli_session_open(&at->session, &quiet, &a->where);
        if (st != FA_OK)
            return st;
        at->arch = fa_context_arch(at->session.ctx);
        at->budget = fa_context_budget(at->session.ctx);
        at->store = fa_context_store(at->session.ctx);
        if (at->session.simulated) {
            const fa_arch *product = a->where.device ? cli_device_arch(a->where.device) : NULL;
            at->arch = product ? product : fa_arch_find(at->arch->name);
        } else if (!at->chip)
            at->chip = at->arch->chip;
    }
    if (!at->store)
        at->store = at->own = fa_store_open(NULL, warn, c);
    return FA_OK;
}

/* Where neither batch nor heads are given, those with which the default grid tunes the class at the length: times are on record there. */
static void take_grid_heads(fa_problem *p)
{
    cli_grid_row rows[CLI_GRID_MOST];
    fa_problem full = *p;
    if (p->b || p->hq || p->hkv)
        return;
    fa_problem_fill_shape(&full);
    for (size_t i = 0, n = cli_grid_list("default", rows); i < n; i++) {
        const fa_problem *q = &rows[i].problem;
        if (fa_problem_same_class(q, p) && q->sq == full.sq && q->sk == full.sk && q->hq == q->hkv) {
            p->b = q->b;
            p->hq = q->hq;
            p->hkv = q->hkv;
            return;
        }
    }
}

/* By what bounds the problem: "612.4 TFLOP/s", "4152 GB/s of Q, K, V and O". Products alone are counted. Returns buf. */
static const char *rate(char *buf, size_t n, const explore *e, double seconds, double bytes)
{
    if (explore_is_streamed(e))
        snprintf(buf, n, "%.0f GB/s of %s", bytes / seconds / 1e9, e->tensors);
    else
        snprintf(buf, n, "%.1f TFLOP/s", e->flops / seconds / 1e12);
    return buf;
}

static void tell(cli *c, const explore *e, const char *page, const char *csv)
{
    char text[512], problem[FA_PROBLEM_TEXT], speed[120];
    const explore_config *best = explore_model_best(e), *timed = explore_measured_best(e);
    size_t times = 0;
    for (size_t i = 0; i < e->n; i++)
        times += e->config[i].record && explore_is_time(e, e->config[i].record);
    fa_problem_print(problem, sizeof problem, &e->problem);
    cli_heading(c, problem);
    cli_say(stdout, "on %s (%s): %zu configs, %zu fit; %zu measured%s%s%s, %zu simulated\n", e->arch->name, e->arch->chip, e->total,
            e->fitting, times, times ? " on " : "", times ? e->chip : "", e->reference ? " (times that ship with fagen)" : "",
            e->simulated);
    if (timed) {
        fa_gen_config_print(e->gen, text, sizeof text, &timed->point.config);
        cli_say(stdout, "measured   %s, %s: %s\n", cli_show_seconds(timed->record->seconds),
                rate(speed, sizeof speed, e, timed->record->seconds, e->measured_bytes), text);
    }
    if (best) {
        fa_gen_config_print(e->gen, text, sizeof text, &best->point.config);
        cli_say(stdout, "model      %s, %s: %s\n", cli_show_seconds(best->cost.seconds),
                rate(speed, sizeof speed, e, best->cost.seconds, e->tensor_bytes), text);
    }
    if (e->naive > 0)
        cli_say(stdout, "naive      %s at its roofline, and %s of memory beside %s\n", cli_show_seconds(e->naive),
                cli_show_bytes(e->naive_traffic.held), e->tensors);
    cli_mask_tiles_print(&e->mask);
    if (e->run.why[0])
        cli_say(stdout, "simulator  %s\n", e->run.why);
    if (page)
        cli_say(stdout, "page       %s\n", page);
    if (csv)
        cli_say(stdout, "csv        %s\n", csv);
}

static fa_status write_page(const explore *e, const json_t *document, const char *path)
{
    fa_text page = { 0 };
    fa_status st = explore_page(e, document, &page);
    if (st == FA_OK)
        st = cli_file_write(path, page.s, page.n, NULL, 0);
    fa_text_free(&page);
    return st;
}

static fa_status write_csv(const explore *e, const char *path)
{
    fa_text csv = { 0 };
    explore_csv(e, &csv);
    fa_status st = csv.oom ? fa_fail(FA_NOMEM, "no memory for the CSV text") : cli_file_write(path, fa_text_cstr(&csv), csv.n, NULL, 0);
    fa_text_free(&csv);
    return st;
}

static bool has_times(const explore *e)
{
    for (size_t i = 0; i < e->records.n; i++)
        if (explore_is_time(e, &e->records.r[i]))
            return true;
    return false;
}

static fa_status count_tiles(explore *e, const cli_score *score)
{
    const explore_config *timed = explore_measured_best(e), *leader = timed ? timed : explore_model_best(e);
    const fa_program *program;
    fa_score_scalars scalars;
    fa_status st = cli_score_read(score, &program, &scalars);
    return st == FA_OK && leader
               ? cli_mask_tiles_of(&e->mask, e->gen, &e->problem, program ? &scalars : NULL, &leader->point.config, leader->cost.packed)
               : st;
}

static int run(cli *c, const void *args, int n, char **words)
{
    const explore_args *a = args;
    subject at = { .arch = NULL };
    explore e = { .gen = NULL };
    fa_gen *g = NULL;
    fa_problem p;
    json_t *document = NULL;
    const char *page = a->page ? a->page : a->csv || c->json ? NULL : "explore.html";
    bool to_stdout = (page && !strcmp(page, "-")) || (a->csv && !strcmp(a->csv, "-"));
    (void)n, (void)words;
    cli_interrupt_watch();
    fa_status st = cli_problem_options_read(&a->problem_options, &p);
    if (st == FA_OK)
        take_grid_heads(&p);
    if (st == FA_OK && c->json && to_stdout)
        st = fa_fail(FA_INVALID, "--json and a file that is \"-\" both want standard output; accepted: one of them");
    if (st == FA_OK && page && a->csv && !strcmp(page, a->csv))
        st = fa_fail(FA_INVALID, "--output and --csv are both \"%.80s\"; accepted: two files", page);
    if (st == FA_OK)
        st = cli_file_check(page);
    if (st == FA_OK)
        st = cli_file_check(a->csv);
    if (st == FA_OK)
        st = find_subject(&at, c, a);
    if (st == FA_OK)
        st = cli_gen_open(&g);
    if (st == FA_OK)
        st = explore_open(&e, g, &p, at.arch, at.budget, a->family, at.store, at.chip);
    if (st == FA_OK)
        st = count_tiles(&e, &a->problem_options.score);
    if (st == FA_OK && a->chip && !has_times(&e))
        cli_note(c, "--chip is \"%s\": no times of it are on record for this problem on %s; without --chip the one with most is shown",
                 a->chip, e.arch->name);
    if (st == FA_OK) {
        explore_simulate(&e, c, a->simulate);
        cli_interrupt_unwatch(); /* a FIFO may have no reader */
        bool wanted = page || c->json;
        document = wanted ? explore_document(&e) : NULL;
        st = document || !wanted ? FA_OK : fa_fail(FA_NOMEM, "no memory for the document");
    }
    if (st == FA_OK && a->csv)
        st = write_csv(&e, a->csv);
    if (st == FA_OK && page)
        st = write_page(&e, document, page);
    if (st == FA_OK && cli_interrupted())
        st = fa_fail(FA_INTERRUPTED, "interrupted: what was simulated until then is in the files");
    int code = st == FA_OK ? CLI_EXIT_OK : cli_fail(c, st);
    if (st == FA_OK && c->json) {
        c->answered = true;
        json_dumpf(document, stdout, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15));
        putchar('\n');
    } else if (st == FA_OK && !to_stdout) {
        tell(c, &e, page, a->csv);
    }
    json_decref(document);
    explore_close(&e);
    fa_gen_close(g);
    fa_store_close(at.own);
    cli_session_close(&at.session);
    return code;
}

const cli_command cli_explore = {
    .name = "explore",
    .summary = "the design space of a problem as one web page: heat map, roofline, convergence, lengths",
    .usage = "[problem] [--arch ARCH | --device DEVICE] [-o FILE.html] [--csv FILE] [--json]",
    .about =
        "Writes one page that needs no network: every tile B_r x B_c with its time, memory, registers and occupancy, why each missing one "
        "was "
        "pruned, the configs on the roofline, the convergence of the search, and the speed-up over naive attention against the length. "
        "Times are those on record for the chip, those that ship with fagen where there are none, and the model's; every figure says "
        "which. "
        "Without --batch and --heads the problem has those of the grid `default` at its length. The simulator counts bytes and bank "
        "conflicts "
        "of the best tiles at a small shape.",
    .examples =
        "fagen explore -d 128 --causal -n 4096 --arch sm_80\nfagen explore -d 64 --arch h200 --simulate 20 -o d64.html --csv d64.csv\n"
        "fagen explore -d 128 --arch sm_90a --simulate 0 --json",
    .groups = groups,
    .size = sizeof(explore_args),
    .run = run,
};
