/* format: the table of formats, and what their codes are. */
#include "format.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define BITS(n) .bits = n
#define BLOCK(n, bytes, codes) .block = n, .block_bytes = bytes, .codes_at = codes
#define SCALE(type, at) .scale_dtype = type, .scale_at = at, .scales = 1
#define SCALES(type, at, n) .scale_dtype = type, .scale_at = at, .scales = n
#define FLOATS(e, f, what) .kind = FA_CODE_FLOATS, .exponent = e, .fraction = f, .floats = FA_FLOATS_##what
#define TABLE(...) .kind = FA_CODE_TABLE, .table = { __VA_ARGS__ }
#define LEAST(at) .least_at = at
#define HIGH(at) .high_at = at
#define SIGNED .kind = FA_CODE_SIGNED
#define UNSIGNED(at) .kind = FA_CODE_UNSIGNED, .zero = at
#define ORDER(x) .order = FA_ORDER_##x
#define MOST(x) .most = x
#define UNPACK(...) .unpack = { __VA_ARGS__ }
static const fa_format formats[] = {
#define FORMAT(number, word, what, ...) { .dtype = number, .name = word, .doc = what, __VA_ARGS__ },
#include "formats.def"
#undef FORMAT
};
enum { FORMATS = sizeof formats / sizeof *formats };

const fa_format *fa_format_row(size_t i)
{
    return i < FORMATS ? &formats[i] : NULL;
}

const fa_format *fa_format_of(int32_t dtype) /* of operands of every launch: rows have the order of their numbers */
{
    return dtype >= FA_E4M3 && dtype - FA_E4M3 < FORMATS ? &formats[dtype - FA_E4M3] : NULL;
}

const fa_unpack *fa_format_unpack(const fa_format *f, int32_t cc)
{
    return f->unpack[1].cc && cc >= f->unpack[1].cc ? &f->unpack[1] : &f->unpack[0];
}

/* A number of 16 bits or fewer: the sign, `exponent` bits, `fraction` bits. */
static double number_of_bits(uint32_t bits, int exponent, int fraction, fa_code_floats floats)
{
    uint32_t e = bits >> fraction & ((1u << exponent) - 1), m = bits & ((1u << fraction) - 1), most = (1u << exponent) - 1;
    double sign = bits >> (exponent + fraction) & 1 ? -1 : 1;
    int bias = (1 << (exponent - 1)) - 1;
    if (e == most && floats == FA_FLOATS_IEEE)
        return m ? NAN : sign * INFINITY;
    if (e == most && m == (1u << fraction) - 1 && floats == FA_FLOATS_NAN_ALONE)
        return NAN;
    return sign * (e ? ldexp(m + (1u << fraction), (int)e - bias - fraction) : ldexp(m, 1 - bias - fraction));
}

double fa_format_number(const fa_format *f, uint32_t code)
{
    switch (f->kind) {
    case FA_CODE_FLOATS:
        return number_of_bits(code, f->exponent, f->fraction, f->floats);
    case FA_CODE_SIGNED:
        return code >> (f->bits - 1) & 1 ? (double)code - (1 << f->bits) : code;
    case FA_CODE_UNSIGNED:
        return (double)code - f->zero;
    case FA_CODE_TABLE:
        return f->table[code & 15];
    }
    return NAN;
}

/* The byte of an element's code, without its highest bit where that lies apart, and the bit in it. */
static int64_t place(const fa_format *f, int64_t i, int *shift)
{
    int64_t block = i / f->block, in = i % f->block, at = block * f->block_bytes + f->codes_at;
    if (f->order == FA_ORDER_HALVES) {
        int64_t n = fa_format_shared(f), j = in % n;
        *shift = j < n / 2 ? 0 : 4;
        return at + in / n * (n / 2) + j % (n / 2);
    }
    *shift = (int)(in * f->bits % 8);
    return at + in * f->bits / 8;
}

/* The codes' bits that lie at place(). */
static uint32_t low_mask(const fa_format *f)
{
    return (1u << (f->high_at ? f->bits - 1 : f->bits)) - 1;
}

/* The byte of an element's highest bit. */
static int64_t high_place(const fa_format *f, int64_t i, int *shift)
{
    *shift = (int)(i % f->block % 8);
    return i / f->block * f->block_bytes + f->high_at + i % f->block / 8;
}

uint32_t fa_format_code(const fa_format *f, const void *row, int64_t i)
{
    int shift;
    const unsigned char *bytes = row;
    uint32_t code = (uint32_t)bytes[place(f, i, &shift)];
    code = code >> shift & low_mask(f);
    if (f->high_at) {
        uint32_t high = bytes[high_place(f, i, &shift)];
        code |= (high >> shift & 1) << (f->bits - 1);
    }
    return code;
}

void fa_format_set_code(const fa_format *f, void *row, int64_t i, uint32_t code)
{
    int shift;
    unsigned char *byte = (unsigned char *)row + place(f, i, &shift);
    uint32_t mask = low_mask(f) << shift;
    *byte = (unsigned char)((*byte & ~mask) | (code << shift & mask));
    if (f->high_at) {
        byte = (unsigned char *)row + high_place(f, i, &shift);
        *byte = (unsigned char)((*byte & ~(1u << shift)) | (code >> (f->bits - 1) & 1) << shift);
    }
}

/* Where a block's scale of element i lies. */
static int64_t scale_place(const fa_format *f, int64_t i)
{
    return i / f->block * f->block_bytes + f->scale_at + i % f->block / fa_format_shared(f);
}

double fa_format_scale(const fa_format *f, const void *row, int64_t i)
{
    uint16_t bits;
    if (!f->scale_dtype)
        return 1;
    if (f->scale_dtype != FA_F16)
        return fa_format_number(fa_format_of(f->scale_dtype), ((const unsigned char *)row)[scale_place(f, i)]);
    memcpy(&bits, (const char *)row + scale_place(f, i), sizeof bits);
    return number_of_bits(bits, 5, 10, FA_FLOATS_IEEE);
}

void fa_format_set_scale(const fa_format *f, void *row, int64_t i, uint16_t bits)
{
    if (f->scale_dtype == FA_F16)
        memcpy((char *)row + scale_place(f, i), &bits, sizeof bits);
    else if (f->scale_dtype)
        ((unsigned char *)row)[scale_place(f, i)] = (unsigned char)bits;
}

double fa_format_least(const fa_format *f, const void *row, int64_t i)
{
    uint16_t bits;
    if (!f->least_at)
        return 0;
    memcpy(&bits, (const char *)row + i / f->block * f->block_bytes + f->least_at, sizeof bits);
    return number_of_bits(bits, 5, 10, FA_FLOATS_IEEE);
}

void fa_format_set_least(const fa_format *f, void *row, int64_t i, uint16_t bits)
{
    if (f->least_at)
        memcpy((char *)row + i / f->block * f->block_bytes + f->least_at, &bits, sizeof bits);
}

double fa_format_value(const fa_format *f, const void *row, int64_t i)
{
    return fa_format_number(f, fa_format_code(f, row, i)) * fa_format_scale(f, row, i) + fa_format_least(f, row, i);
}

const char *fa_format_names(char *buf, size_t n)
{
    const fa_format *f;
    size_t at = 0;
    for (size_t i = 0; (f = fa_format_row(i)) && at < n; i++)
        at += (size_t)snprintf(buf + at, n - at, "%s%s (%d)", i ? ", " : "", f->name, f->dtype);
    return buf;
}
