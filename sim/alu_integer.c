/* alu_integer: whole numbers and bits. 16-bit results keep their upper half zero. */
#include "alu.h"

#define OP(name, expr)                                                                                            \
    static void name(sim_vec *restrict d, const sim_vec *a, const sim_vec *b, const sim_vec *c, const sim_vec *e) \
    {                                                                                                             \
        (void)a, (void)b, (void)c, (void)e;                                                                       \
        for (int l = 0; l < SIM_LANES; l++) {                                                                     \
            expr;                                                                                                 \
        }                                                                                                         \
    }
#define HU(x) ((uint16_t)(x)->u[l])
#define HS(x) ((int16_t)(x)->u[l])
#define MINIMUM(x, y) ((x) < (y) ? (x) : (y))
#define MAXIMUM(x, y) ((x) > (y) ? (x) : (y))

OP(add32, d->u[l] = a->u[l] + b->u[l])
OP(add64, d->q[l] = a->q[l] + b->q[l])
OP(add16, d->u[l] = (uint16_t)(a->u[l] + b->u[l]))
OP(sub32, d->u[l] = a->u[l] - b->u[l])
OP(sub64, d->q[l] = a->q[l] - b->q[l])
OP(sub16, d->u[l] = (uint16_t)(a->u[l] - b->u[l]))
OP(mul_lo32, d->u[l] = a->u[l] * b->u[l])
OP(mul_lo64, d->q[l] = a->q[l] * b->q[l])
OP(mul_lo16, d->u[l] = (uint16_t)((uint32_t)HU(a) * HU(b)))
OP(mul_hi_u32, d->u[l] = (uint32_t)((uint64_t)a->u[l] * b->u[l] >> 32))
OP(mul_hi_s32, d->s[l] = (int32_t)((int64_t)a->s[l] * b->s[l] >> 32))
OP(mul_hi_u64, d->q[l] = (uint64_t)((unsigned __int128)a->q[l] * b->q[l] >> 64))
OP(mul_hi_s64, d->sq[l] = (int64_t)((__int128)a->sq[l] * b->sq[l] >> 64))
OP(mul_hi_u16, d->u[l] = (uint32_t)HU(a) * HU(b) >> 16)
OP(mul_hi_s16, d->u[l] = (uint16_t)((int32_t)HS(a) * HS(b) >> 16))
OP(mul_wide_u32, d->q[l] = (uint64_t)a->u[l] * b->u[l])
OP(mul_wide_s32, d->sq[l] = (int64_t)a->s[l] * b->s[l])
OP(mul_wide_u16, d->u[l] = (uint32_t)HU(a) * HU(b))
OP(mul_wide_s16, d->s[l] = (int32_t)HS(a) * HS(b))
OP(mad_lo32, d->u[l] = a->u[l] * b->u[l] + c->u[l])
OP(mad_lo64, d->q[l] = a->q[l] * b->q[l] + c->q[l])
OP(mad_lo16, d->u[l] = (uint16_t)((uint32_t)HU(a) * HU(b) + c->u[l]))
OP(mad_hi_u32, d->u[l] = (uint32_t)((uint64_t)a->u[l] * b->u[l] >> 32) + c->u[l])
OP(mad_hi_s32, d->u[l] = (uint32_t)((uint64_t)((int64_t)a->s[l] * b->s[l]) >> 32) + c->u[l])
OP(mad_wide_u32, d->q[l] = (uint64_t)a->u[l] * b->u[l] + c->q[l])
OP(mad_wide_s32, d->q[l] = (uint64_t)((int64_t)a->s[l] * b->s[l]) + c->q[l])
OP(mad_wide_u16, d->u[l] = (uint32_t)HU(a) * HU(b) + c->u[l])
OP(mad_wide_s16, d->u[l] = (uint32_t)((int32_t)HS(a) * HS(b)) + c->u[l])
/* Division by zero gives all ones and the dividend, as the hardware's sequences do. */
OP(div_u32, d->u[l] = b->u[l] ? a->u[l] / b->u[l] : SIM_ALL)
OP(div_s32, d->u[l] = b->s[l] == 0 ? SIM_ALL : b->s[l] == -1 ? 0u - a->u[l] : (uint32_t)(a->s[l] / b->s[l]))
OP(div_u64, d->q[l] = b->q[l] ? a->q[l] / b->q[l] : UINT64_MAX)
OP(div_s64, d->q[l] = b->sq[l] == 0 ? UINT64_MAX : b->sq[l] == -1 ? 0u - a->q[l] : (uint64_t)(a->sq[l] / b->sq[l]))
OP(div_u16, d->u[l] = HU(b) ? HU(a) / HU(b) : 0xFFFF)
OP(div_s16, d->u[l] = HS(b) ? (uint16_t)(HS(a) / HS(b)) : 0xFFFF)
OP(rem_u32, d->u[l] = b->u[l] ? a->u[l] % b->u[l] : a->u[l])
OP(rem_s32, d->s[l] = b->s[l] == 0 ? a->s[l] : b->s[l] == -1 ? 0 : a->s[l] % b->s[l])
OP(rem_u64, d->q[l] = b->q[l] ? a->q[l] % b->q[l] : a->q[l])
OP(rem_s64, d->sq[l] = b->sq[l] == 0 ? a->sq[l] : b->sq[l] == -1 ? 0 : a->sq[l] % b->sq[l])
OP(rem_u16, d->u[l] = HU(b) ? HU(a) % HU(b) : HU(a))
OP(rem_s16, d->u[l] = (uint16_t)(HS(b) ? HS(a) % HS(b) : HS(a)))
OP(min_u32, d->u[l] = MINIMUM(a->u[l], b->u[l]))
OP(min_s32, d->s[l] = MINIMUM(a->s[l], b->s[l]))
OP(min_u64, d->q[l] = MINIMUM(a->q[l], b->q[l]))
OP(min_s64, d->sq[l] = MINIMUM(a->sq[l], b->sq[l]))
OP(min_u16, d->u[l] = MINIMUM(HU(a), HU(b)))
OP(min_s16, d->u[l] = (uint16_t)MINIMUM(HS(a), HS(b)))
OP(max_u32, d->u[l] = MAXIMUM(a->u[l], b->u[l]))
OP(max_s32, d->s[l] = MAXIMUM(a->s[l], b->s[l]))
OP(max_u64, d->q[l] = MAXIMUM(a->q[l], b->q[l]))
OP(max_s64, d->sq[l] = MAXIMUM(a->sq[l], b->sq[l]))
OP(max_u16, d->u[l] = MAXIMUM(HU(a), HU(b)))
OP(max_s16, d->u[l] = (uint16_t)MAXIMUM(HS(a), HS(b)))
OP(neg32, d->u[l] = 0u - a->u[l])
OP(neg64, d->q[l] = 0u - a->q[l])
OP(neg16, d->u[l] = (uint16_t)(0u - a->u[l]))
OP(abs32, d->u[l] = a->s[l] < 0 ? 0u - a->u[l] : a->u[l])
OP(abs64, d->q[l] = a->sq[l] < 0 ? 0u - a->q[l] : a->q[l])
OP(abs16, d->u[l] = (uint16_t)(HS(a) < 0 ? -HS(a) : HS(a)))
OP(and32, d->u[l] = a->u[l] & b->u[l])
OP(and64, d->q[l] = a->q[l] & b->q[l])
OP(or32, d->u[l] = a->u[l] | b->u[l])
OP(or64, d->q[l] = a->q[l] | b->q[l])
OP(xor32, d->u[l] = a->u[l] ^ b->u[l])
OP(xor64, d->q[l] = a->q[l] ^ b->q[l])
OP(not32, d->u[l] = ~a->u[l])
OP(not64, d->q[l] = ~a->q[l])
OP(not16, d->u[l] = (uint16_t)~a->u[l])
OP(cnot32, d->u[l] = !a->u[l])
OP(cnot64, d->q[l] = !a->q[l])
OP(shl32, d->u[l] = b->u[l] > 31 ? 0 : a->u[l] << b->u[l])
OP(shl64, d->q[l] = b->u[l] > 63 ? 0 : a->q[l] << b->u[l])
OP(shl16, d->u[l] = b->u[l] > 15 ? 0 : (uint16_t)(a->u[l] << b->u[l]))
OP(shr_u32, d->u[l] = b->u[l] > 31 ? 0 : a->u[l] >> b->u[l])
OP(shr_u64, d->q[l] = b->u[l] > 63 ? 0 : a->q[l] >> b->u[l])
OP(shr_u16, d->u[l] = b->u[l] > 15 ? 0 : (uint32_t)HU(a) >> b->u[l])
OP(shr_s32, d->s[l] = a->s[l] >> MINIMUM(b->u[l], 31))
OP(shr_s64, d->sq[l] = a->sq[l] >> MINIMUM(b->u[l], 63))
OP(shr_s16, d->u[l] = (uint16_t)(HS(a) >> MINIMUM(b->u[l], 15)))
OP(shf_l_wrap, uint64_t v = (uint64_t)b->u[l] << 32 | a->u[l]; d->u[l] = (uint32_t)(v << (c->u[l] & 31) >> 32))
OP(shf_r_wrap, uint64_t v = (uint64_t)b->u[l] << 32 | a->u[l]; d->u[l] = (uint32_t)(v >> (c->u[l] & 31)))
OP(shf_l_clamp, uint64_t v = (uint64_t)b->u[l] << 32 | a->u[l]; d->u[l] = (uint32_t)(v << MINIMUM(c->u[l], 32) >> 32))
OP(shf_r_clamp, uint64_t v = (uint64_t)b->u[l] << 32 | a->u[l]; d->u[l] = (uint32_t)(v >> MINIMUM(c->u[l], 32)))

static uint64_t extract(uint64_t a, uint32_t bits, uint32_t pos, uint32_t len, bool sign)
{
    pos &= 255, len &= 255;
    uint32_t top = pos + len - 1 < bits - 1 && len ? pos + len - 1 : bits - 1;
    uint64_t fill = sign && len && a >> top & 1 ? UINT64_MAX : 0;
    if (!len)
        return 0;
    if (pos >= bits)
        return fill;
    uint64_t v = a >> pos;
    uint32_t have = MINIMUM(len, bits - pos);
    return have >= 64 ? v : (v & ((1ull << have) - 1)) | (fill << have);
}
OP(bfe_u32, d->u[l] = (uint32_t)extract(a->u[l], 32, b->u[l], c->u[l], false))
OP(bfe_s32, d->u[l] = (uint32_t)extract(a->u[l], 32, b->u[l], c->u[l], true))
OP(bfe_u64, d->q[l] = extract(a->q[l], 64, b->u[l], c->u[l], false))
OP(bfe_s64, d->q[l] = extract(a->q[l], 64, b->u[l], c->u[l], true))
static uint64_t insert(uint64_t a, uint64_t b, uint32_t bits, uint32_t pos, uint32_t len)
{
    pos &= 255, len &= 255;
    if (pos >= bits || !len)
        return b;
    uint64_t mask = (len >= 64 ? UINT64_MAX : (1ull << len) - 1) << pos;
    return (b & ~mask) | (a << pos & mask);
}
OP(bfi32, d->u[l] = (uint32_t)insert(a->u[l], b->u[l], 32, c->u[l], e->u[l]))
OP(bfi64, d->q[l] = insert(a->q[l], b->q[l], 64, c->u[l], e->u[l]))

static uint32_t permute(uint32_t a, uint32_t b, uint32_t s)
{
    uint64_t v = (uint64_t)b << 32 | a;
    uint32_t r = 0;
    for (int k = 0; k < 4; k++) {
        uint32_t n = s >> 4 * k & 15, byte = (uint32_t)(v >> 8 * (n & 7)) & 255;
        if (n & 8)
            byte = byte & 128 ? 255 : 0;
        r |= byte << 8 * k;
    }
    return r;
}
OP(prmt, d->u[l] = permute(a->u[l], b->u[l], c->u[l]))
#define PRMT_SELECTED(name, expr)                                                                                       \
    OP(name, uint32_t s = c->u[l] & 3; uint32_t r = 0; for (uint32_t k = 0; k < 4; k++) r |= (uint32_t)(expr) << 4 * k; \
       d->u[l] = permute(a->u[l], b->u[l], r))
PRMT_SELECTED(prmt_f4e, s + k)
PRMT_SELECTED(prmt_b4e, (s - k) & 7)
PRMT_SELECTED(prmt_rc8, s + 0 * k)
PRMT_SELECTED(prmt_ecl, MAXIMUM(k, s))
PRMT_SELECTED(prmt_ecr, MINIMUM(k, s))
PRMT_SELECTED(prmt_rc16, (s & 1) * 2 + (k & 1))

OP(lop3, uint32_t r = 0; for (uint32_t t = 0; t < 8; t++) if (e->u[l] >> t & 1) r |=
                         (t & 4 ? a->u[l] : ~a->u[l]) & (t & 2 ? b->u[l] : ~b->u[l]) & (t & 1 ? c->u[l] : ~c->u[l]);
   d->u[l] = r)
OP(popc32, d->u[l] = (uint32_t)__builtin_popcount(a->u[l]))
OP(popc64, d->u[l] = (uint32_t)__builtin_popcountll(a->q[l]))
OP(clz32, d->u[l] = a->u[l] ? (uint32_t)__builtin_clz(a->u[l]) : 32)
OP(clz64, d->u[l] = a->q[l] ? (uint32_t)__builtin_clzll(a->q[l]) : 64)
static uint32_t reverse(uint32_t x)
{
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0F0F0F0F) | (x & 0x0F0F0F0F) << 4;
    return __builtin_bswap32(x);
}
OP(brev32, d->u[l] = reverse(a->u[l]))
OP(brev64, d->q[l] = (uint64_t)reverse((uint32_t)a->q[l]) << 32 | reverse((uint32_t)(a->q[l] >> 32)))
OP(bfind_u32, d->u[l] = a->u[l] ? 31u - (uint32_t)__builtin_clz(a->u[l]) : SIM_ALL)
OP(bfind_s32, uint32_t v = a->u[l] ^ (uint32_t)(a->s[l] >> 31); d->u[l] = v ? 31u - (uint32_t)__builtin_clz(v) : SIM_ALL)
OP(bfind_u64, d->u[l] = a->q[l] ? 63u - (uint32_t)__builtin_clzll(a->q[l]) : SIM_ALL)
OP(bfind_s64, uint64_t v = a->q[l] ^ (uint64_t)(a->sq[l] >> 63); d->u[l] = v ? 63u - (uint32_t)__builtin_clzll(v) : SIM_ALL)
OP(shift_u32, d->u[l] = a->u[l] ? (uint32_t)__builtin_clz(a->u[l]) : SIM_ALL)
OP(shift_s32, uint32_t v = a->u[l] ^ (uint32_t)(a->s[l] >> 31); d->u[l] = v ? (uint32_t)__builtin_clz(v) : SIM_ALL)
OP(sad_u32, d->u[l] = c->u[l] + (a->u[l] > b->u[l] ? a->u[l] - b->u[l] : b->u[l] - a->u[l]))
OP(sad_s32, d->u[l] = c->u[l] + (a->s[l] > b->s[l] ? a->u[l] - b->u[l] : b->u[l] - a->u[l]))
OP(mul24, d->u[l] = (a->u[l] & 0xFFFFFF) * (b->u[l] & 0xFFFFFF))
OP(move32, d->u[l] = a->u[l])
OP(move64, d->q[l] = a->q[l])
OP(slct32, d->u[l] = c->s[l] >= 0 ? a->u[l] : b->u[l])
OP(slct64, d->q[l] = c->s[l] >= 0 ? a->q[l] : b->q[l])
OP(slct_f32, d->u[l] = c->f[l] >= 0 ? a->u[l] : b->u[l])
OP(slct_f64, d->q[l] = c->f[l] >= 0 ? a->q[l] : b->q[l])

/* Sums of products of bytes, or of halves and bytes `from` on. */
static int32_t byte_of(uint32_t x, int k, bool sign)
{
    return sign ? (int8_t)(x >> 8 * k) : (int32_t)(uint8_t)(x >> 8 * k);
}
static uint32_t dot4(uint32_t a, uint32_t b, uint32_t c, bool sa, bool sb)
{
    for (int k = 0; k < 4; k++)
        c += (uint32_t)(byte_of(a, k, sa) * byte_of(b, k, sb));
    return c;
}
static uint32_t dot2(uint32_t a, uint32_t b, uint32_t c, bool sa, bool sb, int from)
{
    for (int k = 0; k < 2; k++)
        c += (uint32_t)((sa ? (int16_t)(a >> 16 * k) : (int32_t)(uint16_t)(a >> 16 * k)) * byte_of(b, from + k, sb));
    return c;
}
#define DOT(name, sa, sb)                                                    \
    OP(dp4a_##name, d->u[l] = dot4(a->u[l], b->u[l], c->u[l], sa, sb))       \
    OP(dp2a_lo_##name, d->u[l] = dot2(a->u[l], b->u[l], c->u[l], sa, sb, 0)) \
    OP(dp2a_hi_##name, d->u[l] = dot2(a->u[l], b->u[l], c->u[l], sa, sb, 2))
DOT(uu, false, false)
DOT(us, false, true)
DOT(su, true, false)
DOT(ss, true, true)
static uint32_t bit_mask(uint32_t at, uint32_t n, bool clamp)
{
    if (clamp && at > 31)
        return 0;
    uint32_t from = SIM_ALL << (at & 31), end = (at & 31) + (n & 31);
    return from & ~(end > 31 || (clamp && n > 31) ? 0 : SIM_ALL << end);
}
OP(bmsk_clamp, d->u[l] = bit_mask(a->u[l], b->u[l], true))
OP(bmsk_wrap, d->u[l] = bit_mask(a->u[l], b->u[l], false))

#define I32 (TB(U32) | TB(S32))
#define I64 (TB(U64) | TB(S64))
#define I16 (TB(U16) | TB(S16))
#define SIZES(op, name)                                                           \
    { op, I32, "www", name##32, NULL, 0 }, { op, I64, "qqq", name##64, NULL, 0 }, \
    {                                                                             \
        op, I16, "www", name##16, NULL, 0                                         \
    }
#define KINDS(op, name)                                                                                                                    \
    { op, TB(U32), "www", name##_u32, NULL, 0 }, { op, TB(S32), "www", name##_s32, NULL, 0 }, { op, TB(U64), "qqq", name##_u64, NULL, 0 }, \
        { op, TB(S64), "qqq", name##_s64, NULL, 0 }, { op, TB(U16), "www", name##_u16, NULL, 0 },                                          \
    {                                                                                                                                      \
        op, TB(S16), "www", name##_s16, NULL, 0                                                                                            \
    }

/* clang-format off */
const sim_alu_row sim_alu_integer[] = {
    SIZES("add", add), SIZES("sub", sub), SIZES("mul.lo", mul_lo), KINDS("mul.hi", mul_hi),
    {"mul.wide", TB(U32), "qww", mul_wide_u32, NULL, 0}, {"mul.wide", TB(S32), "qww", mul_wide_s32, NULL, 0},
    {"mul.wide", TB(U16), "www", mul_wide_u16, NULL, 0}, {"mul.wide", TB(S16), "www", mul_wide_s16, NULL, 0},
    {"mad.lo", I32, "wwww", mad_lo32, NULL, 0}, {"mad.lo", I64, "qqqq", mad_lo64, NULL, 0}, {"mad.lo", I16, "wwww", mad_lo16, NULL, 0},
    {"mad.hi", TB(U32), "wwww", mad_hi_u32, NULL, 0}, {"mad.hi", TB(S32), "wwww", mad_hi_s32, NULL, 0},
    {"mad.wide", TB(U32), "qwwq", mad_wide_u32, NULL, 0}, {"mad.wide", TB(S32), "qwwq", mad_wide_s32, NULL, 0},
    {"mad.wide", TB(U16), "wwww", mad_wide_u16, NULL, 0}, {"mad.wide", TB(S16), "wwww", mad_wide_s16, NULL, 0},
    KINDS("div", div), KINDS("rem", rem), KINDS("min", min), KINDS("max", max),
    {"neg", TB(S32), "ww", neg32, NULL, 0}, {"neg", TB(S64), "qq", neg64, NULL, 0}, {"neg", TB(S16), "ww", neg16, NULL, 0},
    {"abs", TB(S32), "ww", abs32, NULL, 0}, {"abs", TB(S64), "qq", abs64, NULL, 0}, {"abs", TB(S16), "ww", abs16, NULL, 0},
    {"and", TB(B32) | TB(B16), "www", and32, NULL, A_BITS(2)}, {"and", TB(B64), "qqq", and64, NULL, A_BITS(2)},
    {"or", TB(B32) | TB(B16), "www", or32, NULL, A_BITS(2)}, {"or", TB(B64), "qqq", or64, NULL, A_BITS(2)},
    {"xor", TB(B32) | TB(B16), "www", xor32, NULL, A_BITS(2)}, {"xor", TB(B64), "qqq", xor64, NULL, A_BITS(2)},
    {"not", TB(B32), "ww", not32, NULL, A_BITS(1)}, {"not", TB(B64), "qq", not64, NULL, A_BITS(1)}, {"not", TB(B16), "ww", not16, NULL, A_BITS(1)},
    {"cnot", TB(B32), "ww", cnot32, NULL, 0}, {"cnot", TB(B64), "qq", cnot64, NULL, 0},
    {"shl", TB(B32), "www", shl32, NULL, A_BITS(1)}, {"shl", TB(B64), "qqw", shl64, NULL, A_BITS(1)}, {"shl", TB(B16), "www", shl16, NULL, A_BITS(1)},
    {"shr", TB(U32) | TB(B32), "www", shr_u32, NULL, A_BITS(1)}, {"shr", TB(U64) | TB(B64), "qqw", shr_u64, NULL, A_BITS(1)},
    {"shr", TB(U16) | TB(B16), "www", shr_u16, NULL, A_BITS(1)}, {"shr", TB(S32), "www", shr_s32, NULL, A_BITS(1)},
    {"shr", TB(S64), "qqw", shr_s64, NULL, A_BITS(1)}, {"shr", TB(S16), "www", shr_s16, NULL, A_BITS(1)},
    {"shf.l.wrap", TB(B32), "wwww", shf_l_wrap, NULL, A_BITS(2)}, {"shf.r.wrap", TB(B32), "wwww", shf_r_wrap, NULL, A_BITS(2)},
    {"shf.l.clamp", TB(B32), "wwww", shf_l_clamp, NULL, A_BITS(2)}, {"shf.r.clamp", TB(B32), "wwww", shf_r_clamp, NULL, A_BITS(2)},
    {"bfe", TB(U32), "wwww", bfe_u32, NULL, A_BITS(1)}, {"bfe", TB(S32), "wwww", bfe_s32, NULL, A_BITS(1)},
    {"bfe", TB(U64), "qqww", bfe_u64, NULL, A_BITS(1)}, {"bfe", TB(S64), "qqww", bfe_s64, NULL, A_BITS(1)},
    {"bfi", TB(B32), "wwwww", bfi32, NULL, A_BITS(2)}, {"bfi", TB(B64), "qqqww", bfi64, NULL, A_BITS(2)},
    {"prmt.f4e", TB(B32), "wwww", prmt_f4e, NULL, A_BITS(2)}, {"prmt.b4e", TB(B32), "wwww", prmt_b4e, NULL, A_BITS(2)},
    {"prmt.rc8", TB(B32), "wwww", prmt_rc8, NULL, A_BITS(2)}, {"prmt.ecl", TB(B32), "wwww", prmt_ecl, NULL, A_BITS(2)},
    {"prmt.ecr", TB(B32), "wwww", prmt_ecr, NULL, A_BITS(2)}, {"prmt.rc16", TB(B32), "wwww", prmt_rc16, NULL, A_BITS(2)},
    {"prmt", TB(B32), "wwww", prmt, NULL, A_BITS(2)}, {"lop3", TB(B32), "wwwww", lop3, NULL, A_BITS(3)},
    {"popc", TB(B32), "ww", popc32, NULL, 0}, {"popc", TB(B64), "wq", popc64, NULL, 0},
    {"clz", TB(B32), "ww", clz32, NULL, 0}, {"clz", TB(B64), "wq", clz64, NULL, 0},
    {"brev", TB(B32), "ww", brev32, NULL, A_BITS(1)}, {"brev", TB(B64), "qq", brev64, NULL, A_BITS(1)},
    {"bfind.shiftamt", TB(U32), "ww", shift_u32, NULL, 0}, {"bfind.shiftamt", TB(S32), "ww", shift_s32, NULL, 0},
    {"bfind", TB(U32), "ww", bfind_u32, NULL, 0}, {"bfind", TB(S32), "ww", bfind_s32, NULL, 0},
    {"bfind", TB(U64), "wq", bfind_u64, NULL, 0}, {"bfind", TB(S64), "wq", bfind_s64, NULL, 0},
    {"sad", TB(U32), "wwww", sad_u32, NULL, 0}, {"sad", TB(S32), "wwww", sad_s32, NULL, 0},
    /* the type looked up is the last, that of b; where the one of a differs, its row goes first */
    {"dp4a.s32", TB(U32), "wwww", dp4a_su, NULL, 0}, {"dp4a.u32", TB(U32), "wwww", dp4a_uu, NULL, 0},
    {"dp4a.u32", TB(S32), "wwww", dp4a_us, NULL, 0}, {"dp4a.s32", TB(S32), "wwww", dp4a_ss, NULL, 0},
    {"dp2a.lo.s32", TB(U32), "wwww", dp2a_lo_su, NULL, 0}, {"dp2a.lo.u32", TB(U32), "wwww", dp2a_lo_uu, NULL, 0},
    {"dp2a.lo.u32", TB(S32), "wwww", dp2a_lo_us, NULL, 0}, {"dp2a.lo.s32", TB(S32), "wwww", dp2a_lo_ss, NULL, 0},
    {"dp2a.hi.s32", TB(U32), "wwww", dp2a_hi_su, NULL, 0}, {"dp2a.hi.u32", TB(U32), "wwww", dp2a_hi_uu, NULL, 0},
    {"dp2a.hi.u32", TB(S32), "wwww", dp2a_hi_us, NULL, 0}, {"dp2a.hi.s32", TB(S32), "wwww", dp2a_hi_ss, NULL, 0},
    {"bmsk.clamp", TB(B32), "www", bmsk_clamp, NULL, 0}, {"bmsk.wrap", TB(B32), "www", bmsk_wrap, NULL, 0},
    {"mul24.lo", TB(U32), "www", mul24, NULL, 0},
    {"mov", TB(B16) | TB(B32) | TB(U16) | TB(S16) | TB(U32) | TB(S32) | TB(F32) | TB(F16) | TB(BF16) | TB(F16X2) | TB(BF16X2), "ww", move32, NULL, A_BITS(1)},
    {"mov", TB(B64) | TB(U64) | TB(S64) | TB(F64), "qq", move64, NULL, A_BITS(1)},
    /* the type looked up is the last, that of the deciding operand; decode_table.c has taken the first */
    {"slct", TB(S32), "wwww", slct32, NULL, A_BITS(2)}, {"slct", TB(F32), "wwww", slct_f32, slct_f32, A_BITS(2)},
    {"slct.wide", TB(S32), "qqqw", slct64, NULL, A_BITS(2)}, {"slct.wide", TB(F32), "qqqw", slct_f64, slct_f64, A_BITS(2)},
    {NULL, 0, NULL, NULL, NULL, 0},
};
/* clang-format on */
