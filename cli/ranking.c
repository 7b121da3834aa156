/* ranking: the space priced by the model. */
#include "ranking.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <stdlib.h>

static int by_time(const void *a, const void *b)
{
    const cli_ranked *x = a, *y = b;
    if (x->cost.seconds != y->cost.seconds)
        return x->cost.seconds < y->cost.seconds ? -1 : 1;
    return x->point < y->point ? -1 : x->point > y->point;
}

fa_status cli_rank(fa_gen *g, const fa_problem *p, const fa_arch *a, int32_t budget, const char *family, cli_ranking *out)
{
    *out = (cli_ranking){ .shape = *p };
    fa_problem_fill_shape(&out->shape);
    fa_status st = fa_space_list(g, p, a, budget, family, &out->space), priced = FA_OK;
    if (st == FA_OK)
        st = fa_space_check(&out->space, p, a, budget);
    if (st == FA_OK && !(out->r = calloc(out->space.fitting, sizeof *out->r)))
        st = fa_fail(FA_NOMEM, "no memory for %zu configs", out->space.fitting);
    for (size_t i = 0; st == FA_OK && i < out->space.n; i++)
        if (out->space.points[i].fits) {
            fa_status s = fa_model_cost(g, &out->shape, &out->space.points[i].config, a, 0, &out->r[out->n].cost);
            out->r[out->n].point = i;
            out->n += s == FA_OK;
            priced = s == FA_OK ? priced : s;
        }
    if (st == FA_OK && !out->n)
        st = priced;
    if (st == FA_OK)
        qsort(out->r, out->n, sizeof *out->r, by_time);
    else
        cli_ranking_free(out);
    return st;
}

void cli_ranking_free(cli_ranking *r)
{
    fa_space_free(&r->space);
    free(r->r);
    r->r = NULL;
    r->n = 0;
}

fa_status cli_pick(fa_gen *g, const fa_problem *p, const fa_arch *a, int32_t budget, const char *text, fa_config *out)
{
    cli_ranking r;
    if (text)
        return fa_wrap(fa_config_parse(out, text), "--config");
    fa_status st = cli_rank(g, p, a, budget, NULL, &r);
    if (st == FA_OK)
        *out = r.space.points[r.r[0].point].config;
    if (st == FA_OK)
        cli_ranking_free(&r);
    return st;
}
