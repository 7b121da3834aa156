/* miss: what a launch runs when the table has no plan for its class and bucket, as fa_options.on_miss says. */
#ifndef FA_RUNTIME_PLAN_MISS_H
#define FA_RUNTIME_PLAN_MISS_H
#include "plan.h"

/* The plan that a launch of p (normalized) runs; the table had none. current: the CUDA context that is. */
fa_status fa_miss(fa_context *ctx, const fa_problem *p, CUcontext current, CUstream stream, const fa_plan **out);

/* Whether the plan may run in the place of p's own: its kernel is its own, serves p's class, and no bits are promised that depend on it. */
bool fa_miss_serves(const fa_plan *plan, const fa_problem *p);

/* The plan of the table that runs in the place of p's own: of p's very class before one for rows that start at multiples of less, then of
 * the nearest bucket. NULL: none, or the option is another. Takes no lock. */
const fa_plan *fa_miss_nearest(fa_context *ctx, const fa_problem *p);
#endif
