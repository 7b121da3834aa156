/* What the chip says of itself: through a library in NVML's place, and what follows for the quality of times. */
#include "autotune/candidate/backend.h"
#include "autotune/device/nvml.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUS "0000:19:00.0"

static fa_telemetry read_with(const char *text, const int *pids, int n)
{
    char why[256] = "";
    cr_assert_eq(setenv("FAKE_NVML", text, 1), 0);
    fa_nvml *m = fa_nvml_open(getenv("FAGEN_FAKE_NVML"), BUS, why, sizeof why);
    cr_assert_not_null(m, "%s", why);
    fa_nvml_expect(m, pids, n);
    fa_telemetry g = fa_nvml_read(m);
    fa_nvml_close(m);
    return g;
}

Test(tune_telemetry, nvml_tells)
{
    fa_telemetry g = read_with("1755,61,0,", NULL, 0);
    cr_assert(g.clock_mhz == 1755 && g.temperature == 61 && !g.throttled && g.foreign == 0);
    cr_assert(!read_with("1755,61,4,", NULL, 0).throttled, "a power limit alone is no trouble");
    const char *held[] = { "1200,90,8,", "1200,90,20,", "1200,90,40,", "1200,90,80,", "1200,90,24," };
    for (int i = 0; i < 5; i++)
        cr_assert(read_with(held[i], NULL, 0).throttled, "%s", held[i]);
}

Test(tune_telemetry, who_else_computes)
{
    char text[128];
    int child = 4711, us = (int)getpid();
    snprintf(text, sizeof text, "1755,61,0,%d", us);
    cr_assert_eq(read_with(text, NULL, 0).foreign, 0);
    snprintf(text, sizeof text, "1755,61,0,%d %d", us, child);
    cr_assert_eq(read_with(text, NULL, 0).foreign, 1);
    cr_assert_eq(read_with(text, &child, 1).foreign, 0);
    snprintf(text, sizeof text, "1755,61,0,%d %d 99999 99998", us, child);
    cr_assert_eq(read_with(text, &child, 1).foreign, 2);
    /* a container: the numbers are those of the host, and nobody is recognised */
    cr_assert_eq(read_with("1755,61,0,99999", NULL, 0).foreign, 0);
    cr_assert_eq(read_with("1755,61,0,99999 99998", &child, 1).foreign, 0);
    cr_assert_eq(read_with("1755,61,0,99999 99998 99997", &child, 1).foreign, 1);
}

Test(tune_telemetry, without_it_nothing_is_known)
{
    char why[256];
    const char *path = getenv("FAGEN_FAKE_NVML");
    cr_assert_null(fa_nvml_open("/nonexistent/libnvidia-ml.so.1", BUS, why, sizeof why));
    cr_assert(strstr(why, "nonexistent"), "%s", why);
    cr_assert_null(fa_nvml_open("libc.so.6", BUS, why, sizeof why));
    cr_assert(strstr(why, "nvmlInit_v2"), "%s", why);
    cr_assert_null(fa_nvml_open(path, "0000:00:00.0", why, sizeof why));
    cr_assert(strstr(why, "0000:00:00.0"), "%s", why);
    cr_assert_eq(setenv("FAKE_NVML", "broken", 1), 0);
    cr_assert_null(fa_nvml_open(path, BUS, NULL, 0));
    fa_telemetry g = fa_nvml_read(NULL);
    cr_assert(!g.clock_mhz && !g.temperature && !g.throttled && !g.foreign);
    fa_nvml_expect(NULL, NULL, 0);
    fa_nvml_close(NULL);
}

static fa_span span_of(int a, int b, bool throttled, int foreign)
{
    fa_span s = { 0 };
    fa_span_add(&s, (fa_telemetry){ a, 60, throttled, 0 });
    fa_span_add(&s, (fa_telemetry){ b, 61, false, foreign });
    return s;
}

Test(tune_telemetry, the_worst_trouble_names_the_quality)
{
    fa_span steady = span_of(1755, 1740, false, 0), moved = span_of(1755, 1600, false, 0), hot = span_of(1755, 1600, true, 0),
            shared = span_of(1755, 1600, true, 1), unknown = { 0 };
    cr_assert_eq(fa_span_quality(&steady, 8, 0.01), FA_QUALITY_STEADY);
    cr_assert_eq(fa_span_quality(&unknown, 8, 0.01), FA_QUALITY_STEADY);
    cr_assert_eq(fa_span_quality(&steady, FA_COUNT_ENOUGH - 1, 0), FA_QUALITY_FEW);
    cr_assert_eq(fa_span_quality(&steady, 8, 2 * FA_WIDTH_NOISY), FA_QUALITY_NOISY);
    cr_assert_eq(fa_span_quality(&moved, 3, 1), FA_QUALITY_MOVED);
    cr_assert_eq(fa_span_quality(&hot, 8, 0), FA_QUALITY_THROTTLED);
    cr_assert_eq(fa_span_quality(&shared, 8, 0), FA_QUALITY_CONTENDED);
    cr_assert(!fa_span_moved(&steady) && fa_span_moved(&moved) && !fa_span_moved(&unknown));
    cr_assert_eq(fa_span_clock(&moved), (1755 + 1600) / 2);
    cr_assert_eq(steady.last.temperature, 61);
}
