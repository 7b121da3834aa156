/* runs: what fa_launch() runs of a problem's bucket, by all that is on record now. */
#include "runs.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/source.h"
#include "runtime/choose/choose.h"
#include <stdio.h>
#include <stdlib.h>

static void tell(fa_runs *out, const fa_choice *choice, const fa_choosable *x)
{
    bool ships = x->kind == FA_FACT_SHIPPED;
    *out = (fa_runs){ .known = true, .config = x->config, .decided = choice->decided && x == choice->row };
    snprintf(out->from, sizeof out->from, "%s%.44s", ships ? "shipped winner of " : fa_fact_name(x->kind), ships ? x->fact->chip : "");
}

fa_status fa_runs_find(fa_tuning *t, fa_gen *g, const fa_site *site)
{
    const fa_problem point = fa_problem_point(&t->problem);
    fa_facts facts;
    fa_source source;
    fa_message before;
    fa_choice *choice = malloc(sizeof *choice);
    t->runs.known = false;
    if (!choice)
        return fa_fail(FA_NOMEM, "no memory for the candidates");
    fa_message_keep(&before);
    fa_status st = fa_facts_of(&facts, site->store, &point, site->arch, site->budget);
    if (st == FA_OK) {
        st = fa_choose(g, &point, site->arch, site->budget, &facts, false, choice);
        for (size_t i = 0; st == FA_OK && i < choice->n && !t->runs.known; i++)
            if (fa_render(g, &point, &choice->row[i].config, site->arch, site->budget, &source) == FA_OK) {
                tell(&t->runs, choice, &choice->row[i]);
                fa_source_free(&source);
            }
        fa_facts_free(&facts);
    }
    free(choice);
    return fa_message_settle(&before, st == FA_NO_FIT ? FA_OK : st);
}
