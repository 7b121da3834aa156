/* ggml_host: see ggml_host.h. */
#include "ggml_host.h"
#include "gen/format.h"
#include "verify/operands/number.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN __attribute__((visibility("default")))
enum { DEVICES = 4, POOL = 4096, GRAPHS = 64, NODES = 64 };

host_faults host;
bool host_attends = true;
char host_trace[256];

static const cu_driver *driver;
static bool known_context;
static int device_count;
static fa_ggml_reg reg;
static fa_ggml_tensor pool[POOL];
static int pooled;
static struct {
    fa_ggml_graph graph;
    fa_ggml_tensor *nodes[NODES];
} graphs[GRAPHS];
static int graphed;

static void trace(const char *what)
{
    if (strlen(host_trace) + strlen(what) < sizeof host_trace)
        strcat(host_trace, what);
}

/* --- types, operations --- */

static const struct {
    const char *name;
    int block, bytes;
} types[31] = { [0] = { "f32", 1, 4 },       [1] = { "f16", 1, 2 },    [2] = { "q4_0", 32, 18 }, [3] = { "q4_1", 32, 20 },
                [6] = { "q5_0", 32, 22 },    [7] = { "q5_1", 32, 24 }, [8] = { "q8_0", 32, 34 }, [9] = { "q8_1", 32, 36 },
                [20] = { "iq4_nl", 32, 18 }, [26] = { "i32", 1, 4 },   [30] = { "bf16", 1, 2 } };
static const char *const ops[HOST_OPS] = { "NONE", "CPY", "VIEW", "MUL_MAT_ID", "FLASH_ATTN_EXT" };

SHOWN size_t ggml_tensor_overhead(void);
SHOWN const char *ggml_op_name(int32_t op);
SHOWN const char *ggml_type_name(int32_t type);
SHOWN size_t ggml_type_size(int32_t type);
SHOWN int64_t ggml_blck_size(int32_t type);
SHOWN int32_t ggml_graph_n_nodes(fa_ggml_graph *g);
SHOWN fa_ggml_tensor **ggml_graph_nodes(fa_ggml_graph *g);
SHOWN void *ggml_backend_cpu_buffer_type(void);
SHOWN fa_ggml_reg *ggml_backend_reg_by_name(const char *name);
SHOWN const char *ggml_backend_reg_name(fa_ggml_reg *r);
SHOWN size_t ggml_backend_reg_dev_count(fa_ggml_reg *r);
SHOWN fa_ggml_device *ggml_backend_reg_dev_get(fa_ggml_reg *r, size_t i);
SHOWN const char *ggml_backend_dev_name(fa_ggml_device *d);
SHOWN fa_ggml_reg *ggml_backend_dev_backend_reg(fa_ggml_device *d);
SHOWN fa_ggml_device *ggml_backend_get_device(fa_ggml_backend *b);

size_t ggml_tensor_overhead(void)
{
    return (size_t)(368 + host.overhead);
}
const char *ggml_op_name(int32_t op)
{
    return op < 0 || op >= HOST_OPS || (host.no_op && !strcmp(ops[op], host.no_op)) ? op == HOST_OPS ? NULL : "?" : ops[op];
}
const char *ggml_type_name(int32_t type)
{
    return type < 0 || type > 30 || (host.no_type && types[type].name && !strcmp(types[type].name, host.no_type)) ? NULL : types[type].name;
}
size_t ggml_type_size(int32_t type)
{
    return (size_t)(types[type].bytes + (type == HOST_Q8_0 ? host.type_bytes : 0));
}
int64_t ggml_blck_size(int32_t type)
{
    return types[type].block;
}
int32_t ggml_graph_n_nodes(fa_ggml_graph *g)
{
    return g->n_nodes + host.graph_shift;
}
fa_ggml_tensor **ggml_graph_nodes(fa_ggml_graph *g)
{
    return host.wrong_nodes ? NULL : g->nodes;
}
void *ggml_backend_cpu_buffer_type(void)
{
    static int type;
    return &type;
}

/* --- the registry --- */

/* As ggml-cuda's begins. */
typedef struct context {
    int device;
    const char *text;
    size_t size;
    char own[16];
    void *event;
    CUstream stream[16][8];
} context;

/* With room behind, for faults that shift what it holds. */
static struct {
    fa_ggml_device device;
    void *more[4];
    char name[16];
    int number;
} devices[DEVICES];

static int number_of(const fa_ggml_device *d)
{
    for (int i = 0; i < DEVICES; i++)
        if (&devices[i].device == d)
            return i;
    return -1;
}

static const char *device_name(fa_ggml_device *d)
{
    return host.wrong_name ? "another" : devices[number_of(d)].name;
}
static bool supports_op(fa_ggml_device *d, const fa_ggml_tensor *node)
{
    (void)d;
    return node->op != HOST_ATTENTION || host_attends;
}
static void *buffer_type(fa_ggml_device *d)
{
    return d;
}
static bool supports_buffer_type(fa_ggml_device *d, void *type)
{
    return type == d;
}
static fa_ggml_event *event_new(fa_ggml_device *d)
{
    fa_ggml_event *e = calloc(1, sizeof *e);
    e->device = d;
    if (driver && !host.no_event)
        driver->cuEventCreate((CUevent *)&e->context, CU_EVENT_DISABLE_TIMING);
    return e;
}
static void event_free(fa_ggml_device *d, fa_ggml_event *e)
{
    (void)d;
    if (e->context)
        driver->cuEventDestroy(e->context);
    free(e);
}

/* Likewise. */
typedef struct made {
    fa_ggml_backend b;
    void *more[4];
    context *context;
} made;

static const char *backend_name(fa_ggml_backend *b)
{
    return devices[number_of(b->device)].name;
}
CUstream host_stream(const fa_ggml_backend *b)
{
    context *c = ((const made *)b)->context;
    return c->stream[known_context ? c->device : 15][0];
}
static void event_record(fa_ggml_backend *b, fa_ggml_event *e)
{
    trace("r");
    driver->cuEventRecord(e->context, host_stream(b));
}
static void event_wait(fa_ggml_backend *b, fa_ggml_event *e)
{
    trace("w");
    driver->cuStreamWaitEvent(host_stream(b), e->context, 0);
}
static int32_t graph_compute(fa_ggml_backend *b, fa_ggml_graph *g)
{
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const fa_ggml_tensor *t = g->nodes[i];
        if (t->op == HOST_COPY) {
            trace("c");
            if (driver)
                driver->cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)t->data, (CUdeviceptr)(uintptr_t)t->src[0]->data, host_bytes(t),
                                          host_stream(b));
            else
                memcpy(t->data, t->src[0]->data, host_bytes(t));
        } else if (t->op == HOST_ATTENTION) {
            trace("A");
            if (driver)
                driver->cuMemsetD8Async((CUdeviceptr)(uintptr_t)t->data, 7, host_bytes(t), host_stream(b));
            else
                memset(t->data, 7, host_bytes(t));
        }
    }
    trace("|");
    return 0;
}
static void backend_free(fa_ggml_backend *b)
{
    if (driver && host_stream(b))
        driver->cuStreamDestroy(host_stream(b));
    free(((made *)b)->context);
    free(b);
}
static fa_ggml_backend *init_backend(fa_ggml_device *d, const char *unused)
{
    static uint8_t guid[16];
    made *whole = calloc(1, sizeof *whole);
    fa_ggml_backend *b = &whole->b;
    context *c = whole->context = calloc(1, sizeof *c);
    (void)unused;
    c->device = number_of(d);
    c->text = c->own;
    c->size = strlen(devices[c->device].name);
    memcpy(c->own, devices[c->device].name, c->size + 1);
    if (!known_context)
        c->size++;
    if (driver)
        driver->cuStreamCreate(&c->stream[known_context ? c->device : 15][0], CU_STREAM_NON_BLOCKING);
    b->guid = &guid;
    b->i.get_name = backend_name;
    b->i.free = backend_free;
    b->i.graph_compute = host.null_compute ? NULL : graph_compute;
    b->i.event_record = event_record;
    b->i.event_wait = event_wait;
    b->device = host.backend_shift ? NULL : d;
    b->context = c;
    if (host.backend_shift)
        memcpy((char *)b + offsetof(fa_ggml_backend, device) + 8 * host.backend_shift, &d, sizeof d);
    return b;
}

static const char *reg_name(fa_ggml_reg *r)
{
    (void)r;
    return "CUDA";
}
static size_t reg_count(fa_ggml_reg *r)
{
    (void)r;
    return (size_t)device_count;
}
static fa_ggml_device *reg_device(fa_ggml_reg *r, size_t i)
{
    (void)r;
    return i < (size_t)device_count ? &devices[i].device : NULL;
}
fa_ggml_reg *ggml_backend_reg_by_name(const char *name)
{
    static fa_ggml_reg other;
    other = reg;
    other.api_version = 3;
    if (host.no_reg || strcmp(name, "CUDA") != 0)
        return NULL;
    static int asked;
    return host.reg_api && asked++ ? &other : &reg;
}
const char *ggml_backend_reg_name(fa_ggml_reg *r)
{
    return reg_name(r);
}
size_t ggml_backend_reg_dev_count(fa_ggml_reg *r)
{
    return reg_count(r);
}
fa_ggml_device *ggml_backend_reg_dev_get(fa_ggml_reg *r, size_t i)
{
    return reg_device(r, i);
}
const char *ggml_backend_dev_name(fa_ggml_device *d)
{
    return devices[number_of(d)].name;
}
fa_ggml_reg *ggml_backend_dev_backend_reg(fa_ggml_device *d)
{
    (void)d;
    return &reg;
}
fa_ggml_device *ggml_backend_get_device(fa_ggml_backend *b)
{
    (void)b;
    return &devices[0].device;
}

void *host_find(void *unused, const char *name)
{
    static const struct {
        const char *name;
        void *at;
    } all[] = {
#define X(type, function, parameters) { #function, (void *)function },
        FA_GGML_SYMBOLS(X)
#undef X
    };
    (void)unused;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i].name, name) && (!host.missing || strcmp(name, host.missing) != 0))
            return all[i].at;
    return NULL;
}

void host_reset(int n, const cu_driver *d, bool known)
{
    driver = d;
    known_context = known;
    device_count = n;
    pooled = graphed = 0;
    host_trace[0] = 0;
    reg = (fa_ggml_reg){ .api_version = host.api ? host.api : 2 };
    reg.i.get_name = reg_name;
    reg.i.device_count = host.null_count ? NULL : reg_count;
    reg.i.device = host.foreign_reg ? (fa_ggml_device * (*)(fa_ggml_reg *, size_t)) dlsym(RTLD_DEFAULT, "memcpy") : reg_device;
    for (int i = 0; i < DEVICES; i++) {
        fa_ggml_device *v = &devices[i].device;
        memset(&devices[i], 0, sizeof devices[i]);
        snprintf(devices[i].name, sizeof devices[i].name, "CUDA%d", i);
        v->i.get_name = device_name;
        v->i.supports_op = host.null_supports ? NULL : supports_op;
        if (host.foreign_supports)
            v->i.supports_op = (bool (*)(fa_ggml_device *, const fa_ggml_tensor *))dlsym(RTLD_DEFAULT, "memcmp");
        v->i.init_backend = host.null_init ? NULL : init_backend;
        v->i.get_buffer_type = buffer_type;
        v->i.supports_buffer_type = supports_buffer_type;
        v->i.event_new = event_new;
        v->i.event_free = event_free;
        fa_ggml_reg *owner = &reg;
        if (host.device_shift)
            memcpy((char *)v + offsetof(fa_ggml_device, reg) + 8 * host.device_shift, &owner, sizeof owner);
        else
            v->reg = owner;
    }
}
fa_ggml_device *host_device(int i)
{
    return &devices[i].device;
}
fa_ggml_backend *host_backend(int device)
{
    fa_ggml_device *d = &devices[device].device;
    return d->i.init_backend(d, NULL);
}
void host_free(fa_ggml_backend *b)
{
    if (b)
        b->i.free(b);
}

/* --- tensors, graphs --- */

fa_ggml_tensor *host_tensor(int type, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3)
{
    fa_ggml_tensor *t = &pool[pooled++ % POOL];
    memset(t, 0, sizeof *t);
    t->type = type;
    t->ne[0] = ne0, t->ne[1] = ne1, t->ne[2] = ne2, t->ne[3] = ne3;
    t->nb[0] = (size_t)types[type].bytes;
    t->nb[1] = (size_t)(ne0 / types[type].block) * t->nb[0];
    t->nb[2] = t->nb[1] * (size_t)ne1;
    t->nb[3] = t->nb[2] * (size_t)ne2;
    return t;
}
fa_ggml_tensor *host_permuted(fa_ggml_tensor *t, int a, int b)
{
    fa_ggml_tensor *p = &pool[pooled++ % POOL];
    *p = *t;
    p->ne[a] = t->ne[b], p->ne[b] = t->ne[a];
    p->nb[a] = t->nb[b], p->nb[b] = t->nb[a];
    p->op = HOST_VIEW;
    p->view_src = t;
    return p;
}
fa_ggml_tensor *host_columns(fa_ggml_tensor *t, int64_t n)
{
    fa_ggml_tensor *p = &pool[pooled++ % POOL];
    *p = *t;
    p->ne[0] = n;
    p->op = HOST_VIEW;
    p->view_src = t->view_src ? t->view_src : t;
    return p;
}
size_t host_bytes(const fa_ggml_tensor *t)
{
    size_t n = (size_t)(t->ne[0] / types[t->type].block) * (size_t)types[t->type].bytes;
    for (int i = 1; i < 4; i++)
        n += (size_t)(t->ne[i] - 1) * t->nb[i];
    return n;
}
fa_ggml_tensor *host_attention(fa_ggml_tensor *q, fa_ggml_tensor *k, fa_ggml_tensor *v, fa_ggml_tensor *mask, fa_ggml_tensor *sinks,
                               float scale, float max_bias, float cap)
{
    fa_ggml_tensor *o = host_tensor(HOST_F32, v->ne[0], q->ne[2], q->ne[1], q->ne[3]);
    o->op = HOST_ATTENTION;
    o->flags = FA_GGML_FLAG_COMPUTE;
    o->src[0] = q, o->src[1] = k, o->src[2] = v, o->src[3] = mask, o->src[4] = sinks;
    memcpy(&o->op_params[0], &scale, 4);
    memcpy(&o->op_params[1], &max_bias, 4);
    memcpy(&o->op_params[2], &cap, 4);
    o->op_params[3] = 10;
    return o;
}
fa_ggml_tensor *host_copy(fa_ggml_tensor *from)
{
    fa_ggml_tensor *t = host_tensor(from->type, from->ne[0], from->ne[1], from->ne[2], from->ne[3]);
    t->op = HOST_COPY;
    t->flags = FA_GGML_FLAG_COMPUTE;
    t->src[0] = from;
    return t;
}
fa_ggml_graph *host_graph(int n, fa_ggml_tensor **nodes, uint64_t uid)
{
    fa_ggml_graph *g = &graphs[graphed % GRAPHS].graph;
    fa_ggml_tensor **at = graphs[graphed++ % GRAPHS].nodes;
    *g = (fa_ggml_graph){ .size = NODES, .n_nodes = n, .nodes = at, .uid = uid };
    memcpy(at, nodes, (size_t)n * sizeof *nodes);
    return g;
}

/* --- the operation --- */

double host_value(const fa_ggml_tensor *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3)
{
    const char *row = (const char *)t->data + (size_t)i1 * t->nb[1] + (size_t)i2 * t->nb[2] + (size_t)i3 * t->nb[3];
    const char *name = types[t->type].name;
    uint16_t half;
    float x;
    if (!strcmp(name, "f32"))
        return memcpy(&x, row + 4 * i0, 4), (double)x;
    if (!strcmp(name, "f16"))
        return memcpy(&half, row + 2 * i0, 2), (double)fa_number_from_f16(half);
    if (!strcmp(name, "bf16"))
        return memcpy(&half, row + 2 * i0, 2), (double)fa_number_from_bf16(half);
    for (size_t i = 0; fa_format_row(i); i++)
        if (!strcmp(fa_format_row(i)->name, name))
            return fa_format_value(fa_format_row(i), row, i0);
    return NAN;
}

static double slope_of(double max_bias, int64_t heads, int64_t h)
{
    double n = exp2(floor(log2((double)heads)));
    if (max_bias <= 0)
        return 1;
    return (double)h < n ? exp2(-max_bias / n * (double)(h + 1)) : exp2(-max_bias / 2 / n * (double)(2 * (h - (int64_t)n) + 1));
}

void host_attend(const fa_ggml_tensor *node, double *out)
{
    const fa_ggml_tensor *q = node->src[0], *k = node->src[1], *v = node->src[2], *m = node->src[3], *z = node->src[4];
    float scale, max_bias, cap;
    memcpy(&scale, &node->op_params[0], 4);
    memcpy(&max_bias, &node->op_params[1], 4);
    memcpy(&cap, &node->op_params[2], 4);
    const int64_t d = q->ne[0], dv = v->ne[0], sk = k->ne[1];
    double *s = malloc((size_t)sk * sizeof *s);
    for (int64_t b = 0; b < q->ne[3]; b++)
        for (int64_t h = 0; h < q->ne[2]; h++)
            for (int64_t i = 0; i < q->ne[1]; i++) {
                const int64_t hk = h / (q->ne[2] / k->ne[2]), bk = b % k->ne[3];
                double top = -INFINITY, sum = 0, *o = out + ((b * q->ne[1] + i) * q->ne[2] + h) * dv;
                for (int64_t j = 0; j < sk; j++) {
                    double dot = 0, add = m ? host_value(m, j, i, h % m->ne[2], b % m->ne[3]) : 0;
                    s[j] = -INFINITY;
                    if (add == -INFINITY) /* what it hides is not looked at */
                        continue;
                    for (int64_t c = 0; c < d; c++)
                        dot += host_value(q, c, i, h, b) * host_value(k, c, j, hk, bk);
                    dot *= (double)scale;
                    dot = cap != 0 ? (double)cap * tanh(dot / (double)cap) : dot;
                    s[j] = dot + slope_of((double)max_bias, q->ne[2], h) * add;
                    top = s[j] > top ? s[j] : top;
                }
                const double sink = z ? host_value(z, h, 0, 0, 0) : -INFINITY;
                top = sink > top ? sink : top;
                for (int64_t c = 0; c < dv; c++)
                    o[c] = 0;
                for (int64_t j = 0; j < sk; j++) {
                    if (s[j] == -INFINITY)
                        continue;
                    const double p = exp(s[j] - top);
                    sum += p;
                    for (int64_t c = 0; c < dv; c++)
                        o[c] += p * host_value(v, c, j, hk, bk);
                }
                sum += sink > -INFINITY ? exp(sink - top) : 0;
                for (int64_t c = 0; c < dv; c++)
                    o[c] = sum > 0 ? o[c] / sum : 0;
            }
    free(s);
}
