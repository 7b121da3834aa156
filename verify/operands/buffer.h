/* buffer: one tensor in device memory with canaries around it and in its gaps, and the bytes it should hold. */
#ifndef FA_VERIFY_OPERANDS_BUFFER_H
#define FA_VERIFY_OPERANDS_BUFFER_H
#include "layout.h"
#include "sim/driver.h"
#include <fagen.h>
#include <stddef.h>

#define FA_CANARY 256 /* bytes before a buffer and after it */

typedef struct fa_buffer {
    const cu_driver *driver;
    fa_layout layout;
    int32_t bytes; /* of an element */
    int32_t fill;  /* of gaps and canaries */
    bool pieces;   /* too wide for one copy: only the rows and the bytes next to them are kept and compared */
    CUdeviceptr base;
    size_t size, origin; /* bytes allocated; where element [0, 0, 0, 0] is */
    uint8_t *image;      /* what the device should hold: all of it, or per row FA_PIECE bytes, the row and FA_PIECE bytes */
    uint8_t *back;       /* what it held when last read */
    size_t image_size;
} fa_buffer;

/* skew: bytes by which element [0, 0, 0, 0] lies beyond a multiple of 256. The image is all `fill`. */
fa_status fa_buffer_open(fa_buffer *out, const cu_driver *d, const fa_layout *l, int32_t bytes, int32_t skew, int32_t fill);
void fa_buffer_close(fa_buffer *b); /* zeros are fine */
CUdeviceptr fa_buffer_address(const fa_buffer *b);
/* Where the row lies in the image, or in what was read back. */
uint8_t *fa_buffer_row(const fa_buffer *b, uint8_t *in, int32_t batch, int32_t s, int32_t h);
fa_status fa_buffer_upload(const fa_buffer *b); /* the image */
/* Of a buffer that was not written yet, the rows whose byte in use[batch * s + row] is set, with NULL all rows, and nothing else: the rest
 * stays as the device gave it, and becomes the image's. */
fa_status fa_buffer_upload_rows(fa_buffer *b, const uint8_t *use);
fa_status fa_buffer_download(const fa_buffer *b); /* to back */
#endif
