/* sim: a CUDA driver that runs on the CPU. It takes PTX text, executes it warp by warp, checks what it does and counts it.
 * It knows nothing of its callers. sim_open() makes a simulator, which is a driver table for a list of devices; a process has up to 16. */
#ifndef SIM_H
#define SIM_H
#include "checks.h"
#include "driver.h"
#include <stddef.h>
#include <stdint.h>

/* When an asynchronous copy (cp.async, later TMA) takes place: at issue, or at the last legal moment with the destination
 * poisoned until then. A program that waits correctly cannot tell them apart. */
typedef enum sim_async { SIM_EAGER = 0, SIM_LAZY = 1 } sim_async;

/* In which order the warps of a block run between barriers. */
typedef enum sim_schedule {
    SIM_IN_ORDER = 0, /* warp 0 until it blocks, then warp 1, ... */
    SIM_REVERSED = 1,
    SIM_RANDOM = 2 /* seeded; also preempts a warp in the middle */
} sim_schedule;

typedef struct sim_options {
    sim_async async;
    sim_schedule schedule;
    uint64_t seed;              /* of SIM_RANDOM */
    int unchecked;              /* 1: no race, uninitialised-read or bank-conflict bookkeeping (bounds stay): faster */
    int open_stores;            /* 1: undefined values may be stored to global memory; the bytes count as never written from then on */
    int threads;                /* host threads that run blocks side by side; 0 or 1 = the calling thread alone */
    int64_t max_steps;          /* warp instructions per launch before it is called a hang; 0 = 4e9 */
    double max_seconds;         /* the same for its time; 0 = 300 */
    uint8_t checks[SIM_CHECKS]; /* sim_severity of each class; see sim_checks_parse() */
    int reports; /* errors of a launch before it ends; 0 or 1 = it ends with the first. Each class and instruction counts once. After
                  * a defect of a fixed class its block, or cluster, ends and the launch goes on with the next */
} sim_options;

/* What launches did since sim_counters_reset(). Bytes are those the kernel asked for: one per active lane and byte. */
#define SIM_TENSORS 16
typedef struct sim_counters {
    uint64_t launches, blocks, warps;
    uint64_t instructions;                                     /* warp instructions */
    uint64_t matrix, shuffle, special, memory, control, other; /* the same by class; special = ex2, lg2, rcp, ... */
    uint64_t barriers;
    uint64_t global_read, global_write; /* bytes */
    uint64_t shared_read, shared_write; /* bytes */
    uint64_t shared_wavefronts;         /* passes the 32 banks needed */
    uint64_t shared_ideal;              /* passes a conflict-free layout would need: conflicts = wavefronts - ideal */
    uint64_t shared_peak;               /* highest shared-memory byte touched + 1, of any block */
    uint64_t warnings;                  /* different ones of a launch, summed over launches */
    struct {
        uint64_t base, size, read, write; /* one row per allocation touched, by first touch; the last row gathers the rest */
    } tensor[SIM_TENSORS];
    int tensors;
} sim_counters;

/* archs: "sm_80" or a list, "sm_80,sm_90a": one device each, at most 8. Each list has a simulator of its own, with its own devices and
 * memory: the same list gives the same table, which lives for ever. NULL: an arch is unknown, or there are 16 simulators; sim_report() says
 * so. A child of fork() begins without a simulator: it opens a new one. Each device has 80 GB of sparse memory: only touched pages cost.
 * Thread-safe.
 *
 * Simulators differ in what cuDeviceGet, cuDeviceGetCount, cuCtxGetCurrent and cuCtxGetDevice answer: a context of another one is not
 * current to them. Any table takes handles of any; memory or a stream of another simulator than the current context's is refused. Options,
 * counters and warnings are the process's, and launches run one after the other. */
const cu_driver *sim_open(const char *archs);

/* All memory of all simulators is given back, and their tables are dead: for a caller whose code is about to be unmapped. */
void sim_close(void);

/* Where the simulator keeps what it tells a thread: keep() makes a block of zeros, lets *slot, a thread-local pointer, point to it, and
 * frees it at the thread's end. NULL, the default: calloc(), which nobody gives back. */
typedef void *sim_keep_fn(void *slot, size_t bytes);
void sim_keep_by(sim_keep_fn *keep);

/* Options of later launches of the process. NULL = all zero. Thread-safe. */
void sim_set_options(const sim_options *o);
void sim_get_options(sim_options *o);

/* on: launches that run end within some thousand instructions of a warp, and later ones at once, with CUDA_ERROR_LAUNCH_TIMEOUT and a
 * report that says "interrupted"; memory is left as it is then. 0: launches run again. From any thread; waits for nothing. */
void sim_interrupt(int on);
int sim_interrupted(void);

void sim_counters_reset(void);
void sim_counters_get(sim_counters *out);

/* The bytes of device memory from `address` on count as never written, as after cuMemAlloc, whatever they hold: a launch that lets one of
 * them decide anything is reported (class `unwritten`). They are inside one allocation. Returns a CUresult; sim_report() says why. */
int sim_forget(uint64_t address, size_t bytes);
/* The first of the bytes that was never written, counted from `address`; -1: there is none; -2: they are not inside one allocation. */
int64_t sim_unwritten(uint64_t address, size_t bytes);

/* The defects that ended this thread's last failed launch, `reports` of them at most: one line per fact (what, PTX line and text,
 * template line through .loc, block, warp, lane, address; the class); "" if none. This is the table's detail(). */
const char *sim_report(void);

/* The warnings of the process since the last call, each once, in the order of their first occurrence, in the form of a report; as many as
 * fit. Returns how many there were. Thread-safe. */
int sim_warnings(char *to, size_t room);
#endif
