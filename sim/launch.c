/* launch: libraries of PTX text, their kernels, and what a launch must satisfy before it runs. */
#include "state.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LOCAL = 512 * 1024 }; /* bytes of a thread */

static uint64_t place(void *arg, const sim_variable *v)
{
    sim_library *lib = arg;
    uint64_t *grown = realloc(lib->variable, (lib->variables + 1) * sizeof *grown);
    if (!grown)
        return 0;
    lib->variable = grown;
    sim_alloc *a = sim_memory_new(&sim_the.variables, v->size ? v->size : 1, v->name);
    if (!a)
        return 0;
    if (v->initial)
        memcpy(a->data, v->initial, v->size);
    sim_memory_mark(a, 0, a->size); /* without an initialiser it is zero */
    return lib->variable[lib->variables++] = a->base;
}

static void unload(sim_library *lib)
{
    for (uint32_t k = 0; lib->module && k < lib->module->nkernels; k++)
        if (lib->kernel)
            sim_unregister(&lib->kernel[k]);
    sim_unregister(lib);
    for (size_t k = 0; k < lib->variables; k++)
        sim_memory_free(&sim_the.variables, lib->variable[k]);
    sim_module_free(lib->module);
    free(lib->variable);
    free(lib->kernel);
    free(lib);
}

static bool is_ptx(const char *s) /* blank and comments, then a directive */
{
    for (;;) {
        while (isspace((unsigned char)*s))
            s++;
        if (s[0] == '/' && s[1] == '/')
            while (*s && *s != '\n')
                s++;
        else if (s[0] == '/' && s[1] == '*') {
            const char *end = strstr(s + 2, "*/");
            if (!end)
                return false;
            s = end + 2;
        } else
            return *s == '.' && isalpha((unsigned char)s[1]);
    }
}

static bool runs_on(const sim_module *m, const sim_arch *a)
{
    int have = a->major * 10 + a->minor;
    if (m->target_suffix == 'a')
        return m->target == have;
    if (m->target_suffix == 'f')
        return m->target / 10 == a->major && m->target <= have;
    return m->target <= have;
}

CUresult sim_cuLibraryLoadData(CUlibrary *to, const void *code, CUjit_option *jit, void **jit_values, unsigned njit,
                               CUlibraryOption *options, void **values, unsigned n)
{
    SIM_LOCKED;
    char error[1024];
    (void)jit, (void)jit_values, (void)njit, (void)options, (void)values, (void)n;
    if (!sim_the.initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    SIM_NEED(to && code);
    sim_detail_clear();
    if (!is_ptx(code))
        return sim_tell(CUDA_ERROR_INVALID_IMAGE, "the image is no PTX text");
    sim_library *lib = calloc(1, sizeof *lib);
    if (!lib)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!(lib->module = sim_module_load(code, strlen(code), place, lib, error))) {
        unload(lib);
        return error[0] ? sim_tell(CUDA_ERROR_INVALID_PTX, "%s", error) : CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_device *d;
    if (!sim_current(&d) && !runs_on(lib->module, d->arch)) {
        CUresult r = sim_tell(CUDA_ERROR_NO_BINARY_FOR_GPU, "the text is for sm_%d%c, the device is %s", lib->module->target,
                              lib->module->target_suffix ? lib->module->target_suffix : ' ', d->arch->name);
        return unload(lib), r;
    }
    lib->kernel = calloc(lib->module->nkernels + 1, sizeof *lib->kernel);
    bool ok = lib->kernel && sim_register(lib, H_LIBRARY);
    for (uint32_t k = 0; ok && k < lib->module->nkernels; k++) {
        lib->kernel[k].library = lib, lib->kernel[k].program = &lib->module->kernels[k];
        for (int x = 0; x < SIM_DEVICES; x++)
            lib->kernel[k].max_dynamic[x] = 48 * 1024 - (int)lib->module->kernels[k].shared_bytes;
        ok = sim_register(&lib->kernel[k], H_KERNEL);
    }
    if (!ok)
        return unload(lib), CUDA_ERROR_OUT_OF_MEMORY;
    *to = (CUlibrary)(void *)lib;
    return CUDA_SUCCESS;
}
CUresult sim_cuLibraryUnload(CUlibrary library)
{
    SIM_LOCKED;
    if (!sim_live(library, H_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    unload((sim_library *)(void *)library);
    return CUDA_SUCCESS;
}
CUresult sim_cuLibraryGetKernel(CUkernel *to, CUlibrary library, const char *name)
{
    SIM_LOCKED;
    SIM_NEED(to && name);
    if (!sim_live(library, H_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    sim_library *lib = (sim_library *)(void *)library;
    for (uint32_t k = 0; k < lib->module->nkernels; k++)
        if (!strcmp(lib->module->kernels[k].name, name))
            return *to = (CUkernel)(void *)&lib->kernel[k], CUDA_SUCCESS;
    return sim_tell(CUDA_ERROR_NOT_FOUND, "the library has no kernel %s", name);
}
CUresult sim_cuLibraryGetGlobal(CUdeviceptr *to, size_t *bytes, CUlibrary library, const char *name)
{
    SIM_LOCKED;
    SIM_NEED((to || bytes) && name);
    if (!sim_live(library, H_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    const sim_module *m = ((const sim_library *)(const void *)library)->module;
    for (uint32_t k = 0; k < m->nvars; k++) {
        const sim_variable *v = &m->vars[k];
        if ((v->space != SP_GLOBAL && v->space != SP_CONST) || strcmp(v->name, name))
            continue;
        if (to)
            *to = v->address;
        if (bytes)
            *bytes = v->size;
        return CUDA_SUCCESS;
    }
    return sim_tell(CUDA_ERROR_NOT_FOUND, "the library has no variable %s in global or constant memory", name);
}
CUresult sim_cuKernelGetFunction(CUfunction *to, CUkernel kernel)
{
    SIM_LOCKED;
    SIM_NEED(to);
    if (!sim_live(kernel, H_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    sim_device *d;
    CUresult r = sim_current(&d);
    if (!r)
        *to = (CUfunction)(void *)kernel;
    return r;
}

static CUresult kernel_on(CUkernel kernel, CUdevice dev, sim_kernel **k)
{
    if (!sim_live(kernel, H_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!sim_device_of(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *k = (sim_kernel *)(void *)kernel;
    return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice dev)
{
    SIM_LOCKED;
    sim_kernel *k;
    SIM_NEED(value);
    CUresult r = kernel_on(kernel, dev, &k);
    if (r)
        return r;
    const sim_program *p = k->program;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = p->max_threads;
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)p->shared_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = (int)p->local_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = k->max_dynamic[sim_device_of(dev)->ordinal];
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = p->module->target;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: /* allocated by ptxas, which is not in the path */
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
        *value = 0;
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = -1;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}
CUresult sim_cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice dev)
{
    SIM_LOCKED;
    sim_kernel *k;
    CUresult r = kernel_on(kernel, dev, &k);
    if (r)
        return r;
    if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
        return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    const sim_device *d = sim_device_of(dev);
    int most = d->arch->shared_per_block - (int)k->program->shared_bytes;
    if (value < 0 || value > most)
        return sim_tell(CUDA_ERROR_INVALID_VALUE,
                        "%s has at most %d bytes of dynamic shared memory per block for this kernel, %d were asked for", d->arch->name,
                        most, value);
    k->max_dynamic[d->ordinal] = value;
    return CUDA_SUCCESS;
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f, int threads, size_t dynamic)
{
    SIM_LOCKED;
    sim_device *d;
    CUresult r = sim_current(&d);
    if (r)
        return r;
    SIM_NEED(blocks && threads > 0);
    if (!sim_live(f, H_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    const sim_kernel *k = (const sim_kernel *)(const void *)f;
    size_t shared = dynamic + k->program->shared_bytes, warps = ((size_t)threads + 31) / 32;
    size_t by_threads = (size_t)d->arch->threads_per_sm / 32 / warps, by_shared = (size_t)d->arch->shared_per_sm / (shared + 1024),
           n = (size_t)d->arch->blocks_per_sm;
    if (by_threads < n)
        n = by_threads;
    if (by_shared < n)
        n = by_shared;
    if (threads > k->program->max_threads || shared > (size_t)d->arch->shared_per_block)
        n = 0;
    *blocks = (int)n;
    return CUDA_SUCCESS;
}

/* ---- launching ---- */

static void add_counters(const sim_counters *c)
{
    sim_counters *t = &sim_the.counters;
    uint64_t *to = &t->launches;
    const uint64_t *from = &c->launches;
    uint64_t peak = t->shared_peak > c->shared_peak ? t->shared_peak : c->shared_peak;
    for (size_t k = 0; k < offsetof(sim_counters, tensor) / sizeof *to; k++)
        to[k] += from[k];
    t->shared_peak = peak;
    for (int k = 0; k < c->tensors; k++) {
        int at = 0;
        while (at < t->tensors && t->tensor[at].base != c->tensor[k].base)
            at++;
        if (at == SIM_TENSORS)
            at--, t->tensor[at].base = t->tensor[at].size = 0;
        else if (at == t->tensors)
            t->tensors++, t->tensor[at].base = c->tensor[k].base, t->tensor[at].size = c->tensor[k].size;
        t->tensor[at].read += c->tensor[k].read, t->tensor[at].write += c->tensor[k].write;
    }
}

/* The lock is held by the thread that launched. */
static bool whose(uint64_t address, char *to, size_t room)
{
    const sim_device *d = sim_device_at(address);
    if (d)
        snprintf(to, room, "memory of device %d of the simulator %s", d->ordinal, d->of->name);
    return d != NULL;
}

static CUresult run_launch(const sim_node *n)
{
    sim_launch *l = calloc(1, sizeof *l + SIM_DETAIL);
    if (!l)
        return CUDA_ERROR_OUT_OF_MEMORY;
    l->report = (char *)(l + 1);
    l->program = n->kernel->program, l->arch = n->device->arch;
    l->memory = &n->device->memory, l->variables = &sim_the.variables, l->whose = whose;
    for (int k = 0; k < 3; k++)
        l->grid[k] = n->grid[k], l->block[k] = n->block[k], l->cluster[k] = n->cluster[k];
    l->explicit_cluster = n->explicit_cluster, l->pdl = n->pdl;
    l->dynamic_shared = n->dynamic, l->params = n->params, l->options = sim_the.options;
    l->alone = !n->device->reported;
    sim_memory_launch++;
    CUresult r = sim_launch_run(l);
    n->device->reported = l->reported;
    add_counters(&l->counts.c);
    if (r)
        sim_tell(r, "%s", l->report[0] ? l->report : "out of host memory");
    free(l);
    return r;
}

static CUresult refuse(const sim_kernel *k, const sim_device *d, const sim_node *n)
{
    const sim_program *p = k->program;
    uint64_t threads = (uint64_t)n->block[0] * n->block[1] * n->block[2];
    if (!runs_on(p->module, d->arch))
        return sim_tell(CUDA_ERROR_NO_BINARY_FOR_GPU, "kernel %s is for sm_%d, the device is %s", p->name, p->module->target,
                        d->arch->name);
    for (int i = 0; i < 3; i++) {
        uint32_t most = i ? 65535 : 2147483647;
        if (!n->grid[i] || n->grid[i] > most || !n->block[i])
            return sim_tell(CUDA_ERROR_INVALID_VALUE, "kernel %s: a grid of (%u,%u,%u) blocks of (%u,%u,%u) threads cannot be launched",
                            p->name, n->grid[0], n->grid[1], n->grid[2], n->block[0], n->block[1], n->block[2]);
        if (p->required[0] && n->block[i] != (uint32_t)p->required[i])
            return sim_tell(CUDA_ERROR_INVALID_VALUE, "kernel %s requires blocks of (%d,%d,%d) threads", p->name, p->required[0],
                            p->required[1], p->required[2]);
    }
    if (n->block[0] > 1024 || n->block[1] > 1024 || n->block[2] > 64 || threads > 1024 || threads > (uint64_t)p->max_threads)
        return sim_tell(CUDA_ERROR_INVALID_VALUE, "kernel %s: %llu threads per block, at most %d", p->name, (unsigned long long)threads,
                        p->max_threads);
    if (p->resizes && threads * p->registers > 65536)
        return sim_tell(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
                        "kernel %s: %llu threads of %u registers, more than the 65536 of a multiprocessor", p->name,
                        (unsigned long long)threads, p->registers);
    if (p->local_bytes > MOST_LOCAL)
        return sim_tell(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "kernel %s: %u bytes of local memory per thread, at most %d", p->name,
                        p->local_bytes, MOST_LOCAL);
    if (n->dynamic > (uint32_t)k->max_dynamic[d->ordinal] || n->dynamic > INT32_MAX)
        return sim_tell(
            CUDA_ERROR_INVALID_VALUE,
            "kernel %s: %u bytes of dynamic shared memory, but only %d are allowed (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)",
            p->name, n->dynamic, k->max_dynamic[d->ordinal]);
    return CUDA_SUCCESS;
}

/* The kernel's own requirement, or what the launch asks for; 0 0 0 = nothing. */
static CUresult choose_cluster(const sim_kernel *k, const sim_device *d, const uint32_t asked[3], sim_node *n)
{
    const sim_program *p = k->program;
    uint64_t blocks = 1;
    n->explicit_cluster = asked[0] || p->cluster[0];
    for (int i = 0; i < 3; i++) {
        if (asked[0] && p->cluster[0] && asked[i] != p->cluster[i])
            return sim_tell(CUDA_ERROR_INVALID_CLUSTER_SIZE, "kernel %s requires clusters of (%u,%u,%u) blocks, (%u,%u,%u) were asked for",
                            p->name, p->cluster[0], p->cluster[1], p->cluster[2], asked[0], asked[1], asked[2]);
        n->cluster[i] = asked[0] ? asked[i] : p->cluster[0] ? p->cluster[i] : 1;
        blocks *= n->cluster[i];
    }
    if (blocks > 1 && d->arch->major < 9)
        return sim_tell(CUDA_ERROR_INVALID_CLUSTER_SIZE, "kernel %s: %s has no clusters", p->name, d->arch->name);
    if (!blocks || blocks > SIM_CLUSTER)
        return sim_tell(CUDA_ERROR_INVALID_CLUSTER_SIZE, "kernel %s: a cluster of %llu blocks; accepted: 1 to %d", p->name,
                        (unsigned long long)blocks, SIM_CLUSTER);
    for (int i = 0; i < 3; i++)
        if (n->grid[i] % n->cluster[i])
            return sim_tell(CUDA_ERROR_INVALID_VALUE, "kernel %s: a grid of (%u,%u,%u) blocks is no multiple of clusters of (%u,%u,%u)",
                            p->name, n->grid[0], n->grid[1], n->grid[2], n->cluster[0], n->cluster[1], n->cluster[2]);
    return CUDA_SUCCESS;
}

static CUresult launch(CUfunction f, const uint32_t grid[3], const uint32_t block[3], const uint32_t cluster[3], bool pdl, uint32_t dynamic,
                       CUstream stream, void **params, void **extra)
{
    sim_device *d;
    CUresult r = sim_current(&d);
    if (r)
        return r;
    sim_detail_clear();
    if (!sim_live(f, H_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    sim_kernel *k = (sim_kernel *)(void *)f;
    const sim_program *p = k->program;
    sim_node n = { .run = run_launch, .kernel = k, .device = d, .dynamic = dynamic, .pdl = pdl };
    for (int i = 0; i < 3; i++)
        n.grid[i] = grid[i], n.block[i] = block[i];
    if ((r = refuse(k, d, &n)) || (r = choose_cluster(k, d, cluster, &n)))
        return r;
    if (p->nparams && !params && !extra)
        return sim_tell(CUDA_ERROR_INVALID_VALUE, "kernel %s needs %u parameters", p->name, p->nparams);
    if (!(n.params = calloc(1, p->param_bytes + 1)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (params) {
        for (uint32_t i = 0; i < p->nparams; i++) {
            if (!params[i])
                return free(n.params), sim_tell(CUDA_ERROR_INVALID_VALUE, "parameter %u of kernel %s is NULL", i, p->name);
            memcpy(n.params + p->params[i].offset, params[i], p->params[i].size);
        }
    } else if (extra) {
        const void *from = NULL;
        size_t size = 0;
        for (int i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
            if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
                from = extra[i + 1];
            else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
                size = extra[i + 1] ? *(const size_t *)extra[i + 1] : 0;
            else
                return free(n.params), CUDA_ERROR_INVALID_VALUE;
        }
        if ((p->param_bytes && !from) || size < p->param_bytes)
            return free(n.params), sim_tell(CUDA_ERROR_INVALID_VALUE, "kernel %s needs %u bytes of parameters", p->name, p->param_bytes);
        if (from)
            memcpy(n.params, from, p->param_bytes);
    }
    return sim_submit(stream, &n);
}

CUresult sim_cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned dynamic,
                            CUstream stream, void **params, void **extra)
{
    SIM_LOCKED;
    return launch(f, (uint32_t[3]){ gx, gy, gz }, (uint32_t[3]){ bx, by, bz }, (uint32_t[3]){ 0 }, false, dynamic, stream, params, extra);
}

CUresult sim_cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
    SIM_LOCKED;
    SIM_NEED(c && (!c->numAttrs || c->attrs));
    uint32_t cluster[3] = { 0 };
    bool pdl = false;
    for (unsigned k = 0; k < c->numAttrs; k++) {
        const CUlaunchAttribute *a = &c->attrs[k];
        if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            cluster[0] = a->value.clusterDim.x, cluster[1] = a->value.clusterDim.y, cluster[2] = a->value.clusterDim.z;
            if (!cluster[0] || !cluster[1] || !cluster[2])
                return sim_tell(CUDA_ERROR_INVALID_VALUE, "a cluster of (%u,%u,%u) blocks; accepted: at least 1 each", cluster[0],
                                cluster[1], cluster[2]);
        }
        if (a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            pdl = a->value.programmaticStreamSerializationAllowed;
        if (a->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && a->value.cooperative)
            return sim_tell(CUDA_ERROR_NOT_SUPPORTED, "cooperative launches are not simulated");
    }
    return launch(f, (uint32_t[3]){ c->gridDimX, c->gridDimY, c->gridDimZ }, (uint32_t[3]){ c->blockDimX, c->blockDimY, c->blockDimZ },
                  cluster, pdl, c->sharedMemBytes, c->hStream, params, extra);
}
