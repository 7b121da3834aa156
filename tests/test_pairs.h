/* pairs: a few rows out of many in which every two values that occur together in some row still do. */
#ifndef TEST_PAIRS_H
#define TEST_PAIRS_H
#include "gen/config.h"
#include "verify/operands/random.h"
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define PAIRS_FACTORS 24
#define PAIRS_VALUES 32 /* of one factor */

typedef struct pairs_row {
    uint8_t value[PAIRS_FACTORS]; /* numbers of values, below PAIRS_VALUES */
} pairs_row;

/* The numbers of values that occur, in order of appearance. */
typedef struct pairs_factor {
    int n;
    int32_t value[PAIRS_VALUES];
} pairs_factor;

static inline uint8_t pairs_number(pairs_factor *f, int32_t value)
{
    int i = 0;
    while (i < f->n && f->value[i] != value)
        i++;
    if (i == f->n) {
        cr_assert_lt(f->n, PAIRS_VALUES);
        f->value[f->n++] = value;
    }
    return (uint8_t)i;
}

static inline size_t pairs_index(const pairs_row *r, int i, int j)
{
    return ((size_t)(i * PAIRS_FACTORS + j) * PAIRS_VALUES + r->value[i]) * PAIRS_VALUES + r->value[j];
}

/* Greedy: each time the row with the most pairs that no chosen one has; a hash of the seed decides between equals. Of pairs,
 * those whose second factor is number `from` or a later one: 1 for all. Writes the numbers of the chosen rows, n at most; how many. */
static inline size_t pairs_cover(const pairs_row *row, size_t n, int factors, int from, uint64_t seed, size_t *chosen)
{
    bool *have = calloc((size_t)PAIRS_FACTORS * PAIRS_FACTORS * PAIRS_VALUES * PAIRS_VALUES, sizeof *have);
    int *most = malloc((n + 1) * sizeof *most); /* what a row had to offer when it was last asked: it can only be less by now */
    size_t count = 0;
    for (size_t r = 0; r < n; r++)
        most[r] = factors * factors;
    for (;;) {
        int best = 0;
        size_t at = 0;
        for (size_t r = 0; r < n; r++) {
            if (most[r] < best || most[r] == 0)
                continue;
            int gain = 0;
            for (int i = 0; i < factors; i++)
                for (int j = i + 1 > from ? i + 1 : from; j < factors; j++)
                    gain += !have[pairs_index(&row[r], i, j)];
            most[r] = gain;
            if (gain > best || (gain == best && gain > 0 && fa_random_mix(seed ^ r) > fa_random_mix(seed ^ at))) {
                best = gain;
                at = r;
            }
        }
        if (best == 0)
            break;
        for (int i = 0; i < factors; i++)
            for (int j = i + 1 > from ? i + 1 : from; j < factors; j++)
                have[pairs_index(&row[at], i, j)] = true;
        chosen[count++] = at;
    }
    free(have);
    free(most);
    return count;
}
#endif
