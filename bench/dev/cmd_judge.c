/* judge: how far what fa_launch() chooses for shapes without records of their own is from the best that was measured of them. And what to
 * measure for that: the candidates of random shapes, and random configs beside them. */
#include "bench/dev/dev.h"
#include "bench/dev/recordings.h"
#include "bench/dev/shapes.h"
#include "bench/dev/shipped_choice.h"
#include "cli/options/command.h"
#include "cli/text/table.h"
#include "gen/error.h"
#include "gen/model.h"
#include "gen/problem.h"
#include "gen/space.h"
#include "verify/operands/random.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct judge_args {
    cli_common common;
    const char *arch, *draw, *problems;
    int32_t shapes, seed, random;
    bool prices;
} judge_args;

#define FIELD(f) .at = offsetof(judge_args, f)
/* clang-format off */
static const cli_option options[] = {
    { .name = "arch", .type = &cli_text, FIELD(arch), .value = "ARCH",
      .help = "the chip that chooses, and of measurements whose file does not say it", .preset = "h100" },
    { .name = "draw", .type = &cli_text, FIELD(draw), .value = "KIND",
      .help = "in the place of files: list what is to be measured of random shapes: forward, gqa, few, unequal; few-queries, unequal-lengths: those that "
              "peers are raced on; gradients; gradients-few: those of few tiles without a mask" },
    { .name = "problems", .type = &cli_text, FIELD(problems), .value = "FILE",
      .help = "likewise, of the problems of a file, a line each" },
    { .name = "shapes", .type = &cli_int, FIELD(shapes), .value = "N",
      .help = "shapes to draw", .preset = "15", .min = 1, .max = 1000 },
    { .name = "seed", .type = &cli_int, FIELD(seed), .value = "N",
      .help = "that decides them", .preset = "1", .min = 0, .max = 1000000 },
    { .name = "random", .type = &cli_int, FIELD(random), .value = "N",
      .help = "random configs beside the candidates of each shape", .preset = "200", .min = 0, .max = 10000 },
    { .name = "prices", FIELD(prices),
      .help = "of files: every config that ran, a line each, in the place of the choices: the model's microseconds, those measured, problem, config" },
    { .name = NULL },
};
/* clang-format on */
static const cli_group groups[] = { { "The choice on recordings", options, 0 }, CLI_COMMON, { NULL, NULL, 0 } };

/* ---- what to measure ---- */

static json_t *config_json(const fa_config *c)
{
    char text[512];
    fa_config_print(text, sizeof text, c);
    return json_string(text);
}

/* Configs that fit, each as likely as any other. */
static fa_status add_random(json_t *list, fa_gen *g, const fa_problem *p, const fa_arch *a, int32_t n, fa_random *r)
{
    fa_space space = { 0 };
    fa_status st = fa_space_list(g, p, a, 0, NULL, &space);
    for (int32_t i = 0; st == FA_OK && i < n && space.fitting; i++) {
        int32_t skip = fa_random_below(r, (int32_t)space.fitting);
        for (size_t k = 0; k < space.n; k++)
            if (space.points[k].fits && skip-- == 0) {
                json_array_append_new(list, config_json(&space.points[k].config));
                break;
            }
    }
    fa_space_free(&space);
    return st;
}

/* The candidates of p and some random configs, as one more of `shapes`. */
static fa_status list_shape(json_t *shapes, fa_gen *g, const judge_args *a, const fa_arch *arch, fa_choice *choice, fa_random *r,
                            const fa_problem *p)
{
    char text[FA_PROBLEM_TEXT];
    fa_status st = fa_shipped_choice(g, p, arch, choice);
    json_t *candidates = json_array(), *random = json_array();
    for (size_t i = 0; st == FA_OK && i < choice->n; i++)
        json_array_append_new(candidates, config_json(&choice->row[i].config));
    if (st == FA_OK)
        st = a->random ? add_random(random, g, p, arch, a->random, r) : FA_OK;
    fa_problem_print(text, sizeof text, p);
    json_array_append_new(shapes, json_pack("{s:s,s:o,s:o}", "problem", text, "candidates", candidates, "random", random));
    return st;
}

static fa_status draw_shapes(json_t *shapes, fa_gen *g, const judge_args *a, const fa_arch *arch, fa_choice *choice, fa_random *r)
{
    fa_status st = FA_OK;
    for (int32_t i = 0; i < a->shapes && st == FA_OK; i++) {
        fa_problem p;
        if (!fa_shapes_draw(&p, a->draw, r))
            return fa_fail(FA_INVALID, "--draw is \"%.40s\"; accepted: %s", a->draw, fa_shapes_kinds());
        st = list_shape(shapes, g, a, arch, choice, r, &p);
    }
    return st;
}

/* A problem a line. */
static fa_status read_shapes(json_t *shapes, fa_gen *g, const judge_args *a, const fa_arch *arch, fa_choice *choice, fa_random *r)
{
    char line[FA_PROBLEM_TEXT];
    fa_status st = FA_OK;
    FILE *f = fopen(a->problems, "r");
    if (!f)
        return fa_fail(FA_IO, "%s: %s", a->problems, strerror(errno));
    while (st == FA_OK && fgets(line, sizeof line, f)) {
        fa_problem p;
        line[strcspn(line, "\n")] = 0;
        st = fa_problem_parse(&p, line);
        if (st == FA_OK)
            st = list_shape(shapes, g, a, arch, choice, r, &p);
    }
    fclose(f);
    return st;
}

static int draw(cli *c, const judge_args *a, fa_gen *g, const fa_arch *arch, fa_choice *choice)
{
    fa_random r = { (uint64_t)a->seed };
    json_t *shapes = json_array();
    fa_status st = (a->problems ? read_shapes : draw_shapes)(shapes, g, a, arch, choice, &r);
    json_t *doc =
        json_pack("{s:s,s:s,s:i,s:o}", "arch", a->arch, "kind", a->problems ? a->problems : a->draw, "seed", a->seed, "shapes", shapes);
    if (st == FA_OK && c->json)
        return cli_answer(c, doc, CLI_EXIT_OK);
    size_t i, k;
    json_t *shape, *config;
    json_array_foreach(shapes, i, shape)
    {
        if (st != FA_OK)
            break;
        printf("# %s\n", json_string_value(json_object_get(shape, "problem")));
        json_array_foreach(json_object_get(shape, "candidates"), k, config) printf("%s\n", json_string_value(config));
        json_array_foreach(json_object_get(shape, "random"), k, config) printf("%s\n", json_string_value(config));
    }
    json_decref(doc);
    return st == FA_OK ? CLI_EXIT_OK : cli_fail(c, st);
}

/* ---- what was measured ---- */

typedef struct verdict {
    const fa_problem *problem;
    double regret; /* of the first candidate that was measured */
    size_t place;  /* of it among the candidates: 0 = what is chosen */
    fa_config config, best;
} verdict;

/* Seconds of a config in the recording; 0: not measured, or it did not run. */
static double seconds_of(const fa_recording *r, const fa_config *c)
{
    for (size_t i = 0; i < r->n; i++)
        if (fa_config_equal(&r->take[i].config, c))
            return r->take[i].seconds;
    return 0;
}

/* The same where tiles are drawn in the place of dealt out beforehand, or the other way round: of one tile that decides less than a
 * hundredth, and races of before have the other. */
static double seconds_of_other_grid(const fa_recording *r, const fa_config *c)
{
    static const int32_t drawn = 2, dealt = 1; /* grid of the families of wgmma */
    fa_config other = *c;
    int32_t grid = fa_config_get(c, "grid", 0);
    for (int i = 0; i < other.n; i++)
        if (!strcmp(other.tunable[i].name, "grid"))
            other.tunable[i].value = grid == drawn ? dealt : drawn;
    return grid == drawn || grid == dealt ? seconds_of(r, &other) : 0;
}

/* False: none of the candidates was measured. */
static bool judge(const fa_recording *r, const fa_choice *choice, verdict *out)
{
    double best = fa_recording_best(r);
    *out = (verdict){ .problem = &r->problem };
    for (size_t i = 0; i < r->n; i++)
        if (r->take[i].seconds > 0 && r->take[i].seconds <= best)
            out->best = r->take[i].config;
    for (size_t i = 0; i < choice->n; i++) {
        double s = seconds_of(r, &choice->row[i].config);
        if (s <= 0)
            s = seconds_of_other_grid(r, &choice->row[i].config);
        if (s <= 0)
            continue;
        out->regret = s / best - 1;
        out->place = i;
        out->config = choice->row[i].config;
        return true;
    }
    return false;
}

static int worse_first(const void *a, const void *b)
{
    const verdict *x = a, *y = b;
    return (x->regret < y->regret) - (x->regret > y->regret);
}

static json_t *verdict_json(const verdict *v)
{
    char text[FA_PROBLEM_TEXT];
    fa_problem_print(text, sizeof text, v->problem);
    return json_pack("{s:s,s:o,s:I,s:o,s:o}", "problem", text, "regret", cli_json_number(v->regret), "place", (json_int_t)v->place,
                     "config", config_json(&v->config), "best", config_json(&v->best));
}

static int tell(cli *c, verdict *v, size_t n, size_t unmeasured)
{
    double sum = 0;
    json_t *list = json_array();
    cli_table table;
    qsort(v, n, sizeof *v, worse_first);
    cli_table_open(&table, ">regret >place problem chosen best");
    for (size_t i = 0; i < n; i++) {
        char problem[FA_PROBLEM_TEXT], config[512], best[512];
        sum += v[i].regret;
        json_array_append_new(list, verdict_json(&v[i]));
        fa_problem_print(problem, sizeof problem, v[i].problem);
        fa_config_print(config, sizeof config, &v[i].config);
        fa_config_print(best, sizeof best, &v[i].best);
        cli_table_cells(&table, "%.1f %%\t%zu\t%s\t%s\t%s", 100 * v[i].regret, v[i].place, problem, config, best);
    }
    double mean = n ? sum / (double)n : 0, most = n ? v[0].regret : 0, tenth = n ? v[n / 10].regret : 0;
    if (c->json) {
        fa_text_free(&table.cells);
        return cli_answer(c,
                          json_pack("{s:I,s:I,s:o,s:o,s:o,s:o}", "problems", (json_int_t)n, "unmeasured", (json_int_t)unmeasured, "mean",
                                    cli_json_number(mean), "percentile_90", cli_json_number(tenth), "worst", cli_json_number(most),
                                    "verdicts", list),
                          CLI_EXIT_OK);
    }
    json_decref(list);
    cli_table_print(&table, c);
    printf(
        "%zu problems, %zu more of which no candidate was measured: regret %.1f %% in the mean, %.1f %% at the 90th percentile, %.1f %% at "
        "the most\nplace: of the first candidate that was measured; 0 is what is chosen\n",
        n, unmeasured, 100 * mean, 100 * tenth, 100 * most);
    return CLI_EXIT_OK;
}

static int judge_files(cli *c, const judge_args *a, fa_gen *g, const fa_arch *arch, fa_choice *choice, int n, char **path)
{
    cli_recordings all = { .n = 0 };
    size_t judged = 0, unmeasured = 0;
    fa_status st =
        n ? FA_OK
          : fa_fail(FA_INVALID,
                    "judge wants files, --draw or --problems; accepted: records, or the JSON of fagen tune or bench/variants.py");
    for (int i = 0; i < n && st == FA_OK; i++)
        st = cli_recordings_read(&all, path[i], a->arch);
    verdict *v = calloc(all.n + 1, sizeof *v);
    if (!v)
        st = fa_fail(FA_NOMEM, "no memory for the verdicts");
    for (size_t i = 0; i < all.n && st == FA_OK; i++) {
        if (!(fa_recording_best(&all.r[i]) > 0) || fa_shipped_choice(g, &all.r[i].problem, arch, choice) != FA_OK)
            continue;
        if (judge(&all.r[i], choice, &v[judged]))
            judged++;
        else
            unmeasured++;
    }
    if (st == FA_OK && !judged && !unmeasured)
        st = fa_fail(FA_INVALID,
                     "the files have no measurement that ran; accepted: records, or the JSON of fagen tune or bench/variants.py");
    int code = st == FA_OK ? tell(c, v, judged, unmeasured) : cli_fail(c, st);
    free(v);
    cli_recordings_free(&all);
    return code;
}

/* What the model says of all that ran. */
static int list_prices(cli *c, fa_gen *g, const fa_arch *arch, const judge_args *a, int n, char **path)
{
    cli_recordings all = { .n = 0 };
    fa_status st = n && !c->json ? FA_OK : fa_fail(FA_INVALID, "--prices is of files, and has no --json; accepted: recordings");
    for (int i = 0; i < n && st == FA_OK; i++)
        st = cli_recordings_read(&all, path[i], a->arch);
    for (size_t i = 0; i < all.n && st == FA_OK; i++)
        for (size_t k = 0; k < all.r[i].n; k++) {
            const fa_take *t = &all.r[i].take[k];
            char problem[FA_PROBLEM_TEXT], config[512];
            if (!(t->seconds > 0))
                continue;
            fa_problem_print(problem, sizeof problem, &all.r[i].problem);
            fa_config_print(config, sizeof config, &t->config);
            fa_cost cost;
            if (fa_model_cost(g, &all.r[i].problem, &t->config, arch, 0, &cost) != FA_OK)
                continue;
            printf("%.2f\t%.2f\t%s\t%s\tmatrix=%.2f exp=%.2f issue=%.2f smem=%.2f l2=%.2f hbm=%.2f grid=%lld blocks=%d\n",
                   cost.seconds * 1e6, t->seconds * 1e6, problem, config, cost.t_matrix * 1e6, cost.t_exp * 1e6, cost.t_issue * 1e6,
                   cost.t_smem * 1e6, cost.t_l2 * 1e6, cost.t_hbm * 1e6, (long long)cost.grid, (int)cost.blocks_sm);
        }
    cli_recordings_free(&all);
    return st == FA_OK ? CLI_EXIT_OK : cli_fail(c, st);
}

static int run(cli *c, const void *args, int n, char **path)
{
    const judge_args *a = args;
    const fa_arch *arch = fa_arch_find(a->arch);
    fa_gen *g = NULL;
    fa_choice *choice = malloc(sizeof *choice);
    fa_status st = choice ? FA_OK : fa_fail(FA_NOMEM, "no memory for the candidates");
    if (st == FA_OK && !arch)
        st = fa_fail(FA_INVALID, "--arch is \"%.40s\"; accepted: %s", a->arch, fa_arch_names());
    if (st == FA_OK)
        st = fa_gen_open(&g, getenv("FAGEN_TEMPLATE_DIR"));
    int code = st != FA_OK              ? cli_fail(c, st)
               : a->draw || a->problems ? draw(c, a, g, arch, choice)
               : a->prices              ? list_prices(c, g, arch, a, n, path)
                                        : judge_files(c, a, g, arch, choice, n, path);
    fa_gen_close(g);
    free(choice);
    return code;
}

const cli_command dev_judge = {
    .name = "judge",
    .summary = "how far the choice without records is from the best that was measured",
    .usage = "FILE... | --draw KIND | --problems FILE",
    .about =
        "Chooses for every problem of the files by what ships alone, and tells how much slower the choice was measured than the best "
        "of the file. With --draw lists what is to be measured for that: random shapes of one seed, the candidates of each, what is chosen "
        "first, and random configs of its space. FAGEN_TEMPLATE_DIR names other templates. Needs no device.",
    .examples = "fagen-dev judge --draw few --shapes 15 --seed 1 --arch h100 --json > few.json\n"
                "fagen-dev judge --arch h100 recordings/*.json",
    .groups = groups,
    .size = sizeof(judge_args),
    .words = 4096,
    .run = run,
    .files = true,
};
