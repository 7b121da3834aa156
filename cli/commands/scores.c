/* scores: the score programs that ship, and what one is: its text, operands, identity. */
#include "cli/options/score_option.h"
#include "cli/session/mask_tiles.h"
#include "cli/text/say.h"
#include "cli/text/table.h"
#include "commands.h"
#include "gen/error.h"
#include "gen/score/lines.h"
#include "gen/score/mask.h"
#include "gen/score/names.h"
#include "gen/score/shape.h"
#include "gen/score/shipped.h"
#include <stdlib.h>
#include <string.h>

typedef struct scores_args {
    cli_common common;
    cli_score score;
} scores_args;

static const cli_option options[] = { CLI_SCORE_ROWS(offsetof(scores_args, score)), { .name = NULL } };
static const cli_group groups[] = { { "One program", options, 0 }, CLI_COMMON, { NULL, NULL, 0 } };

static const char *const roots[FA_SCORE_ROOTS] = { "score", "mask", "sink" };

/* "score, sink" */
static void roots_of(char buf[32], const fa_program *p)
{
    buf[0] = 0;
    for (int i = 0; i < FA_SCORE_ROOTS; i++)
        if (p->ir.root[i] >= 0)
            snprintf(buf + strlen(buf), 32 - strlen(buf), "%s%s", buf[0] ? ", " : "", roots[i]);
}

/* "f32 [hq, sq+sk-1]", "number 50", "integer 8192, 1 to 1048576" */
static void operand_text(char *buf, size_t n, const fa_score_operand *o, double value)
{
    char shape[320];
    if (!o->scalar) {
        fa_score_shape_print(shape, sizeof shape, o);
        snprintf(buf, n, "%s \"%s\"", fa_score_element_word(o->element), shape);
    } else if (o->least > -FA_SCORE_INT_MAX)
        snprintf(buf, n, "%s %.9g, accepted %.9g to %.9g", o->type == FA_SCORE_I32 ? "integer" : "number", value, o->least, o->most);
    else
        snprintf(buf, n, "%s %.9g", o->type == FA_SCORE_I32 ? "integer" : "number", value);
}

static json_t *operands_json(const fa_program *p, const fa_score_scalars *scalars)
{
    json_t *list = json_array();
    char text[400];
    for (int k = 0; k < p->ir.operands; k++) {
        operand_text(text, sizeof text, &p->ir.operand[k], scalars->of[k]);
        json_array_append_new(list,
                              json_pack("{s:s,s:s,s:b}", "name", p->ir.operand[k].name, "is", text, "scalar", p->ir.operand[k].scalar));
    }
    return list;
}

/* What a pair costs beside that of a plain kernel, as kernels print the program; false: they print none. */
static bool cost_of(const fa_program *p, double *issue, double *exps)
{
    fa_score_kernel *k = malloc(sizeof *k);
    bool ok = k && fa_score_kernel_of(k, &p->ir);
    *issue = ok ? k->issue + fa_score_mask_of(&p->ir).issue : 0;
    *exps = ok ? k->exps : 0;
    free(k);
    return ok;
}

static json_t *program_json(const fa_program *p, const fa_score_scalars *scalars, const cli_mask *mask)
{
    char id[40], has[32];
    roots_of(has, p);
    snprintf(id, sizeof id, "%016llx%016llx", (unsigned long long)p->id.hi, (unsigned long long)p->id.lo);
    double issue, exps;
    bool told = cost_of(p, &issue, &exps);
    return json_pack("{s:s,s:s,s:i,s:o,s:o,s:o,s:o,s:s}", "id", id, "functions", has, "nodes", p->ir.n, "operands",
                     operands_json(p, scalars), "instructions", told ? cli_json_number(issue) : json_null(), "special",
                     told ? cli_json_number(exps) : json_null(), "mask", cli_mask_json(mask), "text", p->source);
}

static int one(cli *c, const fa_program *p, const fa_score_scalars *scalars)
{
    char has[32], text[400];
    cli_table t;
    cli_mask mask;
    fa_status st = cli_mask_of(&mask, p);
    if (st != FA_OK)
        return cli_fail(c, st);
    if (c->json)
        return cli_answer(c, program_json(p, scalars, &mask), CLI_EXIT_OK);
    roots_of(has, p);
    cli_say(stdout, "%s%s\n", p->source, p->source[0] && p->source[strlen(p->source) - 1] == '\n' ? "" : "\n");
    cli_say(stdout, "functions  %s\nnodes      %d\nid         %016llx%016llx\n", has, p->ir.n, (unsigned long long)p->id.hi,
            (unsigned long long)p->id.lo);
    double issue, exps;
    if (cost_of(p, &issue, &exps))
        cli_say(stdout, "cost       about %.2g instructions of a pair, %.2g of them on the special-function unit\n", issue, exps);
    cli_mask_print(&mask);
    cli_table_open(&t, "operand is");
    for (int k = 0; k < p->ir.operands; k++) {
        operand_text(text, sizeof text, &p->ir.operand[k], scalars->of[k]);
        cli_table_cells(&t, "%s\t%s", p->ir.operand[k].name, text);
    }
    if (p->ir.operands) {
        cli_say(stdout, "\n");
        cli_table_print(&t, c);
    } else
        fa_text_free(&t.cells);
    return CLI_EXIT_OK;
}

static int all(cli *c)
{
    char name[32], doc[160];
    json_t *list = json_array();
    cli_table t;
    cli_table_open(&t, "program what");
    for (const fa_score_file *p = fa_score_shipped; p->name; p++) {
        fa_score_shipped_name(name, p);
        fa_score_shipped_doc(doc, p);
        json_array_append_new(list, json_pack("{s:s,s:s,s:s}", "name", name, "what", doc, "text", p->bytes));
        cli_table_cells(&t, "%s\t%s", name, doc);
    }
    if (c->json) {
        fa_text_free(&t.cells);
        return cli_answer(c, json_pack("{s:o}", "programs", list), CLI_EXIT_OK);
    }
    json_decref(list);
    cli_table_print(&t, c);
    return CLI_EXIT_OK;
}

static int run(cli *c, const void *args, int n, char **words)
{
    const scores_args *a = args;
    const fa_program *program;
    fa_score_scalars scalars;
    (void)n, (void)words;
    fa_status st = cli_score_read(&a->score, &program, &scalars);
    if (st != FA_OK)
        return cli_fail(c, st);
    return program ? one(c, program, &scalars) : all(c);
}

const cli_command cli_scores = {
    .name = "scores",
    .summary = "the score programs that ship, or what a program is",
    .usage = "[--score NAME | --score-file FILE]",
    .about =
        "Lists the programs that --score of other commands takes. Of one program it tells the text, the operands in the order in which "
        "launches give them, the identity, and how kernels find the tiles that its mask hides. A text that is no program is refused with "
        "line and column.",
    .examples = "fagen scores\nfagen scores --score softcap:30\nfagen scores --score-file mine.lua --json",
    .groups = groups,
    .size = sizeof(scores_args),
    .run = run,
};
