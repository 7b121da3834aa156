/* jax_ffi: fagen as a custom call of XLA, for fagen.jax. Linked to nothing of fagen: Python hands over the functions of the libfagen.so
 * that it has open, and the contexts. */
#include "xla_ffi.h"
#include <fagen.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES 64
#define HOST DEVICES /* the slot of the simulated chip, whose tensors lie in host memory */

/* Of libfagen.so and of libcuda.so.1, by address. */
typedef struct fagen_jax_functions {
    fa_status (*launch)(fa_context *, const fa_args *, fa_stream);
    fa_status (*workspace_size)(fa_context *, const fa_args *, size_t *);
    fa_status (*workspace_init)(fa_context *, void *, size_t, fa_stream);
    fa_status (*alloc)(fa_context *, void **, size_t);
    fa_status (*free)(fa_context *, void *);
    fa_status (*copy)(fa_context *, void *, const void *, size_t, fa_copy_kind);
    const char *(*last_error)(void);
    fa_status (*score_create)(fa_context *, const char *, fa_score **);
    int (*pointer_attribute)(void *, int, unsigned long long); /* cuPointerGetAttribute, or NULL where there is no driver */
} fagen_jax_functions;

/* Kept for the kernels of one stream; outgrown ones stay, since kernels may still use them. */
typedef struct workspace {
    struct workspace *next;
    pthread_mutex_t mutex; /* held while a launch is put on the stream: those of two threads must not mix */
    fa_context *ctx;
    void *stream, *at;
    size_t size;
    int32_t op; /* kernels without counters write where those of another operation have theirs */
} workspace;

/* A score program that calls name, for as long as its context is bound. */
typedef struct program {
    struct program *next;
    fa_context *ctx;
    fa_score *score;
    size_t size;
    char text[];
} program;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static fagen_jax_functions fagen;
static fa_context *contexts[DEVICES + 1];
static workspace *workspaces;
static program *programs;

#define EXPORT __attribute__((visibility("default")))
EXPORT void fagen_jax_functions_set(const fagen_jax_functions *f);
EXPORT int fagen_jax_context_set(int slot, fa_context *ctx);
EXPORT xla_error *fagen_jax_attention(xla_call *call);
EXPORT xla_error *fagen_jax_attention_host(xla_call *call);
EXPORT xla_error *fagen_jax_backward(xla_call *call);
EXPORT xla_error *fagen_jax_backward_host(xla_call *call);
EXPORT xla_error *fagen_jax_dropout(xla_call *call);
EXPORT xla_error *fagen_jax_dropout_host(xla_call *call);
EXPORT xla_error *fagen_jax_dropout_backward(xla_call *call);
EXPORT xla_error *fagen_jax_dropout_backward_host(xla_call *call);

#define OPERANDS 12
#define VALUES 8 /* operands of a score program, whose tensors are arguments after all others */

/* The operation of a custom call: where in fa_args the addresses of its arguments and then of its results go. The last of each may be
 * missing. An fa_tensor begins with its address. */
typedef struct operation {
    int32_t op;
    int arguments, results, o; /* o: the operand that it is */
    size_t at[OPERANDS];
} operation;

#define AT(field) offsetof(fa_args, field)
static const operation forward = { FA_FORWARD, 3, 2, 3, { AT(q), AT(k), AT(v), AT(o), AT(lse) } };
static const operation dropout = { FA_FORWARD, 4, 2, 4, { AT(q), AT(k), AT(v), AT(rng), AT(o), AT(lse) } };
static const operation dropout_backward = {
    FA_BACKWARD, 8, 3, 3, { AT(q), AT(k), AT(v), AT(o), AT(lse), AT(grad_o), AT(rng), AT(grad_lse), AT(grad_q), AT(grad_k), AT(grad_v) }
};
static const operation backward = {
    FA_BACKWARD, 7, 3, 3, { AT(q), AT(k), AT(v), AT(o), AT(lse), AT(grad_o), AT(grad_lse), AT(grad_q), AT(grad_k), AT(grad_v) }
};
#undef AT

void fagen_jax_functions_set(const fagen_jax_functions *f)
{
    pthread_mutex_lock(&mutex);
    fagen = *f;
    pthread_mutex_unlock(&mutex);
}

/* The context of a CUDA device by its ordinal, or, in slot 64, of the simulated chip; NULL takes it back. 0, or -1 for a wrong slot. */
int fagen_jax_context_set(int slot, fa_context *ctx)
{
    if (slot < 0 || slot > HOST)
        return -1;
    pthread_mutex_lock(&mutex);
    for (program **at = &programs, *p; (p = *at);) { /* of a context that may be gone */
        int stays = p->ctx != contexts[slot];
        *at = stays ? *at : p->next;
        if (stays)
            at = &p->next;
        else
            free(p);
    }
    contexts[slot] = ctx;
    pthread_mutex_unlock(&mutex);
    return 0;
}

static fa_context *context_at(int slot)
{
    pthread_mutex_lock(&mutex);
    fa_context *ctx = slot >= 0 && slot <= HOST ? contexts[slot] : NULL;
    pthread_mutex_unlock(&mutex);
    return ctx;
}

static xla_error *fail(const xla_call *call, int code, const char *message)
{
    xla_error_create_args args = { sizeof args, NULL, message, code };
    return call->api->error_create(&args);
}

static xla_error *fail_status(const xla_call *call, fa_status st)
{
    int code = st == FA_INVALID       ? XLA_INVALID_ARGUMENT
               : st == FA_UNSUPPORTED ? XLA_UNIMPLEMENTED
               : st == FA_NOMEM       ? XLA_RESOURCE_EXHAUSTED
                                      : XLA_INTERNAL;
    char text[2048];
    snprintf(text, sizeof text, "fagen: %s", fagen.last_error());
    return fail(call, code, text);
}

/* An attribute of a type, NULL where there is none. */
static const void *named(const xla_call *call, const char *name, int type)
{
    const xla_attributes *all = &call->attributes;
    for (int64_t i = 0; i < all->n; i++)
        if (all->types[i] == type && all->names[i]->size == strlen(name) && !memcmp(all->names[i]->at, name, strlen(name)))
            return all->values[i];
    return NULL;
}

/* The value of an attribute that Python passes as a scalar of the type; NULL where there is none. */
static const void *attribute(const xla_call *call, const char *name, int dtype)
{
    const xla_scalar *s = named(call, name, XLA_SCALAR);
    return s && s->dtype == dtype ? s->value : NULL;
}

static int32_t whole(const xla_call *call, const char *name)
{
    const int32_t *v = attribute(call, name, XLA_S32);
    return v ? *v : 0;
}

static float real(const xla_call *call, const char *name)
{
    const float *v = attribute(call, name, XLA_F32);
    return v ? *v : 0;
}

static int dtype_of(int xla)
{
    return xla == XLA_F16 ? FA_F16 : xla == XLA_BF16 ? FA_BF16 : xla == XLA_F32 ? FA_F32 : 0;
}

static size_t element_bytes(int xla)
{
    switch (xla) {
    case XLA_PRED:
    case XLA_U8:
        return 1;
    case XLA_F32:
    case XLA_S32:
    case XLA_U32: /* halves of seed and offset */
        return 4;
    case XLA_S64:
    case XLA_F64:
        return 8;
    default:
        return 2;
    }
}

static size_t bytes_of(const xla_buffer *b)
{
    size_t n = element_bytes(b->dtype);
    for (int64_t i = 0; i < b->rank; i++)
        n *= (size_t)b->dims[i];
    return n;
}

/* Dimensions before [s, h, d] are batches, as jax.vmap makes them. */
static int32_t batches(const xla_buffer *x)
{
    int64_t n = 1;
    for (int64_t i = 0; i + 3 < x->rank; i++)
        n *= x->dims[i];
    return (int32_t)n;
}

static int32_t dim(const xla_buffer *x, int from_the_end)
{
    return (int32_t)x->dims[x->rank - from_the_end];
}

/* The buffer of operand i of the operation, arguments first; NULL where the call has none. */
static const xla_buffer *operand(const xla_call *call, const operation *op, int i)
{
    const xla_buffers *of = i < op->arguments ? &call->arguments : &call->results;
    int at = i < op->arguments ? i : i - op->arguments;
    return at < of->n ? of->at[at] : NULL;
}

static void **address(fa_args *a, const operation *op, int i)
{
    return (void **)((char *)a + op->at[i]);
}

static int32_t own_dtype(const xla_buffer *x, const xla_buffer *q)
{
    return x->dtype == q->dtype ? 0 : dtype_of(x->dtype);
}

/* XLA has compared shapes with what Python traced. */
static void arguments(fa_args *a, const xla_call *call, const operation *op)
{
    const xla_buffer *q = call->arguments.at[0], *k = call->arguments.at[1], *v = call->arguments.at[2];
    int tf32 = whole(call, "tf32"), gradients = op->op == FA_BACKWARD;
    *a = (fa_args)FA_ARGS_INIT;
    a->op = op->op;
    a->dtype = tf32 && q->dtype == XLA_F32 ? FA_TF32 : dtype_of(q->dtype);
    a->o_dtype = own_dtype(operand(call, op, op->o), q);
    a->grad_dtype = gradients ? own_dtype(call->results.at[0], q) : 0;
    a->flags = (whole(call, "deterministic") ? FA_DETERMINISTIC : 0) | (whole(call, "batch_invariant") ? FA_BATCH_INVARIANT : 0);
    a->b = batches(q);
    a->sq = dim(q, 3), a->hq = dim(q, 2), a->d = dim(q, 1);
    a->sk = dim(k, 3), a->hkv = dim(k, 2), a->dv = dim(v, 1);
    a->mask = whole(call, "mask");
    a->window_left = whole(call, "left"), a->window_right = whole(call, "right");
    a->diagonal = whole(call, "diagonal"), a->offset = whole(call, "offset");
    a->scale = real(call, "scale");
    a->dropout = real(call, "dropout");
    for (int i = 0; i < op->arguments + op->results; i++) {
        const xla_buffer *x = operand(call, op, i);
        *address(a, op, i) = x ? x->data : NULL;
    }
}

/* The program of a text in a context, made at its first call. */
static fa_status program_of(fa_score **out, fa_context *ctx, const xla_text *text)
{
    fa_status st = FA_OK;
    pthread_mutex_lock(&mutex);
    program *p = programs;
    while (p && (p->ctx != ctx || p->size != text->size || memcmp(p->text, text->at, text->size)))
        p = p->next;
    if (!p && (p = calloc(1, sizeof *p + text->size + 1))) {
        memcpy(p->text, text->at, text->size);
        p->size = text->size, p->ctx = ctx, p->next = programs;
        st = fagen.score_create(ctx, p->text, &p->score);
        if (st == FA_OK) {
            programs = p;
        } else {
            free(p);
            p = NULL;
        }
    } else if (!p) {
        st = FA_NOMEM;
    }
    *out = p ? p->score : NULL;
    pthread_mutex_unlock(&mutex);
    return st;
}

static const xla_buffer *value_buffer(const xla_call *call, const operation *op, int i)
{
    return op->arguments + i < call->arguments.n ? call->arguments.at[op->arguments + i] : NULL;
}

/* The program of a call, where it has one. The attribute `layout` has for each operand, in the order of the text, whether it is a tensor,
 * its extents and its strides; `scalars` its number. */
static fa_status score(fa_args *a, fa_score_value *values, fa_context *ctx, const xla_call *call, const operation *op)
{
    const xla_text *text = named(call, "program", XLA_STRING);
    const xla_array *layout = named(call, "layout", XLA_ARRAY), *scalars = named(call, "scalars", XLA_ARRAY);
    if (!text)
        return FA_OK;
    if (!layout || !scalars || layout->dtype != XLA_S64 || scalars->dtype != XLA_F64 || scalars->size > VALUES ||
        layout->size != 9 * scalars->size)
        return FA_INTERNAL;
    fa_score *made;
    fa_status st = program_of(&made, ctx, text);
    if (st != FA_OK)
        return st;
    int tensors = 0;
    for (size_t i = 0; i < scalars->size; i++) {
        const int64_t *row = (const int64_t *)layout->data + 9 * i;
        values[i] = (fa_score_value)FA_SCORE_VALUE_INIT;
        values[i].scalar = ((const double *)scalars->data)[i];
        for (int k = 0; k < 4; k++)
            values[i].extent[k] = (int32_t)row[1 + k], values[i].stride[k] = row[5 + k];
        const xla_buffer *x = row[0] ? value_buffer(call, op, tensors++) : NULL;
        values[i].ptr = x ? x->data : NULL;
    }
    a->score = made, a->score_values = values, a->score_value_count = (int32_t)scalars->size;
    return FA_OK;
}

/* Whether no result has an element. */
static int is_empty(const xla_call *call)
{
    for (int64_t i = 0; i < call->results.n; i++)
        if (bytes_of(call->results.at[i]))
            return 0;
    return 1;
}

/* Memory for the kernels of a stream, initialised; kept. *out is NULL where none is needed. */
static fa_status workspace_for(workspace **out, const fa_args *a, fa_context *ctx, void *stream)
{
    size_t need = 0;
    fa_status st = fagen.workspace_size(ctx, a, &need);
    *out = NULL;
    if (st != FA_OK || !need)
        return st;
    pthread_mutex_lock(&mutex);
    workspace *w = workspaces;
    while (w && (w->ctx != ctx || w->stream != stream || w->op != a->op || w->size < need))
        w = w->next;
    if (!w && (w = calloc(1, sizeof *w))) {
        *w = (workspace){ workspaces, PTHREAD_MUTEX_INITIALIZER, ctx, stream, NULL, need + need / 2, a->op };
        st = fagen.alloc(ctx, &w->at, w->size);
        if (st == FA_OK)
            st = fagen.workspace_init(ctx, w->at, w->size, stream);
        if (st == FA_OK)
            workspaces = w;
        else
            free(w);
    } else if (!w) {
        st = FA_NOMEM;
    }
    if (st == FA_OK)
        *out = w;
    pthread_mutex_unlock(&mutex);
    return st;
}

static fa_status launch(fa_args *a, fa_context *ctx, void *stream)
{
    workspace *w;
    fa_status st = workspace_for(&w, a, ctx, stream);
    if (st != FA_OK || !w)
        return st == FA_OK ? fagen.launch(ctx, a, stream) : st;
    a->workspace = w->at, a->workspace_size = w->size;
    pthread_mutex_lock(&w->mutex);
    st = fagen.launch(ctx, a, stream);
    pthread_mutex_unlock(&w->mutex);
    return st;
}

/* XLA asks each handler once what it is: of the very version that asks, since what is used here is in all of them. */
static int is_question(xla_call *call)
{
    xla_extension *e = call->extension;
    if (!e || e->type != XLA_METADATA)
        return 0;
    xla_metadata *m = ((xla_metadata_extension *)e)->metadata;
    m->version.major = call->api->version.major;
    m->version.minor = call->api->version.minor;
    m->traits = 0; /* not for command buffers: a first call may compile */
    return 1;
}

static xla_error *unbound(const xla_call *call)
{
    return fail(call, XLA_FAILED_PRECONDITION, "fagen: no context for this device: fagen.jax.bind() makes them");
}

static xla_error *on_device(xla_call *call, const operation *op)
{
    if (is_question(call) || call->stage != XLA_EXECUTE)
        return NULL;
    fa_args a;
    arguments(&a, call, op);
    if (is_empty(call))
        return NULL;
    xla_stream_get_args s = { sizeof s, NULL, call->execution, NULL };
    xla_error *error = call->api->stream_get(&s);
    if (error)
        return error;
    int ordinal = 0;
    unsigned long long at = (uintptr_t)(op->op == FA_FORWARD ? a.o.ptr : a.grad_q.ptr);
    at = at ? at : (uintptr_t)a.grad_k.ptr;
    if (fagen.pointer_attribute && fagen.pointer_attribute(&ordinal, 9, at)) /* DEVICE_ORDINAL */
        ordinal = 0;
    fa_context *ctx = context_at(ordinal);
    if (!ctx || ordinal >= DEVICES)
        return unbound(call);
    fa_score_value values[VALUES];
    fa_status st = score(&a, values, ctx, call, op);
    st = st == FA_OK ? launch(&a, ctx, s.stream) : st;
    return st == FA_OK ? NULL : fail_status(call, st);
}

/* Buffers of host memory, on the simulated chip: copied there and back. */
static xla_error *on_host(xla_call *call, const operation *op)
{
    if (is_question(call) || call->stage != XLA_EXECUTE)
        return NULL;
    fa_context *ctx = context_at(HOST);
    if (!ctx)
        return unbound(call);
    fa_args a;
    arguments(&a, call, op);
    void *there[OPERANDS] = { NULL }, *read[VALUES] = { NULL };
    fa_score_value values[VALUES];
    fa_status st = score(&a, values, ctx, call, op);
    for (int i = 0, k = 0; st == FA_OK && i < a.score_value_count; i++) {
        const xla_buffer *x = values[i].ptr ? value_buffer(call, op, k++) : NULL;
        if (!x || !bytes_of(x))
            continue;
        st = fagen.alloc(ctx, &read[i], bytes_of(x));
        st = st == FA_OK ? fagen.copy(ctx, read[i], x->data, bytes_of(x), FA_TO_DEVICE) : st;
        values[i].ptr = read[i];
    }
    int n = op->arguments + op->results;
    for (int i = 0; i < n && st == FA_OK; i++) {
        const xla_buffer *x = operand(call, op, i);
        size_t bytes = x ? bytes_of(x) : 0;
        *address(&a, op, i) = NULL;
        if (!bytes)
            continue;
        st = fagen.alloc(ctx, &there[i], bytes);
        if (st == FA_OK && i < op->arguments)
            st = fagen.copy(ctx, there[i], x->data, bytes, FA_TO_DEVICE);
        *address(&a, op, i) = there[i];
    }
    if (st == FA_OK)
        st = launch(&a, ctx, NULL);
    for (int i = op->arguments; i < n && st == FA_OK; i++)
        if (there[i]) {
            const xla_buffer *x = operand(call, op, i);
            st = fagen.copy(ctx, x->data, there[i], bytes_of(x), FA_FROM_DEVICE);
        }
    xla_error *error = st == FA_OK ? NULL : fail_status(call, st);
    for (int i = 0; i < n; i++)
        fagen.free(ctx, there[i]);
    for (int i = 0; i < VALUES; i++)
        fagen.free(ctx, read[i]);
    return error;
}

xla_error *fagen_jax_attention(xla_call *call)
{
    return on_device(call, &forward);
}

xla_error *fagen_jax_attention_host(xla_call *call)
{
    return on_host(call, &forward);
}

xla_error *fagen_jax_backward(xla_call *call)
{
    return on_device(call, &backward);
}

xla_error *fagen_jax_backward_host(xla_call *call)
{
    return on_host(call, &backward);
}

xla_error *fagen_jax_dropout(xla_call *call)
{
    return on_device(call, &dropout);
}

xla_error *fagen_jax_dropout_host(xla_call *call)
{
    return on_host(call, &dropout);
}

xla_error *fagen_jax_dropout_backward(xla_call *call)
{
    return on_device(call, &dropout_backward);
}

xla_error *fagen_jax_dropout_backward_host(xla_call *call)
{
    return on_host(call, &dropout_backward);
}
