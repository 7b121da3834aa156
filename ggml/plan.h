/* plan: which nodes of a graph are fagen's. ggml numbers a graph that comes again, and a number means the same nodes at the same addresses:
 * the last few plans are kept under it. */
#ifndef FA_GGML_PLAN_H
#define FA_GGML_PLAN_H
#include "claim.h"
#include <stdint.h>

typedef struct fa_ggml_ridden fa_ggml_ridden;

/* A node that is fagen's. */
typedef struct fa_ggml_item {
    int32_t node;
    bool by_mask; /* if its mask is a band */
    fa_ggml_claim claim;
} fa_ggml_item;

typedef struct fa_ggml_plan {
    uint64_t number; /* 0: not kept */
    int32_t nodes;   /* of the graph */
    int32_t count;   /* of items; 0: the graph is ggml's whole */
    bool waits;      /* the host waits inside, for a mask of many rows or in a routed product: it is not captured */
    uint64_t used;
    fa_ggml_item *items;
} fa_ggml_plan;

typedef struct fa_ggml_plans fa_ggml_plans;

/* The plan of a graph, which is the backend's until the next call. NULL: no memory. */
const fa_ggml_plan *fa_ggml_plan_of(fa_ggml_ridden *b, const fa_ggml_graph *graph);
void fa_ggml_plans_close(fa_ggml_plans *p); /* NULL is fine */
#endif
