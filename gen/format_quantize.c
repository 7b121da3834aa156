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
        return nan;
    double most = fa_format_number(f, f->infinities ? nan - (1u << f->fraction) : nan - 1), a = fabs((double)x);
    return sign | rounded_bits(a < most ? a : most, f->exponent, f->fraction);
}

uint32_t fa_format_nearest(const fa_format *f, float x)
{
    if (f->kind == FA_CODE_FLOATS)
        return nearest_float(f, x);
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
        if (isnan(x[i]) && f->kind != FA_CODE_FLOATS)
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

/* How many codes `to` has of the number x * by: rounded, and kept to the range. */
static uint32_t code_of(const fa_format *f, float x, float by)
{
    float y = by == 0 ? 0 : product(x, by);
    int32_t least = f->kind == FA_CODE_SIGNED ? -127 : 0, most = f->kind == FA_CODE_SIGNED ? 127 : fa_format_codes(f) - 1;
    double r = f->kind == FA_CODE_SIGNED ? round(y) : floor((double)(float)((double)y + (f->zero + 0.5)));
    return (uint32_t)(int32_t)fmin(most, fmax(least, r)) & (uint32_t)(fa_format_codes(f) - 1);
}

static void quantize_block(const fa_format *f, void *block, const float *x)
{
    float largest = 0;
    bool nan = false;
    for (int i = 0; i < f->block; i++) {
        nan = nan || isnan(x[i]);
        largest = fabsf(x[i]) > fabsf(largest) ? x[i] : largest;
    }
    float d = f->kind == FA_CODE_SIGNED ? quotient(fabsf(largest), (float)f->most) : quotient(largest, -(float)f->most);
    uint16_t bits = nan ? 0x7fff : half_scale(&d);
    float by = nan || d == 0 || isinf(quotient(1, d)) ? 0 : quotient(1, d);
    fa_format_set_scale(f, block, 0, bits);
    for (int i = 0; i < f->block; i++)
        fa_format_set_code(f, block, i, code_of(f, x[i], by));
}

void fa_format_quantize_row(const fa_format *f, void *row, const float *x, int64_t n)
{
    for (int64_t i = 0; i + f->block <= n; i += f->block)
        quantize_block(f, (char *)row + fa_format_bytes(f, i), x + i);
}
