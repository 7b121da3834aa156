/* product: the fast way through the arithmetic of mma.c, for the large tiles of wgmma. Products of 16-bit numbers are exact in
 * f32 and cutting them at the last kept bit is a conversion toward zero: per output, the largest exponent gives the scale, then
 * every term is a multiplication, a scaling by a power of two and a truncating conversion to an integer. Sums are exact. */
#include "mma.h"
#include <stdlib.h>
#include <string.h>

typedef int32_t v8 __attribute__((vector_size(32)));
typedef float f8 __attribute__((vector_size(32)));
typedef uint64_t __attribute__((may_alias)) bits64;

enum {
    NOTHING = -5000, /* exponent of a zero: loses against every other */
    LOWEST = -100,   /* below this alignment exponent the scale is no f32, and a product may be subnormal: one by one */
    HIGHEST = 120    /* sum of the largest exponents: no product overflows */
};

typedef struct sim_decoded operand;

static inline void raise_to(v8 *x, const v8 *y) /* the larger of the two */
{
    for (int n = 0; n < 8; n++)
        (*x)[n] = (*x)[n] > (*y)[n] ? (*x)[n] : (*y)[n];
}

/* Values and exponents of a row of numbers. Returns the largest exponent; INT32_MAX: there is an infinity or a NaN. */
static inline int32_t decode(const uint16_t *x, uint32_t n, bool half, float *restrict v, int32_t *restrict e)
{
    int32_t most = NOTHING, special = 0;
    int mantissa = half ? 10 : 7, top = half ? 31 : 255, bias = half ? 15 : 127;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t u = x[k], m = u & 0x7FFF;
        int32_t exp = (int32_t)(m >> mantissa);
        special |= exp == top;
        exp = (exp ? exp : 1) - bias;
        exp = m ? exp : NOTHING;
        most = exp > most ? exp : most;
        e[k] = exp;
        /* a subnormal f16 is a normal f32: 2^-14 and its fraction, less 2^-14; no arithmetic on subnormals, which is slow */
        uint32_t sign = (u >> 15) << 31, tiny = half && m < 0x400;
        union {
            uint32_t u;
            float f;
        } y = { .u = (half ? (m << 13) + ((tiny ? 113u : 112u) << 23) : m << 16) | sign }, less = { .u = tiny ? 113u << 23 | sign : 0 };
        v[k] = y.f - less.f;
    }
    return special ? INT32_MAX : most;
}

/* One output, term by term: for alignments that are too small for f32. */
static uint32_t single(const operand *a, const operand *b, int row, uint32_t n, int first, int block, uint32_t c, int fraction, int floor)
{
    int32_t top = floor;
    double sum = 0, scale;
    float f = sim_f32(c);
    int ce = (int)(c >> 23 & 255);
    if (f != 0 && (ce ? ce : 1) - 127 > top)
        top = (ce ? ce : 1) - 127;
    for (int k = first; k < first + block; k++) {
        int32_t e = a->e[row][k] + b->e[k][n];
        top = e > top ? e : top;
    }
    /* at most 2^27 per term and 17 terms: exact in f64; the scale is at most 2^160 */
    union {
        double d;
        uint64_t q;
    } power = { .q = (uint64_t)(fraction - top + 1023) << 52 };
    scale = power.d;
    for (int k = first; k < first + block; k++)
        sum += (double)(int64_t)((double)a->v[row][k] * (double)b->v[k][n] * scale);
    sum += (double)(int64_t)((double)f * scale);
    union {
        double d;
        uint64_t q;
    } x = { .d = sum };
    x.q &= ~0x1FFFFFFFull;
    sum = x.d / scale;
    float r = (float)sum; /* a subnormal result is cut, not rounded */
    double back = (double)r;
    if ((back < 0 ? -back : back) > (sum < 0 ? -sum : sum))
        return sim_bits(r) - 1;
    return sum == 0 ? 0 : sim_bits(r);
}

SIM_FAST static void finish(const int32_t *restrict sum, const int32_t *restrict term, const int32_t *restrict top, uint32_t n,
                            int fraction, float *restrict out)
{
    double v[SIM_COLUMNS], scale[SIM_COLUMNS];
    for (uint32_t k = 0; k < n; k++)
        v[k] = (double)sum[k] + (double)term[k];
    bits64 *q = (bits64 *)(void *)v, *s = (bits64 *)(void *)scale;
    for (uint32_t k = 0; k < n; k++)
        q[k] &= ~0x1FFFFFFFull; /* 24 bits, toward zero */
    for (uint32_t k = 0; k < n; k++)
        s[k] = (uint64_t)(uint32_t)(top[k] - fraction + 1023) << 52;
    for (uint32_t k = 0; k < n; k++)
        out[k] = (float)(v[k] * scale[k]);
}

SIM_FAST static void rows(const operand *a, const operand *b, uint32_t (*c)[SIM_COLUMNS], uint32_t n, int block, int fraction, int floor)
{
    const v8 zero = { 0 }, one = zero + 1, least_exp = zero + floor, lowest = zero + LOWEST;
    int32_t sum[SIM_COLUMNS], term[SIM_COLUMNS], top[SIM_COLUMNS], alone[SIM_COLUMNS];
    for (int row = 0; row < 16; row++)
        for (int first = 0; first < 16; first += block) {
            bool low = false;
            for (uint32_t at = 0; at < n; at += 8) {
                v8 bits, ce, exp = zero + NOTHING, acc = zero;
                memcpy(&bits, &c[row][at], sizeof bits);
                ce = bits >> 23 & 255;
                raise_to(&ce, &one);
                ce -= 127;
                ce = (ce & ((bits & 0x7FFFFFFF) != 0)) | (NOTHING & ((bits & 0x7FFFFFFF) == 0));
                for (int k = first; k < first + block; k++) {
                    v8 e;
                    memcpy(&e, &b->e[k][at], sizeof e);
                    e += a->e[row][k];
                    raise_to(&exp, &e);
                }
                v8 something = (exp > NOTHING / 2) | ((bits & 0x7FFFFFFF) != 0); /* else the output is zero whatever the scale */
                raise_to(&exp, &ce);
                raise_to(&exp, &least_exp);
                v8 safe = exp;
                raise_to(&safe, &lowest);
                memcpy(&top[at], &safe, sizeof safe);
                f8 scale = (f8)((fraction + 127 - safe) << 23);
                for (int k = first; k < first + block; k++) {
                    f8 v;
                    memcpy(&v, &b->v[k][at], sizeof v);
                    acc += __builtin_convertvector(v * a->v[row][k] * scale, v8);
                }
                memcpy(&sum[at], &acc, sizeof acc);
                v8 t = __builtin_convertvector((f8)bits * scale, v8);
                memcpy(&term[at], &t, sizeof t);
                v8 below = (exp < LOWEST) & something;
                memcpy(&alone[at], &below, sizeof below);
                int32_t any = 0;
                for (int x = 0; x < 8; x++)
                    any |= below[x];
                low |= any != 0;
            }
            uint32_t before[SIM_COLUMNS];
            if (low)
                memcpy(before, c[row], n * sizeof *before);
            finish(sum, term, top, n, fraction, (float *)(void *)c[row]);
            for (uint32_t at = 0; low && at < n; at++)
                if (alone[at])
                    c[row][at] = single(a, b, row, at, first, block, before[at], fraction, floor);
        }
}

bool sim_product_fast(sim_product *p, const sim_arch *arch)
{
    operand *a = &p->da, *b = &p->db;
    int32_t most_a = NOTHING, most_b = NOTHING;
    uint32_t top = 0;
    bool half = p->type == T_F16;
    if (16 % arch->block16 || p->half || p->type == T_TF32)
        return false;
    for (int k = 0; k < 16; k++) {
        int32_t e = decode(p->a[k], 16, half, a->v[k], a->e[k]), f = decode(p->b[k], p->n, half, b->v[k], b->e[k]);
        most_a = e > most_a ? e : most_a, most_b = f > most_b ? f : most_b;
        for (uint32_t n = 0; n < p->n; n++) {
            uint32_t x = p->c[k][n] & 0x7FFFFFFF;
            top = x > top ? x : top;
        }
    }
    if (most_a == INT32_MAX || most_b == INT32_MAX || most_a + most_b > HIGHEST || top >= 0x7F800000)
        return false;
    rows(a, b, p->c, p->n, arch->block16, arch->fraction, arch->floor);
    return true;
}

sim_product *sim_product_of(sim_cluster *c)
{
    if (!c->product)
        c->product = malloc(sizeof *c->product);
    return c->product;
}
