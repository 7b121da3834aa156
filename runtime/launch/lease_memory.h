/* lease_memory: how the memory of a lease comes and goes: ordered by its stream, or held by the graph of a capture. Who calls has taken the
 * lease, and its CUDA context is current. */
#ifndef FA_RUNTIME_LAUNCH_LEASE_MEMORY_H
#define FA_RUNTIME_LAUNCH_LEASE_MEMORY_H
#include "lease.h"
#include <stddef.h>

/* Whether the graph is gone that the memory was captured for. */
bool fa_lease_memory_over(const fa_lease *l);

/* Moves it: of a graph that is gone, to a lease without. */
void fa_lease_memory_move(fa_lease *to, fa_lease *from);

/* `need` bytes at least, and room for further growth beyond `most`, where that can be had. A stream's own goes first, after its work.
 * FA_NOMEM names the bytes. */
fa_status fa_lease_memory_make(fa_context *ctx, fa_lease *l, size_t need, size_t most, CUstream stream);

/* The graph that the stream is captured into tells when it is gone. Where it cannot, the memory is held until fa_destroy(). */
void fa_lease_memory_hold(fa_context *ctx, fa_lease *l, CUstream stream);

/* Zeroes the counters: after the work of the stream; of a capture apart from it, and before this returns. */
fa_status fa_lease_memory_clear(fa_context *ctx, fa_lease *l, CUstream stream);

/* Frees it, if there is any: no work uses it any more; or after the work of its stream. */
fa_status fa_lease_memory_drop(fa_context *ctx, fa_lease *l);
fa_status fa_lease_memory_drop_behind(fa_context *ctx, fa_lease *l, CUstream stream);
#endif
