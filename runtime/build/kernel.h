/* kernel: the loaded kernels of one source with what they use. */
#ifndef FA_RUNTIME_BUILD_KERNEL_H
#define FA_RUNTIME_BUILD_KERNEL_H
#include "cache/entry.h"
#include "gen/source.h"
#include "resources.h"
#include "runtime/context/device.h"

typedef struct fa_kernel {
    fa_key key;
    uint64_t number;                    /* of no other kernel of the process */
    CUlibrary library[FA_SOURCE_STEPS]; /* of each step, or the first of all */
    int32_t steps;
    CUkernel fn[FA_SOURCE_STEPS];
    fa_step step[FA_SOURCE_STEPS];
    bool maps; /* some step takes tensor maps */
    fa_resources resources[FA_SOURCE_STEPS];
    fa_workspace workspace; /* this and the next as in fa_source */
    fa_packing packing;
    char from[16];          /* "disk cache", "compiler" or "bundle" */
    struct fa_kernel *next; /* of the list of its context */
} fa_kernel;

/* Loads the image of e, or its parts, into the driver and readies every step for its shared memory on the device. The device's context is
 * current. FA_DEVICE when the driver refuses. *out is heap. */
fa_status fa_kernel_load(fa_kernel **out, const fa_device *d, const fa_entry *e, const fa_source *s);
void fa_kernel_unload(const fa_device *d, fa_kernel *k); /* NULL is fine */
#endif
