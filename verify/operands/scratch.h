/* scratch: the workspace of a launch, grown to what the largest so far asked for; and a launch that is waited for. */
#ifndef FA_VERIFY_OPERANDS_SCRATCH_H
#define FA_VERIFY_OPERANDS_SCRATCH_H
#include "runtime/runtime.h"

typedef struct fa_scratch {
    CUdeviceptr at;
    size_t size;
} fa_scratch;

/* Puts a workspace that the launch takes into *args, which it changes in nothing else. plan NULL: what fa_launch chooses. A context of the
 * device is current, here and below. */
fa_status fa_scratch_provide(fa_scratch *s, fa_context *ctx, const fa_plan *plan, fa_args *args);

/* Provides, launches on the default stream and waits. */
fa_status fa_scratch_launch(fa_scratch *s, fa_context *ctx, const fa_plan *plan, fa_args *args);

void fa_scratch_free(fa_scratch *s, fa_context *ctx); /* zeros are fine */
#endif
