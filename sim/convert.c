/* convert: cvt among all types. The usual pairs have a loop each; the rest goes lane by lane through int64 or double. */
#include "alu.h"
#include "exec.h"
#include <fenv.h>
#include <math.h>

#define CVT(name, expr)                                                                                           \
    static void name(sim_vec *restrict d, const sim_vec *a, const sim_vec *b, const sim_vec *c, const sim_vec *e) \
    {                                                                                                             \
        (void)b, (void)c, (void)e;                                                                                \
        for (int l = 0; l < SIM_LANES; l++) {                                                                     \
            expr;                                                                                                 \
        }                                                                                                         \
    }
CVT(u64_u32, d->q[l] = a->u[l])
CVT(u64_s32, d->sq[l] = a->s[l])
CVT(u32_u64, d->u[l] = (uint32_t)a->q[l])
CVT(u32_u32, d->u[l] = a->u[l])
CVT(u16_u32, d->u[l] = (uint16_t)a->u[l])
CVT(s32_s16, d->s[l] = (int16_t)a->u[l])
CVT(s32_s8, d->s[l] = (int8_t)a->u[l])
CVT(u32_u8, d->u[l] = (uint8_t)a->u[l])
CVT(f32_s32, d->f[l] = (float)a->s[l])
CVT(f32_u32, d->f[l] = (float)a->u[l])
CVT(f32_f16, d->f[l] = sim_half_float((uint16_t)a->u[l]))
CVT(f32_bf16, d->u[l] = a->u[l] << 16)
CVT(f16_f32, d->u[l] = sim_float_half(a->f[l]))
CVT(bf16_f32, d->u[l] = sim_float_bf16(a->f[l]))

/* To nearest, ties away from 0: what is beyond the largest becomes infinite by itself. */
static uint32_t tf32(uint32_t u)
{
    return (u & 0x7FFFFFFF) > 0x7F800000 ? 0x7FFFFFFF : (u + 0x1000) & ~0x1FFFu;
}
CVT(tf32_f32, d->u[l] = tf32(a->u[l]))

/* clang-format off */
static const struct { uint32_t to, from; sim_alu *fn; } fast[] = {
    {TB(U64) | TB(S64), TB(U32), u64_u32}, {TB(U64) | TB(S64), TB(S32), u64_s32}, {TB(U32) | TB(S32), TB(U64) | TB(S64), u32_u64},
    {TB(U32) | TB(S32), TB(U32) | TB(S32), u32_u32}, {TB(U16) | TB(S16), TB(U32) | TB(S32), u16_u32}, {TB(U32) | TB(S32), TB(U16), u16_u32},
    {TB(U32) | TB(S32), TB(S16), s32_s16}, {TB(U32) | TB(S32), TB(S8), s32_s8}, {TB(U32) | TB(S32) | TB(U16), TB(U8), u32_u8},
    {TB(F32), TB(S32), f32_s32}, {TB(F32), TB(U32), f32_u32}, {TB(F32), TB(F16), f32_f16}, {TB(F32), TB(BF16), f32_bf16},
    {TB(F16), TB(F32), f16_f32}, {TB(BF16), TB(F32), bf16_f32},
};
/* clang-format on */

sim_alu *sim_convert_find(sim_type to, sim_type from, int round, bool sat, bool ftz)
{
    if (to == T_TF32 && from == T_F32 && round == ROUND_AWAY && !sat && !ftz)
        return tf32_f32;
    if (sat || ftz || round != ROUND_NEAREST)
        return NULL;
    for (size_t k = 0; k < sizeof fast / sizeof *fast; k++)
        if (fast[k].to >> to & 1 && fast[k].from >> from & 1)
            return fast[k].fn;
    return NULL;
}

static const uint32_t scalars =
    TB(U8) | TB(U16) | TB(U32) | TB(U64) | TB(S8) | TB(S16) | TB(S32) | TB(S64) | TB(F16) | TB(BF16) | TB(F32) | TB(F64);
bool sim_convert_ok(sim_type to, sim_type from)
{
    return (scalars >> to & 1 || to == T_TF32) && scalars >> from & 1;
}

static double round_whole(double x, int mode)
{
    return mode == ROUND_ZERO ? trunc(x) : mode == ROUND_DOWN ? floor(x) : mode == ROUND_UP ? ceil(x) : nearbyint(x);
}

/* A double to an integer of `bits`: NaN gives 0, what does not fit the nearest end. */
static uint64_t whole(double x, int bits, bool sign)
{
    if (isnan(x))
        return 0;
    double hi = ldexp(1, bits - sign), lo = sign ? -hi : 0;
    if (x >= hi)
        return sign ? (1ull << (bits - 1)) - 1 : bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
    if (x <= lo)
        return sign ? (uint64_t)(-(int64_t)((1ull << (bits - 1)) - 1) - 1) : 0;
    return sign ? (uint64_t)(int64_t)x : (uint64_t)x;
}

static uint64_t clamp(uint64_t v, bool from_signed, int bits, bool sign)
{
    __int128 x = from_signed ? (__int128)(int64_t)v : (__int128)v;
    __int128 hi = ((__int128)1 << (bits - sign)) - 1, lo = sign ? -hi - 1 : 0;
    return (uint64_t)(x > hi ? hi : x < lo ? lo : x);
}

static uint64_t convert(uint64_t v, sim_type to, sim_type from, int round, bool whole_round, bool sat, bool ftz)
{
    static const int modes[] = { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD, FE_TONEAREST };
    int bits = 8 * sim_type_bytes(from), to_bits = 8 * sim_type_bytes(to);
    union {
        double d;
        uint64_t q;
    } x = { .q = v };
    if (!sim_type_float(from)) {
        bool sign = sim_type_signed(from);
        v = sign ? (uint64_t)((int64_t)(v << (64 - bits)) >> (64 - bits)) : bits == 64 ? v : v & ((1ull << bits) - 1);
        if (!sim_type_float(to))
            return sat ? clamp(v, sign, to_bits, sim_type_signed(to)) : v;
        int old = fegetround();
        fesetround(modes[round]);
        volatile float f32;
        volatile double f64;
        if (sign)
            f32 = (float)(int64_t)v, f64 = (double)(int64_t)v;
        else
            f32 = (float)v, f64 = (double)v;
        fesetround(old);
        if (to == T_F32)
            return sim_bits(f32);
        x.d = f64; /* of 16-bit targets, exact for every value that does not overflow, or beyond their last bit */
        if (to == T_F64)
            return x.q;
        return sim_round_to(x.d, to == T_F16 ? 10 : 7, to == T_F16 ? 5 : 8, round);
    }
    if (from == T_F16)
        x.d = sim_half_float((uint16_t)v);
    else if (from == T_BF16)
        x.d = sim_bf16_float((uint16_t)v);
    else if (from == T_F32)
        x.d = ftz ? sim_ftz(sim_f32((uint32_t)v)) : sim_f32((uint32_t)v);
    if (!sim_type_float(to))
        return whole(round_whole(x.d, round), to_bits, sim_type_signed(to));
    if (whole_round)
        x.d = round_whole(x.d, round);
    if (sat)
        x.d = isnan(x.d) || x.d <= 0 ? 0 : x.d > 1 ? 1 : x.d;
    if (to == T_F64)
        return x.q;
    if (to == T_F16)
        return sim_round_to(x.d, 10, 5, round);
    if (to == T_BF16)
        return sim_round_to(x.d, 7, 8, round);
    if (to == T_TF32)
        return isnan(x.d) ? 0x7FFFFFFF : (uint64_t)sim_round_to(x.d, 10, 8, round) << 13;
    uint32_t r = sim_round_to(x.d, 23, 8, round);
    return ftz ? sim_bits(sim_ftz(sim_f32(r))) : r;
}

static uint64_t fit(uint64_t v, sim_type t, uint8_t bytes) /* to the destination register's size */
{
    int bits = 8 * sim_type_bytes(t);
    if (bits < 64)
        v &= (1ull << bits) - 1;
    if (sim_type_signed(t) && v >> (bits - 1) & 1 && bits < 64)
        v |= UINT64_MAX << bits;
    return bytes == 2 ? v & 0xFFFF : bytes == 4 ? v & 0xFFFFFFFF : v;
}

sim_step sim_run_convert(sim_warp *w, const sim_insn *i, uint32_t m)
{
    sim_vec *d = sim_arg(w, i, 0);
    const sim_vec *a = sim_arg(w, i, 1);
    FOR_LANES(l, m)
    {
        uint64_t v = convert(i->flags & F_WIDE ? a->q[l] : a->u[l], (sim_type)i->type, (sim_type)i->type2, i->round, i->sub & 1,
                             i->flags & F_SAT, i->sub & 2);
        v = fit(v, (sim_type)i->type, i->count);
        if (i->wide)
            d->q[l] = v;
        else
            d->u[l] = (uint32_t)v;
    }
    return STEP_NEXT;
}

/* cvt.rn.f16x2.f32 d, a, b: a goes to the upper half. sub bit 0: relu. */
sim_step sim_run_convert_pair(sim_warp *w, const sim_insn *i, uint32_t m)
{
    sim_vec *d = sim_arg(w, i, 0);
    const sim_vec *a = sim_arg(w, i, 1), *b = sim_arg(w, i, 2);
    bool bf = i->type == T_BF16X2, relu = i->sub & 1, zero = i->round == ROUND_ZERO;
    FOR_LANES(l, m)
    {
        float x = a->f[l], y = b->f[l];
        if (relu)
            x = x < 0 ? 0 : x, y = y < 0 ? 0 : y;
        uint32_t hi, lo;
        if (zero)
            hi = sim_round_to(x, bf ? 7 : 10, bf ? 8 : 5, ROUND_ZERO), lo = sim_round_to(y, bf ? 7 : 10, bf ? 8 : 5, ROUND_ZERO);
        else if (bf)
            hi = sim_float_bf16(x), lo = sim_float_bf16(y);
        else
            hi = sim_float_half(x), lo = sim_float_half(y);
        d->u[l] = hi << 16 | lo;
    }
    return STEP_NEXT;
}

/* cvt.rn.f16x2.e4m3x2 d, a. */
sim_step sim_run_widen_pair(sim_warp *w, const sim_insn *i, uint32_t m)
{
    sim_vec *d = sim_arg(w, i, 0);
    const sim_vec *a = sim_arg(w, i, 1);
    FOR_LANES(l, m)
    {
        uint32_t half[2];
        for (int k = 0; k < 2; k++) {
            uint32_t b = a->u[l] >> 8 * k & 0xFF, magnitude = b & 0x7F;
            if (i->type2 == T_E5M2X2)
                half[k] = magnitude > 0x7C ? 0x7FFF : b << 8;
            else /* the exponent's bias is 7, that of f16 15 */
                half[k] = magnitude == 0x7F ? 0x7FFF : (b & 0x80) << 8 | sim_float_half(sim_half_float((uint16_t)(magnitude << 7)) * 256);
        }
        d->u[l] = half[1] << 16 | half[0];
    }
    return STEP_NEXT;
}

/* cvt.rn.satfinite.e4m3x2.f32 d, a, b: a goes to the upper byte. cvt.rn.satfinite.e4m3x2.f16x2 d, a: each half to its byte. */
sim_step sim_run_narrow_pair(sim_warp *w, const sim_insn *i, uint32_t m)
{
    sim_vec *d = sim_arg(w, i, 0);
    bool five = i->type == T_E5M2X2, halves = i->type2 == T_F16X2;
    const sim_vec *a = sim_arg(w, i, 1), *b = halves ? a : sim_arg(w, i, 2);
    FOR_LANES(l, m)
    {
        uint32_t byte[2];
        for (int k = 0; k < 2; k++) {
            double x = halves ? sim_half_float((uint16_t)(a->u[l] >> 16 * k)) : k ? a->f[l] : b->f[l];
            double most = five ? 57344 : 448, y = fabs(x);
            int e;
            frexp(y < most ? y : most, &e);
            e = y == 0 || e - 1 < (five ? -14 : -6) ? (five ? -14 : -6) : e - 1;
            int fraction = five ? 2 : 3;
            uint32_t r = (uint32_t)nearbyint(ldexp(y < most ? y : most, fraction - e));
            r += (uint32_t)(e + (five ? 14 : 6)) << fraction;
            byte[k] = isnan(x) ? 0x7F : r | (signbit(x) ? 0x80u : 0);
        }
        d->u[l] = byte[1] << 8 | byte[0];
    }
    return STEP_NEXT;
}
