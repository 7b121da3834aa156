/* manual: the pages of `man fagen`, in the macros man(7) as groff and mandoc read them. */
#include "help.h"
#include <ctype.h>
#include <string.h>

/* Characters that roff would take for its own, or print as others than those that a person types. */
static const char *escape(char c)
{
    static const struct {
        char c;
        const char *as;
    } rows[] = {
        { '\\', "\\e" }, { '-', "\\-" }, { '"', "\\(dq" }, { '\'', "\\(aq" }, { '`', "\\(ga" }, { '^', "\\(ha" }, { '~', "\\(ti" }
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].c == c)
            return rows[i].as;
    return NULL;
}

#define SOURCE_COLUMNS 72 /* from where a line of filled text ends at a blank */

/* n characters of one line; a long list may break after a comma. fill: roff joins and breaks the lines as it likes. */
static void roff(FILE *f, const char *s, size_t n, bool fill)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const char *as = escape(s[i]);
        bool first = at == 0;
        at += as ? strlen(as) : 1;
        if (first && s[i] == '.')
            fputs("\\&.", f);
        else if (as)
            fputs(as, f);
        else if (fill && at > SOURCE_COLUMNS && s[i] == ' ')
            fputc('\n', f), at = 0;
        else
            fputc(s[i], f);
        if (s[i] == ',' && i + 1 < n && !isspace((unsigned char)s[i + 1]))
            fputs("\\:", f);
    }
}

/* The lines of a text, each after `between` but the first; NULL: as they are, not filled. */
static void lines(FILE *f, const char *s, const char *between)
{
    for (size_t n, i = 0; *s; s += n + (s[n] == '\n'), i++) {
        n = strcspn(s, "\n");
        if (i && between)
            fputs(between, f);
        roff(f, s, n, between != NULL);
        fputc('\n', f);
    }
}

static void section(FILE *f, const char *macro, const char *title)
{
    fprintf(f, "%s ", macro);
    roff(f, title, strlen(title), false);
    fputc('\n', f);
}

/* The text of a row, after its term and what else stands in that line. */
static void row(FILE *f, const char *text)
{
    fputc('\n', f);
    lines(f, text, ".br\n");
}

static void term(FILE *f, const char *text)
{
    fputs(".TP\n\\fB", f);
    roff(f, text, strlen(text), false);
    fputs("\\fR", f);
}

static void options(FILE *f, const cli_option *o)
{
    for (; o->name; o++) {
        char name[64], about[768];
        if (!o->help)
            continue;
        cli_option_about(about, sizeof about, o);
        if (o->letter)
            snprintf(name, sizeof name, "-%c, --%s", o->letter, o->name);
        else
            snprintf(name, sizeof name, "--%s", o->name);
        term(f, name);
        if (o->type) {
            fputs(" \\fI", f);
            roff(f, o->value, strlen(o->value), false);
            fputs("\\fR", f);
        }
        row(f, about);
    }
}

static void topics(FILE *f)
{
    for (const cli_topic *all = cli_topics; all->name; all++) {
        cli_term t;
        section(f, ".SH", all->section);
        for (size_t i = 0; all->at(i, &t); i++) {
            char code[16];
            snprintf(code, sizeof code, "%d", t.code);
            term(f, t.name ? t.name : code);
            row(f, t.text);
        }
    }
}

/* The first lines of a page: `word` is "" or the subcommand. */
static void head(FILE *f, const char *word, const char *summary)
{
    char upper[32];
    snprintf(upper, sizeof upper, "%s%s", word[0] ? "-" : "", word);
    for (char *p = upper; *p; p++)
        *p = (char)toupper((unsigned char)*p);
    fprintf(f, ".\\\" Made by fagen help --man%s%s.\n.TH \"FAGEN", word[0] ? " " : "", word);
    roff(f, upper, strlen(upper), false);
    fprintf(f, "\" 1 %s \"fagen %s\" \"fagen manual\"\n.SH NAME\nfagen%s", FA_DATE, FA_VERSION_STRING, word[0] ? "\\-" : "");
    roff(f, word, strlen(word), false);
    fputs(" \\- ", f);
    lines(f, summary, NULL); /* whatis(1) reads one line */
}

static void whole(FILE *f, const cli_program *p)
{
    head(f, "", p->title);
    fputs(".SH SYNOPSIS\n\\fBfagen\\fR \\fICOMMAND\\fR [\\fIoptions\\fR]\n.SH DESCRIPTION\n", f);
    lines(f,
          "Expands templates of FlashAttention kernels into CUDA text, compiles it with NVRTC, finds the fastest for a chip by measuring, "
          "and keeps "
          "kernels and records on disk, from where programs that link libfagen take them. Where there is no GPU, a simulator runs the "
          "kernels.",
          "");
    fputs(".SH COMMANDS\n", f);
    for (size_t i = 0; p->commands[i]; i++) {
        char page[64];
        snprintf(page, sizeof page, "fagen-%s", p->commands[i]->name);
        term(f, page);
        fputs("(1)", f);
        row(f, p->commands[i]->summary);
    }
    fputs(".SH OPTIONS\nEvery command takes\n", f);
    options(f, cli_common_options);
    topics(f);
    section(f, ".SH", "FILES");
    term(f, "~/.cache/fagen");
    row(f, "Kernels and records, where FAGEN_CACHE_DIR does not name another place. Deleting files there is safe.");
    section(f, ".SH", "SEE ALSO");
    lines(f, "The header fagen.h is the manual of the library. The pages of the documentation are installed below share/doc/fagen.", "");
}

void cli_manual(FILE *f, const cli_program *p, const cli_command *cmd)
{
    if (!cmd) {
        whole(f, p);
        return;
    }
    head(f, cmd->name, cmd->summary);
    fputs(".SH SYNOPSIS\n\\fBfagen ", f);
    roff(f, cmd->name, strlen(cmd->name), false);
    fputs("\\fR\n", f);
    lines(f, cmd->usage, ".br\n");
    fputs(".SH DESCRIPTION\n", f);
    lines(f, cmd->about, ".PP\n");
    fputs(".SH OPTIONS\n", f);
    for (const cli_group *g = cmd->groups; g->title; g++) {
        bool told = false;
        for (const cli_option *o = g->options; o->name; o++)
            told |= o->help != NULL;
        if (!told)
            continue;
        section(f, ".SS", g->title);
        options(f, g->options);
    }
    fputs(".SH EXAMPLES\n.nf\n", f);
    lines(f, cmd->examples, NULL);
    fputs(".fi\n.SH EXIT STATUS\nAs fagen(1) tells.\n.SH SEE ALSO\n\\fBfagen\\fR(1)\n", f);
}
