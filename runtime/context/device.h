/* device: which device a context drives, and what it offers. */
#ifndef FA_RUNTIME_CONTEXT_DEVICE_H
#define FA_RUNTIME_CONTEXT_DEVICE_H
#include "gen/arch.h"
#include "sim/driver.h"
#include <fagen.h>
#include <stdbool.h>

typedef struct fa_device {
    const cu_driver *driver;
    CUdevice handle;
    int ordinal;
    fa_arch arch; /* the table's row, refined by the device's own numbers; chip is the device's name */
} fa_device;

/* name: "cuda", "cuda:N", "sim:ARCH[,ARCH...][:N]"; NULL or "" = "cuda". Opens the driver. FA_INVALID for any other name. */
fa_status fa_device_open(fa_device *out, const char *name);

/* The same on a driver that is there. ordinal -1: the current context's device, else device 0. */
fa_status fa_device_open_on(fa_device *out, const cu_driver *driver, int ordinal);

/* It is the CPU simulator's: its driver has the name by which it is opened, "sim:...". */
bool fa_device_is_simulated(const fa_device *d);
#endif
