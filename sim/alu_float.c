/* alu_float: f32 and f64. .approx functions are the double result rounded to float: the hardware's differ by ulps. */
#include "alu.h"
#include <math.h>

#define NOTHING(x) (x)
#define OP(name, expr)                                                                                                     \
    SIM_FAST static void name(sim_vec *restrict d, const sim_vec *a, const sim_vec *b, const sim_vec *c, const sim_vec *e) \
    {                                                                                                                      \
        (void)a, (void)b, (void)c, (void)e;                                                                                \
        for (int l = 0; l < SIM_LANES; l++) {                                                                              \
            expr;                                                                                                          \
        }                                                                                                                  \
    }
/* A NaN that f32 arithmetic gives is 0x7fffffff, whatever NaN went in (PTX ISA, "Floating-Point Instructions"). */
static inline float canonical_nan(float x)
{
    return x != x ? sim_f32(0x7FFFFFFF) : x;
}
/* Z flushes subnormal inputs and results in the second form. */
#define OP32(name, expr_z) OP(name, expr_z(NOTHING)) OP(name##_ftz, expr_z(sim_ftz))
#define ADD(Z) d->f[l] = canonical_nan(Z(Z(a->f[l]) + Z(b->f[l])))
#define SUB(Z) d->f[l] = canonical_nan(Z(Z(a->f[l]) - Z(b->f[l])))
#define MUL(Z) d->f[l] = canonical_nan(Z(Z(a->f[l]) * Z(b->f[l])))
#define FMA(Z) d->f[l] = canonical_nan(Z(__builtin_fmaf(Z(a->f[l]), Z(b->f[l]), Z(c->f[l]))))
#define DIV(Z) d->f[l] = Z(Z(a->f[l]) / Z(b->f[l]))
#define RCP(Z) d->f[l] = Z(1.0f / Z(a->f[l]))
#define SQRT(Z) d->f[l] = Z(sqrtf(Z(a->f[l])))
#define NEG(Z) d->u[l] = sim_bits(Z(a->f[l])) ^ 0x80000000u
#define ABS(Z) d->u[l] = sim_bits(Z(a->f[l])) & 0x7FFFFFFFu
OP32(f32_add, ADD)
OP32(f32_sub, SUB)
OP32(f32_mul, MUL)
OP32(f32_fma, FMA)
OP32(f32_div, DIV)
OP32(f32_rcp, RCP)
OP32(f32_sqrt, SQRT)
OP32(f32_neg, NEG)
OP32(f32_abs, ABS)

/* A NaN loses against a number, -0 against +0. */
static inline float smaller(float x, float y)
{
    uint32_t u = sim_bits(x), v = sim_bits(y);
    bool xn = (u & 0x7FFFFFFF) > 0x7F800000, yn = (v & 0x7FFFFFFF) > 0x7F800000;
    float r = x < y ? x : x > y ? y : sim_f32(u | v);
    r = xn ? y : yn ? x : r;
    return xn && yn ? sim_f32(0x7FFFFFFF) : r;
}
static inline float larger(float x, float y)
{
    uint32_t u = sim_bits(x), v = sim_bits(y);
    bool xn = (u & 0x7FFFFFFF) > 0x7F800000, yn = (v & 0x7FFFFFFF) > 0x7F800000;
    float r = x > y ? x : x < y ? y : sim_f32(u & v);
    r = xn ? y : yn ? x : r;
    return xn && yn ? sim_f32(0x7FFFFFFF) : r;
}
static inline float spread(float x, float y, float r)
{
    return x != x || y != y ? sim_f32(0x7FFFFFFF) : r;
}
#define MIN(Z) d->f[l] = smaller(Z(a->f[l]), Z(b->f[l]))
#define MAX(Z) d->f[l] = larger(Z(a->f[l]), Z(b->f[l]))
#define MINN(Z) d->f[l] = spread(a->f[l], b->f[l], smaller(Z(a->f[l]), Z(b->f[l])))
#define MAXN(Z) d->f[l] = spread(a->f[l], b->f[l], larger(Z(a->f[l]), Z(b->f[l])))
#define MIN3(Z) d->f[l] = smaller(smaller(Z(a->f[l]), Z(b->f[l])), Z(c->f[l]))
#define MAX3(Z) d->f[l] = larger(larger(Z(a->f[l]), Z(b->f[l])), Z(c->f[l]))
OP32(f32_min, MIN)
OP32(f32_max, MAX)
OP32(f32_minn, MINN)
OP32(f32_maxn, MAXN)
OP32(f32_min3, MIN3)
OP32(f32_max3, MAX3)

#define PLAIN(name, expr)                                                                                         \
    static void name(sim_vec *restrict d, const sim_vec *a, const sim_vec *b, const sim_vec *c, const sim_vec *e) \
    {                                                                                                             \
        (void)a, (void)b, (void)c, (void)e;                                                                       \
        for (int l = 0; l < SIM_LANES; l++) {                                                                     \
            expr;                                                                                                 \
        }                                                                                                         \
    }
#define PLAIN32(name, expr_z) PLAIN(name, expr_z(NOTHING)) PLAIN(name##_ftz, expr_z(sim_ftz))
#define EX2(Z) d->f[l] = Z((float)exp2(Z(a->f[l])))
#define LG2(Z) d->f[l] = Z((float)log2(Z(a->f[l])))
#define SIN(Z) d->f[l] = Z((float)sin(Z(a->f[l])))
#define COS(Z) d->f[l] = Z((float)cos(Z(a->f[l])))
#define RSQRT(Z) d->f[l] = Z((float)(1.0 / sqrt(Z(a->f[l]))))
PLAIN32(f32_ex2, EX2)
PLAIN32(f32_lg2, LG2)
PLAIN32(f32_sin, SIN)
PLAIN32(f32_cos, COS)
PLAIN32(f32_rsqrt, RSQRT)
PLAIN(f32_tanh, d->f[l] = (float)tanh(a->f[l]))
PLAIN(f32_copysign, d->u[l] = (b->u[l] & 0x7FFFFFFFu) | (a->u[l] & 0x80000000u))

PLAIN(f64_add, d->d[l] = a->d[l] + b->d[l])
PLAIN(f64_sub, d->d[l] = a->d[l] - b->d[l])
PLAIN(f64_mul, d->d[l] = a->d[l] * b->d[l])
PLAIN(f64_fma, d->d[l] = fma(a->d[l], b->d[l], c->d[l]))
PLAIN(f64_div, d->d[l] = a->d[l] / b->d[l])
PLAIN(f64_rcp, d->d[l] = 1.0 / a->d[l])
PLAIN(f64_sqrt, d->d[l] = sqrt(a->d[l]))
PLAIN(f64_rsqrt, d->d[l] = 1.0 / sqrt(a->d[l]))
PLAIN(f64_neg, d->q[l] = a->q[l] ^ 1ull << 63)
PLAIN(f64_abs, d->q[l] = a->q[l] & ~(1ull << 63))
PLAIN(f64_min, d->d[l] = fmin(a->d[l], b->d[l]))
PLAIN(f64_max, d->d[l] = fmax(a->d[l], b->d[l]))
PLAIN(f64_copysign, d->q[l] = (b->q[l] & ~(1ull << 63)) | (a->q[l] & 1ull << 63))

#define R32(op, operands, name, flags)                 \
    {                                                  \
        op, TB(F32), operands, name, name##_ftz, flags \
    }
#define R64(op, operands, name, flags)           \
    {                                            \
        op, TB(F64), operands, name, NULL, flags \
    }
/* clang-format off */
const sim_alu_row sim_alu_float[] = {
    R32("add", "www", f32_add, A_SAT | A_ROUND), R32("sub", "www", f32_sub, A_SAT | A_ROUND), R32("mul", "www", f32_mul, A_SAT | A_ROUND),
    R32("fma", "wwww", f32_fma, A_SAT | A_ROUND), R32("mad", "wwww", f32_fma, A_SAT | A_ROUND),
    R32("div.approx", "www", f32_div, A_SPECIAL), R32("div.full", "www", f32_div, A_SPECIAL), R32("div", "www", f32_div, A_ROUND | A_SPECIAL),
    R32("rcp.approx", "ww", f32_rcp, A_SPECIAL), R32("rcp", "ww", f32_rcp, A_ROUND | A_SPECIAL),
    R32("sqrt.approx", "ww", f32_sqrt, A_SPECIAL), R32("sqrt", "ww", f32_sqrt, A_ROUND | A_SPECIAL),
    R32("rsqrt.approx", "ww", f32_rsqrt, A_SPECIAL), R32("ex2.approx", "ww", f32_ex2, A_SPECIAL), R32("lg2.approx", "ww", f32_lg2, A_SPECIAL),
    R32("sin.approx", "ww", f32_sin, A_SPECIAL), R32("cos.approx", "ww", f32_cos, A_SPECIAL),
    {"tanh.approx", TB(F32), "ww", f32_tanh, NULL, A_SPECIAL}, {"copysign", TB(F32), "www", f32_copysign, NULL, 0},
    R32("min.NaN", "www", f32_minn, 0), R32("max.NaN", "www", f32_maxn, 0),
    R32("min", "www", f32_min, 0), R32("max", "www", f32_max, 0), R32("min", "wwww", f32_min3, 0), R32("max", "wwww", f32_max3, 0),
    R32("neg", "ww", f32_neg, 0), R32("abs", "ww", f32_abs, 0),
    R64("add", "qqq", f64_add, A_ROUND), R64("sub", "qqq", f64_sub, A_ROUND), R64("mul", "qqq", f64_mul, A_ROUND), R64("fma", "qqqq", f64_fma, A_ROUND),
    R64("mad", "qqqq", f64_fma, A_ROUND), R64("div", "qqq", f64_div, A_ROUND), R64("rcp", "qq", f64_rcp, A_ROUND | A_SPECIAL),
    R64("sqrt", "qq", f64_sqrt, A_ROUND | A_SPECIAL), R64("rsqrt.approx", "qq", f64_rsqrt, A_SPECIAL), R64("min", "qqq", f64_min, 0), R64("max", "qqq", f64_max, 0),
    R64("neg", "qq", f64_neg, 0), R64("abs", "qq", f64_abs, 0), R64("copysign", "qqq", f64_copysign, 0),
    {NULL, 0, NULL, NULL, NULL, 0},
};
/* clang-format on */
