/* text: a growing string. */
#include "text.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Room for n more bytes and the NUL. */
static bool reserve(fa_text *t, size_t n)
{
    if (t->oom || n > (size_t)-1 / 4 - t->n) {
        t->oom = true;
        return false;
    }
    if (t->n + n + 1 <= t->cap)
        return true;
    size_t cap = t->cap ? t->cap : 256;
    while (cap < t->n + n + 1)
        cap *= 2;
    char *s = realloc(t->s, cap);
    if (!s) {
        t->oom = true;
        return false;
    }
    t->s = s;
    t->cap = cap;
    return true;
}

void fa_text_add(fa_text *t, const char *s, size_t n)
{
    if (!reserve(t, n))
        return;
    if (n)
        memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = 0;
}

void fa_text_str(fa_text *t, const char *s)
{
    fa_text_add(t, s, strlen(s));
}

void fa_text_fmt(fa_text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0 || !reserve(t, (size_t)n))
        return;
    va_start(ap, fmt);
    vsnprintf(t->s + t->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    t->n += (size_t)n;
}

const char *fa_text_cstr(const fa_text *t)
{
    return t->s ? t->s : "";
}

void fa_text_free(fa_text *t)
{
    free(t->s);
    *t = (fa_text){ 0 };
}

const char *fa_text_after(const char *s, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(s, prefix, n) == 0 && s[n] == ':' && s[n + 1] == ' ' ? s + n + 2 : s;
}

const char *fa_text_date(char *buf, size_t n, int64_t seconds)
{
    time_t t = (time_t)seconds;
    struct tm utc;
    if (!gmtime_r(&t, &utc) || !strftime(buf, n, "%Y-%m-%dT%H:%M:%SZ", &utc))
        buf[0] = 0;
    return buf;
}
