/* emit_problems: lists of fields to problems. */
#include "emit.h"
#include "gen/error.h"
#include <string.h>

/* The i-th of a list that may be empty: 0 = not given. */
static int32_t of(const cli_list *l, int32_t i)
{
    return l->n ? l->v[i] : 0;
}

static int32_t length(const cli_list *l)
{
    return l->n ? l->n : 1;
}

static fa_status combine(const emit_args *a, const char *text, fa_problem *out, size_t *n)
{
    const cli_list *list[] = { &a->d, &a->dtype, &a->mask, &a->align, &a->n };
    enum { LISTS = sizeof list / sizeof *list };
    int32_t total = 1, at[LISTS];
    for (int k = 0; k < LISTS; k++)
        total *= length(list[k]);
    for (int32_t i = 0; i < total; i++) {
        for (int32_t k = LISTS, rest = i; k-- > 0; rest /= length(list[k]))
            at[k] = of(list[k], rest % length(list[k]));
        cli_ask ask = { .problem = text, .d = at[0], .dtype = at[1], .mask = at[2], .align = at[3], .n = at[4], .dv = a->dv, .o_dtype = a->o_dtype,
                        .b = a->b, .hq = a->hq, .hkv = a->hkv, .sq = a->sq, .sk = a->sk, .causal = a->causal };
        if (*n == EMIT_PROBLEMS)
            return fa_fail(FA_INVALID, "the lists give more than %d problems; accepted: shorter lists, or several bundles", EMIT_PROBLEMS);
        fa_status st = cli_ask_problem(&ask, &out[*n]);
        if (st != FA_OK)
            return st;
        ++*n;
    }
    return FA_OK;
}

fa_status emit_problems(const emit_args *a, fa_problem out[EMIT_PROBLEMS], size_t *n)
{
    char one[512];
    const char *text = a->problem;
    fa_status st = FA_OK;
    *n = 0;
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
