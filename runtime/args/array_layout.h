/* array_layout: how an array of a score program lies in memory. */
#ifndef FA_RUNTIME_ARGS_ARRAY_LAYOUT_H
#define FA_RUNTIME_ARGS_ARRAY_LAYOUT_H
#include "gen/score/planes.h"
#include "gen/source.h"
#include "gen/values.h"

/* Whether TMA takes the stride: a multiple of 16 bytes, above 0 and below 2^40. */
bool fa_map_stride_fits(int64_t bytes);

/* Whether boxes of the array's rows begin where TMA asks: the array, and with every stride but that of columns, at multiples of 16 bytes;
 * columns side by side; strides above 0, or of 0 for all but the rows. */
bool fa_array_aligned(const fa_map *m, const fa_score_given *given);

/* FA_FEATURE_SCORE_ANYWHERE, FA_FEATURE_SCORE_COLUMNS or 0, as the arrays of a program lie. */
int32_t fa_arrays_feature(const fa_score_planes *planes, const fa_score_given *given);
#endif
