/* blob: the bytes of a fa_bundle: their layout, its writer (blob.c) and its reader (reader.c).
 *
 *   head     48 bytes: magic "fagen.B\n"; format; number of tables; offsets of the texts and of the images; 8 bytes size of all;
 *            8 bytes XXH3-64 of the tables and texts; 8 bytes XXH3-64 of the 40 bytes before it
 *   tables   each: name, number of columns, number of rows; the names of the columns; the cells, row by row
 *   texts    NUL-terminated; the first is empty
 *   images   cubins and PTX one after the other, in the order of their table; then zeros up to a multiple of 8
 *
 * Every number is little-endian; all but the 8-byte ones named above are 32 bits wide. A text is its offset into the texts, and 0 is "".
 * Operands, extents, values and workspace buffers are texts, as the templates name them; a problem's types, mask and op are the enums of
 * fagen.h. No index of a table of this version is in a blob.
 * There is no pointer and no padding: each byte is under one of the checksums or is a zero that the reader looks at.
 *
 * Columns are known by their names. A column that a blob does not have is 0 or "". A column that the reader does not know may hold nothing
 * but 0, and a table that it does not know no rows. So a field that comes later, with 0 = as before, is one row in a list of
 * columns.c and breaks no blob of before; a kernel that needs it is refused by a library that lacks it. Rows of a child table (the
 * steps of an image, the maps of a step) stand in the order of their parents, which hold how many are theirs. What is told above is the
 * format: another one has another number. */
#ifndef FA_RUNTIME_BUNDLE_BLOB_H
#define FA_RUNTIME_BUNDLE_BLOB_H
#include "cache/entry.h"
#include "gen/source.h"
#include "gen/text.h"
#include <fagen.h>
#include <stdint.h>

#define FA_BLOB_HEAD 48
#define FA_BUNDLE_LINKED_MAGIC "fagen.L\n"

/* What a C file of fagen emit --bundle defines, with this very struct, and a program refers to. An fa_bundle that begins with the magic of
 * a blob instead is one: that of fa_bundle_open(). */
struct fa_bundle {
    uint64_t magic;       /* FA_BUNDLE_LINKED_MAGIC, little-endian */
    const uint64_t *word; /* the blob */
    uint64_t bytes;       /* of it */
};
#define FA_BLOB_ALIGN 8 /* the size is a multiple of it; the reader takes any address */

typedef struct fa_blob_step {
    fa_step launch;
    int32_t registers; /* per thread, as ptxas said; 0 = not known */
    int32_t spills;    /* bytes per thread */
} fa_blob_step;

typedef struct fa_blob_image { /* a cubin or PTX */
    const char *arch, *config; /* "sm_90a"; as fagen prints configs */
    const char *source;        /* hash of the CUDA text it was compiled from, 32 hex digits */
    const char *check;         /* XXH3-128 of its bytes, 32 hex digits */
    const char *op;            /* name of its operation, "forward" */
    const char *params;        /* names of the values that its kernels take, blanks between (values.h) */
    const char *layout;        /* fa_blob_layout() of the library that wrote it */
    const unsigned char *bytes;
    int32_t size;
    int32_t ptx; /* 1: PTX text, with its NUL counted; 0: a cubin */
    fa_workspace workspace;
    int32_t steps;
    fa_blob_step *step;
    const fa_operation *operation; /* this and the next are the reader's, out of the names */
    fa_packing packing;
} fa_blob_image;

typedef struct fa_blob_row { /* what runs a problem */
    fa_problem problem;      /* the shape is the one that the config was chosen for */
    const char *why;         /* a sentence */
    const char *score;       /* the text of the problem's score program; "": it has none */
    int32_t image;           /* index */
} fa_blob_row;

typedef struct fa_blob {
    const char *name, *version; /* of fagen that wrote it */
    fa_blob_row *row;
    fa_blob_image *image;
    fa_blob_step *step; /* of all images; the reader's */
    uint32_t rows, images;
} fa_blob;

/* Appends the blob. Looks at no value: what is out of range is for the reader. out->oom when memory ran out. */
void fa_blob_write(const fa_blob *b, fa_text *out);

/* Reads `size` bytes, or as many as the head tells where size is SIZE_MAX. Looks at everything but the bytes of the images. FA_INVALID
 * names bundle, row or image, field, value and what is accepted; FA_NOMEM. The problems are as written, not normalized. Texts and images
 * point into the bytes; the rest is heap. fa_blob_free() either way. */
fa_status fa_blob_read(fa_blob *out, const void *bytes, size_t size);
void fa_blob_free(fa_blob *b); /* what fa_blob_read() made; leaves zeros */

/* The blob of a bundle, linked or opened; size SIZE_MAX where it tells itself. */
void fa_bundle_bytes(const fa_bundle *b, const void **bytes, size_t *size);

/* How a list of params lies in memory, as 16 hex digits: XXH3-64 of the values' types and names. FA_INVALID names one that is no value. */
fa_status fa_blob_layout(char out[17], const fa_operation *op, const fa_workspace *w, const char *params);

/* XXH3-128 of the bytes. */
fa_key fa_blob_image_check(const fa_blob_image *i);

/* Writes the two checksums that belong to the rest of head, tables and texts; false where the head's offsets do not lie in the bytes. */
bool fa_blob_sign(unsigned char *bytes, size_t size);
#endif
