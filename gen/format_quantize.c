/* format_quantize: numbers become codes of few bits. Products and quotients of fp32 are made in double, in which they are exact or rounded
 * so finely that the second rounding, to fp32, is the only one: no compiler may fuse them with a sum. */
#include "format.h"
#include <float.h>
#include <math.h>
#include <string.h>

static float product(float a, float b)
{
    return (float)((double)a * (double)b);
}
static float sum(float a, float b)
{
    return (float)((double)a + (double)b);
}
static float quotient(float a, float b)
{
    return (float)((double)a / (double)b); /* 53 bits are more than twice 24 and one: as if it were rounded once */
}

/* A finite |x| as bits of a floating-point number without its sign, to nearest even: what passes the largest becomes a larger number. */
static uint32_t rounded_bits(double x, int exponent, int fraction)
{
    int bias = (1 << (exponent - 1)) - 1, e;
    if (x == 0)
        return 0;
    frexp(x, &e); /* x in [2^(e - 1), 2^e) */
    e = e - 1 < 1 - bias ? 1 - bias : e - 1;
    uint32_t m =
        (uint32_t)nearbyint(ldexp(x, fraction - e)); /* up to 2^(fraction + 1), of numbers below the normal ones up to 2^fraction */
    return ((uint32_t)(e + bias - 1) << fraction) + m;
}

static uint32_t nearest_float(const fa_format *f, float x)
{
    uint32_t sign = signbit(x) ? 1u << (f->exponent + f->fraction) : 0, nan = (1u << (f->exponent + f->fraction)) - 1;
    if (isnan(x))
        return f->floats == FA_FLOATS_FINITE ? 0 : nan;
    uint32_t largest = f->floats == FA_FLOATS_IEEE ? nan - (1u << f->fraction) : f->floats == FA_FLOATS_FINITE ? nan : nan - 1;
    double most = fa_format_number(f, largest), a = fabs((double)x);
    return sign | rounded_bits(a < most ? a : most, f->exponent, f->fraction);
}

/* Of a table whose numbers rise. */
static uint32_t nearest_in_table(const fa_format *f, float x)
{
    uint32_t code = 0;
    double y = isnan(x) ? 0 : (double)x;
    while (code < 15 && 2 * y >= f->table[code] + f->table[code + 1])
        code++;
    return code;
}

uint32_t fa_format_nearest(const fa_format *f, float x)
{
    if (f->kind == FA_CODE_FLOATS)
        return nearest_float(f, x);
    if (f->kind == FA_CODE_TABLE)
        return nearest_in_table(f, x);
    double least = f->kind == FA_CODE_SIGNED ? -(double)(1 << (f->bits - 1)) : -f->zero, most = least + fa_format_codes(f) - 1;
    double r = isnan(x) ? 0 : nearbyint((double)x);
    return (uint32_t)((int32_t)fmin(most, fmax(least, r)) + f->zero) & (uint32_t)(fa_format_codes(f) - 1);
}

uint32_t fa_format_quantize(const fa_format *f, float x, float scale)
{
    return fa_format_nearest(f, scale == 0 ? (isnan(x) ? x : 0.f) : quotient(x, scale));
}

float fa_format_amax_scale(const fa_format *f, const float *x, int64_t n)
{
    float amax = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(x[i]) && !fa_format_has_nan(f))
            return NAN;
        amax = fabsf(x[i]) > amax ? fabsf(x[i]) : amax;
    }
    return quotient(amax < FLT_MAX ? amax : FLT_MAX, (float)f->most);
}

/* Bits of a scale in fp16, and where it passes the largest the scale itself. */
static uint16_t half_scale(float *d)
{
    if (fabsf(*d) >= 65520.f)
        *d = copysignf(65504.f, *d);
    return (uint16_t)((signbit(*d) ? 0x8000 : 0) | rounded_bits(fabs((double)*d), 5, 10));
}

/* The code of a block's number: y, which is x times 1 / d, rounded, and kept to the range. */
static uint32_t code_of(const fa_format *f, float y)
{
    if (f->kind == FA_CODE_TABLE)
        return fa_format_nearest(f, y);
    int32_t least = f->kind == FA_CODE_SIGNED ? -127 : 0, most = f->kind == FA_CODE_SIGNED ? 127 : fa_format_codes(f) - 1;
    double r = f->kind == FA_CODE_SIGNED ? round(y) : floor((double)(float)((double)y + (f->zero + 0.5)));
    return (uint32_t)(int32_t)fmin(most, fmax(least, r)) & (uint32_t)(fa_format_codes(f) - 1);
}

/* What blocks of a format are made by: the factor of x - m, and d and m in fp32. */
typedef struct fa_block_numbers {
    float by, d, m;
} fa_block_numbers;

static fa_block_numbers numbers_of(const fa_format *f, const float *x)
{
    fa_block_numbers n = { 0 };
    float largest = 0, least = INFINITY, most = -INFINITY;
    bool nan = false;
    for (int i = 0; i < f->block; i++) {
        nan = nan || isnan(x[i]);
        largest = fabsf(x[i]) > fabsf(largest) ? x[i] : largest;
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
    }
    if (nan)
        return (fa_block_numbers){ 0, NAN, f->least_at ? NAN : 0 };
    if (f->least_at) {
        n.m = least;
        n.d = quotient(sum(most, -least), (float)f->most);
        n.d = isnan(n.d) ? 0 : n.d; /* all are one infinity */
    } else
        n.d = quotient(f->kind == FA_CODE_SIGNED ? fabsf(largest) : -largest, (float)f->most);
    return n;
}

/* The scale of iq4_nl whose products with the codes' numbers are nearest to x, x counted by its square. */
static float fitted_scale(const fa_format *f, const void *block, const float *x, float d)
{
    float s = 0, t = 0;
    for (int i = 0; i < f->block; i++) {
        float n = (float)fa_format_number(f, fa_format_code(f, block, i)), weight = product(x[i], x[i]);
        s = sum(s, product(product(weight, n), x[i]));
        t = sum(t, product(product(weight, n), n));
    }
    return t > 0 && isfinite(t) && isfinite(s) ? quotient(s, t) : d;
}

static void quantize_block(const fa_format *f, void *block, const float *x)
{
    fa_block_numbers n = numbers_of(f, x);
    bool nan = isnan(n.d);
    uint16_t m = f->least_at && !nan ? half_scale(&n.m) : 0x7fff, d = nan ? 0x7fff : half_scale(&n.d);
    n.by = nan || n.d == 0 || isinf(quotient(1, n.d)) ? 0 : quotient(1, n.d);
    for (int i = 0; i < f->block; i++) {
        float from = f->least_at ? sum(x[i], -n.m) : x[i];
        fa_format_set_code(f, block, i, code_of(f, n.by == 0 ? 0 : product(from, n.by)));
    }
    if (f->kind == FA_CODE_TABLE && !nan) {
        float fitted = fitted_scale(f, block, x, n.d);
        d = half_scale(&fitted);
    }
    fa_format_set_scale(f, block, 0, d);
    fa_format_set_least(f, block, 0, m);
}

/* A block whose scales are of few bits, too: numbers are divided by what is stored. */
static void quantize_shares(const fa_format *f, void *block, const float *x)
{
    const fa_format *of_scale = fa_format_of(f->scale_dtype);
    for (int i = 0; i < f->block; i += fa_format_shared(f)) {
        uint32_t code = fa_format_nearest(of_scale, fa_format_amax_scale(f, x + i, fa_format_shared(f)));
        float scale = (float)fa_format_number(of_scale, code);
        fa_format_set_scale(f, block, i, (uint16_t)code);
        for (int k = i; k < i + fa_format_shared(f); k++)
            fa_format_set_code(f, block, k, isnan(scale) ? 0 : fa_format_quantize(f, x[k], scale));
    }
}

void fa_format_quantize_row(const fa_format *f, void *row, const float *x, int64_t n)
{
    for (int64_t i = 0; i + f->block <= n; i += f->block)
        (f->scale_dtype == FA_F16 ? quantize_block : quantize_shares)(f, (char *)row + fa_format_bytes(f, i), x + i);
}
