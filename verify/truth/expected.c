/* expected: memory for the outputs, which rows sequences have, the exact values, and the errors of the naive algorithm as their bound. */
#include "expected.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "verify/operands/number.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t elements(const fa_expected *e, int i)
{
    fa_dims d;
    fa_operand_dims(&d, &e->call.op->operand[i], &e->sizes);
    return d.of[0] * d.of[1] * d.of[2] * d.of[3];
}

/* Strided ones are [batch, row, head, width], packed rows [batch, head, row]. */
int64_t fa_expected_row(const fa_expected *e, int operand, int64_t at)
{
    const fa_operand *o = &e->call.op->operand[operand];
    fa_dims d;
    fa_operand_dims(&d, o, &e->sizes);
    return o->strided ? at / d.of[3] / d.of[2] : at / d.of[2] / d.of[1] * d.of[2] + at % d.of[2];
}

bool fa_expected_writes(const fa_expected *e, int operand, int64_t at)
{
    const uint8_t *used = e->row_used[fa_operand_has_keys(&e->call.op->operand[operand])];
    return !used || used[fa_expected_row(e, operand, at)];
}

static int64_t rows_in_all(const fa_expected *e, bool keys)
{
    const int64_t *of = e->sizes.of;
    return keys ? of[FA_EXTENT_BATCH_K] * of[FA_EXTENT_ROWS_K] : of[FA_EXTENT_BATCH_Q] * of[FA_EXTENT_ROWS_Q];
}

/* Of sequences of their own lengths: which rows they have. Outputs are never in pages. */
static fa_status find_rows(fa_expected *e, bool keys)
{
    const fa_sequences *s = e->call.sequences;
    int64_t rows = e->rows[keys] = rows_in_all(e, keys), used = 0;
    if (!s || (keys && s->key))
        return FA_OK;
    uint8_t *row = e->row_used[keys] = calloc((size_t)rows + 1, 1);
    if (!row)
        return fa_fail(FA_NOMEM, "no memory for %lld rows", (long long)rows);
    for (int32_t i = 0; i < s->b; i++)
        memset(row + (keys ? s->of[i].k : s->of[i].q), 1, (size_t)(keys ? s->of[i].nk : s->of[i].nq));
    for (int64_t i = 0; i < rows; i++)
        used += row[i];
    e->rows[keys] = used;
    return FA_OK;
}

fa_status fa_expected_open(fa_expected *e, const fa_reference_call *c)
{
    *e = (fa_expected){ .call = *c, .row = fa_reference_find(c->problem.op), .sizes = fa_sizes_of(&c->problem, 0), .rounding_factor = 1 };
    if (!e->row)
        return fa_fail(FA_UNSUPPORTED, "no reference computes the operation %s", c->op->name);
    if (c->sequences)
        e->sizes = c->sequences->sizes;
    fa_status st = find_rows(e, false);
    if (st == FA_OK)
        st = find_rows(e, true);
    for (int i = 0; i < c->op->n && st == FA_OK; i++) {
        fa_operand_title(e->title[i], &c->op->operand[i]);
        if (!c->op->operand[i].output)
            continue;
        e->n[i] = elements(e, i);
        e->out[i] = malloc(((size_t)e->n[i] + 1) * sizeof *e->out[i]);
        if (!e->out[i])
            st = fa_fail(FA_NOMEM, "no memory for %lld reference values", (long long)e->n[i]);
        for (int64_t k = 0; st == FA_OK && c->sequences && k < e->n[i]; k++)
            e->out[i][k] = NAN;
    }
    if (st != FA_OK)
        fa_expected_close(e);
    return st;
}

void fa_expected_close(fa_expected *e)
{
    for (int i = 0; i < FA_OPERANDS_MAX; i++) {
        free(e->out[i]);
        free(e->bound[i]);
        free(e->also[i]);
        e->out[i] = e->bound[i] = e->also[i] = NULL;
    }
    for (int i = 0; i < 2; i++) {
        free(e->row_used[i]);
        e->row_used[i] = NULL;
    }
}

fa_status fa_expected_exact(fa_expected *e)
{
    return e->row->exact(&e->call, e->out);
}

static bool is_rows(const fa_operand *o)
{
    return o->output && !o->strided;
}

/* Packed outputs of what the matrix units make of their inputs: TF32 rounds them before anything is added up, sums of 8 bits are cut. */
static fa_status rows_of_rounded(fa_expected *e)
{
    fa_reference_call c = e->call;
    c.eight = fa_problem_eight(&c.problem) && c.problem.dtype != FA_S8 ? c.problem.dtype : 0; /* sums of integers are exact */
    float *in[FA_OPERANDS_MAX] = { NULL };
    double *out[FA_OPERANDS_MAX] = { NULL };
    fa_status st = FA_OK;
    for (int i = 0; i < c.op->n && st == FA_OK; i++) {
        const fa_operand *o = &c.op->operand[i];
        int64_t n = elements(e, i);
        if (is_rows(o)) {
            out[i] = e->out[i];
            if (c.eight && (e->also[i] = malloc(((size_t)n + 1) * sizeof *out[i])))
                memcpy(e->also[i], out[i], (size_t)n * sizeof *out[i]);
        } else if (o->output) {
            out[i] = malloc(((size_t)n + 1) * sizeof *out[i]); /* not looked at */
        } else if (o->strided && c.in[i] && fa_operand_dtype(o, &c.problem) == FA_TF32) {
            in[i] = malloc(((size_t)n + 1) * sizeof *in[i]);
            for (int64_t k = 0; k < n && in[i]; k++)
                in[i][k] = fa_number_to_tf32(c.in[i][k]);
            c.in[i] = in[i];
        }
        if (o->output ? !out[i] || (is_rows(o) && c.eight && !e->also[i]) : e->call.in[i] && !c.in[i])
            st = fa_fail(FA_NOMEM, "no memory for %lld rounded values", (long long)n);
    }
    if (st == FA_OK)
        st = e->row->exact(&c, out);
    for (int i = 0; i < c.op->n; i++) {
        free(in[i]);
        if (out[i] != e->out[i])
            free(out[i]);
    }
    return st;
}

static fa_status naive_errors(fa_expected *e)
{
    const fa_operation *op = e->call.op;
    float *out[FA_OPERANDS_MAX] = { NULL };
    fa_status st = FA_OK;
    for (int i = 0; i < op->n && st == FA_OK; i++) {
        if (!op->operand[i].output || !op->operand[i].strided)
            continue;
        out[i] = malloc(((size_t)e->n[i] + 1) * sizeof *out[i]);
        if (!out[i])
            st = fa_fail(FA_NOMEM, "no memory for %lld values of the naive algorithm", (long long)e->n[i]);
        for (int64_t k = 0; st == FA_OK && e->call.sequences && k < e->n[i]; k++)
            out[i][k] = NAN;
    }
    if (st == FA_OK)
        st = e->row->naive(&e->call, out, &e->rounding_factor);
    for (int i = 0; i < op->n; i++) {
        if (st == FA_OK && out[i])
            e->naive[i] = fa_rule_errors(out[i], e->out[i], e->n[i], false);
        free(out[i]);
    }
    return st;
}

static fa_terms terms_of(const double *x, int64_t n)
{
    fa_terms t = { 0, 0 };
    int64_t finite = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(x[i])) {
            t.most = fmax(t.most, x[i]);
            t.mean += x[i];
            finite++;
        }
    t.mean /= finite ? (double)finite : 1;
    return t;
}

static fa_status find_terms(fa_expected *e)
{
    const fa_operation *op = e->call.op;
    double *out[FA_OPERANDS_MAX] = { NULL };
    fa_status st = FA_OK;
    for (int i = 0; i < op->n && st == FA_OK; i++) {
        if (!op->operand[i].output)
            continue;
        out[i] = malloc(((size_t)e->n[i] + 1) * sizeof *out[i]);
        if (!out[i])
            st = fa_fail(FA_NOMEM, "no memory for the terms of %lld values", (long long)e->n[i]);
        for (int64_t k = 0; st == FA_OK && k < e->n[i]; k++)
            out[i][k] = NAN;
    }
    if (st == FA_OK)
        st = e->row->terms(&e->call, out);
    for (int i = 0; i < op->n; i++) {
        if (st == FA_OK && out[i])
            e->terms[i] = terms_of(out[i], e->n[i]);
        free(out[i]);
    }
    return st;
}

static fa_status find_bounds(fa_expected *e)
{
    const fa_operation *op = e->call.op;
    if (!e->row->bounds)
        return fa_fail(FA_UNSUPPORTED, "no reference has bounds of the operation %s", op->name);
    for (int i = 0; i < op->n; i++) {
        if (!op->operand[i].output)
            continue;
        e->bound[i] = calloc((size_t)e->n[i] + 1, sizeof *e->bound[i]);
        if (!e->bound[i])
            return fa_fail(FA_NOMEM, "no memory for the bounds of %lld values", (long long)e->n[i]);
    }
    return e->row->bounds(&e->call, e->bound);
}

/* "index 2 of rel is 34 of 32 at batch 0, head 1, query 5, key 90". */
static fa_status find_outside(fa_expected *e)
{
    fa_outside at = { .operand = -1 };
    if (!e->row->outside || !e->call.score || !e->call.score->program)
        return FA_OK;
    fa_status st = e->row->outside(&e->call, &at);
    if (st == FA_OK && at.operand >= 0)
        snprintf(e->outside, sizeof e->outside, "index %d of %.32s is %lld of %lld at batch %lld, head %lld, query %lld, key %lld",
                 (int)at.which + 1, e->call.score->program->ir.operand[at.operand].name, (long long)at.index, (long long)at.extent,
                 (long long)at.b, (long long)at.h, (long long)at.i, (long long)at.j);
    return st;
}

fa_status fa_expected_finish(fa_expected *e)
{
    const fa_operation *op = e->call.op;
    if (e->call.bounds)
        return find_bounds(e);
    bool rows = false, matrix = e->call.problem.dtype == FA_TF32 || fa_problem_eight(&e->call.problem);
    for (int i = 0; i < op->n; i++)
        rows = rows || is_rows(&op->operand[i]);
    fa_status st = rows && matrix ? rows_of_rounded(e) : FA_OK;
    if (st == FA_OK)
        st = naive_errors(e);
    if (st == FA_OK && e->row->terms)
        st = find_terms(e);
    e->approximate = 0;
    if (st == FA_OK && e->row->approximate)
        st = e->row->approximate(&e->call, &e->approximate);
    if (st == FA_OK)
        st = find_outside(e);
    int scores = e->row->scores ? fa_operand_index(op, e->row->scores) : -1;
    e->score = 0;
    for (int64_t k = 0, n = scores >= 0 ? elements(e, scores) : 0; k < n; k++) {
        double x = op->operand[scores].output ? e->out[scores][k] : (double)e->call.in[scores][k];
        if (isfinite(x))
            e->score = fmax(e->score, fabs(x));
    }
    return st;
}

/* ---- judging ---- */

void fa_expected_place(const fa_expected *e, int operand, int64_t at, fa_verdict *v)
{
    const fa_operand *o = &e->call.op->operand[operand];
    const char *row_name = fa_operand_has_keys(o) ? "key" : "query";
    fa_dims d;
    fa_operand_dims(&d, o, &e->sizes);
    size_t n = strlen(v->text);
    int64_t row = at / d.of[3];
    if (o->strided)
        snprintf(v->text + n, sizeof v->text - n, " (batch %lld, %s %lld, head %lld, column %lld)", (long long)(row / d.of[2] / d.of[1]),
                 row_name, (long long)(row / d.of[2] % d.of[1]), (long long)(row % d.of[2]), (long long)(at % d.of[3]));
    else
        snprintf(v->text + n, sizeof v->text - n, " (batch %lld, %s %lld, head %lld)", (long long)(at / d.of[2] / d.of[1]), row_name,
                 (long long)(at % d.of[2]), (long long)(at / d.of[2] % d.of[1]));
}

/* The next output of a kind from *at on that was asked for; -1 = none. */
static int next_output(const fa_expected *e, const float *const got[], bool strided, int *at)
{
    for (; *at < e->call.op->n; ++*at)
        if (got[*at] && e->call.op->operand[*at].output && e->call.op->operand[*at].strided == strided)
            return (*at)++;
    return -1;
}

/* Of packed rows, each held against the nearer of what it may be. */
static fa_errors rows_errors(const fa_expected *e, const float *got, int i)
{
    fa_errors all = { .at = -1, .odd = -1 };
    if (!e->also[i])
        return fa_rule_errors(got, e->out[i], e->n[i], true);
    for (int64_t k = 0; k < e->n[i]; k++) {
        fa_errors one = fa_rule_errors(&got[k], &e->out[i][k], 1, true), other = fa_rule_errors(&got[k], &e->also[i][k], 1, true);
        if (other.odd < 0 && (one.odd >= 0 || other.most < one.most))
            one = other;
        if (one.odd >= 0 && all.odd < 0)
            all.odd = k, all.odd_x = one.odd_x, all.odd_reference = one.odd_reference;
        if (one.at >= 0 && (all.at < 0 || one.most > all.most))
            all.most = one.most, all.at = k, all.x = one.x, all.reference = one.reference;
        all.mean += one.mean / (double)e->n[i];
    }
    return all;
}

/* One strided output and one of packed rows; -1 = none left. */
static bool judge_pair(const fa_expected *e, const float *const got[], int o, int rows, fa_verdict *v)
{
    fa_magnitudes s = { .rows = 1, .o_dtype = FA_F32 };
    *v = (fa_verdict){ .bits = v->bits, .o = { .at = -1, .odd = -1 }, .lse = { .at = -1, .odd = -1 } };
    memcpy(v->outside, e->outside, sizeof v->outside);
    if (o >= 0) {
        const fa_operand *row = &e->call.op->operand[o];
        int64_t width = e->sizes.of[row->extent[3]], all = e->n[o] / width;
        v->o = fa_rule_errors(got[o], e->out[o], e->n[o], false);
        v->naive = e->naive[o];
        s = fa_rule_scale(e->out[o], e->n[o], NULL, 0, fa_operand_dtype(row, &e->call.problem), false);
        bool keys = fa_operand_has_keys(row);
        if (e->row_used[keys] && e->rows[keys]) { /* of those that are written */
            double share = (double)e->rows[keys] / (double)rows_in_all(e, keys);
            s.mean /= share;
            s.n = (int64_t)((double)s.n * share + 0.5);
            all = (int64_t)((double)all * share + 0.5);
        }
        s.rows = all > 0 ? all : 1;
        s.o_name = e->title[o];
        s.terms = e->terms[o];
    }
    if (rows >= 0) {
        v->lse = rows_errors(e, got[rows], rows);
        s.lse = true;
        s.lse_name = e->title[rows];
    }
    s.score = e->score;
    s.approximate = e->approximate;
    s.rounding_factor = e->rounding_factor;
    s.times = e->row->times;
    fa_rule_judge(v, &s);
    if (v->at >= 0)
        fa_expected_place(e, o >= 0 && (v->o.odd >= 0 || !(v->o.most <= v->most)) ? o : rows, v->at, v);
    return v->ok;
}

/* Output by output, the first that breaks its bounds; else the one that comes nearest. */
static bool judge_bounds(const fa_expected *e, const float *const got[FA_OPERANDS_MAX], fa_verdict *v)
{
    fa_verdict one = { .bits = v->bits };
    bool first = true;
    for (int i = 0; i < e->call.op->n; i++) {
        const fa_operand *o = &e->call.op->operand[i];
        if (!o->output || !got[i])
            continue;
        fa_rule_bounded(&one, &(fa_bounded){ got[i], e->out[i], e->bound[i], e->n[i], fa_operand_dtype(o, &e->call.problem), !o->strided,
                                             e->title[i] });
        if (!one.ok && one.at >= 0)
            fa_expected_place(e, i, one.at, &one);
        if (first || !one.ok || one.o.most * v->most > v->o.most * one.most)
            *v = one;
        first = false;
        if (!v->ok)
            return false;
    }
    return !first;
}

bool fa_expected_judge(const fa_expected *e, const float *const got[FA_OPERANDS_MAX], fa_verdict *v)
{
    if (e->call.bounds)
        return judge_bounds(e, got, v);
    fa_verdict one = { .bits = v->bits };
    int at_o = 0, at_rows = 0;
    for (bool first = true;; first = false) {
        int o = next_output(e, got, true, &at_o), rows = next_output(e, got, false, &at_rows);
        if (o < 0 && rows < 0)
            return !first && v->ok;
        if (!judge_pair(e, got, o, rows, &one) || first || one.o.most * v->most > v->o.most * one.most)
            *v = one;
        if (!v->ok)
            return false;
    }
}
