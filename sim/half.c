/* half: f16 and bf16, single and in pairs. Sums and products are exact in double, or rounded to odd there, and then rounded
 * once to 16 bits. */
#include "alu.h"
#include <math.h>

/* x + y rounded to odd: a later rounding to fewer bits is as if x + y had been exact. */
static double odd_sum(double x, double y)
{
    double s = x + y;
    if (!isfinite(s))
        return s;
    double z = s - x, err = (x - (s - z)) + (y - z);
    if (err == 0)
        return s;
    union {
        double d;
        uint64_t q;
    } v = { .d = s };
    if (!(v.q & 1))
        v.q += (err > 0) == (s > 0) ? 1 : (uint64_t)-1;
    return v.d;
}
static double sum(double x, double y, double z)
{
    (void)z;
    return odd_sum(x, y);
}
static double difference(double x, double y, double z)
{
    (void)z;
    return odd_sum(x, -y);
}
static double product(double x, double y, double z)
{
    (void)z;
    return x * y;
}
static double multiply_add(double x, double y, double z)
{
    return odd_sum(x * y, z);
}
static double power(double x, double y, double z)
{
    (void)y, (void)z;
    return exp2(x);
}
static double tangent(double x, double y, double z)
{
    (void)y, (void)z;
    return tanh(x);
}
static double least(double x, double y, double z)
{
    (void)z;
    return isnan(x) ? y : isnan(y) ? x : x < y ? x : y < x ? y : signbit(x) ? x : y;
}
static double most(double x, double y, double z)
{
    (void)z;
    return isnan(x) ? y : isnan(y) ? x : x > y ? x : y > x ? y : signbit(x) ? y : x;
}
static double least_nan(double x, double y, double z)
{
    return isnan(x) || isnan(y) ? NAN : least(x, y, z);
}
static double most_nan(double x, double y, double z)
{
    return isnan(x) || isnan(y) ? NAN : most(x, y, z);
}

static inline double f16_in(uint32_t h)
{
    return sim_half_float((uint16_t)h);
}
static inline double bf16_in(uint32_t h)
{
    return sim_bf16_float((uint16_t)h);
}
static inline uint32_t f16_out(double x)
{
    return sim_round_to(x, 10, 5, ROUND_NEAREST);
}
static inline uint32_t bf16_out(double x)
{
    return sim_round_to(x, 7, 8, ROUND_NEAREST);
}
static inline uint32_t flush16(uint32_t h, uint32_t exponent)
{
    return h & exponent ? h : h & 0x8000;
}
static inline double f16_in_ftz(uint32_t h)
{
    return f16_in(flush16(h, 0x7C00));
}
static inline uint32_t f16_out_ftz(double x)
{
    return flush16(f16_out(x), 0x7C00);
}
static inline double bf16_in_ftz(uint32_t h)
{
    return bf16_in(flush16(h, 0x7F80));
}
static inline uint32_t bf16_out_ftz(double x)
{
    return flush16(bf16_out(x), 0x7F80);
}

#define PAIR(name, in, out, f)                                                                                         \
    static void name(sim_vec *restrict d, const sim_vec *a, const sim_vec *b, const sim_vec *c, const sim_vec *e)      \
    {                                                                                                                  \
        (void)e;                                                                                                       \
        for (int l = 0; l < SIM_LANES; l++)                                                                            \
            d->u[l] = out(f(in(a->u[l]), in(b->u[l]), in(c->u[l])));                                                   \
    }                                                                                                                  \
    static void name##_x2(sim_vec *restrict d, const sim_vec *a, const sim_vec *b, const sim_vec *c, const sim_vec *e) \
    {                                                                                                                  \
        (void)e;                                                                                                       \
        for (int l = 0; l < SIM_LANES; l++)                                                                            \
            d->u[l] = out(f(in(a->u[l] & 0xFFFF), in(b->u[l] & 0xFFFF), in(c->u[l] & 0xFFFF))) |                       \
                      out(f(in(a->u[l] >> 16), in(b->u[l] >> 16), in(c->u[l] >> 16))) << 16;                           \
    }
/* clang-format off */
#define ALL(name, f)                                                                                                      \
    PAIR(f16_##name, f16_in, f16_out, f) PAIR(f16_##name##_ftz, f16_in_ftz, f16_out_ftz, f)                               \
    PAIR(bf16_##name, bf16_in, bf16_out, f) PAIR(bf16_##name##_ftz, bf16_in_ftz, bf16_out_ftz, f)
/* clang-format on */
ALL(add, sum)
ALL(sub, difference)
ALL(mul, product)
ALL(fma, multiply_add)
ALL(ex2, power)
ALL(tanh, tangent)
ALL(min, least)
ALL(max, most)
ALL(minn, least_nan)
ALL(maxn, most_nan)

#define BITS(name, expr)                                                                                          \
    static void name(sim_vec *restrict d, const sim_vec *a, const sim_vec *b, const sim_vec *c, const sim_vec *e) \
    {                                                                                                             \
        (void)b, (void)c, (void)e;                                                                                \
        for (int l = 0; l < SIM_LANES; l++)                                                                       \
            d->u[l] = expr;                                                                                       \
    }
BITS(neg_x1, (a->u[l] ^ 0x8000u) & 0xFFFFu)
BITS(neg_x2, a->u[l] ^ 0x80008000u)
BITS(abs_x1, a->u[l] & 0x7FFFu)
BITS(abs_x2, a->u[l] & 0x7FFF7FFFu)

#define ROWS(op, operands, name, flags)                                           \
    { op, TB(F16), operands, f16_##name, f16_##name##_ftz, flags },               \
        { op, TB(F16X2), operands, f16_##name##_x2, f16_##name##_ftz_x2, flags }, \
        { op, TB(BF16), operands, bf16_##name, bf16_##name##_ftz, flags },        \
    {                                                                             \
        op, TB(BF16X2), operands, bf16_##name##_x2, bf16_##name##_ftz_x2, flags   \
    }
/* clang-format off */
const sim_alu_row sim_alu_half[] = {
    ROWS("add", "www", add, 0), ROWS("sub", "www", sub, 0), ROWS("mul", "www", mul, 0), ROWS("fma", "wwww", fma, 0),
    ROWS("ex2.approx", "ww", ex2, A_SPECIAL), ROWS("tanh.approx", "ww", tanh, A_SPECIAL),
    ROWS("min.NaN", "www", minn, 0), ROWS("max.NaN", "www", maxn, 0), ROWS("min", "www", min, 0), ROWS("max", "www", max, 0),
    {"neg", TB(F16) | TB(BF16), "ww", neg_x1, neg_x1, A_BITS(1)}, {"neg", TB(F16X2) | TB(BF16X2), "ww", neg_x2, neg_x2, A_BITS(1)},
    {"abs", TB(F16) | TB(BF16), "ww", abs_x1, abs_x1, A_BITS(1)}, {"abs", TB(F16X2) | TB(BF16X2), "ww", abs_x2, abs_x2, A_BITS(1)},
    {NULL, 0, NULL, NULL, NULL, 0},
};
/* clang-format on */
