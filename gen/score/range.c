/* range: a row for each kind of operation; sums of integers are ranged by their leaves, each with its factor, so that i - j + j is i. */
#include "range.h"
#include "apply.h"
#include "sum.h"
#include <float.h>
#include <math.h>

#define LENGTH_MAX 1073741824.0 /* FA_MAX_LENGTH */

static fa_score_range range(double lo, double hi)
{
    return (fa_score_range){ lo, hi, false };
}

static const fa_score_range anything = { -INFINITY, INFINITY, true };

fa_score_box fa_score_box_widest(const fa_score_ir *ir)
{
    fa_score_box box = { .b = { 0, INT32_MAX, false }, .h = { 0, 65535, false }, .s = anything };
    box.i = box.j = range(0, LENGTH_MAX - 1);
    box.sq = box.sk = range(0, LENGTH_MAX);
    box.off = range(-LENGTH_MAX, LENGTH_MAX);
    box.group = range(1, 65536);
    for (int k = 0; k < ir->operands; k++)
        box.scalar[k] = range(ir->operand[k].least, ir->operand[k].most);
    return box;
}

/* What fp32 makes of it lies within a few roundings, of tanh.approx more. Rounding changes no sign. */
static fa_score_range outward(fa_score_range r, double relative)
{
    double lo = r.lo - (fabs(r.lo) * relative + FLT_MIN), hi = r.hi + (fabs(r.hi) * relative + FLT_MIN);
    r.lo = r.lo >= 0 ? fmax(lo, 0) : lo;
    r.hi = r.hi <= 0 ? fmin(hi, 0) : hi;
    r.lo = r.lo < -FLT_MAX ? -INFINITY : r.lo > FLT_MAX ? FLT_MAX : r.lo;
    r.hi = r.hi > FLT_MAX ? INFINITY : r.hi < -FLT_MAX ? -FLT_MAX : r.hi;
    return r;
}
#define ROUNDING 0x1p-21
#define APPROXIMATE 0x1p-10
#define ABSOLUTE 2.4e-7

fa_score_range fa_score_range_rounded(fa_score_range r)
{
    return outward(r, ROUNDING);
}

static fa_score_range within(fa_score_range r, double lo, double hi)
{
    return (fa_score_range){ fmin(fmax(r.lo, lo), hi), fmax(fmin(r.hi, hi), lo), r.nan };
}

/* The hull of the operation at the four corners. A corner that is no number leaves nothing known. */
static fa_score_range corners(fa_score_op op, fa_score_range x, fa_score_range y)
{
    const double at[] = { fa_score_apply(op, x.lo, y.lo, 0), fa_score_apply(op, x.lo, y.hi, 0), fa_score_apply(op, x.hi, y.lo, 0),
                          fa_score_apply(op, x.hi, y.hi, 0) };
    fa_score_range r = { at[0], at[0], x.nan || y.nan };
    for (int k = 0; k < 4; k++) {
        if (isnan(at[k]))
            return anything;
        r.lo = fmin(r.lo, at[k]);
        r.hi = fmax(r.hi, at[k]);
    }
    return r;
}

fa_score_range fa_score_range_hull(fa_score_range x, fa_score_range y)
{
    return (fa_score_range){ fmin(x.lo, y.lo), fmax(x.hi, y.hi), x.nan || y.nan };
}

fa_score_verdict fa_score_range_verdict(const fa_score_range *truth)
{
    return truth->lo > 0 ? FA_SCORE_ALWAYS : truth->hi < 1 ? FA_SCORE_NEVER : FA_SCORE_DEPENDS;
}

static fa_score_range truth(bool always, bool never, bool nan)
{
    return range(always && !nan, !never); /* with NaN no comparison holds */
}

/* Of a sum, difference or negative of integers: the smaller of its leaves' and its arguments' range. */
static fa_score_range of_sum(const fa_score_ir *ir, int node, const fa_score_range *of, const fa_score_box *box, fa_score_range plain)
{
    fa_score_sum s = { .n = 0 };
    fa_score_sum_add(&s, ir, node, 1, box->given);
    fa_score_range r = range((double)s.more, (double)s.more);
    for (int k = 0; k < s.n; k++) {
        fa_score_range x = of[s.leaf[k]];
        double times = (double)s.times[k];
        if (times == 0)
            continue;
        r.lo += times * (times > 0 ? x.lo : x.hi);
        r.hi += times * (times > 0 ? x.hi : x.lo);
    }
    return s.full ? plain : range(fmax(r.lo, plain.lo), fmin(r.hi, plain.hi));
}

/* ---- integers ---- */

static fa_score_range of_mod(fa_score_range x, fa_score_range y)
{
    bool past = x.nan || y.nan || (y.lo <= 0 && y.hi >= 0);
    if (!past && y.lo == y.hi && floor(x.lo / y.lo) == floor(x.hi / y.lo))
        return range(fa_score_apply(FA_SCORE_MOD, x.lo, y.lo, 0), fa_score_apply(FA_SCORE_MOD, x.hi, y.lo, 0));
    if (past)
        return anything;
    if (y.lo > 0)
        return range(0, x.lo >= 0 ? fmin(y.hi - 1, x.hi) : y.hi - 1);
    return range(y.lo + 1, 0);
}

static fa_score_range of_bits(fa_score_op op, fa_score_range x, fa_score_range y)
{
    double most = 1;
    if (x.lo == x.hi && y.lo == y.hi && !x.nan && !y.nan)
        return range(fa_score_apply(op, x.lo, y.lo, 0), fa_score_apply(op, x.lo, y.lo, 0));
    if (op == FA_SCORE_SHR && x.lo >= 0 && y.lo >= 0)
        return range(fa_score_apply(op, x.lo, y.hi, 0), fa_score_apply(op, x.hi, y.lo, 0));
    if (op == FA_SCORE_BAND && (x.lo >= 0 || y.lo >= 0))
        return range(0, x.lo < 0 ? y.hi : y.lo < 0 ? x.hi : fmin(x.hi, y.hi));
    while (most <= fmax(x.hi, y.hi))
        most *= 2;
    if (x.lo >= 0 && y.lo >= 0)
        return range(0, most - 1);
    return range(INT32_MIN, INT32_MAX);
}

static fa_score_range of_whole(const fa_score_ir *ir, int node, const fa_score_range *of, const fa_score_box *box)
{
    const fa_score_node *a = &ir->node[node];
    fa_score_range x = of[a->arg[0]], y = a->n > 1 ? of[a->arg[1]] : x;
    switch (a->op) {
    case FA_SCORE_ADD:
    case FA_SCORE_SUB:
        return of_sum(ir, node, of, box, a->op == FA_SCORE_ADD ? range(x.lo + y.lo, x.hi + y.hi) : range(x.lo - y.hi, x.hi - y.lo));
    case FA_SCORE_NEG:
        return of_sum(ir, node, of, box, range(-x.hi, -x.lo));
    case FA_SCORE_MUL:
        return corners(FA_SCORE_MUL, x, y);
    case FA_SCORE_IDIV:
        return y.lo <= 0 && y.hi >= 0 ? anything : corners(FA_SCORE_IDIV, x, y);
    case FA_SCORE_MOD:
        return of_mod(x, y);
    case FA_SCORE_FLOOR:
        return (fa_score_range){ floor(x.lo), floor(x.hi), x.nan };
    default:
        return of_bits(a->op, x, y);
    }
}

/* ---- numbers with a fraction ---- */

static fa_score_range of_rising(fa_score_op op, fa_score_range x)
{
    fa_score_range r = { fa_score_apply(op, x.lo, 0, 0), fa_score_apply(op, x.hi, 0, 0), x.nan };
    return outward(r, op == FA_SCORE_TANH ? APPROXIMATE : ROUNDING);
}

/* x >= 0, else NaN. */
static fa_score_range of_positive(fa_score_op op, fa_score_range x)
{
    bool nan = x.nan || x.lo < 0;
    if (x.hi < 0)
        return anything;
    fa_score_range r = of_rising(op, range(fmax(x.lo, 0), x.hi));
    r.nan = nan;
    return r;
}

static fa_score_range of_rsqrt(fa_score_range x)
{
    fa_score_range r = { x.hi > 0 ? 1 / sqrt(x.hi) : 0, x.lo > 0 ? 1 / sqrt(x.lo) : INFINITY, x.nan || x.lo < 0 };
    return outward(within(r, 0, INFINITY), ROUNDING);
}

static fa_score_range of_fraction(const fa_score_node *a, const fa_score_range *of)
{
    fa_score_range x = of[a->arg[0]], y = a->n > 1 ? of[a->arg[1]] : x, r;
    switch (a->op) {
    case FA_SCORE_ADD:
        r = corners(FA_SCORE_ADD, x, y);
        r.nan = r.nan || (x.lo == -INFINITY && y.hi == INFINITY) || (x.hi == INFINITY && y.lo == -INFINITY);
        return outward(r, ROUNDING);
    case FA_SCORE_SUB:
        r = corners(FA_SCORE_SUB, x, y);
        r.nan = r.nan || (x.lo == -INFINITY && y.lo == -INFINITY) || (x.hi == INFINITY && y.hi == INFINITY);
        return outward(r, ROUNDING);
    case FA_SCORE_MUL: /* 0 times infinity may lie within */
        if ((isinf(x.lo) || isinf(x.hi)) && y.lo <= 0 && y.hi >= 0)
            return anything;
        if ((isinf(y.lo) || isinf(y.hi)) && x.lo <= 0 && x.hi >= 0)
            return anything;
        return outward(corners(FA_SCORE_MUL, x, y), ROUNDING);
    case FA_SCORE_DIV:
    case FA_SCORE_IDIV:
        if ((y.lo <= 0 && y.hi >= 0) || isinf(y.lo) || isinf(y.hi))
            return anything;
        r = outward(corners(FA_SCORE_DIV, x, y), ROUNDING);
        return a->op == FA_SCORE_DIV ? r : (fa_score_range){ floor(r.lo), floor(r.hi), r.nan };
    case FA_SCORE_MOD:
        if (x.nan || y.nan || isinf(x.lo) || isinf(x.hi) || (y.lo <= 0 && y.hi >= 0))
            return anything;
        return outward(y.lo > 0 ? range(0, y.hi) : range(y.lo, 0), ROUNDING);
    case FA_SCORE_NEG:
        return (fa_score_range){ -x.hi, -x.lo, x.nan };
    case FA_SCORE_TOFLOAT:
        return outward(x, ROUNDING);
    case FA_SCORE_EXP:
    case FA_SCORE_EXP2:
        return within(of_rising(a->op, x), 0, INFINITY);
    case FA_SCORE_TANH:
        return within(of_rising(a->op, x), -1, 1);
    case FA_SCORE_TANH_EXACT: /* its error is absolute */
        r = of_rising(a->op, x);
        return within((fa_score_range){ r.lo - ABSOLUTE, r.hi + ABSOLUTE, r.nan }, -1, 1);
    case FA_SCORE_SIGMOID:
        return within(of_rising(a->op, x), 0, 1);
    case FA_SCORE_SQRT:
        return within(of_positive(a->op, x), 0, INFINITY);
    case FA_SCORE_RSQRT:
        return of_rsqrt(x);
    default: /* logarithms */
        return of_positive(a->op, x);
    }
}

/* ---- alike for both ---- */

static fa_score_range of_extremum(fa_score_op op, fa_score_range x, fa_score_range y)
{
    fa_score_range r = op == FA_SCORE_MIN ? range(fmin(x.lo, y.lo), fmin(x.hi, y.hi)) : range(fmax(x.lo, y.lo), fmax(x.hi, y.hi));
    return x.nan || y.nan ? fa_score_range_hull(x, y) : r; /* whichever of the two is left */
}

static fa_score_range of_abs(fa_score_range x)
{
    double most = fmax(fabs(x.lo), fabs(x.hi));
    return (fa_score_range){ x.lo <= 0 && x.hi >= 0 ? 0 : fmin(fabs(x.lo), fabs(x.hi)), most, x.nan };
}

static fa_score_range of_truth(const fa_score_node *a, const fa_score_range *of)
{
    fa_score_range x = of[a->arg[0]], y = a->n > 1 ? of[a->arg[1]] : x;
    bool nan = x.nan || y.nan;
    switch (a->op) {
    case FA_SCORE_LT:
        return truth(x.hi < y.lo, x.lo >= y.hi, nan);
    case FA_SCORE_LE:
        return truth(x.hi <= y.lo, x.lo > y.hi, nan);
    case FA_SCORE_EQ:
        return truth(x.lo == x.hi && y.lo == y.hi && x.lo == y.lo, x.hi < y.lo || y.hi < x.lo, nan);
    case FA_SCORE_AND:
        return range(fmin(x.lo, y.lo), fmin(x.hi, y.hi));
    case FA_SCORE_OR:
        return range(fmax(x.lo, y.lo), fmax(x.hi, y.hi));
    default:
        return range(1 - x.hi, 1 - x.lo);
    }
}

static fa_score_range of_leaf(const fa_score_node *a, const fa_score_box *box)
{
    switch (a->op) {
    case FA_SCORE_B:
        return box->b;
    case FA_SCORE_H:
        return box->h;
    case FA_SCORE_I:
        return box->i;
    case FA_SCORE_J:
        return box->j;
    case FA_SCORE_S:
        return box->s;
    case FA_SCORE_OFF:
        return box->off;
    case FA_SCORE_SQ:
        return box->sq;
    case FA_SCORE_SK:
        return box->sk;
    case FA_SCORE_GROUP:
        return box->group;
    case FA_SCORE_SCALAR:
        return box->scalar[a->operand];
    default:
        return isnan(a->value) ? anything : range(a->value, a->value);
    }
}

fa_score_range fa_score_range_of_element(const fa_score_operand *o)
{
    switch (o->element) {
    case FA_SCORE_ELEMENT_I32:
    case FA_SCORE_ELEMENT_I64:
        return range(-FA_SCORE_INT_MAX, FA_SCORE_INT_MAX);
    case FA_SCORE_ELEMENT_U8:
        return range(0, 255);
    case FA_SCORE_ELEMENT_BITS:
        return range(0, 1);
    default:
        return anything;
    }
}

fa_score_range fa_score_range_of(const fa_score_ir *ir, int node, const fa_score_range *of, const fa_score_box *box)
{
    const fa_score_node *a = &ir->node[node];
    fa_score_range index[FA_SCORE_RANK_MAX];
    switch (a->op) {
    case FA_SCORE_LOOKUP:
        for (int k = 0; k < a->n; k++)
            index[k] = of[a->arg[k]];
        return box->look ? box->look(box->user, a->operand, index) : fa_score_range_of_element(&ir->operand[a->operand]);
    case FA_SCORE_SELECT:
        switch (fa_score_range_verdict(&of[a->arg[0]])) {
        case FA_SCORE_ALWAYS:
            return of[a->arg[1]];
        case FA_SCORE_NEVER:
            return of[a->arg[2]];
        case FA_SCORE_DEPENDS:
            break;
        }
        return fa_score_range_hull(of[a->arg[1]], of[a->arg[2]]);
    case FA_SCORE_MIN:
    case FA_SCORE_MAX:
        return of_extremum(a->op, of[a->arg[0]], of[a->arg[1]]);
    case FA_SCORE_ABS:
        return of_abs(of[a->arg[0]]);
    default:
        break;
    }
    if (!a->n)
        return of_leaf(a, box);
    return a->type == FA_SCORE_BOOL ? of_truth(a, of) : a->type == FA_SCORE_I32 ? of_whole(ir, node, of, box) : of_fraction(a, of);
}

void fa_score_ranges(const fa_score_ir *ir, const fa_score_box *box, fa_score_range *of)
{
    for (int i = 0; i < ir->n; i++)
        of[i] = fa_score_range_of(ir, i, of, box);
}
