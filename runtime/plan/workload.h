/* workload: what a context launched, as lines of a file that `fagen tune --workload` reads. */
#ifndef FA_RUNTIME_PLAN_WORKLOAD_H
#define FA_RUNTIME_PLAN_WORKLOAD_H
#include "runtime/context/environment.h"
#include <fagen.h>
#include <stdbool.h>

/* Where ctx->workload leads: the option, else the variable; NULL where both are unset, or what counts is empty. False: memory ran out. */
bool fa_workload_open(fa_context *ctx, const fa_options *o, const fa_environment *env);

/* Appends a line of JSON for each plan that was launched, all by one write(): {"problem":TEXT,"launches":N,"seconds":S}. TEXT is the point
 * of class and bucket, as --problem takes it; S all its launches together by what was measured or modelled, 0 = not known. Nothing without
 * launches. A failure is a line of the log. */
void fa_workload_write(fa_context *ctx);
void fa_workload_close(fa_context *ctx);
#endif
