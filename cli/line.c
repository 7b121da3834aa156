/* line: pieces are dropped until the rest fits. */
#include "line.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define GAP 2
#define CELLS_LEAST 6
#define CELLS_MOST 24

void cli_line_add(cli_line *l, int rank, const char *fmt, ...)
{
    va_list ap;
    if (l->n == CLI_LINE_PIECES)
        return;
    cli_piece *p = &l->piece[l->n++];
    p->rank = rank;
    va_start(ap, fmt);
    vsnprintf(p->text, sizeof p->text, fmt, ap);
    va_end(ap);
}

/* Takes what has the rank, as long as it fits; returns the columns that are used then. */
static int take(const cli_line *l, int rank, int used, int width, bool *in)
{
    for (int i = 0; i < l->n; i++) {
        int n = (int)strlen(l->piece[i].text);
        if (!n || l->piece[i].rank != rank)
            continue;
        in[i] = rank == 0 || used + (used ? GAP : 0) + n <= width; /* what is never dropped is cut */
        used += in[i] ? (used ? GAP : 0) + n : 0;
    }
    return used;
}

static size_t add(char *out, size_t at, const char *text, const char *gap)
{
    int n = snprintf(out + at, CLI_LINE_MOST - at, "%s%s", at ? gap : "", text);
    at += n > 0 ? (size_t)n : 0;
    return at < CLI_LINE_MOST ? at : CLI_LINE_MOST - 1;
}

void cli_line_fit(const cli_line *l, int width, char out[CLI_LINE_MOST])
{
    char bar[CELLS_MOST + 3] = "";
    double done = l->done < 0 ? 0 : l->done > 1 ? 1 : l->done;
    bool in[CLI_LINE_PIECES] = { false };
    int last = CLI_LINE_BAR, used = 0, cells = 0;
    size_t at = 0;
    width = width < CLI_LINE_MOST - 1 ? width : CLI_LINE_MOST - 1;
    width = width > 0 ? width : 0;
    for (int i = 0; i < l->n; i++)
        last = l->piece[i].rank > last ? l->piece[i].rank : last;
    for (int rank = 0; rank <= last; rank++) {
        used = take(l, rank, used, width, in);
        if (rank == CLI_LINE_BAR && used + GAP + CELLS_LEAST + 2 <= width) {
            cells = CELLS_LEAST;
            used += (used ? GAP : 0) + CELLS_LEAST + 2;
        }
    }
    if (cells) {
        cells += width - used < CELLS_MOST - cells ? width - used : CELLS_MOST - cells;
        bar[0] = '[';
        memset(bar + 1, '.', (size_t)cells);
        memset(bar + 1, '#', (size_t)(done * cells));
        bar[cells + 1] = ']';
    }
    out[0] = 0;
    for (int i = 0; i < l->n; i++) {
        if (in[i])
            at = add(out, at, l->piece[i].text, "  ");
        if (i == 0 && bar[0])
            at = add(out, at, bar, "  ");
    }
    out[width] = 0;
}

void cli_line_plain(const cli_line *l, char out[CLI_LINE_MOST])
{
    double done = l->done < 0 ? 0 : l->done > 1 ? 1 : l->done;
    size_t at = (size_t)snprintf(out, CLI_LINE_MOST, "%3.0f %%", 100 * done);
    for (int i = 0; i < l->n; i++)
        if (l->piece[i].text[0])
            at = add(out, at, l->piece[i].text, i ? ", " : "  ");
}
