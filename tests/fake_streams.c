/* fake_streams: streams of fake_driver, captures of them, and the user objects of their graphs. */
#include "fake_parts.h"
#include <stdatomic.h>

static atomic_long streams;
static atomic_int capturing, capture_mode;
static atomic_ullong captures; /* begun */
#define FAKE_OBJECTS 4096
static struct {
    CUgraph graph;
    CUhostFn destroy;
    void *user;
} objects[FAKE_OBJECTS]; /* user objects in the order of their making; graph NULL: destroyed, or of none yet */
static atomic_int n_objects;

static CUresult f_synchronize(void)
{
    NOTE(cuCtxSynchronize);
    return capturing ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

static CUresult f_stream_create(CUstream *s, unsigned flags)
{
    (void)flags;
    NOTE(cuStreamCreate);
    *s = (CUstream)(uintptr_t)0x5000;
    atomic_fetch_add(&streams, 1);
    return CUDA_SUCCESS;
}

static CUresult f_stream_destroy(CUstream s)
{
    (void)s;
    NOTE(cuStreamDestroy);
    atomic_fetch_sub(&streams, 1);
    return CUDA_SUCCESS;
}

static CUresult f_stream_synchronize(CUstream s)
{
    (void)s;
    NOTE(cuStreamSynchronize);
    return CUDA_SUCCESS;
}

static CUresult f_is_capturing(CUstream s, CUstreamCaptureStatus *c)
{
    (void)s;
    NOTE(cuStreamIsCapturing);
    *c = capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

/* A handle is its id: a stream that comes again is another one to who asks by id, which tests do by other handles. */
static CUresult f_stream_id(CUstream s, unsigned long long *id)
{
    NOTE(cuStreamGetId);
    if (capturing)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    *id = (uintptr_t)s;
    return CUDA_SUCCESS;
}

static CUresult f_capture_info(CUstream s, CUstreamCaptureStatus *c, cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                               const CUgraphEdgeData **edges, size_t *n)
{
    (void)s, (void)nodes, (void)edges, (void)n;
    NOTE(cuStreamGetCaptureInfo_v3);
    *c = capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    if (capturing && id)
        *id = captures;
    if (capturing && graph)
        *graph = fake_graph();
    return CUDA_SUCCESS;
}

static CUresult f_user_object(CUuserObject *o, void *user, CUhostFn destroy, unsigned references, unsigned flags)
{
    NOTE(cuUserObjectCreate);
    int i = atomic_fetch_add(&n_objects, 1);
    if (i >= FAKE_OBJECTS || references != 1 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    objects[i].graph = NULL, objects[i].destroy = destroy, objects[i].user = user;
    *o = (CUuserObject)(uintptr_t)(0x6000 + i);
    return CUDA_SUCCESS;
}

static CUresult f_retain_object(CUgraph graph, CUuserObject o, unsigned count, unsigned flags)
{
    NOTE(cuGraphRetainUserObject);
    if (!graph || count != 1 || flags != CU_GRAPH_USER_OBJECT_MOVE)
        return CUDA_ERROR_INVALID_VALUE;
    objects[(uintptr_t)o - 0x6000].graph = graph;
    return CUDA_SUCCESS;
}

static CUresult f_exchange_mode(CUstreamCaptureMode *mode)
{
    NOTE(cuThreadExchangeStreamCaptureMode);
    *mode = (CUstreamCaptureMode)atomic_exchange(&capture_mode, (int)*mode);
    return CUDA_SUCCESS;
}

void fake_streams_begin(cu_driver *t)
{
    t->cuCtxSynchronize = f_synchronize;
    t->cuStreamCreate = f_stream_create;
    t->cuStreamDestroy = f_stream_destroy;
    t->cuStreamSynchronize = f_stream_synchronize;
    t->cuStreamIsCapturing = f_is_capturing;
    t->cuStreamGetId = f_stream_id;
    t->cuStreamGetCaptureInfo_v3 = f_capture_info;
    t->cuUserObjectCreate = f_user_object;
    t->cuGraphRetainUserObject = f_retain_object;
    t->cuThreadExchangeStreamCaptureMode = f_exchange_mode;
    capturing = n_objects = 0;
    capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    streams = 0;
}

bool fake_is_capturing(void)
{
    return capturing;
}

bool fake_capture_forbids(void)
{
    return capturing && capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED;
}

long fake_live_streams(void)
{
    return atomic_load(&streams);
}

void fake_capturing(bool on)
{
    captures += on;
    capturing = on;
}

CUgraph fake_graph(void)
{
    return (CUgraph)(uintptr_t)(0x80000000u + captures);
}

void fake_graph_gone(CUgraph graph)
{
    for (int i = 0; i < n_objects && i < FAKE_OBJECTS; i++)
        if (objects[i].graph == graph) {
            objects[i].graph = NULL;
            objects[i].destroy(objects[i].user);
        }
}

CUstreamCaptureMode fake_capture_mode(void)
{
    return (CUstreamCaptureMode)atomic_load(&capture_mode);
}
