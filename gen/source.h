/* source: rendered text with all that a launch needs to know about it. */
#ifndef FA_GEN_SOURCE_H
#define FA_GEN_SOURCE_H
#include "values.h"
#include <stddef.h>
#include <stdint.h>

/* What is added to messages with lines of templates, as compilers and the simulator know them: "templates/tiles/softmax.cu:12". */
#define FA_SOURCE_HINT "(templates/ is built into fagen and lies in its source tree; a file of FAGEN_TEMPLATE_DIR goes before one of it)"

#define FA_SOURCE_STEPS 16
#define FA_STEP_MAPS 12  /* of a step */
#define FA_CLUSTER_MAX 8 /* blocks of a cluster that every chip with clusters takes */

/* A tensor map that a kernel takes as a parameter: boxes of cols x rows elements of one head, for loads and stores by TMA. Of an array of
 * the score program boxes have cols of its last index and rows of another, and one of each index besides; its elements have 16 bits. */
typedef struct fa_map {
    int32_t operand;    /* index in the operation's rows */
    int32_t cols, rows; /* of the box, elements */
    int32_t swizzle;    /* span of the shared-memory swizzle, bytes: 0 = none, 32, 64, 128 */
    int32_t boxes;      /* of a row of the tensor, side by side in groups of eight rows: rank 5; 0: rank 4 */
    int32_t together;   /* heads whose rows of a token are one row, of which `cols` counts pieces of 8 bytes; 0: rows are of a head */
    int32_t array;      /* 1 + the number of an operand of the score program, in the place of `operand`; 0: none */
    int32_t rank;       /* indices that it has */
    int32_t row_index;  /* which of them counts rows */
    int32_t col_index;  /* which counts columns: they lie side by side */
} fa_map;

/* One kernel of a source. Its parameters are (Params, map 0, map 1, ...). The grid is one-dimensional:
 *   total  = the product of grid's factors, the first of which runs fastest over the blocks
 *   grid.x = (per_sm ? min(total, per_sm * SMs / cluster) : total) * cluster: fa_step_grid
 * A step whose grid is empty, as one over no keys, is not launched. Neighbouring steps over units are launched in turn for a portion
 * (fa_workspace_portion): the first members of the groups of the first units, their next members, then the next units, until all are
 * done. A unit is a pair of a sequence and a KV head, a member a query head of its group. */
typedef struct fa_step {
    char entry[32];    /* the extern "C" name */
    int32_t threads;   /* per block */
    int32_t smem;      /* dynamic shared memory, bytes */
    fa_product grid;   /* "sq/64 hq b": tiles that a block, or a cluster together, owns */
    int32_t per_sm;    /* > 0: a persistent grid of at most that many blocks per SM; 0: one block per tile */
    int32_t cluster;   /* blocks of a thread block cluster; 1 = none */
    int32_t counter;   /* 1: the kernel takes a word of global memory to count with (fa_values) */
    int32_t pdl;       /* 1: it waits itself for what precedes it in the stream, and may be launched before that has ended */
    int32_t keys_most; /* > 0: a launch with more keys is refused */
    int32_t n_maps;
    fa_map map[FA_STEP_MAPS];
} fa_step;

typedef struct fa_source {
    char *text; /* what a person reads and what is hashed: no #line */
    size_t text_size;
    char *lined;      /* the same with #line directives: what NVRTC compiles */
    uint64_t hash[2]; /* XXH3-128 of text: low, high */
    char name[64];    /* for the compiler's messages, "flash_fwd_mma.cu" */
    int32_t steps;    /* kernels, launched in order on one stream */
    fa_step step[FA_SOURCE_STEPS];
    fa_workspace workspace;
    char params[FA_PARAMS_TEXT]; /* names of the values that its kernels take, the same for every step */
    fa_packing packing;          /* of these */
    int32_t min_regs;            /* the family's estimate of registers per thread */
} fa_source;

void fa_source_free(fa_source *s); /* NULL is fine; leaves zeros */
#endif
