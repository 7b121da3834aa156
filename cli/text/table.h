/* table: columns of text for people, as wide as what they hold; the last is wrapped at the terminal's edge. */
#ifndef FA_CLI_TEXT_TABLE_H
#define FA_CLI_TEXT_TABLE_H
#include "cli.h"
#include "gen/text.h"

#define CLI_TABLE_COLUMNS 12

typedef struct cli_table {
    int n;                               /* columns */
    const char *head[CLI_TABLE_COLUMNS]; /* literals; a leading '>' aligns the column right */
    fa_text cells;                       /* NUL-terminated, one after the other */
    size_t rows, at;                     /* at: cells of the last row so far */
    size_t width[CLI_TABLE_COLUMNS];
} cli_table;

/* heads: "name >bytes why", split at blanks; '_' prints as a blank. Lives as long as the literal. */
void cli_table_open(cli_table *t, const char *heads);
/* One cell or several, with \t between: as many as fmt tells, so that a tab in what is printed costs no cell. */
void cli_table_cells(cli_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints to standard output and frees. */
void cli_table_print(cli_table *t, const cli *c);

/* The words OK, WARN, FAIL and their like in their colours; others plain. */
void cli_paint(const cli *c, const char *word, int width);
/* A heading of a section. */
void cli_heading(const cli *c, const char *text);
#endif
