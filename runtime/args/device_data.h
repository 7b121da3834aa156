/* device_data: what a call needs right in device memory, lengths, page numbers and the workspace's counters, copied back and looked at.
 * Launches do not look there, since it costs a synchronisation: only on the simulator, and where fa_options.check_device_data asks for it.
 */
#ifndef FA_RUNTIME_ARGS_DEVICE_DATA_H
#define FA_RUNTIME_ARGS_DEVICE_DATA_H
#include "check.h"
#include "runtime/context/context.h"

/* Waits for what is in front on the stream. FA_INVALID names the field, the index, the value and what is accepted. FA_CAPTURE while the
 * stream is captured; nothing is looked at then where the option does not say 1. A context of the device is current. */
fa_status fa_device_data_check(const fa_context *ctx, const fa_call *call, fa_stream stream);

/* The same of counters, all of which are 0 between launches. `wrong`, with the first that is not: FA_INVALID of a workspace that a launch
 * is given, else FA_INTERNAL. */
fa_status fa_device_data_counters(const fa_context *ctx, uint64_t at, size_t bytes, fa_status wrong, fa_stream stream);
#endif
