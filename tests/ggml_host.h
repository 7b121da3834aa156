/* ggml_host: a ggml of our own, for tests: types, operations, tensors, graphs, a registry CUDA whose devices compute graphs of copies and
 * attention. It has the functions that the rider looks for, by ggml's names, and what a test changes of them is a wrong layout. */
#ifndef GGML_HOST_H
#define GGML_HOST_H
#include "ggml/layout.h"
#include "sim/driver.h"
#include <fagen.h>

enum host_op { HOST_NONE, HOST_COPY, HOST_VIEW, HOST_ROUTED, HOST_ATTENTION, HOST_OPS };
enum host_type {
    HOST_F32 = 0,
    HOST_F16 = 1,
    HOST_Q4_0 = 2,
    HOST_Q4_1 = 3,
    HOST_Q5_1 = 7,
    HOST_Q8_0 = 8,
    HOST_Q8_1 = 9,
    HOST_IQ4_NL = 20,
    HOST_I32 = 26,
    HOST_BF16 = 30
};

/* What is not as it should be. Names of functions that are missing, and so on: 0 = all is well. */
typedef struct host_faults {
    const char *missing; /* a function that is not found */
    int api;             /* in the place of 2 */
    int overhead;        /* added to what ggml_tensor_overhead() says */
    const char *no_type, *no_op;
    int type_bytes;    /* added to the bytes of q8_0 */
    int device_shift;  /* entries by which the device's registry lies further back */
    int backend_shift; /* and the backend's device */
    int graph_shift;   /* n_nodes is told so much too large */
    bool no_reg, wrong_name, null_supports, null_init, foreign_supports, null_compute, wrong_nodes, foreign_reg, null_count, reg_api,
        no_event;
} host_faults;
extern host_faults host;

void *host_find(void *unused, const char *name);

/* The registry CUDA, made anew with so many devices. d: how copies are done, on the backend's stream; NULL: by memcpy, in host memory.
 * known: contexts of backends lie as ggml-cuda's do, so that the stream is found. */
void host_reset(int devices, const cu_driver *d, bool known);
fa_ggml_device *host_device(int i);
/* By the entry of the device, as a program does. */
fa_ggml_backend *host_backend(int device);
void host_free(fa_ggml_backend *b);
CUstream host_stream(const fa_ggml_backend *b);
extern bool host_attends;    /* their attention is supported, and computed: the result is filled with 7 */
extern char host_trace[256]; /* what their graph_compute did: "c" a copy, "A" an attention, "|" the end of a part; "r" and "w" events */

/* A tensor of a type, contiguous, without memory. From a pool, which host_reset() empties. */
fa_ggml_tensor *host_tensor(int type, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3);
fa_ggml_tensor *host_permuted(fa_ggml_tensor *t, int a, int b); /* two dimensions change places: a view of the same memory */
fa_ggml_tensor *host_columns(fa_ggml_tensor *t, int64_t n);     /* the first n elements of its rows: likewise */
size_t host_bytes(const fa_ggml_tensor *t);
fa_ggml_tensor *host_attention(fa_ggml_tensor *q, fa_ggml_tensor *k, fa_ggml_tensor *v, fa_ggml_tensor *mask, fa_ggml_tensor *sinks,
                               float scale, float max_bias, float cap);
fa_ggml_tensor *host_copy(fa_ggml_tensor *from);
fa_ggml_graph *host_graph(int n, fa_ggml_tensor **nodes, uint64_t uid);

/* The operation in fp64, of tensors in host memory, by its definition. */
void host_attend(const fa_ggml_tensor *node, double *out);
double host_value(const fa_ggml_tensor *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3);
#endif
