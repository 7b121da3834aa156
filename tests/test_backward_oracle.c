/* The gradients that verification holds kernels against, themselves held against differences of the forward pass in fp64. */
#include "gen/model.h"
#include "verify/operands/random.h"
#include "verify/truth/oracle_backward.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PROBLEMS 50
#define MOST 2048 /* elements of a tensor */

typedef struct world {
    fa_attention a;
    float q[MOST], k[MOST], v[MOST], grad_o[MOST], grad_lse[MOST];
    double dq[MOST], dk[MOST], dv[MOST];
    int64_t nq, nk, nv, no, nl;
} world;

static void fill(float *x, int64_t n, fa_random *r)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = fa_random_normal(r);
}

static void make(world *w, uint64_t seed)
{
    fa_random r = { fa_random_mix(seed ^ 0x67726164) };
    fa_attention *a = &w->a;
    fa_problem p = { .mask = fa_random_below(&r, 3) };
    int32_t group = fa_random_within(&r, 1, 3);
    *a = (fa_attention){ .b = fa_random_within(&r, 1, 2),
                         .hkv = fa_random_within(&r, 1, 2),
                         .sq = fa_random_within(&r, 1, 7),
                         .sk = fa_random_within(&r, 1, 7),
                         .d = fa_random_within(&r, 1, 6),
                         .dv = fa_random_within(&r, 1, 6) };
    a->hq = a->hkv * group;
    p.sq = a->sq;
    p.sk = a->sk;
    fa_band band = fa_band_of(&p, fa_random_below(&r, 2), 0, fa_random_below(&r, 4), fa_random_below(&r, 3));
    a->lo = band.lo;
    a->hi = band.hi;
    a->scale = 0.3f + (float)fa_random_unit(&r);
    a->q = w->q;
    a->k = w->k;
    a->v = w->v;
    w->nl = (int64_t)a->b * a->sq * a->hq;
    w->nq = w->nl * a->d;
    w->no = w->nl * a->dv;
    w->nk = (int64_t)a->b * a->sk * a->hkv * a->d;
    w->nv = w->nk / a->d * a->dv;
    fill(w->q, w->nq, &r);
    fill(w->k, w->nk, &r);
    fill(w->v, w->nv, &r);
    fill(w->grad_o, w->no, &r);
    fill(w->grad_lse, w->nl, &r);
}

/* What the gradients are those of. */
static double value(const world *w)
{
    static double o[MOST], lse[MOST];
    double sum = 0;
    cr_assert_eq(fa_oracle_exact(&w->a, o, lse), FA_OK);
    for (int64_t i = 0; i < w->no; i++)
        sum += o[i] * w->grad_o[i];
    for (int64_t i = 0; i < w->nl; i++)
        sum += isfinite(lse[i]) ? lse[i] * w->grad_lse[i] : 0;
    return sum;
}

static double difference(const world *w, float *x, float h)
{
    float at = *x, up = at + h, down = at - h;
    *x = up;
    double high = value(w);
    *x = down;
    double low = value(w);
    *x = at;
    return (high - low) / ((double)up - down);
}

/* Central differences of two steps, without their errors of second order. */
static double slope(const world *w, float *x)
{
    return (4 * difference(w, x, 0x1p-8f) - difference(w, x, 0x1p-7f)) / 3;
}

static int check(const world *w, float *x, const double *gradient, int64_t n, const char *name, uint64_t seed)
{
    int other = 0;
    for (int64_t i = 0; i < n; i++) {
        double want = slope(w, &x[i]);
        cr_expect(fabs(gradient[i] - want) <= 1e-5 * fmax(1, fabs(want)), "problem %llu: %s[%lld] is %.9g, the slope is %.9g",
                  (unsigned long long)seed, name, (long long)i, gradient[i], want);
        other += fabs(want) > 1e-3;
    }
    return other;
}

Test(backward_oracle, gradients_are_slopes, .timeout = 120)
{
    static world w;
    int other = 0;
    for (uint64_t seed = 0; seed < PROBLEMS; seed++) {
        make(&w, seed);
        fa_backward b = { .of = w.a, .grad_o = w.grad_o, .grad_lse = w.grad_lse };
        cr_assert_eq(fa_backward_exact(&b, w.dq, w.dk, w.dv), FA_OK);
        other += check(&w, w.q, w.dq, w.nq, "dQ", seed) && check(&w, w.k, w.dk, w.nk, "dK", seed);
        other += check(&w, w.v, w.dv, w.nv, "dV", seed) > 0;
    }
    cr_assert_gt(other, PROBLEMS, "slopes that are not 0");
}

Test(backward_oracle, without_a_gradient_of_lse_it_is_taken_as_zeros)
{
    static world w;
    static double dq[MOST], dk[MOST], dv[MOST];
    make(&w, 3);
    memset(w.grad_lse, 0, sizeof w.grad_lse);
    fa_backward with = { .of = w.a, .grad_o = w.grad_o, .grad_lse = w.grad_lse }, without = { .of = w.a, .grad_o = w.grad_o };
    cr_assert_eq(fa_backward_exact(&with, w.dq, w.dk, w.dv), FA_OK);
    cr_assert_eq(fa_backward_exact(&without, dq, dk, dv), FA_OK);
    cr_expect(!memcmp(dq, w.dq, (size_t)w.nq * sizeof *dq) && !memcmp(dk, w.dk, (size_t)w.nk * sizeof *dk) &&
              !memcmp(dv, w.dv, (size_t)w.nv * sizeof *dv));
}

/* In fp32 the naive algorithm is as exact as its sums; in 16 bits it is not. */
Test(backward_oracle, the_naive_algorithm_rounds_as_its_type_does)
{
    static world w;
    static float o[MOST], lse[MOST], dq[MOST], dk[MOST], dv[MOST];
    static double exact_o[MOST], exact_lse[MOST];
    for (uint64_t seed = 0; seed < PROBLEMS; seed++) {
        make(&w, seed);
        fa_backward b = { w.a, w.grad_o, w.grad_lse, o, lse };
        cr_assert_eq(fa_oracle_exact(&w.a, exact_o, exact_lse), FA_OK);
        for (int64_t i = 0; i < w.no; i++)
            o[i] = (float)exact_o[i];
        for (int64_t i = 0; i < w.nl; i++)
            lse[i] = (float)exact_lse[i];
        cr_assert_eq(fa_backward_exact(&b, w.dq, w.dk, w.dv), FA_OK);
        cr_assert_eq(fa_backward_naive(&b, FA_F32, FA_F32, dq, dk, dv), FA_OK);
        for (int64_t i = 0; i < w.nq; i++)
            cr_assert_float_eq(dq[i], w.dq[i], 2e-5, "problem %d: dQ[%d]", (int)seed, (int)i);
        for (int64_t i = 0; i < w.nk; i++)
            cr_assert_float_eq(dk[i], w.dk[i], 2e-5, "problem %d: dK[%d]", (int)seed, (int)i);
        cr_assert_eq(fa_backward_naive(&b, FA_BF16, FA_BF16, dq, dk, dv), FA_OK);
        for (int64_t i = 0; i < w.nv; i++) {
            cr_assert_float_eq(dv[i], w.dv[i], 0.1, "problem %d: dV[%d]", (int)seed, (int)i);
            uint32_t bits;
            memcpy(&bits, &dv[i], sizeof bits);
            cr_assert_eq(bits & 0xffff, 0, "dV is bf16");
        }
    }
}
