/* reach: a node is reached from another through arguments. */
#include "reach.h"
#include "print_cuda.h"

bool fa_score_depends_on(const fa_score_ir *ir, int node, unsigned what)
{
    return (ir->node[node].depends & what) != 0;
}

bool fa_score_reads(const fa_score_ir *ir, int node, bool (*is)(const fa_score_node *))
{
    bool reached[FA_SCORE_ROOM] = { false };
    if (node < 0)
        return false;
    fa_score_ir_reach(ir, node, reached);
    for (int i = 0; i <= node; i++)
        if (reached[i] && is(&ir->node[i]))
            return true;
    return false;
}

bool fa_score_is_off(const fa_score_node *a)
{
    return a->op == FA_SCORE_OFF;
}

bool fa_score_is_lookup(const fa_score_node *a)
{
    return a->op == FA_SCORE_LOOKUP;
}

bool fa_score_is_lookup_by_key(const fa_score_node *a)
{
    return fa_score_is_lookup(a) && a->depends & FA_SCORE_OF_J;
}

bool fa_score_reads_inside(const fa_score_ir *ir, int node, unsigned of)
{
    bool reached[FA_SCORE_ROOM] = { false };
    if (node < 0)
        return false;
    fa_score_ir_reach(ir, node, reached);
    for (int i = 0; i <= node; i++) {
        const fa_score_node *a = &ir->node[i];
        for (int k = 0; reached[i] && fa_score_is_lookup(a) && k < a->n; k++)
            if (fa_score_depends_on(ir, a->arg[k], of) && fa_score_index_inside(ir, a, k) && !fa_score_index_bounded(ir, a, k))
                return true;
    }
    return false;
}

bool fa_score_is_of_sequence(const fa_score_node *a)
{
    return a->op == FA_SCORE_OFF || a->op == FA_SCORE_SQ || a->op == FA_SCORE_SK || fa_score_is_lookup(a);
}

bool fa_score_is_value(const fa_score_ir *ir, int node, double value)
{
    return ir->node[node].op == FA_SCORE_CONST && ir->node[node].value == value;
}
