/* Whether a suite is to run in its full form, which may take an hour: FAGEN_TEST_FULL, set to anything but 0. */
#ifndef FA_TESTS_FULL_H
#define FA_TESTS_FULL_H
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool full(void)
{
    const char *s = getenv("FAGEN_TEST_FULL");
    return s && *s && strcmp(s, "0") != 0;
}
#endif
