/* slope: by the rules of sums and products, from the arguments up. */
#include "slope.h"
#include "reach.h"

static int slope_within(fa_score_ir *ir, int node, unsigned of, fa_score_op leaf, int *steps)
{
    const fa_score_node a = ir->node[node];
    if (--*steps < 0)
        return -1;
    if (fa_score_depends_on(ir, node, FA_SCORE_OF_S) || a.type == FA_SCORE_BOOL)
        return -1;
    if (!fa_score_depends_on(ir, node, of))
        return fa_score_ir_number(ir, (fa_score_type)a.type, 0);
    if (a.op == leaf)
        return fa_score_ir_number(ir, FA_SCORE_I32, 1);
    bool left = a.n > 0 && fa_score_depends_on(ir, a.arg[0], of), right = a.n > 1 && fa_score_depends_on(ir, a.arg[1], of);
    int x = left ? slope_within(ir, a.arg[0], of, leaf, steps) : -1, y = right ? slope_within(ir, a.arg[1], of, leaf, steps) : -1;
    switch (a.op) {
    case FA_SCORE_ADD:
    case FA_SCORE_SUB:
        x = left ? x : fa_score_ir_number(ir, (fa_score_type)a.type, 0);
        y = right ? y : fa_score_ir_number(ir, (fa_score_type)a.type, 0);
        return fa_score_ir_make(ir, (fa_score_op)a.op, x, y, -1);
    case FA_SCORE_NEG:
    case FA_SCORE_TOFLOAT:
        return fa_score_ir_make(ir, (fa_score_op)a.op, x, -1, -1);
    case FA_SCORE_MUL:
        return left && right ? -1 : fa_score_ir_make(ir, FA_SCORE_MUL, left ? x : a.arg[0], left ? a.arg[1] : y, -1);
    case FA_SCORE_DIV:
        return right ? -1 : fa_score_ir_make(ir, FA_SCORE_DIV, x, a.arg[1], -1);
    default:
        return -1;
    }
}

enum { STEPS_MOST = 128 }; /* into sums whose terms share parts: what takes more is as if it were not linear */

int fa_score_slope_by(fa_score_ir *ir, int node, unsigned of, fa_score_op leaf)
{
    int steps = STEPS_MOST;
    return slope_within(ir, node, of, leaf, &steps);
}

int fa_score_slope_of(fa_score_ir *ir, int node)
{
    return fa_score_slope_by(ir, node, FA_SCORE_OF_J, FA_SCORE_J);
}
