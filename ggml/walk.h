/* walk: a graph of a hooked backend, part by part: theirs, ours, theirs. */
#ifndef FA_GGML_WALK_H
#define FA_GGML_WALK_H
#include "ride.h"

/* In the place of the backend's graph_compute. */
int32_t fa_ggml_walk(fa_ggml_ridden *b, fa_ggml_graph *graph);
#endif
