/* counter: sets of words in a list that only grows, read without a lock. */
#include "counter.h"
#include "gen/error.h"
#include "runtime/context/context.h"
#include "runtime/context/driver_cuda.h"
#include <stdlib.h>

static fa_counters *find(fa_context *ctx, CUcontext current)
{
    fa_counters *c = atomic_load_explicit(&ctx->counters, memory_order_acquire);
    while (c && c->context != current)
        c = c->older;
    return c;
}

/* All zeros before any launch can see them: on a stream of their own, so as to wait for no work of the caller. */
static fa_status clear(const cu_driver *d, CUdeviceptr words)
{
    CUstream stream;
    fa_status st = fa_driver_check(d, d->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    if (st != FA_OK)
        return st;
    st = fa_driver_check(d, d->cuMemsetD32Async(words, 0, 2 * (size_t)FA_COUNTER_WORDS, stream), "cuMemsetD32Async");
    if (st == FA_OK)
        st = fa_driver_check(d, d->cuStreamSynchronize(stream), "cuStreamSynchronize");
    d->cuStreamDestroy(stream);
    return st;
}

/* ctx->mutex is held. */
static fa_status add(fa_context *ctx, CUcontext current)
{
    const cu_driver *d = ctx->device.driver;
    fa_counters *c = calloc(1, sizeof *c);
    if (!c)
        return fa_fail(FA_NOMEM, "counters: %zu bytes of host memory", sizeof *c);
    fa_status st = fa_driver_check(d, d->cuMemAlloc(&c->words, 2 * (size_t)FA_COUNTER_WORDS * sizeof(uint32_t)), "cuMemAlloc");
    if (st == FA_OK) {
        st = clear(d, c->words);
        if (st != FA_OK)
            d->cuMemFree(c->words);
    }
    if (st != FA_OK) {
        free(c);
        return fa_wrap(st, "counters");
    }
    c->context = current;
    c->older = atomic_load(&ctx->counters);
    atomic_store_explicit(&ctx->counters, c, memory_order_release);
    return FA_OK;
}

fa_status fa_counters_ready(fa_context *ctx, CUcontext current)
{
    if (find(ctx, current))
        return FA_OK;
    const cu_driver *d = ctx->device.driver;
    CUstreamCaptureMode mode;
    fa_status st = fa_driver_relax(d, &mode);
    if (st != FA_OK)
        return st;
    pthread_mutex_lock(&ctx->mutex);
    st = find(ctx, current) ? FA_OK : add(ctx, current);
    pthread_mutex_unlock(&ctx->mutex);
    fa_driver_restore(d, mode);
    return st;
}

fa_status fa_counter_take(fa_context *ctx, CUcontext current, CUstream stream, uint64_t *word)
{
    bool captured;
    uint32_t at;
    fa_status st = fa_context_captured(ctx, stream, &captured);
    fa_counters *c = find(ctx, current);
    if (st == FA_OK && !c) {
        if (captured)
            return fa_fail(FA_CAPTURE, "stream: it is being captured and the kernel, which takes memory of the CUDA context, is "
                                       "not prepared in this one; call fa_prepare() with it current before the capture");
        st = fa_counters_ready(ctx, current);
        c = find(ctx, current);
    }
    if (st != FA_OK)
        return st;
    if (captured) {
        at = atomic_fetch_add_explicit(&c->captured, 1, memory_order_relaxed);
        if (at >= FA_COUNTER_WORDS) {
            atomic_store_explicit(&c->captured, FA_COUNTER_WORDS, memory_order_relaxed); /* it must not wrap */
            return fa_fail(FA_CAPTURE,
                           "stream: it is being captured and the %u words that captured launches keep are taken; accepted: "
                           "graphs of fewer launches, or another fa_context",
                           FA_COUNTER_WORDS);
        }
        at += FA_COUNTER_WORDS;
    } else {
        at = atomic_fetch_add_explicit(&c->next, 1, memory_order_relaxed) % FA_COUNTER_WORDS;
    }
    *word = (uint64_t)c->words + at * sizeof(uint32_t);
    return FA_OK;
}

void fa_counters_close(fa_context *ctx)
{
    const cu_driver *d = ctx->device.driver;
    for (fa_counters *c = atomic_load(&ctx->counters), *older; c; c = older) {
        CUcontext popped;
        older = c->older;
        if (d->cuCtxPushCurrent(c->context) == CUDA_SUCCESS) {
            d->cuMemFree(c->words);
            d->cuCtxPopCurrent(&popped);
        }
        free(c);
    }
}
