/* line_set: which lines were met, by their hashes. */
#ifndef FA_CACHE_LINE_SET_H
#define FA_CACHE_LINE_SET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeros are an empty set. */
typedef struct fa_line_set {
    uint64_t *slot; /* open addressing; 0 is a free one */
    size_t n, cap;  /* cap is a power of two */
    bool oom;       /* memory ran out: it is not complete */
} fa_line_set;

bool fa_line_set_add(fa_line_set *l, const char *line, size_t n); /* false when it was there already */
bool fa_line_set_has(const fa_line_set *l, const char *line, size_t n);
void fa_line_set_free(fa_line_set *l);
#endif
