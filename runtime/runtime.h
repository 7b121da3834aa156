/* runtime: what the rooms above (autotune, cli) and the tests may use of this one beside fagen.h. */
#ifndef FA_RUNTIME_RUNTIME_H
#define FA_RUNTIME_RUNTIME_H
#include "runtime/build/build.h"
#include "runtime/build/compiler.h"
#include "runtime/choose/select.h"
#include "runtime/context/context.h"
#include "runtime/context/driver_cuda.h"
#include "runtime/launch/launch.h"
#include "runtime/plan/background.h"
#include "runtime/plan/counter.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/table.h"

/* fa_create() on a given driver table; opt->device and FAGEN_DEVICE are not read. ordinal -1: as for "cuda". */
fa_status fa_create_on(fa_context **out, const fa_options *opt, const cu_driver *driver, int ordinal);
#endif
