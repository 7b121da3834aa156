/* lease: memory by CUDA context, stream, thread and capture, taken and given back by launches. */
#include "lease.h"
#include "gen/error.h"
#include "lease_memory.h"
#include "runtime/context/context.h"
#include "runtime/context/driver_cuda.h"
#include <stdlib.h>

/* Each thread has a number of its own; not 0. */
static uint64_t own_thread(void)
{
    static atomic_uint_fast64_t threads;
    static _Thread_local uint64_t own;
    if (!own)
        own = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
    return own;
}

/* A stream that is being captured does not tell its id. Its handle is as good, beside the number of the capture, which ends before it. */
static fa_status key_of(const cu_driver *d, CUcontext current, CUstream stream, uint64_t key[FA_LEASE_KEYS])
{
    unsigned long long id = (uintptr_t)stream;
    cuuint64_t capture = 0;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    fa_status st =
        fa_driver_check(d, d->cuStreamGetCaptureInfo_v3(stream, &status, &capture, NULL, NULL, NULL, NULL), "cuStreamGetCaptureInfo");
    if (st == FA_OK && status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        st = fa_driver_check(d, d->cuStreamGetId(stream, &id), "cuStreamGetId");
    key[FA_LEASE_CONTEXT] = (uint64_t)(uintptr_t)current;
    key[FA_LEASE_STREAM] = id;
    key[FA_LEASE_THREAD] = stream == CU_STREAM_PER_THREAD ? own_thread() : 0;
    key[FA_LEASE_CAPTURE] = status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? capture + 1 : 0;
    return st;
}

static _Atomic(fa_lease *) *list_of(fa_leases *ls, const uint64_t key[FA_LEASE_KEYS])
{
    uint64_t h = 0;
    for (int i = 0; i < FA_LEASE_KEYS; i++)
        h = (h ^ key[i]) * 0x9E3779B97F4A7C15u;
    return &ls->list[(h >> 32) % FA_LEASE_LISTS];
}

static bool is_of(const fa_lease *l, const uint64_t key[FA_LEASE_KEYS])
{
    bool same = true;
    for (int i = 0; i < FA_LEASE_KEYS; i++)
        same = same && fa_lease_key(l, i) == key[i];
    return same;
}

static bool take(fa_lease *l)
{
    return !atomic_load_explicit(&l->taken, memory_order_relaxed) && !atomic_exchange_explicit(&l->taken, true, memory_order_acquire);
}

void fa_lease_give(fa_lease *l, bool clean)
{
    l->unclean = l->unclean || !clean;
    atomic_store_explicit(&l->taken, false, memory_order_release);
}

/* One of the key that nobody has: large enough, else one that may grow, else NULL. *most: bytes of the largest that was looked at. Launches
 * that were captured hold their memory, so that it stays as it is. */
static fa_lease *find(fa_leases *ls, const uint64_t key[FA_LEASE_KEYS], size_t need, size_t *most)
{
    fa_lease *small = NULL, *l = atomic_load_explicit(list_of(ls, key), memory_order_acquire);
    *most = 0;
    for (; l; l = l->next) {
        if (!is_of(l, key) || !take(l))
            continue;
        if (is_of(l, key) && l->bytes >= need)
            break;
        *most = is_of(l, key) && l->bytes > *most ? l->bytes : *most;
        if (is_of(l, key) && !small && (!l->bytes || !key[FA_LEASE_CAPTURE]))
            small = l;
        else
            fa_lease_give(l, true);
    }
    if (l && small)
        fa_lease_give(small, true);
    return l ? l : small;
}

/* One without memory, of that key and taken. NULL: no host memory. */
static fa_lease *blank(fa_context *ctx, const uint64_t key[FA_LEASE_KEYS])
{
    _Atomic(fa_lease *) *list = list_of(ctx->leases, key);
    pthread_mutex_lock(&ctx->leases->mutex);
    fa_lease *l = atomic_load(list);
    for (; l; l = l->next) {
        if (!take(l))
            continue;
        if (!l->bytes)
            break;
        fa_lease_give(l, true);
    }
    bool made = !l;
    if (made)
        l = calloc(1, sizeof *l);
    for (int i = 0; l && i < FA_LEASE_KEYS; i++)
        atomic_store_explicit(&l->key[i], key[i], memory_order_relaxed);
    if (l && made) {
        atomic_store(&l->taken, true);
        l->next = atomic_load(list);
        atomic_store_explicit(list, l, memory_order_release);
    }
    pthread_mutex_unlock(&ctx->leases->mutex);
    return l;
}

/* Memory of a capture that is over, for one of the same CUDA context that has none. */
static bool adopt(fa_context *ctx, fa_lease *l, size_t need)
{
    const uint64_t context = fa_lease_key(l, FA_LEASE_CONTEXT);
    for (int i = 0; i < FA_LEASE_LISTS && !l->bytes; i++)
        for (fa_lease *o = atomic_load_explicit(&ctx->leases->list[i], memory_order_acquire); o && !l->bytes; o = o->next) {
            if (fa_lease_key(o, FA_LEASE_CONTEXT) != context || !fa_lease_key(o, FA_LEASE_CAPTURE) || !take(o))
                continue; /* also l, which is taken */
            if (o->bytes >= need && fa_lease_key(o, FA_LEASE_CONTEXT) == context && fa_lease_memory_over(o))
                fa_lease_memory_move(l, o);
            fa_lease_give(o, true);
        }
    return l->bytes != 0;
}

/* Memory for one that has too little. */
static fa_status fill(fa_context *ctx, fa_lease *l, size_t need, size_t most, CUstream stream)
{
    bool captured = fa_lease_key(l, FA_LEASE_CAPTURE) != 0;
    fa_status st = captured && adopt(ctx, l, need) ? FA_OK : fa_lease_memory_make(ctx, l, need, most, stream);
    if (st == FA_OK && captured)
        fa_lease_memory_hold(ctx, l, stream);
    l->unclean = true;
    return st;
}

fa_status fa_lease_take(fa_context *ctx, CUcontext current, CUstream stream, size_t need, fa_lease **out)
{
    uint64_t key[FA_LEASE_KEYS];
    size_t most;
    *out = NULL;
    fa_status st = key_of(ctx->device.driver, current, stream, key);
    if (st != FA_OK)
        return fa_wrap(st, "workspace");
    fa_lease *l = find(ctx->leases, key, need, &most);
    if (!l)
        l = blank(ctx, key);
    if (!l)
        return fa_fail(FA_NOMEM, "workspace: %zu bytes of host memory", sizeof *l);
    if (l->bytes < need)
        st = fill(ctx, l, need, most, stream);
    if (st == FA_OK && l->unclean) {
        st = fa_lease_memory_clear(ctx, l, stream);
        l->unclean = st != FA_OK;
    }
    if (st == FA_OK)
        *out = l;
    else
        fa_lease_give(l, true);
    return fa_wrap(st, "workspace");
}

/* --- what callers ask for --- */

/* The stream's own, after its work. One that a call of another thread has stays. */
static fa_status release_stream(fa_context *ctx, CUcontext current, CUstream stream)
{
    uint64_t key[FA_LEASE_KEYS];
    fa_status st = key_of(ctx->device.driver, current, stream, key);
    if (st == FA_OK && key[FA_LEASE_CAPTURE])
        st = fa_fail(FA_CAPTURE, "stream: it is being captured; accepted: a stream that is not");
    fa_lease *l = st == FA_OK ? atomic_load_explicit(list_of(ctx->leases, key), memory_order_acquire) : NULL;
    for (; l && st == FA_OK; l = l->next) {
        if (!is_of(l, key) || !take(l))
            continue;
        if (is_of(l, key))
            st = fa_lease_memory_drop_behind(ctx, l, stream);
        fa_lease_give(l, true);
    }
    return st;
}

/* Of a stream, which may have ended long ago, or of a graph that is gone. */
static fa_status release(fa_context *ctx, fa_lease *l)
{
    const cu_driver *d = ctx->device.driver;
    CUcontext popped;
    if (!l->bytes || (fa_lease_key(l, FA_LEASE_CAPTURE) && !fa_lease_memory_over(l)))
        return FA_OK;
    fa_status st = fa_driver_check(d, d->cuCtxPushCurrent((CUcontext)(uintptr_t)fa_lease_key(l, FA_LEASE_CONTEXT)), "cuCtxPushCurrent");
    if (st != FA_OK)
        return st;
    if (!fa_lease_key(l, FA_LEASE_CAPTURE))
        st = fa_driver_check(d, d->cuCtxSynchronize(), "cuCtxSynchronize");
    if (st == FA_OK)
        st = fa_lease_memory_drop(ctx, l);
    d->cuCtxPopCurrent(&popped);
    return st;
}

static fa_status release_all(fa_context *ctx)
{
    fa_status st = FA_OK;
    for (int i = 0; i < FA_LEASE_LISTS; i++)
        for (fa_lease *l = atomic_load_explicit(&ctx->leases->list[i], memory_order_acquire); l && st == FA_OK; l = l->next) {
            if (!take(l))
                continue;
            st = release(ctx, l);
            fa_lease_give(l, true);
        }
    return st;
}

fa_status fa_workspace_release(fa_context *ctx, const fa_stream *stream)
{
    fa_entered in;
    fa_status st = fa_context_check(ctx);
    if (st == FA_OK)
        st = fa_context_enter(ctx, &in);
    if (st != FA_OK)
        return st;
    st = stream ? release_stream(ctx, in.current, (CUstream)*stream) : release_all(ctx);
    fa_context_leave(ctx, &in);
    return st;
}

fa_status fa_workspace_held(fa_context *ctx, size_t *bytes)
{
    fa_status st = fa_context_check(ctx);
    if (st != FA_OK)
        return st;
    if (!bytes)
        return fa_fail(FA_INVALID, "bytes: NULL; accepted: where to write the size");
    *bytes = atomic_load(&ctx->leases->held);
    return FA_OK;
}

void fa_leases_open(fa_leases *ls)
{
    pthread_mutex_init(&ls->mutex, NULL);
}

void fa_leases_close(fa_context *ctx)
{
    const cu_driver *d = ctx->device.driver;
    for (int i = 0; i < FA_LEASE_LISTS; i++)
        for (fa_lease *l = atomic_load(&ctx->leases->list[i]), *next; l; l = next) {
            CUcontext popped;
            next = l->next;
            if (l->bytes && d->cuCtxPushCurrent((CUcontext)(uintptr_t)fa_lease_key(l, FA_LEASE_CONTEXT)) == CUDA_SUCCESS) {
                fa_lease_memory_drop(ctx, l);
                d->cuCtxPopCurrent(&popped);
            }
            free(l);
        }
    pthread_mutex_destroy(&ctx->leases->mutex);
}
