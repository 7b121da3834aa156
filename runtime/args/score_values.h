/* score_values: what a launch gives for the operands of its score program, looked at. */
#ifndef FA_RUNTIME_ARGS_SCORE_VALUES_H
#define FA_RUNTIME_ARGS_SCORE_VALUES_H
#include "gen/values.h"
#include "scores.h"
#include "span.h"

/* What does not depend on the program, and fields that are set without one. */
fa_status fa_score_values_count(const fa_args *args, const fa_score *score);

/* A bit for each operand whose gradient the arguments have an address for. */
int32_t fa_score_values_grads(const fa_args *args, const fa_score *score);

/* The values of kernels, and the bytes that arrays and gradients cover, a span each; *arrays: how many. lengths: those of the call. tensors
 * false: addresses may be NULL and are not looked at. FA_INVALID names the field, its operand and what is accepted. */
fa_status fa_score_values_check(fa_score_given out[FA_SCORE_OPERANDS_MAX], fa_span span[2 * FA_SCORE_OPERANDS_MAX], int *arrays,
                                const fa_args *args, const fa_score *score, const int64_t lengths[FA_SCORE_LENGTHS], bool tensors);
#endif
