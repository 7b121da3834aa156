/* normal: from the root down, while one argument alone depends on s. */
#include "normal.h"

static bool of_s(const fa_score_ir *ir, int node)
{
    return ir->node[node].depends & FA_SCORE_OF_S;
}

static bool of_row(const fa_score_ir *ir, int node)
{
    return !(ir->node[node].depends & (FA_SCORE_OF_S | FA_SCORE_OF_J));
}

static int make(fa_score_ir *ir, fa_score_op op, int x, int y)
{
    return fa_score_ir_make(ir, op, x, y, -1);
}

/* What is subtracted, multiplied or divided by is `other`; on the left of - it is the other way round. False: nothing is taken off. */
static bool peel(fa_score_ir *ir, fa_score_normal *n)
{
    const fa_score_node a = ir->node[n->core];
    int x = a.arg[0], y = a.arg[1];
    bool left = a.n > 0 && of_s(ir, x), right = a.n > 1 && of_s(ir, y);
    int inner = left ? x : y, other = left ? y : x;
    if (left == right && a.n > 1)
        return false;
    switch (a.op) {
    case FA_SCORE_ADD:
    case FA_SCORE_SUB: /* factor * (x - y) + offset */
        n->offset =
            make(ir, a.op == FA_SCORE_SUB && left ? FA_SCORE_SUB : FA_SCORE_ADD, n->offset, make(ir, FA_SCORE_MUL, n->factor, other));
        if (a.op == FA_SCORE_SUB && right)
            n->factor = make(ir, FA_SCORE_NEG, n->factor, -1);
        break;
    case FA_SCORE_NEG:
        inner = x;
        n->factor = make(ir, FA_SCORE_NEG, n->factor, -1);
        break;
    case FA_SCORE_MUL:
        if (!of_row(ir, other))
            return false;
        n->factor = make(ir, FA_SCORE_MUL, n->factor, other);
        break;
    case FA_SCORE_DIV:
        if (right || !of_row(ir, other))
            return false;
        n->factor = make(ir, FA_SCORE_DIV, n->factor, other);
        break;
    default:
        return false;
    }
    n->core = inner;
    return true;
}

bool fa_score_normal_of(fa_score_ir *ir, int node, fa_score_normal *out)
{
    int zero = fa_score_ir_number(ir, FA_SCORE_F32, 0), one = fa_score_ir_number(ir, FA_SCORE_F32, 1);
    *out = of_s(ir, node) ? (fa_score_normal){ one, node, zero } : (fa_score_normal){ one, zero, node };
    while (zero >= 0 && one >= 0 && out->factor >= 0 && out->offset >= 0 && of_s(ir, out->core) && peel(ir, out))
        ;
    return zero >= 0 && one >= 0 && out->factor >= 0 && out->offset >= 0;
}

bool fa_score_normal_rises(const fa_score_ir *ir, const fa_score_normal *n)
{
    fa_score_range r = ir->node[n->factor].range;
    return !r.nan && r.lo > 0;
}
