/* telemetry: what a chip says of itself while it is measured, and what that makes of the times. */
#ifndef FA_AUTOTUNE_DEVICE_TELEMETRY_H
#define FA_AUTOTUNE_DEVICE_TELEMETRY_H
#include "cache/quality.h"
#include <stdbool.h>
#include <stdint.h>

/* One look. Zeros: nothing is known. */
typedef struct fa_telemetry {
    int32_t clock_mhz;   /* of the SMs; 0 = not told */
    int32_t temperature; /* degrees Celsius; 0 = not told */
    bool throttled;      /* heat, or a failing supply, holds the clock down; a power limit alone is how such chips always run */
    int32_t foreign;     /* processes that compute on it beside those of fagen */
} fa_telemetry;

/* Several looks, folded. Zeros: none. */
typedef struct fa_span {
    int32_t looks, slowest, fastest; /* MHz */
    fa_telemetry last;
    bool throttled;
    int32_t foreign;
} fa_span;

#define FA_CLOCK_MOVED 0.05 /* (fastest - slowest) / fastest from which on times do not compare */

void fa_span_add(fa_span *s, fa_telemetry g);
bool fa_span_moved(const fa_span *s);
/* The middle of the clocks seen, MHz; 0 = not told. */
int32_t fa_span_clock(const fa_span *s);
/* Of `count` samples, whose median has the relative interval `width` (0 = not told), taken during the span. */
#define FA_COUNT_ENOUGH 6 /* fewer have no 95 % interval */
#define FA_WIDTH_NOISY 0.03
fa_quality fa_span_quality(const fa_span *s, int32_t count, double width);
#endif
