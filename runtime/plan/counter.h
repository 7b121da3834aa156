/* counter: the words of global memory that persistent kernels count their tiles with, one for each launch.
 *
 * A word is 0 before the kernel and the kernel leaves it 0, so nothing ever clears it again. Two launches must not run at the same
 * time with one word. There are FA_COUNTER_WORDS for launches on streams, handed out in turn: a launch meets the word of another
 * only when as many launches were made in between, and that one has still not ended. Launches that are captured keep theirs, out of
 * as many others, for ever: a graph may run at any time. Graphs that were instantiated twice from one capture, or copied, share
 * the words, as they share O: they must not run at the same time.
 *
 * Device memory belongs to one CUDA context: there is one set of words for each in which a kernel that counts was prepared. */
#ifndef FA_RUNTIME_PLAN_COUNTER_H
#define FA_RUNTIME_PLAN_COUNTER_H
#include "sim/driver.h"
#include <fagen.h>
#include <stdatomic.h>

#define FA_COUNTER_WORDS (1u << 16)

typedef struct fa_counters {
    CUcontext context;
    CUdeviceptr words;    /* FA_COUNTER_WORDS in turn, then FA_COUNTER_WORDS for captures */
    atomic_uint next;     /* of the next launch; wraps */
    atomic_uint captured; /* words given away for ever; may pass the last */
    struct fa_counters *older;
} fa_counters;

/* Makes the words of the CUDA context that is current, which is `current`, unless they are there. Not legal under capture. */
fa_status fa_counters_ready(fa_context *ctx, CUcontext current);

/* The word of one launch on stream. No lock and no allocation where the words are there, else FA_CAPTURE under capture, or as
 * fa_counters_ready. FA_CAPTURE too when no word for captures is left. */
fa_status fa_counter_take(fa_context *ctx, CUcontext current, CUstream stream, uint64_t *word);

/* Frees all of them, in their contexts. */
void fa_counters_close(fa_context *ctx);
#endif
