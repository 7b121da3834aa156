/* npy: a strict reader of the header, which is a Python literal, and a writer. */
#include "npy.h"
#include "cache/input.h"
#include "file.h"
#include "gen/error.h"
#include "verify/operands/number.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_MOST 65536

static const struct {
    const char *descr; /* in the header */
    int dtype;
    size_t bytes;
    const char *name;
} types[] = {
    { "<f2", FA_F16, 2, "fp16" },
    { "<f4", FA_F32, 4, "fp32" },
    { "<i4", CLI_NPY_I32, 4, "int32" },
    { "<i8", CLI_NPY_I64, 8, "int64" },
};
#define TYPES (sizeof types / sizeof *types)

static size_t row_of(int dtype)
{
    size_t i = 0;
    while (i + 1 < TYPES && types[i].dtype != dtype)
        i++;
    return i;
}

/* What is left of the header. */
typedef struct cursor {
    const char *s, *end, *file;
} cursor;

static void blanks(cursor *c)
{
    while (c->s < c->end && (*c->s == ' ' || *c->s == '\t' || *c->s == '\n'))
        c->s++;
}

static bool take(cursor *c, char ch)
{
    blanks(c);
    if (c->s >= c->end || *c->s != ch)
        return false;
    c->s++;
    return true;
}

static bool take_word(cursor *c, const char *word)
{
    size_t n = strlen(word);
    blanks(c);
    if ((size_t)(c->end - c->s) < n || memcmp(c->s, word, n) || (c->s + n < c->end && isalnum((unsigned char)c->s[n])))
        return false;
    c->s += n;
    return true;
}

/* 'text' or "text", without escapes. */
static bool take_string(cursor *c, char *out, size_t n)
{
    blanks(c);
    if (c->s >= c->end || (*c->s != '\'' && *c->s != '"'))
        return false;
    char quote = *c->s++;
    const char *end = memchr(c->s, quote, (size_t)(c->end - c->s));
    if (!end || (size_t)(end - c->s) >= n || memchr(c->s, '\\', (size_t)(end - c->s)))
        return false;
    memcpy(out, c->s, (size_t)(end - c->s));
    out[end - c->s] = 0;
    c->s = end + 1;
    return true;
}

static fa_status bad(const cursor *c, const char *what)
{
    char near[24];
    size_t n = (size_t)(c->end - c->s);
    n = n < sizeof near - 1 ? n : sizeof near - 1;
    for (size_t i = 0; i < n; i++)
        near[i] = isprint((unsigned char)c->s[i]) ? c->s[i] : '?';
    near[n] = 0;
    return fa_fail(FA_INVALID, "%s: the .npy header is malformed: %s, at \"%s\"", c->file, what, near);
}

static fa_status read_descr(cursor *c, cli_npy *out)
{
    char descr[32];
    if (!take_string(c, descr, sizeof descr))
        return bad(c, "descr is not a short string");
    for (size_t i = 0; i < TYPES; i++)
        if (!strcmp(descr, types[i].descr)) {
            out->dtype = types[i].dtype;
            return FA_OK;
        }
    return fa_fail(FA_INVALID, "%s: elements are \"%.30s\"; accepted: <f2 (fp16), <f4 (fp32), <i4, <i8, little-endian", c->file, descr);
}

static fa_status read_shape(cursor *c, cli_npy *out)
{
    if (!take(c, '('))
        return bad(c, "shape is not a tuple");
    for (out->n = 0; !take(c, ')');) {
        int64_t v = 0;
        blanks(c);
        const char *first = c->s;
        while (c->s < c->end && isdigit((unsigned char)*c->s) && v < INT64_MAX / 16)
            v = v * 10 + (*c->s++ - '0');
        if (c->s == first || v >= INT64_MAX / 16)
            return bad(c, "a dimension is not a whole number");
        if (out->n == CLI_NPY_DIMS)
            return fa_fail(FA_INVALID, "%s: more than %d dimensions; accepted: 4, [b, s, h, d]", c->file, CLI_NPY_DIMS);
        out->dim[out->n++] = v;
        if (!take(c, ',')) {
            if (out->n == 1 || !take(c, ')'))
                return bad(c, "shape lacks a comma");
            break;
        }
    }
    return FA_OK;
}

static fa_status read_order(cursor *c)
{
    if (take_word(c, "False"))
        return FA_OK;
    if (take_word(c, "True"))
        return fa_fail(FA_INVALID, "%s: the array is in Fortran order; accepted: C order (numpy.ascontiguousarray)", c->file);
    return bad(c, "fortran_order is neither True nor False");
}

static fa_status read_header(cursor *c, cli_npy *out)
{
    enum { DESCR, ORDER, SHAPE, KEYS };
    static const char *const names[KEYS] = { "descr", "fortran_order", "shape" };
    bool seen[KEYS] = { false };
    if (!take(c, '{'))
        return bad(c, "it does not begin with {");
    while (!take(c, '}')) {
        char key[24];
        int k = 0;
        if (!take_string(c, key, sizeof key))
            return bad(c, "a key is not a short string");
        while (k < KEYS && strcmp(names[k], key))
            k++;
        if (k == KEYS || seen[k] || !take(c, ':'))
            return bad(c, k == KEYS ? "a key is none of descr, fortran_order, shape"
                          : seen[k] ? "a key comes twice"
                                    : "a key lacks its colon");
        seen[k] = true;
        fa_status st = k == DESCR ? read_descr(c, out) : k == ORDER ? read_order(c) : read_shape(c, out);
        if (st != FA_OK)
            return st;
        if (!take(c, ',')) {
            if (!take(c, '}'))
                return bad(c, "a comma or } is missing");
            break;
        }
    }
    for (int k = 0; k < KEYS; k++)
        if (!seen[k])
            return fa_fail(FA_INVALID, "%s: the .npy header lacks %s", c->file, names[k]);
    blanks(c);
    return c->s == c->end ? FA_OK : bad(c, "something follows the dictionary");
}

fa_status cli_npy_parse(cli_npy *out, const char *name, const void *bytes, size_t size)
{
    const unsigned char *b = bytes;
    *out = (cli_npy){ 0 };
    if (size < 10 || memcmp(b, "\x93NUMPY", 6))
        return fa_fail(FA_INVALID, "%s: not a .npy file: it does not begin with \\x93NUMPY", name);
    if (b[6] < 1 || b[6] > 3 || b[7] != 0)
        return fa_fail(FA_INVALID, "%s: .npy version %d.%d; accepted: 1.0, 2.0, 3.0", name, b[6], b[7]);
    size_t at = b[6] == 1 ? 10 : 12;
    if (size < at)
        return fa_fail(FA_INVALID, "%s: the file ends within its header", name);
    size_t n = (size_t)b[8] | (size_t)b[9] << 8;
    if (b[6] > 1)
        n |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (n > HEADER_MOST)
        return fa_fail(FA_INVALID, "%s: a header of %zu bytes; accepted: at most %d", name, n, HEADER_MOST);
    if (n > size - at)
        return fa_fail(FA_INVALID, "%s: the file ends within its header", name);
    const char *text = (const char *)b + at;
    if (memchr(text, 0, n))
        return fa_fail(FA_INVALID, "%s: the .npy header is malformed: it holds a zero byte", name);
    cursor c = { text, text + n, name };
    fa_status st = read_header(&c, out);
    if (st != FA_OK)
        return st;
    size_t have = size - at - n, each = types[row_of(out->dtype)].bytes, need = each;
    out->count = 1;
    for (int i = 0; i < out->n; i++)
        if (__builtin_mul_overflow(out->count, (size_t)out->dim[i], &out->count))
            return fa_fail(FA_INVALID, "%s: the shape exceeds the address space", name);
    if (__builtin_mul_overflow(out->count, need, &need) || need != have)
        return fa_fail(FA_INVALID, "%s: the header promises %zu elements of %zu bytes, and %zu bytes follow it", name, out->count, each,
                       have);
    out->data = text + n;
    return FA_OK;
}

fa_status cli_npy_read(cli_npy *out, const char *path)
{
    char *file;
    size_t n;
    *out = (cli_npy){ 0 };
    fa_status st = fa_input_read(path, CLI_NPY_BYTES, FA_IO, &file, &n);
    if (st == FA_OK)
        st = cli_npy_parse(out, path, file, n);
    else
        return st;
    if (st == FA_OK) {
        out->file = file;
    } else {
        *out = (cli_npy){ 0 };
        free(file);
    }
    return st;
}

void cli_npy_free(cli_npy *a)
{
    free(a->file);
    *a = (cli_npy){ 0 };
}

float cli_npy_at(const cli_npy *a, size_t i)
{
    uint16_t h;
    float f;
    if (a->dtype == FA_F16) {
        memcpy(&h, (const char *)a->data + 2 * i, sizeof h);
        return fa_number_from_f16(h);
    }
    memcpy(&f, (const char *)a->data + 4 * i, sizeof f);
    return f;
}

int64_t cli_npy_integer(const cli_npy *a, size_t i)
{
    int32_t x;
    int64_t y;
    if (a->dtype == CLI_NPY_I32) {
        memcpy(&x, (const char *)a->data + 4 * i, sizeof x);
        return x;
    }
    memcpy(&y, (const char *)a->data + 8 * i, sizeof y);
    return y;
}

bool cli_npy_has_integers(const cli_npy *a)
{
    return a->dtype == CLI_NPY_I32 || a->dtype == CLI_NPY_I64;
}

const char *cli_npy_type(const cli_npy *a)
{
    return types[row_of(a->dtype)].name;
}

fa_status cli_npy_write(const char *path, int dtype, int n, const int64_t *dim, const void *data)
{
    char head[256], shape[160] = "";
    size_t count = 1, at = 0;
    for (int i = 0; i < n; i++) {
        at += (size_t)snprintf(shape + at, sizeof shape - at, "%lld,%s", (long long)dim[i], i + 1 < n ? " " : "");
        count *= (size_t)dim[i];
    }
    if (n > 1)
        shape[--at] = 0; /* only a tuple of one keeps its last comma */
    int len = snprintf(head + 10, sizeof head - 10, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", types[row_of(dtype)].descr,
                       shape);
    size_t total = ((size_t)(10 + len + 1) + 63) / 64 * 64; /* the data begin at a multiple of 64 */
    memset(head + 10 + len, ' ', total - (size_t)(10 + len));
    head[total - 1] = '\n';
    memcpy(head, "\x93NUMPY\x01", 7);
    head[7] = 0;
    head[8] = (char)((total - 10) & 0xff);
    head[9] = (char)((total - 10) >> 8);
    return cli_file_write(path, head, total, data, count * types[row_of(dtype)].bytes);
}
