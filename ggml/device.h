/* device: a device of ggml's that computes FLASH_ATTN_EXT alone, on fagen's simulator, with tensors in host memory: for checks of claims by
 * ggml's own test program, without a GPU. */
#ifndef FA_GGML_DEVICE_H
#define FA_GGML_DEVICE_H
#include "layout.h"

/* The registry "fagen" with one device of that name on `simulator` ("sim:sm_80"), or with none where that is NULL. One in a process: a
 * later call gives the first. */
fa_ggml_reg *fa_ggml_device_reg(const fa_ggml *g, const char *simulator);
#endif
