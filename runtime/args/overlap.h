/* overlap: whether two tensors that lie in the same memory share a byte, or lie between each other's rows, as slices of a packed QKV do. */
#ifndef FA_RUNTIME_ARGS_OVERLAP_H
#define FA_RUNTIME_ARGS_OVERLAP_H
#include "span.h"

/* Of two placed spans whose [lo, hi) meet. Exact for the strides of slices, transposes and padded rows, at a cost of some tens of
 * nanoseconds. Strides that follow no common pattern are looked at for a bounded time: what is not decided by then counts as shared. */
bool fa_overlap(const fa_span *a, const fa_span *b);
#endif
