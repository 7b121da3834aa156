/* rider: hooks of devices and backends. */
#include "rider.h"
#include "device.h"
#include "report.h"
#include "runtime/runtime.h"
#include "walk.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fa_ggml_hooked *device_of(const fa_ggml_device *d)
{
    for (int32_t i = 0; i < fa_ggml_ride.devices; i++)
        if (fa_ggml_ride.device[i].device == d)
            return &fa_ggml_ride.device[i];
    return NULL;
}

static bool supports_op(fa_ggml_device *d, const fa_ggml_tensor *node)
{
    fa_ggml_hooked *h = device_of(d);
    fa_ggml_claim c;
    if (!h)
        return false;
    bool theirs = h->supports_op(d, node);
    /* what they refuse is claimed where its backends are known to come through the hook, and a kernel is there */
    return theirs || (node->op == fa_ggml_ride.ggml.attention && h->has_ours && fa_ggml_reads(h, node, &c) && fa_ggml_takes(h, node, &c) &&
                      fa_ggml_engine_prepare(h->engine, &c) == FA_OK);
}

static fa_ggml_ridden *backend_of(const fa_ggml_backend *b)
{
    for (int32_t i = 0; i < FA_GGML_BACKENDS; i++) {
        fa_ggml_ridden *at = fa_ggml_ride.backend[i];
        if (at && at->backend == b)
            return at;
    }
    return NULL;
}

static int32_t graph_compute(fa_ggml_backend *backend, fa_ggml_graph *graph)
{
    fa_ggml_ridden *b = backend_of(backend);
    return b ? fa_ggml_walk(b, graph) : FA_GGML_FAILED;
}

static void drop(fa_ggml_ridden *b)
{
    const cu_driver *d = b->on->engine ? fa_context_driver(fa_ggml_engine_context(b->on->engine)) : NULL;
    fa_ggml_counts c = b->stream ? fa_ggml_stream_counts(b->stream) : (fa_ggml_counts){ 0 };
    fa_ggml_ride.counts.nodes.nodes += c.nodes, fa_ggml_ride.counts.nodes.launches += c.launches,
        fa_ggml_ride.counts.nodes.casts += c.casts;
    fa_ggml_ride.counts.nodes.looks += c.looks, fa_ggml_ride.counts.nodes.bands += c.bands;
    if (fa_ggml_ride.settings.tells)
        fa_ggml_tell("%s: a backend ends: %lld nodes computed in %lld launches, %lld masks looked at, %lld of them bands; %lld MiB",
                     b->on->name, (long long)c.nodes, (long long)c.launches, (long long)c.looks, (long long)c.bands,
                     (long long)c.bytes >> 20);
    fa_ggml_plans_close(b->plans);
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
    fa_ggml_ridden *b = backend_of(backend);
    if (!b)
        return;
    void (*next)(fa_ggml_backend *) = b->release;
    pthread_mutex_lock(&fa_ggml_ride.mutex);
    for (int32_t i = 0; i < FA_GGML_BACKENDS; i++)
        if (fa_ggml_ride.backend[i] == b)
            fa_ggml_ride.backend[i] = NULL;
    pthread_mutex_unlock(&fa_ggml_ride.mutex);
    drop(b);
    next(backend);
}

static fa_ggml_backend *init_backend(fa_ggml_device *d, const char *parameters)
{
    fa_ggml_hooked *h = device_of(d);
    char why[160];
    fa_ggml_backend *backend = h ? h->init_backend(d, parameters) : NULL;
    if (!backend || h->failed)
        return backend;
    if (!fa_ggml_backend_check(&fa_ggml_ride.ggml, backend, d, why, sizeof why)) {
        h->failed = true;
        FA_GGML_COUNT(failures);
        fa_ggml_tell("%s stays ggml's alone: %s", h->name, why);
        return backend;
    }
    fa_ggml_ridden *b = calloc(1, sizeof *b);
    int32_t at = 0;
    pthread_mutex_lock(&fa_ggml_ride.mutex);
    while (at < FA_GGML_BACKENDS && fa_ggml_ride.backend[at])
        at++;
    if (b && at < FA_GGML_BACKENDS) {
        b->backend = backend;
        b->on = h;
        b->compute = backend->i.graph_compute;
        b->release = backend->i.free;
        fa_ggml_ride.backend[at] = b;
        backend->i.graph_compute = graph_compute;
        backend->i.free = release;
        h->has_ours = true;
        FA_GGML_COUNT(backends);
    } else {
        h->has_ours = false; /* a backend that is not ours: nothing may be claimed that it cannot compute */
        free(b);
    }
    pthread_mutex_unlock(&fa_ggml_ride.mutex);
    return backend;
}

/* All devices of a registry, or none where one is not as known. */
static bool hook_all(fa_ggml_reg *reg, char *why, size_t n)
{
    size_t count = fa_ggml_ride.ggml.ggml_backend_reg_dev_count(reg);
    count = count > FA_GGML_DEVICES ? FA_GGML_DEVICES : count;
    for (size_t i = 0; i < count; i++) {
        fa_ggml_device *d = fa_ggml_ride.ggml.ggml_backend_reg_dev_get(reg, i);
        if (!d || !fa_ggml_device_check(&fa_ggml_ride.ggml, d, reg, why, n))
            return d ? false : (snprintf(why, n, "device %zu is NULL", i), false);
    }
    for (size_t i = 0; i < count; i++) {
        fa_ggml_device *d = fa_ggml_ride.ggml.ggml_backend_reg_dev_get(reg, i);
        fa_ggml_hooked *h = &fa_ggml_ride.device[fa_ggml_ride.devices++];
        memset(h, 0, sizeof *h);
        *h = (fa_ggml_hooked){ .device = d, .supports_op = d->i.supports_op, .init_backend = d->i.init_backend, .number = (int32_t)i };
        snprintf(h->name, sizeof h->name, "%s", d->i.get_name(d));
        d->i.supports_op = supports_op;
        d->i.init_backend = init_backend;
    }
    fa_ggml_ride.counts.devices = fa_ggml_ride.devices;
    return true;
}

fa_ggml_reg *fa_ggml_rider_load(const fa_ggml_rider_options *o)
{
    char why[256];
    pthread_mutex_lock(&fa_ggml_ride.mutex);
    if (fa_ggml_ride.loaded) {
        pthread_mutex_unlock(&fa_ggml_ride.mutex);
        return fa_ggml_ride.reg;
    }
    fa_ggml_ride.loaded = true;
    fa_ggml_ride.settings = o->settings;
    fa_ggml_ride.ctx = o->ctx;
    if (!fa_ggml_open(&fa_ggml_ride.ggml, o->find, o->user, why, sizeof why)) {
        fa_ggml_tell("this ggml is left alone: %s", why);
    } else {
        fa_ggml_ride.reg = fa_ggml_device_reg(&fa_ggml_ride.ggml, o->settings.simulator[0] ? o->settings.simulator : NULL);
        fa_ggml_reg *reg = o->settings.off ? NULL : fa_ggml_ride.ggml.ggml_backend_reg_by_name(o->settings.registry);
        const char *reorders = getenv("GGML_CUDA_GRAPH_OPT");
        if (o->settings.off)
            fa_ggml_tell("FAGEN_GGML=off: nothing is hooked");
        else if (!reg)
            fa_ggml_tell("ggml has no %s devices: nothing is hooked", o->settings.registry);
        else if (reorders && strcmp(reorders, "1") == 0)
            fa_ggml_tell("GGML_CUDA_GRAPH_OPT=1 reorders over several streams: nothing is hooked");
        else if (!fa_ggml_reg_check(&fa_ggml_ride.ggml, reg, why, sizeof why) || !hook_all(reg, why, sizeof why))
            fa_ggml_tell("this ggml is left alone: %s", why);
        if (fa_ggml_ride.devices && fa_ggml_ride.settings.tier == 3)
            setenv("GGML_CUDA_DISABLE_GRAPHS", "1", 0); /* read at the first graph: one graph of ours takes their place */
    }
    pthread_mutex_unlock(&fa_ggml_ride.mutex);
    return fa_ggml_ride.reg;
}

void fa_ggml_rider_unload(void)
{
    for (int32_t i = 0; i < FA_GGML_BACKENDS; i++) {
        fa_ggml_ridden *b = fa_ggml_ride.backend[i];
        fa_ggml_ride.backend[i] = NULL;
        if (!b)
            continue;
        b->backend->i.graph_compute = b->compute;
        b->backend->i.free = b->release;
        drop(b);
    }
    for (int32_t i = 0; i < fa_ggml_ride.devices; i++) {
        fa_ggml_hooked *h = &fa_ggml_ride.device[i];
        h->device->i.supports_op = h->supports_op;
        h->device->i.init_backend = h->init_backend;
        fa_ggml_engine_close(h->engine);
    }
    memset(fa_ggml_ride.device, 0, sizeof fa_ggml_ride.device);
    memset(&fa_ggml_ride.counts, 0, sizeof fa_ggml_ride.counts);
    fa_ggml_ride.devices = 0;
    fa_ggml_ride.loaded = false;
    fa_ggml_ride.reg = NULL;
    fa_ggml_tell_to(NULL);
}

fa_ggml_rider_counts fa_ggml_rider_count(void)
{
    fa_ggml_rider_counts all = fa_ggml_ride.counts;
    for (int32_t i = 0; i < FA_GGML_BACKENDS; i++) {
        const fa_ggml_ridden *b = fa_ggml_ride.backend[i];
        fa_ggml_counts c = b && b->stream ? fa_ggml_stream_counts(b->stream) : (fa_ggml_counts){ 0 };
        all.nodes.nodes += c.nodes, all.nodes.launches += c.launches, all.nodes.casts += c.casts;
        all.nodes.looks += c.looks, all.nodes.bands += c.bands, all.nodes.bytes += c.bytes;
    }
    return all;
}
