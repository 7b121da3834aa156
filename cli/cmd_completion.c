/* completion: the scripts by which bash and zsh complete the words of fagen. */
#include "ask.h"
#include "completion.h"
#include "gen/error.h"
#include "grid.h"
#include <string.h>

typedef struct completion_args {
    cli_common common;
} completion_args;

static const cli_group groups[] = { CLI_COMMON, { NULL, NULL, 0 } };

static const struct {
    const char *shell;
    void (*print)(FILE *f, const completion_names *names);
} shells[] = { { "bash", completion_bash }, { "zsh", completion_zsh } };
#define SHELLS (sizeof shells / sizeof *shells)

static void add(char *to, size_t n, const char *word)
{
    size_t at = strlen(to);
    snprintf(to + at, n - at, "%s%s", at ? " " : "", word);
}

/* The words of "a, b, c", each behind `before`. */
static void add_all(char *to, size_t n, const char *before, const char *list)
{
    while (*list) {
        char word[64];
        size_t k = strcspn(list, ", ");
        snprintf(word, sizeof word, "%s%.*s", before, (int)k, list);
        add(to, n, word);
        list += k + strspn(list + k, ", ");
    }
}

/* Options whose values are names that no table of words has; the rest go by what the help calls the value. */
enum names { ARCHS, DEVICES, GRIDS, FAMILIES, FILES, FOLDERS };
static const struct {
    const char *option, *value; /* NULL: any */
    enum names names;
} rows[] = {
    { "arch", NULL, ARCHS },      { "device", NULL, DEVICES }, { "with", NULL, DEVICES }, { "devices", NULL, DEVICES }, { "grid", NULL, GRIDS },
    { "family", NULL, FAMILIES }, { NULL, "FILE", FILES },     { NULL, "DIR", FOLDERS },
};

void completion_of(completion *out, const cli_option *o, const completion_names *names)
{
    *out = (completion){ .list = o->kind == &cli_choices || (o->value && (!strcmp(o->value, "LIST") || strstr(o->value, ",..."))) };
    for (const cli_word *w = o->words; w && w->name; w++)
        add(out->words, sizeof out->words, w->name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !out->words[0]; i++) {
        if ((rows[i].option && strcmp(rows[i].option, o->name)) || (rows[i].value && (!o->value || strcmp(rows[i].value, o->value))))
            continue;
        if (rows[i].names == ARCHS)
            add_all(out->words, sizeof out->words, "", fa_arch_names());
        if (rows[i].names == DEVICES) {
            add_all(out->words, sizeof out->words, "", out->list ? "all, 0, 1" : "cuda, cuda:0, cuda:1");
            add_all(out->words, sizeof out->words, "sim:", out->list ? "" : fa_arch_names());
        }
        for (const cli_grid *g = cli_grids; rows[i].names == GRIDS && g->name; g++)
            add(out->words, sizeof out->words, g->name);
        if (rows[i].names == FAMILIES)
            add(out->words, sizeof out->words, names->families);
        if (rows[i].names == FILES || rows[i].names == FOLDERS)
            out->source = rows[i].names == FILES ? COMPLETE_FILES : COMPLETE_FOLDERS;
    }
    if (out->words[0])
        out->source = COMPLETE_WORDS;
}

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
        add(names.families, sizeof names.families, fa_gen_family(g, i));
    fa_gen_close(g);
    if (!c->json) {
        shells[which].print(stdout, &names);
        return CLI_EXIT_OK;
    }
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return cli_fail(c, fa_fail(FA_NOMEM, "no memory for the text"));
    shells[which].print(f, &names);
    fclose(f);
    int code = cli_answer(c, json_pack("{s:s,s:s}", "shell", shells[which].shell, "text", text), CLI_EXIT_OK);
    free(text);
    return code;
}

static const char *word_at(size_t i)
{
    return i < SHELLS ? shells[i].shell : NULL;
}

const cli_command cli_completion = {
    .name = "completion", .summary = "the script by which bash or zsh completes the words of fagen", .usage = "bash | zsh",
    .about = "Prints a script for the shell. An installed fagen has both where the shells look for them; without an installation, bash takes it as "
             "source <(fagen completion bash), and zsh as a file _fagen in a folder of its fpath.",
    .examples = "source <(fagen completion bash)\nfagen completion zsh >~/.zfunc/_fagen",
    .groups = groups, .size = sizeof(completion_args), .words = 1, .run = run, .word = word_at,
};
