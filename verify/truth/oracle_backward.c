/* oracle_backward: the gradients of attention on the CPU. */
#include "oracle_backward.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "gen/score/derive.h"
#include "oracle_threads.h"
#include "sim/sim.h"
#include "verify/operands/number.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct job {
    const fa_backward *a;
    bool terms;           /* of exact: every term by its absolute value */
    bool bounds;          /* dq, dk and dv become how far a kernel may be from the exact ones */
    double *dq, *dk, *dv; /* exact */
    float *naive_dq, *naive_dk, *naive_dv;
    int dtype, o_dtype, grad_dtype;
    fa_score_ir *ir; /* of a program, with the derivative of its score by the product, bend; NULL: there is none */
    int bend;
    _Atomic int64_t next; /* of b * hkv units: a sequence's key/value head with its group */
    atomic_bool oom;
} job;

/* One row of queries with what it sees. */
typedef struct row {
    int64_t q, lse; /* row of [rows, hq] tensors; index of LSE */
    int64_t k;      /* the sequence's first row of [rows, hkv] tensors, times hkv, plus the head */
    int64_t first, last;
    int64_t head, query;   /* b hq + h; in its sequence */
    fa_score_data program; /* of its sequence; where there is one */
} row;

/* A score, and what it changes by with its product; of a pair that the program's mask hides -inf and 0. */
typedef struct score {
    double value, bend;
} score;

static score scored(const job *j, const row *r, double tanh_off, int64_t key, double s)
{
    double value[FA_SCORE_ROOM];
    int root = j->ir ? j->ir->root[FA_SCORE_ROOT_SCORE] : -1, mask = j->ir ? j->ir->root[FA_SCORE_ROOT_MASK] : -1;
    if (root < 0 && mask < 0)
        return (score){ s, 1 };
    fa_score_data data = r->program;
    data.tanh_off = tanh_off;
    fa_score_pair pair = { r->head / j->a->of.hq, r->head % j->a->of.hq, r->query, key, s };
    if (mask >= 0 && fa_score_eval(j->ir, mask, &data, &pair, value) == 0)
        return (score){ -INFINITY, 0 };
    if (root < 0)
        return (score){ s, 1 };
    fa_score_eval(j->ir, j->bend > root ? j->bend : root, &data, &pair, value);
    return (score){ value[root], value[j->bend] };
}

/* -inf where there is none. */
static double sink_of(const job *j, const row *r)
{
    double value[FA_SCORE_ROOM];
    int root = j->ir ? j->ir->root[FA_SCORE_ROOT_SINK] : -1;
    fa_score_pair pair = { r->head / j->a->of.hq, r->head % j->a->of.hq, r->query, 0, 0 };
    return root < 0 ? -INFINITY : fa_score_eval(j->ir, root, &r->program, &pair, value);
}

static const float *at(const float *x, int64_t index, int32_t width)
{
    return x + index * width;
}

static double dot(const float *x, const float *y, int32_t n, bool terms)
{
    double sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += terms ? fabs((double)x[i] * y[i]) : (double)x[i] * y[i];
    return sum;
}

static double sized(double x, bool terms)
{
    return terms ? fabs(x) : x;
}

/* p: room for the probabilities of a row, and for the derivatives of its scores; o: of dv. */
static void exact_row(const job *j, const row *r, double *p, double *o)
{
    const fa_backward *b = j->a;
    const fa_attention *a = &b->of;
    const float *q = at(a->q, r->q, a->d), *grad_o = at(b->grad_o, r->q, a->dv);
    double sink = sink_of(j, r), m = sink, l = 0, delta = 0, *dq = j->dq + r->q * a->d, *bend = p + a->sk + 1;
    for (int64_t key = r->first; key <= r->last; key++) {
        score s = scored(j, r, 0, key, dot(q, at(a->k, r->k + key * a->hkv, a->d), a->d, false) * (double)a->scale);
        p[key] = s.value;
        bend[key] = s.bend;
        m = fmax(m, p[key]);
    }
    for (int64_t key = r->first; key <= r->last; key++)
        l += p[key] = p[key] == -INFINITY ? 0 : exp(p[key] - m);
    l += sink == -INFINITY ? 0 : exp(sink - m);
    for (int32_t i = 0; i < a->dv; i++)
        o[i] = 0;
    for (int64_t key = r->first; key <= r->last; key++) {
        p[key] /= l > 0 ? l : 1;
        double kept = p[key] * fa_pairs_kept(a->dropout, r->head, r->query, key);
        for (int32_t i = 0; i < a->dv; i++)
            o[i] += kept * at(a->v, r->k + key * a->hkv, a->dv)[i];
    }
    for (int32_t i = 0; i < a->dv; i++)
        delta += sized(grad_o[i] * o[i], j->terms);
    if (b->grad_lse)
        delta -= j->terms ? -fabs(b->grad_lse[r->lse]) : (double)b->grad_lse[r->lse];
    for (int32_t i = 0; i < a->d; i++)
        dq[i] = 0;
    for (int64_t key = r->first; key <= r->last; key++) {
        int64_t to = r->k + key * a->hkv;
        const float *k = at(a->k, to, a->d);
        double kept = fa_pairs_kept(a->dropout, r->head, r->query, key), dp = kept * dot(grad_o, at(a->v, to, a->dv), a->dv, j->terms);
        double ds = (double)a->scale * p[key] * (j->terms ? dp + delta : dp - delta) * bend[key];
        for (int32_t i = 0; i < a->d; i++) {
            dq[i] += sized(ds * k[i], j->terms);
            j->dk[to * a->d + i] += sized(ds * q[i], j->terms);
        }
        for (int32_t i = 0; i < a->dv; i++)
            j->dv[to * a->dv + i] += sized(kept * p[key] * grad_o[i], j->terms);
    }
}

/* What a sum of n terms, all of whose sizes add up to x, loses in fp32. */
static double sum_error(double x, int64_t n)
{
    return (double)(n + 16) * 0x1p-23 * x;
}

static double not_finite(const float *x, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return INFINITY;
    return 0;
}

/* One term of a gradient: its size, by how much the factor before `by` may be off, over n terms like it. */
static double term_error(const job *j, double size, double error, double by, int64_t n)
{
    double x = fabs(by);
    return isinf(error) ? error
           : x == 0     ? 0
                        : error * x + sum_error((size + error) * x, n) + 1.01 * fa_number_rounding((size + error) * x, j->grad_dtype);
}

/* What is no number, or perhaps beyond fp32, of what a row computes: 0, INFINITY, or NAN where all that comes of it is NaN. */
typedef struct beyond {
    double p; /* its P, and so all gradients */
    double v; /* V, O or dLSE alone, and so dQ and dK */
} beyond;

static beyond row_beyond(const job *j, const row *r)
{
    const fa_backward *b = j->a;
    const fa_attention *a = &b->of;
    float lse = b->lse[r->lse];
    double scores = isfinite(lse) ? 0 : lse == -INFINITY ? INFINITY : NAN, v = not_finite(at(b->o, r->q, a->dv), a->dv);
    scores += not_finite(at(b->grad_o, r->q, a->dv), a->dv);
    for (int64_t key = r->first; key <= r->last; key++) {
        fa_dot s = fa_oracle_score(at(a->q, r->q, a->d), at(a->k, r->k + key * a->hkv, a->d), a->d, a->scale);
        scores += isnan(s.beyond) || s.beyond != 0 || s.beyond_scaled != 0 ? INFINITY : 0;
        v += not_finite(at(a->v, r->k + key * a->hkv, a->dv), a->dv);
    }
    v += b->grad_lse ? not_finite(b->grad_lse + r->lse, 1) : 0;
    return (beyond){ scores, v };
}

/* Adds what the row is beyond to *all. */
static void bounds_row(const job *j, const row *r, beyond *all)
{
    const fa_backward *b = j->a;
    const fa_attention *a = &b->of;
    const float *q = at(a->q, r->q, a->d), *grad_o = at(b->grad_o, r->q, a->dv), *o = at(b->o, r->q, a->dv);
    double lse = b->lse[r->lse], delta = 0, delta_size = 0, *dq = j->dq + r->q * a->d, scale = (double)a->scale;
    int64_t n = r->last - r->first + 1, rows = (int64_t)a->sq * (a->hq / a->hkv);
    for (int32_t i = 0; i < a->d; i++)
        dq[i] = 0;
    if (n <= 0)
        return;
    beyond odd = row_beyond(j, r);
    all->p += odd.p;
    all->v += odd.v;
    double ds_odd = odd.p + odd.v;
    for (int32_t i = 0; i < a->dv; i++) {
        delta += (double)grad_o[i] * o[i];
        delta_size += fabs((double)grad_o[i] * o[i]);
    }
    delta -= b->grad_lse ? (double)b->grad_lse[r->lse] : 0;
    delta_size += b->grad_lse ? fabs((double)b->grad_lse[r->lse]) : 0;
    double delta_error = fa_number_rounding(delta_size, j->o_dtype) + sum_error(delta_size, a->dv);
    for (int64_t key = r->first; key <= r->last; key++) {
        int64_t to = r->k + key * a->hkv;
        const float *k = at(a->k, to, a->d), *v = at(a->v, to, a->dv);
        double kept = fa_pairs_kept(a->dropout, r->head, r->query, key), dp = kept * dot(grad_o, v, a->dv, false);
        double dp_error = sum_error(kept * dot(grad_o, v, a->dv, true), a->dv);
        fa_dot s = fa_oracle_score(q, k, a->d, a->scale);
        double log_p = s.value - lse, error = fa_oracle_score_error(&s, a->d, lse), of = fmin(1, exp(log_p));
        double p_error = fmin(1, exp(log_p + error)) - fmin(1, exp(log_p - error)) + FA_LEAST_P; /* the exact P lies in between, too */
        double ds = of * fabs(dp - delta), ds_error = p_error * fabs(dp - delta) + (of + p_error) * (dp_error + delta_error);
        ds_error += j->dtype == FA_F32 ? sum_error(ds + ds_error, 1) : 1.01 * fa_number_rounding(ds + ds_error, j->dtype);
        p_error += j->dtype == FA_F32 ? 0 : 1.01 * fa_number_rounding(of + p_error, j->dtype);
        if (j->dtype == FA_F16 && ds + ds_error > 65000)
            ds_error = INFINITY;
        for (int32_t i = 0; i < a->d; i++) {
            dq[i] += ds_odd != 0 ? ds_odd : term_error(j, ds * scale, ds_error * scale, k[i], n);
            j->dk[to * a->d + i] += ds_odd != 0 ? ds_odd : term_error(j, ds * scale, ds_error * scale, q[i], rows);
        }
        for (int32_t i = 0; i < a->dv; i++)
            j->dv[to * a->dv + i] += odd.p != 0 ? odd.p : term_error(j, kept * of, kept * p_error, grad_o[i], rows);
    }
}

/* To the gradients of a key, or of a query, whose head has a row that is beyond: they share tiles, where 0 times NaN is NaN. */
static void spread(double *to, int64_t index, int32_t width, double odd)
{
    for (int32_t i = 0; i < width && odd != 0; i++)
        to[index * width + i] += INFINITY;
}

static float dot_naive(const float *x, const float *y, int32_t n)
{
    float sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* The gradients of keys are added up in fp32, row after row. */
static void naive_row(const job *j, const row *r)
{
    const fa_backward *b = j->a;
    const fa_attention *a = &b->of;
    const float *q = at(a->q, r->q, a->d), *grad_o = at(b->grad_o, r->q, a->dv);
    float *dq = j->naive_dq + r->q * a->d, lse = b->lse[r->lse];
    float delta = dot_naive(grad_o, at(b->o, r->q, a->dv), a->dv) - (b->grad_lse ? b->grad_lse[r->lse] : 0);
    for (int32_t i = 0; i < a->d; i++)
        dq[i] = 0;
    for (int64_t key = r->first; key <= r->last; key++) {
        int64_t to = r->k + key * a->hkv;
        const float *k = at(a->k, to, a->d);
        score of = scored(j, r,
                          !a->approximate ? 0
                          : key & 1       ? FA_TANH_OFF
                                          : -FA_TANH_OFF,
                          key, (double)(dot_naive(q, k, a->d) * a->scale));
        float s = of.value == -INFINITY ? -INFINITY : fa_number_round_finite((float)of.value, j->dtype);
        float p = s == -INFINITY ? 0 : fa_number_round_finite(expf(s > lse ? 0 : s - lse), j->dtype); /* NaN stays */
        float kept = (float)fa_pairs_kept(a->dropout, r->head, r->query, key);
        float dp = fa_number_round_finite(kept * dot_naive(grad_o, at(a->v, to, a->dv), a->dv), j->dtype);
        float ds = fa_number_round_finite(p * (dp - delta), j->dtype);
        ds = j->ir ? fa_number_round_finite(ds * (float)of.bend, j->dtype) : ds;
        for (int32_t i = 0; i < a->d; i++) {
            dq[i] += ds * k[i];
            j->naive_dk[to * a->d + i] += ds * q[i];
        }
        p = fa_number_round_finite(kept * p, j->dtype);
        for (int32_t i = 0; i < a->dv; i++)
            j->naive_dv[to * a->dv + i] += p * grad_o[i];
    }
    for (int32_t i = 0; i < a->d; i++)
        dq[i] = fa_number_round(dq[i] * a->scale, j->grad_dtype);
}

/* Before the first query of the group, and after the last. */
static void key_gradients(const job *j, int64_t to, bool done)
{
    const fa_attention *a = &j->a->of;
    for (int32_t i = 0; i < a->d; i++)
        if (!j->naive_dk)
            j->dk[to * a->d + i] = 0;
        else
            j->naive_dk[to * a->d + i] = done ? fa_number_round(j->naive_dk[to * a->d + i] * a->scale, j->grad_dtype) : 0;
    for (int32_t i = 0; i < a->dv; i++)
        if (!j->naive_dv)
            j->dv[to * a->dv + i] = 0;
        else
            j->naive_dv[to * a->dv + i] = done ? fa_number_round(j->naive_dv[to * a->dv + i], j->grad_dtype) : 0;
}

/* All queries of a sequence in the group of a key/value head. */
static void run_unit(const job *j, int64_t b, int64_t kv, double *p, double *o)
{
    const fa_attention *a = &j->a->of;
    const fa_sequences *s = a->sequences;
    fa_sequence of = s ? s->of[b] : (fa_sequence){ b * a->sq, b * a->sk, a->sq, a->sk, { a->lo, a->hi } };
    int64_t rows = s ? s->sizes.of[FA_EXTENT_ROWS_Q] : a->sq, group = a->hq / a->hkv;
    fa_pairs pairs = fa_sequence_pairs(&of);
    beyond odd = { 0, 0 };
    for (int64_t key = 0; key < of.nk; key++)
        key_gradients(j, (of.k + key) * a->hkv + kv, false);
    for (int64_t h = kv * group; h < (kv + 1) * group; h++)
        for (int64_t i = 0; i < of.nq && !sim_interrupted(); i++) {
            fa_range seen = fa_pairs_keys(&pairs, (fa_range){ i, i });
            int64_t query = of.q + i;
            row r = { .q = query * a->hq + h,
                      .lse = (query / rows * a->hq + h) * rows + query % rows,
                      .k = of.k * a->hkv + kv,
                      .first = seen.first,
                      .last = seen.last,
                      .head = b * a->hq + h,
                      .query = i };
            if (a->program) {
                r.program = *a->program;
                r.program.sq = of.nq;
                r.program.sk = of.nk;
                r.program.off = a->relative ? of.nk - of.nq : a->off;
            }
            if (j->naive_dq)
                naive_row(j, &r);
            else if (j->bounds)
                bounds_row(j, &r, &odd);
            else
                exact_row(j, &r, p, o);
        }
    for (int64_t key = 0; key < of.nk && j->bounds; key++) {
        spread(j->dk, (of.k + key) * a->hkv + kv, a->d, odd.p + odd.v);
        spread(j->dv, (of.k + key) * a->hkv + kv, a->dv, odd.p);
    }
    for (int64_t i = 0; i < of.nq * group && j->bounds; i++)
        spread(j->dq, (of.q + i / group) * a->hq + kv * group + i % group, a->d, odd.v); /* which keys share with all queries */
    for (int64_t key = 0; key < of.nk && j->naive_dk; key++)
        key_gradients(j, (of.k + key) * a->hkv + kv, true);
}

static void *work(void *user)
{
    job *j = user;
    const fa_attention *a = &j->a->of;
    double *p = malloc(2 * ((size_t)a->sk + 1) * sizeof *p), o[FA_MAX_HEAD_DIM];
    if (!p)
        atomic_store(&j->oom, true);
    for (int64_t unit; p && !sim_interrupted() && (unit = atomic_fetch_add(&j->next, 1)) < (int64_t)a->b * a->hkv;)
        run_unit(j, unit / a->hkv, unit % a->hkv, p, o);
    free(p);
    return NULL;
}

/* The program with its derivative, into j->ir. */
static fa_status derive(job *j)
{
    const fa_attention *a = &j->a->of;
    if (!a->program)
        return FA_OK;
    j->ir = malloc(sizeof *j->ir);
    if (!j->ir)
        return fa_fail(FA_NOMEM, "no memory for a score program's derivative");
    *j->ir = *a->ir;
    if (j->ir->root[FA_SCORE_ROOT_SCORE] >= 0)
        j->bend = fa_score_derive(j->ir, j->ir->root[FA_SCORE_ROOT_SCORE], fa_score_ir_leaf(j->ir, FA_SCORE_S));
    return j->bend < 0 ? fa_fail(FA_UNSUPPORTED, "the oracle has no room for the score program's derivative") : FA_OK;
}

static fa_status run_threads(job *j)
{
    const fa_attention *a = &j->a->of;
    if (a->score)
        return fa_fail(FA_UNSUPPORTED, "the oracle has no gradients of scores that operands change");
    return fa_oracle_threads(work, j, a, (int64_t)a->b * a->hq * a->sq, &j->oom);
}

static fa_status run(job *j)
{
    fa_status st = derive(j);
    if (st == FA_OK)
        st = run_threads(j);
    free(j->ir);
    j->ir = NULL;
    return st;
}

fa_status fa_backward_exact(const fa_backward *a, double *dq, double *dk, double *dv)
{
    job j = { .a = a, .dq = dq, .dk = dk, .dv = dv };
    return run(&j);
}

fa_status fa_backward_terms(const fa_backward *a, double *dq, double *dk, double *dv)
{
    job j = { .a = a, .terms = true, .dq = dq, .dk = dk, .dv = dv };
    return run(&j);
}

fa_status fa_backward_bounds(const fa_backward *a, int dtype, int o_dtype, int grad_dtype, double *dq, double *dk, double *dv)
{
    if (a->of.program)
        return fa_fail(FA_UNSUPPORTED, "the oracle has no bounds of gradients of scores that a program computes");
    job j = { .a = a, .bounds = true, .dq = dq, .dk = dk, .dv = dv, .dtype = dtype, .o_dtype = o_dtype, .grad_dtype = grad_dtype };
    return run(&j);
}

fa_status fa_backward_naive(const fa_backward *a, int dtype, int grad_dtype, float *dq, float *dk, float *dv)
{
    job j = { .a = a, .naive_dq = dq, .naive_dk = dk, .naive_dv = dv, .dtype = dtype, .grad_dtype = grad_dtype };
    return run(&j);
}
