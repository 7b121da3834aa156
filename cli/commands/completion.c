/* completion: the scripts by which bash and zsh complete the words of fagen. */
#include "cli/help/completion.h"
#include "cli/options/problem_options.h"
#include "commands.h"
#include "gen/error.h"
#include <string.h>

typedef struct completion_args {
    cli_common common;
} completion_args;

static const cli_group groups[] = { CLI_COMMON, { NULL, NULL, 0 } };

static const struct {
    const char *shell;
    void (*print)(FILE *f, const cli_program *p, const completion_names *names);
} shells[] = { { "bash", completion_bash }, { "zsh", completion_zsh } };
#define SHELLS (sizeof shells / sizeof *shells)

static int run(cli *c, const void *args, int n, char **words)
{
    static completion_names names;
    fa_gen *g = NULL;
    size_t which = 0;
    (void)args;
    while (n && which < SHELLS && strcmp(shells[which].shell, words[0]))
        which++;
    if (!n || which == SHELLS)
        return cli_fail(c, fa_fail(FA_INVALID, "the shell is \"%.40s\"; accepted: bash, zsh", n ? words[0] : ""));
    fa_status st = cli_gen_open(&g);
    if (st != FA_OK)
        return cli_fail(c, st);
    for (size_t i = 0; i < fa_gen_families(g); i++)
        completion_add(names.families, sizeof names.families, fa_gen_family(g, i));
    fa_gen_close(g);
    if (!c->json) {
        shells[which].print(stdout, c->program, &names);
        return CLI_EXIT_OK;
    }
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return cli_fail(c, fa_fail(FA_NOMEM, "no memory for the text"));
    shells[which].print(f, c->program, &names);
    fclose(f);
    int code = cli_answer(c, json_pack("{s:s,s:s}", "shell", shells[which].shell, "text", text), CLI_EXIT_OK);
    free(text);
    return code;
}

static const char *word_at(const cli_program *p, size_t i)
{
    (void)p;
    return i < SHELLS ? shells[i].shell : NULL;
}

const cli_command cli_completion = {
    .name = "completion",
    .summary = "the script by which bash or zsh completes the words of fagen",
    .usage = "bash | zsh",
    .about = "Prints a script for the shell. An installed fagen has both where the shells look for them; without an installation, bash "
             "takes it as "
             "source <(fagen completion bash), and zsh as a file _fagen in a folder of its fpath.",
    .examples = "source <(fagen completion bash)\nfagen completion zsh >~/.zfunc/_fagen",
    .groups = groups,
    .size = sizeof(completion_args),
    .words = 1,
    .run = run,
    .word = word_at,
};
