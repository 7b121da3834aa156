/* measure: how long a launch takes on the device: random tensors of a problem, several sets of them in turn so that the L2 is
 * cold, events around as many launches as a sample needs. */
#ifndef FA_AUTOTUNE_DEVICE_MEASURE_H
#define FA_AUTOTUNE_DEVICE_MEASURE_H
#include "runtime/runtime.h"
#include "samples.h"
#include "verify/operands/sequences.h"

typedef struct fa_bench fa_bench;

/* p: normalized, its shape filled. Packed tensors, N(0, 1); FA_MASK_WINDOW gets problem.window keys, or FA_MODEL_WINDOW, to the left.
 * lengths: as fa_ragged_of has them. */
fa_status fa_bench_open(fa_bench **out, fa_context *ctx, const fa_problem *p, int32_t lengths);
/* The sequences that are measured. To be closed. */
fa_status fa_bench_sequences(const fa_bench *b, fa_sequences *out);
void fa_bench_close(fa_bench *b); /* NULL is fine */

/* Adds one sample of at least 200 us to t. *launches: how many a sample of this plan takes; 0 on the first call, kept by the
 * caller. The first call of a bench warms the device up to a steady clock with this plan. */
fa_status fa_bench_sample(fa_bench *b, const fa_plan *plan, int *launches, fa_samples *t);

/* The same with a warm L2: every launch has the tensors of the one before. */
fa_status fa_bench_sample_warm(fa_bench *b, const fa_plan *plan, int *launches, fa_samples *t);

/* Opens, takes n samples, closes. plan NULL: what fa_launch chooses. */
fa_status fa_measure(fa_context *ctx, const fa_problem *p, const fa_plan *plan, int n, fa_samples *t);
#endif
