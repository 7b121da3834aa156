/* flat_json: a name, a colon, a value. */
#include "flat_json.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MOST 18 /* of an integer that surely fits */

/* At a quote: the text up to the next one. */
static bool take_text(const char **p, const char **text, size_t *n)
{
    const char *at = *p + 1;
    if (**p != '"')
        return false;
    *text = at;
    while (*at >= 0x20 && *at < 0x7f && *at != '"' && *at != '\\')
        at++;
    *n = (size_t)(at - *text);
    *p = at + 1;
    return *at == '"';
}

static const char *digits(const char *s)
{
    while (*s >= '0' && *s <= '9')
        s++;
    return s;
}

/* -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)?, a real that is finite. */
static bool take_number(const char **p, fa_flat_value *out)
{
    const char *at = *p + (**p == '-'), *end = digits(at);
    bool real = false;
    if (end == at || end - at > DIGITS_MOST || (*at == '0' && end - at > 1))
        return false;
    if (*end == '.') {
        at = end + 1;
        end = digits(at);
        real = true;
        if (end == at)
            return false;
    }
    if (*end == 'e' || *end == 'E') {
        at = end + 1 + (end[1] == '+' || end[1] == '-');
        end = digits(at);
        real = true;
        if (end == at)
            return false;
    }
    char *read;
    errno = 0;
    if (real) {
        out->kind = FA_FLAT_REAL;
        out->number = strtod(*p, &read);
    } else {
        out->kind = FA_FLAT_INTEGER;
        out->integer = strtoll(*p, &read, 10);
        out->number = (double)out->integer;
    }
    bool whole = read == end && errno == 0 && isfinite(out->number); /* another locale's decimal point ends it early */
    *p = end;
    return whole;
}

static bool take_word(const char **p, const char *word)
{
    size_t n = strlen(word);
    bool is = !strncmp(*p, word, n);
    *p += is ? n : 0;
    return is;
}

bool fa_flat_next(const char **p, const char **name, size_t *n_name, fa_flat_value *out)
{
    *out = (fa_flat_value){ .kind = FA_FLAT_OTHER };
    if ((**p != '{' && **p != ',') || (++*p, !take_text(p, name, n_name)) || *(*p)++ != ':')
        return false;
    if (**p == '"') {
        out->kind = FA_FLAT_TEXT;
        if (!take_text(p, &out->text, &out->n))
            return false;
    } else if (take_word(p, "true"))
        out->kind = FA_FLAT_TRUE;
    else if (!take_word(p, "false") && !take_number(p, out))
        return false;
    if (**p == ',')
        return true;
    *p += **p == '}';
    return **p == 0 && (*p)[-1] == '}';
}
