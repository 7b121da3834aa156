/* conditions: the sides of each "and" at the top, one by one. */
#include "conditions.h"

/* False: there are too many. */
static bool split(const fa_score_tiles *tiles, int node, int16_t truth[FA_SCORE_CONDITIONS_MAX], int *n)
{
    const fa_score_node *a = &tiles->ir->node[node];
    if (a->op == FA_SCORE_AND && tiles->reading[node] == FA_SCORE_BY_PARTS) /* else there are tables of it as a whole */
        return split(tiles, a->arg[0], truth, n) && split(tiles, a->arg[1], truth, n);
    if (*n == FA_SCORE_CONDITIONS_MAX)
        return false;
    truth[(*n)++] = (int16_t)node;
    return true;
}

void fa_score_conditions_of(fa_score_conditions *out, const fa_score_tiles *tiles)
{
    int16_t truth[FA_SCORE_CONDITIONS_MAX];
    int n = 0;
    out->solved = out->rest = 0;
    bool few = split(tiles, tiles->mask, truth, &n);
    for (int k = 0; few && k < n; k++) {
        fa_score_bounds_of_all(&out->ends, tiles, FA_SCORE_J, &truth[k], 1);
        if (out->ends.exact)
            out->of_solved[out->solved++] = truth[k];
        else
            out->of_rest[out->rest++] = truth[k];
    }
    if (out->solved)
        fa_score_bounds_of_all(&out->ends, tiles, FA_SCORE_J, out->of_solved, out->solved);
    if (out->solved && out->rest && out->ends.exact)
        return;
    out->solved = 0;
    out->rest = 1;
    out->of_rest[0] = (int16_t)tiles->mask;
}
