/* fake_driver: see the header. */
#include "fake_parts.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(f) #f,
static const char *const names[] = { CU_DRIVER_FUNCTIONS(TEXT) };
#undef TEXT

static atomic_long calls[id_count];
static atomic_int fail_id, fail_after, fail_result; /* fail_after 0 = never */
static atomic_int devices, major_cc, minor_cc, retained[8];
static atomic_long libraries, kernels;
static _Atomic(CUcontext) loaded_in;
static cu_driver table;
static _Thread_local CUcontext stack[8];
static _Thread_local int depth;                                /* stack[depth] is current */
static _Thread_local fake_launch last, earlier[FAKE_LAUNCHES]; /* the nth from the start at n % FAKE_LAUNCHES */
static _Thread_local unsigned launches;
static struct {
    int device;
} contexts[16]; /* the primary ones, then another of each device */

CUresult fake_note(int id)
{
    atomic_fetch_add(&calls[id], 1);
    int which = atomic_load(&fail_id);
    if (atomic_load(&fail_after) > 0 && (which < 0 || which == id) && atomic_fetch_sub(&fail_after, 1) == 1)
        return (CUresult)atomic_load(&fail_result);
    return CUDA_SUCCESS;
}

static CUresult f_init(unsigned flags)
{
    (void)flags;
    NOTE(cuInit);
    return CUDA_SUCCESS;
}

static CUresult f_version(int *v)
{
    NOTE(cuDriverGetVersion);
    *v = 13000;
    return CUDA_SUCCESS;
}

static CUresult f_error_name(CUresult r, const char **s)
{
    *s = r == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
    return CUDA_SUCCESS;
}

static CUresult f_error_string(CUresult r, const char **s)
{
    (void)r;
    *s = "as the test asked";
    return CUDA_SUCCESS;
}

static CUresult f_device_count(int *n)
{
    NOTE(cuDeviceGetCount);
    *n = devices;
    return CUDA_SUCCESS;
}

static CUresult f_device_get(CUdevice *d, int i)
{
    NOTE(cuDeviceGet);
    *d = i;
    return i < devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult f_device_name(char *s, int n, CUdevice d)
{
    NOTE(cuDeviceGetName);
    snprintf(s, (size_t)n, "Fake %d", d);
    return CUDA_SUCCESS;
}

static CUresult f_device_attribute(int *v, CUdevice_attribute a, CUdevice d)
{
    (void)d;
    NOTE(cuDeviceGetAttribute);
    *v = a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR            ? major_cc
         : a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR          ? minor_cc
         : a == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? (major_cc == 9 ? 232448 : 166912)
         : a == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT              ? 100
         : a == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED            ? fake_has_pools()
                                                                      : 0;
    return CUDA_SUCCESS;
}

static CUresult f_retain(CUcontext *c, CUdevice d)
{
    NOTE(cuDevicePrimaryCtxRetain);
    retained[d]++;
    *c = fake_context(d);
    return CUDA_SUCCESS;
}

static CUresult f_release(CUdevice d)
{
    NOTE(cuDevicePrimaryCtxRelease);
    retained[d]--;
    return CUDA_SUCCESS;
}

static CUresult f_get_current(CUcontext *c)
{
    NOTE(cuCtxGetCurrent);
    *c = stack[depth];
    return CUDA_SUCCESS;
}

static CUresult f_set_current(CUcontext c)
{
    NOTE(cuCtxSetCurrent);
    stack[depth] = c;
    return CUDA_SUCCESS;
}

static CUresult f_push(CUcontext c)
{
    NOTE(cuCtxPushCurrent);
    stack[++depth] = c;
    return CUDA_SUCCESS;
}

static CUresult f_pop(CUcontext *c)
{
    NOTE(cuCtxPopCurrent);
    *c = stack[depth--];
    return CUDA_SUCCESS;
}

static CUresult f_ctx_device(CUdevice *d)
{
    NOTE(cuCtxGetDevice);
    if (!stack[depth])
        return CUDA_ERROR_INVALID_CONTEXT;
    *d = (int)((size_t)((char *)stack[depth] - (char *)contexts) / sizeof contexts[0]) % 8;
    return CUDA_SUCCESS;
}

static CUresult f_load(CUlibrary *l, const void *code, CUjit_option *jo, void **jv, unsigned jn, CUlibraryOption *lo, void **lv,
                       unsigned ln)
{
    (void)jo, (void)jv, (void)jn, (void)lo, (void)lv, (void)ln;
    NOTE(cuLibraryLoadData);
    if (!code || !stack[depth])
        return CUDA_ERROR_INVALID_VALUE;
    loaded_in = stack[depth];
    *l = malloc(1);
    atomic_fetch_add(&libraries, 1);
    return CUDA_SUCCESS;
}

static CUresult f_unload(CUlibrary l)
{
    NOTE(cuLibraryUnload);
    free(l);
    atomic_fetch_sub(&libraries, 1);
    return CUDA_SUCCESS;
}

static CUresult f_get_kernel(CUkernel *k, CUlibrary l, const char *name)
{
    (void)l, (void)name;
    NOTE(cuLibraryGetKernel);
    *k = (CUkernel)(uintptr_t)(0x1000 + 16 * atomic_fetch_add(&kernels, 1));
    return CUDA_SUCCESS;
}

static CUresult f_get_function(CUfunction *f, CUkernel k)
{
    NOTE(cuKernelGetFunction);
    *f = (CUfunction)k;
    return CUDA_SUCCESS;
}

static CUresult f_kernel_attribute(int *v, CUfunction_attribute a, CUkernel k, CUdevice d)
{
    (void)a, (void)k, (void)d;
    NOTE(cuKernelGetAttribute);
    *v = 32;
    return CUDA_SUCCESS;
}

static CUresult f_kernel_set(CUfunction_attribute a, int v, CUkernel k, CUdevice d)
{
    (void)a, (void)v, (void)k, (void)d;
    NOTE(cuKernelSetAttribute);
    return CUDA_SUCCESS;
}

static CUresult launched(CUfunction f, unsigned grid, unsigned block, unsigned smem, unsigned cluster, bool pdl, CUstream s, void **params)
{
    last = (fake_launch){ f, grid, block, smem, cluster, pdl, s, stack[depth], *(all_params *)params[0], { 0 }, 0, { { 0 } } };
    memcpy(last.bytes, params[0], sizeof last.bytes); /* a launch hands over a buffer of that size */
    for (; params[1 + last.maps]; last.maps++) {
        if ((uintptr_t)params[1 + last.maps] % 64)
            return CUDA_ERROR_MISALIGNED_ADDRESS;
        memcpy(&last.map[last.maps], params[1 + last.maps], sizeof last.map[0]);
    }
    earlier[launches++ % FAKE_LAUNCHES] = last;
    return stack[depth] ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult f_launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned smem,
                         CUstream s, void **params, void **extra)
{
    (void)gy, (void)gz, (void)by, (void)bz, (void)extra;
    NOTE(cuLaunchKernel);
    return launched(f, gx, bx, smem, 0, false, s, params);
}

static CUresult f_launch_ex(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
    (void)extra;
    NOTE(cuLaunchKernelEx);
    unsigned cluster = 0;
    bool pdl = false;
    for (unsigned i = 0; i < c->numAttrs; i++) {
        const CUlaunchAttribute *a = &c->attrs[i];
        if (a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION && a->value.programmaticStreamSerializationAllowed == 1 && !pdl)
            pdl = true;
        else if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && !cluster && a->value.clusterDim.x && a->value.clusterDim.y == 1 &&
                 a->value.clusterDim.z == 1)
            cluster = a->value.clusterDim.x;
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (!c->numAttrs || (cluster && c->gridDimX % cluster))
        return CUDA_ERROR_INVALID_VALUE;
    return launched(f, c->gridDimX, c->blockDimX, c->sharedMemBytes, cluster, pdl, c->hStream, params);
}

_Static_assert(sizeof(fake_map) <= sizeof(CUtensorMap), "room");

static CUresult f_encode(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *size,
                         const cuuint64_t *stride, const cuuint32_t *box, const cuuint32_t *step, CUtensorMapInterleave interleave,
                         CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    fake_map m = { .address = (uint64_t)(uintptr_t)address,
                   .type = (uint8_t)type,
                   .rank = (uint8_t)rank,
                   .interleave = (uint8_t)interleave,
                   .swizzle = (uint8_t)swizzle,
                   .promotion = (uint8_t)promotion,
                   .fill = (uint8_t)fill };
    NOTE(cuTensorMapEncodeTiled);
    if (rank < 4 || rank > 5 || (uintptr_t)map % 64 || !address || (uintptr_t)address % 16)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < (int)rank; i++) {
        if (size[i] < 1 || size[i] > 1ull << 32 || box[i] < 1 || box[i] > 256)
            return CUDA_ERROR_INVALID_VALUE;
        if (i > 0 && (!stride[i - 1] || stride[i - 1] % 16 || stride[i - 1] >> 40))
            return CUDA_ERROR_INVALID_VALUE;
        m.size[i] = size[i], m.box[i] = box[i], m.step[i] = step[i];
        if (i > 0)
            m.stride[i - 1] = stride[i - 1];
    }
    memcpy(map, &m, sizeof m);
    return CUDA_SUCCESS;
}

const cu_driver *fake_driver(void)
{
    memset(&table, 0, sizeof table); /* what is not faked is not called */
    table.cuInit = f_init;
    table.cuDriverGetVersion = f_version;
    table.cuGetErrorName = f_error_name;
    table.cuGetErrorString = f_error_string;
    table.cuDeviceGetCount = f_device_count;
    table.cuDeviceGet = f_device_get;
    table.cuDeviceGetName = f_device_name;
    table.cuDeviceGetAttribute = f_device_attribute;
    table.cuDevicePrimaryCtxRetain = f_retain;
    table.cuDevicePrimaryCtxRelease = f_release;
    table.cuCtxGetCurrent = f_get_current;
    table.cuCtxSetCurrent = f_set_current;
    table.cuCtxPushCurrent = f_push;
    table.cuCtxPopCurrent = f_pop;
    table.cuCtxGetDevice = f_ctx_device;
    table.cuLibraryLoadData = f_load;
    table.cuLibraryUnload = f_unload;
    table.cuLibraryGetKernel = f_get_kernel;
    table.cuKernelGetFunction = f_get_function;
    table.cuKernelGetAttribute = f_kernel_attribute;
    table.cuKernelSetAttribute = f_kernel_set;
    table.cuLaunchKernel = f_launch;
    table.cuLaunchKernelEx = f_launch_ex;
    table.cuTensorMapEncodeTiled = f_encode;
    fake_memory_begin(&table);
    fake_streams_begin(&table);
    table.name = "fake";
    table.takes_ptx = 1;
    for (int i = 0; i < id_count; i++)
        atomic_store(&calls[i], 0);
    atomic_store(&fail_after, 0);
    devices = 2;
    major_cc = 8;
    minor_cc = 0;
    loaded_in = NULL;
    libraries = 0;
    depth = 0;
    memset(stack, 0, sizeof stack);
    for (int i = 0; i < 8; i++)
        retained[i] = 0;
    return &table;
}

void fake_devices(int count, int major_, int minor_)
{
    devices = count;
    major_cc = major_;
    minor_cc = minor_;
}

void fake_ptx(bool takes_ptx)
{
    table.takes_ptx = takes_ptx;
}

CUcontext fake_current(void)
{
    return stack[depth];
}

CUcontext fake_loaded_in(void)
{
    return atomic_load(&loaded_in);
}

static int id_of(const char *name)
{
    for (int i = 0; name && i < id_count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    if (name)
        abort();
    return -1;
}

void fake_fail(const char *name, int nth, CUresult r)
{
    atomic_store(&fail_after, 0);
    atomic_store(&fail_id, id_of(name));
    atomic_store(&fail_result, (int)r);
    atomic_store(&fail_after, nth);
}

long fake_calls(const char *name)
{
    long sum = 0;
    for (int i = 0; i < id_count; i++)
        if (!name || i == id_of(name))
            sum += atomic_load(&calls[i]);
    return sum;
}

CUcontext fake_context(int device)
{
    return (CUcontext)&contexts[device];
}

CUcontext fake_second_context(int device)
{
    return (CUcontext)&contexts[8 + device];
}

long fake_live_libraries(void)
{
    return atomic_load(&libraries);
}

int fake_retained(int device)
{
    return atomic_load(&retained[device]);
}

fake_launch fake_last(void)
{
    return last;
}

fake_launch fake_before(int n)
{
    return earlier[(launches - 1 - (unsigned)n) % FAKE_LAUNCHES];
}
