/* defaults: the small table of winners that ships with the library. */
#include "cache/record.h"
#include "gen/bucket.h"
#include "gen/problem.h"
#include "select.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_TUNED 16 /* fa_problem.page of most rows with pages */
#define PAGE_LARGE 64 /* of some others */

static const struct row {
    const char *chip, *problem, *config;
} rows[] = {
#define DEFAULT(chip, problem, config) { chip, problem, config },
#include "defaults.inc"
#undef DEFAULT
    { NULL, NULL, NULL },
};

/* How far a row's chip is from this one: see FA_SAME_ARCH; -1 = unknown. */
static int distance(const char *chip, const fa_arch *a)
{
    if (strcmp(chip, a->chip) == 0)
        return 0;
    const fa_arch *other = fa_arch_find(strncmp(chip, "NVIDIA ", 7) == 0 ? chip + 7 : chip);
    return !other ? -1 : 1 + abs(other->cc - a->cc);
}

/* The row as a measured record, if it is of the problem's class. fp16 and bf16 run at the same rates through the same code. */
static bool record_of(const struct row *row, const fa_problem *p, const char *key, fa_record *out)
{
    char own[160];
    memset(out, 0, sizeof *out);
    if (fa_problem_parse(&out->problem, row->problem) != FA_OK || fa_config_parse(&out->config, row->config) != FA_OK)
        return false;
    if (fa_dtype_bytes(p->dtype) == 2 && fa_dtype_bytes(out->problem.dtype) == 2) {
        int32_t *const written[] = { &out->problem.o_dtype, &out->problem.grad_dtype };
        for (size_t i = 0; i < sizeof written / sizeof *written; i++)
            *written[i] = *written[i] == out->problem.dtype ? p->dtype : *written[i];
        out->problem.dtype = p->dtype;
    }
    if (!fa_problem_alike(&out->problem, p))
        return false;
    fa_problem_print_key(own, sizeof own, &out->problem);
    out->how = FA_MEASURED;
    out->verified = true;
    out->seconds = 1;
    return strcmp(own, key) == 0;
}

/* Winners of the very class. */
static bool of_class(const fa_arch *a, const fa_problem *p, int farthest, fa_takes *takes, void *user, fa_config *out, char *where,
                     size_t n)
{
    char key[160];
    int nearest = -1;
    fa_records known = { calloc(sizeof rows / sizeof *rows, sizeof *known.r), 0 };
    fa_problem_print_key(key, sizeof key, p);
    for (const struct row *row = rows; known.r && row->chip; row++) {
        int far = distance(row->chip, a);
        if (far < 0 || far > farthest || (nearest >= 0 && far > nearest) || !record_of(row, p, key, &known.r[known.n]))
            continue;
        if (nearest < 0 || far < nearest) { /* rows of farther chips no longer count */
            known.r[0] = known.r[known.n];
            known.n = 0;
            nearest = far;
            snprintf(where, n, "%s", row->chip);
        }
        known.n++;
    }
    const fa_record *best;
    bool found = false;
    while (!found && known.r && (best = fa_records_best(&known, p)) != NULL) {
        *out = best->config;
        found = !takes || takes(user, out);
        size_t left = 0;
        for (size_t i = 0; i < known.n && !found; i++) /* whatever the shape, it would be refused again */
            if (!fa_config_equal(&known.r[i].config, out))
                known.r[left++] = known.r[i];
        known.n = left;
    }
    free(known.r);
    return found;
}

/* The class whose winners come next where p's own has none: they walk the same keys, and differ in how rows are found, or in a mask that
 * few rows hardly feel. False: none; of long sequences and short ones in one batch dense winners know nothing. */
static bool plainer(fa_problem *p)
{
    if (p->mask != FA_MASK_NONE && fa_problem_few_rows(p)) {
        int64_t seen = (int64_t)p->window + p->sq;
        p->sk = p->mask == FA_MASK_WINDOW && p->window && seen < p->sk ? (int32_t)seen : p->sk;
        p->mask = FA_MASK_NONE;
        p->window = 0;
    } else if (p->features & FA_FEATURE_NO_WORKSPACE) {
        p->features &= ~FA_FEATURE_NO_WORKSPACE;
    } else if (p->features & FA_FEATURE_BATCH_INVARIANT) {
        p->features &= ~FA_FEATURE_BATCH_INVARIANT;
    } else if (p->features & FA_FEATURE_LSE_STRIDES) {
        p->features &= ~FA_FEATURE_LSE_STRIDES;
    } else if (p->features & FA_FEATURE_DETERMINISTIC) { /* those that are not are refused, and the next nearest are asked */
        p->features &= ~FA_FEATURE_DETERMINISTIC;
    } else if (p->features & FA_FEATURE_DROPOUT) { /* likewise of those that do not compute it */
        p->features &= ~FA_FEATURE_DROPOUT;
    } else if (p->op == FA_BACKWARD && p->grad_dtype != p->dtype) {
        p->grad_dtype = p->dtype;
    } else if (p->features & FA_FEATURE_PAGES && p->page != PAGE_TUNED) {
        p->page = p->page > PAGE_LARGE ? PAGE_LARGE : PAGE_TUNED;
    } else if (p->features & FA_FEATURE_PAGES) {
        p->features &= ~FA_FEATURE_PAGES;
        p->page = 0;
    } else if (p->features & FA_FEATURE_LENGTHS && (p->b == 1 || fa_problem_few_rows(p))) {
        p->features &= ~FA_FEATURE_LENGTHS;
    } else {
        return false;
    }
    return true;
}

/* Keys in pages are walked as keys that are not, where lengths are on the device. */
static bool in_pages(fa_problem *p)
{
    if (!(p->features & FA_FEATURE_LENGTHS) || p->features & FA_FEATURE_PAGES)
        return false;
    p->features |= FA_FEATURE_PAGES;
    p->page = PAGE_TUNED;
    return true;
}

bool fa_default_config(const fa_arch *a, const fa_problem *p, int farthest, fa_takes *takes, void *user, fa_config *out, char *where,
                       size_t n)
{
    fa_problem q = *p;
    do {
        fa_problem paged = q;
        if (of_class(a, &q, farthest, takes, user, out, where, n) ||
            (in_pages(&paged) && of_class(a, &paged, farthest, takes, user, out, where, n)))
            return true;
    } while (plainer(&q));
    return false;
}

double fa_default_distance(const fa_arch *a, const fa_problem *p)
{
    char key[160];
    double nearest = INFINITY;
    fa_record r;
    fa_problem_print_key(key, sizeof key, p);
    for (const struct row *row = rows; row->chip; row++) {
        int far = distance(row->chip, a);
        if (far >= 0 && far <= FA_SAME_ARCH && record_of(row, p, key, &r))
            nearest = fmin(nearest, fa_records_distance(&r.problem, p));
    }
    return nearest;
}
