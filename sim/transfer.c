/* transfer: allocating, copying and filling device memory, and asking what a pointer is. Copies are checked against the
 * allocation they touch. */
#include "state.h"
#include <string.h>

/* In any device, or among variables; NULL if not wholly inside. */
static sim_alloc *range(CUdeviceptr at, size_t n)
{
    const sim_device *d = sim_device_at(at);
    sim_alloc *a = sim_memory_find(d ? &d->memory : &sim_the.variables, at);
    return a && n <= a->size - (at - a->base) ? a : NULL;
}

CUresult sim_cuMemAlloc(CUdeviceptr *p, size_t n)
{
    SIM_LOCKED;
    sim_device *d;
    CUresult r = sim_current(&d);
    if (r || (r = sim_unsafe()))
        return r;
    SIM_NEED(p && n);
    sim_alloc *a = sim_memory_new(&d->memory, n, NULL);
    if (!a)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *p = a->base;
    return CUDA_SUCCESS;
}
CUresult sim_cuMemFree(CUdeviceptr p)
{
    SIM_LOCKED;
    if (!sim_the.initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!p)
        return CUDA_SUCCESS;
    sim_device *d, *owner = sim_device_at(p);
    CUresult r = sim_unsafe();
    if (r)
        return r;
    r = sim_current(&d) ? CUDA_SUCCESS : sim_device_own(d, p);
    if (r || (owner && !sim_memory_free(&owner->memory, p)))
        return r;
    return sim_tell(CUDA_ERROR_INVALID_VALUE, "0x%llx is no allocation's address", (unsigned long long)p);
}
/* Work runs at once, so memory that is ordered by a stream is there, and gone, at once. */
static CUresult ordered(CUstream s)
{
    CUstreamCaptureStatus capture;
    CUresult r = sim_cuStreamIsCapturing(s, &capture);
    if (!r && capture != CU_STREAM_CAPTURE_STATUS_NONE)
        r = sim_tell(CUDA_ERROR_NOT_SUPPORTED, "the stream is captured; accepted: no nodes of memory");
    return r;
}
CUresult sim_cuMemAllocAsync(CUdeviceptr *p, size_t n, CUstream s)
{
    CUresult r = ordered(s);
    return r ? r : sim_cuMemAlloc(p, n);
}
CUresult sim_cuMemFreeAsync(CUdeviceptr p, CUstream s)
{
    CUresult r = ordered(s);
    return r ? r : sim_cuMemFree(p);
}
CUresult sim_cuMemGetInfo(size_t *left, size_t *total)
{
    SIM_LOCKED;
    sim_device *d;
    CUresult r = sim_current(&d);
    if (r)
        return r;
    SIM_NEED(left && total);
    *left = d->memory.limit - d->memory.used, *total = d->memory.limit;
    return CUDA_SUCCESS;
}

static CUresult outside(CUdeviceptr at, size_t n)
{
    return sim_tell(CUDA_ERROR_INVALID_VALUE, "%zu bytes at 0x%llx are not inside one allocation", n, (unsigned long long)at);
}

static CUresult move(const sim_node *n)
{
    CUresult r = n->to ? sim_device_own(n->device, n->to) : CUDA_SUCCESS;
    if (!r && n->from)
        r = sim_device_own(n->device, n->from);
    if (r)
        return r;
    sim_alloc *to = n->what == N_TO_HOST ? NULL : range(n->to, n->n);
    sim_alloc *from = n->what == N_TO_HOST || n->what == N_INSIDE ? range(n->from, n->n) : NULL;
    if (n->what != N_TO_HOST && !to)
        return outside(n->to, n->n);
    if ((n->what == N_TO_HOST || n->what == N_INSIDE) && !from)
        return outside(n->from, n->n);
    uint8_t *p = to ? to->data + (n->to - to->base) : NULL;
    switch (n->what) {
    case N_MEMSET8:
        memset(p, (int)n->value, n->n);
        break;
    case N_MEMSET32:
        for (size_t k = 0; k < n->n / 4; k++)
            memcpy(p + 4 * k, &n->value, 4);
        break;
    case N_TO_DEVICE:
        memcpy(p, n->host, n->n);
        break;
    case N_TO_HOST:
        memcpy(n->host, from->data + (n->from - from->base), n->n);
        break;
    default:
        memmove(p, from->data + (n->from - from->base), n->n);
        sim_memory_copy_marks(to, n->to - to->base, from, n->from - from->base, n->n);
        return CUDA_SUCCESS;
    }
    if (to)
        sim_memory_mark(to, n->to - to->base, n->n);
    return CUDA_SUCCESS;
}

int sim_forget(uint64_t address, size_t bytes)
{
    SIM_LOCKED;
    sim_alloc *a = bytes ? range(address, bytes) : NULL;
    if (bytes && !a)
        return (int)outside(address, bytes);
    if (a)
        sim_memory_forget(a, address - a->base, bytes);
    return CUDA_SUCCESS;
}

int64_t sim_unwritten(uint64_t address, size_t bytes)
{
    SIM_LOCKED;
    const sim_alloc *a = bytes ? range(address, bytes) : NULL;
    if (!a)
        return bytes ? -2 : -1;
    int64_t at = sim_memory_unwritten(a, address - a->base, bytes);
    return at < 0 ? -1 : at - (int64_t)(address - a->base);
}

#define READY                            \
    SIM_LOCKED;                          \
    sim_device *d;                       \
    CUresult is_ready = sim_current(&d); \
    if (is_ready)                        \
        return is_ready;                 \
    if (!n)                              \
    return CUDA_SUCCESS

CUresult sim_cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t n)
{
    READY;
    SIM_NEED(from);
    return move(&(sim_node){ .run = move, .device = d, .what = N_TO_DEVICE, .to = to, .host = (void *)(uintptr_t)from, .n = n });
}
CUresult sim_cuMemcpyDtoH(void *to, CUdeviceptr from, size_t n)
{
    READY;
    SIM_NEED(to);
    return move(&(sim_node){ .run = move, .device = d, .what = N_TO_HOST, .from = from, .host = to, .n = n });
}
CUresult sim_cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t n, CUstream s)
{
    READY;
    SIM_NEED(from);
    return sim_submit(s, &(sim_node){ .run = move, .device = d, .what = N_TO_DEVICE, .to = to, .host = (void *)(uintptr_t)from, .n = n });
}
CUresult sim_cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t n, CUstream s)
{
    READY;
    SIM_NEED(to);
    return sim_submit(s, &(sim_node){ .run = move, .device = d, .what = N_TO_HOST, .from = from, .host = to, .n = n });
}
CUresult sim_cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s)
{
    READY;
    return sim_submit(s, &(sim_node){ .run = move, .device = d, .what = N_INSIDE, .to = to, .from = from, .n = n });
}
CUresult sim_cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream s)
{
    READY;
    return sim_submit(s, &(sim_node){ .run = move, .device = d, .what = N_MEMSET8, .to = to, .value = value, .n = n });
}
CUresult sim_cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream s)
{
    READY;
    SIM_NEED(!(to & 3) && n <= SIZE_MAX / 4);
    return sim_submit(s, &(sim_node){ .run = move, .device = d, .what = N_MEMSET32, .to = to, .value = value, .n = 4 * n });
}

CUresult sim_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr p)
{
    SIM_LOCKED;
    if (!sim_the.initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    SIM_NEED(data && p);
    sim_device *d = sim_device_at(p);
    const sim_alloc *a = d ? sim_memory_find(&d->memory, p) : NULL;
    if (!a)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = (CUcontext)(void *)d;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = p;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = d->ordinal;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)data = 0;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)data = a->base;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = a->size;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)data = 1;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}
