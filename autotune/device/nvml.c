/* nvml: libnvidia-ml.so.1 by dlopen, by prototypes of its own. */
#include "nvml.h"
#include "clock.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As in NVIDIA's nvml.h: what is used of it, in the sizes that its ABI has had since 2016 (processes: v1 in 11.x and older). */
typedef struct nvml_device *nvml_device;
typedef struct nvml_process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
} nvml_process;
typedef struct nvml_process_v1 {
    unsigned pid;
    unsigned long long used;
} nvml_process_v1;
enum {
    NVML_OK = 0,
    NVML_SM_CLOCK = 1,
    NVML_TEMPERATURE = 0,
    NVML_HW_SLOWDOWN = 0x8,
    NVML_SW_THERMAL = 0x20,
    NVML_HW_THERMAL = 0x40,
    NVML_POWER_BRAKE = 0x80,
};
#define HELD_DOWN (NVML_HW_SLOWDOWN | NVML_SW_THERMAL | NVML_HW_THERMAL | NVML_POWER_BRAKE)
#define PROCESSES 64
#define OURS_MOST 8

struct fa_nvml {
    void *lib;
    nvml_device device;
    int (*shutdown)(void);
    int (*clock)(nvml_device, int, unsigned *);
    int (*temperature)(nvml_device, int, unsigned *);
    int (*reasons)(nvml_device, unsigned long long *);
    int (*processes)(nvml_device, unsigned *, void *);
    size_t process_size;
    int ours[OURS_MOST], n_ours;
    double asked;    /* when the processes were last listed, which takes milliseconds */
    int32_t foreign; /* what was found then */
};

/* dlsym gives an object's address where a function's is meant: ISO C has no cast for it. */
static void *function(void *lib, const char *const *names, void *to)
{
    void *f = NULL;
    for (int i = 0; !f && names[i]; i++)
        f = dlsym(lib, names[i]);
    memcpy(to, &f, sizeof f);
    return f;
}
#define FUNCTION(lib, to, ...) function(lib, (const char *const[]){ __VA_ARGS__, NULL }, &(to))

fa_nvml *fa_nvml_open(const char *path, const char *bus, char *why, size_t n)
{
    int (*init)(void) = NULL, (*find)(const char *, nvml_device *) = NULL;
    char *reason = why ? why : (char[1]){ 0 };
    n = why ? n : 1;
    fa_nvml *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->lib = dlopen(path ? path : FA_NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!m->lib) {
        snprintf(reason, n, "%s", dlerror());
        free(m);
        return NULL;
    }
    bool found = FUNCTION(m->lib, init, "nvmlInit_v2") && FUNCTION(m->lib, m->shutdown, "nvmlShutdown") &&
                 FUNCTION(m->lib, find, "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId");
    if (!found)
        snprintf(reason, n, "%s has no nvmlInit_v2, nvmlShutdown or nvmlDeviceGetHandleByPciBusId_v2", path ? path : FA_NVML_LIBRARY);
    int r = found ? init() : -1;
    if (found && r != NVML_OK)
        snprintf(reason, n, "nvmlInit_v2 gives %d", r);
    found = found && r == NVML_OK;
    if (found && (r = find(bus, &m->device)) != NVML_OK) {
        snprintf(reason, n, "NVML knows no device %s: %d", bus, r);
        m->shutdown();
        found = false;
    }
    if (!found) {
        dlclose(m->lib);
        free(m);
        return NULL;
    }
    FUNCTION(m->lib, m->clock, "nvmlDeviceGetClockInfo");
    FUNCTION(m->lib, m->temperature, "nvmlDeviceGetTemperature");
    FUNCTION(m->lib, m->reasons, "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons");
    m->process_size = sizeof(nvml_process);
    if (!FUNCTION(m->lib, m->processes, "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2") &&
        FUNCTION(m->lib, m->processes, "nvmlDeviceGetComputeRunningProcesses"))
        m->process_size = sizeof(nvml_process_v1);
    fa_nvml_expect(m, NULL, 0);
    return m;
}

void fa_nvml_close(fa_nvml *m)
{
    if (!m)
        return;
    m->shutdown();
    dlclose(m->lib);
    free(m);
}

void fa_nvml_expect(fa_nvml *m, const int *pids, int n)
{
    if (!m)
        return;
    m->ours[0] = (int)getpid();
    m->n_ours = 1;
    for (int i = 0; i < n && m->n_ours < OURS_MOST; i++)
        m->ours[m->n_ours++] = pids[i];
}

#define ASK_AGAIN 0.2 /* seconds */

static int32_t foreign(const fa_nvml *m)
{
    union {
        nvml_process process[PROCESSES];
        char bytes[PROCESSES * sizeof(nvml_process)];
    } list;
    unsigned n = PROCESSES;
    int32_t known = 0;
    if (!m->processes || m->processes(m->device, &n, &list) != NVML_OK || n > PROCESSES)
        return 0;
    for (unsigned i = 0; i < n; i++) {
        unsigned pid;
        memcpy(&pid, list.bytes + i * m->process_size, sizeof pid);
        for (int k = 0; k < m->n_ours; k++)
            known += pid == (unsigned)m->ours[k];
    }
    int32_t others = (int32_t)n - (known ? known : m->n_ours);
    return others > 0 ? others : 0;
}

fa_telemetry fa_nvml_read(fa_nvml *m)
{
    fa_telemetry g = { 0 };
    unsigned mhz = 0, celsius = 0;
    unsigned long long reasons = 0;
    if (!m)
        return g;
    if (m->clock && m->clock(m->device, NVML_SM_CLOCK, &mhz) == NVML_OK)
        g.clock_mhz = (int32_t)mhz;
    if (m->temperature && m->temperature(m->device, NVML_TEMPERATURE, &celsius) == NVML_OK)
        g.temperature = (int32_t)celsius;
    if (m->reasons && m->reasons(m->device, &reasons) == NVML_OK)
        g.throttled = (reasons & HELD_DOWN) != 0;
    if (m->asked == 0 || fa_clock() - m->asked > ASK_AGAIN) {
        m->asked = fa_clock();
        m->foreign = foreign(m);
    }
    g.foreign = m->foreign;
    return g;
}
