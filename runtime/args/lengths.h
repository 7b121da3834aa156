/* lengths: the arguments of a launch that say how sequences lie: lengths in device memory, packed rows, pages. What is on the device is not
 * looked at. */
#ifndef FA_RUNTIME_ARGS_LENGTHS_H
#define FA_RUNTIME_ARGS_LENGTHS_H
#include "gen/values.h"

/* FA_INVALID names the field at fault. */
fa_status fa_lengths_check(const fa_args *a);

/* Of checked arguments: fa_problem.page; elements from one sequence's row of the page table to the next, 0 where one row is that of all;
 * the dimensions of the tensors. */
int32_t fa_lengths_page(const fa_args *a);
int32_t fa_lengths_table_stride(const fa_args *a);
void fa_lengths_sizes(fa_sizes *out, const fa_args *a);
#endif
