/* band: whether rows of a mask are those of one of fagen's own masks. */
#ifndef FA_GGML_BAND_H
#define FA_GGML_BAND_H
#include <stdbool.h>
#include <stdint.h>

/* What kernels.cu tells of a row. */
typedef struct fa_ggml_row {
    int32_t first, past, live, other;
} fa_ggml_row;

/* A launch over keys `begin` to `begin + sk` - 1 with this mask is one with the mask that was looked at. */
typedef struct fa_ggml_band {
    int32_t mask; /* fa_mask */
    int32_t begin, sk, offset, left;
} fa_ggml_band;

/* Rows of `masks` masks, sq each, over sk keys. false: they are no band, or not all one, or some pair that is left has another number than
 * 0. */
bool fa_ggml_band_of(const fa_ggml_row *rows, int64_t masks, int32_t sq, int32_t sk, fa_ggml_band *out);
#endif
