/* state: what the driver's functions share: the live handles, what each thread was told last, and its stack of contexts. A device is its
 * own primary context. */
#include "state.h"
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

sim_state sim_the = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Thread_local char *detail;
static _Atomic(sim_keep_fn *) keep;
static _Thread_local CUcontext stack[32];
static _Thread_local int depth;

void sim_keep_by(sim_keep_fn *by)
{
    atomic_store(&keep, by);
}

static char *own_detail(void)
{
    sim_keep_fn *by = atomic_load(&keep);
    if (!detail && by)
        by(&detail, SIM_DETAIL);
    else if (!detail)
        detail = calloc(1, SIM_DETAIL);
    return detail;
}
void sim_detail_clear(void)
{
    if (detail)
        *detail = 0;
}
int sim_lock(void)
{
    sim_detail_clear();
    return pthread_mutex_lock(&sim_the.lock);
}
const char *sim_report(void)
{
    return detail ? detail : "";
}

CUresult sim_tell(CUresult r, const char *format, ...)
{
    va_list v;
    char *to = own_detail();
    va_start(v, format);
    if (to)
        vsnprintf(to, SIM_DETAIL, format, v);
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

/* ---- devices ---- */

sim_device *sim_device_of(CUdevice n)
{
    if (n < 0 || n >= SIM_NOBODY)
        return NULL;
    sim_device *d = &sim_the.simulator[n / SIM_DEVICES].device[n % SIM_DEVICES];
    return d->arch ? d : NULL;
}
CUdevice sim_device_number(const sim_device *d)
{
    return (CUdevice)(d->of - sim_the.simulator) * SIM_DEVICES + d->ordinal;
}

enum { SPACE_BITS = 44 };
uint64_t sim_device_space(CUdevice n)
{
    return (uint64_t)(n + 1) << SPACE_BITS;
}
sim_device *sim_device_at(uint64_t address)
{
    uint64_t n = address >> SPACE_BITS;
    return n && n <= SIM_NOBODY ? sim_device_of((CUdevice)n - 1) : NULL;
}

CUresult sim_device_own(const sim_device *d, uint64_t address)
{
    const sim_device *owner = sim_device_at(address);
    if (!owner || owner->of == d->of)
        return CUDA_SUCCESS;
    return sim_tell(CUDA_ERROR_INVALID_VALUE, "0x%llx is memory of the simulator %s; accepted: memory of %s", (unsigned long long)address,
                    owner->of->name, d->of->name);
}

/* ---- contexts ---- */

static sim_device *context(CUcontext c)
{
    for (CUdevice k = 0; k < SIM_DEVICES * sim_the.simulators; k++) {
        sim_device *d = sim_device_of(k);
        if (d && (CUcontext)(void *)d == c)
            return d->retained ? d : NULL;
    }
    return NULL;
}

CUresult sim_current(sim_device **d)
{
    if (!sim_the.initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    *d = depth ? context(stack[depth - 1]) : NULL;
    return *d ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/* A context of another simulator is none to this one's caller. */
CUresult sim_context_current(int simulator, CUcontext *c)
{
    SIM_LOCKED;
    SIM_NEED(c);
    if (!sim_the.initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    const sim_device *d = depth ? context(stack[depth - 1]) : NULL;
    *c = depth && (!d || d->of == &sim_the.simulator[simulator]) ? stack[depth - 1] : NULL;
    return CUDA_SUCCESS;
}

CUresult sim_context_device(int simulator, CUdevice *device)
{
    SIM_LOCKED;
    SIM_NEED(device);
    sim_device *d;
    CUresult r = sim_current(&d);
    if (!r && d->of != &sim_the.simulator[simulator])
        r = CUDA_ERROR_INVALID_CONTEXT;
    if (!r)
        *device = sim_device_number(d);
    return r;
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

/* A child of fork() begins without a simulator: a thread that is not in it may hold the lock, in the middle of a change. What the parent
 * had is not given back: it costs nothing until a page of it is written. */
void sim_state_forked(void)
{
    sim_the = (sim_state){ .lock = PTHREAD_MUTEX_INITIALIZER };
    depth = 0;
}
