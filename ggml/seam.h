/* seam: fagen's attention for a ggml that is built from source with a call of it, by libfagen_ggml. C99 and C++11, needs no header of ggml.
 *
 * Three places of ggml's CUDA backend call it, for an operation FLASH_ATTN_EXT:
 *     where a device tells which operations it supports         theirs || fagen_ggml_supports(s, node)
 *     where a graph's computation begins                        fagen_ggml_begin(s)
 *     where the operation is computed, before what is there:
 *         if (fagen_ggml_supports(s, node) && fagen_ggml_compute(s, node, stream, captured)) return;
 * s is made once for a device and stream (a backend of ggml's), and used by one thread at a time. */
#ifndef FAGEN_GGML_SEAM_H
#define FAGEN_GGML_SEAM_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FAGEN_GGML_API __attribute__((visibility("default")))

struct ggml_tensor;

/* ggml's functions of these names; enumerations are passed as int. */
typedef struct fagen_ggml_functions {
    uint32_t size; /* sizeof(fagen_ggml_functions) */
    size_t (*ggml_tensor_overhead)(void);
    const char *(*ggml_op_name)(int32_t op);
    const char *(*ggml_type_name)(int32_t type);
    size_t (*ggml_type_size)(int32_t type);
    int64_t (*ggml_blck_size)(int32_t type);
} fagen_ggml_functions;

typedef struct fagen_ggml_seam fagen_ggml_seam;

/* device: the number of CUDA's device; simulator: NULL, or "sim:ARCH" in its place. NULL: there is no driver, no NVRTC, or this ggml is
 * unknown: a line of standard error tells, and everything stays ggml's. */
FAGEN_GGML_API fagen_ggml_seam *fagen_ggml_seam_open(const fagen_ggml_functions *f, int device, const char *simulator);
FAGEN_GGML_API void fagen_ggml_seam_close(fagen_ggml_seam *s); /* NULL is fine */

/* 1: a kernel computes the node. s NULL: 0. */
FAGEN_GGML_API int fagen_ggml_supports(fagen_ggml_seam *s, const struct ggml_tensor *node);

/* A graph begins: masks may hold other numbers than before. */
FAGEN_GGML_API void fagen_ggml_begin(fagen_ggml_seam *s);

/* Puts the node on the stream, a cudaStream_t of the device. captured: 1 while it is captured: nothing is waited for then. 0: nothing was
 * launched that writes the result, and a line tells why. */
FAGEN_GGML_API int fagen_ggml_compute(fagen_ggml_seam *s, const struct ggml_tensor *node, void *stream, int captured);

/* What ggml calls of a library that GGML_BACKEND_PATH names. */
FAGEN_GGML_API void *ggml_backend_init(void);

/* Lines about this library: what it claims, what FAGEN_GGML says. Cut at n - 1 bytes; returns the whole's length. */
FAGEN_GGML_API size_t fagen_ggml_report(char *buf, size_t n);

#ifdef __cplusplus
}
#endif
#endif
