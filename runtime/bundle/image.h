/* image: one image of a bundle as a kernel of the context. */
#ifndef FA_RUNTIME_BUNDLE_IMAGE_H
#define FA_RUNTIME_BUNDLE_IMAGE_H
#include "blob.h"
#include "runtime/build/kernel.h"

/* Verified, loaded, and kept by the context like any other kernel, which says that it is from there ("bundle"). s: what a launch of it
 * needs to know. FA_INVALID: the bytes were changed since they were written; FA_DEVICE: the driver refused them. Thread-safe. */
fa_status fa_bundle_image_load(fa_context *ctx, const fa_blob *b, const fa_blob_image *image, const fa_source *s, const char *from,
                               const fa_kernel **out);

/* The image's bytes against its checksum, which is the key; the message names bundle and image. */
fa_status fa_bundle_image_check(const fa_blob *b, const fa_blob_image *image, fa_key *key);
#endif
