/* kernels: those that a context has loaded. */
#ifndef FA_RUNTIME_BUILD_KERNELS_H
#define FA_RUNTIME_BUILD_KERNELS_H
#include "kernel.h"
#include <pthread.h>

typedef struct fa_kernels {
    pthread_mutex_t mutex;
    fa_kernel *first;
} fa_kernels;

/* The kernel of that image with those steps, or NULL; two configs may differ in nothing but their steps. */
const fa_kernel *fa_kernels_find(fa_kernels *ks, fa_key k, int32_t steps, const fa_step step[FA_SOURCE_STEPS]);
/* Takes k; returns it, or the like one that another thread gave before: then k is unloaded. */
const fa_kernel *fa_kernels_keep(fa_kernels *ks, const fa_device *d, fa_kernel *k);
/* Unloads all of them. The device's context is current. */
void fa_kernels_unload(fa_kernels *ks, const fa_device *d);
#endif
