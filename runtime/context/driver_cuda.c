/* driver_cuda: libcuda.so.1 by dlopen. */
#include "driver_cuda.h"
#include "exit.h"
#include "fork.h"
#include "gen/error.h"
#include "gen/source.h"
#include "gen/text.h"
#include "sim/sim.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static cu_driver table;
static int ready;
static unsigned forks; /* fa_forks when the driver was started */

/* The macro of cuda.h expands before the text is taken: cuMemAlloc gives "cuMemAlloc_v2". */
#define TEXT(x) #x
#define EXPANDED(x) TEXT(x)

static const struct {
    const char *name;
    size_t at;
} symbols[] = {
#define X(f) { EXPANDED(f), offsetof(cu_driver, f) },
    CU_DRIVER_FUNCTIONS(X)
#undef X
};

/* Names that later headers gave a suffix to without changing what the function takes: older drivers have them without. */
static const char *const renamed[][2] = { { "cuEventElapsedTime_v2", "cuEventElapsedTime" } };

static void *find(void *lib, const char *name)
{
    void *f = dlsym(lib, name);
    for (size_t i = 0; !f && i < sizeof renamed / sizeof *renamed; i++)
        if (strcmp(name, renamed[i][0]) == 0)
            f = dlsym(lib, renamed[i][1]);
    return f;
}

static fa_status fill(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return fa_fail(FA_NO_DRIVER, "libcuda.so.1: %s; an NVIDIA driver is needed, or device \"sim:sm_80\"",
                       fa_text_after(dlerror(), "libcuda.so.1"));
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *f = find(lib, symbols[i].name);
        if (!f) {
            dlclose(lib);
            return fa_fail(FA_NO_DRIVER, "libcuda.so.1: symbol %s is missing; accepted: a driver of CUDA 12.4 or newer", symbols[i].name);
        }
        memcpy((char *)&table + symbols[i].at, &f, sizeof f);
    }
    table.name = "cuda";
    int version = 0;
    CUresult r = table.cuInit(0);
    if (r == CUDA_SUCCESS)
        r = table.cuDriverGetVersion(&version);
    if (r != CUDA_SUCCESS) {
        const char *name = NULL;
        table.cuGetErrorName(r, &name);
        return fa_fail(FA_NO_DRIVER, "cuInit: %s; the driver is there, but no device can be used", name ? name : "error");
    }
    if (version < FA_DRIVER_OLDEST)
        return fa_fail(FA_NO_DRIVER, "libcuda.so.1: CUDA %d.%d; accepted: 12.4 or newer", version / 1000, version % 1000 / 10);
    fa_exit_watch();
    fa_fork_watch();
    forks = atomic_load(&fa_forks);
    ready = 1;
    return FA_OK;
}

fa_status fa_driver_cuda(const cu_driver **out)
{
    pthread_mutex_lock(&mutex);
    fa_status st = ready ? FA_OK : fill();
    if (ready && forks != atomic_load(&fa_forks)) {
        *out = NULL;
        pthread_mutex_unlock(&mutex);
        return fa_fail(
            FA_NO_DRIVER,
            "cuInit: a parent of this process used the driver before fork(), which CUDA does not survive; accepted: a process that "
            "was forked before the first fa_create(), or one that called exec");
    }
    pthread_mutex_unlock(&mutex);
    *out = st == FA_OK ? &table : NULL;
    return st;
}

fa_status fa_driver_check(const cu_driver *d, CUresult r, const char *call)
{
    if (r == CUDA_SUCCESS)
        return FA_OK;
    const char *name = NULL, *text = NULL, *detail = d->detail ? d->detail() : "";
    if (d->cuGetErrorName(r, &name) != CUDA_SUCCESS)
        name = NULL;
    if (d->cuGetErrorString(r, &text) != CUDA_SUCCESS)
        text = NULL;
    const char *place = detail && strstr(detail, "templates/") ? "\n" FA_SOURCE_HINT : "";
    bool stopped = r == CUDA_ERROR_LAUNCH_TIMEOUT && d->takes_ptx && sim_interrupted();
    return fa_fail(r == CUDA_ERROR_OUT_OF_MEMORY ? FA_NOMEM
                   : stopped                     ? FA_INTERRUPTED
                                                 : FA_DEVICE,
                   "%s: %s (%d): %s%s%s%s", call, name ? name : "unknown error", (int)r, text ? text : "", detail && detail[0] ? "\n" : "",
                   detail ? detail : "", place);
}

fa_status fa_driver_relax(const cu_driver *d, CUstreamCaptureMode *mode)
{
    *mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    return fa_driver_check(d, d->cuThreadExchangeStreamCaptureMode(mode), "cuThreadExchangeStreamCaptureMode");
}

void fa_driver_restore(const cu_driver *d, CUstreamCaptureMode mode)
{
    d->cuThreadExchangeStreamCaptureMode(&mode);
}
