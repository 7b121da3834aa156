/* show: which kernel runs a problem, from where, why, what else there is. */
#include "show.h"
#include "cache/record.h"
#include "cli/options/arch_names.h"
#include "cli/session/config_text.h"
#include "cli/session/mask_tiles.h"
#include "cli/session/ranking.h"
#include "cli/text/say.h"
#include "cli/text/table.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "kernel_report.h"
#include "leaderboard.h"
#include "runtime/choose/jit.h"
#include <math.h>
#include <string.h>

#define FIELD(f) .at = offsetof(show_args, f)
static const cli_option options[] = {
    { .name = "limit",
      .letter = 'l',
      .type = &cli_int,
      FIELD(limit),
      .value = "N",
      .help = "alternatives and records listed",
      .preset = "5",
      .min = 0,
      .max = 1000000 },
    { .name = "source", FIELD(source), .help = "print the kernel's text instead" },
    { .name = "ptx", FIELD(ptx), .help = "print its PTX instead" },
    { .name = "sass", FIELD(sass), .help = "print its machine code instead, where nvdisasm or cuobjdump is installed (else exit code 2)" },
    { .name = NULL },
};
static const cli_group groups[] = {
    CLI_PROBLEM_OPTIONS(show_args), { "What is shown", options, 0 }, CLI_WHERE(show_args), CLI_COMMON, { NULL, NULL, 0 }
};

/* Records of the problem's class for this chip, newest last, and for its arch by the model. */
static json_t *records_json(const fa_records *rs, size_t from)
{
    json_t *list = json_array();
    for (size_t i = from; i < rs->n; i++) {
        fa_text t = { 0 };
        if (fa_record_to_json(&rs->r[i], &t))
            json_array_append_new(list, json_loadb(t.s, t.n, 0, NULL));
        fa_text_free(&t);
    }
    return list;
}

/* chosen: the model's time of what runs; 0 = it has none. */
static json_t *alternatives_json(const cli_ranking *r, size_t n, double chosen)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        char text[512];
        const fa_point *p = &r->space.points[r->r[i].point];
        cli_config_text(text, &p->config);
        json_array_append_new(list, json_pack("{s:s,s:o,s:o,s:s,s:i,s:i}", "config", text, "seconds", cli_json_number(r->r[i].cost.seconds),
                                              "behind", chosen > 0 ? cli_json_number(r->r[i].cost.seconds / chosen - 1) : json_null(),
                                              "bound", r->r[i].cost.bound, "smem", p->smem, "regs", p->regs));
    }
    return list;
}

static void print_alternatives(const cli *c, const cli_session *s, const cli_ranking *r, size_t n, double chosen)
{
    cli_table t;
    putchar('\n');
    cli_heading(c, "The model's best, against what runs");
    cli_table_open(&t, ">model >behind bound >smem >regs config");
    for (size_t i = 0, shown = 0; i < r->n && shown < n; i++) {
        char text[512];
        const fa_point *p = &r->space.points[r->r[i].point];
        if (i && cli_alike(r, i - 1, i))
            continue;
        shown++;
        fa_jit_config(s->ctx, &p->config, text, sizeof text);
        cli_table_cells(&t, "%s\t%s\t%s\t%d\t%d\t%s", cli_show_seconds(r->r[i].cost.seconds),
                        cli_show_if(chosen > 0, "%.1f %%", 100 * (r->r[i].cost.seconds / chosen - 1)), r->r[i].cost.bound, p->smem, p->regs,
                        text);
    }
    cli_table_print(&t, c);
}

/* What is known of a problem on this chip. */
typedef struct known {
    fa_selection selection;
    fa_source source;
    char explain[16384];
    cli_kernel_report report;
    cli_mask_tiles mask;
    fa_records here, model;
    cli_leaderboard measured, modelled;
} known;

/* scalars: of the score program, if there is one; shape: p with its shape. */
static fa_status look(const cli_session *s, fa_gen *g, const fa_problem *p, const fa_problem *shape, const fa_score_scalars *scalars,
                      known *k)
{
    const fa_arch *arch = fa_context_arch(s->ctx);
    fa_store *store = fa_context_store(s->ctx);
    *k = (known){ .selection = { .seconds = 0 } };
    fa_status st = fa_select(s->ctx, p, &k->selection, &k->source);
    if (st == FA_OK)
        st = fa_explain(s->ctx, p, NULL, k->explain, sizeof k->explain);
    if (st != FA_OK)
        return st;
    cli_kernel_report_make(&k->report, g, store, fa_context_compiler(s->ctx), p, &k->selection.config, arch, &k->source);
    st = cli_mask_tiles_of(&k->mask, g, shape, scalars, &k->selection.config, k->report.cost.packed);
    if (st != FA_OK)
        return st;
    k->here = fa_records_load(store, arch->chip, p);
    if (strcmp(arch->chip, arch->name))
        k->model = fa_records_load(store, arch->name, p);
    st = cli_leaderboard_of(&k->here, p, FA_MEASURED, &k->measured);
    return st == FA_OK ? cli_leaderboard_of(&k->model, p, FA_MODELLED, &k->modelled) : st;
}

static void forget(known *k)
{
    cli_leaderboard_free(&k->measured);
    cli_leaderboard_free(&k->modelled);
    fa_records_free(&k->here);
    fa_records_free(&k->model);
    cli_kernel_report_free(&k->report);
    fa_source_free(&k->source);
}

/* What runs against the fastest other one on record, and against the model's best, in a sentence; JSON: the numbers. */
static json_t *margin(const known *k, const cli_ranking *r, char *text, size_t n)
{
    const cli_leaderboard *s = &k->measured;
    const fa_record *own = NULL, *other = NULL;
    double model = k->report.cost.seconds, best = r->n ? r->r[0].cost.seconds : 0;
    size_t at = 0;
    for (size_t i = 0; i < s->n; i++)
        if (fa_config_equal(&s->r[i].config, &k->selection.config))
            own = &s->r[i];
        else if (!other)
            other = &s->r[i];
    if (own && other)
        at +=
            (size_t)snprintf(text, n, "%.1f %% %s the next of %zu on record (%s, measured)", 100 * fabs(other->seconds / own->seconds - 1),
                             other->seconds >= own->seconds ? "faster than" : "slower than", s->n, cli_show_seconds(other->seconds));
    else
        at += (size_t)snprintf(text, n, "%s", own ? "the only one measured here" : "never measured here");
    if (model > 0 && best > 0 && at < n)
        snprintf(text + at, n - at, "; by the model %s, its best %s (%+.1f %%)", cli_show_seconds(model), cli_show_seconds(best),
                 100 * (best / model - 1));
    return json_pack("{s:o,s:o,s:o,s:o}", "measured", own ? cli_json_number(own->seconds) : json_null(), "next_measured",
                     other ? cli_json_number(other->seconds) : json_null(), "model", model > 0 ? cli_json_number(model) : json_null(),
                     "model_best", best > 0 ? cli_json_number(best) : json_null());
}

static int answer(cli *c, const show_args *a, const cli_session *s, const fa_problem *p, const cli_ranking *r, const known *k)
{
    char text[FA_PROBLEM_TEXT], config[512], line[300];
    size_t most = (size_t)a->limit, n = r->n < most ? r->n : most;
    size_t from_here = k->here.n > most ? k->here.n - most : 0, from_model = k->model.n > most ? k->model.n - most : 0;
    json_t *numbers = margin(k, r, line, sizeof line);
    double chosen = k->report.cost.seconds;
    fa_problem_print(text, sizeof text, p);
    cli_config_text(config, &k->selection.config);
    if (c->json)
        return cli_answer(c,
                          json_pack("{s:o,s:s,s:s,s:s,s:s,s:o,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "device", cli_session_json(s),
                                    "problem", text, "config", config, "where", k->selection.where, "why", k->selection.why, "seconds",
                                    cli_json_number(k->selection.seconds), "explain", k->explain, "margin", numbers, "anatomy",
                                    cli_kernel_report_json(&k->report), "mask", cli_mask_tiles_json(&k->mask), "on_record",
                                    cli_leaderboard_json(&k->measured, most), "modelled_on_record",
                                    cli_leaderboard_json(&k->modelled, most), "alternatives", alternatives_json(r, n, chosen), "records",
                                    records_json(&k->here, from_here), "model_records", records_json(&k->model, from_model)),
                          CLI_EXIT_OK);
    json_decref(numbers);
    cli_say(stdout, "%smargin     %s\n", k->explain, line);
    cli_mask_tiles_print(&k->mask);
    cli_kernel_report_print(&k->report, s->simulated);
    cli_leaderboard_print(&k->measured, most, "On record for this chip", c, s->ctx);
    print_alternatives(c, s, r, n, chosen);
    cli_leaderboard_print(&k->modelled, most, "What fagen tune let the model say of this arch", c, s->ctx);
    return CLI_EXIT_OK;
}

/* One of the three forms of the kernel. */
static int form(cli *c, const show_args *a, const cli_session *s, const fa_problem *p)
{
    const char *arch = fa_context_arch(s->ctx)->name;
    fa_selection selection;
    fa_source source = { 0 };
    fa_entry e = { .ptx = 0 };
    fa_text t = { 0 };
    bool missing = false;
    fa_status st = fa_select(s->ctx, p, &selection, &source);
    if (st == FA_OK && a->source)
        fa_text_add(&t, source.text, source.text_size);
    else if (st == FA_OK)
        st = fa_build_image(fa_context_store(s->ctx), fa_context_compiler(s->ctx), &source, arch, FA_IMAGE_LOADED(a->ptx),
                            (fa_subject){ p, &selection.config }, false, &e, NULL);
    if (st == FA_OK && a->ptx)
        fa_text_add(&t, e.image, e.image_size - 1);
    if (st == FA_OK && a->sass)
        st = cli_sass(e.image, e.image_size, &t, &missing);
    int code = show_form(c, a, st, &t, missing);
    fa_entry_free(&e);
    fa_source_free(&source);
    return code;
}

/* The simulator's own numbers are those of no chip; what is asked for by name is answered for that chip. */
static void take_product(const cli_session *s, const cli_where *w)
{
    const fa_arch *arch = w->arch ? fa_arch_find(w->arch) : NULL;
    if (!arch && w->device && strncmp(w->device, "sim:sm_", 7)) /* "sim:h100" */
        arch = cli_device_arch(w->device);
    if (arch && s->simulated)
        fa_context_override_arch(s->ctx, arch, NULL);
}

static int show_problem(cli *c, const show_args *a)
{
    cli_session s = { .ctx = NULL };
    fa_gen *g = NULL;
    fa_problem p;
    cli_ranking r = { .n = 0 };
    known k = { .selection = { .seconds = 0 } };
    const fa_program *program = NULL;
    fa_score_scalars scalars;
    int code;
    fa_status st = cli_problem_options_read(&a->problem_options, &p);
    if (st == FA_OK)
        st = cli_score_read(&a->problem_options.score, &program, &scalars);
    if (st == FA_OK)
        st = cli_session_open(&s, c, &a->where);
    if (st == FA_OK)
        take_product(&s, &a->where);
    if (st == FA_OK && (a->source || a->ptx || a->sass)) {
        code = form(c, a, &s, &p);
        cli_session_close(&s);
        return code;
    }
    if (st == FA_OK)
        st = fa_gen_open(&g, fa_context_template_dir(s.ctx));
    if (st == FA_OK)
        st = cli_rank(g, &p, fa_context_arch(s.ctx), fa_context_budget(s.ctx), NULL, &r);
    if (st == FA_OK)
        st = look(&s, g, &p, &r.shape, program ? &scalars : NULL, &k);
    code = st == FA_OK ? answer(c, a, &s, &p, &r, &k) : cli_fail(c, st);
    forget(&k);
    cli_ranking_free(&r);
    fa_gen_close(g);
    cli_session_close(&s);
    return code;
}

static int run(cli *c, const void *args, int n, char **words)
{
    show_args a = *(const show_args *)args;
    if (a.source + a.ptx + a.sass > 1)
        return cli_fail(c, fa_fail(FA_INVALID, "--source, --ptx and --sass: accepted: one of them"));
    if (n && show_is_key(words[0]))
        return show_key(c, &a, words[0]);
    if (n && a.problem_options.problem)
        return cli_fail(c, fa_fail(FA_INVALID, "\"%.60s\" and --problem: accepted: one of them", words[0]));
    if (n)
        a.problem_options.problem = words[0];
    return show_problem(c, &a);
}

const cli_command cli_show = {
    .name = "show",
    .summary = "which kernel runs a problem, from where and why, what it uses, and what else there is",
    .usage = "[PROBLEM|KEY] [problem] [--device DEVICE | --arch ARCH] [--source|--ptx|--sass]",
    .about = "Tells what fa_launch would run: the config; whether a measured record, the shipped table or the model chose it, and by what "
             "margin; "
             "registers, spills, shared memory and occupancy; what its cache key is a hash of; the template lines it came from; and the "
             "runners-up, "
             "measured and modelled. Compiles the kernel into the cache where it is not there. With the key of a kernel in the cache (or 6 "
             "digits of "
             "it and more): what that file is, and whether this fagen would still load it.",
    .examples = "fagen show -d 128 --causal\nfagen show 'bf16,d=64,b=2,hq=16,sq=4096,sk=4096' --json\nfagen show -d 128 --sass\nfagen show "
                "3ece16fb",
    .groups = groups,
    .size = sizeof(show_args),
    .words = 1,
    .run = run,
};
