/* status_line: one line about a long work, made of pieces, in as many columns as there are. */
#ifndef FA_CLI_TEXT_STATUS_LINE_H
#define FA_CLI_TEXT_STATUS_LINE_H
#include <stddef.h>

#define CLI_STATUS_LINE_PIECES 16
#define CLI_STATUS_LINE_MOST 512

typedef struct cli_piece {
    int rank;       /* the smallest are taken first, as long as they fit; 0 = always */
    char text[120]; /* ASCII; "" = not there */
    char brief[56]; /* in its place where there is less room; "" = as text */
} cli_piece;

typedef struct cli_status_line {
    int n;
    cli_piece piece[CLI_STATUS_LINE_PIECES]; /* in the order of the line */
    double done;                             /* 0 to 1: the bar, which stands after the first piece */
    int cells;                               /* of the bar at most; 0 = 24 */
} cli_status_line;

/* Appends a piece; more than there is room for are dropped. */
void cli_status_line_add(cli_status_line *l, int rank, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The last piece's shorter form. */
void cli_status_line_brief(cli_status_line *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define CLI_STATUS_LINE_BAR 4 /* the bar's rank */
/* The line for a terminal: two blanks between pieces, at most width columns. What room is left after all brief forms goes to whole
 * texts, and then to the bar, up to 24 cells. */
void cli_status_line_fit(const cli_status_line *l, int width, char out[CLI_STATUS_LINE_MOST]);
/* The line for a file: the percentage, every piece, commas between. */
void cli_status_line_plain(const cli_status_line *l, char out[CLI_STATUS_LINE_MOST]);
#endif
