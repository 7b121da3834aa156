/* special: what infinities and NaN make of a sum of products, of bits of f32: a sum is looked at before it is computed of numbers. */
#ifndef SIM_SPECIAL_H
#define SIM_SPECIAL_H
#include <stdbool.h>
#include <stdint.h>

enum { SPECIAL_NAN = 1, SPECIAL_POSITIVE = 2, SPECIAL_NEGATIVE = 4 }; /* what terms of a sum there are */

static inline unsigned sim_special_number(uint32_t x)
{
    return (x & 0x7FFFFFFF) > 0x7F800000 ? SPECIAL_NAN : x == 0x7F800000 ? SPECIAL_POSITIVE : x == 0xFF800000 ? SPECIAL_NEGATIVE : 0;
}

static inline unsigned sim_special_product(uint32_t a, uint32_t b)
{
    uint32_t x = a & 0x7FFFFFFF, y = b & 0x7FFFFFFF;
    if (x < 0x7F800000 && y < 0x7F800000)
        return 0;
    if (x > 0x7F800000 || y > 0x7F800000 || !x || !y)
        return SPECIAL_NAN;
    return (a ^ b) >> 31 ? SPECIAL_NEGATIVE : SPECIAL_POSITIVE;
}

/* The sum of such terms. false: none of them is special, and *out is left. */
static inline bool sim_special_sum(unsigned terms, uint32_t *out)
{
    if (terms)
        *out = terms & SPECIAL_NAN || terms == (SPECIAL_POSITIVE | SPECIAL_NEGATIVE) ? 0x7FFFFFFF
               : terms == SPECIAL_POSITIVE                                           ? 0x7F800000
                                                                                     : 0xFF800000;
    return terms;
}
#endif
