/* show: which kernel runs a problem, from where, why, what else there is. */
#include "ask.h"
#include "cache/record.h"
#include "command.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "ranking.h"
#include "session.h"
#include "table.h"
#include <string.h>

typedef struct show_args {
    cli_common common;
    cli_where where;
    cli_ask ask;
    int32_t limit;
    bool source;
} show_args;

static const cli_option options[] = {
    { .name = "limit", .letter = 'l', .kind = &cli_int, .at = offsetof(show_args, limit), .value = "N", .help = "alternatives and records listed",
      .preset = "5", .min = 0, .max = 1000000 },
    { .name = "source", .at = offsetof(show_args, source), .help = "print the kernel's text instead" },
    { .name = NULL },
};
static const cli_group groups[] = { CLI_ASK(show_args), { "What is shown", options, 0 }, CLI_WHERE(show_args), CLI_COMMON, { NULL, NULL, 0 } };

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

static void print_records(const cli *c, const char *title, const fa_records *rs, size_t from)
{
    cli_table t;
    if (!rs->n)
        return;
    printf("\n");
    cli_heading(c, title);
    cli_table_open(&t, "outcome source >time >regs date config");
    for (size_t i = from; i < rs->n; i++) {
        char text[512];
        const fa_record *r = &rs->r[i];
        fa_config_print(text, sizeof text, &r->config);
        cli_table_cell(&t, "%s", fa_outcome_name(r->outcome));
        cli_table_cell(&t, "%s", r->how == FA_MEASURED ? "measured" : "model");
        cli_table_cell(&t, "%s", r->outcome == FA_RAN ? cli_show_seconds(r->seconds) : "-");
        cli_table_cell(&t, "%d", r->regs);
        cli_table_cell(&t, "%s", r->date);
        cli_table_cell(&t, "%s", text);
    }
    cli_table_print(&t, c);
}

static json_t *alternatives_json(const cli_ranking *r, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        char text[512];
        const fa_point *p = &r->space.points[r->r[i].point];
        fa_config_print(text, sizeof text, &p->config);
        json_array_append_new(list, json_pack("{s:s,s:o,s:s,s:i,s:i}", "config", text, "seconds", cli_json_number(r->r[i].cost.seconds), "bound",
                                              r->r[i].cost.bound, "smem", p->smem, "regs", p->regs));
    }
    return list;
}

static void print_alternatives(const cli *c, const cli_ranking *r, size_t n)
{
    cli_table t;
    printf("\n");
    cli_heading(c, "The model's best");
    cli_table_open(&t, ">model bound >smem >regs config");
    for (size_t i = 0, shown = 0; i < r->n && shown < n; i++) {
        char text[512];
        const fa_point *p = &r->space.points[r->r[i].point];
        if (i && cli_alike(r, i - 1, i))
            continue;
        shown++;
        fa_config_print(text, sizeof text, &p->config);
        cli_table_cell(&t, "%s", cli_show_seconds(r->r[i].cost.seconds));
        cli_table_cell(&t, "%s", r->r[i].cost.bound);
        cli_table_cell(&t, "%d", p->smem);
        cli_table_cell(&t, "%d", p->regs);
        cli_table_cell(&t, "%s", text);
    }
    cli_table_print(&t, c);
}

static int answer(cli *c, const show_args *a, const cli_session *s, const fa_problem *p, const cli_ranking *r)
{
    char explain[4096], text[256];
    fa_choice choice;
    fa_source source;
    fa_status st = fa_choose(s->ctx, p, &choice, &source);
    if (st == FA_OK && a->source && !c->json) {
        bool ok = fwrite(source.text, 1, source.text_size, stdout) == source.text_size;
        fa_source_free(&source);
        return ok ? CLI_EXIT_OK : cli_fail(c, fa_fail(FA_IO, "standard output could not be written"));
    }
    if (st == FA_OK)
        st = fa_explain(s->ctx, p, NULL, explain, sizeof explain);
    if (st != FA_OK)
        return cli_fail(c, st);
    const fa_arch *arch = fa_context_arch(s->ctx);
    fa_records here = fa_records_load(fa_context_store(s->ctx), arch->chip, p), model = { NULL, 0 };
    if (strcmp(arch->chip, arch->name))
        model = fa_records_load(fa_context_store(s->ctx), arch->name, p);
    size_t most = (size_t)a->limit, n = r->n < most ? r->n : most;
    size_t from_here = here.n > most ? here.n - most : 0, from_model = model.n > most ? model.n - most : 0;
    int code = CLI_EXIT_OK;
    fa_problem_print(text, sizeof text, p);
    if (c->json) {
        char config[512];
        fa_config_print(config, sizeof config, &choice.config);
        code = cli_answer(c, json_pack("{s:o,s:s,s:s,s:s,s:s,s:o,s:s,s:o,s:o,s:o,s:o}", "device", cli_session_json(s), "problem", text, "config", config,
                                       "where", choice.where, "why", choice.why, "seconds", cli_json_number(choice.seconds), "explain", explain,
                                       "alternatives", alternatives_json(r, n), "records", records_json(&here, from_here), "model_records",
                                       records_json(&model, from_model), "text", a->source ? json_stringn(source.text, source.text_size) : json_null()),
                          CLI_EXIT_OK);
    } else {
        fputs(explain, stdout);
        print_alternatives(c, r, n);
        print_records(c, "The newest records of this chip", &here, from_here);
        print_records(c, "The newest records of the model for this arch", &model, from_model);
    }
    fa_source_free(&source);
    fa_records_free(&here);
    fa_records_free(&model);
    return code;
}

static int run(cli *c, const void *args, int n, char **words)
{
    const show_args *a = args;
    cli_session s = { .ctx = NULL };
    fa_gen *g = NULL;
    fa_problem p;
    cli_ranking r;
    (void)n, (void)words;
    fa_status st = cli_ask_problem(&a->ask, &p);
    if (st == FA_OK)
        st = cli_session_open(&s, c, &a->where);
    if (st == FA_OK)
        st = fa_gen_open(&g, fa_context_template_dir(s.ctx));
    if (st == FA_OK)
        st = cli_rank(g, &p, fa_context_arch(s.ctx), fa_context_budget(s.ctx), NULL, &r);
    int code;
    if (st == FA_OK) {
        code = answer(c, a, &s, &p, &r);
        cli_ranking_free(&r);
    } else {
        code = cli_fail(c, st);
    }
    fa_gen_close(g);
    cli_session_close(&s);
    return code;
}

const cli_command cli_show = {
    .name = "show", .summary = "which kernel runs a problem, from where and why, and what else there is",
    .usage = "[problem] [--device DEVICE] [--source]",
    .about = "Tells what fa_launch would run: the config, whether a measured record, the shipped table or the model chose it, the compiled kernel's "
             "resources, and the runners-up. Compiles nothing.",
    .examples = "fagen show -d 128 --causal\nfagen show --problem 'bf16,d=64,b=2,hq=16,sq=4096,sk=4096' --json\nfagen show -d 128 --source",
    .groups = groups, .size = sizeof(show_args), .run = run,
};
