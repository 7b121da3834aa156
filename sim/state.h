/* state: what the driver's functions share: the simulators and their devices, live handles, the lock, and what each thread was last told.
 * All simulators of a process have one lock, so one call of them all is under way at a time. CUdevice is a number among the devices of them
 * all, and an address tells its device. A thread has one stack of contexts: the last that was pushed is current, whosever it is. */
#ifndef SIM_STATE_H
#define SIM_STATE_H
#include "exec.h"
#include <pthread.h>

enum { SIM_DEVICES = 8, SIM_SIMULATORS = 16 }; /* of a simulator; of a process */
#define SIM_MEMORY_BYTES (80ull << 30)

typedef enum sim_kind { H_CONTEXT, H_LIBRARY, H_KERNEL, H_STREAM, H_EVENT, H_CAPTURED, H_GRAPH, H_GRAPH_EXEC, H_USER_OBJECT } sim_kind;

typedef struct sim_device {
    const sim_arch *arch; /* NULL: there is no such device */
    int ordinal, retained;
    bool reported; /* the last launch let the next one begin by a thread that had not waited */
    sim_memory memory;
    const struct sim_simulator *of;
} sim_device; /* also its own primary context */

typedef struct sim_simulator {
    char archs[256], name[272]; /* "sm_80,sm_90a", "sim:sm_80,sm_90a" */
    int devices;
    sim_device device[SIM_DEVICES];
} sim_simulator;

typedef struct sim_node { /* one recorded piece of work */
    CUresult (*run)(const struct sim_node *n);
    enum { N_MEMSET8, N_MEMSET32, N_TO_DEVICE, N_TO_HOST, N_INSIDE } what; /* of transfer.c */
    struct sim_kernel *kernel;
    sim_device *device;
    uint32_t grid[3], block[3], cluster[3], dynamic; /* cluster: 1 x 1 x 1 where none is asked for */
    bool explicit_cluster, pdl;
    uint8_t *params; /* owned */
    CUdeviceptr to, from;
    void *host;
    size_t n;
    uint32_t value;
} sim_node;

typedef struct sim_user_object {
    CUhostFn destroy;
    void *user;
    uint64_t references; /* of graphs and of the caller */
} sim_user_object;
typedef struct sim_graph {
    sim_node *node;
    size_t n, cap;
    sim_user_object **object; /* one place for each reference */
    size_t objects;
} sim_graph;
typedef struct sim_stream {
    sim_device *device;
    CUstreamCaptureStatus capture;
    sim_graph *graph;
    uint64_t number, capturing; /* of no other stream, of no other capture of the process */
    CUstreamCaptureMode mode;   /* of the capture, */
    const void *thread;         /* the thread that began it, */
    struct sim_stream *next;    /* and the next stream that is captured */
} sim_stream;
typedef struct sim_event {
    double at;
    bool recorded;
} sim_event; /* at: host seconds */
typedef struct sim_kernel {
    struct sim_library *library;
    const sim_program *program;
    int max_dynamic[SIM_DEVICES];
} sim_kernel;
typedef struct sim_library {
    sim_module *module;
    sim_kernel *kernel;
    uint64_t *variable;
    size_t variables;
} sim_library;

typedef struct sim_state {
    pthread_mutex_t lock;
    bool initialised;
    int simulators;
    sim_simulator simulator[SIM_SIMULATORS];
    sim_memory variables;
    sim_options options;
    sim_counters counters;
    struct {
        const void *p;
        sim_kind kind;
    } * handle;
    size_t handles, handle_cap;
} sim_state;
extern sim_state sim_the;

/* Every entry of the driver takes the lock; these expect it held. */
bool sim_live(const void *p, sim_kind kind);
bool sim_register(const void *p, sim_kind kind); /* false: out of memory */
void sim_unregister(const void *p);
void sim_state_forked(void);          /* in a child of fork() */
CUresult sim_current(sim_device **d); /* of the calling thread's context */
CUresult sim_tell(CUresult r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_detail_clear(void); /* what it was told is nothing */

sim_device *sim_device_of(CUdevice n); /* NULL: there is none */
CUdevice sim_device_number(const sim_device *d);
sim_device *sim_device_at(uint64_t address);      /* whose memory it is of; NULL: nobody's, or a variable's */
uint64_t sim_device_space(CUdevice n);            /* the first address of a device; that of number SIM_NOBODY: of variables */
#define SIM_NOBODY (SIM_SIMULATORS * SIM_DEVICES) /* the first number that no device has */
/* That the address is of another simulator than d is told, as an error; CUDA_SUCCESS otherwise. */
CUresult sim_device_own(const sim_device *d, uint64_t address);

/* The table's functions that depend on which simulator is asked, by its number. */
CUresult sim_context_current(int simulator, CUcontext *c);
CUresult sim_context_device(int simulator, CUdevice *device);

/* On a capturing stream the node is recorded, else it runs now. The node is taken over. */
CUresult sim_submit(CUstream stream, sim_node *n);

/* At the start of an entry that allocates or frees: refused beside a capture of this thread, or of another one, whose mode and the
 * thread's own forbid it, and the capture is invalidated (CUDA driver API, cuThreadExchangeStreamCaptureMode). */
CUresult sim_unsafe(void);

/* At the start of an entry: holds the lock until the function returns, and forgets what was told of a call before. */
int sim_lock(void);
static inline void sim_unlock(const int *held)
{
    (void)held, pthread_mutex_unlock(&sim_the.lock);
}
#define SIM_LOCKED __attribute__((cleanup(sim_unlock), unused)) int sim_held = sim_lock()
#define SIM_NEED(condition)                  \
    do {                                     \
        if (!(condition))                    \
            return CUDA_ERROR_INVALID_VALUE; \
    } while (0)

/* The driver's functions; these four ask simulator 0, and tables of others have others. */
#define X(f) __typeof__(f) sim_##f;
CU_DRIVER_FUNCTIONS(X)
#undef X
#endif
