/* sum: sums and multiples are looked into, as deep as there may be leaves. */
#include "sum.h"
#include <math.h>

#define LARGEST 0x1p52 /* of a sum whose leaves are as far from 0 as they may be: exact in fp64, too */

static double magnitude(const fa_score_sum *s, const fa_score_ir *ir)
{
    double all = fabs((double)s->more);
    for (int k = 0; k < s->n; k++) {
        const fa_score_range *r = &ir->node[s->leaf[k]].range;
        all += fabs((double)s->times[k]) * fmax(fabs(r->lo), fabs(r->hi));
    }
    return all;
}

static void add_leaf(fa_score_sum *s, int node, int64_t times)
{
    int k = 0;
    while (k < s->n && s->leaf[k] != node)
        k++;
    if (k == FA_SCORE_LEAVES_MAX) {
        s->full = true;
        return;
    }
    if (k == s->n) {
        s->leaf[s->n++] = (int16_t)node;
        s->times[k] = 0;
    }
    s->times[k] += times;
}

/* A factor that is a number; -1: there is none. */
static int number_of(const fa_score_ir *ir, const fa_score_node *x)
{
    for (int k = 0; k < 2 && x->op == FA_SCORE_MUL; k++)
        if (ir->node[x->arg[k]].op == FA_SCORE_CONST)
            return k;
    return -1;
}

static void add(fa_score_sum *s, const fa_score_ir *ir, int node, int64_t times, const uint8_t *whole, int depth)
{
    const fa_score_node *x = &ir->node[node];
    int number = number_of(ir, x);
    double far = fabs((double)times) * fmax(fabs(x->range.lo), fabs(x->range.hi));
    s->full = s->full || !(far < LARGEST); /* `times` times a number may be too large as well */
    if (s->full)
        return;
    if (x->op == FA_SCORE_CONST) {
        s->more += times * (int64_t)x->value;
    } else if (depth == FA_SCORE_LEAVES_MAX || (whole && whole[node])) {
        add_leaf(s, node, times);
    } else if (x->op == FA_SCORE_ADD || x->op == FA_SCORE_SUB) {
        add(s, ir, x->arg[0], times, whole, depth + 1);
        add(s, ir, x->arg[1], x->op == FA_SCORE_SUB ? -times : times, whole, depth + 1);
    } else if (x->op == FA_SCORE_NEG) {
        add(s, ir, x->arg[0], -times, whole, depth + 1);
    } else if (number >= 0 && fabs((double)times * ir->node[x->arg[number]].value) < LARGEST) {
        add(s, ir, x->arg[1 - number], times * (int64_t)ir->node[x->arg[number]].value, whole, depth + 1);
    } else
        add_leaf(s, node, times);
}

void fa_score_sum_add(fa_score_sum *s, const fa_score_ir *ir, int node, int64_t times, const uint8_t *whole)
{
    add(s, ir, node, times, whole, 0);
    s->full = s->full || !(magnitude(s, ir) < LARGEST);
}
