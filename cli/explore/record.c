/* record: which records are times of the chip, and which of two is told. */
#include "explore.h"
#include "gen/problem.h"
#include <string.h>

bool explore_same_shape(const explore *e, const fa_record *r)
{
    fa_problem full = r->problem;
    fa_problem_fill_shape(&full);
    return fa_problem_same_shape(&e->problem, &full);
}

bool explore_is_time(const explore *e, const fa_record *r)
{
    return r->how == FA_MEASURED && r->outcome == FA_RAN && r->verified && r->seconds > 0 && e->chip[0] && !strcmp(r->chip, e->chip);
}

const explore_config *explore_model_best(const explore *e)
{
    const explore_config *best = NULL;
    for (size_t i = 0; i < e->n; i++)
        if (!e->config[i].rejected && (!best || e->config[i].cost.seconds < best->cost.seconds))
            best = &e->config[i];
    return best;
}

const explore_config *explore_measured_best(const explore *e)
{
    const explore_config *best = NULL;
    for (size_t i = 0; i < e->n; i++)
        if (e->config[i].record && explore_is_time(e, e->config[i].record) &&
            explore_is_shorter(e->config[i].record, best ? best->record : NULL))
            best = &e->config[i];
    return best;
}

bool explore_is_shorter(const fa_record *r, const fa_record *than)
{
    bool few = r && r->quality == FA_QUALITY_FEW;
    if (!r || !than)
        return r != NULL;
    return few != (than->quality == FA_QUALITY_FEW) ? !few : r->seconds < than->seconds;
}
