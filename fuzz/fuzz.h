/* fuzz: what a target is. Each file of this folder reads one kind of input that fagen does not control; the same function is driven
 * by libFuzzer (FAGEN_FUZZ, clang) and by driver.c (every other build: a short run in CI). */
#ifndef FA_FUZZ_H
#define FA_FUZZ_H
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Any bytes must end in a return. Keeps nothing from call to call that changes what the next one does. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold of whatever was accepted. */
#define FUZZ_CHECK(holds)                                                              \
    do {                                                                               \
        if (!(holds)) {                                                                \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #holds); \
            abort();                                                                   \
        }                                                                              \
    } while (0)

/* A copy that ends where the input ends, so that reading on is seen, or with a NUL after it. Free it. */
static inline char *fuzz_copy(const uint8_t *data, size_t size, int with_nul)
{
    char *s = malloc(size + (with_nul ? 1 : 0) + !size);
    FUZZ_CHECK(s);
    if (size)
        memcpy(s, data, size);
    if (with_nul || !size)
        s[size] = 0;
    return s;
}
#endif
