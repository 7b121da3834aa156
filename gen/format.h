/* format: numbers of few bits, as rows of a table (gen/formats.def): what a code is, where it lies, and how numbers become codes. Bit for
 * bit what kernels read and write, and docs/lowbits.md says. */
#ifndef FA_GEN_FORMAT_H
#define FA_GEN_FORMAT_H
#include <fagen.h>
#include <stdbool.h>

typedef enum fa_code_kind { FA_CODE_FLOATS, FA_CODE_SIGNED, FA_CODE_UNSIGNED, FA_CODE_TABLE } fa_code_kind;
/* What the largest exponents of floating-point codes mean: as in IEEE 754, numbers but for the largest code, which is NaN, numbers. */
typedef enum fa_code_floats { FA_FLOATS_IEEE, FA_FLOATS_NAN_ALONE, FA_FLOATS_FINITE } fa_code_floats;
typedef enum fa_code_order { FA_ORDER_LINEAR, FA_ORDER_HALVES } fa_code_order;

/* Scales in e4m3 are times 2^7 where kernels multiply by them, so that fp16 holds each of them and each product. */
enum { FA_E4M3_SCALE_POWER = 7 };

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
    int32_t scales;                       /* how many a block has, side by side, each of its share of the elements */
    int32_t least_at, high_at;            /* of a number in fp16 that is added, of the codes' highest bits; 0: it has none */
    fa_code_kind kind;
    int32_t exponent, fraction; /* FLOATS: bits */
    fa_code_floats floats;      /* FLOATS */
    int32_t zero;               /* UNSIGNED: the code of 0 */
    int8_t table[16];           /* TABLE: the numbers of codes, the least first */
    fa_code_order order;
    double most; /* the largest number that a scale is made for */
    fa_unpack unpack[2];
} fa_format;

const fa_format *fa_format_of(int32_t dtype);     /* NULL: it is none of few bits */
const fa_format *fa_format_row(size_t i);         /* NULL after the last */
const char *fa_format_names(char *buf, size_t n); /* "e4m3 (5), e5m2 (6), ..." into buf[n]; returns buf */
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
/* Elements of a block that share a scale. */
static inline int32_t fa_format_shared(const fa_format *f)
{
    return f->block / (f->scales ? f->scales : 1);
}
/* Whether the format has a code that is NaN. */
static inline bool fa_format_has_nan(const fa_format *f)
{
    return f->kind == FA_CODE_FLOATS && f->floats != FA_FLOATS_FINITE;
}
/* The number of a code; scales apart. */
double fa_format_number(const fa_format *f, uint32_t code);
/* The code of element i of a row. */
uint32_t fa_format_code(const fa_format *f, const void *row, int64_t i);
void fa_format_set_code(const fa_format *f, void *row, int64_t i, uint32_t code);
/* The scale of the block of element i; 1 where the format has none. */
double fa_format_scale(const fa_format *f, const void *row, int64_t i);
void fa_format_set_scale(const fa_format *f, void *row, int64_t i, uint16_t bits);
/* What is added to elements of its block; 0 where the format has no such number. */
double fa_format_least(const fa_format *f, const void *row, int64_t i);
void fa_format_set_least(const fa_format *f, void *row, int64_t i, uint16_t bits);
/* Element i of a row: its number times the scale of its block, and what is added. */
double fa_format_value(const fa_format *f, const void *row, int64_t i);

/* Quantizing, by sums and products of fp32 that are rounded one by one to nearest even.
 *
 * The code nearest to x, which has been divided by its scale. Ties to even, of a TABLE to the larger number; what is beyond the range,
 * infinities too, is the largest finite number of its sign; NaN is NaN (7f), where there is none the code of 0, of a TABLE that nearest to
 * 0; -0 of FLOATS stays. */
uint32_t fa_format_nearest(const fa_format *f, float x);
/* The same of x / scale: the quotient is rounded to fp32, then to a code. With a scale of 0 it is the code of 0, or NaN of a NaN. */
uint32_t fa_format_quantize(const fa_format *f, float x, float scale);
/* The scale of n numbers that share one: the largest |x|, or the largest finite fp32 where that is infinite, divided by `most`. NaN is left
 * out where the format has a code for it; else one NaN makes the scale NaN, and with it all codes that of 0. */
float fa_format_amax_scale(const fa_format *f, const float *x, int64_t n);
/* n numbers, whole blocks, to a row of a format with scales of its own. Of a block of ggml's:
 *     q8_0   d = amax / 127, codes round(x * (1 / d)), halves away from 0
 *     q4_0   d = x / -8 for the first x with the largest |x|, codes floor(x * (1 / d) + 8.5), at most 15
 *     q5_0   d = x / -16 likewise, codes floor(x * (1 / d) + 16.5), at most 31
 *     q4_1   m = the least x, d = (the largest - m) / 15, codes floor((x - m) * (1 / d) + 0.5)
 *     q5_1   the same with 31
 *     iq4_nl e = x / -127 for the first x with the largest |x|, codes nearest to x * (1 / e), with numbers n; d = s / t, where s is the sum
 * of x x n x and t that of x x n n, element by element in their order m, d in fp32; what is stored is rounded to fp16. Where 1 / d is no
 * finite number, as with d = 0, products with it are 0. Where d rounds to an infinite fp16, it is +-65504, likewise m, and codes keep to
 * the range. With a NaN in the block d is NaN, m too, and codes are that of 0. nvfp4  d = amax / 6, or the largest finite fp32 / 6, of 16
 * elements, as the nearest code of e4m3; codes nearest to x / d, with d = 0 those of 0. With a NaN among the 16 d is NaN, and codes are 0
 */
void fa_format_quantize_row(const fa_format *f, void *row, const float *x, int64_t n);
#endif
