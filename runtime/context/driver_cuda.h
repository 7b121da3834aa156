/* driver_cuda: the real driver as a cu_driver table, and the one way a driver's error becomes a status. */
#ifndef FA_RUNTIME_CONTEXT_DRIVER_CUDA_H
#define FA_RUNTIME_CONTEXT_DRIVER_CUDA_H
#include "sim/driver.h"
#include <fagen.h>

#define FA_DRIVER_OLDEST 12040 /* as cuDriverGetVersion counts: CUDA 12.4 */

/* libcuda.so.1, opened once per process and kept. FA_NO_DRIVER names what is missing. cuInit has been called. */
fa_status fa_driver_cuda(const cu_driver **out);

/* FA_OK for CUDA_SUCCESS; FA_NOMEM where memory ran out; else FA_DEVICE: "call: CUDA_ERROR_...: text". */
fa_status fa_driver_check(const cu_driver *d, CUresult r, const char *call);

/* Until fa_driver_restore() the thread may allocate, free and wait for streams beside captures, its own or of others, that do not see it.
 * Else the driver refuses these calls in other modes, and ends the captures: also of what is ordered by another stream. */
fa_status fa_driver_relax(const cu_driver *d, CUstreamCaptureMode *mode);
void fa_driver_restore(const cu_driver *d, CUstreamCaptureMode mode);
#endif
