/* oracle: attention on the CPU. */
#include "oracle.h"
#include "gen/error.h"
#include "gen/operation.h"
#include "gen/problem.h"
#include "oracle_threads.h"
#include "sim/sim.h"
#include "verify/operands/number.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define HIDDEN 0x1p1000       /* in the place of a score */
#define BEYOND 0x1.fffffep127 /* the largest number of fp32 */

typedef struct job {
    const fa_attention *a;
    double *o, *lse; /* exact */
    float *naive;
    bool tanh; /* `most` becomes what an approximate one changes scores by */
    double most;
    fa_outside *outside; /* it is looked for, nothing else */
    int64_t outside_row; /* of the first that was found */
    bool bounds;         /* o and lse become how far a kernel may be from the exact ones */
    int dtype, o_dtype;
    double p2,
        step2; /* of naive's P: the sum of squares, and that of the distance to the next value in units of the coarsest for P's size */
    pthread_mutex_t sums;
    int64_t rows; /* b * hq * sq */
    _Atomic int64_t next;
    atomic_bool oom;
} job;

/* One row of queries: where its operands lie. */
typedef struct operands {
    const float *q;
    int64_t b, kv, out, lse, first, last; /* last < first: sees nothing */
    int64_t head, query, row;             /* b hq + h; in its sequence; its row of a tensor of queries */
    fa_score_data program;                /* of its sequence; where there is one */
} operands;

const float *fa_attention_input(const fa_attention *a, const char *name)
{
    int i = a->op ? fa_operand_index(a->op, name) : -1;
    return i < 0 ? NULL : a->in[i];
}

/* A root of the program; key -1: of the row. */
static double program_value(const fa_attention *a, fa_score_root root, const operands *at, int64_t key, double score)
{
    double value[FA_SCORE_ROOM];
    fa_score_pair pair = { at->b, at->head % a->hq, at->query, key, score };
    return fa_score_eval(a->ir, a->ir->root[root], &at->program, &pair, value);
}

static bool has_root(const fa_attention *a, fa_score_root root)
{
    return a->program && a->ir->root[root] >= 0;
}

/* Of a key that the mask of the launch leaves: whether the program's leaves it, too. */
static bool seen(const fa_attention *a, const operands *at, int64_t key)
{
    return !has_root(a, FA_SCORE_ROOT_MASK) || program_value(a, FA_SCORE_ROOT_MASK, at, key, 0) != 0;
}

/* -inf where there is none. */
static double sink_of(const fa_attention *a, const operands *at)
{
    return has_root(a, FA_SCORE_ROOT_SINK) ? program_value(a, FA_SCORE_ROOT_SINK, at, 0, 0) : -INFINITY;
}

static double scored(const fa_attention *a, double score, const operands *at, int64_t key)
{
    if (has_root(a, FA_SCORE_ROOT_SCORE))
        return program_value(a, FA_SCORE_ROOT_SCORE, at, key, score);
    return a->score ? a->score(a, score, at->head, at->query, key) : score;
}

/* False: the sequence has fewer queries. */
static bool find_operands(operands *out, const fa_attention *a, int64_t number)
{
    const fa_sequences *s = a->sequences;
    int64_t i = number % a->sq, h = number / a->sq % a->hq, b = number / a->sq / a->hq;
    fa_sequence of = s ? s->of[b] : (fa_sequence){ b * a->sq, b * a->sk, a->sq, a->sk, { a->lo, a->hi } };
    fa_pairs pairs = fa_sequence_pairs(&of);
    fa_range seen = fa_pairs_keys(&pairs, (fa_range){ i, i });
    int64_t row = of.q + i, rows = s ? s->sizes.of[FA_EXTENT_ROWS_Q] : a->sq;
    *out = (operands){
        .q = a->q + (row * a->hq + h) * a->d,
        .b = b,
        .kv = h / (a->hq / a->hkv),
        .out = (row * a->hq + h) * a->dv,
        .lse = (row / rows * a->hq + h) * rows + row % rows,
        .first = seen.first,
        .last = seen.last,
        .head = b * a->hq + h,
        .row = row * a->hq + h,
        .query = i,
    };
    if (a->program) {
        out->program = *a->program;
        out->program.sq = of.nq;
        out->program.sk = of.nk;
        out->program.off = a->relative ? of.nk - of.nq : a->off;
    }
    return i < of.nq;
}

/* A key's row of K or V. */
static const float *key_row(const fa_attention *a, const operands *at, const float *x, int32_t width, int64_t key)
{
    static const float zeros[FA_MAX_HEAD_DIM];
    int64_t row = a->sequences ? fa_sequences_key(a->sequences, (int32_t)at->b, key) : at->b * a->sk + key;
    return row < 0 ? zeros : x + (row * a->hkv + at->kv) * width;
}

static const float *v_row(const fa_attention *a, const operands *at, int64_t key)
{
    return key_row(a, at, a->v, a->v_row ? a->v_row : a->dv, key);
}

/* What the key's row is multiplied by. */
static double scale_of_row(const fa_attention *a, const operands *at, const float *scale, bool tokens, int64_t key)
{
    if (!scale)
        return 1;
    int64_t row = !tokens ? at->b : a->sequences ? fa_sequences_key(a->sequences, (int32_t)at->b, key) : at->b * a->sk + key;
    return row < 0 ? 1 : (double)scale[row * a->hkv + at->kv];
}

#define RAISED 256.f /* what P of 8 bits is multiplied by before it is rounded */

/* The exponent by which a number of 8 bits is aligned. */
static int exponent_of(float x, int32_t dtype)
{
    int least = dtype == FA_E5M2 ? -14 : -6;
    return x == 0 ? -5000 : ilogbf(x) < least ? least : ilogbf(x);
}

/* The sum of products of 8 bits as wgmma has it: 32 products and what has been summed up are aligned to the largest exponent and cut toward
 * zero 13 bits below it, their sum 13 bits below its own. */
static float sum_of_eight(const float *q, const float *k, int32_t d, int32_t dtype)
{
    float sum = 0;
    for (int32_t first = 0; first < d; first += 32) {
        int32_t end = d < first + 32 ? d : first + 32;
        int top = sum != 0 ? ilogbf(sum) : -5000;
        double all = 0;
        for (int32_t i = first; i < end; i++) {
            int e = exponent_of(q[i], dtype) + exponent_of(k[i], dtype);
            if (!isfinite(q[i]) || !isfinite(k[i]))
                return (float)((double)q[i] * k[i] + (double)sum);
            top = e > top ? e : top;
        }
        if (top < -1000)
            continue;
        for (int32_t i = first; i < end; i++)
            all += trunc(ldexp((double)q[i] * k[i], 13 - top));
        all = ldexp(all + trunc(ldexp((double)sum, 13 - top)), top - 13);
        int own = all != 0 ? ilogb(all) : 0;
        sum = (float)ldexp(trunc(ldexp(all, 13 - own)), own - 13);
    }
    return sum;
}

#define CUT 0x1p-13  /* of the largest exponent of a sum of wgmma, what each of its terms may lose */
#define CUT_KEYS 256 /* keys of a block, at most: each block of an FP8 kernel has a sum of its own */
#define CUT_TERMS 34 /* of a step of such a sum: 32 products, what has been summed up, and the result */

/* What a score may be off by as sums of wgmma are cut, before it is scaled. size: the sum of |q k|. 0: they are not. */
static double cut_of_score(double size, int32_t d, int dtype)
{
    bool cut = dtype == FA_E4M3 || dtype == FA_E5M2;
    return cut ? (d + 31) / 32 * CUT_TERMS * CUT * size : 0;
}

/* What products of the row are multiplied by. */
static double key_scale(const fa_attention *a, const operands *at, bool v, int64_t key)
{
    if (a->widened || (v ? a->v_channels : a->k_channels))
        return 1;
    return v ? scale_of_row(a, at, a->v_scale, a->v_tokens, key) : scale_of_row(a, at, a->k_scale, a->k_tokens, key);
}

/* What scores are multiplied by beside the scale of all. */
static double score_scale(const fa_attention *a, const operands *at, int64_t key)
{
    double q = a->q_scale ? (double)a->q_scale[a->q_tokens ? at->row : at->head] : 1;
    return q * key_scale(a, at, false, key);
}

/* What O is divided by. */
static double output_scale(const fa_attention *a, const operands *at)
{
    return a->o_scale ? (double)a->o_scale[at->head] : 1;
}

/* Rows of K and V as products take them. */
static const float *taken_row(const fa_attention *a, const operands *at, int64_t key, bool v, float room[FA_MAX_HEAD_DIM])
{
    int32_t n = v ? a->dv : a->d;
    const float *row = v ? v_row(a, at, key) : key_row(a, at, a->k, n, key);
    bool channels = v ? a->v_channels : a->k_channels && a->widened; /* else Q has them: see narrowed() */
    const float *scales = v ? a->v_scale : a->k_scale;
    if (!a->widened && !channels)
        return row;
    double scale = channels ? 1 : v ? scale_of_row(a, at, a->v_scale, a->v_tokens, key) : scale_of_row(a, at, a->k_scale, a->k_tokens, key);
    for (int32_t i = 0; i < n; i++)
        room[i] = (float)((double)row[i] * (channels ? (double)scales[(at->b * n + i) * a->hkv + at->kv] : scale));
    for (int32_t i = 0; i < n && a->widened; i++)
        room[i] = fa_number_round(room[i], a->widened);
    return room;
}

/* A row of Q, times the scales of K's columns where there are some, as fp16 times a power of two of the row: docs/lowbits.md. With exact_q
 * without that. */
static const float *narrowed(const fa_attention *a, const operands *at, float room[FA_MAX_HEAD_DIM])
{
    float most = 0;
    int exponent = -1000;
    for (int32_t i = 0; i < a->d; i++) {
        room[i] = a->k_channels ? at->q[i] * a->k_scale[(at->b * a->d + i) * a->hkv + at->kv] : at->q[i];
        most = fabsf(room[i]) > most || isnan(room[i]) ? fabsf(room[i]) : most;
    }
    if (a->exact_q)
        return room;
    if (isfinite(most) && most > 0)
        exponent = ilogbf(most);
    exponent = !isfinite(most) ? 14 : exponent < -112 ? -112 : exponent;
    for (int32_t i = 0; i < a->d; i++)
        room[i] = ldexpf(fa_number_round(ldexpf(room[i], 14 - exponent), FA_F16), exponent - 14);
    return room;
}

static void exact_row(job *j, const operands *at, double *s)
{
    const fa_attention *a = j->a;
    float room[FA_MAX_HEAD_DIM];
    double sink = sink_of(a, at), m = sink, l = 0, *o = j->o + at->out;
    int64_t keys = 0; /* that count: with a mask of the program a row whose scores are all -inf is as one that sees no key */
    for (int64_t key = at->first; key <= at->last; key++) {
        s[key] = HIDDEN;
        if (!seen(a, at, key))
            continue;
        const float *k = taken_row(a, at, key, false, room);
        double x = 0;
        for (int32_t i = 0; i < a->d; i++)
            x += (double)at->q[i] * k[i];
        if (a->eight)
            x = (double)sum_of_eight(at->q, k, a->d, a->eight);
        s[key] = scored(a, x * (double)a->scale * score_scale(a, at, key), at, key);
        m = fmax(m, s[key]);
        keys += s[key] != -INFINITY || !has_root(a, FA_SCORE_ROOT_MASK);
    }
    for (int32_t i = 0; i < a->dv; i++)
        o[i] = 0;
    for (int64_t key = at->first; key <= at->last && keys; key++) {
        if (s[key] == HIDDEN)
            continue;
        const float *v = taken_row(a, at, key, true, room);
        double p = exp(s[key] - m);
        l += p;
        p *= fa_pairs_kept(a->dropout, at->head, at->query, key) * key_scale(a, at, true, key);
        for (int32_t i = 0; i < a->dv; i++)
            o[i] += p * v[i];
    }
    l += sink == -INFINITY ? 0 : exp(sink - m);
    for (int32_t i = 0; i < a->dv && l > 0; i++)
        o[i] /= l * output_scale(a, at);
    j->lse[at->lse] = !keys ? sink : m + log(l);
}

static void tanh_row(job *j, const operands *at)
{
    const fa_attention *a = j->a;
    float room[FA_MAX_HEAD_DIM];
    operands off = *at;
    off.program.tanh_off = a->approximate ? FA_TANH_OFF : 0;
    off.program.tanh_exact_off = FA_TANH_EXACT_OFF;
    double most = 0;
    for (int64_t key = at->first; key <= at->last; key++) {
        if (!seen(a, at, key))
            continue;
        const float *k = taken_row(a, at, key, false, room);
        double x = 0;
        for (int32_t i = 0; i < a->d; i++)
            x += (double)at->q[i] * k[i];
        x *= (double)a->scale * score_scale(a, at, key);
        double far = fabs(scored(a, x, &off, key) - scored(a, x, at, key));
        most = isfinite(far) ? fmax(most, far) : most;
    }
    if (has_root(a, FA_SCORE_ROOT_SINK)) {
        double far = fabs(sink_of(a, &off) - sink_of(a, at));
        most = isfinite(far) ? fmax(most, far) : most;
    }
    pthread_mutex_lock(&j->sums);
    j->most = fmax(j->most, most);
    pthread_mutex_unlock(&j->sums);
}

/* Whether a root of the program has a lookup outside of its operand at this pair. */
static bool is_outside(const fa_attention *a, fa_score_root root, const operands *at, int64_t key, fa_outside *out)
{
    double value[FA_SCORE_ROOM];
    fa_score_pair pair = { at->b, at->head % a->hq, at->query, key, 0 };
    if (!has_root(a, root))
        return false;
    fa_score_eval(a->ir, a->ir->root[root], &at->program, &pair, value);
    int which = 0, node = fa_score_eval_outside(a->ir, a->ir->root[root], &at->program, value, &which);
    if (node < 0)
        return false;
    const fa_score_node *of = &a->ir->node[node];
    *out = (fa_outside){ of->operand, which, (int64_t)value[of->arg[which]], at->program.extent[of->operand][which], pair.b, pair.h,
                         pair.i,      pair.j };
    return true;
}

static void outside_row(job *j, const operands *at, int64_t row)
{
    const fa_attention *a = j->a;
    fa_outside found;
    bool any = is_outside(a, FA_SCORE_ROOT_SINK, at, 0, &found);
    for (int64_t key = at->first; key <= at->last && !any; key++)
        any =
            is_outside(a, FA_SCORE_ROOT_MASK, at, key, &found) || (seen(a, at, key) && is_outside(a, FA_SCORE_ROOT_SCORE, at, key, &found));
    if (!any)
        return;
    pthread_mutex_lock(&j->sums);
    if (j->outside->operand < 0 || row < j->outside_row) {
        *j->outside = found;
        j->outside_row = row;
    }
    pthread_mutex_unlock(&j->sums);
}

fa_dot fa_oracle_score(const float *q, const float *k, int32_t d, float scale)
{
    double x = 0, size = 0;
    for (int32_t i = 0; i < d; i++) {
        x += (double)q[i] * k[i];
        size += fabs((double)q[i] * k[i]);
    }
    fa_dot s = { x * (double)scale, size * (double)scale, 0, 0 };
    bool rises = size - x < BEYOND; /* no sum of some products passes fp32 downwards, where it would stay */
    s.beyond = isnan(x) || (x > 2 * BEYOND && rises) ? NAN : size < BEYOND / 2 ? 0 : INFINITY;
    s.beyond_scaled = isnan(x) || (s.value > 2 * BEYOND && rises) ? NAN : s.size < BEYOND / 4 ? 0 : INFINITY;
    return s;
}

double fa_oracle_score_error(const fa_dot *s, int32_t d, double subtracted)
{
    return (d + 8) * 0x1p-24 * s->size + 0x1p-23 * fabs(subtracted) + 0x1p-20;
}

/* What is more, of two of 0, INFINITY and NAN. */
static double worse(double a, double b)
{
    return isnan(a) || isnan(b) ? NAN : fmax(a, b);
}

/* A row's weight and by how much it may be off; both ways, the normalization's part in it. */
static double weight_error(double log_weight, double error)
{
    return fmax(fmin(1, exp(log_weight + error)) - exp(log_weight), -exp(log_weight) * expm1(-error)) + FA_LEAST_P;
}

/* x: room for two numbers of each key: the score, later the logarithm of its weight, and what that may be off by. */
static void bounds_row(job *j, const operands *at, double *x)
{
    const fa_attention *a = j->a;
    double m = -INFINITY, l = 0, up = 0, down = 0, beyond = 0, scaled = 0, *o = j->o + at->out, *error = x + a->sk + 1;
    bool eight = j->dtype == FA_E4M3 || j->dtype == FA_E5M2, narrow = eight && !a->p_dtype;
    int p_dtype = a->p_dtype ? a->p_dtype : eight ? FA_E4M3 : j->dtype;
    for (int32_t i = 0; i < a->dv; i++)
        o[i] = 0;
    j->lse[at->lse] = 0;
    if (at->last < at->first)
        return;
    for (int64_t key = at->first; key <= at->last; key++) {
        fa_dot s = fa_oracle_score(at->q, key_row(a, at, a->k, a->d, key), a->d, a->scale);
        beyond = worse(beyond, s.beyond);
        scaled = worse(scaled, s.beyond_scaled);
        x[key] = s.value;
        error[key] = s.size;
        m = fmax(m, s.value);
    }
    double all = worse(beyond, isnan(scaled) ? INFINITY : scaled); /* that scaling passes fp32 may leave O as it is */
    j->lse[at->lse] = worse(beyond, scaled);
    for (int64_t key = at->first; key <= at->last && all == 0; key++)
        l += exp(x[key] - m);
    for (int64_t key = at->first; key <= at->last && all == 0; key++) {
        error[key] = fa_oracle_score_error(&(fa_dot){ .size = error[key] }, a->d, m) + cut_of_score(error[key], a->d, j->dtype);
        x[key] -= m + log(l);
        up += exp(x[key] + error[key]);
        down += exp(x[key] - error[key]);
    }
    double norm = fmax(log(up), -log(down));
    if (all == 0)
        j->lse[at->lse] = norm + 1e-6 + 0x1p-22 * fabs(m + log(l));
    for (int32_t i = 0; i < a->dv; i++) {
        double mean = 0, off = 0, sum = 0, far = 0, seen = all;
        for (int64_t key = at->first; key <= at->last; key++) {
            float v = v_row(a, at, key)[i];
            seen = isfinite(v) ? seen : NAN;
            if (seen == 0)
                mean += exp(x[key]) * fa_pairs_kept(a->dropout, at->head, at->query, key) * v;
        }
        for (int64_t key = at->first; key <= at->last && seen == 0; key++) {
            double v = fa_pairs_kept(a->dropout, at->head, at->query, key) * v_row(a, at, key)[i];
            double more = weight_error(x[key], error[key] + norm), w = exp(x[key]) + more;
            off += more * fabs(v - mean);
            far = w > 0x1p-30 ? fmax(far, fabs(v - mean)) : far;
            double rounding = narrow ? fa_number_rounding(w * RAISED, p_dtype) / RAISED : fa_number_rounding(w, p_dtype);
            sum += (w + rounding) * fabs(v);
            off += rounding * fabs(v) * (j->dtype == FA_F32 ? 0 : 1);
        }
        off = fmin(off, far + 2 * fa_number_rounding(1, p_dtype) * sum) + (double)(at->last - at->first + 16) * 0x1p-23 * sum;
        if (narrow) /* sums are cut, and what O is divided by may be such a sum of rounded P, too */
            off += (CUT_KEYS / 32 * CUT_TERMS * CUT + fa_number_rounding(1, p_dtype)) * 2 * sum;
        o[i] = seen != 0 ? seen : off + 1.01 * fa_number_rounding(fabs(mean) + off, j->o_dtype);
    }
}

static void naive_row(job *j, const operands *at, float *s)
{
    const fa_attention *a = j->a;
    float room[FA_MAX_HEAD_DIM];
    bool inputs = j->dtype == FA_TF32; /* the others come rounded */
    bool eight = j->dtype == FA_E4M3 || j->dtype == FA_E5M2 || j->dtype == FA_S8;
    float sink = (float)sink_of(a, at), m = sink, l = 0, *o = j->naive + at->out;
    double p2 = 0, step2 = 0;
    operands off = *at; /* of an approximate tanh, in the one direction or the other */
    for (int64_t key = at->first; key <= at->last; key++) {
        s[key] = -INFINITY;
        if (!seen(a, at, key))
            continue;
        const float *k = taken_row(a, at, key, false, room);
        float x = 0;
        for (int32_t i = 0; i < a->d; i++)
            x += inputs ? fa_number_to_tf32(at->q[i]) * fa_number_to_tf32(k[i]) : at->q[i] * k[i];
        off.program.tanh_off = !a->approximate ? 0 : key & 1 ? FA_TANH_OFF : -FA_TANH_OFF;
        x = (float)scored(a, (double)(x * a->scale) * score_scale(a, at, key), &off, key);
        s[key] = j->dtype == FA_TF32 || eight ? x : fa_number_round_finite(x, j->dtype);
        m = fmaxf(m, s[key]);
    }
    for (int64_t key = at->first; key <= at->last; key++)
        l += s[key] = has_root(a, FA_SCORE_ROOT_MASK) && s[key] == -INFINITY ? 0 : expf(s[key] - m);
    l += sink == -INFINITY ? 0 : expf(sink - m);
    for (int32_t i = 0; i < a->dv; i++)
        o[i] = 0;
    for (int64_t key = at->first; key <= at->last; key++) {
        if (has_root(a, FA_SCORE_ROOT_MASK) && s[key] == 0) /* hidden, or nothing is left of it */
            continue;
        const float *v = taken_row(a, at, key, true, room);
        float p = eight && !a->p_dtype ? fa_number_round(s[key] * RAISED, FA_E4M3) / RAISED / l
                                       : fa_number_round(s[key] / l, a->p_dtype ? a->p_dtype : j->dtype),
              kept = (float)fa_pairs_kept(a->dropout, at->head, at->query, key);
        int exponent;
        frexp(p, &exponent);
        step2 += p > 0 ? ldexp(0.25, 2 * exponent) * kept * kept : 0;
        p *= kept; /* dropout scales what softmax has left, in the type of the inputs */
        p2 += (double)p * p;
        p *= (float)key_scale(a, at, true, key);
        for (int32_t i = 0; i < a->dv; i++)
            o[i] += p * (inputs ? fa_number_to_tf32(v[i]) : v[i]);
    }
    for (int32_t i = 0; i < a->dv; i++)
        o[i] = fa_number_round(o[i] / (float)output_scale(a, at), j->o_dtype);
    pthread_mutex_lock(&j->sums);
    j->p2 += p2;
    j->step2 += step2;
    pthread_mutex_unlock(&j->sums);
}

static void *work(void *user)
{
    job *j = user;
    void *s = malloc(2 * ((size_t)j->a->sk + 1) * sizeof(double));
    if (!s)
        atomic_store(&j->oom, true);
    for (int64_t row; s && !sim_interrupted() && (row = atomic_fetch_add(&j->next, 1)) < j->rows;) {
        operands at;
        float q[FA_MAX_HEAD_DIM];
        if (!find_operands(&at, j->a, row))
            continue;
        if ((j->a->k_channels || j->a->wide_q) && !j->a->widened)
            at.q = narrowed(j->a, &at, q);
        if (j->outside)
            outside_row(j, &at, row);
        else if (j->naive)
            naive_row(j, &at, s);
        else if (j->tanh)
            tanh_row(j, &at);
        else if (j->bounds)
            bounds_row(j, &at, s);
        else
            exact_row(j, &at, s);
    }
    free(s);
    return NULL;
}

static fa_status run(job *j)
{
    const fa_attention *a = j->a;
    j->rows = (int64_t)a->b * a->hq * a->sq;
    return fa_oracle_threads(work, j, a, j->rows, &j->oom);
}

fa_status fa_oracle_exact(const fa_attention *a, double *o, double *lse)
{
    job j = { .a = a, .o = o, .lse = lse };
    return run(&j);
}

fa_status fa_oracle_tanh(const fa_attention *a, double *most)
{
    job j = { .a = a, .tanh = true, .sums = PTHREAD_MUTEX_INITIALIZER };
    bool any = false;
    for (int i = 0; a->program && i < a->ir->n; i++)
        any = any || (a->approximate && a->ir->node[i].op == FA_SCORE_TANH) || a->ir->node[i].op == FA_SCORE_TANH_EXACT;
    fa_status st = any ? run(&j) : FA_OK;
    *most = j.most;
    return st;
}

fa_status fa_oracle_outside(const fa_attention *a, fa_outside *out)
{
    job j = { .a = a, .outside = out, .sums = PTHREAD_MUTEX_INITIALIZER };
    out->operand = -1;
    return a->program ? run(&j) : FA_OK;
}

fa_status fa_oracle_bounds(const fa_attention *a, int dtype, int o_dtype, double *o, double *lse)
{
    job j = { .a = a, .o = o, .lse = lse, .bounds = true, .dtype = dtype, .o_dtype = o_dtype };
    if (a->score || a->program || a->k_scale || a->v_scale || a->q_scale || a->o_scale)
        return fa_fail(FA_UNSUPPORTED, "the oracle has no bounds of scores that %s", a->program ? "a program computes" : "operands change");
    return run(&j);
}

fa_status fa_oracle_naive(const fa_attention *a, int dtype, int o_dtype, float *o, double *rounding_factor)
{
    job j = { .a = a, .naive = o, .dtype = dtype, .o_dtype = o_dtype, .sums = PTHREAD_MUTEX_INITIALIZER };
    fa_status st = run(&j);
    if (rounding_factor) /* exact fp32 rounds sums, not P; numbers spread evenly over the binades have step^2 = 3 / (8 ln 2) p^2 on average
                          */
        *rounding_factor = dtype != FA_F32 && j.step2 > 0 ? fmax(1, sqrt(3 / (8 * M_LN2) * j.p2 / j.step2)) : 1;
    return st;
}
