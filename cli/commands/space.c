/* space: the configs of a problem under a budget, and why the others are not among them. */
#include "cli/options/problem_options.h"
#include "cli/session/config_text.h"
#include "cli/session/ranking.h"
#include "cli/text/say.h"
#include "cli/text/table.h"
#include "commands.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <string.h>

typedef struct space_args {
    cli_common common;
    cli_problem_options problem_options;
    cli_chip chip;
    const char *family, *why;
    int32_t limit;
    bool all;
} space_args;

/* clang-format off */
static const cli_option options[] = {
    { .name = "family", .type = &cli_text, .at = offsetof(space_args, family), .value = "NAME",
      .help = "only this kernel family (default: those that serve the problem)" },
    { .name = "limit", .letter = 'l', .type = &cli_int, .at = offsetof(space_args, limit), .value = "N",
      .help = "fitting configs listed, best of the model first", .preset = "12", .min = 1, .max = 1000000 },
    { .name = "all", .at = offsetof(space_args, all),
      .help = "every config, in the order of the space, the rejected ones with the reason" },
    { .name = "why", .type = &cli_text, .at = offsetof(space_args, why), .value = "CONFIG", .help = "what is said of this one config" },
    { .name = NULL },
};
/* clang-format on */
static const cli_group groups[] = {
    CLI_PROBLEM_OPTIONS(space_args), CLI_CHIP(space_args), { "What is listed", options, 0 }, CLI_COMMON, { NULL, NULL, 0 }
};

#define REJECTIONS 64

static json_t *point_json(const fa_point *p, const fa_cost *cost)
{
    char text[CLI_CONFIG_TEXT], recorded[CLI_CONFIG_TEXT];
    cli_config_text(text, &p->config);
    fa_config_print(recorded, sizeof recorded, &p->config);
    json_t *j = json_pack("{s:s,s:s,s:b,s:i,s:i,s:i,s:s,s:s}", "config", text, "recorded", recorded, "fits", p->fits, "smem", p->smem,
                          "regs", p->regs, "threads", p->threads, "constraint", p->constraint, "why", p->why);
    if (cost) {
        json_object_set_new(j, "seconds", cli_json_number(cost->seconds));
        json_object_set_new(j, "bound", json_string(cost->bound));
        json_object_set_new(j, "blocks_sm", json_integer(cost->blocks_sm));
        json_object_set_new(j, "occupancy", cli_json_number(cost->occupancy));
        json_object_set_new(j, "bytes", cli_json_number(cost->bytes));
    }
    return j;
}

static int answer_json(cli *c, const space_args *a, const fa_arch *arch, const cli_ranking *r)
{
    char text[200];
    fa_rejection t[REJECTIONS];
    size_t n = fa_space_rejections(&r->space, t, REJECTIONS);
    json_t *rejected = json_array(), *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(rejected, json_pack("{s:s,s:s,s:I,s:s}", "family", t[i].family, "constraint", t[i].constraint, "count",
                                                  (json_int_t)t[i].n, "example", t[i].why));
    for (size_t i = 0; a->all && i < r->space.n; i++)
        json_array_append_new(list, point_json(&r->space.points[i], NULL));
    for (size_t i = 0; !a->all && i < r->n && i < (size_t)a->limit; i++)
        json_array_append_new(list, point_json(&r->space.points[r->r[i].point], &r->r[i].cost));
    fa_problem_print(text, sizeof text, &r->shape);
    return cli_answer(c,
                      json_pack("{s:s,s:s,s:i,s:I,s:I,s:i,s:o,s:o}", "problem", text, "arch", arch->name, "budget",
                                cli_chip_budget(&a->chip, arch), "total", (json_int_t)r->space.n, "fitting", (json_int_t)r->space.fitting,
                                "smallest_rejected", r->space.smallest, "rejected", rejected, "configs", list),
                      CLI_EXIT_OK);
}

static void print_all(const cli *c, const fa_space *s)
{
    cli_table t;
    cli_table_open(&t, "verdict >smem >regs config why");
    for (size_t i = 0; i < s->n; i++) {
        char text[512];
        const fa_point *p = &s->points[i];
        fa_gen_config_print(s->gen, text, sizeof text, &p->config);
        cli_table_cells(&t, "%s\t%d\t%d\t%s\t%s", p->fits ? "fits" : p->constraint, p->smem, p->regs, text, p->why);
    }
    cli_table_print(&t, c);
}

static void print_summary(const cli *c, const space_args *a, const fa_arch *arch, const cli_ranking *r)
{
    char text[512];
    fa_rejection rejected[REJECTIONS];
    cli_table t;
    size_t n = fa_space_rejections(&r->space, rejected, REJECTIONS);
    fa_problem_print(text, sizeof text, &r->shape);
    cli_say(stdout, "%s\non %s (%s) with %d bytes of shared memory per block: %zu configs, %zu fit\n\n", text, arch->name, arch->chip,
            cli_chip_budget(&a->chip, arch), r->space.n, r->space.fitting);
    cli_heading(c, "Rejected");
    cli_table_open(&t, ">configs family constraint for_example");
    for (size_t i = 0; i < n; i++) {
        cli_table_cells(&t, "%zu\t%s\t%s\t%s", rejected[i].n, rejected[i].family, rejected[i].constraint, rejected[i].why);
    }
    cli_table_print(&t, c);
    putchar('\n');
    cli_heading(c, "The model's best; `like` counts the configs that it cannot tell apart from the one shown");
    cli_table_open(&t, ">model bound >smem >regs >blocks/SM >like config");
    for (size_t i = 0, shown = 0; i < r->n && shown < (size_t)a->limit; shown++) {
        size_t like = 1;
        const fa_point *p = &r->space.points[r->r[i].point];
        while (i + like < r->n && cli_alike(r, i, i + like))
            like++;
        fa_gen_config_print(r->space.gen, text, sizeof text, &p->config);
        cli_table_cells(&t, "%s\t%s\t%d\t%d\t%d\t%zu\t%s", cli_show_seconds(r->r[i].cost.seconds), r->r[i].cost.bound, p->smem, p->regs,
                        r->r[i].cost.blocks_sm, like, text);
        i += like;
    }
    cli_table_print(&t, c);
}

/* One config, judged; of several that the text can mean, what --config would take: the model's best that fits. */
static int tell_why(cli *c, const space_args *a, fa_gen *g, const fa_problem *p, const fa_arch *arch)
{
    fa_config config;
    fa_space s = { 0 };
    const fa_point *pt = NULL;
    fa_point one;
    char text[512];
    fa_status st = fa_gen_config_parse(g, &config, a->why);
    if (st != FA_OK)
        return cli_fail(c, fa_wrap(st, "--why"));
    if (fa_gen_config_whole(g, &config)) { /* the space holds one point for many that fail */
        st = fa_space_judge(g, p, arch, a->chip.sram, &config, &one);
        pt = &one;
    } else if ((st = fa_space_list(g, p, arch, a->chip.sram, config.family, &s)) == FA_OK) {
        st = cli_check_tunables(g, &config);
    }
    for (size_t i = 0; st == FA_OK && i < s.n; i++)
        if (cli_config_names(&config, &s.points[i].config) && (!pt || (s.points[i].fits && !pt->fits)))
            pt = &s.points[i];
    if (pt && pt != &one && pt->fits) { /* one that has no price is named all the same */
        fa_config best;
        if (cli_pick(g, p, arch, a->chip.sram, a->why, &best) == FA_OK)
            for (size_t i = 0; i < s.n; i++)
                pt = fa_config_equal(&best, &s.points[i].config) ? &s.points[i] : pt;
    }
    if (st != FA_OK || !pt) {
        fa_space_free(&s);
        return cli_fail(c, st == FA_INVALID ? fa_wrap(st, "--why")
                           : st != FA_OK    ? st
                                            : fa_fail(FA_INVALID, "--why: the space has no such config"));
    }
    fa_cost cost;
    bool priced = pt->fits && fa_model_cost(g, p, &pt->config, arch, 0, &cost) == FA_OK;
    int code = CLI_EXIT_OK;
    fa_gen_config_print(g, text, sizeof text, &pt->config);
    if (c->json) {
        code = cli_answer(c, point_json(pt, priced ? &cost : NULL), CLI_EXIT_OK);
    } else {
        cli_say(stdout, "%s\n%s%s%s%s\n%d bytes of shared memory, about %d registers, %d threads\n", text,
                pt->fits ? "fits" : "rejected by ", pt->constraint, pt->why[0] ? ": " : "", pt->why, pt->smem, pt->regs, pt->threads);
        if (priced)
            cli_say(stdout, "model: %s, bound by %s, %d blocks per SM (limited by %s)\n", cli_show_seconds(cost.seconds), cost.bound,
                    cost.blocks_sm, cost.limiter);
    }
    fa_space_free(&s);
    return code;
}

static int run(cli *c, const void *args, int n, char **words)
{
    const space_args *a = args;
    fa_problem p;
    const fa_arch *arch;
    fa_gen *g = NULL;
    cli_ranking r;
    int code = CLI_EXIT_OK;
    (void)n, (void)words;
    fa_status st = cli_problem_options_read(&a->problem_options, &p);
    if (st == FA_OK)
        st = cli_chip_arch(&a->chip, &arch);
    if (st == FA_OK)
        st = cli_gen_open(&g);
    if (st == FA_OK && a->why) {
        code = tell_why(c, a, g, &p, arch);
        fa_gen_close(g);
        return code;
    }
    if (st == FA_OK)
        st = cli_rank(g, &p, arch, a->chip.sram, a->family, &r);
    if (st == FA_OK) {
        if (c->json)
            code = answer_json(c, a, arch, &r);
        else if (a->all)
            print_all(c, &r.space);
        else
            print_summary(c, a, arch, &r);
        cli_ranking_free(&r);
    } else {
        code = cli_fail(c, st);
    }
    fa_gen_close(g);
    return code;
}

const cli_command cli_space = {
    .name = "space",
    .summary = "the tile configs of a problem under a shared-memory budget, and why others are pruned",
    .usage = "[problem] [--arch ARCH] [--sram BYTES] [--all | --why CONFIG]",
    .about = "Lists every config of the kernel families that serve the problem, checks the hard constraints of each, and ranks what fits "
             "by the model. Compiles nothing and needs no GPU.",
    .examples = "fagen space -d 64 --causal --arch sm_80\nfagen space -d 128 --sram 64KiB --json\n"
                "fagen space -d 128 --why 'flash_fwd_mma:br=128,bc=64,warps=4'",
    .groups = groups,
    .size = sizeof(space_args),
    .run = run,
};
