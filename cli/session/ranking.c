/* ranking: the space priced by the model. */
#include "ranking.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "gen/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_time(const void *a, const void *b)
{
    const cli_ranked *x = a, *y = b;
    if (x->cost.seconds != y->cost.seconds)
        return x->cost.seconds < y->cost.seconds ? -1 : 1;
    return x->point < y->point ? -1 : x->point > y->point;
}

static void take(void *user, size_t point, const fa_cost *cost)
{
    cli_ranking *r = user;
    r->r[r->n++] = (cli_ranked){ .point = point, .cost = *cost };
}

fa_status cli_rank(fa_gen *g, const fa_problem *p, const fa_arch *a, int32_t budget, const char *family, cli_ranking *out)
{
    *out = (cli_ranking){ .shape = *p };
    fa_problem_fill_shape(&out->shape);
    fa_status st = fa_space_list(g, p, a, budget, family, &out->space);
    if (st == FA_OK)
        st = fa_space_check(&out->space, p, a, budget);
    if (st == FA_OK && !(out->r = calloc(out->space.fitting, sizeof *out->r)))
        st = fa_fail(FA_NOMEM, "no memory for %zu configs", out->space.fitting);
    if (st == FA_OK)
        st = fa_model_space(g, &out->shape, &out->space, a, take, out);
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

bool cli_alike(const cli_ranking *r, size_t i, size_t j)
{
    const fa_point *p = &r->space.points[r->r[i].point], *q = &r->space.points[r->r[j].point];
    return r->r[i].cost.seconds == r->r[j].cost.seconds && p->smem == q->smem && p->regs == q->regs && p->threads == q->threads;
}

fa_status cli_check_tunables(const fa_gen *g, const fa_config *c)
{
    for (int k = 0; k < c->n; k++) {
        char names[256] = "";
        size_t at = 0;
        bool known = false, declared = false;
        fa_tunable t;
        for (size_t i = 0; !known && fa_gen_tunable(g, c->family, i, &t); i++) {
            at += (size_t)snprintf(names + at, at < sizeof names ? sizeof names - at : 0, "%s%s", i ? ", " : "", t.name);
            known = !strcmp(t.name, c->tunable[k].name);
        }
        if (!known)
            return fa_fail(FA_INVALID, "%s has no tunable \"%s\"; accepted: %s", c->family, c->tunable[k].name, names);
        for (size_t v = 0; v < t.n; v++)
            declared = declared || t.values[v] == c->tunable[k].value;
        if (declared)
            continue;
        fa_text values = { 0 };
        fa_tunable_list(&values, &t);
        fa_fail(FA_INVALID, "%s: %s is %d; accepted: %s", c->family, t.name, c->tunable[k].value, fa_text_cstr(&values));
        fa_text_free(&values);
        return FA_INVALID;
    }
    return FA_OK;
}

bool cli_config_names(const fa_config *c, const fa_config *whole)
{
    for (int i = 0; i < c->n; i++)
        if (fa_config_get(whole, c->tunable[i].name, c->tunable[i].value + 1) != c->tunable[i].value)
            return false;
    return true;
}

/* The first of the space that `part` can mean says why none of them fits. */
static fa_status reject(const fa_space *s, const fa_config *part, const char *text)
{
    for (size_t i = 0; i < s->n; i++)
        if (cli_config_names(part, &s->points[i].config))
            return fa_fail(FA_NO_FIT, "--config: none that %s can mean fits; the first fails %s: %s", text, s->points[i].constraint,
                           s->points[i].why);
    return fa_fail(FA_INVALID, "--config: the space has no %s", text);
}

fa_status cli_pick(fa_gen *g, const fa_problem *p, const fa_arch *a, int32_t budget, const char *text, fa_config *out)
{
    cli_ranking r = { .n = 0 };
    fa_config part = { .n = 0 };
    fa_tunable t;
    size_t i = 0;
    fa_status st = text ? fa_wrap(fa_gen_config_parse(g, &part, text), "--config") : FA_OK;
    if (st == FA_OK && text && fa_gen_tunable(g, part.family, 0, &t))
        st = fa_wrap(cli_check_tunables(g, &part), "--config");
    if (st == FA_OK && text && fa_gen_config_whole(g, &part)) {
        *out = part;
        return FA_OK;
    }
    if (st == FA_OK)
        st = cli_rank(g, p, a, budget, text ? part.family : NULL, &r);
    if (st != FA_OK)
        return st;
    while (i < r.n && !cli_config_names(&part, &r.space.points[r.r[i].point].config))
        i++;
    if (i < r.n)
        *out = r.space.points[r.r[i].point].config;
    else
        st = reject(&r.space, &part, text);
    cli_ranking_free(&r);
    return st;
}
