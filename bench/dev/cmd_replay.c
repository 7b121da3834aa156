/* replay: every strategy of the search on every recording, and what that says of them. */
#include "bench/dev/dev.h"
#include "bench/dev/recordings.h"
#include "cli/options/command.h"
#include "cli/text/table.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <math.h>
#include <stdlib.h>

typedef struct replay_args {
    cli_common common;
    int32_t limit, seeds;
    const char *arch;
} replay_args;

#define FIELD(f) .at = offsetof(replay_args, f)
/* clang-format off */
static const cli_option options[] = {
    { .name = "limit", .type = &cli_int, FIELD(limit), .value = "N",
      .help = "configs that a strategy may take, without neighbours", .preset = "48", .min = 1,
      .max = 1000000 },
    { .name = "seeds", .type = &cli_int, FIELD(seeds), .value = "N",
      .help = "runs of a strategy that draws at random", .preset = "20", .min = 1, .max = 1000 },
    { .name = "arch", .type = &cli_text, FIELD(arch), .value = "ARCH",
      .help = "of measurements whose file does not say it", .preset = "sm_90a" },
    { .name = NULL },
};
/* clang-format on */
static const cli_group groups[] = { { "Strategies on recordings", options, 0 }, CLI_COMMON, { NULL, NULL, 0 } };

#define LEAST_CONFIGS 8 /* a recording of fewer tells nothing */

/* Of one strategy, over recordings and seeds. */
typedef struct summary {
    size_t runs, reached;
    double tried, end, worst, regret[FA_REPLAY_MARKS];
    double *until; /* tries of those that came near */
} summary;

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median over all runs; one that never came near counts as infinitely many. */
static double median_until(summary *s)
{
    qsort(s->until, s->reached, sizeof *s->until, ascending);
    size_t half = (s->runs - 1) / 2;
    return s->runs && half < s->reached ? s->until[half] : INFINITY;
}

static void take(summary *s, const fa_replay *r)
{
    s->runs++;
    s->tried += (double)r->tried;
    s->end += r->end;
    s->worst = fmax(s->worst, r->end);
    for (int i = 0; i < FA_REPLAY_MARKS; i++)
        s->regret[i] += r->regret[i];
    if (r->until)
        s->until[s->reached++] = (double)r->until;
}

static json_t *run_json(const fa_strategy *s, const fa_recording *rec, uint64_t seed, const fa_replay *r)
{
    char text[FA_PROBLEM_TEXT];
    json_t *marks = json_object();
    fa_problem_print(text, sizeof text, &rec->problem);
    for (int i = 0; i < FA_REPLAY_MARKS; i++) {
        char name[16];
        snprintf(name, sizeof name, "%zu", fa_replay_marks[i]);
        json_object_set_new(marks, name, cli_json_number(r->regret[i]));
    }
    return json_pack("{s:s,s:s,s:I,s:I,s:I,s:o,s:o,s:o}", "strategy", s->name, "problem", text, "configs", (json_int_t)rec->n, "seed",
                     (json_int_t)seed, "tried", (json_int_t)r->tried, "until", r->until ? json_integer((json_int_t)r->until) : json_null(),
                     "regret", marks, "end", cli_json_number(r->end));
}

static json_t *summary_json(const fa_strategy *s, summary *m)
{
    json_t *marks = json_object();
    double n = m->runs ? (double)m->runs : 1;
    for (int i = 0; i < FA_REPLAY_MARKS; i++) {
        char name[16];
        snprintf(name, sizeof name, "%zu", fa_replay_marks[i]);
        json_object_set_new(marks, name, cli_json_number(m->regret[i] / n));
    }
    return json_pack("{s:s,s:I,s:I,s:o,s:o,s:o,s:o,s:o}", "strategy", s->name, "runs", (json_int_t)m->runs, "reached",
                     (json_int_t)m->reached, "until", cli_json_number(median_until(m)), "tried", cli_json_number(m->tried / n), "regret",
                     marks, "end", cli_json_number(m->end / n), "worst", cli_json_number(m->worst));
}

static void row(cli_table *t, const fa_strategy *s, summary *m)
{
    double n = m->runs ? (double)m->runs : 1, until = median_until(m);
    cli_table_cells(t, "%s\t%zu\t%.0f\t%.0f %%", s->name, m->runs, m->tried / n, 100 * (double)m->reached / n);
    cli_table_cells(t, "%s", cli_show_if(isfinite(until), "%.0f", until));
    for (int i = 0; i < FA_REPLAY_MARKS; i++)
        cli_table_cells(t, "%s", cli_show_if(isfinite(m->regret[i]), "%.2f %%", 100 * m->regret[i] / n));
    cli_table_cells(t, "%.2f %%\t%.2f %%", 100 * m->end / n, 100 * m->worst);
}

static fa_status replay_all(const cli_recordings *all, int32_t limit, int32_t seeds, json_t *runs, json_t *strategies, cli_table *table)
{
    const fa_strategy *s;
    fa_status st = FA_OK;
    for (size_t i = 0; (s = fa_strategy_at(i)) && st == FA_OK; i++) {
        summary m = { .until = calloc(all->n * (size_t)seeds + 1, sizeof *m.until) };
        if (!m.until)
            return fa_fail(FA_NOMEM, "no memory for the runs");
        int32_t n = s->draws ? seeds : 1; /* the others do the same every time */
        for (size_t k = 0; k < all->n && st == FA_OK; k++)
            for (int32_t seed = 0; seed < n && st == FA_OK && all->r[k].n >= LEAST_CONFIGS && fa_recording_best(&all->r[k]) > 0; seed++) {
                fa_replay r;
                st = fa_replay_run(&all->r[k], s, limit, (uint64_t)seed, &r);
                if (st == FA_OK) {
                    take(&m, &r);
                    json_array_append_new(runs, run_json(s, &all->r[k], (uint64_t)seed, &r));
                }
            }
        if (st == FA_OK) {
            json_array_append_new(strategies, summary_json(s, &m));
            row(table, s, &m);
        }
        free(m.until);
    }
    return st;
}

static int run(cli *c, const void *args, int n, char **path)
{
    const replay_args *a = args;
    cli_recordings all = { .n = 0 };
    cli_table table;
    size_t used = 0, configs = 0;
    fa_status st = n ? FA_OK : fa_fail(FA_INVALID, "replay wants files; accepted: records, or the JSON of fagen tune or bench/variants.py");
    if (st == FA_OK && !fa_arch_find(a->arch))
        st = fa_fail(FA_INVALID, "--arch is \"%.40s\"; accepted: %s", a->arch, fa_arch_names());
    for (int i = 0; i < n && st == FA_OK; i++)
        st = cli_recordings_read(&all, path[i], a->arch);
    for (size_t i = 0; i < all.n; i++)
        if (all.r[i].n >= LEAST_CONFIGS && fa_recording_best(&all.r[i]) > 0) {
            used++;
            configs += all.r[i].n;
        }
    if (st == FA_OK && !used)
        st = fa_fail(FA_INVALID,
                     "no problem has %d configs that the model can price; %zu measurements were read, %zu are of configs it does not know",
                     LEAST_CONFIGS, all.taken, all.unknown);
    json_t *runs = json_array(), *strategies = json_array();
    cli_table_open(&table, "strategy >runs >tried >near >until >after_8 >16 >32 >48 >96 >at_its_end >worst");
    if (st == FA_OK)
        st = replay_all(&all, a->limit, a->seeds, runs, strategies, &table);
    size_t unknown = all.unknown;
    cli_recordings_free(&all);
    if (st != FA_OK || c->json) {
        fa_text_free(&table.cells);
        json_t *doc = json_pack("{s:I,s:I,s:I,s:o,s:o}", "problems", (json_int_t)used, "configs", (json_int_t)configs, "unknown",
                                (json_int_t)unknown, "strategies", strategies, "runs", runs);
        if (st == FA_OK)
            return cli_answer(c, doc, CLI_EXIT_OK);
        json_decref(doc);
        return cli_fail(c, st);
    }
    printf("%zu problems, %zu measured configs%s\n", used, configs, unknown ? "" : ", all of which the model can price");
    if (unknown)
        printf("%zu measurements left out: the templates have no price for their configs\n", unknown);
    cli_table_print(&table, c);
    printf("near: runs that came within 1 %% of the best on record; until: their median number of tried configs; after 8 ... 96: mean time "
           "of the "
           "best so far over the best on record, less 1\n");
    json_decref(runs);
    json_decref(strategies);
    return CLI_EXIT_OK;
}

const cli_command dev_replay = {
    .name = "replay",
    .summary = "which strategy of the search finds the best of what was measured once soonest",
    .usage = "FILE...",
    .about = "Runs every strategy of the search on files of measurements: records, what fagen tune --json prints, or what "
             "bench/variants.py --json writes. "
             "Tells what each would have tried, and how soon it would have found the best. Needs no device.",
    .examples = "fagen-dev replay ~/.cache/fagen/v1/records/*/*.jsonl",
    .groups = groups,
    .size = sizeof(replay_args),
    .words = 4096,
    .run = run,
    .files = true,
};
