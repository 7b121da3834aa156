/* number: the formats of tensors, one value at a time, rounded as the hardware rounds. */
#include "number.h"
#include "gen/format.h"
#include <math.h>
#include <string.h>

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

uint16_t fa_number_to_f16(float x)
{
    uint32_t sign = bits_of(x) >> 16 & 0x8000, a = bits_of(x) & 0x7fffffff;
    if (a > 0x7f800000)
        return 0x7fff;
    if (a >= 0x47800000)
        return (uint16_t)(sign | 0x7c00);
    if (a < 0x38800000) /* below 2^-14; the sum with 0.5 rounds to multiples of 2^-24 */
        return (uint16_t)(sign | (bits_of(float_of(a) + 0.5f) - 0x3f000000));
    a += 0xfff + (a >> 13 & 1);
    return (uint16_t)(sign | (a - 0x38000000) >> 13);
}

uint16_t fa_number_to_bf16(float x)
{
    uint32_t u = bits_of(x);
    if ((u & 0x7fffffff) > 0x7f800000)
        return 0x7fff;
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

float fa_number_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, f = h & 0x3ff;
    if (e == 0)
        return float_of(sign | bits_of((float)f * 0x1p-24f));
    return float_of(sign | (e == 31 ? 0x7f800000 : (e + 112) << 23) | f << 13);
}

float fa_number_from_bf16(uint16_t h)
{
    return float_of((uint32_t)h << 16);
}

float fa_number_to_tf32(float x)
{
    uint32_t u = bits_of(x);
    if ((u & 0x7f800000) == 0x7f800000)
        return x;
    return float_of((u + 0x1000) & 0xffffe000);
}

float fa_number_round(float x, int dtype)
{
    if (fa_format_of(dtype))
        return (float)fa_format_number(fa_format_of(dtype), fa_format_nearest(fa_format_of(dtype), x));
    switch (dtype) {
    case FA_F16:
        return fa_number_from_f16(fa_number_to_f16(x));
    case FA_BF16:
        return fa_number_from_bf16(fa_number_to_bf16(x));
    case FA_TF32:
        return fa_number_to_tf32(x);
    default:
        return x;
    }
}

float fa_number_round_finite(float x, int dtype)
{
    float most = dtype == FA_F16 ? 65504.f : dtype == FA_BF16 ? 0x1.fep127f : dtype == FA_TF32 ? 0x1.ffcp127f : 0x1.fffffep127f;
    float r = fa_number_round(x, dtype);
    return isinf(r) && !isinf(x) ? copysignf(most, x) : r;
}

void fa_number_store(void *to, float x, int dtype)
{
    if (dtype == FA_E5M2 && isinf(x)) { /* what is nearest is finite: a quantizer saturates */
        *(uint8_t *)to = x < 0 ? 0xfc : 0x7c;
        return;
    }
    if (fa_format_of(dtype)) {
        *(uint8_t *)to = (uint8_t)fa_format_nearest(fa_format_of(dtype), x);
        return;
    }
    uint16_t h = dtype == FA_F16 ? fa_number_to_f16(x) : fa_number_to_bf16(x);
    if (dtype == FA_F16 || dtype == FA_BF16)
        memcpy(to, &h, sizeof h);
    else
        memcpy(to, &x, sizeof x);
}

float fa_number_load(const void *from, int dtype)
{
    uint16_t h;
    float x;
    if (fa_format_of(dtype))
        return (float)fa_format_value(fa_format_of(dtype), from, 0);
    if (dtype == FA_F16 || dtype == FA_BF16) {
        memcpy(&h, from, sizeof h);
        return dtype == FA_F16 ? fa_number_from_f16(h) : fa_number_from_bf16(h);
    }
    memcpy(&x, from, sizeof x);
    return x;
}

int fa_number_block(int dtype)
{
    return fa_format_of(dtype) ? fa_format_of(dtype)->block : 1;
}

void fa_number_store_row(void *to, const float *x, int64_t n, int dtype)
{
    const fa_format *f = fa_format_of(dtype);
    if (f && f->scale_dtype)
        fa_format_quantize_row(f, to, x, n);
    for (int64_t i = 0; i < n && !(f && f->scale_dtype); i++)
        fa_number_store((char *)to + i * (f ? f->block_bytes : dtype == FA_F16 || dtype == FA_BF16 ? 2 : 4), x[i], dtype);
}

void fa_number_round_row(float *x, int64_t n, int dtype)
{
    unsigned char block[64]; /* the largest is of 36 bytes */
    const fa_format *f = fa_format_of(dtype);
    for (int64_t i = 0; i < n && !(f && f->scale_dtype); i++)
        x[i] = fa_number_round(x[i], dtype);
    for (int64_t i = 0; f && f->scale_dtype && i + f->block <= n; i += f->block) {
        fa_format_quantize_row(f, block, x + i, f->block);
        for (int k = 0; k < f->block; k++)
            x[i + k] =
                (float)(fa_format_number(f, fa_format_code(f, block, k)) * fa_format_scale(f, block, k) + fa_format_least(f, block, k));
    }
}

double fa_number_ulp(double x, int dtype)
{
    int fraction = dtype == FA_F16 ? 10 : dtype == FA_BF16 ? 7 : dtype == FA_E4M3 ? 3 : 23;
    int least = dtype == FA_F16 ? -14 : dtype == FA_E4M3 ? -6 : -126, e;
    if (!isfinite(x))
        return INFINITY;
    frexp(x, &e); /* |x| in [2^(e-1), 2^e) */
    e = x == 0 || e - 1 < least ? least : e - 1;
    return ldexp(1, e - fraction);
}

double fa_number_rounding(double x, int dtype)
{
    double relative = dtype == FA_F32    ? 0x1p-24
                      : dtype == FA_BF16 ? 0x1p-8
                      : dtype == FA_E4M3 ? 0x1p-4
                      : dtype == FA_E5M2 ? 0x1p-3
                                         : 0x1p-11,
           least = dtype == FA_F16    ? 0x1p-25
                   : dtype == FA_E4M3 ? 0x1p-10
                   : dtype == FA_E5M2 ? 0x1p-17
                                      : 0x1p-150;
    return fmax(fabs(x) * relative, least);
}
