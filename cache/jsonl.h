/* jsonl: an append-only file of lines. Whatever a killed writer, a full disk or another program left in it, the whole lines before and
 * after are read. */
#ifndef FA_CACHE_JSONL_H
#define FA_CACHE_JSONL_H
#include <stdbool.h>
#include <stddef.h>

#define FA_LINE_CAP ((size_t)64 << 10) /* bytes; what is longer is no line */

/* Appends one line, given without newline or NUL, with a single write() under O_APPEND and the file's lock. Made 0600 when missing.
 * False with *trouble: at most a torn line was left, which the next append closes. */
bool fa_jsonl_append(int dir, const char *file, const char *line, size_t n, const char **trouble);

/* Calls f for each line that is neither empty nor too long and holds no NUL; `number` counts from 1. The line is NUL-terminated. False
 * with *trouble when the file could not be read; none is no trouble. */
typedef void fa_jsonl_fn(void *user, const char *line, size_t n, size_t number);
bool fa_jsonl_read(int dir, const char *file, fa_jsonl_fn *f, void *user, const char **trouble);
#endif
