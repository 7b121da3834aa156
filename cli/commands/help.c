/* help: what the command tells of itself, as text and as JSON. */
#include "cli/help/help.h"
#include "commands.h"
#include "gen/error.h"
#include <string.h>

typedef struct help_args {
    cli_common common;
    bool man;
} help_args;

static const cli_option options[] = {
    { .name = "man", .at = offsetof(help_args, man), .help = "a manual page in roff: of the subcommand, or of fagen" },
    { .name = NULL },
};
static const cli_group groups[] = { { "Help", options, 0 }, CLI_COMMON, { NULL, NULL, 0 } };
static const cli_group common_groups[] = { CLI_COMMON, { NULL, NULL, 0 } };

/* The lines of a text of several. */
static json_t *lines_json(const char *s)
{
    json_t *lines = json_array();
    for (size_t n; *s; s += n + (s[n] == '\n')) {
        n = strcspn(s, "\n");
        json_array_append_new(lines, json_stringn(s, n));
    }
    return lines;
}

static json_t *option_json(const cli_option *o)
{
    char accepted[512] = "", letter[2] = { o->letter, 0 };
    if (o->type)
        o->type->accepts(accepted, sizeof accepted, o);
    return json_pack("{s:s,s:s*,s:s*,s:s,s:s*,s:s*}", "name", o->name, "letter", o->letter ? letter : NULL, "value",
                     o->type ? o->value : NULL, "help", o->help, "accepted", o->type ? accepted : NULL, "default", o->preset);
}

static json_t *command_json(const cli_command *cmd)
{
    json_t *all = json_array();
    for (const cli_group *g = cmd->groups; g->title; g++) {
        json_t *of = json_array();
        for (const cli_option *o = g->options; o->name; o++)
            if (o->help)
                json_array_append_new(of, option_json(o));
        json_array_append_new(all, json_pack("{s:s,s:o}", "title", g->title, "options", of));
    }
    return json_pack("{s:s,s:s,s:s,s:s,s:o,s:o}", "command", cmd->name, "summary", cmd->summary, "usage", cmd->usage, "about", cmd->about,
                     "examples", lines_json(cmd->examples), "groups", all);
}

int cli_help_command(cli *c, const cli_command *cmd)
{
    if (c->json)
        return cli_answer(c, command_json(cmd), CLI_EXIT_OK);
    const char *name = c->program->name;
    printf("%s %s: %s\n\nusage: %s %s %s\n\n", name, cmd->name, cmd->summary, name, cmd->name, cmd->usage);
    cli_wrap(stdout, cmd->about, 0, c->columns);
    printf("\nExamples\n");
    for (const char *s = cmd->examples; *s;) {
        size_t n = strcspn(s, "\n");
        printf("  %.*s\n", (int)n, s);
        s += n + (s[n] == '\n');
    }
    cli_args_help(stdout, cmd->groups, c->columns);
    return CLI_EXIT_OK;
}

static int topic(cli *c, const cli_topic *t)
{
    json_t *rows = c->json ? json_array() : NULL;
    cli_term row;
    int wide = 0;
    for (size_t i = 0; t->at(i, &row); i++) {
        int n = row.name ? (int)strlen(row.name) : 3;
        wide = n > wide ? n : wide;
    }
    if (!c->json)
        printf("%s\n\n", t->title);
    for (size_t i = 0; t->at(i, &row); i++)
        if (c->json) {
            json_array_append_new(rows, row.name ? json_pack("{s:s,s:s}", "name", row.name, "means", row.text)
                                                 : json_pack("{s:i,s:s}", "code", row.code, "means", row.text));
        } else {
            if (row.name)
                printf("  %-*s  ", wide, row.name);
            else
                printf("  %*d  ", wide, row.code);
            cli_wrap(stdout, row.text, wide + 4, c->columns);
        }
    return c->json ? cli_answer(c, json_pack("{s:o}", t->key, rows), CLI_EXIT_OK) : CLI_EXIT_OK;
}

void cli_help_list(const cli_program *p, FILE *f)
{
    fprintf(f, "%s %s: %s\n\nusage: %s COMMAND [options]\n\n", p->name, FA_VERSION_STRING, p->title, p->name);
    for (size_t i = 0; p->commands[i]; i++)
        fprintf(f, "  %-12s %s\n", p->commands[i]->name, p->commands[i]->summary);
    fprintf(f, "\n  %s COMMAND --help or %s help COMMAND tells more; also:\n\n", p->name, p->name);
    for (const cli_topic *t = cli_topics; t->name; t++)
        fprintf(f, "  help %-12s %s\n", t->name, t->summary);
    fprintf(f, "  --version         the version\n");
}

static int overview(cli *c)
{
    const cli_command *const *all = c->program->commands;
    if (!c->json) {
        cli_help_list(c->program, stdout);
        return CLI_EXIT_OK;
    }
    json_t *listed = json_array(), *topics = json_array();
    for (; *all; all++)
        json_array_append_new(listed, json_pack("{s:s,s:s}", "name", (*all)->name, "summary", (*all)->summary));
    for (const cli_topic *t = cli_topics; t->name; t++)
        json_array_append_new(topics, json_pack("{s:s,s:s}", "name", t->name, "summary", t->summary));
    return cli_answer(c, json_pack("{s:s,s:o,s:o}", "fagen", FA_VERSION_STRING, "commands", listed, "topics", topics), CLI_EXIT_OK);
}

static int run(cli *c, const void *args, int n, char **words)
{
    const help_args *a = args;
    const cli_command *cmd = n ? cli_command_find(c->program, words[0]) : NULL;
    const cli_topic *t = cli_topics;
    while (n && t->name && strcmp(t->name, words[0]))
        t++;
    if (n && !cmd && !t->name)
        return cli_fail(c, cli_command_unknown(c->program, words[0]));
    if (a->man && (c->json || (n && !cmd)))
        return cli_fail(
            c, fa_fail(FA_INVALID, "--man is together with \"%.40s\"; accepted: a subcommand, or nothing", c->json ? "--json" : words[0]));
    if (a->man) {
        cli_manual(stdout, c->program, cmd);
        return CLI_EXIT_OK;
    }
    return !n ? overview(c) : cmd ? cli_help_command(c, cmd) : topic(c, t);
}

static const char *word_at(const cli_program *p, size_t i)
{
    size_t n = 0;
    while (p->commands[n])
        n++;
    return i < n ? p->commands[i]->name : cli_topics[i - n].name;
}

const cli_command cli_help = {
    .name = "help",
    .summary = "what the subcommands, the exit codes and the environment are",
    .usage = "[COMMAND | TOPIC] [--man]",
    .about = "Lists the subcommands and topics, or tells all of one: usage, examples, every option with what it accepts.",
    .examples = "fagen help tune\nfagen help exit-codes\nfagen help tune --json\nfagen help --man tune | man -l -",
    .groups = groups,
    .size = sizeof(help_args),
    .words = 1,
    .run = run,
    .word = word_at,
};

static int version(cli *c, const void *args, int n, char **words)
{
    (void)args, (void)n, (void)words;
    if (c->json)
        return cli_answer(c, json_pack("{s:s}", "fagen", FA_VERSION_STRING), CLI_EXIT_OK);
    printf("fagen %s\n", FA_VERSION_STRING);
    return CLI_EXIT_OK;
}

const cli_command cli_version = {
    .name = "--version",
    .summary = "the version",
    .usage = "",
    .about = "Prints the version of fagen.",
    .examples = "fagen --version --json",
    .groups = common_groups,
    .size = sizeof(cli_common),
    .run = version,
};
