/* text: a growing string. Zero-initialised is empty; after an allocation failure it stays as it was and `oom` is set. */
#ifndef FA_GEN_TEXT_H
#define FA_GEN_TEXT_H
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fa_text {
    char *s; /* NUL-terminated, or NULL while empty */
    size_t n, cap;
    bool oom;
} fa_text;

void fa_text_add(fa_text *t, const char *s, size_t n);
void fa_text_fill(fa_text *t, char c, size_t n); /* n times c */
void fa_text_str(fa_text *t, const char *s);
void fa_text_fmt(fa_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void fa_text_vfmt(fa_text *t, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
const char *fa_text_cstr(const fa_text *t); /* never NULL */
void fa_text_free(fa_text *t);              /* and back to empty */

/* s as a terminal may be shown it, into out: control bytes but tab and newline, and bytes that are not UTF-8, become text such as \\x1b. A
 * character that has no room in n bytes, with the NUL, ends it. Returns the bytes that are written, without the NUL. */
size_t fa_text_plain(char *out, size_t n, const char *s);
/* The same of a whole text. */
void fa_text_make_plain(fa_text *t);

/* s without "prefix: ", where it begins with it: what the loader says of a file names the file, as the message around it does. */
const char *fa_text_after(const char *s, const char *prefix);

/* "2026-11-21T04:31:00Z" of seconds since 1970; "" where there is no such date. Returns buf. */
const char *fa_text_date(char *buf, size_t n, int64_t seconds);
#endif
