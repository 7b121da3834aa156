/* C knows no family: no string of the generator, the cache, the runtime, the tuner and the command is the name of a family, of a tunable,
 * of one of its values or of a constraint, but for what is listed here with its reason. The names are those of the templates of this build.
 */
#include "gen/gen.h"
#include "gen/problem.h"
#include "gen/space.h"
#include <criterion/criterion.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *file, *word; /* file: a part of the path; word NULL: all */
    const char *why;
} allowed[] = {
    { "gen/step", NULL, "the fields of a step, which a family fills: docs/templates.md" },
    { "gen/extent.h", "rows", "an extent" },
    { "gen/extent.h", "parts", "an extent" },
    { "runtime/args/check.c", "parts", "a field of fa_args" },
    { "gen/family.c", "ctas", "a field of the layout: blocks that share an SM's registers" },
    { "gen/operation.c", "merge", "an operation, and its family" },
    { "gen/operation.c", "append", "an operation, and its family" },
    { "gen/tunable.c", "tile", "a field of the family" },
    { "gen/sandbox_formats.c", "halves", "an order of codes" },
    { "gen/sandbox_names.c", "exp", "a function of Lua's math" },
    { "cli/commands/scores.c", "operands", "of a score program" },
    { "gen/score/names.c", "exp", "a function of score programs" },
    { "gen/sandbox_score.c", NULL, "what reads of operands depend on, and fields of the table that templates read" },
    { "gen/score/lines.c", "row", "a pair's, in the functions that it prints" },
    { "gen/score/print_tiles.c", "row", "a pair's, in the functions that it prints" },
    { "gen/score/mask.c", "row", "a pair's, in the functions that it prints" },
    { "gen/work.c", "rows", "a field of work()" },
    { "gen/traffic.c", "naive", "an algorithm of the model" },
    { "gen/literature.c", "naive", "an algorithm of the literature" },
    { "gen/cost.c", "exp", "a unit of the model" },
    { "cache/quality.c", "steady", "a quality of a timing" },
    { "gen/price.c", "grid", "what limits the blocks of an SM" },
    { "runtime/bundle/columns.c", NULL, "the fields of a step, in a bundle" },
    { "cli/emit/emit.c", NULL, "--grid, fields of a step, and a config in the help's examples" },
    { "cli/commands/model.c", NULL, "--br and --bc, a tile on paper; units of the model" },
    { "cli/commands/bench.c", NULL, "families in the help's examples" },
    { "cli/commands/run.c", NULL, "--schedule, of the simulator's warps, and a config in the help's examples" },
    { "cli/commands/verify.c", NULL, "--schedule, of the simulator's warps, and a family in the help's examples" },
    { "cli/commands/space.c", NULL, "a config in the help's examples" },
    { "cli/tune/re", "spread", "of the samples of a time" }, /* report.c, result.c */
    { "cli/explore/columns.c", "spread", "of the samples of a time" },
    { "cli/options/problem_options.c", "merge", "an operation, of --op" },
    { "cli/options/problem_options.c", "append", "an operation, of --op" },
    { "cli/options/problem_list.c", "grid", "--grid, a named set of problems" },
    { "cli/tune/list.c", "grid", "a named set of problems" },
    { "cli/help/completion.c", "grid", "--grid, a named set of problems" },
    { "cli/explore/document.c", "naive", "naive attention" },
    { "cli/explore/document.c", "held", "a field of a document" },
    { "cli/explore/columns.c", "grid", "a column: blocks of the launch" },
    { "cli/explore/columns.c", "order", "a column: place in the space" },
    { "cli/show/kernel_report.c", "warps", "a field of a document" },
    { "cli/emit/bundle.c", "rows", "a field of a document" },
    { "cli/emit/host.c", "box", "of a tensor map" },
    { "cli/options/command.c", "always", "--color always" },
    { "runtime/explain.c", "cluster", "a cluster of blocks" },
    { "verify/cases/trial.c", NULL, "configs whose kernels take K and V of few bits as they are, where others round them" },
};

#define WORDS_MAX 512
static char word[WORDS_MAX][32];
static bool is_family[WORDS_MAX], is_tunable[WORDS_MAX];
static size_t words;

static size_t add(const char *s)
{
    size_t i = 0;
    while (i < words && strcmp(word[i], s))
        i++;
    if (i == words) {
        cr_assert_lt(words, WORDS_MAX);
        snprintf(word[words++], sizeof word[0], "%s", s);
    }
    return i;
}

static void collect(void)
{
    static const char *const problems[] = { "bf16,d=128,mask=causal",     "bf16,d=64,mask=window", "fp32,d=64", "tf32,d=64", "fp16,d=256",
                                            "bf16,d=128,features=lengths" };
    fa_gen *g;
    fa_tunable t;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK);
    for (size_t f = 0; f < fa_gen_families(g); f++) {
        is_family[add(fa_gen_family(g, f))] = true;
        for (size_t i = 0; fa_gen_tunable(g, fa_gen_family(g, f), i, &t); i++) {
            is_tunable[add(t.name)] = true;
            for (size_t v = 0; t.names && v < t.n; v++)
                if (t.names[v])
                    add(t.names[v]);
        }
    }
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        fa_problem p;
        fa_space s;
        cr_assert_eq(fa_problem_parse(&p, problems[i]), FA_OK);
        cr_assert_eq(fa_space_list(g, &p, fa_arch_find("sm_90a"), 0, NULL, &s), FA_OK, "%s", fa_last_error());
        for (size_t k = 0; k < s.n; k++)
            if (!s.points[k].fits && s.points[k].check == FA_CHECK_FAMILY)
                add(s.points[k].constraint);
        fa_space_free(&s);
    }
    fa_gen_close(g);
}

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The first place of the name in the string as a word of its own; NULL = none. */
static const char *as_word(const char *s, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = s; (at = strstr(at, name)) != NULL; at++)
        if ((at == s || !in_word(at[-1])) && !in_word(at[n]))
            return at;
    return NULL;
}

/* Whether the string names it: it is the word; or holds a family's name that is no word of English, or one before a ':'; or "tunable=". */
static bool names(const char *s, size_t i)
{
    const char *at = as_word(s, word[i]);
    char after = at ? at[strlen(word[i])] : 0;
    return !strcmp(s, word[i]) || (at && is_family[i] && (strchr(word[i], '_') || (after == ':' && in_word(at[strlen(word[i]) + 1])))) ||
           (at && is_tunable[i] && after == '=' && at > s && (at[-1] == ':' || at[-1] == ','));
}

#define NOWHERE "nowhere.c" /* whose finds are counted and not told */
static bool used[sizeof allowed / sizeof *allowed];

static size_t judge(const char *path, int line, const char *s)
{
    size_t found = 0;
    for (size_t i = 0; i < words; i++) {
        bool fine = false;
        if (!names(s, i))
            continue;
        for (size_t k = 0; k < sizeof allowed / sizeof *allowed; k++)
            if (strstr(path, allowed[k].file) && (!allowed[k].word || !strcmp(allowed[k].word, word[i])))
                fine = used[k] = true;
        if (!fine && line)
            cr_log_error("%s:%d: \"%s\" names %s", path, line, s, word[i]);
        found += !fine;
    }
    return found;
}

/* Every string literal of C text; comments and characters are passed over. Adjoining literals are one each. */
static size_t scan(const char *path, const char *at)
{
    size_t found = 0;
    char s[8192];
    for (int line = strcmp(path, NOWHERE) ? 1 : 0; *at; at++) {
        line += line && *at == '\n';
        if (at[0] == '/' && at[1] == '*') {
            for (at += 2; at[0] && !(at[0] == '*' && at[1] == '/'); at++)
                line += line && *at == '\n';
            at += *at != 0;
        } else if (at[0] == '/' && at[1] == '/') {
            while (at[1] && at[1] != '\n')
                at++;
        } else if (*at == '\'') {
            for (at++; *at && *at != '\''; at++)
                at += *at == '\\';
        } else if (*at == '"') {
            size_t n = 0;
            for (at++; *at && *at != '"'; at++) {
                at += *at == '\\';
                s[n] = *at;
                n += n < sizeof s - 1;
            }
            s[n] = 0;
            found += judge(path, line, s);
        }
        if (!*at)
            break;
    }
    return found;
}

static char *read_whole(const char *path)
{
    FILE *f = fopen(path, "rb");
    cr_assert(f && !fseek(f, 0, SEEK_END), "%s", path);
    long n = ftell(f);
    char *s = malloc((size_t)n + 1);
    rewind(f);
    cr_assert(s && fread(s, 1, (size_t)n, f) == (size_t)n);
    s[n] = 0;
    fclose(f);
    return s;
}

/* The C files of a folder and of its rooms; returns how many strings are at fault. */
static size_t scan_folder(const char *folder, size_t *files)
{
    size_t found = 0;
    DIR *d = opendir(folder);
    cr_assert(d, "%s", folder);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[1024];
        size_t n = strlen(e->d_name);
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_type == DT_DIR) {
            found += scan_folder(path, files);
        } else if (n > 2 && e->d_name[n - 2] == '.' && strchr("ch", e->d_name[n - 1])) {
            char *text = read_whole(path);
            found += scan(path + strlen(SOURCE) + 1, text);
            free(text);
            ++*files;
        }
    }
    closedir(d);
    return found;
}

Test(family_words, no_string_names_a_family)
{
    static const char *const folders[] = { "gen", "cache", "runtime", "verify", "autotune", "cli" };
    size_t files = 0, found = 0;
    collect();
    cr_assert_gt(words, 30);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", SOURCE, folders[i]);
        found += scan_folder(path, &files);
    }
    cr_expect_gt(files, 400);
    cr_expect_eq(found, 0, "%zu strings in C name what only a template should: the family declares it, or a row of `allowed` says why",
                 found);
    for (size_t k = 0; k < sizeof allowed / sizeof *allowed; k++)
        if (!used[k])
            cr_log_warn("%s no longer names %s: the row can go", allowed[k].file, allowed[k].word ? allowed[k].word : "anything");
}

Test(family_words, what_is_looked_for_is_found)
{
    static const struct {
        const char *text;
        size_t found;
    } rows[] = {
        { "f(\"naive\");", 1 },
        { "f(\"naive attention\"); /* \"naive\" */ // \"br\"\n", 0 },
        { "f('\"', \"naive:tile=64\");", 2 },
        { "f(\"x\\\"\", \"br\")", 1 },
        { "f(\"use flash_fwd_mma here\")", 1 },
        { "f(\"made_up:br=64,bc=32\")", 2 },
        { "f(\"br=64\", \"abr\", \"br64\")", 0 },
        { "f(\"pingpong\") + f(\"accumulators\")", 2 },
    };
    collect();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(scan(NOWHERE, rows[i].text), rows[i].found, "row %zu", i);
}
