/* nvml: NVIDIA's management library, opened at run time where it is there: clocks, temperature, what else computes. Best effort: what
 * it does not tell is 0, and a machine without it is tuned all the same. */
#ifndef FA_AUTOTUNE_DEVICE_NVML_H
#define FA_AUTOTUNE_DEVICE_NVML_H
#include "telemetry.h"
#include <stddef.h>

typedef struct fa_nvml fa_nvml;

#define FA_NVML_LIBRARY "libnvidia-ml.so.1"

/* path NULL = FA_NVML_LIBRARY. bus: of the device, as cuDeviceGetPCIBusId tells it. NULL when the library, a function it needs or the
 * device is not there; why (may be NULL) gets the reason. */
fa_nvml *fa_nvml_open(const char *path, const char *bus, char *why, size_t n);
void fa_nvml_close(fa_nvml *m); /* NULL is fine */

/* Processes of fagen on the device beside this one: a child that tries candidates. */
void fa_nvml_expect(fa_nvml *m, const int *pids, int n);
/* NULL gives zeros. In a container the library may name processes by the numbers of the host: then it is only counted whether there are
 * more of them than are of fagen. */
fa_telemetry fa_nvml_read(fa_nvml *m);
#endif
