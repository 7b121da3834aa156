/* driver: devices, errors, and the table itself. */
#include "state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ---- */

/* clang-format off */
#define ERRORS(X)                                                                                                         \
    X(CUDA_SUCCESS, "no error") X(CUDA_ERROR_INVALID_VALUE, "invalid argument") X(CUDA_ERROR_OUT_OF_MEMORY, "out of memory") \
    X(CUDA_ERROR_NOT_INITIALIZED, "initialization error") X(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal")          \
    X(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid") X(CUDA_ERROR_INVALID_CONTEXT, "invalid device context") \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device")                           \
    X(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed") X(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle")     \
    X(CUDA_ERROR_NOT_FOUND, "named symbol not found") X(CUDA_ERROR_NOT_READY, "device not ready")                         \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered")                                             \
    X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch")                                      \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated") X(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address") \
    X(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure") X(CUDA_ERROR_NOT_SUPPORTED, "operation not supported")      \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing")                          \
    X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture")                   \
    X(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state") X(CUDA_ERROR_UNKNOWN, "unknown error")
/* clang-format on */

static const struct {
    CUresult code;
    const char *name, *text;
} errors[] = {
#define X(c, t) { c, #c, t },
    ERRORS(X)
#undef X
};
static CUresult error_word(CUresult e, const char **to, bool name)
{
    SIM_NEED(to);
    *to = NULL;
    for (size_t k = 0; k < sizeof errors / sizeof *errors; k++)
        if (errors[k].code == e)
            *to = name ? errors[k].name : errors[k].text;
    return *to ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult sim_cuGetErrorName(CUresult e, const char **to)
{
    return error_word(e, to, true);
}
CUresult sim_cuGetErrorString(CUresult e, const char **to)
{
    return error_word(e, to, false);
}

/* ---- devices ---- */

CUresult sim_cuInit(unsigned flags)
{
    SIM_LOCKED;
    SIM_NEED(!flags);
    uint8_t outside[SIM_CHECKS];
    char error[512];
    if (!sim_report_environment(outside, error))
        return sim_tell(CUDA_ERROR_INVALID_VALUE, "%s", error);
    sim_the.initialised = true;
    return CUDA_SUCCESS;
}
CUresult sim_cuDriverGetVersion(int *version)
{
    SIM_NEED(version);
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}
CUresult sim_cuDeviceGetCount(int *count)
{
    SIM_LOCKED;
    SIM_NEED(count);
    if (!sim_the.initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    *count = sim_the.devices;
    return CUDA_SUCCESS;
}
static CUresult device_of(CUdevice n, sim_device **d)
{
    if (!sim_the.initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (n < 0 || n >= sim_the.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    *d = &sim_the.device[n];
    return CUDA_SUCCESS;
}
#define DEVICE(n)                      \
    sim_device *d;                     \
    CUresult found = device_of(n, &d); \
    if (found)                         \
    return found

CUresult sim_cuDeviceGet(CUdevice *device, int ordinal)
{
    SIM_LOCKED;
    SIM_NEED(device);
    DEVICE(ordinal);
    *device = d->ordinal;
    return CUDA_SUCCESS;
}
CUresult sim_cuDeviceGetName(char *name, int len, CUdevice dev)
{
    SIM_LOCKED;
    SIM_NEED(name && len > 0);
    DEVICE(dev);
    snprintf(name, (size_t)len, "Simulated %s", d->arch->name);
    return CUDA_SUCCESS;
}
CUresult sim_cuDeviceTotalMem(size_t *bytes, CUdevice dev)
{
    SIM_LOCKED;
    SIM_NEED(bytes);
    DEVICE(dev);
    *bytes = d->memory.limit;
    return CUDA_SUCCESS;
}
CUresult sim_cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
    SIM_LOCKED;
    SIM_NEED(uuid);
    DEVICE(dev);
    memset(uuid, 0, sizeof *uuid);
    snprintf(uuid->bytes, sizeof uuid->bytes, "sim%d:%s", d->ordinal, d->arch->name);
    return CUDA_SUCCESS;
}
CUresult sim_cuDeviceGetPCIBusId(char *id, int len, CUdevice dev)
{
    SIM_LOCKED;
    SIM_NEED(id && len > 0);
    DEVICE(dev);
    snprintf(id, (size_t)len, "0000:%02x:00.0", d->ordinal);
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice dev)
{
    SIM_LOCKED;
    SIM_NEED(value);
    DEVICE(dev);
    const sim_arch *a = d->arch;
    /* clang-format off */
    const struct { CUdevice_attribute attribute; int value; } rows[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, a->major}, {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, a->minor},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, a->sms}, {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32}, {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024}, {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024}, {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647}, {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535}, {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 * 1024}, {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, a->shared_per_block},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, a->shared_per_sm}, {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536}, {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, a->threads_per_sm}, {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, a->blocks_per_sm},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, a->l2}, {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, a->clock_khz}, {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, a->memory_khz},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, a->bus_bits}, {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
        {CU_DEVICE_ATTRIBUTE_INTEGRATED, 0}, {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1}, {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1}, {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0}, {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, d->ordinal},
        {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0}, {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0}, {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0},
        {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0}, {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, a->major >= 9},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0}, {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512}, {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 0},
        {CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, 0}, {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 0},
    };
    /* clang-format on */
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (rows[k].attribute == attribute)
            return *value = rows[k].value, CUDA_SUCCESS;
    return CUDA_ERROR_INVALID_VALUE;
}

/* ---- contexts ---- */

CUresult sim_cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice dev)
{
    SIM_LOCKED;
    SIM_NEED(c);
    DEVICE(dev);
    d->retained++;
    *c = (CUcontext)(void *)d;
    return CUDA_SUCCESS;
}
CUresult sim_cuDevicePrimaryCtxRelease(CUdevice dev)
{
    SIM_LOCKED;
    DEVICE(dev);
    if (!d->retained)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!--d->retained)
        while (d->memory.n)
            sim_memory_free(&d->memory, d->memory.alloc[0]->base);
    return CUDA_SUCCESS;
}

/* ---- options and counters ---- */

void sim_set_options(const sim_options *o)
{
    SIM_LOCKED;
    sim_the.options = o ? *o : (sim_options){ 0 };
}
void sim_get_options(sim_options *o)
{
    SIM_LOCKED;
    if (o)
        *o = sim_the.options;
}
void sim_counters_reset(void)
{
    SIM_LOCKED;
    memset(&sim_the.counters, 0, sizeof sim_the.counters);
}
void sim_counters_get(sim_counters *out)
{
    SIM_LOCKED;
    if (out)
        *out = sim_the.counters;
}

static const cu_driver table = {
#define X(f) .f = sim_##f,
    CU_DRIVER_FUNCTIONS(X)
#undef X
        .name = sim_the.name,
    .takes_ptx = 1,
    .detail = sim_report,
};

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, sim_state_forked);
}

const cu_driver *sim_open(const char *archs)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    SIM_LOCKED;
    const sim_arch *arch[SIM_DEVICES];
    char list[256], *rest = NULL;
    int n = 0;
    if (!archs || strlen(archs) >= sizeof list)
        return NULL;
    if (sim_the.opened)
        return strcmp(sim_the.archs, archs) ? NULL : &table;
    snprintf(list, sizeof list, "%s", archs);
    for (char *s = strtok_r(list, ", ", &rest); s; s = strtok_r(NULL, ", ", &rest))
        if (n == SIM_DEVICES || !(arch[n++] = sim_arch_find(s)))
            return NULL;
    if (!n)
        return NULL;
    for (int k = 0; k < n; k++) {
        sim_the.device[k] = (sim_device){ .arch = arch[k], .ordinal = k };
        sim_memory_init(&sim_the.device[k].memory, (uint64_t)(k + 1) << 44, (uint64_t)(k + 2) << 44, SIM_MEMORY_BYTES);
    }
    sim_memory_init(&sim_the.variables, (uint64_t)(SIM_DEVICES + 1) << 44, (uint64_t)(SIM_DEVICES + 2) << 44, 1ull << 40);
    sim_the.devices = n;
    snprintf(sim_the.archs, sizeof sim_the.archs, "%s", archs);
    snprintf(sim_the.name, sizeof sim_the.name, "sim:%s", archs);
    sim_the.opened = true;
    return &table;
}
