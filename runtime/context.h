/* context: the inside of fa_context, and entering its device. */
#ifndef FA_RUNTIME_CONTEXT_H
#define FA_RUNTIME_CONTEXT_H
#include "background.h"
#include "build.h"
#include "bundle_set.h"
#include "counter.h"
#include "generators.h"
#include "lease.h"
#include "log.h"
#include "table.h"

struct fa_context {
    unsigned forks; /* fa_forks when it was made: another number means another process */
    fa_device device;
    fa_store *store;
    fa_compiler *compiler;
    fa_log log;
    char *template_dir;        /* NULL = the embedded templates */
    int32_t budget;            /* shared memory per block, bytes */
    fa_bundle_set bundle_set;  /* kernels of bundles */
    bool bundle_only;          /* nothing is rendered or compiled */
    bool in_order;             /* no kernel begins before what is in front of it has ended */
    bool lends;                /* a workspace where a launch brings none */
    char *workload;            /* the file that tells what was launched; NULL = nobody counts */
    int32_t on_miss;           /* fa_on_miss */
    int32_t check_device_data; /* the option */
    bool checks_device_data;   /* what it means on this device */
    fa_table table;
    pthread_mutex_t mutex; /* of kernels, plans, and retaining primary */
    fa_kernel *kernels;
    fa_plan *plans;
    _Atomic(fa_counters *) counters; /* added to under mutex */
    _Atomic(CUcontext) primary;      /* retained when first needed, or NULL */
    fa_leases leases;
    struct fa_lack *lacks;      /* guarded by mutex */
    struct fa_pending *pending; /* classes that threads are preparing; guarded by mutex */
    pthread_cond_t prepared;
    fa_background background;
    pthread_mutex_t gen_mutex; /* of the two below */
    fa_gen *gen[FA_GENERATORS_KEPT];
    int32_t idle_gens;
};

/* FA_INVALID of NULL, and in a child of the process that made it. */
fa_status fa_context_check(const fa_context *ctx);

/* The CUDA context that is current, and whether it is the primary one and was pushed. */
typedef struct fa_entered {
    CUcontext current;
    bool pushed;
} fa_entered;

/* Makes a context of the device current: the caller's own, if it has one, else the primary one. Leave when done. */
fa_status fa_context_enter(fa_context *ctx, fa_entered *in);
void fa_context_leave(fa_context *ctx, const fa_entered *in);

/* The context's kernel of that image with those steps, or NULL; two configs may differ in nothing but their steps. */
const fa_kernel *fa_context_kernel(fa_context *ctx, fa_key k, int32_t steps, const fa_step step[FA_SOURCE_STEPS]);
/* Gives k to the context; returns it, or the like one that another thread gave before. */
const fa_kernel *fa_context_keep(fa_context *ctx, fa_kernel *k);

/* Whether what is launched on the stream goes into a graph; true also for the legacy stream while any other is captured, since
 * what is not legal then is not legal on it either. */
fa_status fa_context_captured(const fa_context *ctx, CUstream stream, bool *out);
#endif
