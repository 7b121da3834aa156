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
static CUresult device_count(int simulator, int *count)
{
    SIM_LOCKED;
    SIM_NEED(count);
    if (!sim_the.initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    *count = sim_the.simulator[simulator].devices;
    return CUDA_SUCCESS;
}
static CUresult device_get(int simulator, CUdevice *device, int ordinal)
{
    SIM_LOCKED;
    SIM_NEED(device);
    if (!sim_the.initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (ordinal < 0 || ordinal >= sim_the.simulator[simulator].devices)
        return CUDA_ERROR_INVALID_DEVICE;
    *device = sim_device_number(&sim_the.simulator[simulator].device[ordinal]);
    return CUDA_SUCCESS;
}

static CUresult device_of(CUdevice n, sim_device **d)
{
    if (!sim_the.initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    *d = sim_device_of(n);
    return *d ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
#define DEVICE(n)                      \
    sim_device *d;                     \
    CUresult found = device_of(n, &d); \
    if (found)                         \
    return found

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
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1}, {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512}, {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 0},
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
        sim_memory_close(&d->memory);
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

/* ---- simulators ---- */

/* The functions whose answer depends on the simulator that is asked, for each of them: a table's functions are not told whose it is. */
/* clang-format off */
#define NUMBERS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define OF(n)                                                                                                           \
    static CUresult count_##n(int *count) { return device_count(n, count); }                                            \
    static CUresult get_##n(CUdevice *device, int ordinal) { return device_get(n, device, ordinal); }                   \
    static CUresult current_##n(CUcontext *c) { return sim_context_current(n, c); }                                     \
    static CUresult current_device_##n(CUdevice *device) { return sim_context_device(n, device); }
NUMBERS(OF)
/* clang-format on */
#undef OF
static const struct {
    __typeof__(cuDeviceGetCount) *count;
    __typeof__(cuDeviceGet) *get;
    __typeof__(cuCtxGetCurrent) *current;
    __typeof__(cuCtxGetDevice) *current_device;
} own[] = {
#define OF(n) { count_##n, get_##n, current_##n, current_device_##n },
    NUMBERS(OF)
#undef OF
};
_Static_assert(sizeof own / sizeof *own == SIM_SIMULATORS, "a row for each");

CUresult sim_cuDeviceGetCount(int *count)
{
    return device_count(0, count);
}
CUresult sim_cuDeviceGet(CUdevice *device, int ordinal)
{
    return device_get(0, device, ordinal);
}
CUresult sim_cuCtxGetCurrent(CUcontext *c)
{
    return sim_context_current(0, c);
}
CUresult sim_cuCtxGetDevice(CUdevice *device)
{
    return sim_context_device(0, device);
}

static cu_driver tables[SIM_SIMULATORS];

static void fill(int n)
{
    tables[n] = (cu_driver){
#define X(f) .f = sim_##f,
        CU_DRIVER_FUNCTIONS(X)
#undef X
            .name = sim_the.simulator[n].name,
        .takes_ptx = 1,
        .detail = sim_report,
    };
    tables[n].cuDeviceGetCount = own[n].count, tables[n].cuDeviceGet = own[n].get;
    tables[n].cuCtxGetCurrent = own[n].current, tables[n].cuCtxGetDevice = own[n].current_device;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, sim_state_forked);
}

/* "sm_80, sm_90a" as a simulator that is not open yet. false: told why not. */
static bool read_archs(sim_simulator *s, const char *archs)
{
    char list[sizeof s->archs], *rest = NULL;
    size_t at = 0;
    if (!archs || strlen(archs) >= sizeof list)
        return sim_tell(CUDA_SUCCESS, "a list of archs is shorter than %zu bytes", sizeof list), false;
    snprintf(list, sizeof list, "%s", archs);
    for (char *word = strtok_r(list, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest)) {
        if (s->devices == SIM_DEVICES)
            return sim_tell(CUDA_SUCCESS, "a simulator has at most %d devices", SIM_DEVICES), false;
        const sim_arch *arch = sim_arch_find(word);
        if (!arch)
            return sim_tell(CUDA_SUCCESS, "%s is not simulated", word), false;
        at += (size_t)snprintf(s->archs + at, sizeof s->archs - at, "%s%s", s->devices ? "," : "", word);
        s->device[s->devices] = (sim_device){ .arch = arch, .ordinal = s->devices };
        s->devices++;
    }
    snprintf(s->name, sizeof s->name, "sim:%s", s->archs);
    return s->devices || (sim_tell(CUDA_SUCCESS, "the list names no arch"), false);
}

const cu_driver *sim_open(const char *archs)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    SIM_LOCKED;
    int n = sim_the.simulators;
    sim_simulator asked = { .devices = 0 };
    if (!read_archs(&asked, archs))
        return NULL;
    for (int k = 0; k < n; k++)
        if (!strcmp(sim_the.simulator[k].archs, asked.archs))
            return &tables[k];
    if (n == SIM_SIMULATORS)
        return sim_tell(CUDA_SUCCESS, "a process has at most %d simulators, which it has", SIM_SIMULATORS), NULL;
    sim_the.simulator[n] = asked;
    for (int k = 0; k < asked.devices; k++) {
        sim_device *d = &sim_the.simulator[n].device[k];
        d->of = &sim_the.simulator[n];
        CUdevice number = sim_device_number(d);
        sim_memory_init(&d->memory, sim_device_space(number), sim_device_space(number + 1), SIM_MEMORY_BYTES);
    }
    if (!n)
        sim_memory_init(&sim_the.variables, sim_device_space(SIM_NOBODY), sim_device_space(SIM_NOBODY + 1), 1ull << 40);
    sim_the.simulators++;
    fill(n);
    return &tables[n];
}

void sim_close(void)
{
    SIM_LOCKED;
    for (CUdevice k = 0; k < SIM_NOBODY; k++)
        if (sim_device_of(k))
            sim_memory_close(&sim_device_of(k)->memory);
    sim_memory_close(&sim_the.variables);
    free(sim_the.handle);
    sim_the.handle = NULL, sim_the.handles = sim_the.handle_cap = 0, sim_the.simulators = 0, sim_the.initialised = false;
    sim_block_close();
}
