/* reader: bundles are data from outside the library. Nothing is read before it is known to lie inside, and no number is believed. */
#include "blob.h"
#include "columns.h"
#include "gen/error.h"
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

typedef struct table {
    bool there;
    uint32_t columns, rows, next;
    const unsigned char *names, *cells;
    int16_t column[FA_BUNDLE_MOST_COLUMNS]; /* the reader's column of each; -1 = not known */
} table;

typedef struct reader {
    const unsigned char *s;
    uint32_t texts, images; /* offsets: the texts end where the images begin */
    size_t size;
    const fa_operation *operation; /* of the image whose maps are read */
    table table[FA_BUNDLE_TABLES];
} reader;

static const char *text_of(const reader *r, uint32_t at)
{
    return at < r->images - r->texts ? (const char *)r->s + r->texts + at : NULL;
}

static fa_status read_head(reader *r, size_t size)
{
    const unsigned char *s = r->s;
    if (size < FA_BLOB_HEAD)
        return fa_fail(FA_INVALID, "it has %zu bytes; accepted: a bundle of fagen emit --bundle, whole", size);
    /* formats 1 and 2 were a struct that began with its size, 56 bytes */
    uint32_t format = fa_get32(s) == 56 && fa_get32(s + 4) < 3 ? fa_get32(s + 4) : memcmp(s, FA_BUNDLE_MAGIC, 8) ? 0 : fa_get32(s + 8);
    if (!format)
        return fa_fail(FA_INVALID, "its magic is %016llx; accepted: %016llx: a bundle of fagen emit --bundle",
                       (unsigned long long)fa_get_number(s, 8),
                       (unsigned long long)fa_get_number((const unsigned char *)FA_BUNDLE_MAGIC, 8));
    if (format != FA_BUNDLE_FORMAT)
        return fa_fail(FA_INVALID, "its format is %u; accepted by fagen %s: %d: emit it again with this fagen", format, FA_VERSION_STRING,
                       FA_BUNDLE_FORMAT);
    uint64_t check = XXH3_64bits(s, HEAD_CHECK_AT), told = fa_get_number(s + HEAD_CHECK_AT, 8), all = fa_get_number(s + SIZE_AT, 8);
    if (check != told)
        return fa_fail(FA_INVALID, "the checksum of its head is %016llx; accepted: %016llx, as when it was written: emit it again",
                       (unsigned long long)check, (unsigned long long)told);
    r->texts = fa_get32(s + TEXTS_AT), r->images = fa_get32(s + IMAGES_AT), r->size = (size_t)all;
    if (size != SIZE_MAX && all != size)
        return fa_fail(FA_INVALID, "it has %zu bytes; accepted: %llu, as when it was written", size, (unsigned long long)all);
    if (r->texts < FA_BLOB_HEAD || r->texts >= r->images || r->images > all || all % FA_BLOB_ALIGN || all > SIZE_MAX / 2)
        return fa_fail(FA_INVALID, "texts at %u, images at %u, size %llu; accepted: %d <= texts < images <= size, a multiple of %d",
                       r->texts, r->images, (unsigned long long)all, FA_BLOB_HEAD, FA_BLOB_ALIGN);
    check = fa_blob_tables_check(s), told = fa_get_number(s + CHECK_AT, 8);
    if (check != told)
        return fa_fail(FA_INVALID, "the checksum of its tables is %016llx; accepted: %016llx, as when it was written: emit it again",
                       (unsigned long long)check, (unsigned long long)told);
    if (s[r->texts] || s[r->images - 1])
        return fa_fail(FA_INVALID, "its texts begin with %02x and end in %02x; accepted: 00 and 00", s[r->texts], s[r->images - 1]);
    return FA_OK;
}

/* Which column of the reader's each of the table's is. */
static fa_status match_columns(const reader *r, table *t, int k)
{
    for (uint32_t c = 0; c < t->columns; c++) {
        const char *name = text_of(r, fa_get32(t->names + 4 * c));
        if (!name)
            return fa_fail(FA_INVALID, "the name of column %u is at %u of its texts; accepted: less than %u", c, fa_get32(t->names + 4 * c),
                           r->images - r->texts);
        t->column[c] = -1;
        for (uint32_t i = 0; i < fa_bundle_tables[k].columns; i++)
            if (!strcmp(fa_bundle_tables[k].column[i].name, name))
                t->column[c] = (int16_t)i;
        for (uint32_t i = 0; i < c; i++)
            if (t->column[c] >= 0 && t->column[i] == t->column[c])
                return fa_fail(FA_INVALID, "column %s is there twice; accepted: once", name);
    }
    return FA_OK;
}

static fa_status read_table(reader *r, uint32_t *at)
{
    const unsigned char *s = r->s + *at;
    if (r->texts - *at < 12)
        return fa_fail(FA_INVALID, "%u bytes are left for it; accepted: 12 or more", r->texts - *at);
    const char *name = text_of(r, fa_get32(s));
    table t = { .there = true, .columns = fa_get32(s + 4), .rows = fa_get32(s + 8), .names = s + 12 };
    int k = 0;
    if (!name || t.columns < 1 || t.columns > FA_BUNDLE_MOST_COLUMNS || t.rows > FA_BUNDLE_MOST_ROWS)
        return fa_fail(FA_INVALID, "name at %u, columns %u, rows %u; accepted: a name in %u bytes of texts, 1 to %d columns, 0 to %d rows",
                       fa_get32(s), t.columns, t.rows, r->images - r->texts, FA_BUNDLE_MOST_COLUMNS, FA_BUNDLE_MOST_ROWS);
    if (4 * (uint64_t)t.columns * (t.rows + 1) > r->texts - *at - 12)
        return fa_fail(FA_INVALID, "%.40s has %u rows of %u columns; accepted: what %u bytes hold", name, t.rows, t.columns,
                       r->texts - *at - 12);
    t.cells = t.names + 4 * t.columns;
    *at += 12 + 4 * t.columns * (t.rows + 1);
    while (k < FA_BUNDLE_TABLES && strcmp(fa_bundle_tables[k].name, name))
        k++;
    if (k == FA_BUNDLE_TABLES)
        return t.rows ? fa_fail(FA_INVALID,
                                "%.40s has %u rows and is not known; accepted by fagen %s: bundle, rows, images, steps, maps: a newer one "
                                "wrote it",
                                name, t.rows, FA_VERSION_STRING)
                      : FA_OK;
    if (r->table[k].there)
        return fa_fail(FA_INVALID, "%s is there twice; accepted: once", name);
    fa_status st = match_columns(r, &t, k);
    r->table[k] = t;
    return fa_wrap(st, "%s", fa_bundle_tables[k].name);
}

static fa_status read_tables(reader *r)
{
    uint32_t n = fa_get32(r->s + TABLES_AT), at = FA_BLOB_HEAD;
    if (n > FA_BUNDLE_MOST_TABLES)
        return fa_fail(FA_INVALID, "it has %u tables; accepted: 0 to %d", n, FA_BUNDLE_MOST_TABLES);
    for (uint32_t i = 0; i < n; i++) {
        fa_status st = fa_wrap(read_table(r, &at), "table %u", i);
        if (st != FA_OK)
            return st;
    }
    return at == r->texts ? FA_OK : fa_fail(FA_INVALID, "its tables end at %u, its texts begin at %u; accepted: the same", at, r->texts);
}

/* A member against its range; also one that the blob does not have. */
static fa_status in_range(const fa_bundle_column *k, const void *row)
{
    const char *from = (const char *)row + k->at, *s = from;
    int32_t v = 0;
    switch (k->kind) {
    case FA_COLUMN_NUMBER:
    case FA_COLUMN_OPERAND:
        memcpy(&v, from, sizeof v);
        break;
    case FA_COLUMN_PRODUCT:
        v = ((const fa_product *)(const void *)from)->n;
        break;
    case FA_COLUMN_WORKSPACE:
        v = ((const fa_workspace *)(const void *)from)->n;
        break;
    case FA_COLUMN_TEXT:
    case FA_COLUMN_CHARS:
        if (k->kind == FA_COLUMN_TEXT)
            memcpy(&s, from, sizeof s);
        v = (int32_t)strnlen(s, INT32_MAX);
        if (v < k->least || v > k->most)
            return fa_fail(FA_INVALID, "%s is \"%.40s\"; accepted: %d to %d letters", k->name, s, k->least, k->most);
        break;
    }
    return v >= k->least && v <= k->most ? FA_OK : fa_fail(FA_INVALID, "%s is %d; accepted: %d to %d", k->name, v, k->least, k->most);
}

/* The cell into the member. */
static fa_status read_cell(const reader *r, const fa_bundle_column *k, uint32_t cell, void *to)
{
    const char *s = k->kind == FA_COLUMN_NUMBER ? "" : text_of(r, cell);
    int32_t v = (int32_t)cell;
    if (!s || (k->kind == FA_COLUMN_CHARS && strlen(s) > (size_t)k->most))
        return fa_fail(FA_INVALID, "%s is %s%.40s; accepted: %d to %d letters", k->name, s ? "" : "outside the texts", s ? s : "", k->least,
                       k->most);
    switch (k->kind) {
    case FA_COLUMN_TEXT:
        memcpy(to, &s, sizeof s);
        return FA_OK;
    case FA_COLUMN_CHARS:
        memcpy(to, s, strlen(s) + 1);
        return FA_OK;
    case FA_COLUMN_PRODUCT:
        return fa_wrap(fa_product_parse(to, s), "%s", k->name);
    case FA_COLUMN_WORKSPACE:
        return fa_workspace_parse(to, s);
    case FA_COLUMN_OPERAND:
        v = fa_operand_index(r->operation, s);
        if (v < 0 || !r->operation->operand[v].strided)
            return fa_fail(FA_INVALID, "%s is \"%.40s\"; accepted: a tensor of the operation %s", k->name, s, r->operation->name);
        break;
    case FA_COLUMN_NUMBER:
        break;
    }
    memcpy(to, &v, sizeof v);
    return FA_OK;
}

/* The next row of the table, into a struct of zeros. */
static fa_status read_row(reader *r, int which, void *out)
{
    table *t = &r->table[which];
    const fa_bundle_table *known = &fa_bundle_tables[which];
    if (t->next >= t->rows)
        return fa_fail(FA_INVALID, "the table %s has %u rows; accepted: one more", known->name, t->rows);
    const unsigned char *cell = t->cells + (size_t)4 * t->columns * t->next++;
    for (uint32_t i = 0; i < known->columns; i++) /* what the blob does not have */
        if (known->column[i].kind == FA_COLUMN_TEXT)
            memcpy((char *)out + known->column[i].at, &(const char *){ "" }, sizeof(const char *));
        else if (known->column[i].kind == FA_COLUMN_OPERAND)
            memcpy((char *)out + known->column[i].at, &(int32_t){ -1 }, sizeof(int32_t));
    fa_status st = FA_OK;
    for (uint32_t c = 0; st == FA_OK && c < t->columns; c++, cell += 4) {
        const fa_bundle_column *k = t->column[c] >= 0 ? &known->column[t->column[c]] : NULL;
        if (k)
            st = read_cell(r, k, fa_get32(cell), (char *)out + k->at);
        else if (fa_get32(cell))
            st = fa_fail(FA_INVALID, "%.40s is %d, and fagen %s knows no such field; accepted: 0: a newer one wrote it",
                         text_of(r, fa_get32(t->names + 4 * c)), (int32_t)fa_get32(cell), FA_VERSION_STRING);
    }
    for (uint32_t i = 0; st == FA_OK && i < known->columns; i++)
        st = in_range(&known->column[i], out);
    return st;
}

static fa_status read_step(reader *r, fa_blob_step *out)
{
    fa_status st = read_row(r, FA_TABLE_STEPS, out);
    for (int32_t m = 0; st == FA_OK && m < out->launch.n_maps; m++) {
        fa_map *map = &out->launch.map[m];
        st = read_row(r, FA_TABLE_MAPS, map);
        if (st == FA_OK && map->swizzle != 0 && map->swizzle != 32 && map->swizzle != 64 && map->swizzle != 128)
            st = fa_fail(FA_INVALID, "swizzle is %d; accepted: 0, 32, 64, 128", map->swizzle);
        st = fa_wrap(st, "map %d", m);
    }
    return st;
}

/* What the names of operation, parameters and workspace mean here. */
static fa_status read_names(reader *r, fa_blob_image *out)
{
    char layout[17];
    fa_holds(out->layout); /* columns.h asks for it */
    r->operation = out->operation = fa_operation_named(out->op);
    if (!out->operation || !out->operation->n)
        return fa_fail(FA_INVALID, "op is \"%s\"; accepted: an operation that fagen %s computes", out->op, FA_VERSION_STRING);
    fa_status st = fa_blob_layout(layout, out->operation, &out->workspace, out->params);
    if (st == FA_OK && strcmp(layout, out->layout) != 0)
        st = fa_fail(FA_INVALID, "its kernels take other parameters (layout is %s); accepted by fagen %s: %s: emit it again", out->layout,
                     FA_VERSION_STRING, layout);
    return st == FA_OK ? fa_packing_of(&out->packing, out->operation, &out->workspace, out->params) : st;
}

/* at: where the image's bytes begin, and then end. */
static fa_status read_image(reader *r, fa_blob_image *out, fa_blob_step *step, size_t *at)
{
    fa_key key;
    fa_status st = read_row(r, FA_TABLE_IMAGES, out);
    if (st == FA_OK && (!fa_key_parse(&key, out->source) || !fa_key_parse(&key, out->check)))
        st = fa_fail(FA_INVALID, "source is \"%s\", check is \"%s\"; accepted: 32 hex digits each", out->source, out->check);
    if (st == FA_OK && (size_t)out->size > r->size - *at)
        st = fa_fail(FA_INVALID, "size is %d; accepted: at most the %zu bytes that are left", out->size, r->size - *at);
    if (st == FA_OK)
        st = read_names(r, out);
    if (st != FA_OK)
        return st;
    out->bytes = r->s + *at;
    *at += (size_t)out->size;
    static const unsigned char elf[4] = { 0x7f, 'E', 'L', 'F' };
    if (out->ptx ? out->bytes[out->size - 1] != 0 : memcmp(out->bytes, elf, sizeof elf) != 0)
        return fa_fail(FA_INVALID, "bytes: not %s; accepted: as fagen wrote them: emit it again",
                       out->ptx ? "PTX text that ends in a NUL" : "a cubin");
    if ((uint32_t)out->steps > r->table[FA_TABLE_STEPS].rows - r->table[FA_TABLE_STEPS].next)
        return fa_fail(FA_INVALID, "steps is %d; accepted: at most the %u rows that are left", out->steps,
                       r->table[FA_TABLE_STEPS].rows - r->table[FA_TABLE_STEPS].next);
    out->step = step;
    for (int32_t s = 0; st == FA_OK && s < out->steps; s++)
        st = fa_wrap(read_step(r, &step[s]), "step %d", s);
    return st;
}

static fa_status read_images(fa_blob *out, reader *r)
{
    size_t at = r->images;
    uint32_t steps = 0;
    for (uint32_t i = 0; i < out->images; i++) {
        fa_status st = fa_wrap(read_image(r, &out->image[i], out->step + steps, &at), "image %u", i);
        if (st != FA_OK)
            return st;
        steps += (uint32_t)out->image[i].steps;
    }
    if (r->size - at >= FA_BLOB_ALIGN)
        return fa_fail(FA_INVALID, "its images have %zu bytes; accepted: the %zu after its texts", at - r->images, r->size - r->images);
    for (; at < r->size; at++)
        if (r->s[at])
            return fa_fail(FA_INVALID, "byte %zu after the images is %d; accepted: 0", at, r->s[at]);
    return FA_OK;
}

static fa_status read_rows(fa_blob *out, reader *r)
{
    fa_status st = FA_OK;
    for (uint32_t i = 0; st == FA_OK && i < out->rows; i++) {
        st = read_row(r, FA_TABLE_ROWS, &out->row[i]);
        out->row[i].problem.size = sizeof out->row[i].problem;
        if (st == FA_OK && (uint32_t)out->row[i].image >= out->images)
            st = fa_fail(FA_INVALID, "image %d is none of %u; accepted: 0 to %u", out->row[i].image, out->images,
                         out->images ? out->images - 1 : 0);
        st = fa_wrap(st, "row %u", i);
    }
    for (int k = 0; st == FA_OK && k < FA_BUNDLE_TABLES; k++)
        if (r->table[k].next != r->table[k].rows)
            st = fa_fail(FA_INVALID, "the table %s has %u rows; accepted: the %u that are used", fa_bundle_tables[k].name, r->table[k].rows,
                         r->table[k].next);
    return st;
}

static fa_status fill(fa_blob *out, reader *r)
{
    fa_status st = read_row(r, FA_TABLE_BUNDLE, out);
    out->rows = r->table[FA_TABLE_ROWS].rows;
    out->images = r->table[FA_TABLE_IMAGES].rows;
    if (st == FA_OK && out->images > (r->size - r->images) / FA_BUNDLE_LEAST_IMAGE)
        st = fa_fail(FA_INVALID, "%u images in %zu bytes; accepted: %d bytes or more each", out->images, r->size - r->images,
                     FA_BUNDLE_LEAST_IMAGE);
    if (st != FA_OK)
        return st;
    out->row = calloc(out->rows + 1, sizeof *out->row);
    out->image = calloc(out->images + 1, sizeof *out->image);
    out->step = calloc(r->table[FA_TABLE_STEPS].rows + 1, sizeof *out->step);
    if (!out->row || !out->image || !out->step)
        return fa_fail(FA_NOMEM, "host memory for %u rows and %u images", out->rows, out->images);
    st = read_images(out, r);
    return fa_wrap(st == FA_OK ? read_rows(out, r) : st, "%.60s", out->name);
}

fa_status fa_blob_read(fa_blob *out, const void *bytes, size_t size)
{
    reader r = { .s = bytes };
    *out = (fa_blob){ .rows = 0 };
    fa_status st = read_head(&r, size);
    if (st == FA_OK)
        st = read_tables(&r);
    return st == FA_OK ? fill(out, &r) : st;
}

void fa_bundle_bytes(const fa_bundle *b, const void **bytes, size_t *size)
{
    bool linked = memcmp(b, FA_BUNDLE_LINKED_MAGIC, sizeof b->magic) == 0;
    *bytes = linked ? (const void *)b->word : b;
    *size = linked ? (size_t)b->bytes : SIZE_MAX;
}

void fa_blob_free(fa_blob *b)
{
    free(b->row);
    free(b->image);
    free(b->step);
    *b = (fa_blob){ .rows = 0 };
}
