/* buffer: one tensor in device memory with canaries around it. */
#include "buffer.h"
#include "gen/error.h"
#include "runtime/context/driver_cuda.h"
#include <stdlib.h>
#include <string.h>

#define WHOLE ((size_t)1 << 30) /* bytes up to which a buffer is copied as one */
#define PIECE 32                /* bytes compared on either side of a row, at most the gap that every far layout leaves */

static size_t row_count(const fa_layout *l)
{
    return (size_t)l->b * (size_t)l->s * (size_t)l->h;
}

static size_t row_bytes(const fa_buffer *b)
{
    return (size_t)b->layout.width * (size_t)b->bytes;
}

fa_status fa_buffer_open(fa_buffer *out, const cu_driver *d, const fa_layout *l, int32_t bytes, int32_t skew, int32_t fill)
{
    *out = (fa_buffer){ .driver = d, .layout = *l, .bytes = bytes, .fill = fill };
    int64_t before = l->first <= l->last ? -l->first * bytes : 0, span = l->first <= l->last ? (l->last - l->first + 1) * bytes : 0;
    out->origin = (size_t)((before + FA_CANARY + 255) / 256 * 256 + skew);
    out->size = out->origin - (size_t)before + (size_t)span + FA_CANARY;
    out->pieces = out->size > WHOLE;
    out->image_size = out->pieces ? row_count(l) * (row_bytes(out) + 2 * PIECE) : out->size;
    out->image = malloc(out->image_size);
    out->back = malloc(out->image_size);
    if (!out->image || !out->back)
        return fa_fail(FA_NOMEM, "no memory for the %zu bytes of a tensor", out->image_size);
    memset(out->image, fill, out->image_size);
    CUresult r = d->cuMemAlloc(&out->base, out->size);
    return r == CUDA_SUCCESS ? FA_OK : fa_wrap(fa_driver_check(d, r, "cuMemAlloc"), "%zu bytes of a tensor", out->size);
}

void fa_buffer_close(fa_buffer *b)
{
    if (b->base)
        b->driver->cuMemFree(b->base);
    free(b->image);
    free(b->back);
    *b = (fa_buffer){ 0 };
}

CUdeviceptr fa_buffer_address(const fa_buffer *b)
{
    return b->base + b->origin;
}

/* Bytes from the start of the allocation. */
static size_t offset_of(const fa_buffer *b, int32_t batch, int32_t s, int32_t h)
{
    return (size_t)((int64_t)b->origin + fa_layout_row(&b->layout, batch, s, h) * b->bytes);
}

uint8_t *fa_buffer_row(const fa_buffer *b, uint8_t *in, int32_t batch, int32_t s, int32_t h)
{
    if (!b->pieces)
        return in + offset_of(b, batch, s, h);
    size_t row = ((size_t)batch * (size_t)b->layout.s + (size_t)s) * (size_t)b->layout.h + (size_t)h;
    return in + row * (row_bytes(b) + 2 * PIECE) + PIECE;
}

/* Pieces overlap where rows lie close together; then only rows are copied, and what lies between is left alone. */
static fa_status copy(const fa_buffer *b, bool up)
{
    const cu_driver *d = b->driver;
    if (!b->pieces) {
        CUresult r = up ? d->cuMemcpyHtoD(b->base, b->image, b->size) : d->cuMemcpyDtoH(b->back, b->base, b->size);
        return fa_driver_check(d, r, "copy of a tensor");
    }
    const fa_layout *l = &b->layout;
    for (int pass = up ? 0 : 1; pass < 2; pass++) /* up: the surroundings of all rows first, then the rows */
        for (int32_t batch = 0; batch < l->b; batch++)
            for (int32_t s = 0; s < l->s; s++)
                for (int32_t h = 0; h < l->h; h++) {
                    size_t around = up && pass == 0 ? PIECE : 0, n = row_bytes(b) + 2 * around;
                    CUdeviceptr at = b->base + offset_of(b, batch, s, h) - around;
                    uint8_t *host = fa_buffer_row(b, up ? b->image : b->back, batch, s, h) - around;
                    CUresult r = up ? d->cuMemcpyHtoD(at, host, n) : d->cuMemcpyDtoH(host, at, n);
                    if (r != CUDA_SUCCESS)
                        return fa_driver_check(d, r, "copy of a row");
                }
    return FA_OK;
}

fa_status fa_buffer_upload(const fa_buffer *b)
{
    return copy(b, true);
}

fa_status fa_buffer_upload_rows(fa_buffer *b, const uint8_t *use)
{
    const fa_layout *l = &b->layout;
    for (int32_t batch = 0; batch < l->b; batch++)
        for (int32_t s = 0; s < l->s; s++)
            for (int32_t h = 0; h < l->h && (!use || use[(int64_t)batch * l->s + s]); h++) {
                CUresult r =
                    b->driver->cuMemcpyHtoD(b->base + offset_of(b, batch, s, h), fa_buffer_row(b, b->image, batch, s, h), row_bytes(b));
                if (r != CUDA_SUCCESS)
                    return fa_driver_check(b->driver, r, "copy of a row");
            }
    fa_status st = fa_buffer_download(b);
    if (st == FA_OK)
        memcpy(b->image, b->back, b->image_size);
    return st;
}

fa_status fa_buffer_download(const fa_buffer *b)
{
    if (b->pieces)
        memset(b->back, b->fill, b->image_size);
    return copy(b, false);
}
