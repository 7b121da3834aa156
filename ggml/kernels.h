/* kernels: the text of kernels.cu, embedded by the build. */
#ifndef FA_GGML_KERNELS_H
#define FA_GGML_KERNELS_H
#include <stddef.h>

typedef struct fa_ggml_text {
    const char *name, *bytes;
    size_t size;
} fa_ggml_text;
extern const fa_ggml_text fa_ggml_kernels[]; /* a name of NULL comes last */
#endif
