/* source: rendered text with all that a launch needs to know about it. */
#ifndef FA_GEN_SOURCE_H
#define FA_GEN_SOURCE_H
#include <stddef.h>
#include <stdint.h>

#define FA_SOURCE_STEPS 4

/* One kernel of a source. The grid is one-dimensional:
 *   tiles  = (br ? ceil(rows / br) : 1) * (bc ? ceil(sk / bc) : 1),   rows = pack ? sq * hq / hkv : sq
 *   grid.x = tiles * (pack ? hkv : hq) * b */
typedef struct fa_step {
    char entry[32];     /* the extern "C" name */
    int32_t threads;    /* per block */
    int32_t smem;       /* dynamic shared memory, bytes */
    int32_t br, bc;     /* rows and columns of the tile a block owns; 0 = all of them */
    int32_t pack;       /* 1: the query heads of a group share rows */
} fa_step;

typedef struct fa_source {
    char *text;             /* what a person reads and what is hashed: no #line */
    size_t text_size;
    char *lined;            /* the same with #line directives: what NVRTC compiles */
    size_t lined_size;
    uint64_t hash[2];       /* XXH3-128 of text: low, high */
    char name[64];          /* for the compiler's messages, "flash_fwd_mma.cu" */
    int32_t steps;          /* kernels, launched in order on one stream */
    fa_step step[FA_SOURCE_STEPS];
    int32_t score_bytes;    /* workspace = score_bytes * b * hq * sq * sk; 0 = none */
    int32_t min_regs;       /* the family's estimate of registers per thread */
} fa_source;

void fa_source_free(fa_source *s); /* NULL is fine; leaves zeros */
#endif
