/* lease_memory: allocated in the order of a stream, or beside a capture. */
#include "lease_memory.h"
#include "gen/error.h"
#include "gen/workspace.h"
#include "runtime/context/context.h"
#include "runtime/context/driver_cuda.h"
#include <stdlib.h>
#include <string.h>

#define UNIT FA_WORKSPACE_COUNTERS /* sizes are multiples of it */
#define MORE ((size_t)64 << 20)    /* a workspace that grows gets at most so much more than it needs */
#define MANY 64                    /* streams that the log is told of */

static bool is_captured(const fa_lease *l)
{
    return fa_lease_key(l, FA_LEASE_CAPTURE) != 0;
}

static void account(fa_context *ctx, fa_lease *l, CUdeviceptr at, size_t bytes)
{
    int streams = is_captured(l) ? 0 : (bytes != 0) - (l->bytes != 0);
    atomic_fetch_add(&ctx->leases->held, bytes - l->bytes);
    int n = atomic_fetch_add(&ctx->leases->streams, streams) + streams;
    l->at = at;
    l->bytes = bytes;
    if (streams > 0 && n >= MANY && !(n & (n - 1)))
        fa_log_say(&ctx->log, FA_LOG_WARN,
                   "%d streams have workspaces of this context, %zu bytes with those of graphs; fa_workspace_release() frees that of a "
                   "stream which ends",
                   n, atomic_load(&ctx->leases->held));
}

bool fa_lease_memory_over(const fa_lease *l)
{
    int posts = 0;
    return l->gone && sem_getvalue(l->gone, &posts) == 0 && posts > 0;
}

/* Where it is not over, the driver will still post it: it stays for that. */
static void forget_graph(fa_lease *l)
{
    if (fa_lease_memory_over(l)) {
        sem_destroy(l->gone);
        free(l->gone);
    }
    l->gone = NULL;
}

void fa_lease_memory_move(fa_lease *to, fa_lease *from)
{
    to->at = from->at;
    to->bytes = from->bytes;
    to->ordered = from->ordered;
    from->at = 0;
    from->bytes = 0;
    forget_graph(from);
}

fa_status fa_lease_memory_drop(fa_context *ctx, fa_lease *l)
{
    const cu_driver *d = ctx->device.driver;
    CUstreamCaptureMode mode;
    if (!l->bytes)
        return FA_OK;
    fa_status st = fa_driver_relax(d, &mode);
    if (st != FA_OK)
        return st;
    st = fa_driver_check(d, d->cuMemFree(l->at), "cuMemFree");
    fa_driver_restore(d, mode);
    if (st == FA_OK) {
        account(ctx, l, 0, 0);
        forget_graph(l);
    }
    return st;
}

fa_status fa_lease_memory_drop_behind(fa_context *ctx, fa_lease *l, CUstream stream)
{
    const cu_driver *d = ctx->device.driver;
    if (!l->bytes)
        return FA_OK;
    CUstreamCaptureMode mode;
    fa_status st = fa_driver_relax(d, &mode);
    if (st != FA_OK)
        return st;
    st = l->ordered ? fa_driver_check(d, d->cuMemFreeAsync(l->at, stream), "cuMemFreeAsync")
                    : fa_driver_check(d, d->cuStreamSynchronize(stream), "cuStreamSynchronize");
    fa_driver_restore(d, mode);
    if (st == FA_OK && !l->ordered)
        return fa_lease_memory_drop(ctx, l);
    if (st == FA_OK)
        account(ctx, l, 0, 0);
    return st;
}

static size_t rounded(size_t bytes)
{
    return bytes > SIZE_MAX - UNIT ? bytes : (bytes + UNIT - 1) / UNIT * UNIT;
}

static fa_status allocate(const cu_driver *d, size_t bytes, bool ordered, CUstream stream, CUdeviceptr *at)
{
    CUstreamCaptureMode mode;
    fa_status st = fa_driver_relax(d, &mode);
    if (st != FA_OK)
        return st;
    st = ordered ? fa_driver_check(d, d->cuMemAllocAsync(at, bytes, stream), "cuMemAllocAsync")
                 : fa_driver_check(d, d->cuMemAlloc(at, bytes), "cuMemAlloc");
    fa_driver_restore(d, mode);
    return st;
}

/* Memory of a capture keeps its address in every replay, so that no stream orders it. */
static fa_status by_stream(const fa_context *ctx, const fa_lease *l, bool *out)
{
    const cu_driver *d = ctx->device.driver;
    int pools = 0;
    fa_status st = is_captured(l)
                       ? FA_OK
                       : fa_driver_check(d, d->cuDeviceGetAttribute(&pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, ctx->device.handle),
                                         "cuDeviceGetAttribute");
    *out = pools != 0;
    return st;
}

fa_status fa_lease_memory_make(fa_context *ctx, fa_lease *l, size_t need, size_t most, CUstream stream)
{
    const cu_driver *d = ctx->device.driver;
    size_t more = most < MORE ? 2 * most : most + MORE, bytes = rounded(need > more ? need : more), least = rounded(need);
    CUdeviceptr at = 0;
    bool ordered;
    fa_message before;
    fa_status st = fa_lease_memory_drop_behind(ctx, l, stream);
    if (st == FA_OK)
        st = by_stream(ctx, l, &ordered);
    if (st != FA_OK)
        return st;
    fa_message_keep(&before);
    st = allocate(d, bytes, ordered, stream, &at);
    if (st == FA_NOMEM && bytes > least) {
        bytes = least;
        st = allocate(d, bytes, ordered, stream, &at);
    }
    st = fa_message_settle(&before, st);
    if (st != FA_OK)
        return fa_wrap(st, "args.workspace is NULL, and the context has none of %zu bytes to lend", bytes);
    account(ctx, l, at, bytes);
    l->ordered = ordered;
    fa_log_say(&ctx->log, FA_LOG_INFO, "lends a workspace of %zu bytes to %s %llu", bytes,
               is_captured(l) ? "a capture of stream" : "stream", (unsigned long long)fa_lease_key(l, FA_LEASE_STREAM));
    return FA_OK;
}

/* The driver calls a function of the C library and none of this one, which a graph may outlive. */
static CUhostFn poster(void)
{
    int (*post)(sem_t *) = sem_post;
    CUhostFn as;
    _Static_assert(sizeof post == sizeof as, "addresses of functions");
    memcpy(&as, &post, sizeof as);
    return as;
}

void fa_lease_memory_hold(fa_context *ctx, fa_lease *l, CUstream stream)
{
    const cu_driver *d = ctx->device.driver;
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph graph = NULL;
    CUuserObject object;
    sem_t *gone = malloc(sizeof *gone);
    if (!gone)
        return;
    sem_init(gone, 0, 0);
    if (d->cuStreamGetCaptureInfo_v3(stream, &status, &id, &graph, NULL, NULL, NULL) != CUDA_SUCCESS || !graph ||
        d->cuUserObjectCreate(&object, gone, poster(), 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) != CUDA_SUCCESS) {
        sem_destroy(gone);
        free(gone);
    } else if (d->cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE) == CUDA_SUCCESS) {
        l->gone = gone;
        return;
    } /* else the object stays, and nobody posts */
    fa_log_say(&ctx->log, FA_LOG_INFO, "a graph cannot tell when it ends: its workspace of %zu bytes stays until fa_destroy()", l->bytes);
}

/* On a stream of its own, which a capture does not see. */
static fa_status clear_apart(const cu_driver *d, CUdeviceptr at)
{
    CUstream own;
    fa_status st = fa_driver_check(d, d->cuStreamCreate(&own, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    if (st != FA_OK)
        return st;
    st = fa_driver_check(d, d->cuMemsetD32Async(at, 0, FA_WORKSPACE_COUNTERS / 4, own), "cuMemsetD32Async");
    if (st == FA_OK)
        st = fa_driver_check(d, d->cuStreamSynchronize(own), "cuStreamSynchronize");
    d->cuStreamDestroy(own);
    return st;
}

fa_status fa_lease_memory_clear(fa_context *ctx, fa_lease *l, CUstream stream)
{
    const cu_driver *d = ctx->device.driver;
    CUstreamCaptureMode mode;
    if (!is_captured(l))
        return fa_driver_check(d, d->cuMemsetD32Async(l->at, 0, FA_WORKSPACE_COUNTERS / 4, stream), "cuMemsetD32Async");
    fa_status st = fa_driver_relax(d, &mode);
    if (st != FA_OK)
        return st;
    st = clear_apart(d, l->at);
    fa_driver_restore(d, mode);
    return st;
}
