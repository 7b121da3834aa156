/* bundle_maker: small bundles for tests, by the writer of the library. */
#ifndef FA_TESTS_BUNDLE_MAKER_H
#define FA_TESTS_BUNDLE_MAKER_H
#include "runtime/bundle/set.h"

enum { MAKER_ROWS = 5, MAKER_IMAGE = 70 }; /* no multiple of 8: zeros stand after the images */

/* One row of a bundle; its image has 32 threads more than the one before, which is how a launch tells it. */
typedef struct maker_item {
    const char *arch; /* NULL ends the list */
    int ptx, align, n, smem;
} maker_item;

/* All of it may be changed between maker_fill() and maker_write(). */
typedef struct maker {
    fa_blob blob;
    fa_blob_row row[MAKER_ROWS];
    fa_blob_image image[MAKER_ROWS];
    fa_blob_step step[MAKER_ROWS][FA_SOURCE_STEPS];
    unsigned char bytes[MAKER_ROWS][MAKER_IMAGE];
    char check[MAKER_ROWS][33], layout[17];
    fa_text text; /* what was written */
} maker;

void maker_fill(maker *m, const maker_item *items);
/* Into m->text, in place of what is there; the checksums of the images first. */
const fa_bundle *maker_write(maker *m);
/* Both. */
const fa_bundle *maker_make(maker *m, const maker_item *items);
#endif
