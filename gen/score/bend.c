/* bend: the derivative's factors, sorted. */
#include "bend.h"
#include "derive.h"
#include "reach.h"
#include <math.h>
#include <string.h>

enum { FACTORS_MOST = 32 };

/* A product: number * above / below. */
typedef struct factors {
    double number;
    int n[2]; /* above, below */
    int16_t node[2][FACTORS_MOST];
} factors;

/* Multiplies by the node, or divides. False: there are too many factors. */
static bool take(factors *f, const fa_score_ir *ir, int node, int below)
{
    const fa_score_node *a = &ir->node[node];
    switch (a->op) {
    case FA_SCORE_MUL:
        return take(f, ir, a->arg[0], below) && take(f, ir, a->arg[1], below);
    case FA_SCORE_DIV:
        return take(f, ir, a->arg[0], below) && take(f, ir, a->arg[1], !below);
    case FA_SCORE_NEG:
        f->number = -f->number;
        return take(f, ir, a->arg[0], below);
    case FA_SCORE_CONST:
        if (a->value == 0 || !isfinite(a->value))
            break;
        f->number = below ? f->number / a->value : f->number * a->value;
        return true;
    default:
        break;
    }
    if (f->n[below] == FACTORS_MOST)
        return false;
    f->node[below][f->n[below]++] = (int16_t)node;
    return true;
}

static void cancel(factors *f)
{
    for (int i = 0; i < f->n[0]; i++)
        for (int k = 0; k < f->n[1]; k++)
            if (f->node[0][i] == f->node[1][k]) {
                f->node[0][i--] = f->node[0][--f->n[0]];
                f->node[1][k] = f->node[1][--f->n[1]];
                break;
            }
}

/* The product of those that are the same for a row, or of the others; `one` where there are none. */
static int product(fa_score_ir *ir, const factors *f, int below, bool row, int one)
{
    int all = one;
    for (int i = 0; i < f->n[below]; i++) {
        int node = f->node[below][i];
        if (fa_score_depends_on(ir, node, FA_SCORE_OF_S | FA_SCORE_OF_J) != row)
            all = all == one ? node : fa_score_ir_make(ir, FA_SCORE_MUL, all, node, -1);
    }
    return all;
}

static int part(fa_score_ir *ir, const factors *f, bool row, int one)
{
    int above = product(ir, f, 0, row, one), below = product(ir, f, 1, row, one);
    if (row && f->number != 1) {
        int number = fa_score_ir_number(ir, FA_SCORE_F32, f->number);
        above = above == one ? number : fa_score_ir_make(ir, FA_SCORE_MUL, above, number, -1);
    }
    return below == one ? above : fa_score_ir_make(ir, FA_SCORE_DIV, above, below, -1);
}

int fa_score_bend_of(fa_score_ir *ir, int pair, int unit)
{
    factors f = { .number = 1 };
    int s = fa_score_ir_leaf(ir, FA_SCORE_S), one = fa_score_ir_number(ir, FA_SCORE_F32, 1);
    int derivative = s < 0 || one < 0 ? -1 : fa_score_derive(ir, pair, s);
    if (derivative < 0)
        return -1;
    if (!take(&f, ir, derivative, 0) || (unit >= 0 && !take(&f, ir, unit, 0)))
        return unit < 0 ? derivative : fa_score_ir_make(ir, FA_SCORE_MUL, derivative, unit, -1);
    cancel(&f);
    int row = part(ir, &f, true, one), rest = part(ir, &f, false, one);
    return row == one ? rest : rest == one ? row : fa_score_ir_make(ir, FA_SCORE_MUL, rest, row, -1);
}

/* y of a node that is -y; -1: it is not. */
static int below_zero(const fa_score_ir *ir, int node)
{
    const fa_score_node *a = &ir->node[node];
    if (a->op == FA_SCORE_NEG)
        return a->arg[0];
    for (int k = 0; k < 2 && a->op == FA_SCORE_MUL; k++)
        if (fa_score_is_value(ir, a->arg[k], -1))
            return a->arg[1 - k];
    return -1;
}

int fa_score_bend_below_one(const fa_score_ir *ir, int node)
{
    const fa_score_node *a = &ir->node[node];
    if (a->op == FA_SCORE_SUB)
        return fa_score_is_value(ir, a->arg[0], 1) ? a->arg[1] : -1;
    for (int k = 0; k < 2 && a->op == FA_SCORE_ADD; k++)
        if (fa_score_is_value(ir, a->arg[k], 1))
            return below_zero(ir, a->arg[1 - k]);
    return -1;
}

bool fa_score_is_finite(const fa_score_ir *ir, int node)
{
    const fa_score_range *r = &ir->node[node].range;
    return isfinite(r->lo) && isfinite(r->hi);
}
