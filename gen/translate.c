/* translate: from a template to Lua, line by line. */
#include "translate.h"
#include "error.h"
#include <stdlib.h>
#include <string.h>

static void quote(fa_text *out, const char *s, size_t n)
{
    fa_text_str(out, "\"");
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            fa_text_fmt(out, "\\%c", c);
        else if (c < 32 || c > 126)
            fa_text_fmt(out, "\\%03u", c);
        else
            fa_text_add(out, s + i, 1);
    }
    fa_text_str(out, "\"");
}

/* ",from,to" of a piece that is not empty. */
static void columns(fa_text *out, const char *row, const char *from, const char *to)
{
    if (to > from)
        fa_text_fmt(out, ",%d,%d", (int)(from - row), (int)(to - row));
}

/* The end of the expression that begins at s, its closing parenthesis; NULL where the line ends first or a Lua comment
 * begins. Strings are stepped over. */
static const char *closing(const char *s, const char *end)
{
    int depth = 1;
    for (; s < end; s++) {
        if (*s == '"' || *s == '\'') {
            char q = *s++;
            while (s < end && *s != q)
                s += 1 + (*s == '\\');
            if (s >= end)
                return NULL;
        } else if (*s == '-' && s + 1 < end && s[1] == '-') {
            return NULL;
        } else if (*s == '(') {
            depth++;
        } else if (*s == ')' && !--depth) {
            return s;
        }
    }
    return NULL;
}

/* __line(line, file) for a line as it stands; else its pieces: columns from, to of the line, and the text of values. The text itself is not
 * in the Lua, whose lexer would take most of the time of a first render. */
static fa_status text_line(fa_text *out, const fa_file *f, int index, int line, const char *s, const char *end)
{
    const char *row = s, *from = s;
    fa_text_fmt(out, ";__line(%d,%d", line, index);
    while (s < end) {
        const char *dollar = memchr(s, '$', (size_t)(end - s));
        if (!dollar || dollar + 1 >= end) {
            s = end;
        } else if (dollar[1] == '$' && dollar + 2 < end && dollar[2] == '(') {
            columns(out, row, from, dollar);
            from = dollar + 1;
            s = dollar + 3;
        } else if (dollar[1] == '(') {
            const char *expr = dollar + 2, *close = closing(expr, end);
            if (!close)
                return fa_fail(FA_TEMPLATE, "templates/%s:%d: '$(' is not closed on its line", f->name, line);
            columns(out, row, from, dollar);
            fa_text_str(out, ",__value((");
            fa_text_add(out, expr, (size_t)(close - expr));
            fa_text_str(out, "),");
            quote(out, expr, (size_t)(close - expr));
            fa_text_str(out, ")");
            from = s = close + 1;
        } else {
            s = dollar + 1;
        }
    }
    if (from > row)
        columns(out, row, from, end);
    fa_text_str(out, ");"); /* closed on both sides: neither a line before nor one that begins with '(' can run into it */
    return FA_OK;
}

/* Where the lines begin, and where the last one ends. */
static fa_status find_rows(fa_file *f)
{
    const char *s = f->bytes, *end = f->bytes + f->size;
    for (; s < end; f->rows++) {
        const char *nl = memchr(s, '\n', (size_t)(end - s));
        s = nl ? nl + 1 : end;
    }
    f->row = malloc(((size_t)f->rows + 1) * sizeof *f->row);
    if (!f->row)
        return fa_fail(FA_NOMEM, "no memory for the lines of %s", f->path);
    s = f->bytes;
    for (int i = 0; i < f->rows; i++) {
        const char *nl = memchr(s, '\n', (size_t)(end - s));
        f->row[i] = (uint32_t)(s - f->bytes);
        s = nl ? nl + 1 : end;
    }
    f->row[f->rows] = (uint32_t)f->size;
    return FA_OK;
}

static fa_status lua_of(fa_text *out, const fa_file *f, int index)
{
    const char *s = f->bytes, *end = f->bytes + f->size;
    for (int line = 1; s < end; line++) {
        const char *nl = memchr(s, '\n', (size_t)(end - s)), *stop = nl ? nl : end, *word = s;
        if (line > 1)
            fa_text_str(out, "\n");
        if (stop > s && stop[-1] == '\r')
            stop--;
        while (word < stop && (*word == ' ' || *word == '\t'))
            word++;
        if (stop - word >= 3 && !memcmp(word, "//|", 3)) {
            fa_text_add(out, word + 3, (size_t)(stop - word - 3));
        } else {
            fa_status st = text_line(out, f, index, line, s, stop);
            if (st != FA_OK)
                return st;
        }
        s = nl ? nl + 1 : end;
    }
    return out->oom ? fa_fail(FA_NOMEM, "no memory to translate %s", f->path) : FA_OK;
}

fa_status fa_translate(fa_file *f, int index)
{
    fa_status st = find_rows(f);
    if (st == FA_OK)
        st = lua_of(&f->code, f, index);
    if (st != FA_OK)
        fa_translate_free(f);
    return st;
}

void fa_translate_free(fa_file *f)
{
    fa_text_free(&f->code);
    free(f->row);
    f->row = NULL;
    f->rows = 0;
}
