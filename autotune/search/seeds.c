/* seeds: configs that won elsewhere. */
#include "seeds.h"
#include "gen/bucket.h"
#include "gen/problem.h"
#include "runtime/choose/facts.h"
#include <stdlib.h>

#define SHIPPED_MOST 6
#define RECORDED_MOST 6 /* of this bucket */
#define BUCKETS_MOST 4  /* other shapes, one config each */

typedef struct planting {
    fa_pool *pool;
    fa_neighbours *neighbours;
    int planted, most;
} planting;

/* True when it is, or has become, a seed. */
static bool plant(planting *pl, const fa_config *c)
{
    fa_pool_entry x = { .config = *c };
    size_t at = fa_pool_find(pl->pool, c);
    if (at != FA_NOWHERE && pl->pool->p[at].origin == FA_SEED)
        return false;
    if (at == FA_NOWHERE) {
        if (!pl->neighbours->accept(pl->neighbours, c, &x))
            return false;
        x.config = *c;
        x.rank = x.cost.seconds;
    }
    x.origin = FA_SEED;
    if (fa_pool_add(pl->pool, &x) == FA_NOWHERE)
        return false;
    pl->planted++;
    return true;
}

/* The nearest winners that ship, of the class and its relatives. */
static void plant_shipped(planting *pl, const fa_site *site, const fa_problem *p)
{
    fa_facts facts;
    if (fa_facts_of(&facts, NULL, p, site->arch, site->budget) != FA_OK)
        return;
    for (size_t i = 0; i < facts.n && pl->planted < pl->most; i++)
        if (facts.fact[i].arch)
            plant(pl, &facts.fact[i].config);
    fa_facts_free(&facts);
}

static void forget_config(fa_records *rs, fa_config c)
{
    size_t n = 0;
    for (size_t i = 0; i < rs->n; i++)
        if (!fa_config_equal(&rs->r[i].config, &c))
            rs->r[n++] = rs->r[i];
    rs->n = n;
}

static void keep_others(fa_records *rs, uint32_t bucket)
{
    size_t n = 0;
    for (size_t i = 0; i < rs->n; i++)
        if (fa_problem_bucket(&rs->r[i].problem) != bucket)
            rs->r[n++] = rs->r[i];
    rs->n = n;
}

/* The fastest of the problem's own bucket, then one of each of the nearest others. */
static void plant_records(planting *pl, const fa_site *site, const fa_problem *p)
{
    fa_records rs = fa_records_load(site->store, site->arch->chip, p);
    uint32_t own = fa_problem_bucket(p);
    const fa_record *best;
    size_t n = 0;
    for (size_t i = 0; i < rs.n; i++)
        if (rs.r[i].how == FA_MEASURED)
            rs.r[n++] = rs.r[i];
    rs.n = n;
    for (int i = 0; i < RECORDED_MOST && (best = fa_records_best(&rs, p)) && fa_problem_bucket(&best->problem) == own; i++) {
        plant(pl, &best->config);
        forget_config(&rs, best->config);
    }
    keep_others(&rs, own);
    for (int i = 0; i < BUCKETS_MOST && (best = fa_records_best(&rs, p)); i++) {
        plant(pl, &best->config);
        keep_others(&rs, fa_problem_bucket(&best->problem));
    }
    fa_records_free(&rs);
}

void fa_seeds_add(fa_pool *pool, fa_neighbours *neighbours, const fa_site *site, const fa_problem *p)
{
    planting pl = { .pool = pool, .neighbours = neighbours, .most = SHIPPED_MOST };
    fa_problem sibling = *p;
    plant_shipped(&pl, site, p);
    plant_records(&pl, site, p);
    if (fa_dtype_bytes(p->dtype) != 2)
        return;
    sibling.dtype = p->dtype == FA_BF16 ? FA_F16 : FA_BF16;
    if (p->o_dtype == p->dtype)
        sibling.o_dtype = sibling.dtype;
    plant_records(&pl, site, &sibling);
}
