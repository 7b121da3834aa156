/* rider: hooks of devices and backends, and the way of a graph. */
#include "rider.h"
#include "device.h"
#include "gen/error.h"
#include "replay.h"
#include "report.h"
#include "runtime/runtime.h"
#include "stage.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES 16
#define BACKENDS 64
#define COUNT(what) __atomic_fetch_add(&r.counts.what, 1, __ATOMIC_RELAXED)
#define ITEMS 1024 /* claimed nodes of a graph; those past them are ggml's */

/* A device whose entries were replaced. */
typedef struct hooked {
    fa_ggml_device *device;
    bool (*supports_op)(fa_ggml_device *, const fa_ggml_tensor *);
    fa_ggml_backend *(*init_backend)(fa_ggml_device *, const char *);
    char name[32];
    int32_t number; /* of CUDA's devices */
    fa_ggml_engine *engine;
    _Atomic(bool) failed;   /* no engine, or a launch failed: nothing is claimed any more */
    _Atomic(bool) has_ours; /* a backend of it came through init_backend */
} hooked;

typedef struct ridden {
    fa_ggml_backend *backend;
    hooked *on;
    int32_t (*compute)(fa_ggml_backend *, fa_ggml_graph *);
    void (*release)(fa_ggml_backend *);
    fa_ggml_stream *stream;
    CUstream own; /* tier 1: our stream, and events before and after what runs there */
    fa_ggml_event *before, *after;
    bool checked; /* a graph lies as known */
    fa_ggml_replays *replays;
} ridden;

static struct {
    pthread_mutex_t mutex; /* of the lists; an entry stays where it is */
    bool loaded;
    fa_ggml ggml;
    fa_ggml_settings settings;
    fa_context *ctx;
    fa_ggml_reg *reg;
    hooked device[DEVICES];
    int32_t devices;
    _Atomic(ridden *) backend[BACKENDS];
    fa_ggml_rider_counts counts;
} r = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* One that a claim's node is waiting in. */
typedef struct item {
    int32_t node;
    fa_ggml_claim claim;
} item;

static hooked *device_of(const fa_ggml_device *d)
{
    for (int32_t i = 0; i < r.devices; i++)
        if (r.device[i].device == d)
            return &r.device[i];
    return NULL;
}

static bool staged(void)
{
    return r.settings.simulator[0] && !r.ctx;
}

/* The engine of a device, made when a node is first asked about. NULL: there is none, which was told. */
static fa_ggml_engine *engine_of(hooked *h)
{
    char name[64];
    pthread_mutex_lock(&r.mutex);
    if (!h->engine && !h->failed) {
        snprintf(name, sizeof name, "cuda:%d", h->number);
        fa_status st = r.ctx ? fa_ggml_engine_open_on(&h->engine, r.ctx, r.settings.memory)
                             : fa_ggml_engine_open(&h->engine, staged() ? r.settings.simulator : name, r.settings.memory, fa_ggml_log);
        if (st == FA_OK && (st = fa_ggml_engine_ready(h->engine)) != FA_OK) {
            fa_ggml_engine_close(h->engine);
            h->engine = NULL;
        }
        if (st != FA_OK) {
            h->failed = true;
            COUNT(failures);
            fa_ggml_tell("%s stays ggml's alone: %s: %s", h->name, fa_status_name(st), fa_last_error());
        }
    }
    pthread_mutex_unlock(&r.mutex);
    return h->failed ? NULL : h->engine;
}

static bool claims(hooked *h, const fa_ggml_tensor *node, fa_ggml_claim *c)
{
    char why[512];
    if (h->failed)
        return false;
    bool yes = fa_ggml_claim_node(&r.ggml, node, c, why, sizeof why);
    if (yes && !engine_of(h))
        return false;
    if (yes)
        yes = fa_ggml_engine_takes(h->engine, c, why, sizeof why);
    if (!yes)
        fa_ggml_tell("%s: left to ggml: %s", h->name, why);
    else if (r.settings.tells)
        fa_ggml_tell("%s: claimed: d %d and %d, K %s, V %s%s%s%s", h->name, c->d, c->dv, r.ggml.type[node->src[1]->type].name,
                     r.ggml.type[node->src[2]->type].name, c->mask ? ", a mask" : "", c->cap > 0 ? ", a cap" : "",
                     c->sinks ? ", sinks" : "");
    return yes;
}

static bool supports_op(fa_ggml_device *d, const fa_ggml_tensor *node)
{
    hooked *h = device_of(d);
    fa_ggml_claim c;
    if (!h)
        return false;
    bool theirs = h->supports_op(d, node);
    /* what they refuse is claimed where its backends are known to come through the hook, and a kernel is there */
    return theirs || (node->op == r.ggml.attention && h->has_ours && claims(h, node, &c) &&
                      fa_ggml_engine_prepare(h->engine, &c) == FA_OK);
}

/* --- graphs --- */

/* Nodes of a graph, as a graph: for theirs. A ggml whose graphs have more fields finds zeros there. Its number is that of the whole: the
 * parts are the same ones each time, until a failure; then they may be others than those that were kept under it. */
static int32_t compute_part(ridden *b, const fa_ggml_graph *graph, int32_t first, int32_t past)
{
    struct {
        fa_ggml_graph graph;
        char more[128];
    } p = { .graph = *graph };
    p.graph.n_nodes = past - first;
    p.graph.nodes = graph->nodes + first;
    if (p.graph.n_nodes < graph->n_nodes) {
        p.graph.size = p.graph.n_leafs = 0;
        p.graph.grads = p.graph.grad_accs = p.graph.leafs = NULL;
    }
    if (b->on->failed)
        p.graph.uid = 0;
    COUNT(parts);
    return b->compute(b->backend, &p.graph);
}

static int32_t theirs(ridden *b, const fa_ggml_graph *graph, int32_t first, int32_t past)
{
    bool works = false;
    for (int32_t i = first; i < past && !works; i++) {
        int32_t op = graph->nodes[i]->op;
        works = op < 0 || op >= FA_GGML_OPS || !r.ggml.idle[op];
    }
    if (!works)
        return FA_GGML_SUCCESS;
    return compute_part(b, graph, first, past);
}

/* ggml-cuda's stream of the backend, or NULL. */
static CUstream cuda_stream(const ridden *b)
{
    return r.settings.tier > 1 ? fa_ggml_cuda_stream(b->backend, b->on->name, b->on->number) : NULL;
}

/* Tier 1 needs entries that tier 2 does not. */
static fa_status make_events(ridden *b)
{
    const cu_driver *d = fa_context_driver(fa_ggml_engine_context(b->on->engine));
    fa_ggml_device *device = b->on->device;
    if (b->own)
        return FA_OK;
    if (!device->i.event_new || !device->i.event_free || !b->backend->i.event_record || !b->backend->i.event_wait)
        return fa_fail(FA_UNSUPPORTED, "the backend has no events, and its stream is not known");
    b->before = device->i.event_new(device);
    b->after = device->i.event_new(device);
    if (!b->before || !b->after || !b->before->context || !b->after->context || b->before->device != device)
        return fa_fail(FA_UNSUPPORTED, "the backend's events are not as known");
    return fa_driver_check(d, d->cuStreamCreate(&b->own, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

/* Our work comes after what ggml has put on its stream, and before what it puts there later: *at is its stream, or one of ours. */
static fa_status fork_stream(ridden *b, CUstream stream, CUstream *at)
{
    const cu_driver *d = fa_context_driver(fa_ggml_engine_context(b->on->engine));
    fa_status st = FA_OK;
    *at = stream;
    if (stream || staged())
        return FA_OK;
    if ((st = make_events(b)) != FA_OK)
        return st;
    *at = b->own;
    b->backend->i.event_record(b->backend, b->before);
    return fa_driver_check(d, d->cuStreamWaitEvent(*at, b->before->context, 0), "cuStreamWaitEvent");
}
static fa_status join_stream(ridden *b, CUstream stream, CUstream at)
{
    const cu_driver *d = fa_context_driver(fa_ggml_engine_context(b->on->engine));
    if (stream || staged() || !at)
        return FA_OK;
    fa_status st = fa_driver_check(d, d->cuEventRecord(b->after->context, at), "cuEventRecord");
    b->backend->i.event_wait(b->backend, b->after);
    return st;
}

/* Nodes that ggml computes at least as fast, by what was measured beside PyTorch's kernels on an H100 (2026-11-27, 512 rows, 4096 keys): of
 * few bits 294 to 460 us against 104 to 140 in 16 bits, under a mask that is no band 221 and 364 us against 104 and 134. */
static bool slower(ridden *b, const fa_ggml_graph *graph, const item *i, CUstream stream)
{
    fa_ggml_tensor *node = graph->nodes[i->node];
    const fa_ggml_claim *c = &i->claim;
    bool known = false, band = false;
    CUstream at;
    if (r.settings.all || staged() || c->sq < FA_GGML_LOOK || !b->on->supports_op(b->on->device, node))
        return false;
    if (c->kv_dtype)
        return true;
    if (!c->mask || c->max_bias > 0)
        return c->mask != NULL;
    fa_status st = fork_stream(b, stream, &at);
    if (st == FA_OK)
        st = fa_ggml_stream_look(b->stream, c, node->src[3], at, &known, &band);
    if (join_stream(b, stream, at) != FA_OK || st != FA_OK)
        return false; /* the launch tells what is wrong */
    return !known || !band;
}

/* Items first to past - 1, whose nodes follow each other. */
static fa_status ours(ridden *b, const fa_ggml_graph *graph, const item *items, int32_t first, int32_t past, CUstream stream, bool captured)
{
    CUstream at;
    fa_status st = fork_stream(b, stream, &at);
    for (int32_t i = first; i < past && st == FA_OK; i++)
        st = staged() ? fa_ggml_stage_run(b->stream, b->on->engine, &r.ggml, graph->nodes[items[i].node], &items[i].claim)
                      : fa_ggml_stream_run(b->stream, &items[i].claim, graph->nodes[items[i].node]->src[3], at, captured);
    fa_status joined = join_stream(b, stream, at); /* after a failure, too: what did run is to be over when ggml goes on */
    return st == FA_OK ? joined : st;
}

/* All of a graph, in its order. */
static int32_t walk(ridden *b, const fa_ggml_graph *graph, const item *items, int32_t count, bool captured)
{
    int32_t at = 0;
    fa_ggml_stream_begin(b->stream);
    for (int32_t i = 0, n; i < count; i += n) {
        if (items[i].node > at) {
            int32_t st = theirs(b, graph, at, items[i].node);
            if (st != FA_GGML_SUCCESS)
                return st;
        }
        CUstream stream = staged() ? NULL : cuda_stream(b);
        n = 1;
        if (!captured && !b->on->failed && slower(b, graph, &items[i], stream)) { /* a part of its own, so that all parts stay as they are */
            int32_t st = theirs(b, graph, items[i].node, items[i].node + 1);
            if (st != FA_GGML_SUCCESS)
                return st;
            at = items[i].node + 1;
            continue;
        }
        while (i + n < count && items[i + n].node == items[i].node + n && items[i + n].claim.sq < FA_GGML_LOOK)
            n++;
        __atomic_store_n(&r.counts.tier, staged() ? 0 : stream ? captured ? 3 : 2 : 1, __ATOMIC_RELAXED);
        fa_status st = b->on->failed ? FA_DEVICE : ours(b, graph, items, i, i + n, stream, captured);
        if (st != FA_OK && !b->on->failed) {
            b->on->failed = true;
            COUNT(failures);
            fa_ggml_tell("%s is ggml's alone from here on: %s: %s", b->on->name, fa_status_name(st), fa_last_error());
        }
        if (st != FA_OK)
            for (int32_t k = i; k < i + n; k++) {
                fa_ggml_tensor *node = graph->nodes[items[k].node];
                if (captured || !b->on->supports_op(b->on->device, node))
                    return FA_GGML_FAILED;
                if (theirs(b, graph, items[k].node, items[k].node + 1) != FA_GGML_SUCCESS)
                    return FA_GGML_FAILED;
            }
        at = items[i + n - 1].node + 1;
    }
    return at < graph->n_nodes ? theirs(b, graph, at, graph->n_nodes) : FA_GGML_SUCCESS;
}

/* The claimed nodes; false: none. */
static bool find_items(ridden *b, const fa_ggml_graph *graph, item **items, int32_t *count, bool *routed)
{
    int32_t candidates = 0;
    bool flags = false;
    *count = 0, *items = NULL, *routed = false;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        candidates += graph->nodes[i]->op == r.ggml.attention;
        flags = flags || (graph->nodes[i]->flags & FA_GGML_FLAG_COMPUTE);
        *routed = *routed || graph->nodes[i]->op == r.ggml.routed;
    }
    candidates = candidates > ITEMS ? ITEMS : candidates;
    if (!candidates || b->on->failed || !(*items = malloc((size_t)candidates * sizeof **items)))
        return false;
    for (int32_t i = 0; i < graph->n_nodes && *count < candidates; i++) {
        const fa_ggml_tensor *node = graph->nodes[i];
        if (node->op != r.ggml.attention || (flags && !(node->flags & FA_GGML_FLAG_COMPUTE)))
            continue;
        if (claims(b->on, node, &(*items)[*count].claim))
            (*items)[(*count)++].node = i;
    }
    return *count > 0;
}

typedef struct walking {
    ridden *b;
    const fa_ggml_graph *graph;
    const item *items;
    int32_t count;
} walking;
static int32_t walk_captured(void *user)
{
    const walking *w = user;
    return walk(w->b, w->graph, w->items, w->count, true);
}

static ridden *backend_of(const fa_ggml_backend *b)
{
    for (int32_t i = 0; i < BACKENDS; i++) {
        ridden *at = r.backend[i];
        if (at && at->backend == b)
            return at;
    }
    return NULL;
}

static int32_t graph_compute(fa_ggml_backend *backend, fa_ggml_graph *graph)
{
    ridden *b = backend_of(backend);
    item *items = NULL;
    int32_t count, st;
    bool routed;
    char why[160];
    if (!b)
        return FA_GGML_FAILED;
    if (!b->checked && !b->on->failed) {
        b->checked = fa_ggml_graph_check(&r.ggml, graph, why, sizeof why);
        if (!b->checked) {
            b->on->failed = true;
            COUNT(failures);
            fa_ggml_tell("%s stays ggml's alone: %s", b->on->name, why);
        }
    }
    if (b->on->failed || !find_items(b, graph, &items, &count, &routed) ||
        (!b->stream && fa_ggml_stream_open(&b->stream, b->on->engine) != FA_OK)) {
        free(items);
        return b->on->failed && graph->uid ? compute_part(b, graph, 0, graph->n_nodes) : b->compute(backend, graph);
    }
    COUNT(graphs);
    bool few = true; /* masks of many rows are looked at each time */
    for (int32_t i = 0; i < count; i++)
        few = few && items[i].claim.sq < FA_GGML_LOOK;
    CUstream stream = r.settings.tier == 3 && !staged() && !routed && few ? cuda_stream(b) : NULL;
    if (stream && graph->uid) {
        walking w = { b, graph, items, count };
        bool done = false;
        const cu_driver *d = fa_context_driver(fa_ggml_engine_context(b->on->engine));
        if (!b->replays)
            b->replays = fa_ggml_replays_open(d);
        st = fa_ggml_replay(b->replays, graph->uid, stream, walk_captured, &w, &done, &r.counts.captures, &r.counts.replays);
        if (!done)
            st = walk(b, graph, items, count, false);
    } else {
        st = walk(b, graph, items, count, false);
    }
    free(items);
    return st;
}

/* --- hooks --- */

static void drop(ridden *b)
{
    const cu_driver *d = b->on->engine ? fa_context_driver(fa_ggml_engine_context(b->on->engine)) : NULL;
    fa_ggml_counts c = b->stream ? fa_ggml_stream_counts(b->stream) : (fa_ggml_counts){ 0 };
    r.counts.nodes.nodes += c.nodes, r.counts.nodes.launches += c.launches, r.counts.nodes.casts += c.casts;
    r.counts.nodes.looks += c.looks, r.counts.nodes.bands += c.bands;
    fa_ggml_replays_close(b->replays);
    fa_ggml_stream_close(b->stream);
    if (b->before)
        b->on->device->i.event_free(b->on->device, b->before);
    if (b->after)
        b->on->device->i.event_free(b->on->device, b->after);
    if (b->own && d)
        d->cuStreamDestroy(b->own);
    free(b);
}

static void release(fa_ggml_backend *backend)
{
    ridden *b = backend_of(backend);
    if (!b)
        return;
    void (*next)(fa_ggml_backend *) = b->release;
    pthread_mutex_lock(&r.mutex);
    for (int32_t i = 0; i < BACKENDS; i++)
        if (r.backend[i] == b)
            r.backend[i] = NULL;
    pthread_mutex_unlock(&r.mutex);
    drop(b);
    next(backend);
}

static fa_ggml_backend *init_backend(fa_ggml_device *d, const char *parameters)
{
    hooked *h = device_of(d);
    char why[160];
    fa_ggml_backend *backend = h ? h->init_backend(d, parameters) : NULL;
    if (!backend || h->failed)
        return backend;
    if (!fa_ggml_backend_check(&r.ggml, backend, d, why, sizeof why)) {
        h->failed = true;
        COUNT(failures);
        fa_ggml_tell("%s stays ggml's alone: %s", h->name, why);
        return backend;
    }
    ridden *b = calloc(1, sizeof *b);
    int32_t at = 0;
    pthread_mutex_lock(&r.mutex);
    while (at < BACKENDS && r.backend[at])
        at++;
    if (b && at < BACKENDS) {
        b->backend = backend;
        b->on = h;
        b->compute = backend->i.graph_compute;
        b->release = backend->i.free;
        r.backend[at] = b;
        backend->i.graph_compute = graph_compute;
        backend->i.free = release;
        h->has_ours = true;
        COUNT(backends);
    } else {
        h->has_ours = false; /* a backend that is not ours: nothing may be claimed that it cannot compute */
        free(b);
    }
    pthread_mutex_unlock(&r.mutex);
    return backend;
}

/* All devices of a registry, or none where one is not as known. */
static bool hook_all(fa_ggml_reg *reg, char *why, size_t n)
{
    size_t count = r.ggml.ggml_backend_reg_dev_count(reg);
    count = count > DEVICES ? DEVICES : count;
    for (size_t i = 0; i < count; i++) {
        fa_ggml_device *d = r.ggml.ggml_backend_reg_dev_get(reg, i);
        if (!d || !fa_ggml_device_check(&r.ggml, d, reg, why, n))
            return d ? false : (snprintf(why, n, "device %zu is NULL", i), false);
    }
    for (size_t i = 0; i < count; i++) {
        fa_ggml_device *d = r.ggml.ggml_backend_reg_dev_get(reg, i);
        hooked *h = &r.device[r.devices++];
        memset(h, 0, sizeof *h);
        *h = (hooked){ .device = d, .supports_op = d->i.supports_op, .init_backend = d->i.init_backend, .number = (int32_t)i };
        snprintf(h->name, sizeof h->name, "%s", d->i.get_name(d));
        d->i.supports_op = supports_op;
        d->i.init_backend = init_backend;
    }
    r.counts.devices = r.devices;
    return true;
}

fa_ggml_reg *fa_ggml_rider_load(const fa_ggml_rider_options *o)
{
    char why[256];
    pthread_mutex_lock(&r.mutex);
    if (r.loaded) {
        pthread_mutex_unlock(&r.mutex);
        return r.reg;
    }
    r.loaded = true;
    r.settings = o->settings;
    r.ctx = o->ctx;
    if (!fa_ggml_open(&r.ggml, o->find, o->user, why, sizeof why)) {
        fa_ggml_tell("this ggml is left alone: %s", why);
    } else {
        r.reg = fa_ggml_device_reg(&r.ggml, o->settings.simulator[0] ? o->settings.simulator : NULL);
        fa_ggml_reg *reg = o->settings.off ? NULL : r.ggml.ggml_backend_reg_by_name(o->settings.registry);
        const char *reorders = getenv("GGML_CUDA_GRAPH_OPT");
        if (o->settings.off)
            fa_ggml_tell("FAGEN_GGML=off: nothing is hooked");
        else if (!reg)
            fa_ggml_tell("ggml has no %s devices: nothing is hooked", o->settings.registry);
        else if (reorders && strcmp(reorders, "1") == 0)
            fa_ggml_tell("GGML_CUDA_GRAPH_OPT=1 reorders over several streams: nothing is hooked");
        else if (!fa_ggml_reg_check(&r.ggml, reg, why, sizeof why) || !hook_all(reg, why, sizeof why))
            fa_ggml_tell("this ggml is left alone: %s", why);
        if (r.devices && r.settings.tier == 3)
            setenv("GGML_CUDA_DISABLE_GRAPHS", "1", 0); /* read at the first graph: one graph of ours takes their place */
    }
    pthread_mutex_unlock(&r.mutex);
    return r.reg;
}

void fa_ggml_rider_unload(void)
{
    for (int32_t i = 0; i < BACKENDS; i++) {
        ridden *b = r.backend[i];
        r.backend[i] = NULL;
        if (!b)
            continue;
        b->backend->i.graph_compute = b->compute;
        b->backend->i.free = b->release;
        drop(b);
    }
    for (int32_t i = 0; i < r.devices; i++) {
        hooked *h = &r.device[i];
        h->device->i.supports_op = h->supports_op;
        h->device->i.init_backend = h->init_backend;
        fa_ggml_engine_close(h->engine);
    }
    memset(r.device, 0, sizeof r.device);
    memset(&r.counts, 0, sizeof r.counts);
    r.devices = 0;
    r.loaded = false;
    r.reg = NULL;
    fa_ggml_tell_to(NULL);
}

fa_ggml_rider_counts fa_ggml_rider_count(void)
{
    fa_ggml_rider_counts all = r.counts;
    for (int32_t i = 0; i < BACKENDS; i++) {
        const ridden *b = r.backend[i];
        fa_ggml_counts c = b && b->stream ? fa_ggml_stream_counts(b->stream) : (fa_ggml_counts){ 0 };
        all.nodes.nodes += c.nodes, all.nodes.launches += c.launches, all.nodes.casts += c.casts;
        all.nodes.looks += c.looks, all.nodes.bands += c.bands, all.nodes.bytes += c.bytes;
    }
    return all;
}
