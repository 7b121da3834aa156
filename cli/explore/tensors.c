/* tensors: what the operation reads and writes by name, and its bytes: what bandwidth is counted by. */
#include "explore.h"
#include "gen/operation.h"
#include "gen/problem.h"
#include "verify/operands/work.h"
#include <stdio.h>
#include <string.h>

/* "Q", "dO": of the tensors that every call has. */
static bool is_tensor(const fa_operand *o)
{
    return o->strided && !o->feature;
}

static void name_tensors(explore *e)
{
    const fa_operation *op = fa_operation_find(e->problem.op);
    char title[FA_OPERAND_TITLE];
    size_t at = 0;
    int last = -1;
    for (int i = 0; i < op->n; i++)
        last = is_tensor(&op->operand[i]) ? i : last;
    for (int i = 0; i <= last && at < sizeof e->tensors; i++) {
        bool gradient = is_tensor(&op->operand[i]) && !strncmp(op->operand[i].name, "grad_", 5);
        fa_operand_title(title, &op->operand[i]);
        if (is_tensor(&op->operand[i]))
            at += (size_t)snprintf(e->tensors + at, sizeof e->tensors - at, "%s%s%s",
                                   !at         ? ""
                                   : i == last ? " and "
                                               : ", ",
                                   gradient ? "d" : "", title + (gradient ? 5 : 0));
    }
}

/* Of so many queries and keys in all sequences together. */
static double bytes_of(const explore *e, const fa_problem *p, double queries, double keys)
{
    const fa_operation *op = fa_operation_find(p->op);
    fa_sizes sizes = fa_sizes_of(p, e->arch->sm_count);
    double bytes = 0;
    for (int i = 0; i < op->n; i++) {
        const fa_operand *o = &op->operand[i];
        fa_dims dims;
        if (!is_tensor(o))
            continue;
        fa_operand_dims(&dims, o, &sizes);
        double rows = (double)dims.of[0] * (double)dims.of[1];
        if (p->features & FA_FEATURE_LENGTHS)
            rows = fa_operand_has_keys(o) ? keys : o->extent[1] == FA_EXTENT_ROWS_Q ? queries : rows;
        bytes += rows * (double)dims.of[2] * (double)dims.of[3] * fa_operand_bytes(o, p);
    }
    return bytes;
}

double explore_tensor_bytes(const explore *e, const fa_problem *p)
{
    return bytes_of(e, p, (double)p->b * p->sq, (double)p->b * p->sk);
}

fa_status explore_tensors_count(explore *e)
{
    const fa_problem *p = &e->problem;
    fa_work drawn = { .flops = 0 };
    fa_status st = fa_work_drawn(&drawn, p, 0);
    name_tensors(e);
    e->tensor_bytes = explore_tensor_bytes(e, p);
    e->measured_bytes = bytes_of(e, p, drawn.queries, drawn.keys);
    return st;
}
