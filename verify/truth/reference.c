/* reference: the table, and what each row calls. */
#include "reference.h"
#include "gen/problem.h"
#include "oracle.h"
#include "oracle_backward.h"
#include "verify/operands/number.h"
#include <math.h>
#include <string.h>

#define EXTRA_MAX 4 /* of fa_reference_add */

/* An input by the field that it has in fagen.h; NULL: the operation has none, or the call does not. */
static const float *in(const fa_reference_call *c, fa_operand_id id)
{
    int i = fa_operand_slot(c->op, id);
    return i < 0 ? NULL : c->in[i];
}

/* Of outputs by row, fp64 or fp32, likewise. */
#define OUT(c, out, field) ((out)[fa_operand_slot((c)->op, FA_ID_##field)])

/* ---- the forward operation ---- */

fa_attention fa_reference_attention(const fa_reference_call *c)
{
    const fa_problem *p = &c->problem;
    return (fa_attention){ .b = p->b,
                           .hq = p->hq,
                           .hkv = p->hkv,
                           .sq = p->sq,
                           .sk = p->sk,
                           .d = p->d,
                           .dv = p->dv,
                           .v_row = p->features & FA_FEATURE_V_IN_K ? p->d : p->dv,
                           .lo = c->band.lo,
                           .hi = c->band.hi,
                           .scale = c->scale,
                           .q = in(c, FA_ID_q),
                           .k = in(c, FA_ID_k),
                           .v = in(c, p->features & FA_FEATURE_V_IN_K ? FA_ID_k : FA_ID_v),
                           .k_scale = in(c, FA_ID_k_scale),
                           .v_scale = in(c, FA_ID_v_scale),
                           .q_scale = in(c, FA_ID_q_scale),
                           .o_scale = in(c, FA_ID_o_scale),
                           .eight = c->eight,
                           .p_dtype = fa_problem_wide_values(p),
                           .q_tokens = p->q_scale_by == FA_SCALE_TOKEN,
                           .k_tokens = p->k_scale_by == FA_SCALE_TOKEN,
                           .v_tokens = p->v_scale_by == FA_SCALE_TOKEN,
                           .wide_q = p->q_dtype == FA_F32,
                           .exact_q = c->exact_q,
                           .k_channels = p->k_scale_by == FA_SCALE_CHANNEL,
                           .v_channels = p->v_scale_by == FA_SCALE_CHANNEL,
                           .widened = c->widened ? p->dtype : 0,
                           .sequences = c->sequences,
                           .program = c->score && c->score->program ? &c->score->data : NULL,
                           .ir = c->score && c->score->program ? &c->score->program->ir : NULL,
                           .relative = c->relative,
                           .off = c->off,
                           .approximate = c->approximate,
                           .dropout = p->features & FA_FEATURE_DROPOUT ? &c->dropout : NULL,
                           .op = c->op,
                           .in = c->in };
}

static fa_status forward_exact(const fa_reference_call *c, double *const out[FA_OPERANDS_MAX])
{
    fa_attention a = fa_reference_attention(c);
    return fa_oracle_exact(&a, OUT(c, out, o), OUT(c, out, lse));
}

static fa_status forward_naive(const fa_reference_call *c, float *const out[FA_OPERANDS_MAX], double *rounding_factor)
{
    fa_attention a = fa_reference_attention(c);
    int products = c->problem.kv_dtype && !c->widened ? FA_F16 : c->problem.dtype; /* of few bits: docs/lowbits.md */
    return fa_oracle_naive(&a, products, c->problem.o_dtype, OUT(c, out, o), rounding_factor);
}

static fa_status forward_bounds(const fa_reference_call *c, double *const out[FA_OPERANDS_MAX])
{
    fa_attention a = fa_reference_attention(c);
    return fa_oracle_bounds(&a, c->problem.dtype, c->problem.o_dtype, OUT(c, out, o), OUT(c, out, lse));
}

static fa_status forward_approximate(const fa_reference_call *c, double *most)
{
    fa_attention a = fa_reference_attention(c);
    return fa_oracle_tanh(&a, most);
}

static fa_status outside(const fa_reference_call *c, fa_outside *found)
{
    fa_attention a = fa_reference_attention(c);
    return fa_oracle_outside(&a, found);
}

/* ---- the backward operation ---- */

static fa_backward backward_of(const fa_reference_call *c)
{
    return (fa_backward){ fa_reference_attention(c), in(c, FA_ID_grad_o), in(c, FA_ID_grad_lse), in(c, FA_ID_o), in(c, FA_ID_lse) };
}

static fa_status backward_exact(const fa_reference_call *c, double *const out[FA_OPERANDS_MAX])
{
    fa_backward a = backward_of(c);
    return fa_backward_exact(&a, OUT(c, out, grad_q), OUT(c, out, grad_k), OUT(c, out, grad_v));
}

static fa_status backward_terms(const fa_reference_call *c, double *const out[FA_OPERANDS_MAX])
{
    fa_backward a = backward_of(c);
    return fa_backward_terms(&a, OUT(c, out, grad_q), OUT(c, out, grad_k), OUT(c, out, grad_v));
}

static fa_status backward_naive(const fa_reference_call *c, float *const out[FA_OPERANDS_MAX], double *rounding_factor)
{
    fa_backward a = backward_of(c);
    *rounding_factor = 1;
    return fa_backward_naive(&a, c->problem.dtype, c->problem.grad_dtype, OUT(c, out, grad_q), OUT(c, out, grad_k), OUT(c, out, grad_v));
}

static fa_status backward_bounds(const fa_reference_call *c, double *const out[FA_OPERANDS_MAX])
{
    fa_backward a = backward_of(c);
    const fa_problem *p = &c->problem;
    return fa_backward_bounds(&a, p->dtype, p->o_dtype, p->grad_dtype, OUT(c, out, grad_q), OUT(c, out, grad_k), OUT(c, out, grad_v));
}

/* ---- merging ---- */

/* One row out of its parts, which lie `far` rows apart. */
static double merge_row(const fa_reference_call *c, int32_t parts, int64_t row, int64_t row_lse, int64_t far, double *out)
{
    const float *part = in(c, FA_ID_part), *part_lse = in(c, FA_ID_part_lse);
    int32_t dv = c->problem.dv;
    double m = -INFINITY, l = 0;
    for (int32_t i = 0; i < parts; i++)
        m = fmax(m, (double)part_lse[i * far + row_lse]);
    memset(out, 0, (size_t)dv * sizeof *out);
    for (int32_t i = 0; i < parts; i++) {
        double lse = (double)part_lse[i * far + row_lse], w = exp(lse - m);
        if (lse == -INFINITY)
            continue;
        l += w;
        for (int32_t k = 0; k < dv; k++)
            out[k] += w * (double)part[(i * far + row) * dv + k];
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
        OUT(c, out, lse)[at] = merge_row(c, (int32_t)sizes.of[FA_EXTENT_PARTS], row, at, far, OUT(c, out, o) + row * p->dv);
    }
    return FA_OK;
}

/* In fp32, in the order of the parts, whatever their type. */
static void merge_row_naively(const fa_reference_call *c, int32_t parts, int64_t row, int64_t row_lse, int64_t far, float *out)
{
    const float *part = in(c, FA_ID_part), *part_lse = in(c, FA_ID_part_lse);
    int32_t dv = c->problem.dv;
    float m = -INFINITY, l = 0;
    for (int32_t i = 0; i < parts; i++)
        m = fmaxf(m, part_lse[i * far + row_lse]);
    for (int32_t i = 0; i < parts; i++)
        l += part_lse[i * far + row_lse] == -INFINITY ? 0 : expf(part_lse[i * far + row_lse] - m);
    for (int32_t k = 0; k < dv; k++) {
        float sum = 0;
        for (int32_t i = 0; i < parts; i++) {
            float lse = part_lse[i * far + row_lse];
            sum += lse == -INFINITY ? 0 : expf(lse - m) * part[(i * far + row) * dv + k];
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
        merge_row_naively(c, (int32_t)sizes.of[FA_EXTENT_PARTS], row, row_of_lse(p, row), far, OUT(c, out, o) + row * p->dv);
    *rounding_factor = 1;
    return FA_OK;
}

/* ---- the table ---- */

static const fa_reference_row table[] = {
    { .op = FA_FORWARD,
      .exact = forward_exact,
      .naive = forward_naive,
      .bounds = forward_bounds,
      .approximate = forward_approximate,
      .outside = outside,
      .scores = "lse" },
    { .op = FA_BACKWARD,
      .exact = backward_exact,
      .naive = backward_naive,
      .terms = backward_terms,
      .bounds = backward_bounds,
      .approximate = forward_approximate,
      .outside = outside,
      .times = 3,
      .scores = "lse" },
    { .op = FA_MERGE, .exact = merge_exact, .naive = merge_naive, .scores = "part_lse" },
};

static const fa_reference_row *extra[EXTRA_MAX];
static size_t extras;

const fa_reference_row *fa_reference_find(int32_t op)
{
    for (size_t i = 0; i < extras; i++)
        if (extra[i]->op == op)
            return extra[i];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].op == op)
            return &table[i];
    return NULL;
}

bool fa_reference_add(const fa_reference_row *row)
{
    for (size_t i = 0; i < extras; i++)
        if (extra[i]->op == row->op)
            return false;
    if (extras == EXTRA_MAX)
        return false;
    extra[extras++] = row;
    return true;
}
