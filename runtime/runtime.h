/* runtime: what the rooms above (autotune, cli) and the tests may use of this one beside fagen.h. */
#ifndef FA_RUNTIME_RUNTIME_H
#define FA_RUNTIME_RUNTIME_H
#include "background.h"
#include "build.h"
#include "compiler.h"
#include "context.h"
#include "counter.h"
#include "driver_cuda.h"
#include "plan.h"
#include "select.h"
#include "table.h"

/* fa_create() on a given driver table; opt->device and FAGEN_DEVICE are not read. ordinal -1: as for "cuda". */
fa_status fa_create_on(fa_context **out, const fa_options *opt, const cu_driver *driver, int ordinal);
#endif
