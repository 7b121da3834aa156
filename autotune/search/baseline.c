/* baseline: what fa_launch() runs where nothing was tuned. */
#include "baseline.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "runtime/choose/choose.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Its place in the pool; FA_NOWHERE: it does not run here. */
static size_t admit(fa_pool *pool, fa_neighbours *neighbours, const fa_choosable *x)
{
    fa_pool_entry found = { .origin = FA_SEED };
    if (!neighbours->accept(neighbours, &x->config, &found))
        return FA_NOWHERE;
    found.config = x->config;
    found.rank = found.cost.seconds;
    return fa_pool_add(pool, &found);
}

static void take(fa_baseline *out, const fa_choice *choice, fa_pool *pool, fa_neighbours *neighbours, const char *family)
{
    for (size_t i = 0; i < choice->n && out->at == FA_NOWHERE; i++) {
        const fa_choosable *x = &choice->row[i];
        if (family && strcmp(family, x->config.family))
            continue;
        out->at = admit(pool, neighbours, x);
        if (out->at != FA_NOWHERE && x->kind == FA_FACT_SHIPPED)
            snprintf(out->from, sizeof out->from, "shipped winner of %.44s", x->fact->chip);
    }
}

fa_status fa_baseline_find(fa_baseline *out, fa_pool *pool, fa_neighbours *neighbours, fa_gen *g, const fa_site *site, const fa_problem *p,
                           const char *family)
{
    const fa_problem point = fa_problem_point(p);
    fa_facts facts;
    fa_choice *choice = malloc(sizeof *choice);
    *out = (fa_baseline){ .at = FA_NOWHERE, .from = "the model's best" };
    if (!choice)
        return fa_fail(FA_NOMEM, "no memory for the candidates");
    fa_status st = fa_facts_of(&facts, NULL, &point, site->arch, site->budget);
    if (st == FA_OK) {
        st = fa_choose(g, &point, site->arch, site->budget, &facts, true, choice);
        if (st == FA_OK)
            take(out, choice, pool, neighbours, family);
        fa_facts_free(&facts);
    }
    free(choice);
    if (out->at == FA_NOWHERE) {
        out->at = fa_pool_cheapest(pool);
        pool->p[out->at].origin = FA_SEED;
    }
    return st == FA_NO_FIT ? FA_OK : st;
}
