/* rounding: numbers of 16 bits, and a double rounded to any format. */
#include "alu.h"
#include <math.h>

float sim_half_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, em = h & 0x7FFF;
    if (em >= 0x7C00)
        return sim_f32(sign | 0x7F800000 | (em & 0x3FF) << 13);
    if (em >= 0x400)
        return sim_f32(sign | ((em << 13) + (112u << 23)));
    return sim_f32(sign | sim_bits((float)em * 0x1p-24f));
}

uint16_t sim_float_half(float f)
{
    uint32_t u = sim_bits(f), sign = u >> 16 & 0x8000, a = u & 0x7FFFFFFF;
    if (a > 0x7F800000)
        return 0x7FFF;
    if (a >= 0x477FF000)
        return (uint16_t)(sign | 0x7C00); /* 65520 and more */
    if (a >= 0x38800000)
        return (uint16_t)(sign | (a + 0xFFF + (a >> 13 & 1) - (112u << 23)) >> 13);
    /* below 2^-14: adding 0.5 leaves the result in the low bits, rounded to nearest even */
    return (uint16_t)(sign | (sim_bits(sim_f32(a) + 0.5f) - 0x3F000000u));
}

uint16_t sim_float_bf16(float f)
{
    uint32_t u = sim_bits(f);
    if ((u & 0x7FFFFFFF) > 0x7F800000)
        return 0x7FFF;
    return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}

uint32_t sim_round_to(double x, int mantissa, int exponent, int mode)
{
    union {
        double d;
        uint64_t q;
    } v = { .d = x };
    uint32_t negative = (uint32_t)(v.q >> 63), sign = negative << (mantissa + exponent);
    uint32_t infinity = ((1u << exponent) - 1) << mantissa;
    if (isnan(x))
        return (1u << (mantissa + exponent)) - 1;
    if (isinf(x))
        return sign | infinity;
    int e = (int)(v.q >> 52 & 0x7FF), least = 2 - (1 << (exponent - 1));
    uint64_t m = v.q & ((1ull << 52) - 1);
    if (e)
        m |= 1ull << 52;
    else
        e = 1;
    e -= 1023;
    int top = e > least ? e : least, shift = top - mantissa - (e - 52);
    uint64_t kept = shift > 63 ? 0 : m >> shift, rest = shift > 63 ? m : m & ((1ull << shift) - 1);
    uint64_t half = shift > 63 ? UINT64_MAX : 1ull << (shift - 1);
    bool up = mode == ROUND_NEAREST ? rest > half || (rest == half && kept & 1)
              : mode == ROUND_AWAY  ? rest >= half
              : mode == ROUND_UP    ? rest && !negative
              : mode == ROUND_DOWN  ? rest && negative
                                    : false;
    uint64_t bits = ((uint64_t)(top - least) << mantissa) + kept + up;
    if (bits < infinity)
        return sign | (uint32_t)bits;
    bool to_infinity = mode == ROUND_NEAREST || mode == ROUND_AWAY || (mode == ROUND_UP && !negative) || (mode == ROUND_DOWN && negative);
    return sign | (to_infinity ? infinity : infinity - 1);
}
