/* device: a device's name, its ordinal, and its numbers. */
#include "device.h"
#include "driver_cuda.h"
#include "gen/error.h"
#include "gen/thread.h"
#include "sim/sim.h"
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIMULATOR "sim:" /* before the names of simulated chips */

/* The numbers of an arch that a device knows better than the table. */
static const struct {
    CUdevice_attribute attribute;
    size_t at;
} refined[] = {
    { CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, offsetof(fa_arch, smem_block) },
    { CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, offsetof(fa_arch, smem_sm) },
    { CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, offsetof(fa_arch, smem_reserved) },
    { CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, offsetof(fa_arch, regs_sm) },
    { CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, offsetof(fa_arch, threads_sm) },
    { CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, offsetof(fa_arch, blocks_sm) },
    { CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, offsetof(fa_arch, sm_count) },
};

static void refine(fa_device *d)
{
    int v;
    for (size_t i = 0; i < sizeof refined / sizeof *refined; i++)
        if (d->driver->cuDeviceGetAttribute(&v, refined[i].attribute, d->handle) == CUDA_SUCCESS && v > 0) {
            int32_t w = v;
            memcpy((char *)&d->arch + refined[i].at, &w, sizeof w);
        }
    if (d->driver->cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, d->handle) == CUDA_SUCCESS && v > 0)
        d->arch.l2_bytes = v;
    char name[sizeof d->arch.chip] = "";
    if (d->driver->cuDeviceGetName(name, sizeof name, d->handle) == CUDA_SUCCESS && name[0]) {
        name[sizeof name - 1] = 0;
        memcpy(d->arch.chip, name, sizeof name);
    }
}

bool fa_device_is_simulated(const fa_device *d)
{
    return strncmp(d->driver->name, SIMULATOR, sizeof SIMULATOR - 1) == 0;
}

fa_status fa_device_open_on(fa_device *out, const cu_driver *driver, int ordinal)
{
    fa_device d = { .driver = driver, .ordinal = ordinal };
    int count = 0, major = 0, minor = 0;
    CUcontext current = NULL;
    fa_status st = fa_driver_check(driver, driver->cuInit(0), "cuInit");
    if (st == FA_OK)
        st = fa_driver_check(driver, driver->cuDeviceGetCount(&count), "cuDeviceGetCount");
    if (st != FA_OK || count < 1)
        return fa_fail(FA_NO_DRIVER, "%s: %s", driver->name, st != FA_OK ? fa_last_error() : "no device");
    if (ordinal < 0 && driver->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current) {
        st = fa_driver_check(driver, driver->cuCtxGetDevice(&d.handle), "cuCtxGetDevice");
        /* the ordinal is only for messages: a handle does not tell it */
        for (int i = 0; st == FA_OK && i < count; i++) {
            CUdevice h;
            if (driver->cuDeviceGet(&h, i) == CUDA_SUCCESS && h == d.handle)
                d.ordinal = i;
        }
    } else {
        d.ordinal = ordinal < 0 ? 0 : ordinal;
        if (d.ordinal >= count)
            return fa_fail(FA_NO_DRIVER, "device: %s:%d; accepted: 0 to %d", fa_device_is_simulated(&d) ? driver->name : "cuda", d.ordinal,
                           count - 1);
        st = fa_driver_check(driver, driver->cuDeviceGet(&d.handle, d.ordinal), "cuDeviceGet");
    }
    if (st == FA_OK)
        st = fa_driver_check(driver, driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d.handle),
                             "cuDeviceGetAttribute");
    if (st == FA_OK)
        st = fa_driver_check(driver, driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d.handle),
                             "cuDeviceGetAttribute");
    if (st != FA_OK)
        return st;
    char device[sizeof d.arch.chip] = "";
    if (driver->cuDeviceGetName(device, sizeof device, d.handle) != CUDA_SUCCESS)
        device[0] = 0;
    device[sizeof device - 1] = 0;
    const fa_arch *row = fa_arch_of_device(major, minor, device);
    if (!row)
        return fa_fail(FA_UNSUPPORTED, "device: %s %d has compute capability %d.%d; accepted: %s", driver->name, d.ordinal, major, minor,
                       fa_arch_names());
    d.arch = *row;
    refine(&d);
    *out = d;
    return FA_OK;
}

/* A number alone; -1: it is none. */
static int ordinal_of(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && !*end && n <= INT_MAX ? (int)n : -1;
}

static void settle_simulators(void)
{
    sim_keep_by(fa_thread_keep);
    fa_unload_call(sim_close);
}

/* The list with the architecture in place of each product that it names, "h100,sm_80" as "sm_90a,sm_80". False where there is no room. */
static bool take_products(char *out, size_t room, const char *list, size_t n)
{
    size_t at = 0;
    for (const char *s = list, *end = list + n; s <= end;) {
        char name[64];
        size_t len = strcspn(s, ",:");
        len = len < (size_t)(end - s) ? len : (size_t)(end - s);
        snprintf(name, sizeof name, "%.*s", len < sizeof name ? (int)len : 0, s);
        const fa_arch *a = strncmp(name, "sm_", 3) ? fa_arch_find(name) : NULL;
        int more = a ? snprintf(out + at, room - at, "%s%s", at ? "," : "", a->name)
                     : snprintf(out + at, room - at, "%s%.*s", at ? "," : "", (int)len, s);
        at += (size_t)more;
        if (at >= room)
            return false;
        s += len + 1;
    }
    return true;
}

/* "sim:sm_80,sm_90a:1": device 1 of the simulator of that list. Products are their architecture. */
static fa_status open_simulated(fa_device *out, const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *list = name + sizeof SIMULATOR - 1, *colon = strchr(list, ':');
    int ordinal = colon ? ordinal_of(colon + 1) : -1;
    char archs[256];
    pthread_once(&once, settle_simulators);
    size_t n = colon ? (size_t)(colon - list) : strlen(list);
    if (colon && ordinal < 0)
        return fa_fail(FA_INVALID, "device: \"%s\"; accepted after a list of archs: \":\" and the number of one of its devices", name);
    bool fits = take_products(archs, sizeof archs, list, n);
    const cu_driver *driver = fits ? sim_open(archs) : NULL;
    if (!driver)
        return fa_fail(FA_INVALID, "device: \"%.300s\"%s%s; accepted after sim: are %s, products such as h100, or a list of them", name,
                       fits ? ": " : "", fits ? sim_report() : "", fa_arch_names());
    return fa_device_open_on(out, driver, ordinal);
}

fa_status fa_device_open(fa_device *out, const char *name)
{
    const cu_driver *driver = NULL;
    int ordinal = -1;
    if (name && strncmp(name, SIMULATOR, sizeof SIMULATOR - 1) == 0)
        return open_simulated(out, name);
    if (name && strncmp(name, "cuda:", 5) == 0)
        ordinal = ordinal_of(name + 5);
    if (name && name[0] && strcmp(name, "cuda") != 0 && ordinal < 0)
        return fa_fail(FA_INVALID, "device: \"%s\"; accepted: cuda, cuda:N, sim:ARCH, sim:ARCH,ARCH:N", name);
    fa_status st = fa_driver_cuda(&driver);
    return st == FA_OK ? fa_device_open_on(out, driver, ordinal) : st;
}
