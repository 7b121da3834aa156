/* The rule, the oracle and the number formats that verification rests on. */
#include "gen/problem.h"
#include "verify/operands/number.h"
#include "verify/operands/random.h"
#include "verify/truth/oracle.h"
#include "verify/truth/rule.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

/* From the definitions of the formats, in fp64. */
static double slow_value(uint16_t h, int exponent_bits, int fraction_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1, e = h >> fraction_bits & ((1 << exponent_bits) - 1), f = h & ((1 << fraction_bits) - 1);
    double sign = h >> 15 ? -1 : 1;
    if (e == (1 << exponent_bits) - 1)
        return f ? NAN : sign * INFINITY;
    return e ? sign * ldexp(1 + ldexp(f, -fraction_bits), e - bias) : sign * ldexp(f, 1 - bias - fraction_bits);
}

static void check_format(int exponent_bits, int fraction_bits, float (*from)(uint16_t), uint16_t (*to)(float))
{
    for (uint32_t h = 0; h < 65536; h++) {
        double want = slow_value((uint16_t)h, exponent_bits, fraction_bits);
        float got = from((uint16_t)h);
        if (isnan(want)) {
            cr_assert(isnan(got) && to(got) == 0x7fff, "%04x", h);
            continue;
        }
        cr_assert_eq((double)got, want, "%04x is %g, not %g", h, (double)got, want);
        cr_assert_eq(to(got), h, "%04x comes back as %04x", h, to(got));
        if (isinf(want) || (h & 0x7fff) == ((1u << 15) - (1u << fraction_bits)) - 1)
            continue;
        /* Between h and its successor away from zero: below, at and above the middle. */
        float next = from((uint16_t)(h + 1)), middle = (float)(((double)got + next) / 2);
        uint16_t even = (uint16_t)(h & 1 ? h + 1 : h);
        cr_assert_eq(to(middle), even, "the tie above %04x", h);
        cr_assert_eq(to(nextafterf(middle, got)), h, "below the tie above %04x", h);
        cr_assert_eq(to(nextafterf(middle, next)), h + 1, "above the tie above %04x", h);
    }
}

Test(verify_rule, every_fp16_value)
{
    check_format(5, 10, fa_number_from_f16, fa_number_to_f16);
    cr_assert_eq(fa_number_to_f16(65519.99f), 0x7bff);
    cr_assert_eq(fa_number_to_f16(65520.f), 0x7c00);
    cr_assert_eq(fa_number_to_f16(-1e30f), 0xfc00);
}

Test(verify_rule, every_bf16_value)
{
    check_format(8, 7, fa_number_from_bf16, fa_number_to_bf16);
    cr_assert_eq(fa_number_to_bf16(0x1.fffffep127f), 0x7f80);
}

Test(verify_rule, tf32_rounds_ties_away)
{
    cr_assert_eq(fa_number_to_tf32(1 + 0x1p-11f), 1 + 0x1p-10f);
    cr_assert_eq(fa_number_to_tf32(-1 - 0x1p-11f), -1 - 0x1p-10f);
    cr_assert_eq(fa_number_to_tf32(1 + 0x1.ffep-12f), 1.f);
    cr_assert_eq(fa_number_to_tf32(0x1.fffffep0f), 2.f);
    cr_assert(isnan(fa_number_to_tf32(NAN)));
    cr_assert_eq(fa_number_to_tf32(INFINITY), INFINITY);
}

Test(verify_rule, ulp_is_the_distance_to_the_next_value)
{
    for (uint32_t h = 0; h < 0x7bff; h++)
        cr_assert_eq(fa_number_ulp(fa_number_from_f16((uint16_t)h), FA_F16),
                     (double)fa_number_from_f16((uint16_t)(h + 1)) - fa_number_from_f16((uint16_t)h), "%04x", h);
    for (uint32_t h = 0; h < 0x7f7f; h++)
        cr_assert_eq(fa_number_ulp(-fa_number_from_bf16((uint16_t)h), FA_BF16),
                     (double)fa_number_from_bf16((uint16_t)(h + 1)) - fa_number_from_bf16((uint16_t)h), "%04x", h);
    cr_assert_eq(fa_number_ulp(3.f, FA_F32), (double)nextafterf(3.f, 4.f) - 3);
}

/* ---- the oracle ---- */

typedef struct sample {
    fa_attention a;
    float *q, *k, *v, *naive;
    double *o, *lse;
    int64_t n, rows;
} sample;

static float *random_values(fa_random *r, int64_t n, int dtype)
{
    float *x = malloc((size_t)(n + 1) * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = fa_number_round(fa_random_normal(r), dtype);
    return x;
}

static sample make(int dtype, int sq, int sk, int d, int dv, int64_t lo, int64_t hi)
{
    fa_random r = { 99 };
    sample s = { .a = { 2, 6, 2, sq, sk, d, dv, lo, hi, 0.25f, NULL, NULL, NULL, .sequences = NULL } };
    s.a.q = s.q = random_values(&r, 2 * 6 * (int64_t)sq * d, dtype);
    s.a.k = s.k = random_values(&r, 2 * 2 * (int64_t)sk * d, dtype);
    s.a.v = s.v = random_values(&r, 2 * 2 * (int64_t)sk * dv, dtype);
    s.rows = 2 * 6 * (int64_t)sq;
    s.n = s.rows * dv;
    s.o = malloc((size_t)s.n * sizeof *s.o);
    s.naive = malloc((size_t)s.n * sizeof *s.naive);
    s.lse = malloc((size_t)s.rows * sizeof *s.lse);
    cr_assert_eq(fa_oracle_exact(&s.a, s.o, s.lse), FA_OK);
    cr_assert_eq(fa_oracle_naive(&s.a, dtype, dtype == FA_TF32 ? FA_F32 : dtype, s.naive, NULL), FA_OK);
    return s;
}

static void drop(sample *s)
{
    free(s->q);
    free(s->k);
    free(s->v);
    free(s->o);
    free(s->naive);
    free(s->lse);
}

/* Written from the formula, one output element at a time, with no maximum subtracted. */
static double element(const fa_attention *a, int b, int i, int h, int c, double *lse)
{
    double sum = 0, top = 0;
    int kv = h / (a->hq / a->hkv);
    for (int j = 0; j < a->sk; j++) {
        double s = 0;
        if (j < i + a->lo || j > i + a->hi)
            continue;
        for (int x = 0; x < a->d; x++)
            s += (double)a->q[((b * a->sq + i) * a->hq + h) * a->d + x] * a->k[((b * a->sk + j) * a->hkv + kv) * a->d + x];
        sum += exp(s * (double)a->scale);
        top += exp(s * (double)a->scale) * a->v[((b * a->sk + j) * a->hkv + kv) * a->dv + c];
    }
    *lse = log(sum);
    return sum > 0 ? top / sum : 0;
}

Test(verify_rule, oracle_is_the_formula)
{
    static const struct {
        int sq, sk, lo, hi;
    } rows[] = { { 7, 9, -7, 9 }, { 9, 7, -9, -2 }, { 12, 30, 3, 8 }, { 5, 5, -9, 9 }, { 3, 1, 0, 0 } };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        sample s = make(FA_F32, rows[r].sq, rows[r].sk, 8, 5, rows[r].lo, rows[r].hi);
        for (int b = 0; b < 2; b++)
            for (int i = 0; i < s.a.sq; i++)
                for (int h = 0; h < 6; h++)
                    for (int c = 0; c < 5; c++) {
                        double lse, want = element(&s.a, b, i, h, c, &lse), got = s.o[((b * s.a.sq + i) * 6 + h) * 5 + c];
                        double got_lse = s.lse[(b * 6 + h) * s.a.sq + i];
                        cr_assert(fabs(got - want) <= 1e-12 * fmax(1, fabs(want)), "row %zu: %.17g, not %.17g", r, got, want);
                        cr_assert(got_lse == lse || fabs(got_lse - lse) <= 1e-12 * fmax(1, fabs(lse)), "row %zu: LSE %.17g, not %.17g", r,
                                  got_lse, lse);
                    }
        drop(&s);
    }
}

Test(verify_rule, oracle_reads_nothing_that_is_not_visible)
{
    sample s = make(FA_BF16, 6, 40, 8, 8, 4, 9);
    double *o = malloc((size_t)s.n * sizeof *o);
    memcpy(o, s.o, (size_t)s.n * sizeof *o);
    for (int b = 0; b < 2; b++)
        for (int j = 0; j < 40; j++)
            for (int x = 0; x < 16 && (j < 4 || j > 14); x++)
                s.k[(b * 40 + j) * 16 + x] = s.v[(b * 40 + j) * 16 + x] = NAN;
    cr_assert_eq(fa_oracle_exact(&s.a, s.o, s.lse), FA_OK);
    cr_assert(!memcmp(o, s.o, (size_t)s.n * sizeof *o));
    cr_assert_eq(fa_oracle_naive(&s.a, FA_BF16, FA_BF16, s.naive, NULL), FA_OK);
    for (int64_t i = 0; i < s.n; i++)
        cr_assert(isfinite(s.naive[i]));
    free(o);
    drop(&s);
}

Test(verify_rule, rounding_factor_of_the_naive_algorithm)
{
    /* scale 0: P = 1 / sk everywhere, which is 1.77 * 2^-8 or just above 2^-7: rounding costs 1 / 1.77 or all of its most */
    static const struct {
        int sk;
        double rounding_factor;
    } rows[] = { { 145, 1.766 * 0.7355 }, { 127, 1 }, { 129, 1.985 * 0.7355 } };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        sample s = make(FA_F16, 4, rows[r].sk, 8, 8, -4, rows[r].sk);
        double rounding_factor;
        s.a.scale = 0;
        cr_assert_eq(fa_oracle_naive(&s.a, FA_F16, FA_F16, s.naive, &rounding_factor), FA_OK);
        cr_assert_float_eq(rounding_factor, rows[r].rounding_factor, 2e-3, "sk %d: %g", rows[r].sk, rounding_factor);
        cr_assert_eq(fa_oracle_naive(&s.a, FA_F32, FA_F32, s.naive, &rounding_factor), FA_OK);
        cr_assert_eq(rounding_factor, 1);
        drop(&s);
    }
    sample s = make(FA_F16, 20, 200, 16, 8, -20, 200); /* P over many binades */
    double rounding_factor;
    cr_assert_eq(fa_oracle_naive(&s.a, FA_F16, FA_F16, s.naive, &rounding_factor), FA_OK);
    cr_assert_lt(rounding_factor, 1.1, "%g", rounding_factor);
    drop(&s);
}

/* ---- the rule ---- */

static fa_verdict judge(const sample *s, const float *x, const float *lse, int dtype)
{
    fa_verdict v = { .ok = false };
    v.naive = fa_rule_errors(s->naive, s->o, s->n, false);
    v.o = fa_rule_errors(x, s->o, s->n, false);
    v.lse = fa_rule_errors(lse, s->lse, s->rows, true);
    fa_magnitudes scale = fa_rule_scale(s->o, s->n, s->lse, s->rows, dtype == FA_TF32 ? FA_F32 : dtype, true);
    fa_rule_judge(&v, &scale);
    return v;
}

typedef enum error {
    E_NONE,
    E_ULPS,
    E_NAN,
    E_ZERO,
    E_DOUBLE,
    E_NEGATED,
    E_SHIFTED_ROW,
    E_BIASED,
    E_LSE,
    E_LSE_BASE2,
    E_LSE_NAN,
    E_INF,
    ERRORS
} error;

static void plant(error e, sample *s, float *x, float *lse, double ulp)
{
    int64_t big = 0;
    for (int64_t i = 0; i < s->n; i++)
        big = fabs(s->o[i]) > fabs(s->o[big]) ? i : big;
    switch (e) {
    case E_ULPS:
        x[s->n / 2] += (float)(40 * ulp);
        break;
    case E_NAN:
        x[s->n - 1] = NAN;
        break;
    case E_INF:
        x[3] = INFINITY;
        break;
    case E_ZERO:
        x[big] = 0;
        break;
    case E_DOUBLE:
        for (int i = 0; i < s->a.dv; i++)
            x[i] *= 2;
        break;
    case E_NEGATED:
        x[big] = -x[big];
        break;
    case E_SHIFTED_ROW:
        memmove(x, x + s->a.dv, (size_t)s->a.dv * sizeof *x);
        break;
    case E_BIASED:
        for (int64_t i = 0; i < s->n; i++)
            x[i] *= 1 + 0x1p-6f;
        break;
    case E_LSE:
        lse[1] += 1e-3f;
        break;
    case E_LSE_BASE2:
        for (int64_t i = 0; i < s->rows; i++)
            lse[i] *= 1.442695f;
        break;
    case E_LSE_NAN:
        lse[s->rows - 1] = NAN;
        break;
    default:
        break;
    }
}

Test(verify_rule, accepts_naive_and_the_rounded_truth_and_rejects_planted_errors)
{
    static const int dtypes[] = { FA_F16, FA_BF16, FA_TF32, FA_F32 };
    for (int t = 0; t < 4; t++) {
        sample s = make(dtypes[t], 33, 65, 32, 24, -33, 32);
        int stored = dtypes[t] == FA_TF32 ? FA_F32 : dtypes[t];
        float *x = malloc((size_t)s.n * sizeof *x), *lse = malloc((size_t)s.rows * sizeof *lse);
        for (int e = 0; e < ERRORS; e++)
            for (int naive = 0; naive < 2; naive++) {
                for (int64_t i = 0; i < s.n; i++)
                    x[i] = naive ? s.naive[i] : fa_number_round((float)s.o[i], stored);
                for (int64_t i = 0; i < s.rows; i++)
                    lse[i] = (float)s.lse[i];
                fa_errors base = fa_rule_errors(s.naive, s.o, s.n, false);
                plant((error)e, &s, x, lse,
                      fmax(base.most, fa_number_ulp(fa_rule_scale(s.o, s.n, s.lse, s.rows, stored, true).most, stored)));
                fa_verdict v = judge(&s, x, lse, dtypes[t]);
                cr_assert_eq(v.ok, e == E_NONE, "%s, error %d: %s", fa_dtype_name(dtypes[t]), e, v.text);
            }
        free(x);
        free(lse);
        drop(&s);
    }
}

Test(verify_rule, ten_values_do_not_fail_by_chance)
{
    int failed = 0;
    for (int i = 0; i < 2000; i++) { /* outputs that differ from the truth by their own rounding, and naive by another one */
        double o[10];
        float x[10], y[10];
        fa_random r = { fa_random_mix((uint64_t)i) };
        for (int n = 0; n < 10; n++) {
            o[n] = fa_random_normal(&r);
            x[n] = fa_number_round((float)(o[n] * (1 + 0x1p-9 * (fa_random_unit(&r) - 0.5))), FA_BF16);
            y[n] = fa_number_round((float)(o[n] * (1 + 0x1p-9 * (fa_random_unit(&r) - 0.5))), FA_BF16);
        }
        fa_verdict v = { .o = fa_rule_errors(x, o, 10, false), .naive = fa_rule_errors(y, o, 10, false) };
        fa_magnitudes scale = fa_rule_scale(o, 10, NULL, 0, FA_BF16, false);
        scale.rows = 1;
        fa_rule_judge(&v, &scale);
        failed += !v.ok;
    }
    cr_assert_lt(failed, 5, "%d of 2000", failed);
}

Test(verify_rule, the_largest_error_may_be_some_times_that_of_naive)
{
    static const struct {
        double times, error; /* of the scale; of naive's, whose mean the others keep */
        bool ok;
    } rows[] = { { 0, 1.9, true }, { 0, 2.1, false }, { 3, 2.9, true }, { 3, 3.1, false } };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        double o[100];
        float x[100], y[100];
        for (int n = 0; n < 100; n++)
            o[n] = 1, x[n] = y[n] = n ? 1 + 0x1p-6f : 1.25f;
        x[0] = 1 + 0.25f * (float)rows[r].error;
        fa_verdict v = { .o = fa_rule_errors(x, o, 100, false), .naive = fa_rule_errors(y, o, 100, false) };
        fa_magnitudes scale = fa_rule_scale(o, 100, NULL, 0, FA_F32, false);
        scale.times = rows[r].times;
        scale.rows = 4;
        fa_rule_judge(&v, &scale);
        cr_assert_eq(v.ok, rows[r].ok, "%g times: %s", rows[r].error, v.text);
    }
}

/* ---- bounds ---- */

/* Bounds of O and LSE of one query with two keys, whose V are 0 and `v`; d = dv = 1. first: the first that the query sees. */
static void bounds_of(float q, float k0, float k1, float v, int first, double *o, double *lse)
{
    const float k[] = { k0, k1 }, values[] = { 0, v };
    fa_attention a = { 1, 1, 1, 1, 2, 1, 1, first, 1, 1, &q, k, values, .sequences = NULL };
    cr_assert_eq(fa_oracle_bounds(&a, FA_F32, FA_F32, o, lse), FA_OK);
}

Test(verify_rule, bounds_of_one_row)
{
    double o, lse;
    bounds_of(0x1p20f, 0x1p10f, 0x1.fffffep9f, 1, 0, &o, &lse);
    cr_expect(o > 0.4 && o <= 1.1, "scores a unit apart share a weight as they like: %g", o);
    bounds_of(0x1p20f, 0x1p10f, 0x1.ffp9f, 1, 0, &o, &lse);
    cr_expect(o < 1e-6, "the first key has all of the weight: %g", o);
    bounds_of(1, 2, 1, 1, 0, &o, &lse);
    cr_expect(o > 1e-8 && o < 1e-5 && lse < 1e-5, "%g %g", o, lse);
    bounds_of(0x1p100f, 0x1p100f, 1, 1, 0, &o, &lse);
    cr_expect(isnan(o) && isnan(lse), "the first score is +inf");
    bounds_of(0x1p100f, -0x1p100f, 1, 1, 0, &o, &lse);
    cr_expect(isinf(o) && isinf(lse), "the first score is -inf, or none");
    bounds_of(1, 2, 1, NAN, 0, &o, &lse);
    cr_expect(isnan(o) && lse < 1e-5, "NaN that is seen is NaN in O alone");
    bounds_of(1, NAN, 1, 1, 1, &o, &lse);
    cr_expect(o < 1e-5 && lse < 1e-5, "a key that is not seen has no part: %g %g", o, lse);
}

Test(verify_rule, what_is_held_against_bounds)
{
    static const struct {
        float x;
        double reference, bound;
        int dtype;
        bool lse;
        const char *rule; /* that is broken */
    } rows[] = {
        { 1.5f, 1, 0.6, FA_F32, false, NULL },
        { 1.5f, 1, 0.4, FA_F32, false, "error beyond its bound" },
        { 1, 1, 0, FA_F32, false, NULL },
        { NAN, 1, 0.4, FA_F32, false, "places of NaN" },
        { INFINITY, 1, 0.4, FA_F32, false, "places of infinity" },
        { NAN, 1, INFINITY, FA_F32, false, NULL },
        { 7, 1, INFINITY, FA_F32, false, NULL },
        { 7, 1, NAN, FA_F32, false, "places of NaN" },
        { -INFINITY, 1, NAN, FA_F32, false, NULL },
        { INFINITY, 65000, 600, FA_F16, false, NULL },
        { INFINITY, 65000, 600, FA_BF16, false, "places of infinity" },
        { INFINITY, 60000, 600, FA_F16, false, "places of infinity" },
        { -INFINITY, -INFINITY, 0, FA_F32, true, NULL },
        { -INFINITY, -1e30, INFINITY, FA_F32, true, "places of infinity" },
        { 0, -INFINITY, 0, FA_F32, true, "places of infinity" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fa_verdict v = { .ok = false };
        double exact[2] = { 0, rows[i].reference }, bound[2] = { 0, rows[i].bound };
        float x[2] = { 0, rows[i].x };
        fa_rule_bounded(&v, &(fa_bounded){ x, exact, bound, 2, rows[i].dtype, rows[i].lse, "O" });
        cr_expect_eq(v.ok, !rows[i].rule, "row %zu: %s", i, v.text);
        cr_expect(rows[i].rule ? v.rule && !strcmp(v.rule, rows[i].rule) && v.at == 1 && strstr(v.text, "O[1] is ") : !v.rule,
                  "row %zu: %s, %s", i, v.rule ? v.rule : "nothing", v.text);
    }
}
