/* runtime: what the rooms above (autotune, cli) and the tests may use of this one beside fagen.h. */
#ifndef FA_RUNTIME_RUNTIME_H
#define FA_RUNTIME_RUNTIME_H
#include "build.h"
#include "compiler.h"
#include "context.h"
#include "driver_cuda.h"
#include "plan.h"
#include "select.h"

/* fa_create() on a given driver table; opt->device and FAGEN_DEVICE are not read. ordinal -1: as for "cuda". */
fa_status fa_create_on(fa_context **out, const fa_options *opt, const cu_driver *driver, int ordinal);

/* fa_select_jit() then answers for another chip: its numbers (NULL = they stay) and its name, whose records and shipped winners are read
 * (NULL = that of the numbers). For contexts that launch nothing. */
void fa_context_override_arch(fa_context *ctx, const fa_arch *arch, const char *chip);

/* All borrowed, valid until fa_destroy(). */
const cu_driver *fa_context_driver(const fa_context *ctx);
const fa_device *fa_context_device(const fa_context *ctx);
const fa_arch *fa_context_arch(const fa_context *ctx); /* refined: chip is the device's name */
fa_store *fa_context_store(const fa_context *ctx);
fa_compiler *fa_context_compiler(const fa_context *ctx);
const char *fa_context_template_dir(const fa_context *ctx); /* NULL = the embedded ones */
int32_t fa_context_budget(const fa_context *ctx);           /* shared memory per block, bytes */
bool fa_context_bundle_only(const fa_context *ctx);         /* options.bundle_only: nothing is rendered or compiled */
const fa_log *fa_context_log(const fa_context *ctx);
#endif
