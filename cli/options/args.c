/* args: from the tables of options to a command's struct, and to its help. */
#include "args.h"
#include "gen/error.h"
#include "gen/text.h"
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct row {
    const cli_option *option;
    size_t base; /* of its group */
} row;

typedef struct rows {
    row r[CLI_OPTIONS_MAX];
    struct option longs[CLI_OPTIONS_MAX + 1]; /* val: 256 + index */
    char shorts[2 * CLI_OPTIONS_MAX + 2];
    size_t n;
} rows;

static void gather(rows *out, const cli_group *groups)
{
    size_t at = 0;
    memset(out, 0, sizeof *out);
    out->shorts[at++] = ':'; /* tells a missing value from an unknown option */
    for (; groups->title; groups++)
        for (const cli_option *o = groups->options; o->name && out->n < CLI_OPTIONS_MAX; o++) {
            out->r[out->n] = (row){ o, groups->at + o->at };
            out->longs[out->n] = (struct option){ o->name, o->type ? required_argument : no_argument, NULL, 256 + (int)out->n };
            if (o->letter) {
                out->shorts[at++] = o->letter;
                if (o->type)
                    out->shorts[at++] = ':';
            }
            out->n++;
        }
}

static fa_status store(const row *r, void *args, const char *text)
{
    char accepted[512];
    const cli_option *o = r->option;
    if (!o->type) {
        *(bool *)((char *)args + r->base) = true;
        return FA_OK;
    }
    if (o->type->read((char *)args + r->base, text, o))
        return FA_OK;
    o->type->accepts(accepted, sizeof accepted, o);
    return fa_fail(FA_INVALID, "--%s is \"%.80s\"; accepted: %s", o->name, text, accepted);
}

static const char *option_name(const void *user, size_t i)
{
    const rows *t = user;
    return i >= t->n ? NULL : t->r[i].option->help ? t->r[i].option->name : "";
}

static fa_status unknown(const rows *t, const char *word)
{
    char name[64];
    if (word[0] != '-' || word[1] != '-') {
        const char *near = cli_nearest(word + strspn(word, "-"), option_name, t);
        return fa_fail(FA_INVALID, "unknown option \"%.60s\"%s%s%s", word, near ? "; did you mean --" : "; --help lists what is accepted",
                       near ? near : "", near ? "?" : "");
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    size_t like = 0, len = strlen(name);
    char list[256] = "";
    for (size_t i = 0; len && i < t->n; i++) {
        if (!t->r[i].option->help)
            continue;
        if (!strcmp(t->r[i].option->name, name))
            return fa_fail(FA_INVALID, "--%s takes no value; given: \"%.80s\"", name, word);
        if (!strncmp(t->r[i].option->name, name, len)) {
            size_t at = strlen(list);
            snprintf(list + at, sizeof list - at, "%s--%s", like++ ? ", " : "", t->r[i].option->name);
        }
    }
    if (like > 1)
        return fa_fail(FA_INVALID, "option --%s is ambiguous; accepted: %s", name, list);
    const char *near = cli_nearest(name, option_name, t);
    return fa_fail(FA_INVALID, "unknown option --%s%s%s%s", name, near ? "; did you mean --" : "; --help lists what is accepted",
                   near ? near : "", near ? "?" : "");
}

fa_status cli_args_parse(const cli_group *groups, void *args, size_t size, int argc, char **argv, int *rest)
{
    rows t;
    fa_status st = FA_OK;
    gather(&t, groups);
    memset(args, 0, size);
    for (size_t i = 0; st == FA_OK && i < t.n; i++)
        if (t.r[i].option->preset)
            st = store(&t.r[i], args, t.r[i].option->preset);
    optind = 0; /* glibc: start over */
    opterr = 0;
    while (st == FA_OK) {
        int at = optind ? optind : 1, c = getopt_long(argc, argv, t.shorts, t.longs, NULL);
        const row *r = NULL;
        if (c == -1)
            break;
        if (c == ':') {
            for (size_t i = 0; i < t.n; i++)
                if (t.longs[i].val == optopt || t.r[i].option->letter == optopt)
                    r = &t.r[i];
            char accepted[512] = "";
            if (r)
                r->option->type->accepts(accepted, sizeof accepted, r->option);
            st = fa_fail(FA_INVALID, "--%s needs a value; accepted: %s", r ? r->option->name : "?", accepted);
        } else if (c == '?') {
            const char *word = optind > 0 && optind <= argc ? argv[optind - 1] : argv[at];
            char letter[3] = { '-', (char)optopt, 0 };
            st = unknown(&t, optopt > 0 && optopt < 256 ? letter : word);
        } else {
            for (size_t i = 0; i < t.n; i++)
                if (t.longs[i].val == c || (c < 256 && t.r[i].option->letter == c))
                    r = &t.r[i];
            if (r)
                st = store(r, args, optarg);
        }
    }
    *rest = optind;
    return st;
}

void cli_wrap(FILE *f, const char *text, int indent, int columns)
{
    int at = indent;
    fa_text plain = { 0 };
    fa_text_str(&plain, text);
    fa_text_make_plain(&plain);
    text = fa_text_cstr(&plain);
    while (*text) {
        size_t n = strcspn(text, " \n");
        if (at > indent && at + 1 + (int)n > columns) {
            fprintf(f, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            fputc(' ', f);
            at++;
        }
        fwrite(text, 1, n, f);
        at += (int)n;
        text += n;
        if (*text == '\n') {
            fprintf(f, "\n%*s", indent, "");
            at = indent;
        }
        text += *text != 0;
    }
    fputc('\n', f);
    fa_text_free(&plain);
}

void cli_option_about(char *buf, size_t n, const cli_option *o)
{
    char accepted[400] = "";
    if (o->type == &cli_choice || o->type == &cli_choices || o->type == &cli_set)
        o->type->accepts(accepted, sizeof accepted, o);
    snprintf(buf, n, "%s%s%s%s%s%s", o->help, accepted[0] ? ": " : "", accepted, o->preset ? " (default " : "", o->preset ? o->preset : "",
             o->preset ? ")" : "");
}

#define HELP_INDENT 28

void cli_args_help(FILE *f, const cli_group *groups, int columns)
{
    for (; groups->title; groups++) {
        fprintf(f, "\n%s\n", groups->title);
        for (const cli_option *o = groups->options; o->name; o++) {
            if (!o->help)
                continue;
            char left[64], right[768];
            char letter[8] = "    ";
            if (o->letter)
                snprintf(letter, sizeof letter, "-%c, ", o->letter);
            snprintf(left, sizeof left, "  %s--%s%s%s", letter, o->name, o->type ? " " : "", o->type ? o->value : "");
            cli_option_about(right, sizeof right, o);
            if (strlen(left) >= HELP_INDENT - 1)
                fprintf(f, "%s\n%*s", left, HELP_INDENT, "");
            else
                fprintf(f, "%-*s", HELP_INDENT, left);
            cli_wrap(f, right, HELP_INDENT, columns);
        }
    }
}

/* Levenshtein's distance with the last two letters' exchange counted as one (Damerau), up to 31 letters. */
static size_t distance(const char *a, const char *b)
{
    size_t d[32][32], n = strnlen(a, 31), m = strnlen(b, 31);
    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++) {
            if (!i || !j) {
                d[i][j] = i + j;
                continue;
            }
            size_t v = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            v = d[i - 1][j] + 1 < v ? d[i - 1][j] + 1 : v;
            v = d[i][j - 1] + 1 < v ? d[i][j - 1] + 1 : v;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < v)
                v = d[i - 2][j - 2] + 1;
            d[i][j] = v;
        }
    return d[n][m];
}

const char *cli_nearest(const char *word, const char *(*next)(const void *user, size_t i), const void *user)
{
    const char *best = NULL, *name;
    size_t least = strlen(word) / 3 + 2; /* farther than that is a guess */
    for (size_t i = 0; (name = next(user, i)) != NULL; i++) {
        if (!name[0])
            continue;
        size_t d = distance(word, name);
        if (d < least && d < strlen(name)) {
            least = d;
            best = name;
        }
    }
    return best;
}
