/* device: registry, device and backend of the simulator. */
#include "device.h"
#include "report.h"
#include "stage.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const fa_ggml *g;
    char simulator[64];
    fa_ggml_engine *engine;
    bool failed;
    fa_ggml_reg reg;
    fa_ggml_device device;
} own;

static fa_ggml_engine *engine(void)
{
    if (!own.engine && !own.failed && fa_ggml_engine_open(&own.engine, own.simulator, 0, FA_MISS_COMPILE, fa_ggml_log) != FA_OK) {
        own.failed = true;
        fa_ggml_tell("%s: %s", own.simulator, fa_last_error());
    }
    return own.engine;
}

static bool takes(const fa_ggml_tensor *node, fa_ggml_claim *c)
{
    char why[512];
    if (!engine())
        return false;
    bool yes = fa_ggml_claim_node(own.g, node, c, why, sizeof why) && fa_ggml_engine_takes(own.engine, c, why, sizeof why);
    if (!yes && node->op == own.g->attention)
        fa_ggml_tell("left to ggml: %s", why);
    return yes;
}

static const char *backend_name(fa_ggml_backend *b)
{
    (void)b;
    return "fagen";
}
static void backend_free(fa_ggml_backend *b)
{
    fa_ggml_stream_close(b->context);
    free(b);
}
static void backend_synchronize(fa_ggml_backend *b)
{
    (void)b;
}
static int32_t backend_compute(fa_ggml_backend *b, fa_ggml_graph *graph)
{
    fa_ggml_claim c;
    fa_ggml_stream_begin(b->context);
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        if (graph->nodes[i]->op != own.g->attention) /* views and the like: nothing else was claimed */
            continue;
        if (!takes(graph->nodes[i], &c))
            return FA_GGML_FAILED;
        if (fa_ggml_stage_run(b->context, own.engine, own.g, graph->nodes[i], &c) != FA_OK) {
            fa_ggml_tell("%s", fa_last_error());
            return FA_GGML_FAILED;
        }
    }
    return FA_GGML_SUCCESS;
}

static const char *device_name(fa_ggml_device *d)
{
    (void)d;
    return "fagen";
}
static const char *device_description(fa_ggml_device *d)
{
    (void)d;
    return own.simulator;
}
static void device_memory(fa_ggml_device *d, size_t *left, size_t *total)
{
    (void)d;
    *left = *total = 0;
}
static int32_t device_type(fa_ggml_device *d)
{
    (void)d;
    return FA_GGML_DEVICE_ACCEL;
}
static void device_properties(fa_ggml_device *d, fa_ggml_properties *p)
{
    (void)d;
    *p = (fa_ggml_properties){ .name = "fagen", .description = own.simulator, .type = FA_GGML_DEVICE_ACCEL };
}
static fa_ggml_backend *device_backend(fa_ggml_device *d, const char *unused)
{
    static uint8_t guid[16] = { 0xfa, 0x9e, 0x17, 0x3c, 0x55, 0x21, 0x4b, 0x0d, 0x8e, 0x60, 0x1f, 0xa7, 0x92, 0xc4, 0xd8, 0x36 };
    fa_ggml_backend *b = calloc(1, sizeof *b);
    fa_ggml_stream *s = NULL;
    (void)unused;
    if (!b || !engine() || fa_ggml_stream_open(&s, own.engine) != FA_OK)
        return free(b), NULL;
    b->guid = &guid;
    b->device = d;
    b->context = s;
    b->i.get_name = backend_name;
    b->i.free = backend_free;
    b->i.synchronize = backend_synchronize;
    b->i.graph_compute = backend_compute;
    return b;
}
static void *device_buffer_type(fa_ggml_device *d)
{
    (void)d;
    return own.g->ggml_backend_cpu_buffer_type();
}
static bool device_takes_buffer(fa_ggml_device *d, void *type)
{
    (void)d;
    return type == own.g->ggml_backend_cpu_buffer_type();
}
static bool device_supports(fa_ggml_device *d, const fa_ggml_tensor *node)
{
    fa_ggml_claim c;
    (void)d;
    if (node->op >= 0 && node->op < FA_GGML_OPS && own.g->idle[node->op])
        return true;
    return node->op == own.g->attention && takes(node, &c);
}

static const char *reg_name(fa_ggml_reg *r)
{
    (void)r;
    return "fagen";
}
static size_t reg_count(fa_ggml_reg *r)
{
    (void)r;
    return own.simulator[0] ? 1 : 0;
}
static fa_ggml_device *reg_device(fa_ggml_reg *r, size_t i)
{
    (void)r;
    return own.simulator[0] && !i ? &own.device : NULL;
}
static void *reg_address(fa_ggml_reg *r, const char *name)
{
    (void)r, (void)name;
    return NULL;
}

fa_ggml_reg *fa_ggml_device_reg(const fa_ggml *g, const char *simulator)
{
    if (own.reg.i.get_name)
        return &own.reg;
    own.g = g;
    snprintf(own.simulator, sizeof own.simulator, "%s", simulator ? simulator : "");
    own.reg.api_version = g->api;
    own.reg.i.get_name = reg_name;
    own.reg.i.device_count = reg_count;
    own.reg.i.device = reg_device;
    own.reg.i.proc_address = reg_address;
    own.device.reg = &own.reg;
    own.device.i.get_name = device_name;
    own.device.i.get_description = device_description;
    own.device.i.get_memory = device_memory;
    own.device.i.get_type = device_type;
    own.device.i.get_properties = device_properties;
    own.device.i.init_backend = device_backend;
    own.device.i.get_buffer_type = device_buffer_type;
    own.device.i.supports_op = device_supports;
    own.device.i.supports_buffer_type = device_takes_buffer;
    return &own.reg;
}
