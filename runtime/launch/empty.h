/* empty: launches without a row of an output. */
#ifndef FA_RUNTIME_LAUNCH_EMPTY_H
#define FA_RUNTIME_LAUNCH_EMPTY_H
#include "runtime/args/check.h"

/* Zeros to the gradients of operands that such a call asks for: no pair adds to one. */
fa_status fa_empty_launch(fa_context *ctx, const fa_call *call, fa_stream stream);
#endif
