/* kernel: from verified bytes to functions that can be launched. */
#include "kernel.h"
#include "gen/error.h"
#include "parts.h"
#include "runtime/args/map.h"
#include "runtime/context/driver_cuda.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t loaded; /* kernels of this process */

/* What the driver knows, where no ptxas log told it. */
static void ask(const fa_device *d, CUkernel f, fa_resources *r)
{
    int regs = 0, local = 0, shared = 0;
    if (r->known || d->driver->cuKernelGetAttribute(&regs, CU_FUNC_ATTRIBUTE_NUM_REGS, f, d->handle) != CUDA_SUCCESS || regs <= 0)
        return;
    if (d->driver->cuKernelGetAttribute(&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, f, d->handle) == CUDA_SUCCESS)
        r->stack = local;
    if (d->driver->cuKernelGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f, d->handle) == CUDA_SUCCESS)
        r->smem = shared;
    r->registers = regs;
    r->known = !d->driver->takes_ptx;
}

static fa_status ready_step(const fa_device *d, fa_kernel *k, int i, const char *log)
{
    const cu_driver *dr = d->driver;
    CUfunction touched;
    CUlibrary library = k->library[i] ? k->library[i] : k->library[0];
    fa_status st = fa_driver_check(dr, dr->cuLibraryGetKernel(&k->fn[i], library, k->step[i].entry), "cuLibraryGetKernel");
    if (st == FA_OK && k->step[i].smem > 0)
        st = fa_driver_check(
            dr, dr->cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k->step[i].smem, k->fn[i], d->handle),
            "cuKernelSetAttribute(MAX_DYNAMIC_SHARED_SIZE_BYTES)");
    /* ends lazy loading now: it would not be legal under capture */
    if (st == FA_OK)
        st = fa_driver_check(dr, dr->cuKernelGetFunction(&touched, k->fn[i]), "cuKernelGetFunction");
    if (st != FA_OK)
        return fa_wrap(st, "%s", k->step[i].entry);
    k->resources[i] = fa_resources_parse(log, k->step[i].entry);
    ask(d, k->fn[i], &k->resources[i]);
    return FA_OK;
}

static fa_status load_parts(const fa_device *d, fa_kernel *k, const fa_entry *e)
{
    fa_part part[FA_SOURCE_STEPS];
    fa_status st = FA_OK;
    int n = fa_parts_of(e->image, e->image_size, part, FA_SOURCE_STEPS);
    if (n != 1 && n != k->steps)
        return fa_fail(FA_DEVICE, "image: its parts are %d; accepted: one, or the %d steps of the source", n, k->steps);
    for (int i = 0; i < n && st == FA_OK; i++)
        st = fa_driver_check(d->driver, d->driver->cuLibraryLoadData(&k->library[i], part[i].bytes, NULL, NULL, 0, NULL, NULL, 0),
                             "cuLibraryLoadData");
    return st;
}

fa_status fa_kernel_load(fa_kernel **out, const fa_device *d, const fa_entry *e, const fa_source *s)
{
    *out = NULL;
    if (!e->ptx && d->driver->takes_ptx) /* other drivers take both */
        return fa_fail(FA_INTERNAL, "image: a cubin; accepted by %s: PTX", d->driver->name);
    fa_kernel *k = calloc(1, sizeof *k);
    if (!k)
        return fa_fail(FA_NOMEM, "kernel: %zu bytes of host memory", sizeof *k);
    k->key = e->key;
    k->steps = s->steps;
    memcpy(k->step, s->step, sizeof k->step);
    k->maps = fa_steps_map(s->step, s->steps);
    k->number = 1 + atomic_fetch_add(&loaded, 1);
    k->workspace = s->workspace;
    k->packing = s->packing;
    fa_status st = load_parts(d, k, e);
    for (int i = 0; st == FA_OK && i < k->steps; i++)
        st = ready_step(d, k, i, e->log);
    if (st != FA_OK) {
        fa_kernel_unload(d, k);
        return fa_wrap(st, "%s", s->name);
    }
    *out = k;
    return FA_OK;
}

void fa_kernel_unload(const fa_device *d, fa_kernel *k)
{
    if (!k)
        return;
    for (int i = 0; i < FA_SOURCE_STEPS; i++)
        if (k->library[i])
            d->driver->cuLibraryUnload(k->library[i]);
    free(k);
}
