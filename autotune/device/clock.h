/* clock: now, and until when to wait. */
#ifndef FA_AUTOTUNE_DEVICE_CLOCK_H
#define FA_AUTOTUNE_DEVICE_CLOCK_H
#include <time.h>

double fa_clock(void);                                        /* seconds of CLOCK_MONOTONIC, which no clock setting moves */
struct timespec fa_clock_in(clockid_t clock, double seconds); /* from now; below 0 = now */
#endif
