/* rule: the rule that an output of attention must pass. */
#include "rule.h"
#include "verify/operands/number.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define LSE_RELATIVE 1e-5
#define CHANCE 0.25 /* ulp, of the mean */
#define SCORE 0x1p-23

static bool same_kind(double x, double reference)
{
    if (isfinite(reference))
        return isfinite(x);
    return isnan(reference) ? isnan(x) : x == reference;
}

fa_errors fa_rule_errors(const float *x, const double *reference, int64_t n, bool relative)
{
    fa_errors e = { .at = -1, .odd = -1 };
    double sum = 0;
    int64_t finite = 0;
    for (int64_t i = 0; i < n; i++) {
        double r = reference[i];
        if (!same_kind(x[i], r)) {
            if (e.odd < 0) {
                e.odd = i;
                e.odd_x = x[i];
                e.odd_reference = r;
            }
            continue;
        }
        if (!isfinite(r))
            continue;
        double error = fabs(x[i] - r) / (relative ? fmax(1, fabs(r)) : 1);
        sum += error;
        finite++;
        if (e.at < 0 || error > e.most) {
            e.most = error;
            e.at = i;
            e.x = x[i];
            e.reference = r;
        }
    }
    e.mean = finite ? sum / (double)finite : 0;
    return e;
}

fa_magnitudes fa_rule_scale(const double *o, int64_t n, const double *lse, int64_t rows, int o_dtype, bool lse_asked)
{
    fa_magnitudes s = { .n = n, .rows = rows, .o_dtype = o_dtype, .lse = lse_asked, .rounding_factor = 1 };
    for (int64_t i = 0; i < n; i++)
        if (isfinite(o[i])) {
            s.most = fmax(s.most, fabs(o[i]));
            s.mean += fabs(o[i]) / (double)n;
        }
    for (int64_t i = 0; i < rows; i++)
        if (isfinite(lse[i]))
            s.score = fmax(s.score, fabs(lse[i]));
    return s;
}

/* What broke the rule, in one line. */
__attribute__((format(printf, 6, 7))) static void set_element(fa_verdict *v, const char *rule, int64_t at, double x, double wanted,
                                                              const char *format, ...)
{
    va_list args;
    v->rule = rule;
    v->at = at;
    v->x = x;
    v->wanted = wanted;
    va_start(args, format);
    vsnprintf(v->text, sizeof v->text, format, args);
    va_end(args);
}

static void places_differ(fa_verdict *v, const fa_errors *e, const char *name)
{
    const char *rule = isnan(e->odd_x) || isnan(e->odd_reference) ? "places of NaN" : "places of infinity";
    set_element(v, rule, e->odd, e->odd_x, e->odd_reference, "%s differ: %s[%lld] is %g, should be %g", rule, name, (long long)e->odd,
                e->odd_x, e->odd_reference);
}

void fa_rule_judge(fa_verdict *v, const fa_magnitudes *s)
{
    double ulp = fa_number_ulp(s->most, s->o_dtype), score = fmax(1, s->score) * SCORE + 2 * s->approximate;
    v->most = (s->times > 0 ? s->times : 2) * v->naive.most + ulp + fmax(s->most, s->terms.most) * score;
    v->mean = 0;
    if (s->n > 0)
        v->mean = v->naive.mean * (1.1 * s->rounding_factor + 2 / sqrt((double)s->rows)) + CHANCE * ulp / sqrt((double)s->n) +
                  fmax(s->mean, s->terms.mean) * score;
    const char *o = s->o_name ? s->o_name : "O", *lse = s->lse_name ? s->lse_name : "LSE";
    v->ok = false;
    v->rule = NULL;
    v->at = -1;
    if (v->o.odd >= 0)
        places_differ(v, &v->o, o);
    else if (!(v->o.most <= v->most))
        set_element(v, "largest error", v->o.at, v->o.x, v->o.reference,
                    "%s[%lld] is %.9g, should be %.9g: error %.3g, allowed %.3g (naive %.3g)", o, (long long)v->o.at, v->o.x,
                    v->o.reference, v->o.most, v->most, v->naive.most);
    else if (!(v->o.mean <= v->mean))
        set_element(v, "mean error", -1, 0, 0, "mean error of %s %.4g, allowed %.4g (naive %.4g)", o, v->o.mean, v->mean, v->naive.mean);
    else if (s->lse && v->lse.odd >= 0)
        places_differ(v, &v->lse, lse);
    else if (s->lse && !(v->lse.most <= LSE_RELATIVE + s->approximate))
        set_element(v, "error of LSE", v->lse.at, v->lse.x, v->lse.reference, "%s[%lld] is %.9g, should be %.9g", lse, (long long)v->lse.at,
                    v->lse.x, v->lse.reference);
    else {
        v->ok = true;
        snprintf(v->text, sizeof v->text, "error %.3g (naive %.3g), mean %.3g (naive %.3g)", v->o.most, v->naive.most, v->o.mean,
                 v->naive.mean);
    }
}

/* Infinity is a legal rounding of the value. */
static bool may_overflow(double reference, double bound, int dtype)
{
    return fabs(reference) + bound >= (double)fa_number_round_finite(0x1.fffffep127f, dtype == FA_TF32 ? FA_F32 : dtype);
}

/* What is wrong with element i; NULL: nothing. */
static const char *odd_place(const fa_bounded *b, int64_t i)
{
    double x = b->x[i], reference = b->reference[i], bound = b->bound[i];
    if (b->lse && x == -INFINITY && reference != -INFINITY)
        return "the row sees keys";
    if (isnan(bound))
        return isfinite(x) ? "the row sees NaN, infinity, or a score beyond fp32" : NULL;
    if (isinf(bound) || (isinf(x) && isfinite(reference) && may_overflow(reference, bound, b->dtype)))
        return NULL;
    return same_kind(x, reference) ? NULL : "";
}

void fa_rule_bounded(fa_verdict *v, const fa_bounded *b)
{
    double nearest = -1;
    *v = (fa_verdict){ .ok = true, .bits = v->bits, .at = -1, .o = { .at = -1, .odd = -1 }, .lse = { .at = -1, .odd = -1 } };
    for (int64_t i = 0; i < b->n; i++) {
        double x = b->x[i], r = b->reference[i], bound = b->bound[i], error = fabs(x - r);
        const char *why = odd_place(b, i);
        if (why) {
            const char *rule = isnan(x) || isnan(r) || isnan(bound) ? "places of NaN" : "places of infinity";
            v->ok = false;
            double wanted = isnan(bound) ? NAN : r;
            set_element(v, rule, i, x, wanted, "%s differ: %s[%lld] is %g, should be %g%s%s", rule, b->name, (long long)i, x, wanted,
                        *why ? ": " : "", why);
            return;
        }
        if (!isfinite(x) || !isfinite(r) || !isfinite(bound))
            continue;
        double near = error <= 0 ? 0 : bound > 0 ? error / bound : INFINITY;
        if (near > nearest) {
            nearest = near;
            v->o = (fa_errors){ .most = error, .mean = 0, .at = i, .x = x, .reference = r, .odd = -1 };
            v->most = bound;
        }
    }
    v->ok = !(nearest > 1);
    if (!v->ok)
        set_element(v, "error beyond its bound", v->o.at, v->o.x, v->o.reference,
                    "%s[%lld] is %.9g, should be %.9g: error %.3g, allowed %.3g", b->name, (long long)v->o.at, v->o.x, v->o.reference,
                    v->o.most, v->most);
    else
        snprintf(v->text, sizeof v->text, "error %.3g of %.3g allowed there", v->o.most, v->most);
}
