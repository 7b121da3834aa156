/* defaults: the small table of winners that ships with the library. */
#include "choose.h"
#include "gen/problem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct row {
    const char *chip, *problem, *config;
} rows[] = {
#define DEFAULT(chip, problem, config) {chip, problem, config},
#include "defaults.inc"
#undef DEFAULT
    {NULL, NULL, NULL},
};

/* How far a row's chip is from ours: 0 = the chip, 1 = the arch, then the distance of compute capabilities; -1 = unknown. */
static int distance(const char *chip, const fa_arch *a)
{
    if (strcmp(chip, a->chip) == 0)
        return 0;
    const fa_arch *other = fa_arch_find(chip);
    return !other ? -1 : 1 + abs(other->cc - a->cc);
}

bool fa_default_config(const fa_arch *a, const fa_problem *p, fa_config *out, char *where, size_t n)
{
    char key[160];
    int best = -1;
    fa_problem_print_key(key, sizeof key, p);
    for (const struct row *r = rows; r->chip; r++) {
        int far = strcmp(key, r->problem) == 0 ? distance(r->chip, a) : -1;
        fa_config c;
        if (far < 0 || (best >= 0 && far >= best) || fa_config_parse(&c, r->config) != FA_OK)
            continue;
        best = far;
        *out = c;
        snprintf(where, n, "%s", r->chip);
    }
    return best >= 0;
}
