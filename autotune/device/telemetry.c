/* telemetry: what a chip says of itself while it is measured. */
#include "telemetry.h"

void fa_span_add(fa_span *s, fa_telemetry g)
{
    if (g.clock_mhz > 0) {
        s->slowest = s->slowest && s->slowest < g.clock_mhz ? s->slowest : g.clock_mhz;
        s->fastest = s->fastest > g.clock_mhz ? s->fastest : g.clock_mhz;
    }
    s->throttled |= g.throttled;
    s->foreign = s->foreign > g.foreign ? s->foreign : g.foreign;
    s->last = g;
    s->looks++;
}

bool fa_span_moved(const fa_span *s)
{
    return s->fastest - s->slowest > FA_CLOCK_MOVED * s->fastest;
}

int32_t fa_span_clock(const fa_span *s)
{
    return (s->slowest + s->fastest) / 2;
}

fa_quality fa_span_quality(const fa_span *s, int32_t count, double width)
{
    return s->foreign > 0            ? FA_QUALITY_CONTENDED
           : s->throttled            ? FA_QUALITY_THROTTLED
           : fa_span_moved(s)        ? FA_QUALITY_MOVED
           : width > FA_WIDTH_NOISY  ? FA_QUALITY_NOISY
           : count < FA_COUNT_ENOUGH ? FA_QUALITY_FEW
                                     : FA_QUALITY_STEADY;
}
