/* text: a growing string. Zero-initialised is empty; after an allocation failure it stays as it was and `oom` is set. */
#ifndef FA_GEN_TEXT_H
#define FA_GEN_TEXT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fa_text {
    char *s; /* NUL-terminated, or NULL while empty */
    size_t n, cap;
    bool oom;
} fa_text;

void fa_text_add(fa_text *t, const char *s, size_t n);
void fa_text_str(fa_text *t, const char *s);
void fa_text_fmt(fa_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *fa_text_cstr(const fa_text *t); /* never NULL */
void fa_text_free(fa_text *t);              /* and back to empty */

/* s without "prefix: ", where it begins with it: what the loader says of a file names the file, as the message around it does. */
const char *fa_text_after(const char *s, const char *prefix);

/* "2026-11-21T04:31:00Z" of seconds since 1970; "" where there is no such date. Returns buf. */
const char *fa_text_date(char *buf, size_t n, int64_t seconds);
#endif
