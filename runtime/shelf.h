/* shelf: the kernels that a context's bundles hold, looked through and in order. */
#ifndef FA_RUNTIME_SHELF_H
#define FA_RUNTIME_SHELF_H
#include "device.h"
#include "gen/config.h"
#include "gen/source.h"
#include "kernel.h"

typedef struct fa_shelf_row {
    fa_problem problem;
    fa_config config;
    const fa_arch *arch;       /* the table's row */
    const fa_bundle *bundle;
    const fa_bundle_row *row;
    const fa_bundle_image *image;
} fa_shelf_row;

typedef struct fa_shelf {
    fa_shelf_row *row;
    size_t n;
} fa_shelf;

/* bundles: ends in NULL; NULL = none. Looks at everything but the bytes of the images; FA_INVALID names bundle, row or image, field,
 * value and what is accepted. */
fa_status fa_shelf_open(fa_shelf *out, const fa_bundle *const *bundles);
void fa_shelf_close(fa_shelf *s);

/* FA_SHELF_OWN: of the very arch and problem class. FA_SHELF_ANY: whatever runs there, the former first: then rows at multiples of
 * less, then a cubin of an older chip of the same major version, then PTX of an older chip. Of those that are alike, the nearest
 * shape. NULL where there is none, also when it needs more shared memory than the budget. */
typedef enum fa_shelf_fit { FA_SHELF_OWN, FA_SHELF_ANY } fa_shelf_fit;
const fa_shelf_row *fa_shelf_find(const fa_shelf *s, const fa_problem *p, const fa_device *d, int32_t budget, fa_shelf_fit fit);

/* What a launch of the image needs to know; no text. */
void fa_shelf_source(fa_source *out, const fa_bundle_image *image);

/* Verified, loaded, and kept by the context like any other kernel. FA_INVALID: the bytes or the launch rule were changed since they were
 * written; FA_DEVICE: the driver refused them. Thread-safe. */
fa_status fa_shelf_load(fa_context *ctx, const fa_shelf_row *r, const fa_kernel **out);

/* fa_bundle.params of this library, and fa_bundle_image.check of an image: XXH3 over its bytes and all that decides how they are launched. */
uint64_t fa_shelf_params(void);
fa_key fa_shelf_check(const fa_bundle_image *image);
#endif
