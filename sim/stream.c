/* stream: streams, capture, graphs and events. Work runs at once on the calling thread, unless its stream is capturing. */
#include "state.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void drop_node(sim_node *n)
{
    free(n->params);
}

static void drop_reference(sim_user_object *o)
{
    if (--o->references)
        return;
    sim_unregister(o);
    o->destroy(o->user); /* which makes no call of the driver, so that the lock may be held */
    free(o);
}

static void drop(sim_graph *g)
{
    if (!g)
        return;
    for (size_t k = 0; k < g->n; k++)
        drop_node(&g->node[k]);
    for (size_t k = 0; k < g->objects; k++)
        drop_reference(g->object[k]);
    free(g->object);
    free(g->node);
    free(g);
}

static bool retain(sim_graph *g, sim_user_object *o)
{
    sim_user_object **grown = realloc(g->object, (g->objects + 1) * sizeof *grown);
    if (!grown)
        return false;
    g->object = grown;
    g->object[g->objects++] = o;
    o->references++;
    return true;
}

static bool is_default(CUstream s)
{
    return !s || s == CU_STREAM_LEGACY || s == CU_STREAM_PER_THREAD;
}
static CUresult stream_of(CUstream s, sim_stream **to)
{
    *to = NULL;
    if (is_default(s))
        return CUDA_SUCCESS;
    if (!sim_live(s, H_STREAM))
        return CUDA_ERROR_INVALID_HANDLE;
    *to = (sim_stream *)(void *)s;
    return CUDA_SUCCESS;
}

CUresult sim_submit(CUstream stream, sim_node *n)
{
    sim_stream *s;
    CUresult r = stream_of(stream, &s);
    if (!r && s && s->device->of != n->device->of)
        r = sim_tell(CUDA_ERROR_INVALID_HANDLE, "the stream is of the simulator %s; accepted: a stream of %s", s->device->of->name,
                     n->device->of->name);
    if (!r && s && s->capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
        r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (r || !s || s->capture == CU_STREAM_CAPTURE_STATUS_NONE) {
        if (!r)
            r = n->run(n);
        drop_node(n);
        return r;
    }
    sim_graph *g = s->graph;
    if (g->n == g->cap) {
        size_t cap = g->cap ? g->cap * 2 : 8;
        sim_node *grown = realloc(g->node, cap * sizeof *grown);
        if (!grown)
            return drop_node(n), CUDA_ERROR_OUT_OF_MEMORY;
        g->node = grown, g->cap = cap;
    }
    g->node[g->n++] = *n;
    return CUDA_SUCCESS;
}

static uint64_t numbers = 2; /* of streams and captures; the default ones have the first two */

CUresult sim_cuStreamCreate(CUstream *to, unsigned flags)
{
    SIM_LOCKED;
    sim_device *d;
    CUresult r = sim_current(&d);
    if (r)
        return r;
    SIM_NEED(to && flags <= CU_STREAM_NON_BLOCKING);
    sim_stream *s = calloc(1, sizeof *s);
    if (!s || !sim_register(s, H_STREAM))
        return free(s), CUDA_ERROR_OUT_OF_MEMORY;
    s->device = d;
    s->number = ++numbers;
    *to = (CUstream)(void *)s;
    return CUDA_SUCCESS;
}

/* --- captures --- */

static sim_stream *captured;
static _Thread_local CUstreamCaptureMode own_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static void capture_ends(const sim_stream *s)
{
    for (sim_stream **at = &captured; *at; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            return;
        }
}

/* What captures say to a call that they may forbid; all: in whatever mode. Those that do are invalidated. */
static CUresult ends_captures(bool all)
{
    CUresult r = CUDA_SUCCESS;
    for (sim_stream *s = captured; s; s = s->next) {
        bool forbids = s->thread == &own_mode ? own_mode != CU_STREAM_CAPTURE_MODE_RELAXED && s->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                                              : own_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && s->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (!forbids && !all)
            continue;
        s->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return r;
}

CUresult sim_unsafe(void)
{
    return ends_captures(false);
}

CUresult sim_cuStreamDestroy(CUstream stream)
{
    SIM_LOCKED;
    if (!sim_live(stream, H_STREAM))
        return CUDA_ERROR_INVALID_HANDLE;
    sim_stream *s = (sim_stream *)(void *)stream;
    capture_ends(s);
    if (s->graph)
        sim_unregister(s->graph);
    drop(s->graph);
    sim_unregister(s);
    free(s);
    return CUDA_SUCCESS;
}
CUresult sim_cuStreamSynchronize(CUstream stream)
{
    SIM_LOCKED;
    sim_device *d;
    sim_stream *s;
    CUresult r = sim_current(&d);
    if (r || (r = stream_of(stream, &s)))
        return r;
    if (s && s->capture != CU_STREAM_CAPTURE_STATUS_NONE)
        return s->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return sim_unsafe();
}
CUresult sim_cuCtxSynchronize(void)
{
    SIM_LOCKED;
    sim_device *d;
    CUresult r = sim_current(&d); /* every call here has finished when it returns */
    return r ? r : ends_captures(true);
}
CUresult sim_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    SIM_LOCKED;
    sim_stream *s;
    SIM_NEED(status);
    CUresult r = stream_of(stream, &s);
    if (!r)
        *status = s ? s->capture : CU_STREAM_CAPTURE_STATUS_NONE;
    return r;
}
CUresult sim_cuStreamGetId(CUstream stream, unsigned long long *id)
{
    SIM_LOCKED;
    sim_stream *s;
    SIM_NEED(id);
    CUresult r = stream_of(stream, &s);
    if (!r && s && s->capture != CU_STREAM_CAPTURE_STATUS_NONE)
        return s->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; /* as the driver does */
    if (!r)
        *id = s ? s->number : stream == CU_STREAM_PER_THREAD ? 2 : 1;
    return r;
}
CUresult sim_cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                       const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *n)
{
    SIM_LOCKED;
    sim_stream *s;
    SIM_NEED(status);
    CUresult r = stream_of(stream, &s);
    if (r)
        return r;
    if (dependencies || edges || n)
        return sim_tell(CUDA_ERROR_NOT_SUPPORTED, "nodes of a graph have no handles here");
    *status = s ? s->capture : CU_STREAM_CAPTURE_STATUS_NONE;
    if (*status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id)
        *id = s->capturing;
    if (*status == CU_STREAM_CAPTURE_STATUS_ACTIVE && graph)
        *graph = (CUgraph)(void *)s->graph;
    return CUDA_SUCCESS;
}
CUresult sim_cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
    SIM_LOCKED;
    sim_stream *s;
    CUresult r = stream_of(stream, &s);
    if (r)
        return r;
    SIM_NEED(mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
    if (!s)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; /* the default stream cannot */
    if (s->capture != CU_STREAM_CAPTURE_STATUS_NONE)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (!(s->graph = calloc(1, sizeof *s->graph)) || !sim_register(s->graph, H_CAPTURED))
        return free(s->graph), s->graph = NULL, CUDA_ERROR_OUT_OF_MEMORY;
    s->capturing = ++numbers;
    s->mode = mode;
    s->thread = &own_mode;
    s->next = captured;
    captured = s;
    s->capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}
CUresult sim_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    SIM_NEED(mode && *mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
    CUstreamCaptureMode before = own_mode;
    own_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
CUresult sim_cuStreamEndCapture(CUstream stream, CUgraph *to)
{
    SIM_LOCKED;
    sim_stream *s;
    CUresult r = stream_of(stream, &s);
    if (r)
        return r;
    SIM_NEED(to);
    *to = NULL;
    if (!s || s->capture == CU_STREAM_CAPTURE_STATUS_NONE)
        return CUDA_ERROR_ILLEGAL_STATE;
    capture_ends(s);
    sim_unregister(s->graph);
    bool lost = s->capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED || !sim_register(s->graph, H_GRAPH);
    s->capture = CU_STREAM_CAPTURE_STATUS_NONE;
    if (lost)
        drop(s->graph);
    else
        *to = (CUgraph)(void *)s->graph;
    s->graph = NULL;
    return lost ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}
CUresult sim_cuGraphInstantiate(CUgraphExec *to, CUgraph graph, unsigned long long flags)
{
    SIM_LOCKED;
    (void)flags;
    SIM_NEED(to);
    if (!sim_live(graph, H_GRAPH))
        return CUDA_ERROR_INVALID_HANDLE;
    const sim_graph *g = (const sim_graph *)(const void *)graph;
    sim_graph *x = calloc(1, sizeof *x);
    if (!x || !(x->node = calloc(g->n + 1, sizeof *x->node)))
        return free(x), CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t k = 0; k < g->n; k++) {
        x->node[x->n] = g->node[k];
        if (g->node[k].params) {
            size_t n = g->node[k].kernel->program->param_bytes;
            if (!(x->node[x->n].params = malloc(n + 1)))
                return drop(x), CUDA_ERROR_OUT_OF_MEMORY;
            memcpy(x->node[x->n].params, g->node[k].params, n);
        }
        x->n++;
    }
    for (size_t k = 0; k < g->objects; k++)
        if (!retain(x, g->object[k]))
            return drop(x), CUDA_ERROR_OUT_OF_MEMORY;
    if (!sim_register(x, H_GRAPH_EXEC))
        return drop(x), CUDA_ERROR_OUT_OF_MEMORY;
    *to = (CUgraphExec)(void *)x;
    return CUDA_SUCCESS;
}
CUresult sim_cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    SIM_LOCKED;
    sim_stream *s;
    CUresult r = stream_of(stream, &s);
    if (r)
        return r;
    if (!sim_live(exec, H_GRAPH_EXEC))
        return CUDA_ERROR_INVALID_HANDLE;
    if (s && s->capture != CU_STREAM_CAPTURE_STATUS_NONE)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    const sim_graph *x = (const sim_graph *)(const void *)exec;
    for (size_t k = 0; k < x->n && !r; k++)
        r = x->node[k].kernel && !sim_live(x->node[k].kernel, H_KERNEL) ? CUDA_ERROR_INVALID_HANDLE : x->node[k].run(&x->node[k]);
    return r;
}
CUresult sim_cuGraphExecDestroy(CUgraphExec exec)
{
    SIM_LOCKED;
    if (!sim_live(exec, H_GRAPH_EXEC))
        return CUDA_ERROR_INVALID_HANDLE;
    sim_unregister(exec);
    drop((sim_graph *)(void *)exec);
    return CUDA_SUCCESS;
}
CUresult sim_cuGraphDestroy(CUgraph graph)
{
    SIM_LOCKED;
    if (!sim_live(graph, H_GRAPH))
        return CUDA_ERROR_INVALID_HANDLE;
    sim_unregister(graph);
    drop((sim_graph *)(void *)graph);
    return CUDA_SUCCESS;
}

CUresult sim_cuUserObjectCreate(CUuserObject *to, void *user, CUhostFn destroy, unsigned references, unsigned flags)
{
    SIM_LOCKED;
    SIM_NEED(to && destroy && references && flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    sim_user_object *o = malloc(sizeof *o);
    if (!o || !sim_register(o, H_USER_OBJECT))
        return free(o), CUDA_ERROR_OUT_OF_MEMORY;
    *o = (sim_user_object){ destroy, user, references };
    *to = (CUuserObject)(void *)o;
    return CUDA_SUCCESS;
}
CUresult sim_cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags)
{
    SIM_LOCKED;
    SIM_NEED(count == 1 && flags <= CU_GRAPH_USER_OBJECT_MOVE);
    if ((!sim_live(graph, H_CAPTURED) && !sim_live(graph, H_GRAPH)) || !sim_live(object, H_USER_OBJECT))
        return CUDA_ERROR_INVALID_HANDLE;
    sim_user_object *o = (sim_user_object *)(void *)object;
    if (!retain((sim_graph *)(void *)graph, o))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (flags == CU_GRAPH_USER_OBJECT_MOVE)
        o->references--;
    return CUDA_SUCCESS;
}

/* ---- events ---- */

CUresult sim_cuEventCreate(CUevent *to, unsigned flags)
{
    SIM_LOCKED;
    sim_device *d;
    CUresult r = sim_current(&d);
    if (r)
        return r;
    (void)flags;
    SIM_NEED(to);
    sim_event *e = calloc(1, sizeof *e);
    if (!e || !sim_register(e, H_EVENT))
        return free(e), CUDA_ERROR_OUT_OF_MEMORY;
    *to = (CUevent)(void *)e;
    return CUDA_SUCCESS;
}
CUresult sim_cuEventDestroy(CUevent event)
{
    SIM_LOCKED;
    if (!sim_live(event, H_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    sim_unregister(event);
    free((void *)event);
    return CUDA_SUCCESS;
}
CUresult sim_cuEventRecord(CUevent event, CUstream stream)
{
    SIM_LOCKED;
    sim_stream *s;
    struct timespec t;
    CUresult r = stream_of(stream, &s);
    if (r)
        return r;
    if (!sim_live(event, H_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    clock_gettime(CLOCK_MONOTONIC, &t);
    sim_event *e = (sim_event *)(void *)event;
    e->at = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec, e->recorded = true;
    return CUDA_SUCCESS;
}
/* Work runs at once, so that there is nothing to wait for; a captured stream would have to record it. */
CUresult sim_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    SIM_LOCKED;
    sim_stream *s;
    CUresult r = stream_of(stream, &s);
    SIM_NEED(!flags);
    if (r || !sim_live(event, H_EVENT))
        return r ? r : CUDA_ERROR_INVALID_HANDLE;
    return s && s->capture != CU_STREAM_CAPTURE_STATUS_NONE ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION : CUDA_SUCCESS;
}
CUresult sim_cuEventSynchronize(CUevent event)
{
    SIM_LOCKED;
    return sim_live(event, H_EVENT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult sim_cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    SIM_LOCKED;
    SIM_NEED(ms);
    if (!sim_live(start, H_EVENT) || !sim_live(end, H_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    const sim_event *a = (const sim_event *)(const void *)start, *b = (const sim_event *)(const void *)end;
    if (!a->recorded || !b->recorded)
        return CUDA_ERROR_INVALID_HANDLE;
    *ms = (float)(1e3 * (b->at - a->at));
    return CUDA_SUCCESS;
}
