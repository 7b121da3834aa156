/* Formats of few bits, row by row of gen/formats.def: every code and every place of a block against definitions written apart, quantizers
 * on ties, zeros, infinities, NaN and beyond the range, and what kernels unpack on the simulator, of all codes at all places of a word. */
#include "gen/config.h"
#include "gen/format.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include "test_gen_toy.h"
#include "verify/operands/number.h"
#include "verify/operands/random.h"
#include <math.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())
#define EACH(f) for (size_t row_ = 0; (f = fa_format_row(row_)); row_++)

/* What a code is, told apart from the table. */
static double defined(int dtype, uint32_t c)
{
    int sign = c & 0x80 ? -1 : 1;
    switch (dtype) {
    case FA_E4M3:
        return (c & 0x7f) == 0x7f ? NAN : sign * (c & 0x78 ? (8 + (c & 7)) * pow(2, (double)(c >> 3 & 15) - 10) : (c & 7) / 512.0);
    case FA_E5M2:
        return (double)fa_number_from_f16((uint16_t)(c << 8));
    case FA_S8:
    case FA_Q8_0:
        return (int8_t)c;
    case FA_Q4_0:
        return (int)c - 8;
    case FA_Q4_1:
    case FA_Q5_1:
        return c;
    case FA_Q5_0:
        return (int)c - 16;
    case FA_IQ4_NL: { /* kvalues_iq4nl of ggml */
        static const int table[] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };
        return table[c];
    }
    case FA_NVFP4: { /* e2m1 */
        static const double sizes[] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };
        return c & 8 ? -sizes[c & 7] : sizes[c & 7];
    }
    }
    return -1e9;
}

static bool same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

Test(formats, codes_are_what_the_definitions_say)
{
    const fa_format *f;
    size_t n = 0;
    EACH(f)
    {
        cr_assert_eq(f, fa_format_of(f->dtype));
        for (uint32_t c = 0; c < (uint32_t)fa_format_codes(f); c++) {
            double x = fa_format_number(f, c);
            cr_assert(same(x, defined(f->dtype, c)), "%s, code %02x: %g", f->name, c, x);
            cr_assert(isnan(x) || (x == (double)fa_number_round((float)x, FA_F16) && x == (double)fa_number_round((float)x, FA_BF16)),
                      "%s, code %02x: %g is no number of 16 bits", f->name, c, x);
        }
        n++;
    }
    cr_assert_eq(n, 10);
    cr_assert_null(fa_format_of(FA_F32));
    cr_assert_null(fa_format_of(FA_E4M3 + (int)n));
}

/* ggml's structs of 32 elements, and nvfp4 of 64: bytes of a block, where scale, least number, highest bits and codes lie. In blocks of 4
 * and 5 bits elements j and j + 16 share byte j, of nvfp4 j and j + 8 of each 16. */
static const struct {
    int dtype, block, bytes, least, high, codes;
} blocks[] = {
    { FA_Q8_0, 32, 34, 0, 0, 2 }, { FA_Q4_0, 32, 18, 0, 0, 2 },   { FA_Q4_1, 32, 20, 2, 0, 4 },  { FA_Q5_0, 32, 22, 0, 2, 6 },
    { FA_Q5_1, 32, 24, 2, 4, 8 }, { FA_IQ4_NL, 32, 18, 0, 0, 2 }, { FA_NVFP4, 64, 36, 0, 0, 4 },
};
enum { BLOCKS = sizeof blocks / sizeof *blocks };

/* The bits of a code of element i in a row, as places of `before`. */
static void put(const fa_format *f, unsigned char *row, int i, uint32_t c)
{
    int k = 0;
    while (k < BLOCKS && blocks[k].dtype != f->dtype)
        k++;
    if (k == BLOCKS || f->dtype == FA_Q8_0) {
        row[k == BLOCKS ? i : i / 32 * 34 + 2 + i % 32] = (unsigned char)c;
        return;
    }
    int block = i / blocks[k].block, half = f->dtype == FA_NVFP4 ? 8 : 16, in = i % blocks[k].block;
    unsigned char *const at = row + block * blocks[k].bytes, *const byte = at + blocks[k].codes + in / (2 * half) * half + in % half;
    int shift = in % (2 * half) < half ? 0 : 4;
    *byte = (unsigned char)((*byte & ~(15u << shift)) | (c & 15) << shift);
    if (blocks[k].high) {
        uint32_t high;
        memcpy(&high, at + blocks[k].high, 4);
        high = (high & ~(1u << in)) | c >> 4 << in;
        memcpy(at + blocks[k].high, &high, 4);
    }
}

Test(formats, every_place_of_a_block)
{
    const fa_format *f;
    EACH(f)
    {
        enum { ROW = 64 };
        for (int i = 0; i < ROW; i++)
            for (uint32_t c = 0; c < (uint32_t)fa_format_codes(f); c++) {
                unsigned char row[ROW * 2 + 8], before[sizeof row];
                memset(row, 0xa5, sizeof row);
                memcpy(before, row, sizeof row);
                fa_format_set_code(f, row, i, c);
                cr_assert_eq(fa_format_code(f, row, i), c, "%s, element %d", f->name, i);
                put(f, before, i, c);
                cr_assert(!memcmp(row, before, sizeof row), "%s, element %d, code %02x", f->name, i, c);
            }
        for (int k = 0; k < BLOCKS; k++)
            if (blocks[k].dtype == f->dtype)
                cr_assert_eq(fa_format_bytes(f, ROW), ROW / blocks[k].block * blocks[k].bytes, "%s", f->name);
        for (int i = 0; f->scale_dtype && i < ROW; i++) {
            unsigned char row[80] = { 0 };
            int shared = f->dtype == FA_NVFP4 ? 16 : 32; /* e4m3: bc is -0.375 */
            fa_format_set_scale(f, row, i, f->dtype == FA_NVFP4 ? 0xac : fa_number_to_f16(-0.375f));
            fa_format_set_least(f, row, i, fa_number_to_f16(0.25f));
            for (int j = 0; j < ROW; j++) {
                cr_assert_eq(fa_format_scale(f, row, j), i / shared == j / shared ? -0.375 : 0, "%s, %d of %d", f->name, j, i);
                cr_assert_eq(fa_format_least(f, row, j), f->least_at && i / 32 == j / 32 ? 0.25 : 0, "%s, %d of %d", f->name, j, i);
            }
            fa_format_set_code(f, row, i, 3);
            cr_assert_eq(fa_format_value(f, row, i), -0.375 * fa_format_number(f, 3) + (f->least_at ? 0.25 : 0));
        }
    }
}

/* Where a block's numbers lie, byte by byte. */
Test(formats, headers_of_blocks)
{
    for (int k = 0; k < BLOCKS; k++) {
        const fa_format *f = fa_format_of(blocks[k].dtype);
        unsigned char row[80] = { 0 }, want[80] = { 0 };
        bool shares = f->dtype == FA_NVFP4;
        for (int i = 0; i < 64; i += shares ? 16 : 32) {
            fa_format_set_scale(f, row, i + 3, (uint16_t)(0x1234 + i));
            fa_format_set_least(f, row, i + 5, (uint16_t)(0x5678 + i));
            if (shares)
                want[i / 16] = (unsigned char)(0x34 + i);
            else
                memcpy(want + i / 32 * blocks[k].bytes, &(uint16_t){ (uint16_t)(0x1234 + i) }, 2);
            if (blocks[k].least)
                memcpy(want + i / 32 * blocks[k].bytes + blocks[k].least, &(uint16_t){ (uint16_t)(0x5678 + i) }, 2);
        }
        cr_assert(!memcmp(row, want, sizeof row), "%s", f->name);
    }
}

/* The nearest code by looking at all of them: of two that are as near the even one. */
static uint32_t nearest(const fa_format *f, double x)
{
    uint32_t best = 0;
    double distance = INFINITY;
    for (uint32_t c = 0; c < (uint32_t)fa_format_codes(f); c++) {
        double y = fa_format_number(f, c);
        if (!isfinite(y) || signbit(y) != signbit(x))
            continue;
        double to = fabs(y - x);
        bool even = !(c & 1);
        if (to < distance || (to == distance && even))
            best = c, distance = to;
    }
    return best;
}

Test(formats, nearest_codes)
{
    const fa_format *f;
    fa_random r = { 3 };
    EACH(f)
    {
        double most = 0;
        for (uint32_t c = 0; c < (uint32_t)fa_format_codes(f); c++) {
            double x = fa_format_number(f, c);
            if (isnan(x)) {
                cr_assert_eq(fa_format_nearest(f, (float)x), 0x7f);
                continue;
            }
            if (isfinite(x))
                most = fmax(most, x);
            if (isfinite(x))
                cr_assert_eq(fa_format_nearest(f, (float)x), c, "%s: %g", f->name, x);
        }
        uint32_t top = fa_format_nearest(f, (float)most), bottom = fa_format_nearest(f, -INFINITY);
        cr_assert_eq(fa_format_nearest(f, INFINITY), top);
        cr_assert_eq(fa_format_nearest(f, 3e38f), top);
        cr_assert_eq(fa_format_nearest(f, -3e38f), bottom);
        cr_assert(fa_format_number(f, bottom) <= -most || !f->zero, "%s", f->name);
        if (f->kind == FA_CODE_FLOATS) {
            uint32_t sign = 1u << (f->bits - 1);
            cr_assert_eq(fa_format_nearest(f, NAN), f->bits == 8 ? 0x7f : 0);
            cr_assert_eq(fa_format_nearest(f, -0.f), sign);
            cr_assert_eq(fa_format_nearest(f, 0.f), 0);
            /* ties between neighbours, and a step of fp32 to either side */
            for (uint32_t c = 0; c + 1 < sign && isfinite(fa_format_number(f, c + 1)); c++) {
                float mid = (float)((fa_format_number(f, c) + fa_format_number(f, c + 1)) / 2);
                cr_assert_eq(fa_format_nearest(f, mid), c & 1 ? c + 1 : c, "%s, tie above code %02x", f->name, c);
                cr_assert_eq(fa_format_nearest(f, nextafterf(mid, 0)), c);
                cr_assert_eq(fa_format_nearest(f, nextafterf(mid, INFINITY)), c + 1);
                cr_assert_eq(fa_format_nearest(f, -mid), sign | (c & 1 ? c + 1 : c));
            }
        } else if (f->kind == FA_CODE_TABLE) { /* ties to the larger */
            cr_assert_eq(fa_format_nearest(f, NAN), 8);
            for (uint32_t c = 0; c < 15; c++) {
                float mid = (float)((fa_format_number(f, c) + fa_format_number(f, c + 1)) / 2);
                cr_assert_eq(fa_format_nearest(f, mid), c + 1);
                cr_assert_eq(fa_format_nearest(f, nextafterf(mid, -INFINITY)), c);
            }
        } else if (f->kind == FA_CODE_SIGNED) {
            cr_assert_eq(fa_format_nearest(f, NAN), 0);
            cr_assert_eq(fa_format_nearest(f, 2.5f), 2);
            cr_assert_eq(fa_format_nearest(f, 3.5f), 4);
            cr_assert_eq((int8_t)fa_format_nearest(f, -2.5f), -2);
            cr_assert_eq((int8_t)fa_format_nearest(f, -128.5f), -128);
        } else
            cr_assert_eq(fa_format_nearest(f, NAN), (uint32_t)f->zero);
        for (int i = 0; i < 4000; i++) {
            float x = (float)(fa_random_normal(&r) * exp(fa_random_normal(&r)) * most / 8);
            if (f->kind == FA_CODE_FLOATS)
                cr_assert_eq(fa_format_nearest(f, x), nearest(f, (double)x), "%s: %g", f->name, (double)x);
            else if (f->kind != FA_CODE_TABLE)
                cr_assert_eq(fa_format_number(f, fa_format_nearest(f, x)), fmax(fa_format_number(f, bottom), fmin(most, rint((double)x))),
                             "%s: %g", f->name, (double)x);
        }
    }
}

Test(formats, scales_that_are_given_or_found)
{
    const fa_format *e = fa_format_of(FA_E4M3), *s = fa_format_of(FA_S8);
    cr_assert_eq(fa_format_quantize(e, 0.f, 0.f), 0);
    cr_assert_eq(fa_format_quantize(e, 5.f, 0.f), 0);
    cr_assert_eq(fa_format_quantize(e, NAN, 0.f), 0x7f);
    cr_assert_eq(fa_format_quantize(s, NAN, 0.f), 0);
    cr_assert_eq(fa_format_quantize(e, 3.f, 2.f), fa_format_nearest(e, 1.5f));
    cr_assert_eq(fa_format_quantize(e, -900.f, 2.f), 0xfe);
    cr_assert_eq(fa_format_quantize(s, 1.f, NAN), 0);
    cr_assert_eq(fa_format_quantize(e, 1.f, NAN), 0x7f);
    /* x / scale is no product with 1 / scale: 1 / 49 rounded, times 24.5 * 49, is below 24.5 */
    int differ = 0;
    for (int i = 1; i < 3000; i++) {
        float scale = (float)i / 64, x = scale * 24.5f, by = x * (1 / scale), q = x / scale;
        cr_assert_eq(fa_format_quantize(s, x, scale), (uint32_t)(int)rintf(q));
        differ += rintf(by) != rintf(q);
    }
    cr_assert_gt(differ, 0);
    const float x[] = { 1, -8, 3, NAN }, big[] = { 1, -INFINITY };
    cr_assert_eq(fa_format_amax_scale(e, x, 4), 8.f / 448);
    cr_assert_eq(fa_format_amax_scale(s, x, 3), 8.f / 127);
    cr_assert(isnan(fa_format_amax_scale(s, x, 4)));
    cr_assert_eq(fa_format_amax_scale(e, big, 2), 0x1.fffffep127f / 448);
    cr_assert_eq(fa_format_amax_scale(e, x, 0), 0.f);
}

/* Those of quantize_row_q4_1_ref, quantize_row_q5_0_ref, quantize_row_q5_1_ref and quantize_row_iq4_nl_ref after their scale. */
static void ggml_later_block(int dtype, unsigned char *block, const float *x, float least, float id, uint16_t m)
{
    const bool ranges = dtype == FA_Q4_1 || dtype == FA_Q5_1, five = dtype == FA_Q5_0 || dtype == FA_Q5_1;
    int codes[32];
    volatile float s = 0, t = 0;
    for (int j = 0; j < 32; j++) {
        volatile float from = ranges ? x[j] - least : x[j], y = from * id, up = y + (dtype == FA_Q5_0 ? 16.5f : 0.5f);
        codes[j] = (int8_t)up < (five ? 31 : 15) ? (int8_t)up : five ? 31 : 15;
        if (dtype == FA_IQ4_NL) {
            double best = INFINITY;
            for (int k = 0; k < 16; k++) /* of two as near, the larger */
                if (fabs(defined(dtype, (uint32_t)k) - (double)y) <= best)
                    best = fabs(defined(dtype, (uint32_t)k) - (double)y), codes[j] = k;
            volatile float n = (float)defined(dtype, (uint32_t)codes[j]), w = x[j] * x[j], wn = w * n, a = wn * x[j], b = wn * n;
            s += a, t += b;
        }
    }
    uint32_t high = 0;
    int at = dtype == FA_IQ4_NL ? 2 : dtype == FA_Q4_1 ? 4 : dtype == FA_Q5_0 ? 6 : 8;
    for (int j = 0; j < 16; j++) {
        block[at + j] = (unsigned char)((codes[j] & 15) | (codes[j + 16] & 15) << 4);
        high |= (uint32_t)(codes[j] >> 4) << j | (uint32_t)(codes[j + 16] >> 4) << (j + 16);
    }
    if (ranges)
        memcpy(block + 2, &m, 2);
    if (five)
        memcpy(block + at - 4, &high, 4);
    if (dtype == FA_IQ4_NL && t > 0) { /* with t = 0 ggml has no result */
        volatile float fitted = s / t;
        uint16_t half = fa_number_to_f16(fitted);
        memcpy(block, &half, 2);
    }
}

/* ggml's functions for rows, in its own words' order: quantize_row_q8_0_ref, quantize_row_q4_0_ref. volatile: each step is rounded. */
static void ggml_block(int dtype, unsigned char *block, const float *x)
{
    volatile float amax = 0, max = 0, least = x[0], most = x[0];
    for (int j = 0; j < 32; j++) {
        if (amax < fabsf(x[j]))
            amax = fabsf(x[j]), max = x[j];
        least = x[j] < least ? x[j] : least, most = x[j] > most ? x[j] : most;
    }
    volatile float range = most - least,
                   d = dtype == FA_Q8_0     ? amax / 127
                       : dtype == FA_Q4_0   ? max / -8
                       : dtype == FA_Q5_0   ? max / -16
                       : dtype == FA_IQ4_NL ? max / -127
                                            : range / (dtype == FA_Q4_1 ? 15 : 31),
                   id = d != 0 ? 1.f / d : 0.f;
    uint16_t half = fa_number_to_f16(d), m = fa_number_to_f16(least);
    memcpy(block, &half, 2);
    if (dtype != FA_Q8_0 && dtype != FA_Q4_0) {
        ggml_later_block(dtype, block, x, least, id, m);
        return;
    }
    for (int j = 0; j < (dtype == FA_Q8_0 ? 32 : 16); j++)
        if (dtype == FA_Q8_0) {
            volatile float y = x[j] * id;
            block[2 + j] = (unsigned char)(int8_t)roundf(y);
        } else {
            volatile float lo = x[j] * id, hi = x[j + 16] * id, l = lo + 8.5f, h = hi + 8.5f;
            int a = (int8_t)l < 15 ? (int8_t)l : 15, b = (int8_t)h < 15 ? (int8_t)h : 15;
            block[2 + j] = (unsigned char)(a | b << 4);
        }
}

Test(formats, blocks_are_those_of_ggml)
{
    static const int dtypes[] = { FA_Q8_0, FA_Q4_0, FA_Q4_1, FA_Q5_0, FA_Q5_1, FA_IQ4_NL };
    fa_random r = { 5 };
    for (int k = 0; k < 6; k++) {
        const fa_format *f = fa_format_of(dtypes[k]);
        for (int n = 0; n < 3000; n++) {
            float x[64];
            unsigned char got[80] = { 0 }, want[80] = { 0 };
            double size = exp(fmin(k == 2 || k == 4 ? 8 : 10, 8 * fa_random_normal(&r))); /* below what fp16 holds of a scale */
            for (int i = 0; i < 64; i++) /* normal numbers, whole ones that meet ties, few different ones, zeros */
                x[i] = n % 4 == 0   ? (float)(size * fa_random_normal(&r))
                       : n % 4 == 1 ? (float)fa_random_within(&r, -254, 254) / 2
                       : n % 4 == 2 ? (float)fa_random_within(&r, -2, 2)
                                    : (n == 3 ? 0.f : (float)(fa_random_normal(&r) * 1e-7));
            fa_format_quantize_row(f, got, x, 64);
            ggml_block(dtypes[k], want, x);
            ggml_block(dtypes[k], want + f->block_bytes, x + 32);
            cr_assert(!memcmp(got, want, 2 * (size_t)f->block_bytes), "%s, row %d", f->name, n);
        }
    }
}

Test(formats, blocks_beyond_what_ggml_defines)
{
    static const int dtypes[] = { FA_Q8_0, FA_Q4_0, FA_Q5_0, FA_IQ4_NL };
    for (int k = 0; k < 4; k++) {
        const fa_format *f = fa_format_of(dtypes[k]);
        uint32_t zero = fa_format_nearest(f, 0), top = k ? 0 : 127; /* the largest of q4_0 is code 0: its scale is negative */
        unsigned char row[40];
        float x[32] = { [3] = 1, [9] = NAN };
        fa_format_quantize_row(f, row, x, 32);
        cr_assert(isnan(fa_format_scale(f, row, 0)));
        for (int i = 0; i < 32; i++)
            cr_assert_eq(fa_format_code(f, row, i), zero);
        x[9] = INFINITY;
        fa_format_quantize_row(f, row, x, 32);
        cr_assert_eq(fabs(fa_format_scale(f, row, 0)), 65504);
        cr_assert_eq(fa_format_code(f, row, 9), top);
        cr_assert_eq(fa_format_code(f, row, 3), zero);
        cr_assert_gt(fa_format_value(f, row, 9), 65504.0 * 7);
        x[9] = 1e8f, x[10] = -1e8f;
        fa_format_quantize_row(f, row, x, 32);
        cr_assert_eq(fabs(fa_format_scale(f, row, 0)), 65504);
        cr_assert_gt(fa_format_value(f, row, 9), 65504.0 * 7 - 1);
        cr_assert_lt(fa_format_value(f, row, 10), -65504.0 * 6);
        x[9] = x[10] = x[3] = 0x1p-149f;
        fa_format_quantize_row(f, row, x, 32); /* 1 / d is infinite */
        cr_assert_eq(fa_format_scale(f, row, 0), 0);
        for (int i = 0; i < 32; i++)
            cr_assert_eq(fa_format_code(f, row, i), zero);
    }
}

Test(formats, blocks_of_ranges_beyond_what_ggml_defines)
{
    static const int dtypes[] = { FA_Q4_1, FA_Q5_1 };
    for (int k = 0; k < 2; k++) {
        const fa_format *f = fa_format_of(dtypes[k]);
        const uint32_t top = k ? 31 : 15;
        unsigned char row[24];
        float x[32] = { [3] = 1, [9] = NAN };
        fa_format_quantize_row(f, row, x, 32);
        cr_assert(isnan(fa_format_scale(f, row, 0)) && isnan(fa_format_least(f, row, 0)));
        cr_assert_eq(fa_format_code(f, row, 3), 0);
        x[9] = INFINITY;
        fa_format_quantize_row(f, row, x, 32);
        cr_assert_eq(fa_format_scale(f, row, 0), 65504);
        cr_assert_eq(fa_format_least(f, row, 0), 0);
        cr_assert_eq(fa_format_code(f, row, 9), top);
        cr_assert_eq(fa_format_code(f, row, 3), 0);
        x[10] = -INFINITY;
        fa_format_quantize_row(f, row, x, 32);
        cr_assert_eq(fa_format_value(f, row, 10), -65504);
        cr_assert_eq(fa_format_code(f, row, 9), top);
        cr_assert_eq(fa_format_code(f, row, 3), 1);
        for (int i = 0; i < 32; i++)
            x[i] = INFINITY;
        fa_format_quantize_row(f, row, x, 32);
        cr_assert_eq(fa_format_value(f, row, 7), 65504);
        for (int i = 0; i < 32; i++)
            x[i] = i % 2 ? 0.f : -0.f;
        fa_format_quantize_row(f, row, x, 32);
        cr_assert(fa_format_scale(f, row, 0) == 0 && !signbit(fa_format_scale(f, row, 0)));
        cr_assert(signbit(fa_format_least(f, row, 0))); /* the first of the least */
    }
}

/* Scales in e4m3, of 16 elements each. */
Test(formats, shares_of_a_block)
{
    const fa_format *f = fa_format_of(FA_NVFP4), *e = fa_format_of(FA_E4M3);
    unsigned char row[36];
    float x[64] = { [1] = 3, [2] = -6.5f, [17] = NAN, [18] = 5, [33] = INFINITY, [34] = 1e38f, [35] = -300, [49] = 1e-5f };
    fa_format_quantize_row(f, row, x, 64);
    cr_assert_eq(fa_format_scale(f, row, 0), fa_format_number(e, fa_format_nearest(e, 6.5f / 6)));
    cr_assert_eq(fa_format_code(f, row, 1), fa_format_nearest(f, 3 / (float)fa_format_scale(f, row, 1)));
    cr_assert_eq(fa_format_value(f, row, 2), -6 * fa_format_scale(f, row, 0));
    cr_assert(isnan(fa_format_scale(f, row, 16)));
    for (int i = 16; i < 32; i++)
        cr_assert_eq(fa_format_code(f, row, i), 0);
    cr_assert_eq(fa_format_value(f, row, 33), 6 * 448);
    cr_assert_eq(fa_format_value(f, row, 34), 6 * 448);
    cr_assert_eq(fa_format_value(f, row, 35), -0.5 * 448);
    cr_assert_eq(fa_format_scale(f, row, 63), 0);
    cr_assert_eq(fa_format_code(f, row, 49), 0);
    fa_random r = { 8 };
    for (int n = 0; n < 500; n++) { /* by the definition: the nearest code to the quotient by what is stored */
        double size = exp(3 * fa_random_normal(&r));
        for (int i = 0; i < 64; i++)
            x[i] = n % 2 ? (float)(size * fa_random_normal(&r)) : (float)fa_random_within(&r, -12, 12) / 4;
        fa_format_quantize_row(f, row, x, 64);
        for (int i = 0; i < 64; i++) {
            float amax = 0;
            for (int k = i / 16 * 16; k < i / 16 * 16 + 16; k++)
                amax = fmaxf(amax, fabsf(x[k]));
            volatile float of = amax / 6, scale = (float)defined(FA_E4M3, fa_format_nearest(e, of)), y = x[i] / scale;
            cr_assert_eq(fa_format_scale(f, row, i), (double)scale);
            cr_assert_eq(fa_format_code(f, row, i), scale == 0 ? 0 : nearest(f, fmin(6, fmax(-6, (double)y))), "%g by %g", (double)x[i],
                         (double)scale);
        }
    }
}

/* ---- what kernels unpack ---- */

enum { WORDS = 256, SLOTS = 8 }; /* words; registers of rows, then of columns */
static const char family[] =
    "return {\n"
    "  doc = \"unpacks\", default = false, tunables = { { \"row\", { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 }, \"\" } },\n"
    "  supports = function(p, a) return true end, constraints = {},\n"
    "  layout = function(p, c, a) return { bytes = 0, threads = 256, regs = 40 } end,\n"
    "  steps = function(p, c, a, l) return { { entry = \"codes_toy\", threads = 256, smem = 0, grid = \"hq b\" } } end,\n"
    "  params = \"q o\",\n"
    "}\n";
static const char text[] = "//| include \"machine/prelude.cu\"\n"
                           "//| include \"machine/unpack.cu\"\n"
                           "//| local f = codes(code_name(c.row), a.cc)\n"
                           "//| local place = include \"tiles/codes.lua\"\n"
                           "//| unpack(f)\n"
                           "extern \"C\" __global__ void __launch_bounds__(256) codes_toy(const __grid_constant__ Params p) {\n"
                           "  u32 h[$(place.registers(f))];\n"
                           "  u32 *const o = (u32 *)p.o + 8 * threadIdx.x;\n"
                           "//| local high = f.high_at > 0 and \", ((const u32 *)p.q)[threadIdx.x ^ 1]\" or \"\"\n"
                           "  unpack_rows_$(f.name)(h, ((const u32 *)p.q)[threadIdx.x]$(high));\n"
                           "  for (int i = 0; i < $(place.registers(f)); i++) o[i] = h[i];\n"
                           "  unpack_columns_$(f.name)(h, ((const u32 *)p.q)[threadIdx.x]$(high));\n"
                           "  for (int i = 0; i < $(place.registers(f)); i++) o[4 + i] = h[i];\n"
                           "}\n";

static void expect_half(const fa_format *f, uint32_t got, uint32_t code, int power, const char *what, uint32_t word)
{
    double x = (double)fa_number_from_f16((uint16_t)got), want = ldexp(fa_format_number(f, code), -power);
    bool zero = want == 0 && x == 0; /* of either sign */
    cr_assert(zero || same(x, want) || (isnan(want) && isnan(x)), "%s, %s of word %08x, code %02x: %g, not %g", f->name, what, word, code,
              x, want);
}

static void unpack_on(const char *device)
{
    static const char *const names[] = { "codes_toy.lua", "codes_toy.cu", NULL };
    fa_options options = FA_OPTIONS_INIT;
    fa_context *ctx;
    fa_problem p, raw = FA_PROBLEM_INIT;
    fa_args a = FA_ARGS_INIT;
    const fa_format *f;
    char dir[64] = "/tmp/fagen-formats-XXXXXX";
    static uint32_t words[WORDS * 32], out[WORDS * 32];
    cr_assert_not_null(mkdtemp(dir));
    toy_write(dir, "codes_toy.lua", family);
    toy_write(dir, "codes_toy.cu", text);
    scratch_make();
    options.device = device, options.cache_dir = scratch, options.template_dir = dir;
    OK(fa_create(&ctx, &options));
    for (uint32_t i = 0; i < WORDS; i++) /* every byte takes all values, beside different neighbours */
        words[i] = i | ((7 * i + 3) & 255) << 8 | ((255 - i) & 255) << 16 | (5 * i & 255) << 24;
    raw.dtype = FA_F32, raw.d = raw.dv = 32;
    a.dtype = FA_F32, a.d = a.dv = 32, a.b = a.hq = a.hkv = 1, a.sq = a.sk = WORDS;
    void *q, *o;
    OK(fa_alloc(ctx, &q, sizeof words));
    OK(fa_alloc(ctx, &o, sizeof out));
    OK(fa_copy(ctx, q, words, sizeof words, FA_TO_DEVICE));
    a.q = a.k = a.v = (fa_tensor){ q, 0, 0, 0 }, a.o = (fa_tensor){ o, 0, 0, 0 };
    OK(fa_problem_normalize(&p, &raw));
    EACH(f)
    {
        char config[32];
        fa_config c;
        const fa_plan *plan;
        snprintf(config, sizeof config, "codes_toy:row=%d", (int)row_ + 1);
        OK(fa_config_parse(&c, config));
        OK(fa_plan_make(ctx, &p, &c, NULL, &plan));
        OK(fa_plan_launch(ctx, plan, &a, NULL));
        OK(fa_copy(ctx, out, o, sizeof out, FA_FROM_DEVICE));
        int power = fa_format_unpack(f, strstr(device, "90") ? 90 : 80)->power;
        for (int i = 0; i < WORDS; i++)
            for (int x = 0; x < 2; x++) { /* the half */
                const unsigned char *byte = (const unsigned char *)&words[i];
                const uint32_t *rows = out + i * SLOTS, *columns = rows + 4;
                for (int k = 0; k < 2; k++)
                    if (f->bits == 8) {
                        expect_half(f, rows[k] >> 16 * x, byte[2 * k + x], power, "rows", words[i]);
                        expect_half(f, columns[k] >> 16 * x, byte[2 * x + k], power, "columns", words[i]);
                    } else
                        for (int nibble = 0; nibble < 2; nibble++) {
                            uint32_t high = f->high_at ? words[i ^ 1] >> (2 * x + k + 16 * nibble) & 1 : 0;
                            uint32_t code = (byte[2 * x + k] >> 4 * nibble & 15) | high << 4;
                            expect_half(f, rows[2 * k + nibble] >> 16 * x, code, power, "rows", words[i]);
                            expect_half(f, columns[2 * k + nibble] >> 16 * x, code, power, "columns", words[i]);
                        }
            }
    }
    fa_destroy(ctx);
    toy_remove(dir, names);
    scratch_remove();
}

Test(formats, kernels_unpack_every_code, .timeout = 120)
{
    unpack_on("sim:sm_80");
    unpack_on("sim:sm_90a");
}
