/* ride: devices and backends that were hooked. rider.c hooks; plans and walks read it. */
#ifndef FA_GGML_RIDE_H
#define FA_GGML_RIDE_H
#include "plan.h"
#include "replay.h"
#include "rider.h"
#include <pthread.h>

#define FA_GGML_DEVICES 16
#define FA_GGML_BACKENDS 64

/* A device whose entries were replaced. */
typedef struct fa_ggml_hooked {
    fa_ggml_device *device;
    bool (*supports_op)(fa_ggml_device *, const fa_ggml_tensor *);
    fa_ggml_backend *(*init_backend)(fa_ggml_device *, const char *);
    char name[32];
    int32_t number; /* of CUDA's devices */
    fa_ggml_engine *engine;
    _Atomic(bool) failed;     /* no engine, or a launch failed: nothing is claimed any more */
    _Atomic(bool) has_ours;   /* a backend of it came through init_backend */
    _Atomic(uint32_t) logged; /* a bit for each rule that the log has a line of */
} fa_ggml_hooked;

/* A backend whose entries were replaced. */
struct fa_ggml_ridden {
    fa_ggml_backend *backend;
    fa_ggml_hooked *on;
    int32_t (*compute)(fa_ggml_backend *, fa_ggml_graph *);
    void (*release)(fa_ggml_backend *);
    fa_ggml_stream *stream;
    CUstream own; /* tier 1: our stream, and events before and after what runs there */
    fa_ggml_event *before, *after;
    bool checked; /* a graph lies as known */
    fa_ggml_plans *plans;
    fa_ggml_replays *replays;
};

/* Of the process. */
typedef struct fa_ggml_riding {
    pthread_mutex_t mutex; /* of the lists; an entry stays where it is */
    bool loaded;
    fa_ggml ggml;
    fa_ggml_settings settings;
    fa_context *ctx;
    fa_ggml_reg *reg;
    fa_ggml_hooked device[FA_GGML_DEVICES];
    int32_t devices;
    _Atomic(fa_ggml_ridden *) backend[FA_GGML_BACKENDS];
    fa_ggml_rider_counts counts;
} fa_ggml_riding;
extern fa_ggml_riding fa_ggml_ride;

#define FA_GGML_COUNT(what) __atomic_fetch_add(&fa_ggml_ride.counts.what, 1, __ATOMIC_RELAXED)

/* Whether claims run on a simulator that is no device of ggml's: tensors are copied there and back. */
bool fa_ggml_staged(void);

/* A device's engine, opened by the first question about a node. NULL: it cannot be opened; the log has a line with the reason. Thread-safe.
 */
fa_ggml_engine *fa_ggml_engine_of(fa_ggml_hooked *h);

/* Whether a node is as fagen computes them: *c has it as fields of a launch. Takes no time, and opens no device. */
bool fa_ggml_reads(fa_ggml_hooked *h, const fa_ggml_tensor *node, fa_ggml_claim *c);
/* Whether a kernel of the device computes what was read of a node. The log has the reason why one is left, once, of both. */
bool fa_ggml_takes(fa_ggml_hooked *h, const fa_ggml_tensor *node, const fa_ggml_claim *c);
#endif
