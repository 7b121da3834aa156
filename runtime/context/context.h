/* context: the inside of fa_context, and entering its device. What the context keeps for the rooms above is a part of its own each: here
 * known by name alone, told by the header of its noun, which only rooms see that may. */
#ifndef FA_RUNTIME_CONTEXT_CONTEXT_H
#define FA_RUNTIME_CONTEXT_CONTEXT_H
#include "device.h"
#include "log.h"
#include <pthread.h>
#include <stdatomic.h>

struct fa_context {
    unsigned forks; /* fa_forks when it was made: another number means another process */
    fa_device device;
    fa_log log;
    int32_t budget;             /* shared memory per block, bytes */
    bool bundle_only;           /* nothing is rendered or compiled */
    bool in_order;              /* no kernel begins before what precedes it has ended */
    bool lends;                 /* a workspace where a launch brings none */
    int32_t on_miss;            /* fa_on_miss */
    int32_t check_device_data;  /* the option */
    bool checks_device_data;    /* what it means on this device */
    char *template_dir;         /* NULL = the embedded templates */
    char *workload;             /* the file that tells what was launched; NULL = nobody counts */
    pthread_mutex_t mutex;      /* of the two below */
    _Atomic(CUcontext) primary; /* retained when first needed, or NULL */
    _Atomic(struct fa_counters *) counters;
    /* the parts */
    struct fa_store *store;             /* cache/store.h */
    struct fa_compiler *compiler;       /* build/compiler.h */
    struct fa_kernels *kernels;         /* build/kernels.h: what is loaded */
    struct fa_bundle_set *bundle_set;   /* bundle/set.h: kernels of bundles */
    struct fa_precompiled *precompiled; /* bundle/precompiled.h: kernels that are installed in compiled form */
    struct fa_generators *generators;   /* choose/generators.h */
    struct fa_pins *pins;               /* choose/pins.h: configs that the program named */
    struct fa_plans *plans;             /* plan/plans.h: all that were made, and which are being made */
    struct fa_table *table;             /* plan/table.h: those that launches run */
    struct fa_lacks *lacks;             /* plan/lack.h: what calls without a workspace cost */
    struct fa_background *background;   /* plan/background.h */
    struct fa_leases *leases;           /* launch/lease.h: workspaces for launches that bring none */
    struct fa_scores *scores;           /* args/scores.h: score programs */
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

/* Whether what is launched on the stream goes into a graph; true also for the legacy stream while any other is captured, since
 * what is not legal then is not legal on it either. */
fa_status fa_context_captured(const fa_context *ctx, CUstream stream, bool *out);

/* fa_select_jit() then answers for another chip: its numbers (NULL = they stay) and its name, whose records and shipped winners are read
 * (NULL = that of the numbers). For contexts that launch nothing. */
void fa_context_override_arch(fa_context *ctx, const fa_arch *arch, const char *chip);

/* All borrowed, valid until fa_destroy(). */
const cu_driver *fa_context_driver(const fa_context *ctx);
const fa_device *fa_context_device(const fa_context *ctx);
const fa_arch *fa_context_arch(const fa_context *ctx); /* refined: chip is the device's name */
struct fa_store *fa_context_store(const fa_context *ctx);
struct fa_compiler *fa_context_compiler(const fa_context *ctx);
const char *fa_context_template_dir(const fa_context *ctx); /* NULL = the embedded ones */
int32_t fa_context_budget(const fa_context *ctx);           /* shared memory per block, bytes */
bool fa_context_bundle_only(const fa_context *ctx);         /* options.bundle_only: nothing is rendered or compiled */
const fa_log *fa_context_log(const fa_context *ctx);
#endif
