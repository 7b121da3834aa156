/* random: numbers that one seed decides. */
#include "random.h"
#include <math.h>

uint64_t fa_random_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t fa_random_next(fa_random *r)
{
    return fa_random_mix(r->state += 0x9e3779b97f4a7c15u);
}

int32_t fa_random_below(fa_random *r, int32_t n)
{
    return (int32_t)((fa_random_next(r) >> 32) * (uint64_t)n >> 32);
}

int32_t fa_random_within(fa_random *r, int32_t lo, int32_t hi)
{
    return lo + fa_random_below(r, hi - lo + 1);
}

double fa_random_unit(fa_random *r)
{
    return ((double)(fa_random_next(r) >> 11) + 0.5) * 0x1p-53;
}

float fa_random_normal(fa_random *r)
{
    double u = fa_random_unit(r), v = fa_random_unit(r);
    return (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

float fa_random_factor(float normal)
{
    return expf(normal / 4);
}
