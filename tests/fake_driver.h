/* fake_driver: a cu_driver table that does nothing but count, remember and fail on demand. Thread-safe. */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H
#include "gen/params.h"
#include "sim/driver.h"
#include <stdbool.h>

/* Back to the start: two devices of compute capability 8.0, no context, no failures, no calls. The table stays. */
const cu_driver *fake_driver(void);

void fake_devices(int count, int major, int minor);
void fake_ptx(bool takes_ptx);          /* what the table says of itself; PTX by default */
void fake_capturing(bool on);           /* what cuStreamIsCapturing says */
/* The nth call from now (1 = the next) of the function (NULL = of any) gives r; calls before and after work. */
void fake_fail(const char *name, int nth, CUresult r);
/* Calls of the function since the start (NULL = of all). */
long fake_calls(const char *name);
/* Contexts made current by nobody but the test: NULL, or fake_context(device). */
CUcontext fake_context(int device);
long fake_live_libraries(void);
int fake_retained(int device);          /* primary contexts retained and not yet released */

typedef struct fake_launch {
    CUfunction f;
    unsigned grid, block, smem;
    CUstream stream;
    CUcontext context;
    fa_params params;
} fake_launch;
/* The last launch of this thread. */
fake_launch fake_last(void);
#endif
