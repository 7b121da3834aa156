/* array_layout: how an array of a score program lies in memory, and which boxes of it TMA brings. */
#ifndef FA_RUNTIME_ARGS_ARRAY_LAYOUT_H
#define FA_RUNTIME_ARGS_ARRAY_LAYOUT_H
#include "gen/score/planes.h"
#include "gen/source.h"
#include "gen/values.h"

/* Whether boxes of the array's rows begin where TMA asks: the array, and with every stride but that of columns, at multiples of 16 bytes;
 * columns side by side; strides above 0, or of 0 for all but the rows. */
bool fa_array_aligned(const fa_map *m, const fa_score_given *given);

/* A map of rank 3 of an array whose rows begin anywhere: columns; pieces of 16 bytes, by which a row is found; groups of eight rows. All
 * rows of a box are eight apart, so they lie alike within 16 bytes. The last group ends with the last row. Columns end with `width`:
 * for a row's boxes it is the first place from the row's end on that lies within 16 bytes as the end of the array does, so that nothing past
 * the array is read. What kernels compute of it stands in templates/wgmma/hopper_boxes.cu. */
typedef struct fa_eighths {
    uint64_t base; /* a multiple of 16, before the array: no piece has a number below 0 */
    int64_t width, pieces, groups, step; /* step: columns from one row to the next */
} fa_eighths;

/* False: no such map holds it. */
bool fa_array_eighths(fa_eighths *out, const fa_map *m, const fa_score_given *given);

/* FA_FEATURE_SCORE_ANYWHERE, FA_FEATURE_SCORE_COLUMNS or 0, as the arrays of a program lie. */
int32_t fa_arrays_feature(const fa_score_planes *planes, const fa_score_given *given);
#endif
