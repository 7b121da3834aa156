/* clock: the monotonic one, which nobody sets. */
#ifndef FA_AUTOTUNE_CLOCK_H
#define FA_AUTOTUNE_CLOCK_H
#include <time.h>

double fa_clock(void);                         /* seconds */
struct timespec fa_clock_in(double seconds);   /* that moment of CLOCK_MONOTONIC; what is below 0 is now */
#endif
