/* columns: the tables of a bundle and their columns, which its writer and its reader walk. */
#ifndef FA_RUNTIME_BUNDLE_COLUMNS_H
#define FA_RUNTIME_BUNDLE_COLUMNS_H
#include <stddef.h>
#include <stdint.h>

/* Offsets of the head's members after magic and format (blob.h). */
enum { TABLES_AT = 12, TEXTS_AT = 16, IMAGES_AT = 20, SIZE_AT = 24, CHECK_AT = 32, HEAD_CHECK_AT = 40 };

enum { FA_BUNDLE_MOST_TABLES = 64, FA_BUNDLE_MOST_COLUMNS = 128, FA_BUNDLE_MOST_ROWS = 1 << 20, FA_BUNDLE_LEAST_IMAGE = 64 };

#define FA_BUNDLE_MAGIC "fagen.B\n" /* 8 bytes */

/* The type of the member. All but a number are texts in the blob. */
typedef enum fa_column_kind {
    FA_COLUMN_NUMBER,    /* int32_t */
    FA_COLUMN_TEXT,      /* const char * */
    FA_COLUMN_CHARS,     /* char[most + 1] */
    FA_COLUMN_PRODUCT,   /* fa_product */
    FA_COLUMN_WORKSPACE, /* fa_workspace */
    FA_COLUMN_OPERAND    /* int32_t, index of an operand of the image's operation */
} fa_column_kind;

/* A member of a struct, and the column that holds it. */
typedef struct fa_bundle_column {
    const char *name;
    size_t at;
    fa_column_kind kind;
    int32_t least, most; /* of the number; letters of a text; factors of a product; buffers of a workspace */
} fa_bundle_column;

/* The structs: fa_blob, fa_blob_row, fa_blob_image, fa_blob_step, fa_map. */
enum { FA_TABLE_BUNDLE, FA_TABLE_ROWS, FA_TABLE_IMAGES, FA_TABLE_STEPS, FA_TABLE_MAPS, FA_BUNDLE_TABLES };

typedef struct fa_bundle_table {
    const char *name;
    const fa_bundle_column *column;
    uint32_t columns;
} fa_bundle_table;
extern const fa_bundle_table fa_bundle_tables[FA_BUNDLE_TABLES];

/* Little-endian numbers of 4 or 8 bytes, at any address. */
static inline uint64_t fa_get_number(const unsigned char *s, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)s[i] << 8 * i;
    return v;
}

static inline uint32_t fa_get32(const unsigned char *s)
{
    return (uint32_t)fa_get_number(s, 4);
}

static inline void fa_put_number(unsigned char *s, int bytes, uint64_t v)
{
    for (int i = 0; i < bytes; i++)
        s[i] = (unsigned char)(v >> 8 * i);
}

/* XXH3-64 of tables and texts, of a blob whose head tells where they end. */
uint64_t fa_blob_tables_check(const unsigned char *blob);
#endif
