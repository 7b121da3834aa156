/* format: the table of formats, and what their codes are. */
#include "format.h"
#include <math.h>
#include <string.h>

#define BITS(n) .bits = n
#define BLOCK(n, bytes, codes) .block = n, .block_bytes = bytes, .codes_at = codes
#define SCALE(type, at) .scale_dtype = type, .scale_at = at
#define FLOATS(e, f, inf) .kind = FA_CODE_FLOATS, .exponent = e, .fraction = f, .infinities = inf
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
static double number_of_bits(uint32_t bits, int exponent, int fraction, bool infinities)
{
    uint32_t e = bits >> fraction & ((1u << exponent) - 1), m = bits & ((1u << fraction) - 1), most = (1u << exponent) - 1;
    double sign = bits >> (exponent + fraction) & 1 ? -1 : 1;
    int bias = (1 << (exponent - 1)) - 1;
    if (e == most && infinities)
        return m ? NAN : sign * INFINITY;
    if (e == most && m == (1u << fraction) - 1 && !infinities)
        return NAN;
    return sign * (e ? ldexp(m + (1u << fraction), (int)e - bias - fraction) : ldexp(m, 1 - bias - fraction));
}

double fa_format_number(const fa_format *f, uint32_t code)
{
    switch (f->kind) {
    case FA_CODE_FLOATS:
        return number_of_bits(code, f->exponent, f->fraction, f->infinities);
    case FA_CODE_SIGNED:
        return code >> (f->bits - 1) & 1 ? (double)code - (1 << f->bits) : code;
    case FA_CODE_UNSIGNED:
        return (double)code - f->zero;
    }
    return NAN;
}

/* The byte of an element's code, and the bit in it. */
static int64_t place(const fa_format *f, int64_t i, int *shift)
{
    int64_t block = i / f->block, in = i % f->block, at = block * f->block_bytes + f->codes_at;
    if (f->order == FA_ORDER_HALVES) {
        *shift = in < f->block / 2 ? 0 : f->bits;
        return at + in % (f->block / 2);
    }
    *shift = (int)(in * f->bits % 8);
    return at + in * f->bits / 8;
}

uint32_t fa_format_code(const fa_format *f, const void *row, int64_t i)
{
    int shift;
    const unsigned char *byte = (const unsigned char *)row + place(f, i, &shift);
    return (uint32_t)*byte >> shift & (uint32_t)(fa_format_codes(f) - 1);
}

void fa_format_set_code(const fa_format *f, void *row, int64_t i, uint32_t code)
{
    int shift;
    unsigned char *byte = (unsigned char *)row + place(f, i, &shift);
    uint32_t mask = (uint32_t)(fa_format_codes(f) - 1) << shift;
    *byte = (unsigned char)((*byte & ~mask) | (code << shift & mask));
}

double fa_format_scale(const fa_format *f, const void *row, int64_t i)
{
    uint16_t bits;
    if (!f->scale_dtype)
        return 1;
    memcpy(&bits, (const char *)row + i / f->block * f->block_bytes + f->scale_at, sizeof bits);
    return number_of_bits(bits, 5, 10, true);
}

void fa_format_set_scale(const fa_format *f, void *row, int64_t i, uint16_t bits)
{
    if (f->scale_dtype)
        memcpy((char *)row + i / f->block * f->block_bytes + f->scale_at, &bits, sizeof bits);
}

double fa_format_value(const fa_format *f, const void *row, int64_t i)
{
    return fa_format_number(f, fa_format_code(f, row, i)) * fa_format_scale(f, row, i);
}
