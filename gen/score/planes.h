/* planes: the arrays that forward kernels bring into shared memory in tiles, an element for each query and key of a block. */
#ifndef FA_GEN_SCORE_PLANES_H
#define FA_GEN_SCORE_PLANES_H
#include "ir.h"

#define FA_SCORE_PLANES_MAX 3

typedef struct fa_score_plane {
    int8_t operand, rank; /* its last index goes up by one with the key */
    int8_t row_index;     /* which other one goes up by one with the query; -1: of bytes, of which rows are found one by one */
} fa_score_plane;

typedef struct fa_score_planes {
    int32_t n;
    fa_score_plane of[FA_SCORE_PLANES_MAX];
} fa_score_planes;

/* Numbers of 16 bits that scores read, and the bytes that a mask reads. False: there is no memory. */
bool fa_score_planes_of(fa_score_planes *out, const fa_score_ir *ir);
#endif
