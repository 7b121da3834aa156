/* compare_devices: one case, two devices, bit by bit. */
#include "bench/dev/compare_devices.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "verify/operands/number.h"
#include <math.h>
#include <string.h>

const char *fa_compare_devices_name(int kind)
{
    static const char *const names[FA_COMPARE_KINDS] = { "scores", "sums", "whole" };
    return kind >= 0 && kind < FA_COMPARE_KINDS ? names[kind] : "?";
}

void fa_compare_devices_bend(fa_case *c, int kind)
{
    if (c->values >= FA_VALUES_STEEP) /* overflowing and vanishing scores say nothing about bits */
        c->values = FA_VALUES_HEAVY;
    c->lse = 1;
    if (kind == FA_COMPARE_SCORES) {
        c->problem.mask = FA_MASK_WINDOW;
        c->window_left = c->window_right = 0;
        c->diagonal = FA_TOP_LEFT;
        c->scale = 0.693147182f; /* log 2: in the units of exp2 the score is itself, and less its maximum exactly 0 */
    } else if (kind == FA_COMPARE_SUMS) {
        c->scale = 1e-38f;
    }
}

/* How far apart, in ulp at `scale`; equal bits and two NaN are 0, a NaN beside a number is infinite. */
static double ulps(float x, float y, double scale, int dtype)
{
    if (x == y || (isnan(x) && isnan(y)))
        return 0;
    if (!isfinite(x) || !isfinite(y))
        return INFINITY;
    return fabs((double)x - (double)y) / fa_number_ulp(scale, dtype);
}

static void compare_output(fa_compare_devices *t, const void *x, const void *y, size_t bytes, int dtype)
{
    size_t width = (size_t)fa_dtype_bytes(dtype);
    double largest = 0;
    for (size_t i = 0; i < bytes; i += width) {
        double v = fabs((double)fa_number_load((const char *)x + i, dtype));
        largest = isfinite(v) ? fmax(largest, v) : largest;
    }
    for (size_t i = 0; i < bytes; i += width) {
        const char *p = (const char *)x + i, *q = (const char *)y + i;
        t->o++;
        if (memcmp(p, q, width) == 0)
            continue;
        t->differ_o++;
        t->ulps_o = fmax(t->ulps_o, ulps(fa_number_load(p, dtype), fa_number_load(q, dtype), largest, dtype));
    }
}

static void compare_lse(fa_compare_devices *t, const float *x, const float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        t->lse++;
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) the bits: -0 differs from 0, a NaN not from itself */
        if (memcmp(&x[i], &y[i], sizeof x[i]) == 0)
            continue;
        t->differ_lse++;
        t->ulps_lse = fmax(t->ulps_lse, ulps(x[i], y[i], fmax(1, fabs((double)x[i])), FA_F32));
    }
}

static fa_status run_on(fa_trial **out, fa_context *ctx, const fa_case *c, const fa_config *config)
{
    fa_verdict v = { 0 };
    const fa_plan *plan;
    fa_status st = fa_plan_make(ctx, &c->problem, config, "compared with another device", &plan);
    if (st == FA_OK)
        st = fa_trial_open(out, ctx, c, FA_REFERENCE_ORACLE);
    if (st == FA_OK)
        st = fa_trial_run(*out, plan, &v);
    if (st == FA_WRONG && v.o.odd < 0 && v.lse.odd < 0) /* a bent case may be harder than the rule allows; the bits still tell */
        st = FA_OK;
    return fa_wrap(st, "on %s", fa_context_driver(ctx)->name);
}

fa_status fa_compare_devices_run(fa_context *a, fa_context *b, const fa_case *c, const fa_config *config, int kind, fa_compare_devices *out)
{
    fa_trial *x = NULL, *y = NULL;
    memset(out, 0, sizeof *out);
    fa_status st = run_on(&x, a, c, config);
    if (st == FA_OK)
        st = run_on(&y, b, c, config);
    if (st == FA_OK) {
        const fa_operation *op = fa_operation_find(c->problem.op);
        for (int i = 0; i < op->n; i++) {
            size_t bytes;
            const void *xo = fa_trial_output(x, op->operand[i].name, &bytes), *yo = fa_trial_output(y, op->operand[i].name, &bytes);
            if (xo && op->operand[i].strided)
                compare_output(out, xo, yo, bytes, fa_case_dtype(c, i));
            else if (xo && kind != FA_COMPARE_SUMS)
                compare_lse(out, xo, yo, (int64_t)(bytes / sizeof(float)));
        }
    }
    fa_trial_close(x);
    fa_trial_close(y);
    return st;
}
