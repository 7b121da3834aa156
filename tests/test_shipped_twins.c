/* Winners of fp16 follow those of bf16. A row of one 16-bit type serves the other, so that fp16 has rows of its own only where it does not
 * have the config of bf16's: rows that keep their maximum. Who changes a row of bf16 changes its twin by that: it is new, or gone. */
#include "gen/error.h"
#include "gen/gen.h"
#include "gen/problem.h"
#include "runtime/choose/shipped.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* Rows of bf16 whose config fp16 does not have and which have no twin, whose shapes are the model's in fp16: decoding and few rows, of
 * which no race of fp16 was run. A new one needs a race, or a number here. */
static const struct {
    const char *chip;
    int most;
} alone[] = { { "NVIDIA H200", 1 }, { "NVIDIA H100", 32 } };

static fa_problem as(const fa_problem *p, fa_dtype dtype)
{
    fa_problem out = *p;
    out.dtype = out.o_dtype = dtype;
    return out;
}

/* The row of the same chip, family and shape. */
static const fa_shipped *beside(const fa_shipped *row, fa_dtype dtype)
{
    const fa_problem of = as(&row->problem, dtype);
    for (size_t i = 0; i < fa_shipped_count; i++) {
        const fa_shipped *other = &fa_shipped_rows[i];
        if (!strcmp(other->chip, row->chip) && !strcmp(other->config.family, row->config.family) &&
            !memcmp(&other->problem, &of, sizeof of))
            return other;
    }
    return NULL;
}

static bool has(fa_gen *g, const fa_shipped *row, fa_dtype dtype)
{
    const fa_problem p = as(&row->problem, dtype);
    const fa_arch a = *fa_arch_find(row->chip + strlen("NVIDIA "));
    fa_source s;
    const bool is = fa_render(g, &p, &row->config, &a, 0, &s) == FA_OK;
    if (is)
        fa_source_free(&s);
    return is;
}

Test(shipped_twins, fp16_has_rows_where_it_lacks_the_config_of_bf16)
{
    fa_gen *g;
    int rows = 0;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK, "%s", fa_last_error());
    for (size_t i = 0; i < fa_shipped_count; i++) {
        const fa_shipped *row = &fa_shipped_rows[i];
        char line[256];
        if (row->problem.dtype != FA_F16)
            continue;
        const fa_shipped *twin = beside(row, FA_BF16);
        fa_problem_print(line, sizeof line, &row->problem);
        cr_expect(twin, "%s, %s: no row of bf16 beside it", row->chip, line);
        cr_expect(!twin || !has(g, twin, FA_F16), "%s, %s: the row of bf16 serves fp16, and this one is in its way", row->chip, line);
        rows++;
    }
    cr_assert_geq(rows, 60);
    fa_gen_close(g);
}

Test(shipped_twins, few_rows_that_fp16_lacks_are_alone)
{
    fa_gen *g;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK, "%s", fa_last_error());
    for (size_t c = 0; c < sizeof alone / sizeof *alone; c++) {
        int found = 0;
        for (size_t i = 0; i < fa_shipped_count; i++) {
            const fa_shipped *row = &fa_shipped_rows[i];
            found += row->problem.dtype == FA_BF16 && row->problem.o_dtype == FA_BF16 && !strcmp(row->chip, alone[c].chip) &&
                     !strcmp(row->config.family, "flash_fwd_wgmma") && !beside(row, FA_F16) && !has(g, row, FA_F16);
        }
        cr_expect_leq(found, alone[c].most, "%s: %d rows of bf16 that fp16 lacks have no twin", alone[c].chip, found);
    }
    fa_gen_close(g);
}
