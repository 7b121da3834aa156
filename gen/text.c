/* text: a growing string. */
#include "text.h"
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

void fa_text_fill(fa_text *t, char c, size_t n)
{
    if (!n || !reserve(t, n))
        return;
    memset(t->s + t->n, c, n);
    t->n += n;
    t->s[t->n] = 0;
}

void fa_text_str(fa_text *t, const char *s)
{
    fa_text_add(t, s, strlen(s));
}

void fa_text_vfmt(fa_text *t, const char *fmt, va_list ap)
{
    va_list measured;
    size_t room = t->oom || !t->s ? 0 : t->cap - t->n;
    va_copy(measured, ap);
    int n = vsnprintf(room ? t->s + t->n : NULL, room, fmt, measured);
    va_end(measured);
    if (n < 0 || (size_t)n >= room) {
        if (t->s && t->n < t->cap)
            t->s[t->n] = 0; /* what did not fit is begun again */
        if (n < 0 || !reserve(t, (size_t)n))
            return;
        vsnprintf(t->s + t->n, (size_t)n + 1, fmt, ap);
    }
    t->n += (size_t)n;
}

void fa_text_fmt(fa_text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fa_text_vfmt(t, fmt, ap);
    va_end(ap);
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

/* Bytes of the character at s that a terminal shows as it is; 0 where it is none: a control byte, also one of U+0080 to U+009F, or no
 * UTF-8. */
static size_t shown(const char *s)
{
    const unsigned char *c = (const unsigned char *)s;
    if (c[0] < 0x80)
        return (c[0] >= 0x20 && c[0] != 0x7f) || c[0] == '\n' || c[0] == '\t';
    size_t n = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
    static const unsigned least[] = { 0, 0, 0xa0, 0x800, 0x10000 };
    unsigned v = c[0] & (0x7fu >> n);
    if (c[0] < 0xc2 || c[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((c[i] & 0xc0) != 0x80)
            return 0;
        v = v << 6 | (c[i] & 0x3f);
    }
    return v >= least[n] && v <= 0x10ffff && (v < 0xd800 || v > 0xdfff) ? n : 0;
}

size_t fa_text_plain(char *out, size_t n, const char *s)
{
    size_t at = 0;
    while (*s) {
        char code[5];
        size_t taken = shown(s), put = taken;
        const char *from = s;
        if (!taken) {
            put = (size_t)snprintf(code, sizeof code, "\\x%02x", (unsigned)(unsigned char)*s);
            from = code;
            taken = 1;
        }
        if (at + put + 1 > n)
            break;
        memcpy(out + at, from, put);
        at += put;
        s += taken;
    }
    if (n)
        out[at] = 0;
    return at;
}

void fa_text_make_plain(fa_text *t)
{
    fa_text plain = { .oom = t->oom };
    if (!t->n)
        return;
    if (!reserve(&plain, 4 * t->n)) {
        t->oom = true;
        return;
    }
    plain.n = fa_text_plain(plain.s, plain.cap, t->s);
    free(t->s);
    *t = plain;
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
