/* table: measured first, printed in one go. */
#include "table.h"
#include "say.h"
#include <stdarg.h>
#include <string.h>

void cli_table_open(cli_table *t, const char *heads)
{
    *t = (cli_table){ .n = 0 };
    for (const char *s = heads; *s && t->n < CLI_TABLE_COLUMNS; s += strspn(s, " ")) {
        size_t n = strcspn(s, " ");
        t->head[t->n] = s;
        t->width[t->n++] = n - (*s == '>');
        s += n;
    }
}

static void add_cell(cli_table *t, char *cell)
{
    size_t n = strcspn(cell, "\n"); /* a message's first line */
    cell[n] = 0;
    fa_text_add(&t->cells, cell, n + 1);
    t->width[t->at] = n > t->width[t->at] ? n : t->width[t->at];
    t->at = (t->at + 1) % (size_t)t->n;
    t->rows += t->at == 0;
}

void cli_table_cells(cli_table *t, const char *fmt, ...)
{
    char raw[4096], text[4096], *cell = text;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    fa_text_plain(text, sizeof text, raw);
    for (const char *f = fmt; (f = strchr(f, '\t')); f++) {
        char *end = cell + strcspn(cell, "\t");
        bool more = *end;
        *end = 0;
        add_cell(t, cell);
        cell = end + more;
    }
    add_cell(t, cell);
}

static const struct {
    const char *word, *code;
} paints[] = { { "OK", "32" },      { "ok", "32" },     { "WARN", "33" }, { "FAIL", "31" },   { "wrong", "31" },
               { "compile", "31" }, { "launch", "31" }, { "fits", "32" }, { "timeout", "31" } };

void cli_paint(const cli *c, const char *word, int width)
{
    for (size_t i = 0; c->color && i < sizeof paints / sizeof *paints; i++)
        if (!strcmp(paints[i].word, word)) {
            printf("\033[%sm%-*s\033[0m", paints[i].code, width, word);
            return;
        }
    printf("%-*s", width, word);
}

void cli_heading(const cli *c, const char *text)
{
    fputs(c->color ? "\033[1m" : "", stdout);
    cli_say(stdout, "%s", text);
    fputs(c->color ? "\033[0m\n" : "\n", stdout);
}

#define LAST_LEAST 40 /* columns that the last one needs beside the others; else it has lines of its own */
#define INDENT 4

/* The last cell in lines of `room` columns, broken behind commas and blanks, each but the first indented. */
static void print_wrapped(const char *s, int indent, int room)
{
    for (bool first = true; *s; first = false) {
        int n = (int)strlen(s), cut = n <= room ? n : room;
        while (n > room && cut > room / 3 && s[cut - 1] != ',' && s[cut - 1] != ' ')
            cut--;
        if (n > room && cut <= room / 3)
            cut = room;
        printf("%s%*s%.*s", first ? "" : "\n", first ? 0 : indent, "", cut, s);
        s += cut + strspn(s + cut, " ");
    }
}

/* Whether the last column has lines of its own: there is too little room beside the others. */
static bool is_apart(const cli_table *t, const cli *c)
{
    size_t at = 0;
    for (int i = 0; i < t->n - 1; i++)
        at += t->width[i] + 2;
    return !c->wide && at + t->width[t->n - 1] > (size_t)c->columns && at + LAST_LEAST > (size_t)c->columns;
}

static void print_row(const cli_table *t, const cli *c, const char *const *cell, bool head)
{
    int at = 0;
    bool apart = is_apart(t, c);
    if (head && c->color)
        printf("\033[1m");
    for (int i = 0; i < t->n; i++) {
        int width = (int)t->width[i], n = (int)strcspn(cell[i], head ? " " : "");
        const char *s = cell[i];
        if (head && *s == '>') {
            s++;
            n--;
        }
        if (t->head[i][0] == '>') {
            printf("%*s", width - n, "");
            at += width - n;
        }
        if (apart && i == t->n - 1) {
            printf("\n%*s", INDENT, "");
            at = INDENT;
        }
        if (head)
            for (int k = 0; k < n; k++)
                putchar(s[k] == '_' ? ' ' : s[k]);
        else if (i < t->n - 1 || c->wide || at + n <= c->columns)
            cli_paint(c, s, n);
        else
            print_wrapped(s, at, c->columns - at > LAST_LEAST ? c->columns - at : LAST_LEAST);
        at += n;
        if (i < t->n - 1) {
            int pad = (t->head[i][0] == '>' ? 0 : width - n) + 2;
            if (apart && i == t->n - 2) /* nothing follows in this line */
                continue;
            printf("%*s", pad, "");
            at += pad;
        }
    }
    printf(head && c->color ? "\033[0m\n" : "\n");
}

void cli_table_print(cli_table *t, const cli *c)
{
    const char *cell[CLI_TABLE_COLUMNS], *s = t->cells.s;
    print_row(t, c, t->head, true);
    for (size_t r = 0; r < t->rows && !t->cells.oom; r++) {
        for (int i = 0; i < t->n; i++) {
            cell[i] = s;
            s += strlen(s) + 1;
        }
        print_row(t, c, cell, false);
    }
    fa_text_free(&t->cells);
}
