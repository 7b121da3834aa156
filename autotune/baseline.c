/* baseline: what fa_launch() runs where nothing was tuned, as the first candidate. */
#include "baseline.h"
#include "runtime/choose.h"
#include <stdio.h>
#include <string.h>

typedef struct trial {
    const fa_tuning *t;
    fa_gen *g;
    const fa_site *site;
    const char *family;
    fa_candidate found;
} trial;

/* As fa_choose() asks: does it still render under the budget? */
static bool takes(void *user, const fa_config *c)
{
    trial *r = user;
    fa_source s;
    if ((r->family && strcmp(r->family, c->family)) ||
        fa_render(r->g, &r->t->problem, c, r->site->arch, r->site->budget, &s) != FA_OK)
        return false;
    r->found = (fa_candidate){ .config = *c, .smem = s.step[0].smem, .threads = s.step[0].threads, .regs = s.min_regs, .how = r->t->how };
    fa_source_free(&s);
    return fa_model_cost(r->g, &r->t->problem, c, r->site->arch, 0, &r->found.cost) == FA_OK;
}

static size_t cheapest(const fa_tuning *t)
{
    size_t best = 0;
    for (size_t i = 1; i < t->n; i++)
        if (t->candidate[i].cost.seconds < t->candidate[best].cost.seconds)
            best = i;
    return best;
}

void fa_baseline_place(fa_tuning *t, fa_gen *g, const fa_site *site, const char *family)
{
    trial r = { .t = t, .g = g, .site = site, .family = family };
    fa_config shipped;
    char chip[sizeof t->baseline_from - 20] = "";
    size_t at = t->n;
    if (fa_default_config(site->arch, &t->problem, FA_ANY_ARCH, takes, &r, &shipped, chip, sizeof chip)) {
        snprintf(t->baseline_from, sizeof t->baseline_from, "shipped winner of %s", chip);
        for (at = 0; at < t->n && !fa_config_equal(&t->candidate[at].config, &shipped); at++)
            ;
        if (at == t->n) {
            r.found.rank = r.found.cost.seconds;
            t->candidate[t->n++] = r.found;
        }
    } else {
        snprintf(t->baseline_from, sizeof t->baseline_from, "the model's best");
        at = cheapest(t);
    }
    fa_candidate first = t->candidate[at];
    memmove(t->candidate + 1, t->candidate, at * sizeof *t->candidate);
    t->candidate[0] = first;
    t->baseline = t->candidate;
}
