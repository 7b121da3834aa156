/* shipped_choice: what fa_choose() says of a problem by what ships alone. */
#include "bench/dev/shipped_choice.h"
#include "gen/bucket.h"

fa_status fa_shipped_choice(fa_gen *g, const fa_problem *p, const fa_arch *a, fa_choice *out)
{
    const fa_problem point = fa_problem_point(p);
    fa_facts facts;
    out->n = 0;
    fa_status st = fa_facts_of(&facts, NULL, &point, a, 0);
    if (st == FA_OK)
        st = fa_choose(g, &point, a, 0, &facts, true, out);
    for (size_t i = 0; i < out->n; i++)
        out->row[i].fact = NULL; /* goes with the facts */
    fa_facts_free(&facts);
    return st;
}
