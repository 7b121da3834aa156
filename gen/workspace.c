/* workspace: buffers parsed, printed and laid out one behind the other. */
#include "workspace.h"
#include "error.h"
#include <stdio.h>
#include <string.h>

#define COUNTERS "counters"

static const struct {
    const char *name;
    int32_t bytes;
} types[] = { { "fp32", 4 }, { "int32", 4 }, { "fp16", 2 }, { "bf16", 2 } };
#define TYPES (sizeof types / sizeof *types)

/* "NAME TYPE EXTENTS". */
static fa_status parse_buffer(fa_workspace_buffer *out, const char *text)
{
    size_t name = strcspn(text, " "), gap = strspn(text + name, " "), type = strcspn(text + name + gap, " "), t = 0;
    const char *word = text + name + gap;
    *out = (fa_workspace_buffer){ .type = 0 };
    while (t < TYPES && (strlen(types[t].name) != type || memcmp(types[t].name, word, type) != 0))
        t++;
    if (!name || name >= sizeof out->name || t == TYPES || !word[type])
        return fa_fail(FA_INVALID,
                       "workspace: \"%.60s\" is no buffer; accepted: counters, or NAME TYPE EXTENTS with a name of at most %d letters and "
                       "fp32, int32, "
                       "fp16 or bf16, such as \"scores fp32 b hq sq sk\"",
                       text, (int)sizeof out->name - 1);
    memcpy(out->name, text, name);
    out->type = (int32_t)t;
    return fa_wrap(fa_product_parse(&out->extents, word + type), "workspace: %s", out->name);
}

fa_status fa_workspace_parse(fa_workspace *out, const char *text)
{
    *out = (fa_workspace){ .n = 0 };
    for (const char *s = text + strspn(text, " ,"); *s; s += strspn(s, " ,")) {
        char row[128];
        size_t n = strcspn(s, ",");
        fa_status st = FA_OK;
        snprintf(row, sizeof row, "%.*s", (int)n, s);
        if (!strcmp(row, COUNTERS))
            out->counters = 1;
        else if (out->n == FA_BUFFERS_MAX)
            st = fa_fail(FA_INVALID, "workspace: \"%.60s\" is one buffer too many; accepted: at most %d", row, FA_BUFFERS_MAX);
        else
            st = parse_buffer(&out->buffer[out->n++], row);
        if (st != FA_OK)
            return st;
        s += n;
    }
    return FA_OK;
}

int fa_workspace_print(char *buf, size_t n, const fa_workspace *w)
{
    int at = snprintf(buf, n, "%s", w->counters ? COUNTERS : "");
    for (int32_t i = 0; i < w->n; i++) {
        char extents[96];
        fa_product_print(extents, sizeof extents, &w->buffer[i].extents);
        at += snprintf((size_t)at < n ? buf + at : NULL, (size_t)at < n ? n - (size_t)at : 0, "%s%s %s %s", at ? ", " : "",
                       w->buffer[i].name, types[w->buffer[i].type].name, extents);
    }
    return at;
}

/* -1: more than 2^63 - 1. */
static int64_t bytes_of(const fa_workspace_buffer *b, const fa_sizes *s)
{
    int64_t bytes = fa_product_value(&b->extents, s);
    return bytes < 0 || __builtin_mul_overflow(bytes, types[b->type].bytes, &bytes) ? -1 : bytes;
}

int64_t fa_workspace_units(const fa_workspace *w, const fa_sizes *s)
{
    fa_sizes one = *s;
    int64_t all = s->of[FA_EXTENT_UNITS], bytes = 0, most, times;
    one.of[FA_EXTENT_UNITS] = 1;
    for (int32_t i = 0; i < w->n; i++) {
        int64_t more = fa_product_has(&w->buffer[i].extents, FA_EXTENT_UNITS) ? bytes_of(&w->buffer[i], &one) : 0;
        if (more < 0 || __builtin_add_overflow(bytes, more, &bytes))
            return 1;
    }
    most = bytes > 0 ? FA_WORKSPACE_CHUNK / bytes : all;
    if (most >= all)
        return all;
    times = most > 1 ? (all + most - 1) / most : all;
    return (all + times - 1) / times; /* as many each time: a small last one would leave SMs idle */
}

int64_t fa_workspace_bytes(const fa_workspace *w, const fa_sizes *s, int64_t offset[FA_BUFFERS_MAX])
{
    int64_t at = fa_workspace_any(w) ? FA_WORKSPACE_COUNTERS : 0; /* free of buffers in every kernel: another one's counters stay 0 */
    fa_sizes at_a_time = *s;
    at_a_time.of[FA_EXTENT_UNITS] = fa_workspace_units(w, s);
    for (int32_t i = 0; i < w->n; i++) {
        int64_t bytes = bytes_of(&w->buffer[i], &at_a_time);
        if (offset)
            offset[i] = at;
        if (bytes < 0 || __builtin_add_overflow(bytes, FA_WORKSPACE_ALIGN - 1, &bytes) ||
            __builtin_add_overflow(at, bytes / FA_WORKSPACE_ALIGN * FA_WORKSPACE_ALIGN, &at))
            return -1;
    }
    return at;
}
