/* context: made from options, undone in reverse. */
#include "context.h"
#include "check.h"
#include "driver_cuda.h"
#include "environment.h"
#include "fork.h"
#include "gen/error.h"
#include "runtime.h"
#include "workshop.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fills the parts that do not depend on the driver; device is set. */
static fa_status furnish(fa_context *ctx, const fa_options *o, const fa_environment *env)
{
    int32_t most = ctx->device.arch.smem_block;
    if (o->sram_budget < 0 || o->sram_budget > most)
        return fa_fail(FA_INVALID, "options: sram_budget is %d; accepted on %s: 1 to %d bytes, or 0 for all of it",
                       o->sram_budget, ctx->device.arch.chip, most);
    ctx->budget = o->sram_budget ? o->sram_budget : most;
    ctx->shelf_only = o->bundle_only != 0;
    ctx->in_order = o->in_order != 0;
    fa_status st = fa_shelf_open(&ctx->shelf, o->bundles);
    if (st != FA_OK)
        return st;
    if (!fa_table_open(&ctx->table))
        return fa_fail(FA_NOMEM, "context: host memory");
    return fa_workshop_open(ctx, o, env);
}

static fa_status create(fa_context **out, const fa_options *opt, const cu_driver *driver, int ordinal)
{
    fa_environment env = fa_environment_read();
    fa_options o;
    fa_entered in;
    fa_context *ctx = NULL;
    if (!out)
        return fa_fail(FA_INVALID, "out: NULL; accepted: the address of a fa_context pointer");
    *out = NULL;
    fa_status st = fa_check_options(&o, opt);
    if (st != FA_OK)
        return st;
    ctx = calloc(1, sizeof *ctx);
    if (!ctx)
        return fa_fail(FA_NOMEM, "context: %zu bytes of host memory", sizeof *ctx);
    fa_fork_watch();
    ctx->forks = atomic_load(&fa_forks);
    pthread_mutex_init(&ctx->mutex, NULL);
    pthread_mutex_init(&ctx->gen_mutex, NULL);
    pthread_cond_init(&ctx->prepared, NULL);
    if (!fa_log_open(&ctx->log, o.log, o.log_user, o.log_level, env.log))
        st = fa_fail(FA_INVALID, "FAGEN_LOG: \"%s\"; accepted: error, warn, info, debug, or 0 to 3", env.log);
    if (st == FA_OK && driver)
        st = fa_device_open_on(&ctx->device, driver, ordinal);
    else if (st == FA_OK)
        st = fa_device_open(&ctx->device, o.device ? o.device : env.device);
    if (st == FA_OK)
        st = furnish(ctx, &o, &env);
    /* finds out now that a device cannot be used, and pays for the primary context outside any launch */
    if (st == FA_OK)
        st = fa_context_enter(ctx, &in);
    if (st == FA_OK)
        fa_context_leave(ctx, &in);
    if (st != FA_OK) {
        fa_destroy(ctx);
        return st;
    }
    fa_log_say(&ctx->log, FA_LOG_INFO, "device %s %d: %s (%s)", ctx->device.driver->name, ctx->device.ordinal,
               ctx->device.arch.chip, ctx->device.arch.name);
    *out = ctx;
    return FA_OK;
}

fa_status fa_context_check(const fa_context *ctx)
{
    if (!ctx)
        return fa_fail(FA_INVALID, "ctx: NULL; accepted: a context of fa_create()");
    if (ctx->forks != atomic_load_explicit(&fa_forks, memory_order_relaxed))
        return fa_fail(FA_INVALID, "ctx: it was made before fork(), by a parent of this process; accepted: a context that this process made");
    return FA_OK;
}

fa_status fa_create_on(fa_context **out, const fa_options *opt, const cu_driver *driver, int ordinal)
{
    fa_message before;
    fa_message_keep(&before);
    return fa_message_settle(&before, create(out, opt, driver, ordinal));
}

fa_status fa_create(fa_context **out, const fa_options *opt)
{
    return fa_create_on(out, opt, NULL, -1);
}

void fa_destroy(fa_context *ctx)
{
    fa_entered in = {.pushed = false};
    fa_message before;
    if (!ctx || ctx->forks != atomic_load(&fa_forks)) /* in a child of fork() all of it is the parent's */
        return;
    fa_message_keep(&before);
    const cu_driver *d = ctx->device.driver;
    if (ctx->kernels && fa_context_enter(ctx, &in) == FA_OK) {
        for (fa_kernel *k = ctx->kernels, *next; k; k = next) {
            next = k->next;
            fa_kernel_unload(&ctx->device, k);
        }
        fa_context_leave(ctx, &in);
    }
    fa_counters_close(ctx);
    for (fa_plan *p = ctx->plans, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    if (atomic_load(&ctx->primary))
        d->cuDevicePrimaryCtxRelease(ctx->device.handle);
    if (atomic_load(&ctx->table.slots))
        fa_table_close(&ctx->table);
    fa_workshop_close(ctx);
    fa_shelf_close(&ctx->shelf);
    pthread_cond_destroy(&ctx->prepared);
    pthread_mutex_destroy(&ctx->gen_mutex);
    pthread_mutex_destroy(&ctx->mutex);
    free(ctx);
    fa_message_settle(&before, FA_OK);
}

static const fa_kernel *find(fa_context *ctx, fa_key k, int32_t steps, const fa_step step[FA_SOURCE_STEPS])
{
    for (const fa_kernel *i = ctx->kernels; i; i = i->next)
        if (i->key.lo == k.lo && i->key.hi == k.hi && i->steps == steps && !memcmp(i->step, step, sizeof i->step))
            return i;
    return NULL;
}

const fa_kernel *fa_context_kernel(fa_context *ctx, fa_key k, int32_t steps, const fa_step step[FA_SOURCE_STEPS])
{
    pthread_mutex_lock(&ctx->mutex);
    const fa_kernel *there = find(ctx, k, steps, step);
    pthread_mutex_unlock(&ctx->mutex);
    return there;
}

const fa_kernel *fa_context_keep(fa_context *ctx, fa_kernel *k)
{
    pthread_mutex_lock(&ctx->mutex);
    const fa_kernel *there = find(ctx, k->key, k->steps, k->step);
    if (!there) {
        k->next = ctx->kernels;
        ctx->kernels = k;
    }
    pthread_mutex_unlock(&ctx->mutex);
    if (there)
        fa_kernel_unload(&ctx->device, k);
    return there ? there : k;
}

/* Retains the primary context once. */
static fa_status primary(fa_context *ctx, CUcontext *out)
{
    fa_status st = FA_OK;
    CUcontext c = atomic_load(&ctx->primary);
    if (!c) {
        pthread_mutex_lock(&ctx->mutex);
        c = atomic_load(&ctx->primary);
        if (!c) {
            st = fa_driver_check(ctx->device.driver, ctx->device.driver->cuDevicePrimaryCtxRetain(&c, ctx->device.handle),
                                 "cuDevicePrimaryCtxRetain");
            if (st == FA_OK)
                atomic_store(&ctx->primary, c);
        }
        pthread_mutex_unlock(&ctx->mutex);
    }
    *out = c;
    return st;
}

fa_status fa_context_enter(fa_context *ctx, fa_entered *in)
{
    const cu_driver *d = ctx->device.driver;
    CUcontext current = NULL;
    CUdevice device;
    in->pushed = false;
    if (d->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current && d->cuCtxGetDevice(&device) == CUDA_SUCCESS &&
        device == ctx->device.handle) {
        in->current = current;
        return FA_OK;
    }
    fa_status st = primary(ctx, &current);
    if (st == FA_OK)
        st = fa_driver_check(d, d->cuCtxPushCurrent(current), "cuCtxPushCurrent");
    in->current = current;
    in->pushed = st == FA_OK;
    return st;
}

void fa_context_leave(fa_context *ctx, const fa_entered *in)
{
    CUcontext popped;
    if (in->pushed)
        ctx->device.driver->cuCtxPopCurrent(&popped);
}

fa_status fa_context_captured(const fa_context *ctx, CUstream stream, bool *out)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    const cu_driver *d = ctx->device.driver;
    CUresult r = d->cuStreamIsCapturing(stream, &capture);
    bool implicit = r == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || r == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    *out = implicit || capture != CU_STREAM_CAPTURE_STATUS_NONE;
    return implicit ? FA_OK : fa_driver_check(d, r, "cuStreamIsCapturing");
}

void fa_context_pretend(fa_context *ctx, const fa_arch *arch, const char *chip)
{
    if (arch)
        ctx->device.arch = *arch;
    if (chip)
        snprintf(ctx->device.arch.chip, sizeof ctx->device.arch.chip, "%s", chip);
}

const cu_driver *fa_context_driver(const fa_context *ctx)
{
    return ctx->device.driver;
}

const fa_device *fa_context_device(const fa_context *ctx)
{
    return &ctx->device;
}

const fa_arch *fa_context_arch(const fa_context *ctx)
{
    return &ctx->device.arch;
}

fa_store *fa_context_store(const fa_context *ctx)
{
    return ctx->store;
}

fa_compiler *fa_context_compiler(const fa_context *ctx)
{
    return ctx->compiler;
}

const char *fa_context_template_dir(const fa_context *ctx)
{
    return ctx->template_dir;
}

int32_t fa_context_budget(const fa_context *ctx)
{
    return ctx->budget;
}

bool fa_context_shelf_only(const fa_context *ctx)
{
    return ctx->shelf_only;
}

const fa_log *fa_context_log(const fa_context *ctx)
{
    return &ctx->log;
}
