/* lease: workspaces that a context lends to launches which bring none.
 *
 * A lease belongs to a CUDA context and a stream of it; to one thread of the per-thread default stream; under capture to one capture. One
 * call has it at a time, so that the steps of two calls never mix: a thread that launches on the stream meanwhile gets another one.
 *
 * Leases lie in lists that only grow, and are found without a lock. What a lease says besides its key is of who has taken it. Its counters
 * are zeroed when its memory is made, and after a launch that failed.
 *
 * Memory of a stream is ordered by it where the device has memory pools: growing frees the old block after the stream's work. Memory of a
 * capture is none of the graph's nodes, which would forbid a second instance, a clone and a place in another graph. It is allocated beside
 * the capture, keeps its address in every replay, and is held until the graph, all that was instantiated from it and their launches are
 * over: a user object of the graph tells. Then another capture gets it. */
#ifndef FA_RUNTIME_LAUNCH_LEASE_H
#define FA_RUNTIME_LAUNCH_LEASE_H
#include "sim/driver.h"
#include <fagen.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

#define FA_LEASE_LISTS 64
enum { FA_LEASE_CONTEXT, FA_LEASE_STREAM, FA_LEASE_THREAD, FA_LEASE_CAPTURE, FA_LEASE_KEYS };

typedef struct fa_lease {
    atomic_uint_fast64_t key[FA_LEASE_KEYS]; /* changes only while taken; FA_LEASE_CAPTURE 0: of no capture */
    atomic_bool taken;
    CUdeviceptr at;
    size_t bytes; /* 0: it has no memory */
    bool ordered; /* by its stream: of a memory pool */
    bool unclean; /* a launch failed: counters may be left */
    sem_t *gone;  /* posted when the graph is; NULL: nobody tells */
    struct fa_lease *next;
} fa_lease;

static inline uint64_t fa_lease_key(const fa_lease *l, int i)
{
    return atomic_load_explicit(&l->key[i], memory_order_relaxed);
}

typedef struct fa_leases {
    _Atomic(fa_lease *) list[FA_LEASE_LISTS]; /* added to under mutex */
    pthread_mutex_t mutex;
    atomic_size_t held; /* bytes */
    atomic_int streams; /* leases of streams that have memory */
} fa_leases;

/* A workspace of `need` bytes or more, its counters zero, for one call on the stream; the caller's until fa_lease_give(). Where one is
 * there nothing is allocated and no lock taken. Legal under capture. FA_NOMEM names the bytes. */
fa_status fa_lease_take(fa_context *ctx, CUcontext current, CUstream stream, size_t need, fa_lease **out);
/* clean: the launch succeeded, which leaves counters zero. */
void fa_lease_give(fa_lease *l, bool clean);

/* ls is zero. */
void fa_leases_open(fa_leases *ls);
/* Frees all of them, in their CUDA contexts. Nothing waits: their work has ended. */
void fa_leases_close(fa_context *ctx);
#endif
