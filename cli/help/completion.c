/* completion: what a shell may offer as the value of an option. */
#include "completion.h"
#include "cli/options/grid.h"
#include "gen/arch.h"
#include <string.h>

void completion_add(char *to, size_t n, const char *word)
{
    size_t at = strlen(to);
    snprintf(to + at, n - at, "%s%s", at ? " " : "", word);
}

/* The words of "a, b, c", each after `before`. */
static void add_all(char *to, size_t n, const char *before, const char *list)
{
    while (*list) {
        char word[64];
        size_t k = strcspn(list, ", ");
        snprintf(word, sizeof word, "%s%.*s", before, (int)k, list);
        completion_add(to, n, word);
        list += k + strspn(list + k, ", ");
    }
}

static void add_archs(char *to, size_t n, const char *before)
{
    const char *product;
    add_all(to, n, before, fa_arch_names());
    for (size_t i = 0; fa_arch_product(i, &product); i++)
        add_all(to, n, before, product);
}

/* Options whose values are names that no table of words has; the rest go by what the help calls the value. */
enum names { ARCHS, DEVICES, GRIDS, FAMILIES, FILES, FOLDERS };
static const struct {
    const char *option, *value; /* NULL: any */
    enum names names;
} rows[] = {
    { "arch", NULL, ARCHS },      { "device", NULL, DEVICES }, { "devices", NULL, DEVICES }, { "grid", NULL, GRIDS },
    { "family", NULL, FAMILIES }, { NULL, "FILE", FILES },     { NULL, "DIR", FOLDERS },
};

void completion_of(completion *out, const cli_option *o, const completion_names *names)
{
    *out = (completion){ .list = o->type == &cli_choices || o->type == &cli_set ||
                                 (o->value && (!strcmp(o->value, "LIST") || strstr(o->value, ",..."))) };
    for (const cli_word *w = o->words; w && w->name; w++)
        if (cli_word_is_first(o->words, w))
            completion_add(out->words, sizeof out->words, w->name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !out->words[0]; i++) {
        if ((rows[i].option && strcmp(rows[i].option, o->name)) || (rows[i].value && (!o->value || strcmp(rows[i].value, o->value))))
            continue;
        if (rows[i].names == ARCHS)
            add_archs(out->words, sizeof out->words, "");
        if (rows[i].names == DEVICES) {
            add_all(out->words, sizeof out->words, "", out->list ? "all, 0, 1" : "cuda, cuda:0, cuda:1");
            if (!out->list)
                add_archs(out->words, sizeof out->words, "sim:");
        }
        for (const cli_grid *g = cli_grids; rows[i].names == GRIDS && g->name; g++)
            completion_add(out->words, sizeof out->words, g->name);
        if (rows[i].names == FAMILIES)
            completion_add(out->words, sizeof out->words, names->families);
        if (rows[i].names == FILES || rows[i].names == FOLDERS)
            out->source = rows[i].names == FILES ? COMPLETE_FILES : COMPLETE_FOLDERS;
    }
    if (out->words[0])
        out->source = COMPLETE_WORDS;
}
