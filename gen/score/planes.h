/* planes: the arrays that forward kernels may bring into shared memory in tiles, an element for each query and key of a block: where these
 * lie is of their problem's class. Found in the program as it was read, so that what launches alone finds them, too. */
#ifndef FA_GEN_SCORE_PLANES_H
#define FA_GEN_SCORE_PLANES_H
#include "ir.h"

typedef struct fa_score_plane {
    int8_t operand, rank; /* its last index goes up by one with the key */
    int8_t row_index;     /* which other one goes up by one with the query; -1: of bytes, of which rows are found one by one */
    int8_t bytes;         /* of an element */
} fa_score_plane;

typedef struct fa_score_planes {
    int32_t n;
    fa_score_plane of[FA_SCORE_OPERANDS_MAX];
} fa_score_planes;

/* Numbers that the score reads, or the bytes that the mask of a program without one reads. False: there is no memory. */
bool fa_score_planes_of(fa_score_planes *out, const fa_score_ir *ir);
#endif
