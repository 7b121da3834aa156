/* launch: one plan, whatever the table says. fa_launch() and the rest that launch.c has are in fagen.h. */
#ifndef FA_RUNTIME_LAUNCH_LAUNCH_H
#define FA_RUNTIME_LAUNCH_LAUNCH_H
#include "runtime/plan/plan.h"

/* Launches the plan for args of its class: how a candidate is verified and timed. No allocation,
 * no synchronisation. FA_INVALID when args are of another class (dtype, d, dv, mask, o_dtype), or aligned to less. */
fa_status fa_plan_launch(fa_context *ctx, const fa_plan *plan, const fa_args *args, fa_stream stream);

/* Workspace that args need with the plan, in bytes. */
fa_status fa_plan_workspace(fa_context *ctx, const fa_plan *plan, const fa_args *args, size_t *bytes);
#endif
