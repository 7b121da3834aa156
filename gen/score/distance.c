/* distance: a node is of key - query alone where it is that, or where all that it is made of are. */
#include "distance.h"
#include "issue.h"
#include "reach.h"
#include "slope.h"

enum { DEAR = 12 }; /* fa_score_instructions from which on a function of key - query is computed once for each of their distances */

/* What is known of nodes: each is looked at once. */
typedef struct known_distance {
    enum { UNKNOWN, NO, YES } of[FA_SCORE_ROOM];
    bool looked[FA_SCORE_ROOM];
} known_distance;

static bool is_of_distance(fa_score_ir *ir, known_distance *known, int node);

static bool find_distance(fa_score_ir *ir, known_distance *known, int node)
{
    const fa_score_node a = ir->node[node];
    if (fa_score_depends_on(ir, node, FA_SCORE_OF_S))
        return false;
    if (!fa_score_depends_on(ir, node, FA_SCORE_OF_I | FA_SCORE_OF_J))
        return true;
    int by_key = fa_score_slope_of(ir, node), by_row = fa_score_slope_by(ir, node, FA_SCORE_OF_I, FA_SCORE_I);
    if (a.type == FA_SCORE_I32 && by_key >= 0 && by_row >= 0 && ir->node[by_key].op == FA_SCORE_CONST &&
        ir->node[by_row].op == FA_SCORE_CONST)
        return ir->node[by_key].value == -ir->node[by_row].value;
    for (int k = 0; k < a.n; k++)
        if (!is_of_distance(ir, known, a.arg[k]))
            return false;
    return a.n > 0;
}

/* Whether the node depends on query and key by key - query alone. */
static bool is_of_distance(fa_score_ir *ir, known_distance *known, int node)
{
    if (known->of[node] == UNKNOWN)
        known->of[node] = find_distance(ir, known, node) ? YES : NO;
    return known->of[node] == YES;
}

static int distance_in(fa_score_ir *ir, known_distance *known, int node)
{
    const fa_score_node a = ir->node[node];
    if (known->looked[node])
        return -1;
    known->looked[node] = true;
    if (!fa_score_depends_on(ir, node, FA_SCORE_OF_I) || !fa_score_depends_on(ir, node, FA_SCORE_OF_J))
        return -1;
    if (a.type == FA_SCORE_F32 && is_of_distance(ir, known, node) && fa_score_slope_of(ir, node) < 0) {
        bool reached[FA_SCORE_ROOM] = { false };
        double sum = 0, exps = 0;
        fa_score_ir_reach(ir, node, reached);
        for (int i = 0; i <= node; i++)
            sum += reached[i] && fa_score_depends_on(ir, i, FA_SCORE_OF_J) ? fa_score_instructions(ir, &ir->node[i], &exps) : 0;
        return sum >= DEAR && !fa_score_reads_inside(ir, node, FA_SCORE_OF_I | FA_SCORE_OF_J) ? node : -1;
    }
    for (int k = 0; k < a.n; k++) {
        int found = distance_in(ir, known, a.arg[k]);
        if (found >= 0)
            return found;
    }
    return -1;
}

int fa_score_distance_in(fa_score_ir *ir, int node)
{
    known_distance known = { .looked = { false } };
    return distance_in(ir, &known, node);
}

bool fa_score_of_distance(fa_score_ir *ir, int node)
{
    known_distance known = { .looked = { false } };
    return is_of_distance(ir, &known, node);
}
