/* set: the kernels that a context's bundles hold, looked through and in order. */
#ifndef FA_RUNTIME_BUNDLE_SET_H
#define FA_RUNTIME_BUNDLE_SET_H
#include "blob.h"
#include "gen/config.h"
#include "gen/source.h"
#include "runtime/build/kernel.h"
#include "runtime/context/device.h"

typedef struct fa_bundle_set_row {
    fa_problem problem; /* normalized */
    fa_config config;
    const fa_arch *arch; /* the table's row */
    const fa_blob *bundle;
    const fa_blob_row *row;
    const fa_blob_image *image;
} fa_bundle_set_row;

typedef struct fa_bundle_set {
    fa_bundle_set_row *row;
    size_t n;
    fa_blob **blob; /* of each bundle */
    size_t blobs;
} fa_bundle_set;

/* bundles: ends in NULL; NULL = none. Looks at everything but the bytes of the images; FA_INVALID names bundle, row or image, field,
 * value and what is accepted. */
fa_status fa_bundle_set_open(fa_bundle_set *out, const fa_bundle *const *bundles);
void fa_bundle_set_close(fa_bundle_set *s);

/* FA_BUNDLE_SET_OWN: of the very arch and problem class. FA_BUNDLE_SET_ANY: whatever runs there, the former first: then rows at multiples
 * of less, then a cubin of an older chip of the same major version, then PTX of an older chip. Of those that are alike, the nearest shape.
 * NULL where there is none, also when it needs more shared memory than the budget. */
typedef enum fa_bundle_set_fit { FA_BUNDLE_SET_OWN, FA_BUNDLE_SET_ANY } fa_bundle_set_fit;
const fa_bundle_set_row *fa_bundle_set_find(const fa_bundle_set *s, const fa_problem *p, const fa_device *d, int32_t budget,
                                            fa_bundle_set_fit fit);

/* What a launch of the image needs to know; no text. */
void fa_bundle_set_source(fa_source *out, const fa_blob_image *image);

/* Verified, loaded, and kept by the context like any other kernel. FA_INVALID: the bytes were changed since they were written;
 * FA_DEVICE: the driver refused them. Thread-safe. */
fa_status fa_bundle_set_load(fa_context *ctx, const fa_bundle_set_row *r, const fa_kernel **out);
#endif
