/* jsonl: an append-only file of lines. Whatever a killed writer, a full disk or another program left in it, the whole lines before and
 * after are read. */
#ifndef FA_CACHE_JSONL_H
#define FA_CACHE_JSONL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fa_wait fa_wait;

#define FA_LINE_CAP ((size_t)64 << 10) /* bytes; what is longer is no line */

/* Appends one line, given without newline or NUL, with a single write() under O_APPEND and the file's lock. Made 0600 when missing.
 * False with *trouble: at most a torn line was left, which the next append closes.
 *
 * Where another process has the lock for longer than w->most, w->over is set and the line is written without it, with an empty line before
 * it. It is neither lost nor mixed with another: the kernel puts the bytes of one write() under O_APPEND together at the file's end, and a
 * holder that is stopped is before its write or after it. Network file systems do not promise that; there the lock is what keeps writers
 * apart, and two appends at the same moment may be one. */
bool fa_jsonl_append(int dir, const char *file, const char *line, size_t n, fa_wait *w, const char **trouble);

/* The same of n bytes of whole lines, each with its newline, all by one write(): false means that none of them is to count, and that they
 * are to be taken back. They are made to last. */
bool fa_jsonl_append_lines(int dir, const char *file, const char *lines, size_t n, fa_wait *w, const char **trouble);

/* Takes back what fa_jsonl_append_lines() wrote, as far as it did, of a file that had `size` bytes before, < 0 for none. Where nothing else
 * was appended since, the file is as it was; else lines of theirs are blanked where they stand, and no other line is touched. False where
 * that was not possible. */
bool fa_jsonl_take_back(int dir, const char *file, int64_t size, const char *lines, size_t n, fa_wait *w);

/* Calls f for each line that is neither empty nor too long and holds no NUL; `number` counts from 1. The line is NUL-terminated. False
 * with *trouble when the file could not be read; none is no trouble. */
typedef void fa_jsonl_fn(void *user, const char *line, size_t n, size_t number);
bool fa_jsonl_read(int dir, const char *file, fa_jsonl_fn *f, void *user, const char **trouble);
#endif
