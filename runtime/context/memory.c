/* memory: fa_alloc(), fa_free() and fa_copy(), the driver's own calls, with the context entered. */
#include "context.h"
#include "driver_cuda.h"
#include "gen/error.h"

static fa_status enter(fa_context *ctx, fa_entered *in)
{
    fa_status st = fa_context_check(ctx);
    return st == FA_OK ? fa_context_enter(ctx, in) : st;
}

fa_status fa_alloc(fa_context *ctx, void **out, size_t bytes)
{
    fa_entered in;
    CUdeviceptr p = 0;
    if (!out)
        return fa_fail(FA_INVALID, "out: NULL; accepted: where to write the address");
    *out = NULL;
    if (!bytes)
        return fa_fail(FA_INVALID, "bytes: 0; accepted: 1 or more");
    fa_status st = enter(ctx, &in);
    if (st != FA_OK)
        return st;
    const cu_driver *d = ctx->device.driver;
    CUresult r = d->cuMemAlloc(&p, bytes);
    st = r == CUDA_SUCCESS ? FA_OK : fa_wrap(fa_driver_check(d, r, "cuMemAlloc"), "%zu bytes", bytes);
    fa_context_leave(ctx, &in);
    if (st == FA_OK)
        *out = (void *)(uintptr_t)p;
    return st;
}

fa_status fa_free(fa_context *ctx, void *ptr)
{
    fa_entered in;
    if (ctx && !ptr)
        return FA_OK;
    fa_status st = enter(ctx, &in);
    if (st != FA_OK)
        return st;
    fa_holds(ctx);
    const cu_driver *d = ctx->device.driver;
    st = fa_driver_check(d, d->cuMemFree((CUdeviceptr)(uintptr_t)ptr), "cuMemFree");
    fa_context_leave(ctx, &in);
    return st;
}

/* A context of the device is current. */
static fa_status copy(const cu_driver *d, void *to, const void *from, size_t bytes, fa_copy_kind kind)
{
    fa_status st = fa_driver_check(d, d->cuCtxSynchronize(), "cuCtxSynchronize");
    if (st != FA_OK)
        return st;
    if (kind == FA_FROM_DEVICE)
        return fa_driver_check(d, d->cuMemcpyDtoH(to, (CUdeviceptr)(uintptr_t)from, bytes), "cuMemcpyDtoH");
    st = fa_driver_check(d, d->cuMemcpyHtoD((CUdeviceptr)(uintptr_t)to, from, bytes), "cuMemcpyHtoD");
    /* of pageable memory, the driver may have taken only its copy by now, which a stream of the caller's need not wait for */
    return st == FA_OK ? fa_driver_check(d, d->cuCtxSynchronize(), "cuCtxSynchronize") : st;
}

fa_status fa_copy(fa_context *ctx, void *to, const void *from, size_t bytes, fa_copy_kind kind)
{
    fa_entered in;
    if (kind != FA_TO_DEVICE && kind != FA_FROM_DEVICE)
        return fa_fail(FA_INVALID, "kind: %d; accepted: 0 (to the device), 1 (from the device)", (int)kind);
    if (bytes && !to)
        return fa_fail(FA_INVALID, "to: NULL; accepted with %zu bytes: an address", bytes);
    if (bytes && !from)
        return fa_fail(FA_INVALID, "from: NULL; accepted with %zu bytes: an address", bytes);
    fa_status st = enter(ctx, &in);
    if (st != FA_OK)
        return st;
    if (bytes)
        st = copy(ctx->device.driver, to, from, bytes, kind);
    fa_context_leave(ctx, &in);
    return st;
}
