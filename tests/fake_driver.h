/* fake_driver: a cu_driver table that does nothing but count, remember and fail on demand. Thread-safe. */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H
#include "all_params.h"
#include "gen/values.h"
#include "sim/driver.h"
#include <stdbool.h>

/* Back to the start: two devices of compute capability 8.0, no context, no failures, no calls. The table stays. */
const cu_driver *fake_driver(void);

void fake_devices(int count, int major, int minor);
void fake_ptx(bool takes_ptx);               /* what the table says of itself; PTX by default */
void fake_capturing(bool on);                /* what cuStreamIsCapturing says; on: a capture of another id, into another graph */
void fake_graph_gone(CUgraph graph);         /* it, and all that was made of it, is destroyed: so are its user objects */
CUgraph fake_graph(void);                    /* of the last capture */
void fake_pools(bool there);                 /* whether the device has memory pools; it has none by default */
CUstreamCaptureMode fake_capture_mode(void); /* the last that a thread took for itself */
CUcontext fake_loaded_in(void);              /* the context that was current when a library was last loaded */
/* The nth call from now (1 = the next) of the function (NULL = of any) gives r; calls before and after work. */
void fake_fail(const char *name, int nth, CUresult r);
/* Calls of the function since the start (NULL = of all). */
long fake_calls(const char *name);
/* Contexts made current by nobody but the test: NULL, or fake_context(device). */
CUcontext fake_context(int device);
CUcontext fake_second_context(int device); /* not the primary one */
long fake_live_libraries(void);
long fake_live_memory(void);  /* device memory and streams that are not given back; no address comes twice */
size_t fake_live_bytes(void); /* device memory */
/* The address, words, value and stream of this thread's last cuMemsetD32Async. */
typedef struct fake_fill {
    CUdeviceptr at;
    unsigned value;
    size_t words;
    CUstream stream;
} fake_fill;
fake_fill fake_filled(void);
int fake_retained(int device); /* primary contexts retained and not yet released */

/* What the fake writes into the CUtensorMap: the arguments it was called with. */
typedef struct fake_map {
    uint64_t address, size[5], stride[4]; /* of rank 4: the last are 0 */
    uint32_t box[5], step[5];
    uint8_t type, rank, interleave, swizzle, promotion, fill;
} fake_map;

typedef struct fake_launch {
    CUfunction f;
    unsigned grid, block, smem, cluster; /* cluster 0: none was asked for */
    bool pdl;                            /* programmatic stream serialization was */
    CUstream stream;
    CUcontext context;
    all_params params;                  /* of a family that lists none */
    unsigned char bytes[FA_PACKED_MAX]; /* of any */
    int maps;                           /* further parameters, up to the NULL that ends the list */
    fake_map map[4];
} fake_launch;
/* The last launch of this thread. */
fake_launch fake_last(void);
#define FAKE_LAUNCHES 16
fake_launch fake_before(int n); /* the nth before it, 0 to FAKE_LAUNCHES - 1 */
#endif
