/* derive: forward, node by node: each derivative is made of those of the arguments. */
#include "derive.h"
#include <string.h>

typedef struct work {
    fa_score_ir *ir;
    int zero, one;
} work;

static int make(work *w, fa_score_op op, int x, int y)
{
    return fa_score_ir_make(w->ir, op, x, y, -1);
}

static int number(work *w, double v)
{
    return fa_score_ir_number(w->ir, FA_SCORE_F32, v);
}

/* Products and sums in which a derivative of 0 is left out: 0 times infinity is none of a derivative's. */
static int times(work *w, int derivative, int factor)
{
    return derivative == w->zero || factor == w->one ? derivative
           : derivative == w->one                    ? factor
                                                     : make(w, FA_SCORE_MUL, factor, derivative);
}

static int plus(work *w, int x, int y)
{
    return x == w->zero ? y : y == w->zero ? x : make(w, FA_SCORE_ADD, x, y);
}

static int minus(work *w, int x, int y)
{
    return y == w->zero ? x : x == w->zero ? make(w, FA_SCORE_NEG, y, -1) : make(w, FA_SCORE_SUB, x, y);
}

static int either(work *w, int condition, int x, int y)
{
    return fa_score_ir_make(w->ir, FA_SCORE_SELECT, condition, x, y);
}

/* What the derivative of a function's argument is multiplied by. node: the function's value. */
static int slope(work *w, int node, int x)
{
    switch (w->ir->node[node].op) {
    case FA_SCORE_EXP:
        return node;
    case FA_SCORE_EXP2:
        return make(w, FA_SCORE_MUL, number(w, 0.693147180559945309), node);
    case FA_SCORE_LOG:
        return make(w, FA_SCORE_DIV, w->one, x);
    case FA_SCORE_LOG2:
        return make(w, FA_SCORE_DIV, number(w, 1.44269504088896341), x);
    case FA_SCORE_TANH:
    case FA_SCORE_TANH_EXACT:
        return make(w, FA_SCORE_SUB, w->one, make(w, FA_SCORE_MUL, node, node));
    case FA_SCORE_SQRT:
        return make(w, FA_SCORE_DIV, number(w, 0.5), node);
    case FA_SCORE_RSQRT:
        return make(w, FA_SCORE_MUL, number(w, -0.5), make(w, FA_SCORE_MUL, node, make(w, FA_SCORE_MUL, node, node)));
    case FA_SCORE_SIGMOID:
        return make(w, FA_SCORE_MUL, node, make(w, FA_SCORE_SUB, w->one, node));
    default: /* floors */
        return w->zero;
    }
}

static int of_node(work *w, int node, const int16_t *d)
{
    const fa_score_node a = w->ir->node[node]; /* the array may be added to, but does not move */
    int x = a.arg[0], y = a.arg[1], dx = a.n > 0 ? d[x] : w->zero, dy = a.n > 1 ? d[y] : w->zero;
    switch (a.op) {
    case FA_SCORE_ADD:
        return plus(w, dx, dy);
    case FA_SCORE_SUB:
        return minus(w, dx, dy);
    case FA_SCORE_MUL:
        return plus(w, times(w, dx, y), times(w, dy, x));
    case FA_SCORE_NEG:
        return minus(w, w->zero, dx);
    case FA_SCORE_DIV:
        dx = dx == w->zero ? dx : make(w, FA_SCORE_DIV, dx, y);
        return dy == w->zero ? dx : minus(w, dx, make(w, FA_SCORE_DIV, times(w, dy, node), y));
    case FA_SCORE_MOD: /* x - floor(x / y) y */
        return dy == w->zero ? dx : minus(w, dx, times(w, dy, make(w, FA_SCORE_IDIV, x, y)));
    case FA_SCORE_MIN:
    case FA_SCORE_MAX:
        return dx == dy ? dx : either(w, a.op == FA_SCORE_MIN ? make(w, FA_SCORE_LE, x, y) : make(w, FA_SCORE_LE, y, x), dx, dy);
    case FA_SCORE_ABS:
        return dx == w->zero ? dx : either(w, make(w, FA_SCORE_LT, x, w->zero), make(w, FA_SCORE_NEG, dx, -1), dx);
    case FA_SCORE_SELECT:
        return d[y] == d[a.arg[2]] ? d[y] : either(w, x, d[y], d[a.arg[2]]);
    case FA_SCORE_LOOKUP:
        return w->zero;
    default:
        return a.n == 1 && dx != w->zero ? times(w, dx, slope(w, node, x)) : w->zero;
    }
}

int fa_score_derive(fa_score_ir *ir, int of, int by)
{
    int16_t d[FA_SCORE_ROOM];
    bool reached[FA_SCORE_ROOM] = { false };
    work w = { ir, fa_score_ir_number(ir, FA_SCORE_F32, 0), fa_score_ir_number(ir, FA_SCORE_F32, 1) };
    if (w.zero < 0 || w.one < 0)
        return -1;
    fa_score_ir_reach(ir, of, reached);
    for (int i = 0; i <= of; i++) {
        d[i] = (int16_t)w.zero;
        if (reached[i] && ir->node[i].type == FA_SCORE_F32)
            d[i] = (int16_t)(i == by ? w.one : of_node(&w, i, d));
        if (d[i] < 0)
            return -1;
    }
    return d[of];
}
