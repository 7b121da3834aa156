/* engine: computes claimed nodes on a device. A stream of it is one of ggml's: work is put there in the order of the nodes.
 *
 * Q is rounded into a scratch of the stream, then fa_launch() reads that, K and V where they lie, and writes the result. Of a mask with
 * many rows a kernel looks, once in a graph, whether it is a band: then the launch takes fagen's own mask, and reads none. */
#ifndef FA_GGML_ENGINE_H
#define FA_GGML_ENGINE_H
#include "claim.h"

#define FA_GGML_MASKS (1 << 20) /* bytes of device memory of a stream for slopes, and rows and tiles of masks */
#define FA_GGML_CAST (4 << 20)  /* and for rows of Q in 16 bits, so many of a node at a time as find room */
#define FA_GGML_MEMORY 16       /* MiB with fagen's workspace beside these, at most, where nothing else is said */
#define FA_GGML_HEADS 1024      /* that may have slopes */
#define FA_GGML_LOOK 64         /* rows from which a mask is looked at */

typedef struct fa_ggml_engine fa_ggml_engine;
typedef struct fa_ggml_stream fa_ggml_stream;

/* device: as fa_options.device has it. memory: MiB of a stream at most; 0: FA_GGML_MEMORY. FA_NO_DRIVER and what fa_create() has.
 * on_miss: FA_MISS_COMPILE, where a node waits for its kernel, so that a result's bits do not depend on how fast that was compiled; or
 * FA_MISS_NEAREST. */
fa_status fa_ggml_engine_open(fa_ggml_engine **out, const char *device, int32_t memory, fa_on_miss on_miss, fa_log_fn log);
/* On a context of the caller's, which outlives it, and with its on_miss. */
fa_status fa_ggml_engine_open_on(fa_ggml_engine **out, fa_context *ctx, int32_t memory);
void fa_ggml_engine_close(fa_ggml_engine *e); /* NULL is fine; its streams are closed */
fa_context *fa_ggml_engine_context(const fa_ggml_engine *e);
/* Compiles the kernels of kernels.cu, or loads them: what fails for want of NVRTC fails here. */
fa_status fa_ggml_engine_ready(fa_ggml_engine *e);

/* Whether a kernel computes the claim's class; else why. Nothing is compiled, and an answer is kept. Thread-safe. */
bool fa_ggml_engine_takes(fa_ggml_engine *e, const fa_ggml_claim *c, char *why, size_t n);

/* Whether K and V of few bits find room in 16 bits, those of so many KV heads: by their bytes. memory as in fa_ggml_engine_open(). */
bool fa_ggml_unpacks(int32_t memory, const fa_ggml_claim *c, int32_t heads);
bool fa_ggml_engine_unpacks(const fa_ggml_engine *e, const fa_ggml_claim *c, int32_t heads);

/* Compiles the claim's kernel, or loads it. */
fa_status fa_ggml_engine_prepare(fa_ggml_engine *e, const fa_ggml_claim *c);

fa_status fa_ggml_stream_open(fa_ggml_stream **out, fa_ggml_engine *e);
void fa_ggml_stream_close(fa_ggml_stream *s); /* NULL is fine; its work is waited for */

/* A graph begins: what was known of masks is not true any more. */
void fa_ggml_stream_begin(fa_ggml_stream *s);

/* Whether a mask of FA_GGML_LOOK rows or more is a band: looks at it, on the stream, and waits. *known false: there are fewer rows, or no
 * room. */
fa_status fa_ggml_stream_look(fa_ggml_stream *s, const fa_ggml_claim *c, const void *id, void *at, bool *known, bool *band);

/* Puts a claimed node on the driver's stream `at`. id: tells its mask from others of the graph. captured: nothing may be waited for. */
fa_status fa_ggml_stream_run(fa_ggml_stream *s, const fa_ggml_claim *c, const void *id, void *at, bool captured);

/* Whether a run asked for what there is not, such as more device memory, or a kernel while the stream is captured: nothing is broken, and
 * that node alone is ggml's. */
static inline bool fa_ggml_refused(fa_status st)
{
    return st == FA_UNSUPPORTED || st == FA_CAPTURE;
}

/* What was done since the stream was opened, for reports and tests. */
typedef struct fa_ggml_counts {
    int64_t nodes, launches, casts, looks, bands;
    int64_t bytes; /* of device memory */
} fa_ggml_counts;
fa_ggml_counts fa_ggml_stream_counts(const fa_ggml_stream *s);
#endif
