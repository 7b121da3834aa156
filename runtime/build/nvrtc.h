/* nvrtc: NVIDIA's run-time compiler, found and opened at run time. */
#ifndef FA_RUNTIME_BUILD_NVRTC_H
#define FA_RUNTIME_BUILD_NVRTC_H
#include "gen/text.h"
#include <fagen.h>
#include <nvrtc.h>

#define FA_NVRTC_FUNCTIONS(X) \
    X(nvrtcVersion)           \
    X(nvrtcGetErrorString)    \
    X(nvrtcCreateProgram)     \
    X(nvrtcCompileProgram)    \
    X(nvrtcDestroyProgram)    \
    X(nvrtcGetPTXSize)        \
    X(nvrtcGetPTX)            \
    X(nvrtcGetCUBINSize)      \
    X(nvrtcGetCUBIN)          \
    X(nvrtcGetProgramLogSize) \
    X(nvrtcGetProgramLog)

typedef struct fa_nvrtc {
#define X(f) __typeof__(f) *f;
    FA_NVRTC_FUNCTIONS(X)
#undef X
    nvrtcResult (*nvrtcSetFlowCallback)(nvrtcProgram, int (*)(void *, void *), void *); /* NULL before 12.8 or so */
    int major, minor;
    char path[1024];   /* of the library that was loaded */
    char name[24];     /* "nvrtc 13.0" */
    char identity[96]; /* name and the library's build id, or a digest of its ends: a part of every cache key */
} fa_nvrtc;

/* path: the library, and no other; NULL = FAGEN_NVRTC, else the loader's path, CUDA_HOME, CUDA_PATH, /usr/local/cuda and the
 * places of Python wheels. looked (may be NULL) gets one line per place: "path: what was found". The library stays open
 * for the life of the process. FA_NO_NVRTC when none is 12.4 or newer. */
fa_status fa_nvrtc_open(fa_nvrtc *out, const char *path, fa_text *looked);
#endif
