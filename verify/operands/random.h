/* random: numbers that one seed decides, the same on every machine (splitmix64; Steele, Lea, Flood 2014). */
#ifndef FA_VERIFY_OPERANDS_RANDOM_H
#define FA_VERIFY_OPERANDS_RANDOM_H
#include <stdint.h>

typedef struct fa_random {
    uint64_t state;
} fa_random;

uint64_t fa_random_mix(uint64_t x); /* a bijection that scatters */
uint64_t fa_random_next(fa_random *r);
int32_t fa_random_below(fa_random *r, int32_t n);               /* 0 ... n - 1 */
int32_t fa_random_within(fa_random *r, int32_t lo, int32_t hi); /* both included */
double fa_random_unit(fa_random *r);                            /* (0, 1) */
float fa_random_normal(fa_random *r);                           /* N(0, 1) */
float fa_random_factor(float normal);                           /* of such a number: above 0, about 1 (FA_DRAWN_FACTOR) */
#endif
