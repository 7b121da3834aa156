/* status_line: pieces are dropped until the rest fits. */
#include "status_line.h"
#include "gen/text.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define GAP 2
#define CELLS_LEAST 6
#define CELLS_MOST 24

/* What a piece tells may come from a file. */
static void put(char *out, size_t n, const char *fmt, va_list ap)
{
    char raw[sizeof((cli_piece *)0)->text];
    vsnprintf(raw, sizeof raw, fmt, ap);
    fa_text_plain(out, n, raw);
}

void cli_status_line_add(cli_status_line *l, int rank, const char *fmt, ...)
{
    va_list ap;
    if (l->n == CLI_STATUS_LINE_PIECES)
        return;
    cli_piece *p = &l->piece[l->n++];
    p->rank = rank;
    p->brief[0] = 0;
    va_start(ap, fmt);
    put(p->text, sizeof p->text, fmt, ap);
    va_end(ap);
}

void cli_status_line_brief(cli_status_line *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (l->n)
        put(l->piece[l->n - 1].brief, sizeof l->piece[0].brief, fmt, ap);
    va_end(ap);
}

static const char *least(const cli_piece *p)
{
    return p->brief[0] ? p->brief : p->text;
}

/* Takes what has the rank, in its least form, as long as it fits; returns the columns that are used then. */
static int take(const cli_status_line *l, int rank, int used, int width, const char **in)
{
    for (int i = 0; i < l->n; i++) {
        const char *text = least(&l->piece[i]);
        int n = (int)strlen(text);
        if (!n || l->piece[i].rank != rank || (rank > 0 && used + (used ? GAP : 0) + n > width)) /* what is always there is cut */
            continue;
        in[i] = text;
        used += (used ? GAP : 0) + n;
    }
    return used;
}

/* Whole texts in place of brief ones, where there is room. */
static int widen(const cli_status_line *l, int rank, int used, int width, const char **in)
{
    for (int i = 0; i < l->n; i++) {
        int more = in[i] && l->piece[i].rank == rank ? (int)strlen(l->piece[i].text) - (int)strlen(in[i]) : 0;
        if (more <= 0 || used + more > width)
            continue;
        in[i] = l->piece[i].text;
        used += more;
    }
    return used;
}

static size_t add(char *out, size_t at, const char *text, const char *gap)
{
    int n = snprintf(out + at, CLI_STATUS_LINE_MOST - at, "%s%s", at ? gap : "", text);
    at += n > 0 ? (size_t)n : 0;
    return at < CLI_STATUS_LINE_MOST ? at : CLI_STATUS_LINE_MOST - 1;
}

void cli_status_line_fit(const cli_status_line *l, int width, char out[CLI_STATUS_LINE_MOST])
{
    char bar[CELLS_MOST + 3] = "";
    double done = l->done < 0 ? 0 : l->done > 1 ? 1 : l->done;
    const char *in[CLI_STATUS_LINE_PIECES] = { NULL };
    int last = CLI_STATUS_LINE_BAR, used = 0, cells = 0;
    size_t at = 0;
    width = width < CLI_STATUS_LINE_MOST - 1 ? width : CLI_STATUS_LINE_MOST - 1;
    width = width > 0 ? width : 0;
    for (int i = 0; i < l->n; i++)
        last = l->piece[i].rank > last ? l->piece[i].rank : last;
    for (int rank = 0; rank <= last; rank++) {
        used = take(l, rank, used, width, in);
        if (rank == CLI_STATUS_LINE_BAR && used + GAP + CELLS_LEAST + 2 <= width) {
            cells = CELLS_LEAST;
            used += (used ? GAP : 0) + CELLS_LEAST + 2;
        }
    }
    for (int rank = 0; rank <= last; rank++)
        used = widen(l, rank, used, width, in);
    if (cells) {
        int most = l->cells >= CELLS_LEAST && l->cells < CELLS_MOST ? l->cells : CELLS_MOST;
        cells += width - used < most - cells ? width - used : most - cells;
        bar[0] = '[';
        memset(bar + 1, '.', (size_t)cells);
        memset(bar + 1, '#', (size_t)(done * cells));
        bar[cells + 1] = ']';
    }
    out[0] = 0;
    for (int i = 0; i < l->n; i++) {
        if (in[i])
            at = add(out, at, in[i], "  ");
        if (i == 0 && bar[0])
            at = add(out, at, bar, "  ");
    }
    out[width] = 0;
}

void cli_status_line_plain(const cli_status_line *l, char out[CLI_STATUS_LINE_MOST])
{
    double done = l->done < 0 ? 0 : l->done > 1 ? 1 : l->done;
    size_t at = (size_t)snprintf(out, CLI_STATUS_LINE_MOST, "%3.0f %%", 100 * done);
    for (int i = 0; i < l->n; i++)
        if (l->piece[i].text[0])
            at = add(out, at, l->piece[i].text, i ? ", " : "  ");
}
