/* context: entering its device, and what others may know of it. */
#include "context.h"
#include "driver_cuda.h"
#include "fork.h"
#include "gen/error.h"
#include <stdio.h>

fa_status fa_context_check(const fa_context *ctx)
{
    if (!ctx)
        return fa_fail(FA_INVALID, "ctx: NULL; accepted: a context of fa_create()");
    if (ctx->forks != atomic_load_explicit(&fa_forks, memory_order_relaxed))
        return fa_fail(FA_INVALID,
                       "ctx: it was made before fork(), by a parent of this process; accepted: a context that this process made");
    return FA_OK;
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

void fa_context_override_arch(fa_context *ctx, const fa_arch *arch, const char *chip)
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

struct fa_store *fa_context_store(const fa_context *ctx)
{
    return ctx->store;
}

struct fa_compiler *fa_context_compiler(const fa_context *ctx)
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

bool fa_context_bundle_only(const fa_context *ctx)
{
    return ctx->bundle_only;
}

const fa_log *fa_context_log(const fa_context *ctx)
{
    return &ctx->log;
}
