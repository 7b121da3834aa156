/* input: files that a person names, read whole; those of the cache itself are trusted_file.h's. */
#ifndef FA_CACHE_INPUT_H
#define FA_CACHE_INPUT_H
#include <fagen.h>
#include <stddef.h>

/* Reads a regular file of at most cap bytes, else `large`. *out is heap with a NUL after it; NULL on failure. */
fa_status fa_input_read(const char *path, size_t cap, fa_status large, char **out, size_t *n);
#endif
