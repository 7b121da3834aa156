/* The winners that ship, as text: a row of runtime/choose/defaults.inc each. */
#ifndef TEST_SHIPPED_H
#define TEST_SHIPPED_H
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const struct {
    const char *chip, *problem, *config;
} shipped[] = {
#define DEFAULT(chip, problem, config) { chip, problem, config },
#define DEFAULT_ALONE DEFAULT
#include "runtime/choose/defaults.inc"
#undef DEFAULT_ALONE
#undef DEFAULT
};
#define SHIPPED (sizeof shipped / sizeof *shipped)

/* Whether an earlier row is the same kernel: its head_dim and mask are before the shape. */
static inline bool shipped_before(size_t i)
{
    size_t key = (size_t)(strstr(shipped[i].problem, ",b=") - shipped[i].problem);
    for (size_t j = 0; j < i; j++)
        if (!strncmp(shipped[i].problem, shipped[j].problem, key) && !strcmp(shipped[i].config, shipped[j].config))
            return true;
    return false;
}
#endif
