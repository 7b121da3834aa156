/* state: what the driver's functions share: the live handles, what each thread was told last, and its stack of contexts. A device is its
 * own primary context. */
#include "state.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

sim_state sim_the = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Thread_local char detail[SIM_DETAIL];
static _Thread_local CUcontext stack[32];
static _Thread_local int depth;

int sim_lock(void)
{
    detail[0] = 0;
    return pthread_mutex_lock(&sim_the.lock);
}

char *sim_detail(void)
{
    return detail;
}
const char *sim_report(void)
{
    return detail;
}

CUresult sim_tell(CUresult r, const char *format, ...)
{
    va_list v;
    va_start(v, format);
    vsnprintf(detail, sizeof detail, format, v);
    va_end(v);
    return r;
}

/* ---- handles ---- */

bool sim_live(const void *p, sim_kind kind)
{
    for (size_t k = 0; k < sim_the.handles; k++)
        if (sim_the.handle[k].p == p)
            return sim_the.handle[k].kind == kind;
    return false;
}
bool sim_register(const void *p, sim_kind kind)
{
    if (sim_the.handles == sim_the.handle_cap) {
        size_t cap = sim_the.handle_cap ? sim_the.handle_cap * 2 : 64;
        void *grown = realloc(sim_the.handle, cap * sizeof *sim_the.handle);
        if (!grown)
            return false;
        sim_the.handle = grown, sim_the.handle_cap = cap;
    }
    sim_the.handle[sim_the.handles].p = p;
    sim_the.handle[sim_the.handles++].kind = kind;
    return true;
}
void sim_unregister(const void *p)
{
    for (size_t k = 0; k < sim_the.handles; k++) {
        if (sim_the.handle[k].p != p)
            continue;
        sim_the.handle[k] = sim_the.handle[--sim_the.handles];
        return;
    }
}

static sim_device *context(CUcontext c)
{
    for (int k = 0; k < sim_the.devices; k++)
        if ((CUcontext)(void *)&sim_the.device[k] == c)
            return sim_the.device[k].retained ? &sim_the.device[k] : NULL;
    return NULL;
}

CUresult sim_current(sim_device **d)
{
    if (!sim_the.initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    *d = depth ? context(stack[depth - 1]) : NULL;
    return *d ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult sim_cuCtxGetCurrent(CUcontext *c)
{
    SIM_LOCKED;
    SIM_NEED(c);
    if (!sim_the.initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    *c = depth ? stack[depth - 1] : NULL;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetCurrent(CUcontext c)
{
    SIM_LOCKED;
    if (!sim_the.initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!c)
        return depth -= depth > 0, CUDA_SUCCESS;
    if (!context(c))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!depth)
        depth = 1;
    stack[depth - 1] = c;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxPushCurrent(CUcontext c)
{
    SIM_LOCKED;
    if (!sim_the.initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!context(c))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (depth == sizeof stack / sizeof *stack)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stack[depth++] = c;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxPopCurrent(CUcontext *c)
{
    SIM_LOCKED;
    if (!sim_the.initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (c)
        *c = stack[depth];
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetDevice(CUdevice *device)
{
    SIM_LOCKED;
    SIM_NEED(device);
    sim_device *d;
    CUresult r = sim_current(&d);
    if (!r)
        *device = d->ordinal;
    return r;
}

CUresult sim_cuCtxSynchronize(void)
{
    SIM_LOCKED;
    sim_device *d;
    return sim_current(&d); /* every call here has finished when it returns */
}

/* A child of fork() begins without a simulator: a thread that is not in it may hold the lock, in the middle of a change. What the parent
 * had is not given back: it costs nothing until a page of it is written. */
void sim_state_forked(void)
{
    sim_the = (sim_state){ .lock = PTHREAD_MUTEX_INITIALIZER };
    depth = 0;
}
