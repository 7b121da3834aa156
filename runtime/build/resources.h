/* resources: what ptxas says a compiled kernel uses, read from its log. */
#ifndef FA_RUNTIME_BUILD_RESOURCES_H
#define FA_RUNTIME_BUILD_RESOURCES_H
#include <stdbool.h>
#include <stdint.h>

typedef struct fa_resources {
    bool known;           /* false: no ptxas ran, or its log has no such entry; all else is 0 */
    int32_t registers;    /* per thread */
    int32_t spill_stores; /* bytes per thread */
    int32_t spill_loads;
    int32_t stack;  /* local memory per thread, bytes */
    int32_t smem;   /* static shared memory, bytes */
    char note[120]; /* what ptxas did that no config should have: "C7510: wgmma.mma_async instructions are serialized due to ...",
                       'setmaxnreg' ignored, a fence or a wait of its own; "" = nothing */
} fa_resources;

/* Of one entry function, out of the log that --ptxas-options=-v makes. log may be NULL. */
fa_resources fa_resources_parse(const char *log, const char *entry);
#endif
