/* eval: the nodes in their order. */
#include "eval.h"
#include "apply.h"
#include <string.h>

static double leaf(const fa_score_node *a, const fa_score_data *data, const fa_score_pair *pair)
{
    switch (a->op) {
    case FA_SCORE_B:
        return (double)pair->b;
    case FA_SCORE_H:
        return (double)pair->h;
    case FA_SCORE_I:
        return (double)pair->i;
    case FA_SCORE_J:
        return (double)pair->j;
    case FA_SCORE_S:
        return pair->s;
    case FA_SCORE_OFF:
        return (double)data->off;
    case FA_SCORE_SQ:
        return (double)data->sq;
    case FA_SCORE_SK:
        return (double)data->sk;
    case FA_SCORE_GROUP:
        return (double)data->group;
    case FA_SCORE_SCALAR:
        return data->scalar[a->operand];
    default:
        return a->value;
    }
}

static double clamp(double v, double lo, double hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

static double lookup(const fa_score_ir *ir, const fa_score_node *a, const fa_score_data *data, const double *value)
{
    int64_t index[FA_SCORE_RANK_MAX];
    fa_score_element element = ir->operand[a->operand].element;
    for (int k = 0; k < a->n; k++)
        index[k] = (int64_t)clamp(value[a->arg[k]], 0, (double)(data->extent[a->operand][k] - 1));
    double v = data->read(data->user, a->operand, index);
    return element == FA_SCORE_ELEMENT_I32 || element == FA_SCORE_ELEMENT_I64 ? clamp(v, -FA_SCORE_INT_MAX, FA_SCORE_INT_MAX) : v;
}

double fa_score_eval(const fa_score_ir *ir, int last, const fa_score_data *data, const fa_score_pair *pair, double *value)
{
    for (int i = 0; i <= last; i++) {
        const fa_score_node *a = &ir->node[i];
        if (a->op == FA_SCORE_LOOKUP)
            value[i] = lookup(ir, a, data, value);
        else if (!a->n)
            value[i] = leaf(a, data, pair);
        else
            value[i] = fa_score_apply(a->op, value[a->arg[0]], a->n > 1 ? value[a->arg[1]] : 0, a->n > 2 ? value[a->arg[2]] : 0);
        if (a->op == FA_SCORE_TANH)
            value[i] *= 1 + data->tanh_off;
        else if (a->op == FA_SCORE_TANH_EXACT)
            value[i] += data->tanh_exact_off;
    }
    return value[last];
}

int fa_score_eval_outside(const fa_score_ir *ir, int last, const fa_score_data *data, const double *value, int *which)
{
    bool needed[FA_SCORE_ROOM] = { false };
    int found = -1;
    needed[last] = true;
    for (int i = last; i >= 0; i--) { /* arguments come before */
        const fa_score_node *a = &ir->node[i];
        for (int k = 0; needed[i] && k < a->n; k++)
            if (a->op != FA_SCORE_SELECT || k == 0 || (value[a->arg[0]] != 0) == (k == 1))
                needed[a->arg[k]] = true;
        for (int k = 0; needed[i] && a->op == FA_SCORE_LOOKUP && k < a->n; k++)
            if (value[a->arg[k]] < 0 || value[a->arg[k]] >= (double)data->extent[a->operand][k]) {
                found = i;
                *which = k;
            }
    }
    return found;
}
