/* A compiler for tests, with the names of NVRTC: it gives back the text it was given, says in a file what it compiled, and can wait for
 * others or die while it compiles. FAKE_COMPILER names the file, a struct fake_compiler shared by all processes. */
#include "fake_compiler.h"
#include <fcntl.h>
#include <nvrtc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct _nvrtcProgram {
    char *text;
    unsigned key;
};

static struct fake_compiler *shared(void)
{
    static struct fake_compiler *s;
    const char *path = getenv("FAKE_COMPILER");
    if (!s && path) {
        int fd = open(path, O_RDWR | O_CLOEXEC);
        void *m = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        s = m == MAP_FAILED ? NULL : m;
        if (fd >= 0)
            close(fd);
    }
    return s;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT nvrtcResult nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return NVRTC_SUCCESS;
}

EXPORT const char *nvrtcGetErrorString(nvrtcResult r)
{
    return r == NVRTC_SUCCESS ? "success" : "failure";
}

EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *text, const char *name, int n, const char *const *headers,
                                      const char *const *names)
{
    (void)n, (void)headers, (void)names;
    nvrtcProgram p = calloc(1, sizeof *p);
    if (!p || !(p->text = strdup(text)) || sscanf(name, "key%u", &p->key) != 1 || p->key >= FAKE_COMPILER_KEYS) {
        if (p)
            free(p->text);
        free(p);
        return NVRTC_ERROR_INVALID_INPUT;
    }
    *out = p;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int n, const char *const *options)
{
    struct fake_compiler *s = shared();
    (void)n, (void)options;
    if (!s)
        return NVRTC_ERROR_INTERNAL_ERROR;
    atomic_fetch_add(&s->compiles[p->key], 1);
    int inside = atomic_fetch_add(&s->inside, 1) + 1;
    for (int most = atomic_load(&s->most); inside > most && !atomic_compare_exchange_weak(&s->most, &most, inside);)
        ;
    if (atomic_load(&s->die_once) == (int)p->key + 1 && atomic_exchange(&s->die_once, 0)) {
        atomic_fetch_sub(&s->inside, 1);
        raise(SIGKILL);
    }
    while (atomic_load(&s->most) < atomic_load(&s->wait_for))
        sched_yield();
    struct timespec t = { 0, 1000L * s->microseconds };
    nanosleep(&t, NULL);
    atomic_fetch_sub(&s->inside, 1);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *p)
{
    free((*p)->text);
    free(*p);
    *p = NULL;
    return NVRTC_SUCCESS;
}

static nvrtcResult size_of(nvrtcProgram p, size_t *n)
{
    *n = strlen(p->text) + 1;
    return NVRTC_SUCCESS;
}

static nvrtcResult bytes_of(nvrtcProgram p, char *out)
{
    strcpy(out, p->text);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetPTXSize(nvrtcProgram p, size_t *n)
{
    return size_of(p, n);
}
EXPORT nvrtcResult nvrtcGetPTX(nvrtcProgram p, char *out)
{
    return bytes_of(p, out);
}
EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t *n)
{
    return size_of(p, n);
}
EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char *out)
{
    return bytes_of(p, out);
}

EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t *n)
{
    (void)p;
    *n = 1;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char *out)
{
    (void)p;
    out[0] = 0;
    return NVRTC_SUCCESS;
}
