/* probe: what a chip sustains, by small kernels (templates/probes/probe.cu, probe_wgmma.cu): products, exponentials, reads, a launch. */
#ifndef FA_AUTOTUNE_DEVICE_PROBE_H
#define FA_AUTOTUNE_DEVICE_PROBE_H
#include "runtime/runtime.h"

/* Each kernel first computes something whose result is known: FA_WRONG when it is not. Then it is timed, some two seconds in all. On the
 * simulator nothing is timed: *out is zeros. A chip without wgmma has no wgmma16. Nothing is kept: fa_rates_save does. */
fa_status fa_probe(fa_context *ctx, fa_rates *out);
#endif
