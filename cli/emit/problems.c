/* problems: lists of fields to problems. */
#include "cli/options/grid.h"
#include "emit.h"
#include "gen/error.h"
#include <string.h>

static fa_status combine(const emit_args *a, const char *text, fa_problem *out, size_t *n)
{
    const cli_list *list[] = { &a->op, &a->d, &a->dtype, &a->mask, &a->align, &a->n };
    enum { LISTS = sizeof list / sizeof *list };
    int32_t at[LISTS];
    for (size_t i = 0; cli_list_combine(list, LISTS, i, at); i++) {
        cli_problem_options problem_options = { .problem = text,
                                                .op = at[0],
                                                .d = at[1],
                                                .dtype = at[2],
                                                .mask = at[3],
                                                .align = at[4],
                                                .n = at[5],
                                                .dv = a->dv,
                                                .o_dtype = a->o_dtype,
                                                .b = a->b,
                                                .hq = a->hq,
                                                .hkv = a->hkv,
                                                .sq = a->sq,
                                                .sk = a->sk,
                                                .features = a->features,
                                                .page = a->page,
                                                .window = a->window,
                                                .score = a->score,
                                                .low = a->low,
                                                .causal = a->causal };
        if (*n == EMIT_PROBLEMS)
            return fa_fail(FA_INVALID, "the lists give more than %d problems; accepted: shorter lists, or several bundles", EMIT_PROBLEMS);
        fa_status st = cli_problem_options_read(&problem_options, &out[*n]);
        if (st != FA_OK)
            return st;
        ++*n;
    }
    return FA_OK;
}

static fa_status of_grid(const emit_args *a, fa_problem *out, size_t *n)
{
    cli_grid_row row[CLI_GRID_MOST];
    if (a->problem || a->score.name || a->score.file || a->op.n || a->d.n || a->dtype.n || a->mask.n || a->n.n || a->align.n || a->dv ||
        a->o_dtype || a->b || a->hq || a->hkv || a->sq || a->sk || a->causal || a->features || a->page || a->window.given || a->low.kv ||
        a->low.v || a->low.scale || a->low.q)
        return fa_fail(FA_INVALID, "--grid and fields of the problem: accepted: one or the other");
    *n = cli_grid_list(a->grid, row);
    for (size_t i = 0; i < *n; i++)
        out[i] = row[i].problem;
    return *n ? FA_OK : cli_grid_unknown(a->grid, "");
}

fa_status emit_problems(const emit_args *a, fa_problem out[EMIT_PROBLEMS], size_t *n)
{
    char one[512];
    const char *text = a->problem;
    fa_status st = FA_OK;
    *n = 0;
    if (a->grid)
        return of_grid(a, out, n);
    if (!text)
        return combine(a, NULL, out, n);
    for (;;) {
        size_t len = strcspn(text, ";");
        if (len >= sizeof one)
            return fa_fail(FA_INVALID, "--problem is \"%.40s...\"; accepted: less than %zu letters for each problem", text, sizeof one);
        memcpy(one, text, len);
        one[len] = 0;
        st = combine(a, one, out, n);
        if (st != FA_OK || !text[len])
            return st;
        text += len + 1;
    }
}

_Static_assert(CLI_GRID_MOST <= EMIT_PROBLEMS, "a grid fits");
