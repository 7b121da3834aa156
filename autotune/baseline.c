/* baseline: what fa_launch() runs where nothing was tuned. */
#include "baseline.h"
#include "runtime/select.h"
#include <stdio.h>
#include <string.h>

typedef struct trial {
    fa_neighbours *neighbours;
    const char *family;
    fa_pool_entry found;
} trial;

/* As fa_select() asks: does it still run here? */
static bool takes(void *user, const fa_config *c)
{
    trial *r = user;
    r->found = (fa_pool_entry){ .origin = FA_SEED };
    if ((r->family && strcmp(r->family, c->family)) || !r->neighbours->accept(r->neighbours, c, &r->found))
        return false;
    r->found.config = *c;
    r->found.rank = r->found.cost.seconds;
    return true;
}

bool fa_baseline_ships(fa_neighbours *neighbours, const fa_site *site, const fa_problem *p)
{
    trial r = { .neighbours = neighbours };
    fa_config shipped;
    char chip[44];
    return fa_default_config(site->arch, p, FA_ANY_ARCH, takes, &r, &shipped, chip, sizeof chip);
}

size_t fa_baseline_find(fa_pool *pool, fa_neighbours *neighbours, const fa_site *site, const fa_problem *p, const char *family,
                        char from[64])
{
    trial r = { .neighbours = neighbours, .family = family };
    fa_config shipped;
    char chip[44] = "";
    size_t at = FA_NOWHERE;
    if (fa_default_config(site->arch, p, FA_ANY_ARCH, takes, &r, &shipped, chip, sizeof chip))
        at = fa_pool_add(pool, &r.found);
    if (at != FA_NOWHERE) {
        snprintf(from, 64, "shipped winner of %s", chip);
        return at;
    }
    snprintf(from, 64, "the model's best");
    at = fa_pool_cheapest(pool);
    pool->p[at].origin = FA_SEED;
    return at;
}
