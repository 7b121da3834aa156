/* reference: the table, and what each row calls. */
#include "reference.h"
#include "oracle.h"
#include "oracle_backward.h"
#include "verify/operands/number.h"
#include <math.h>
#include <string.h>

#define EXTRA_MAX 4 /* of fa_reference_add */

/* ---- the forward operation ---- */

enum { Q, K, V, O, LSE }; /* its rows in gen/operation.c */

static fa_attention attention_of(const fa_reference_call *c)
{
    const fa_problem *p = &c->problem;
    return (fa_attention){ p->b,     p->hq,    p->hkv,     p->sq,        p->sk,
                           p->d,     p->dv,    c->band.lo, c->band.hi,   c->scale,
                           c->in[Q], c->in[K], c->in[V],   c->sequences, p->features & FA_FEATURE_DROPOUT ? &c->dropout : NULL };
}

static fa_status forward_exact(const fa_reference_call *c, double *const out[FA_OPERANDS_MAX])
{
    fa_attention a = attention_of(c);
    return fa_oracle_exact(&a, out[O], out[LSE]);
}

static fa_status forward_naive(const fa_reference_call *c, float *const out[FA_OPERANDS_MAX], double *rounding_factor)
{
    fa_attention a = attention_of(c);
    return fa_oracle_naive(&a, c->problem.dtype, c->problem.o_dtype, out[O], rounding_factor);
}

static fa_status forward_bounds(const fa_reference_call *c, double *const out[FA_OPERANDS_MAX])
{
    fa_attention a = attention_of(c);
    return fa_oracle_bounds(&a, c->problem.dtype, c->problem.o_dtype, out[O], out[LSE]);
}

/* ---- the backward operation ---- */

enum { GRAD_O = LSE + 1, GRAD_LSE, GRAD_Q, GRAD_K, GRAD_V }; /* behind the rows that it shares with the forward one */

static fa_backward backward_of(const fa_reference_call *c)
{
    return (fa_backward){ attention_of(c), c->in[GRAD_O], c->in[GRAD_LSE], c->in[O], c->in[LSE] };
}

static fa_status backward_exact(const fa_reference_call *c, double *const out[FA_OPERANDS_MAX])
{
    fa_backward a = backward_of(c);
    return fa_backward_exact(&a, out[GRAD_Q], out[GRAD_K], out[GRAD_V]);
}

static fa_status backward_terms(const fa_reference_call *c, double *const out[FA_OPERANDS_MAX])
{
    fa_backward a = backward_of(c);
    return fa_backward_terms(&a, out[GRAD_Q], out[GRAD_K], out[GRAD_V]);
}

static fa_status backward_naive(const fa_reference_call *c, float *const out[FA_OPERANDS_MAX], double *rounding_factor)
{
    fa_backward a = backward_of(c);
    *rounding_factor = 1;
    return fa_backward_naive(&a, c->problem.dtype, c->problem.grad_dtype, out[GRAD_Q], out[GRAD_K], out[GRAD_V]);
}

static fa_status backward_bounds(const fa_reference_call *c, double *const out[FA_OPERANDS_MAX])
{
    fa_backward a = backward_of(c);
    const fa_problem *p = &c->problem;
    return fa_backward_bounds(&a, p->dtype, p->o_dtype, p->grad_dtype, out[GRAD_Q], out[GRAD_K], out[GRAD_V]);
}

/* ---- merging ---- */

enum { PART, PART_LSE, MERGED, MERGED_LSE };

/* One row out of its parts, which lie `far` rows apart. */
static double merge_row(const fa_reference_call *c, int32_t parts, int64_t row, int64_t row_lse, int64_t far, double *out)
{
    int32_t dv = c->problem.dv;
    double m = -INFINITY, l = 0;
    for (int32_t i = 0; i < parts; i++)
        m = fmax(m, (double)c->in[PART_LSE][i * far + row_lse]);
    memset(out, 0, (size_t)dv * sizeof *out);
    for (int32_t i = 0; i < parts; i++) {
        double lse = (double)c->in[PART_LSE][i * far + row_lse], w = exp(lse - m);
        if (lse == -INFINITY)
            continue;
        l += w;
        for (int32_t k = 0; k < dv; k++)
            out[k] += w * (double)c->in[PART][(i * far + row) * dv + k];
    }
    for (int32_t k = 0; k < dv && l != 0; k++)
        out[k] /= l;
    return l == 0 ? -INFINITY : m + log(l);
}

/* Rows of O are [b, sq, hq], those of LSE [b, hq, sq]. */
static int64_t row_of_lse(const fa_problem *p, int64_t row)
{
    return (row / p->hq / p->sq * p->hq + row % p->hq) * p->sq + row / p->hq % p->sq;
}

static fa_status merge_exact(const fa_reference_call *c, double *const out[FA_OPERANDS_MAX])
{
    const fa_problem *p = &c->problem;
    fa_sizes sizes = fa_sizes_of(p, 0);
    int64_t far = (int64_t)p->b * p->sq * p->hq;
    for (int64_t row = 0; row < far; row++) {
        int64_t at = row_of_lse(p, row);
        out[MERGED_LSE][at] = merge_row(c, (int32_t)sizes.of[FA_EXTENT_PARTS], row, at, far, out[MERGED] + row * p->dv);
    }
    return FA_OK;
}

/* In fp32, in the order of the parts, whatever their type. */
static void merge_row_naively(const fa_reference_call *c, int32_t parts, int64_t row, int64_t row_lse, int64_t far, float *out)
{
    int32_t dv = c->problem.dv;
    float m = -INFINITY, l = 0;
    for (int32_t i = 0; i < parts; i++)
        m = fmaxf(m, c->in[PART_LSE][i * far + row_lse]);
    for (int32_t i = 0; i < parts; i++)
        l += c->in[PART_LSE][i * far + row_lse] == -INFINITY ? 0 : expf(c->in[PART_LSE][i * far + row_lse] - m);
    for (int32_t k = 0; k < dv; k++) {
        float sum = 0;
        for (int32_t i = 0; i < parts; i++) {
            float lse = c->in[PART_LSE][i * far + row_lse];
            sum += lse == -INFINITY ? 0 : expf(lse - m) * c->in[PART][(i * far + row) * dv + k];
        }
        out[k] = fa_number_round(l == 0 ? 0 : sum / l, c->problem.o_dtype);
    }
}

static fa_status merge_naive(const fa_reference_call *c, float *const out[FA_OPERANDS_MAX], double *rounding_factor)
{
    const fa_problem *p = &c->problem;
    fa_sizes sizes = fa_sizes_of(p, 0);
    int64_t far = (int64_t)p->b * p->sq * p->hq;
    for (int64_t row = 0; row < far; row++)
        merge_row_naively(c, (int32_t)sizes.of[FA_EXTENT_PARTS], row, row_of_lse(p, row), far, out[MERGED] + row * p->dv);
    *rounding_factor = 1;
    return FA_OK;
}

/* ---- the table ---- */

static const fa_reference_row table[] = {
    { .op = FA_FORWARD, .exact = forward_exact, .naive = forward_naive, .bounds = forward_bounds, .scores = "lse" },
    { .op = FA_BACKWARD,
      .exact = backward_exact,
      .naive = backward_naive,
      .terms = backward_terms,
      .bounds = backward_bounds,
      .times = 3,
      .scores = "lse" },
    { .op = FA_MERGE, .exact = merge_exact, .naive = merge_naive, .scores = "part_lse" },
};

static const fa_reference_row *extra[EXTRA_MAX];
static size_t extras;

const fa_reference_row *fa_reference_find(int32_t op)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].op == op)
            return &table[i];
    for (size_t i = 0; i < extras; i++)
        if (extra[i]->op == op)
            return extra[i];
    return NULL;
}

bool fa_reference_add(const fa_reference_row *row)
{
    if (extras == EXTRA_MAX || fa_reference_find(row->op))
        return false;
    extra[extras++] = row;
    return true;
}
