/* blob: the writer, and the checksums. */
#include "blob.h"
#include "columns.h"
#include "gen/error.h"
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

uint64_t fa_blob_tables_check(const unsigned char *blob)
{
    return XXH3_64bits(blob + FA_BLOB_HEAD, fa_get32(blob + IMAGES_AT) - FA_BLOB_HEAD);
}

bool fa_blob_sign(unsigned char *s, size_t size)
{
    if (size < FA_BLOB_HEAD || fa_get32(s + IMAGES_AT) < FA_BLOB_HEAD || fa_get32(s + IMAGES_AT) > size)
        return false;
    fa_put_number(s + CHECK_AT, 8, fa_blob_tables_check(s));
    fa_put_number(s + HEAD_CHECK_AT, 8, XXH3_64bits(s, HEAD_CHECK_AT));
    return true;
}

fa_key fa_blob_image_check(const fa_blob_image *i)
{
    XXH128_hash_t x = XXH3_128bits(i->bytes, (size_t)i->size);
    return (fa_key){ .lo = x.low64, .hi = x.high64 };
}

fa_status fa_blob_layout(char out[17], const fa_operation *op, const fa_workspace *w, const char *params)
{
    fa_text t = { 0 };
    fa_status st = FA_OK;
    fa_value v;
    char name[sizeof v.name];
    while (st == FA_OK && fa_values_next(&params, name)) {
        if (fa_value_find(&v, op, w, name))
            fa_text_fmt(&t, "%s %s;", v.type, v.name);
        else
            st = fa_fail(FA_INVALID,
                         "params: \"%s\" is no value of fagen %s; accepted: an operand of %s, its strides, a buffer of the workspace, "
                         "a scalar of gen/values.h: emit it again",
                         name, FA_VERSION_STRING, op->name);
    }
    if (st == FA_OK && t.oom)
        st = fa_fail(FA_NOMEM, "host memory");
    snprintf(out, 17, "%016llx", (unsigned long long)XXH3_64bits(fa_text_cstr(&t), t.n));
    fa_text_free(&t);
    return st;
}

typedef struct writer {
    fa_text *out, texts;           /* head and tables; the texts that they name */
    const fa_operation *operation; /* of the image whose maps are written */
} writer;

static void add32(fa_text *t, uint32_t v)
{
    unsigned char s[4];
    fa_put_number(s, 4, v);
    fa_text_add(t, (const char *)s, sizeof s);
}

/* A text that is there, or ends one that is, is not written again. */
static uint32_t add_text(writer *w, const char *s)
{
    const char *there = w->texts.n ? memmem(w->texts.s, w->texts.n, s, strlen(s) + 1) : NULL;
    uint32_t at = there ? (uint32_t)(there - w->texts.s) : (uint32_t)w->texts.n;
    if (!there)
        fa_text_add(&w->texts, s, strlen(s) + 1);
    return at;
}

static void begin_table(writer *w, int table, uint32_t rows)
{
    add32(w->out, add_text(w, fa_bundle_tables[table].name));
    add32(w->out, fa_bundle_tables[table].columns);
    add32(w->out, rows);
    for (uint32_t c = 0; c < fa_bundle_tables[table].columns; c++)
        add32(w->out, add_text(w, fa_bundle_tables[table].column[c].name));
}

/* The text of a member; of one that is no text yet, in buf. */
static const char *text_of(const writer *w, const fa_bundle_column *k, const void *from, char *buf, size_t n)
{
    const char *s = from;
    int32_t index;
    switch (k->kind) {
    case FA_COLUMN_TEXT:
        memcpy(&s, from, sizeof s);
        return s;
    case FA_COLUMN_PRODUCT:
        fa_product_print(buf, n, from);
        return buf;
    case FA_COLUMN_WORKSPACE:
        fa_workspace_print(buf, n, from);
        return buf;
    case FA_COLUMN_OPERAND:
        memcpy(&index, from, sizeof index);
        return w->operation && index >= 0 && index < w->operation->n ? w->operation->operand[index].name : "";
    case FA_COLUMN_CHARS:
    case FA_COLUMN_NUMBER:
        break;
    }
    return s;
}

static void add_row(writer *w, int table, const void *row)
{
    char buf[2048];
    for (uint32_t c = 0; c < fa_bundle_tables[table].columns; c++) {
        const fa_bundle_column *k = &fa_bundle_tables[table].column[c];
        const void *from = (const char *)row + k->at;
        int32_t v = 0;
        if (k->kind == FA_COLUMN_NUMBER)
            memcpy(&v, from, sizeof v);
        add32(w->out, k->kind == FA_COLUMN_NUMBER ? (uint32_t)v : add_text(w, text_of(w, k, from, buf, sizeof buf)));
    }
}

static void add_tables(writer *w, const fa_blob *b)
{
    uint32_t steps = 0, maps = 0;
    for (uint32_t i = 0; i < b->images; i++)
        for (int32_t s = 0; s < b->image[i].steps; s++, steps++)
            maps += (uint32_t)b->image[i].step[s].launch.n_maps;
    begin_table(w, FA_TABLE_BUNDLE, 1);
    add_row(w, FA_TABLE_BUNDLE, b);
    begin_table(w, FA_TABLE_ROWS, b->rows);
    for (uint32_t i = 0; i < b->rows; i++)
        add_row(w, FA_TABLE_ROWS, &b->row[i]);
    begin_table(w, FA_TABLE_IMAGES, b->images);
    for (uint32_t i = 0; i < b->images; i++)
        add_row(w, FA_TABLE_IMAGES, &b->image[i]);
    begin_table(w, FA_TABLE_STEPS, steps);
    for (uint32_t i = 0; i < b->images; i++)
        for (int32_t s = 0; s < b->image[i].steps; s++)
            add_row(w, FA_TABLE_STEPS, &b->image[i].step[s]);
    begin_table(w, FA_TABLE_MAPS, maps);
    for (uint32_t i = 0; i < b->images; i++) {
        w->operation = fa_operation_named(b->image[i].op);
        for (int32_t s = 0; s < b->image[i].steps; s++)
            for (int32_t m = 0; m < b->image[i].step[s].launch.n_maps; m++)
                add_row(w, FA_TABLE_MAPS, &b->image[i].step[s].launch.map[m]);
    }
}

void fa_blob_write(const fa_blob *b, fa_text *out)
{
    writer w = { .out = out };
    const size_t start = out->n;
    unsigned char head[FA_BLOB_HEAD] = { 0 };
    fa_text_add(out, (const char *)head, sizeof head);
    fa_text_add(&w.texts, "", 1);
    add_tables(&w, b);
    const size_t texts = out->n - start;
    fa_text_add(out, fa_text_cstr(&w.texts), w.texts.n);
    const size_t images = out->n - start;
    for (uint32_t i = 0; i < b->images; i++)
        fa_text_add(out, (const char *)b->image[i].bytes, (size_t)b->image[i].size);
    while ((out->n - start) % FA_BLOB_ALIGN && !out->oom)
        fa_text_add(out, "", 1);
    out->oom = out->oom || w.texts.oom;
    fa_text_free(&w.texts);
    if (out->oom)
        return;
    unsigned char *s = (unsigned char *)out->s + start;
    memcpy(s, FA_BUNDLE_MAGIC, 8);
    fa_put_number(s + 8, 4, FA_BUNDLE_FORMAT);
    fa_put_number(s + TABLES_AT, 4, FA_BUNDLE_TABLES);
    fa_put_number(s + TEXTS_AT, 4, texts);
    fa_put_number(s + IMAGES_AT, 4, images);
    fa_put_number(s + SIZE_AT, 8, out->n - start);
    fa_blob_sign(s, out->n - start);
}
