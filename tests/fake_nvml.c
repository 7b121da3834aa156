/* fake_nvml: a library of NVML's functions that tells what FAKE_NVML says: "CLOCK,TEMPERATURE,REASONS,PID PID ...". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
} process;

#define PUBLIC __attribute__((visibility("default")))
PUBLIC int nvmlInit_v2(void);
PUBLIC int nvmlShutdown(void);
PUBLIC int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device);
PUBLIC int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz);
PUBLIC int nvmlDeviceGetTemperature(void *device, int which, unsigned *celsius);
PUBLIC int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons);
PUBLIC int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, process *list);

static const char *field(int i)
{
    const char *s = getenv("FAKE_NVML");
    for (; s && i > 0; i--)
        s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL;
    return s ? s : "";
}

int nvmlInit_v2(void)
{
    return strcmp(field(0), "broken") ? 0 : 9;
}
int nvmlShutdown(void)
{
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
    static int it;
    *device = &it;
    return strcmp(bus, "0000:19:00.0") ? 6 : 0;
}

int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz)
{
    (void)device;
    *mhz = (unsigned)atoi(field(0));
    return which == 1 ? 0 : 2;
}

int nvmlDeviceGetTemperature(void *device, int which, unsigned *celsius)
{
    (void)device;
    *celsius = (unsigned)atoi(field(1));
    return which == 0 ? 0 : 2;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
    (void)device;
    *reasons = strtoull(field(2), NULL, 16);
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, process *list)
{
    unsigned have = 0;
    char *end;
    (void)device;
    for (const char *s = field(3); have < *n; s = end) {
        unsigned long pid = strtoul(s, &end, 10);
        if (end == s)
            break;
        list[have++] = (process){ (unsigned)pid, 1 << 20, ~0u, ~0u };
    }
    *n = have;
    return 0;
}
