/* fake_nvrtc: a library with the names of NVRTC that "compiles" whatever it gets to the PTX in the file FAKE_NVRTC_PTX, in no time.
 * One file per process, first read before there are threads. FAKE_NVRTC_LOG, where set, names a file that gets one byte for each compile;
 * FAKE_NVRTC_LOG_SIZE is the size of every log that it tells. FAKE_NVRTC_GATE names a FIFO: while there is one, a compile waits at it for
 * a byte, and fails where that is an f.
 *
 * FAKE_NVRTC_EXIT: a compile lasts until it is told to stop by its flow callback, or, where that is "deaf", some time beyond that. What the
 * library has at exit aborts while a compile is under way, as NVRTC's own falls over one: objects that it has from the start, and one that
 * its first compile makes some time before it writes its byte. */
#include <fcntl.h>
#include <nvrtc.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST (1 << 20) /* bytes of the file */
#define CANCELLED 16   /* NVRTC_ERROR_CANCELLED of newer headers */

#pragma GCC visibility push(default)

struct _nvrtcProgram {
    char *ptx;
    size_t size;
    int (*stops)(void *, void *);
    void *user;
};

static atomic_int inside;
static pid_t process;                       /* that compiles: a child of fork() does not */
static atomic_flag made = ATOMIC_FLAG_INIT; /* by the first compile */

static void destroy(void)
{
    if (atomic_load(&inside) && getpid() == process)
        abort();
}

__attribute__((constructor)) static void make(void)
{
    if (getenv("FAKE_NVRTC_EXIT"))
        atexit(destroy);
}

static void some_time(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
}

static nvrtcResult last_long(nvrtcProgram p, const char *how)
{
    while (!p->stops || !p->stops(p->user, NULL))
        sched_yield();
    if (strcmp(how, "deaf") != 0)
        return (nvrtcResult)CANCELLED;
    some_time();
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcSetFlowCallback(nvrtcProgram p, int (*stops)(void *, void *), void *user)
{
    p->stops = stops;
    p->user = user;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(nvrtcResult r)
{
    return r == NVRTC_SUCCESS ? "NVRTC_SUCCESS" : r == NVRTC_ERROR_OUT_OF_MEMORY ? "NVRTC_ERROR_OUT_OF_MEMORY" : "NVRTC_ERROR_FAKE";
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *text, const char *name, int n, const char *const *headers,
                               const char *const *names)
{
    (void)text, (void)name, (void)n, (void)headers, (void)names;
    *out = calloc(1, sizeof **out);
    return *out ? NVRTC_SUCCESS : NVRTC_ERROR_OUT_OF_MEMORY;
}

static char wait_at_gate(void)
{
    const char *gate = getenv("FAKE_NVRTC_GATE");
    char byte = 0;
    int fd = gate ? open(gate, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return 0;
    if (read(fd, &byte, 1) != 1)
        byte = 0;
    close(fd);
    return byte;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int n, const char *const *options)
{
    (void)n, (void)options;
    const char *how = getenv("FAKE_NVRTC_EXIT");
    if (how) {
        process = getpid();
        atomic_fetch_add(&inside, 1);
        if (!atomic_flag_test_and_set(&made) && atexit(destroy) == 0)
            some_time();
    }
    const char *log = getenv("FAKE_NVRTC_LOG"), *path = getenv("FAKE_NVRTC_PTX");
    int fd = log ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd >= 0 && (write(fd, "x", 1) != 1 || close(fd) != 0))
        return NVRTC_ERROR_COMPILATION;
    if (how) {
        nvrtcResult r = last_long(p, how);
        atomic_fetch_sub(&inside, 1);
        return r;
    }
    if (wait_at_gate() == 'f')
        return NVRTC_ERROR_COMPILATION;
    static char *kept; /* read once: a test may leave no descriptor for the second time */
    static size_t size;
    FILE *f = path && !kept ? fopen(path, "rbe") : NULL;
    if (f) {
        kept = calloc(1, MOST);
        size = kept ? fread(kept, 1, MOST - 1, f) : 0;
        fclose(f);
    }
    p->ptx = kept ? malloc(size + 1) : NULL;
    if (!p->ptx)
        return kept ? NVRTC_ERROR_OUT_OF_MEMORY : NVRTC_ERROR_COMPILATION;
    memcpy(p->ptx, kept, size + 1);
    p->size = size;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *p)
{
    free((*p)->ptx);
    free(*p);
    *p = NULL;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram p, size_t *n)
{
    *n = p->size;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTX(nvrtcProgram p, char *to)
{
    if (p->size)
        memcpy(to, p->ptx, p->size);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t *n)
{
    return nvrtcGetPTXSize(p, n);
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char *to)
{
    return nvrtcGetPTX(p, to);
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t *n)
{
    const char *told = getenv("FAKE_NVRTC_LOG_SIZE");
    (void)p;
    *n = told ? strtoull(told, NULL, 10) : 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char *to)
{
    (void)p;
    *to = 0;
    return NVRTC_SUCCESS;
}
