/* rider: edits the entries of ggml's CUDA devices in place, so that nodes FLASH_ATTN_EXT that fagen claims are computed by fagen's kernels,
 * on the stream and in the order of ggml's. All other work, memory and scheduling stay ggml's.
 *
 *     supports_op     theirs, or a claim
 *     init_backend    theirs; of the backend that it made graph_compute and free are replaced
 *     graph_compute   nodes between claims go to theirs, as a part of the graph
 *
 * Tiers, of a backend: 1: work runs on a stream of our own, between two events. 2: on ggml-cuda's stream, where its context is as known.
 * 3: as 2, and a graph that comes a second time under its number becomes one graph of CUDA's, replayed from then on. */
#ifndef FA_GGML_RIDER_H
#define FA_GGML_RIDER_H
#include "engine.h"
#include "settings.h"

typedef struct fa_ggml_rider_options {
    fa_ggml_find *find; /* of ggml's functions */
    void *user;
    fa_ggml_settings settings;
    fa_context *ctx; /* of all devices, in the place of contexts of its own; tensors lie in its device's memory. NULL: none */
} fa_ggml_rider_options;

/* Hooks what there is, once in the process: a later call gives what the first gave. The registry that ggml is shown, without devices but
 * the test device; NULL: this ggml is unknown, or FAGEN_GGML is wrong, a line is told, and nothing was touched. */
fa_ggml_reg *fa_ggml_rider_load(const fa_ggml_rider_options *o);

/* Takes all hooks back, as far as the entries are ours, and forgets everything: of tests. */
void fa_ggml_rider_unload(void);

/* What was done, of all backends that there are. */
typedef struct fa_ggml_rider_counts {
    fa_ggml_counts nodes;
    int64_t devices, backends, plans, graphs, parts, failures, captures, replays;
    int tier; /* of the last graph */
} fa_ggml_rider_counts;
fa_ggml_rider_counts fa_ggml_rider_count(void);
#endif
