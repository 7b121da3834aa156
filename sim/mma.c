/* mma: the arithmetic of the tensor cores, bit for bit. Per output the products are taken in blocks; a block's products and the
 * accumulator are aligned to the largest exponent, truncated to a fixed number of fraction bits, summed exactly and rounded
 * toward zero to f32, or to nearest even to f16; blocks are chained in the order of k. Model: arXiv 2512.07004 (Khattak and Mikaitis); its
 * parameters are a row of the table in arch.c. */
#include "mma.h"
#include "alu.h"
#include "run.h"
#include "special.h"
#include <string.h>

typedef int32_t v8 __attribute__((vector_size(32)));
typedef uint32_t w8 __attribute__((vector_size(32)));

enum { NOTHING = -5000 }; /* exponent of a zero: loses against every other */
typedef struct tile {     /* an mma's inputs, decoded: value = sig * 2^(exp - bits) */
    int32_t a_sig[16][16], a_exp[16][16];
    v8 b_sig[16], b_exp[16];
    uint32_t c[16][8], d[16][8];
    uint32_t a_raw[16][16], b_raw[16][8]; /* as f32 bits; filled for special values only */
    int bits;
    bool special;
} tile;

static void split(uint32_t x, int mantissa, int exponent, int32_t *sig, int32_t *exp, bool *special)
{
    int32_t m = (int32_t)(x & ((1u << mantissa) - 1)), e = (int32_t)(x >> mantissa & ((1u << exponent) - 1)), top = (1 << exponent) - 1;
    int32_t bias = top >> 1;
    *special |= e == top;
    int32_t s = e ? m | 1 << mantissa : m;
    *exp = s && e != top ? (e ? e : 1) - bias : NOTHING;
    if (e == top)
        s = 0;
    *sig = x >> (mantissa + exponent) & 1 ? -s : s;
}

#define LARGER(x, y) (((x) & ((x) > (y))) | ((y) & ((y) >= (x))))
#define SMALLER(x, y) (((x) & ((x) < (y))) | ((y) & ((y) <= (x))))

/* sum * 2^lsb toward zero to f32. */
static inline uint32_t to_float(int64_t sum, int lsb)
{
    if (!sum)
        return 0;
    uint32_t sign = sum < 0 ? 0x80000000u : 0;
    uint64_t s = sum < 0 ? 0 - (uint64_t)sum : (uint64_t)sum;
    int length = 64 - __builtin_clzll(s), q = lsb + length - 24;
    if (q < -149)
        q = -149;
    int shift = q - lsb;
    s = shift >= 0 ? shift > 63 ? 0 : s >> shift : s << -shift;
    if (s < 1u << 23)
        return sign | (s ? (uint32_t)s : 0); /* subnormal: q is -149 */
    int e = q + 23 + 127;
    return e >= 255 ? sign | 0x7F800000u : sign | (uint32_t)e << 23 | ((uint32_t)s & 0x7FFFFF);
}

/* sum * 2^lsb to nearest even to f16, as f32. */
static uint32_t to_half(int64_t sum, int lsb)
{
    if (!sum)
        return 0;
    uint32_t sign = sum < 0 ? 0x80000000u : 0;
    uint64_t s = sum < 0 ? 0 - (uint64_t)sum : (uint64_t)sum;
    int q = lsb + 64 - __builtin_clzll(s) - 11, shift; /* the exponent of the last bit kept */
    if (q < -24)
        q = -24;
    if ((shift = q - lsb) > 0) {
        uint64_t low = shift > 63 ? s : s & ((1ull << shift) - 1), tie = shift > 63 ? UINT64_MAX : 1ull << (shift - 1);
        s = shift > 63 ? 0 : s >> shift;
        s += low > tie || (low == tie && s & 1);
        lsb = q;
    }
    union {
        uint64_t q;
        double d;
    } scale = { .q = (uint64_t)(lsb + 1023) << 52 };
    double v = (double)s * scale.d; /* exact */
    return sign | (v >= 65536 ? 0x7F800000u : sim_bits((float)v));
}

SIM_FAST static void multiply(tile *t, int k, int block, int fraction, int floor, bool half)
{
    int up = fraction - 2 * t->bits, c_up = fraction - 23;
    const v8 most = (v8){ 0 } + 31;
    for (int row = 0; row < 16; row++) {
        uint32_t *acc = t->d[row];
        memcpy(acc, t->c[row], sizeof t->c[row]);
        for (int k0 = 0; k0 < k; k0 += block) {
            v8 c_sig, c_exp;
            for (int n = 0; n < 8; n++) {
                int32_t m = (int32_t)(acc[n] & 0x7FFFFF), e = (int32_t)(acc[n] >> 23 & 255);
                c_sig[n] = e ? m | 1 << 23 : m;
                c_exp[n] = c_sig[n] ? (e ? e : 1) - 127 : NOTHING;
            }
            v8 top = (v8){ 0 } + floor;
            top = LARGER(c_exp, top);
            for (int j = k0; j < k0 + block; j++) {
                v8 e = t->b_exp[j] + t->a_exp[row][j];
                top = LARGER(top, e);
            }
            v8 sum[2] = { { 0 }, { 0 } }; /* at most 8 terms below 2^27 each */
            for (int j = k0; j < k0 + block; j++) {
                v8 p = t->b_sig[j] * t->a_sig[row][j], neg = p >> 31;
                v8 down = top - (t->b_exp[j] + t->a_exp[row][j]);
                down = SMALLER(down, most);
                w8 mag = ((w8)((p ^ neg) - neg) << up) >> (w8)down;
                sum[j >> 3 & 1] += ((v8)mag ^ neg) - neg;
            }
            v8 c_down = top - c_exp;
            c_down = SMALLER(c_down, most);
            w8 c_mag = ((w8)c_sig << c_up) >> (w8)c_down;
            for (int n = 0; n < 8; n++) {
                if ((acc[n] & 0x7F800000) == 0x7F800000)
                    continue; /* an infinity stays */
                int64_t c = acc[n] >> 31 ? -(int64_t)c_mag[n] : (int64_t)c_mag[n];
                int64_t all = (int64_t)sum[0][n] + sum[1][n] + c;
                acc[n] = half ? to_half(all, top[n] - fraction) : to_float(all, top[n] - fraction);
            }
        }
    }
}

/* Infinities and NaNs: what they make of an output, over what multiply() computed without them. */
static void specials(tile *t, int k)
{
    for (int row = 0; row < 16; row++)
        for (int n = 0; n < 8; n++) {
            unsigned terms = sim_special_number(t->c[row][n]);
            for (int j = 0; j < k; j++)
                terms |= sim_special_product(t->a_raw[row][j], t->b_raw[j][n]);
            sim_special_sum(terms, &t->d[row][n]);
        }
}

static uint32_t widen(uint32_t x, int type) /* to f32 bits; only the class of the value matters */
{
    if (type == T_BF16)
        return x << 16;
    if (type == T_TF32)
        return x & 0xFFFFE000;
    uint32_t sign = x >> 15 << 31;
    return (x & 0x7C00) == 0x7C00 ? sign | 0x7F800000 | (x & 0x3FF) << 13 : sign | ((x & 0x7FFF) ? 0x3F800000 : 0);
}

/* Most products are ordinary numbers: m16n8k16 by the fast way. false: not this one. */
static bool ordinary(sim_warp *w, const sim_insn *i)
{
    sim_product *p = sim_product_of(w->block->cluster);
    if (!p)
        return false;
    p->type = (sim_type)i->type, p->n = 8, p->half = false;
    for (int r = 0; r < 4; r++) {
        const sim_vec *a = sim_arg(w, i, 4 + r), *c = sim_arg(w, i, 10 + r);
        for (int l = 0; l < 32; l++) {
            int row = l >> 2, col = 2 * (l & 3);
            memcpy(&p->a[row + 8 * (r & 1)][col + 8 * (r >> 1)], &a->u[l], 4);
            p->c[row + 8 * (r >> 1)][col + (r & 1)] = c->u[l];
        }
    }
    for (int r = 0; r < 2; r++) {
        const sim_vec *b = sim_arg(w, i, 8 + r);
        for (int l = 0; l < 32; l++)
            for (int h = 0; h < 2; h++)
                p->b[2 * (l & 3) + h + 8 * r][l >> 2] = (uint16_t)(b->u[l] >> 16 * h);
    }
    if (!sim_product_fast(p, w->block->launch->arch))
        return false;
    for (int r = 0; r < 4; r++) {
        if (i->arg[r] == SIM_NO_ARG)
            continue;
        sim_vec *v = sim_arg(w, i, r);
        for (int l = 0; l < 32; l++)
            v->u[l] = p->c[(l >> 2) + 8 * (r >> 1)][2 * (l & 3) + (r & 1)];
    }
    return true;
}

sim_step sim_run_mma(sim_warp *w, const sim_insn *i, uint32_t m)
{
    const sim_arch *arch = w->block->launch->arch;
    bool tf = i->type == T_TF32;
    int k = i->count, regs_a = tf ? k / 2 : k / 4, regs_b = regs_a / 2;
    int mantissa = i->type == T_BF16 ? 7 : 10, exponent = i->type == T_F16 ? 5 : 8;
    bool half = i->type2 == T_F16;
    int first = i->defs; /* A; two f16 accumulators share a register */
    if (m != SIM_ALL)
        return sim_fault(w, i, -1, SIM_CHECK_DIVERGENCE, "a matrix instruction needs all 32 lanes, but the mask is 0x%08x", m);
    if (i->type == T_S8)
        return sim_mma_integer(w, i);
    if (!tf && !half && k == 16 && ordinary(w, i))
        return STEP_NEXT;
    tile t;
    t.bits = mantissa, t.special = false;
    for (int r = 0; r < regs_a; r++) {
        const sim_vec *v = sim_arg(w, i, first + r);
        for (int l = 0; l < 32; l++) {
            int row = (l >> 2) + 8 * (r & 1);
            for (int h = 0; h < (tf ? 1 : 2); h++) {
                int at = tf ? (l & 3) + 4 * (r >> 1) : 2 * (l & 3) + h + 8 * (r >> 1);
                uint32_t x = tf ? v->u[l] >> 13 : v->u[l] >> 16 * h & 0xFFFF;
                split(x, mantissa, exponent, &t.a_sig[row][at], &t.a_exp[row][at], &t.special);
            }
        }
    }
    for (int r = 0; r < regs_b; r++) {
        const sim_vec *v = sim_arg(w, i, first + regs_a + r);
        for (int l = 0; l < 32; l++)
            for (int h = 0; h < (tf ? 1 : 2); h++) {
                int at = tf ? (l & 3) + 4 * r : 2 * (l & 3) + h + 8 * r;
                uint32_t x = tf ? v->u[l] >> 13 : v->u[l] >> 16 * h & 0xFFFF;
                int32_t sig, exp;
                split(x, mantissa, exponent, &sig, &exp, &t.special);
                t.b_sig[at][l >> 2] = sig, t.b_exp[at][l >> 2] = exp;
            }
    }
    for (int r = 0; r < 4; r++) {
        const sim_vec *v = sim_arg(w, i, first + regs_a + regs_b + (half ? r >> 1 : r));
        for (int l = 0; l < 32; l++) {
            uint32_t c = t.c[(l >> 2) + 8 * (r >> 1)][2 * (l & 3) + (r & 1)] =
                half ? sim_bits(sim_half_float((uint16_t)(v->u[l] >> 16 * (r & 1)))) : v->u[l];
            t.special |= (c & 0x7F800000) == 0x7F800000;
        }
    }
    int block = tf ? arch->block_tf32 : arch->block16;
    multiply(&t, k, block < k ? block : k, arch->fraction, half ? arch->floor16 : arch->floor, half);
    if (t.special) {
        for (int r = 0; r < regs_a; r++)
            for (int l = 0; l < 32; l++)
                for (int h = 0; h < (tf ? 1 : 2); h++) {
                    uint32_t x = sim_arg(w, i, first + r)->u[l];
                    t.a_raw[(l >> 2) + 8 * (r & 1)][tf ? (l & 3) + 4 * (r >> 1) : 2 * (l & 3) + h + 8 * (r >> 1)] =
                        widen(tf ? x : x >> 16 * h & 0xFFFF, i->type);
                }
        for (int r = 0; r < regs_b; r++)
            for (int l = 0; l < 32; l++)
                for (int h = 0; h < (tf ? 1 : 2); h++) {
                    uint32_t x = sim_arg(w, i, first + regs_a + r)->u[l];
                    t.b_raw[tf ? (l & 3) + 4 * r : 2 * (l & 3) + h + 8 * r][l >> 2] = widen(tf ? x : x >> 16 * h & 0xFFFF, i->type);
                }
        specials(&t, k);
    }
    for (int r = 0; r < first; r++) {
        if (i->arg[r] == SIM_NO_ARG)
            continue;
        sim_vec *v = sim_arg(w, i, r);
        for (int l = 0; l < 32; l++) {
            const uint32_t *at = &t.d[(l >> 2) + 8 * (half ? r : r >> 1)][2 * (l & 3) + (half ? 0 : r & 1)];
            v->u[l] = half ? sim_float_half(sim_f32(at[0])) | (uint32_t)sim_float_half(sim_f32(at[1])) << 16 : *at;
        }
    }
    return STEP_NEXT;
}

void sim_product_slow(sim_product *p, const sim_arch *arch)
{
    bool tf = p->type == T_TF32;
    int mantissa = p->type == T_BF16 ? 7 : 10, exponent = p->type == T_F16 ? 5 : 8, depth = tf ? 8 : 16,
        block = tf ? arch->block_tf32 : arch->block16;
    for (uint32_t n0 = 0; n0 < p->n; n0 += 8) {
        tile t;
        t.bits = mantissa, t.special = false;
        for (int k = 0; k < depth; k++) {
            for (int row = 0; row < 16; row++)
                split(tf ? p->a32[row][k] >> 13 : p->a[row][k], mantissa, exponent, &t.a_sig[row][k], &t.a_exp[row][k], &t.special);
            for (int n = 0; n < 8; n++) {
                int32_t sig, exp;
                split(tf ? p->b32[k][n0 + (uint32_t)n] >> 13 : p->b[k][n0 + (uint32_t)n], mantissa, exponent, &sig, &exp, &t.special);
                t.b_sig[k][n] = sig, t.b_exp[k][n] = exp;
            }
        }
        for (int row = 0; row < 16; row++) {
            memcpy(t.c[row], &p->c[row][n0], sizeof t.c[row]);
            for (int n = 0; n < 8; n++)
                t.special |= (t.c[row][n] & 0x7F800000) == 0x7F800000;
        }
        multiply(&t, depth, block < depth ? block : depth, arch->fraction, p->half ? arch->floor16 : arch->floor, p->half);
        if (t.special) {
            for (int k = 0; k < depth; k++) {
                for (int row = 0; row < 16; row++)
                    t.a_raw[row][k] = widen(tf ? p->a32[row][k] : p->a[row][k], p->type);
                for (int n = 0; n < 8; n++)
                    t.b_raw[k][n] = widen(tf ? p->b32[k][n0 + (uint32_t)n] : p->b[k][n0 + (uint32_t)n], p->type);
            }
            specials(&t, depth);
        }
        for (int row = 0; row < 16; row++)
            memcpy(&p->c[row][n0], t.d[row], sizeof t.d[row]);
    }
}

void sim_product_run(sim_product *p, const sim_arch *arch)
{
    if (p->type == T_S8)
        sim_product_integer(p);
    else if (p->type == T_E4M3 || p->type == T_E5M2)
        sim_product_eight(p, arch);
    else if (!sim_product_fast(p, arch))
        sim_product_slow(p, arch);
}
