/* layout: what this library knows of ggml: where the fields lie that it reads, in words of its own. Nothing of ggml's is included, and a
 * program's ggml may be another one than was looked at: fa_ggml_open() and the checks below hold each of these against what ggml's own
 * functions say, and nothing is hooked where one differs.
 *
 * Backend API 2 and 3 have these fields in these places. */
#ifndef FA_GGML_LAYOUT_H
#define FA_GGML_LAYOUT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FA_GGML_API_LEAST 2
#define FA_GGML_API_MOST 3

/* A tensor: ne[0] runs fastest; nb are strides in bytes. */
typedef struct fa_ggml_tensor fa_ggml_tensor;
struct fa_ggml_tensor {
    int32_t type;
    void *buffer;
    int64_t ne[4];
    size_t nb[4];
    int32_t op;
    int32_t op_params[16];
    int32_t flags;
    fa_ggml_tensor *src[10];
    fa_ggml_tensor *view_src;
    size_t view_offs;
    void *data;
    char name[64];
    void *extra;
    char padding[8];
};
#define FA_GGML_TENSOR_OVERHEAD 368 /* ggml_tensor_overhead(): the tensor and 32 bytes before it */
#define FA_GGML_FLAG_COMPUTE 16     /* of a node: it is to be computed. Older versions set it nowhere */

/* A graph, as far as a part of one is handed on. */
typedef struct fa_ggml_graph {
    int32_t size, n_nodes, n_leafs;
    fa_ggml_tensor **nodes, **grads, **grad_accs, **leafs;
    int32_t *use_counts;
    struct {
        size_t size;
        uint32_t *used;
        fa_ggml_tensor **keys;
    } visited;
    int32_t order;
    uint64_t uid; /* graphs of one number, which is not 0, are the same */
} fa_ggml_graph;

typedef struct fa_ggml_device fa_ggml_device;
typedef struct fa_ggml_backend fa_ggml_backend;
typedef struct fa_ggml_reg fa_ggml_reg;
typedef struct fa_ggml_event {
    fa_ggml_device *device;
    void *context; /* of CUDA's: the event of the driver */
} fa_ggml_event;

typedef void fa_ggml_unused(void); /* an entry that is neither called nor changed */

/* A stream of a device: what computes graphs. */
struct fa_ggml_backend {
    uint8_t (*guid)[16];
    struct {
        const char *(*get_name)(fa_ggml_backend *);
        void (*free)(fa_ggml_backend *);
        fa_ggml_unused *set_async, *get_async, *set_2d_async, *get_2d_async, *copy_async;
        void (*synchronize)(fa_ggml_backend *);
        fa_ggml_unused *plan_create, *plan_free, *plan_update, *plan_compute;
        int32_t (*graph_compute)(fa_ggml_backend *, fa_ggml_graph *);
        void (*event_record)(fa_ggml_backend *, fa_ggml_event *);
        void (*event_wait)(fa_ggml_backend *, fa_ggml_event *);
        fa_ggml_unused *graph_optimize;
    } i;
    fa_ggml_device *device;
    void *context;
};
enum { FA_GGML_SUCCESS = 0, FA_GGML_FAILED = -1 };

typedef struct fa_ggml_properties {
    const char *name, *description;
    size_t memory_free, memory_total;
    int32_t type;
    const char *device_id;
    struct {
        bool async, host_buffer, from_host_ptr, events, mmap;
    } caps;
} fa_ggml_properties;

struct fa_ggml_device {
    struct {
        const char *(*get_name)(fa_ggml_device *);
        const char *(*get_description)(fa_ggml_device *);
        void (*get_memory)(fa_ggml_device *, size_t *, size_t *);
        int32_t (*get_type)(fa_ggml_device *);
        void (*get_properties)(fa_ggml_device *, fa_ggml_properties *);
        fa_ggml_backend *(*init_backend)(fa_ggml_device *, const char *);
        void *(*get_buffer_type)(fa_ggml_device *);
        void *(*get_host_buffer_type)(fa_ggml_device *);
        fa_ggml_unused *from_host_ptr;
        bool (*supports_op)(fa_ggml_device *, const fa_ggml_tensor *);
        bool (*supports_buffer_type)(fa_ggml_device *, void *);
        fa_ggml_unused *offload_op;
        fa_ggml_event *(*event_new)(fa_ggml_device *);
        void (*event_free)(fa_ggml_device *, fa_ggml_event *);
        fa_ggml_unused *event_synchronize;
    } i;
    fa_ggml_reg *reg;
    void *context;
};
enum { FA_GGML_DEVICE_ACCEL = 3 };

/* What a library of devices shows. */
struct fa_ggml_reg {
    int32_t api_version;
    struct {
        const char *(*get_name)(fa_ggml_reg *);
        size_t (*device_count)(fa_ggml_reg *);
        fa_ggml_device *(*device)(fa_ggml_reg *, size_t);
        void *(*proc_address)(fa_ggml_reg *, const char *);
    } i;
    void *context;
};

/* Functions of libggml and libggml-base, by their names there. X(what it returns, name, parameters) */
#define FA_GGML_SYMBOLS(X)                                                 \
    X(fa_ggml_reg *, ggml_backend_reg_by_name, (const char *))             \
    X(const char *, ggml_backend_reg_name, (fa_ggml_reg *))                \
    X(size_t, ggml_backend_reg_dev_count, (fa_ggml_reg *))                 \
    X(fa_ggml_device *, ggml_backend_reg_dev_get, (fa_ggml_reg *, size_t)) \
    X(const char *, ggml_backend_dev_name, (fa_ggml_device *))             \
    X(fa_ggml_reg *, ggml_backend_dev_backend_reg, (fa_ggml_device *))     \
    X(fa_ggml_device *, ggml_backend_get_device, (fa_ggml_backend *))      \
    X(void *, ggml_backend_cpu_buffer_type, (void))                        \
    X(size_t, ggml_tensor_overhead, (void))                                \
    X(const char *, ggml_op_name, (int32_t))                               \
    X(const char *, ggml_type_name, (int32_t))                             \
    X(size_t, ggml_type_size, (int32_t))                                   \
    X(int64_t, ggml_blck_size, (int32_t))                                  \
    X(int32_t, ggml_graph_n_nodes, (fa_ggml_graph *))                      \
    X(fa_ggml_tensor **, ggml_graph_nodes, (fa_ggml_graph *))

#define FA_GGML_TYPES 31 /* numbers of types that are asked about: up to that of bf16, the last that counts */
#define FA_GGML_OPS 96   /* likewise of operations */

/* The ggml of this process. */
typedef struct fa_ggml {
#define X(type, name, parameters) type(*name) parameters;
    FA_GGML_SYMBOLS(X)
#undef X
    int32_t api;            /* its backend API */
    int32_t attention;      /* the number of its operation FLASH_ATTN_EXT */
    bool idle[FA_GGML_OPS]; /* operations that compute nothing: views and the like */
    int32_t routed;         /* the number of MUL_MAT_ID, which may wait inside */
    struct {
        char name[16]; /* "" : none has the number */
        int32_t block, bytes;
    } type[FA_GGML_TYPES];
} fa_ggml;

/* How a name becomes an address; NULL where there is none. */
typedef void *fa_ggml_find(void *user, const char *name);

/* Of the process: what the program has, or libraries of it that are loaded. */
void *fa_ggml_find_loaded(void *unused, const char *name);

/* Finds the functions and asks them for versions, sizes and names. false: this ggml is none that is known; `why` says which is missing or
 * differs. The first of the registries "CUDA" and "CPU" that there is tells the API. */
bool fa_ggml_open(fa_ggml *g, fa_ggml_find *find, void *user, char *why, size_t n);

/* The same where the functions of operations, types and the overhead of tensors stand in *g already; nothing is said of the API. */
bool fa_ggml_ask(fa_ggml *g, char *why, size_t n);

/* Whether a registry, a device of it, a backend of that, and a graph lie as told above, by what ggml's functions say of them. */
bool fa_ggml_reg_check(const fa_ggml *g, const fa_ggml_reg *r, char *why, size_t n);
bool fa_ggml_device_check(const fa_ggml *g, fa_ggml_device *d, const fa_ggml_reg *r, char *why, size_t n);
bool fa_ggml_backend_check(const fa_ggml *g, fa_ggml_backend *b, const fa_ggml_device *d, char *why, size_t n);
bool fa_ggml_graph_check(const fa_ggml *g, fa_ggml_graph *c, char *why, size_t n);

/* ggml-cuda's context of a backend, which is no part of any API: the number of its device, its name, its streams. The stream of device n;
 * NULL where anything is not as it should be, or none was made yet. `name`: that of the device. */
void *fa_ggml_cuda_stream(const fa_ggml_backend *b, const char *name, int32_t device);
#endif
