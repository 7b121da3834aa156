/* product_eight: wgmma of numbers of 8 bits, as an H100 adds them up. Per output 32 products and the accumulator are aligned to the largest
 * exponent among them and cut to `fraction8` bits below it, toward zero; their sum is exact, and is cut to as many bits below its own
 * exponent. A product's exponent is the sum of those of its factors. So long sums lose what terms of one sign bring. Bit for bit what
 * bench/wgmma_sums.py has seen of an H100: docs/experiments.md. */
#include "alu.h"
#include "mma.h"
#include "special.h"
#include <string.h>

typedef int32_t v8 __attribute__((vector_size(32)));
typedef uint32_t u8 __attribute__((vector_size(32)));
typedef float f8 __attribute__((vector_size(32)));

enum { NOTHING = -5000, DEEP = 32 }; /* exponent of a zero: loses against every other; products of an output */

/* A number, and its exponent. Infinities and NaN: as numbers of f32. */
static float decode(uint8_t code, sim_type type, int32_t *e)
{
    int fraction = type == T_E5M2 ? 2 : 3, bias = type == T_E5M2 ? 15 : 7, top = type == T_E5M2 ? 31 : 15;
    uint32_t magnitude = code & 0x7F;
    int32_t exponent = (int32_t)(magnitude >> fraction), m = (int32_t)(magnitude & ((1u << fraction) - 1));
    bool special = type == T_E5M2 ? exponent == top : magnitude == 0x7F;
    *e = magnitude ? (exponent ? exponent : 1) - bias : NOTHING;
    if (special)
        return sim_f32((uint32_t)(code >> 7) << 31 | 0x7F800000 | (type == T_E5M2 ? (uint32_t)m << 21 : 0x400000));
    float power = sim_f32((uint32_t)((exponent ? exponent : 1) - bias - fraction + 127) << 23);
    float x = (float)(exponent ? m | 1 << fraction : m) * power;
    return code >> 7 ? -x : x;
}

static bool is_special(float x)
{
    return (sim_bits(x) & 0x7F800000) == 0x7F800000;
}

/* Both matrices. true: one of their numbers is infinite or none. */
static bool decode_all(sim_product *p)
{
    float value[2][256];
    int32_t exponent[2][256];
    bool special = false;
    for (int side = 0; side < 2; side++)
        for (int code = 0; code < 256; code++)
            value[side][code] = decode((uint8_t)code, side ? p->type_b : p->type, &exponent[side][code]);
    for (uint32_t k = 0; k < DEEP; k++) {
        for (uint32_t row = 0; row < 16; row++) {
            uint8_t code = (uint8_t)(p->a[row][k / 2] >> k % 2 * 8);
            p->da.v[row][k] = value[0][code], p->da.e[row][k] = exponent[0][code];
            special |= is_special(value[0][code]);
        }
        for (uint32_t n = 0; n < p->n; n++) {
            uint8_t code = (uint8_t)(p->b[k / 2][n] >> k % 2 * 8);
            p->db.v[k][n] = value[1][code], p->db.e[k][n] = exponent[1][code];
            special |= is_special(value[1][code]);
        }
    }
    return special;
}

/* What infinities and NaN make of an output; false: there are none. */
static bool odd_output(const sim_product *p, uint32_t row, uint32_t n, uint32_t c, uint32_t *out)
{
    unsigned terms = sim_special_number(c);
    for (uint32_t k = 0; k < DEEP; k++)
        terms |= sim_special_product(sim_bits(p->da.v[row][k]), sim_bits(p->db.v[k][n]));
    return sim_special_sum(terms, out);
}

#define LARGER(x, y) (((x) & ((x) > (y))) | ((y) & ((y) >= (x))))

/* Eight outputs of a row. */
static void eight_outputs(sim_product *p, uint32_t row, uint32_t at, int fraction)
{
    const v8 zero = { 0 };
    v8 bits, top = zero + NOTHING;
    u8 sum = { 0 }; /* wraps where a term is infinite or none: such outputs are odd_output's */
    memcpy(&bits, &p->c[row][at], sizeof bits);
    for (uint32_t k = 0; k < DEEP; k++) {
        v8 e;
        memcpy(&e, &p->db.e[k][at], sizeof e);
        e += p->da.e[row][k];
        top = LARGER(top, e);
    }
    v8 some = top > NOTHING / 2; /* a product that is not zero */
    v8 ce = bits >> 23 & 255, c_some = (bits & 0x7FFFFFFF) != 0;
    ce = LARGER(ce, zero + 1) - 127;
    ce = (ce & c_some) | (~c_some & NOTHING);
    top = LARGER(top, ce);
    top &= some;
    f8 scale = (f8)((fraction + 127 - top) << 23), back = (f8)((top - fraction + 127) << 23);
    for (uint32_t k = 0; k < DEEP; k++) {
        f8 v;
        memcpy(&v, &p->db.v[k][at], sizeof v);
        sum += (u8) __builtin_convertvector(v * p->da.v[row][k] * scale, v8);
    }
    f8 c = (f8)(bits & some); /* without a product an accumulator is cut below: it may be too small to be scaled, or too large */
    sum += (u8) __builtin_convertvector(c * scale, v8);
    v8 exact = (v8) __builtin_convertvector((v8)sum, f8); /* of less than 2^24 */
    f8 result = (f8)(exact & ~((1 << (23 - fraction)) - 1)) * back;
    v8 cut = bits & ~((1 << (23 - fraction)) - 1);
    v8 out = ((v8)result & some) | (cut & ~some & ((cut & 0x7FFFFFFF) != 0));
    memcpy(&p->c[row][at], &out, sizeof out);
}

void sim_product_eight(sim_product *p, const sim_arch *arch)
{
    bool special = decode_all(p);
    for (uint32_t row = 0; row < 16; row++)
        for (uint32_t n = 0; n < p->n; n += 8) {
            uint32_t before[8];
            memcpy(before, &p->c[row][n], sizeof before);
            eight_outputs(p, row, n, arch->fraction8);
            for (uint32_t k = 0; k < 8; k++)
                if (special || (before[k] & 0x7F800000) == 0x7F800000)
                    if (odd_output(p, row, n + k, before[k], &before[k]))
                        p->c[row][n + k] = before[k];
        }
}
