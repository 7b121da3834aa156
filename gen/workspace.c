/* workspace: buffers parsed, printed and laid out one after the other. */
#include "workspace.h"
#include "error.h"
#include <math.h>
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

/* Of `most` at a time as many each time: a small last one would leave SMs idle. */
static int64_t evenly(int64_t all, int64_t most)
{
    int64_t times = most > 1 ? (all + most - 1) / most : all;
    return times > 0 ? (all + times - 1) / times : 0;
}

/* The time of a launch over so many units of one query head, in that of a block of 128 keys and all queries of a head: its rounds of such
 * blocks over the SMs, and of blocks of 256 queries and all keys, which have one product of the five. START: what it begins and ends with.
 */
#define START 0.1
static double launch_time(const fa_sizes *s, int64_t units)
{
    int64_t sms = s->of[FA_EXTENT_SMS], keys = units * ((s->of[FA_EXTENT_SK] + 127) / 128);
    int64_t rows = units * ((s->of[FA_EXTENT_SQ] + 255) / 256);
    return units > 0 ? START + (double)((keys + sms - 1) / sms) + 0.5 * (double)((rows + sms - 1) / sms) : 0;
}

/* Of `most` at a time, as many that launches have few rounds which are not full, where all blocks take as long: of 27 heads of 43 blocks 18
 * and 9 take 9 rounds of 132 SMs, 14 and 13 take 10. Where there is room for many more than these candidates, a round is a small part. */
#define CANDIDATES 16
static int64_t in_rounds(const fa_sizes *s, int64_t all, int64_t most)
{
    int64_t best = evenly(all, most);
    double least = INFINITY;
    if (!s->alike || s->of[FA_EXTENT_SMS] < 1 || s->of[FA_EXTENT_SK] < 1 || most >= all)
        return best;
    for (int64_t i = 0; i <= CANDIDATES; i++) {
        int64_t units = i > 0 ? most - i + 1 : best; /* first as many each time: others have to be faster */
        double time = units > 0 ? (double)(all / units) * launch_time(s, units) + launch_time(s, all % units) : INFINITY;
        if (time < least * (1 - 1e-9))
            least = time, best = units;
    }
    return best;
}

/* Units whose buffers the chunk holds, so many members of each group at a time; 0: not one. */
static int64_t units_held(const fa_workspace *w, const fa_sizes *s, int64_t members)
{
    fa_sizes one = *s;
    int64_t all = s->of[FA_EXTENT_UNITS], chunk = w->chunk ? w->chunk : FA_WORKSPACE_CHUNK, bytes = 0, most;
    one.of[FA_EXTENT_UNITS] = 1;
    one.of[FA_EXTENT_MEMBERS] = members;
    for (int32_t i = 0; i < w->n; i++) {
        const fa_product *extents = &w->buffer[i].extents;
        bool counts = fa_product_has(extents, FA_EXTENT_UNITS) && !fa_product_has(extents, FA_EXTENT_SLICED);
        int64_t more = counts ? bytes_of(&w->buffer[i], &one) : 0;
        if (more < 0 || __builtin_add_overflow(bytes, more, &bytes))
            return 0;
    }
    most = bytes > 0 ? chunk / bytes : all;
    return most < 1 ? 0 : in_rounds(s, all, most < all ? most : all);
}

static bool has_members(const fa_workspace *w)
{
    for (int32_t i = 0; i < w->n; i++)
        if (fa_product_has(&w->buffer[i].extents, FA_EXTENT_MEMBERS))
            return true;
    return false;
}

fa_portion fa_workspace_portion(const fa_workspace *w, const fa_sizes *s)
{
    int64_t all = s->of[FA_EXTENT_UNITS], group = s->of[FA_EXTENT_MEMBERS], keys = s->of[FA_EXTENT_SK];
    fa_portion best = { units_held(w, s, group), group };
    bool slices = all > 0 && best.units < all && group > 1 && has_members(w);
    if (slices && best.units == 0)
        best.members = 1;
    for (int64_t members = group - 1; slices && members > 0 && best.units * keys < FA_WORKSPACE_KEYS; members--) {
        int64_t held = evenly(group, members) == members ? units_held(w, s, members) : 0;
        if (held > best.units)
            best = (fa_portion){ held, members };
    }
    if (best.units == 0 && all > 0)
        best.units = 1;
    return best;
}

int64_t fa_portion_launches(const fa_portion *p, const fa_sizes *s)
{
    int64_t units = s->of[FA_EXTENT_UNITS], members = s->of[FA_EXTENT_MEMBERS];
    return (p->units > 0 ? (units + p->units - 1) / p->units : 1) * (p->members > 0 ? (members + p->members - 1) / p->members : 1);
}

int64_t fa_workspace_bytes(const fa_workspace *w, const fa_sizes *s, int64_t offset[FA_BUFFERS_MAX])
{
    int64_t at = fa_workspace_any(w) ? FA_WORKSPACE_COUNTERS : 0; /* free of buffers in every kernel: another one's counters stay 0 */
    fa_sizes at_a_time = *s;
    fa_portion portion = fa_workspace_portion(w, s);
    at_a_time.of[FA_EXTENT_UNITS] = portion.units;
    at_a_time.of[FA_EXTENT_MEMBERS] = portion.members;
    at_a_time.of[FA_EXTENT_SLICED] = portion.members < s->of[FA_EXTENT_MEMBERS];
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
