/* format: numbers of few bits, as rows of a table (gen/formats.def): what a code is, where it lies, and how numbers become codes. Bit for
 * bit what kernels read and write, and docs/lowbits.md says. */
#ifndef FA_GEN_FORMAT_H
#define FA_GEN_FORMAT_H
#include <fagen.h>
#include <stdbool.h>

typedef enum fa_code_kind { FA_CODE_FLOATS, FA_CODE_SIGNED, FA_CODE_UNSIGNED } fa_code_kind;
typedef enum fa_code_order { FA_ORDER_LINEAR, FA_ORDER_HALVES } fa_code_order;

/* How a chip of compute capability `cc` and later makes pairs of fp16 of it: numbers come times 2^-power, at `cost` instructions each. */
typedef struct fa_unpack {
    int32_t cc, power;
    double cost;
} fa_unpack;

typedef struct fa_format {
    int32_t dtype; /* fa_dtype */
    const char *name, *doc;
    int32_t bits;                         /* of a code */
    int32_t block, block_bytes, codes_at; /* elements that lie together; bytes of them; where their codes begin */
    int32_t scale_dtype, scale_at;        /* of a scale of its own in every block; 0: it has none */
    fa_code_kind kind;
    int32_t exponent, fraction; /* FLOATS: bits */
    bool infinities;            /* FLOATS: as IEEE 754 has them; else the largest code alone is NaN */
    int32_t zero;               /* UNSIGNED: the code of 0 */
    fa_code_order order;
    double most; /* the largest number that a scale is made for */
    fa_unpack unpack[2];
} fa_format;

const fa_format *fa_format_of(int32_t dtype); /* NULL: it is none of few bits */
const fa_format *fa_format_row(size_t i);     /* NULL after the last */
/* Of K, of V of a problem; NULL: they are of its dtype. */
static inline const fa_format *fa_format_k(const fa_problem *p)
{
    return fa_format_of(p->kv_dtype);
}
static inline const fa_format *fa_format_v(const fa_problem *p)
{
    return fa_format_of(p->v_dtype ? p->v_dtype : p->kv_dtype);
}
const fa_unpack *fa_format_unpack(const fa_format *f, int32_t cc);

static inline int32_t fa_format_codes(const fa_format *f)
{
    return 1 << f->bits;
}
/* Bytes of n elements, whole blocks. */
static inline int64_t fa_format_bytes(const fa_format *f, int64_t n)
{
    return n / f->block * f->block_bytes;
}
/* The number of a code; scales apart. */
double fa_format_number(const fa_format *f, uint32_t code);
/* The code of element i of a row. */
uint32_t fa_format_code(const fa_format *f, const void *row, int64_t i);
void fa_format_set_code(const fa_format *f, void *row, int64_t i, uint32_t code);
/* The scale of the block of element i; 1 where the format has none. */
double fa_format_scale(const fa_format *f, const void *row, int64_t i);
void fa_format_set_scale(const fa_format *f, void *row, int64_t i, uint16_t bits);
/* Element i of a row: its number times the scale of its block. */
double fa_format_value(const fa_format *f, const void *row, int64_t i);

/* Quantizing, by sums and products of fp32 that are rounded one by one to nearest even.
 *
 * The code nearest to x, which has been divided by its scale. FLOATS, SIGNED: ties to even; what is beyond the range, infinities too, is
 * the largest finite number of its sign; NaN is NaN (7f), of integers 0; -0 of FLOATS stays. */
uint32_t fa_format_nearest(const fa_format *f, float x);
/* The same of x / scale: the quotient is rounded to fp32, then to a code. With a scale of 0 it is the code of 0, or NaN of a NaN. */
uint32_t fa_format_quantize(const fa_format *f, float x, float scale);
/* The scale of n numbers that share one: the largest |x|, or the largest finite fp32 where that is infinite, divided by `most`. NaN is left
 * out where the format has a code for it; else one NaN makes the scale NaN, and with it all codes that of 0. */
float fa_format_amax_scale(const fa_format *f, const float *x, int64_t n);
/* n numbers, whole blocks, to a row of a format with scales of its own. Of a block of ggml's:
 *     q8_0   d = amax / 127, codes round(x * (1 / d)), halves away from 0
 *     q4_0   d = x / -8 for the first x with the largest |x|, codes floor(x * (1 / d) + 8.5), at most 15
 * d in fp32; what is stored is d rounded to fp16. Where 1 / d is no finite number, as with d = 0, x * (1 / d) is 0. Where d rounds to an
 * infinite fp16, it is +-65504 and codes keep to the range. With a NaN in the block d is NaN, and all codes are that of 0. */
void fa_format_quantize_row(const fa_format *f, void *row, const float *x, int64_t n);
#endif
