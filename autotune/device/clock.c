/* clock: now, and until when to wait. */
#include "clock.h"
#include <math.h>

double fa_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct timespec fa_clock_in(clockid_t clock, double seconds)
{
    struct timespec t;
    double left = fmax(seconds, 0), whole = floor(left);
    clock_gettime(clock, &t);
    t.tv_sec += (time_t)whole;
    t.tv_nsec += (long)((left - whole) * 1e9);
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}
