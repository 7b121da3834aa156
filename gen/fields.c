/* fields: the reading of "word,name=value,name=value". */
#include "fields.h"
#include "error.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *skip(const char *s, const char *end)
{
    while (s < end && (*s == ' ' || *s == '\t'))
        s++;
    return s;
}

/* Copies s..end without blanks around it; false when it is longer than n - 1. */
static bool trim(char *out, size_t n, const char *s, const char *end)
{
    s = skip(s, end);
    while (end > s && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    size_t len = (size_t)(end - s);
    if (len >= n)
        return false;
    memcpy(out, s, len);
    out[len] = 0;
    return true;
}

bool fa_field_next(const char **s, fa_field *out, const char *what, fa_status *st)
{
    *st = FA_OK;
    if (!**s)
        return false;
    const char *at = *s, *end = at + strcspn(at, ","), *eq = memchr(at, '=', (size_t)(end - at));
    bool ok = true;
    out->name[0] = 0;
    if (eq)
        ok = trim(out->name, sizeof out->name, at, eq) && out->name[0];
    ok = ok && trim(out->value, sizeof out->value, eq ? eq + 1 : at, end) && out->value[0];
    if (!ok || (*end == ',' && !end[1])) {
        *st = fa_fail(FA_INVALID, "%s: \"%.60s\" does not begin with a field; accepted: name=value,name=value", what, ok ? end : at);
        return false;
    }
    *s = *end ? end + 1 : end;
    return true;
}

fa_status fa_field_int(int32_t *out, const fa_field *f, const char *what)
{
    char *end;
    errno = 0;
    long v = strtol(f->value, &end, 10);
    if (end == f->value || *end || errno || v < INT32_MIN || v > INT32_MAX)
        return fa_fail(FA_INVALID, "%s: %s is \"%s\"; a decimal integer of 32 bits is accepted", what, f->name, f->value);
    *out = (int32_t)v;
    return FA_OK;
}
