/* flops: operations of an operation's products and of the rest, over the pairs that are seen. */
#include "model.h"
#include "operation.h"

static double visible(const fa_problem *p, fa_band band)
{
    return (double)fa_pairs_count(&(fa_pairs){ p->sq, p->sk, band });
}

double fa_model_matrix_flops(const fa_problem *p, fa_band band)
{
    const fa_operation *op = fa_operation_find(p->op);
    return op ? 2 * visible(p, band) * (op->products_d * p->d + op->products_dv * p->dv) * p->b * p->hq : 0;
}

double fa_model_other_flops(const fa_problem *p, fa_band band)
{
    const fa_operation *op = fa_operation_find(p->op);
    return op ? op->others * visible(p, band) * p->b * p->hq : 0;
}
