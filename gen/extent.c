/* extent: products of sizes, parsed, printed and multiplied out. */
#include "extent.h"
#include "batch_kind.h"
#include "error.h"
#include "format.h"
#include "problem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const words_of[FA_EXTENT_COUNT] = {
#define X(name, word, shape, text) word,
    FA_EXTENTS(X)
#undef X
};

const char *const fa_extent_shapes[FA_EXTENT_COUNT] = {
#define X(name, word, shape, text) shape,
    FA_EXTENTS(X)
#undef X
};

fa_sizes fa_sizes_of(const fa_problem *p, int32_t sms)
{
    bool pages = p->features & (FA_FEATURE_PAGES | FA_FEATURE_SLOTS) && p->page > 0;
    int64_t table = pages ? p->sk / p->page + (p->sk % p->page != 0) : 0, parts = p->op == FA_MERGE ? FA_PARTS_TYPICAL : 1;
    const fa_format *k = fa_format_of(p->kv_dtype), *v = fa_format_of(p->v_dtype ? p->v_dtype : p->kv_dtype);
    fa_sizes sizes = { .of = {
                           [FA_EXTENT_B] = p->b,
                           [FA_EXTENT_SQ] = p->sq,
                           [FA_EXTENT_SK] = p->sk,
                           [FA_EXTENT_HQ] = p->hq,
                           [FA_EXTENT_HKV] = p->hkv,
                           [FA_EXTENT_KEYS] = p->sk > 0 ? p->sk : 1,
                           [FA_EXTENT_D] = p->d,
                           [FA_EXTENT_DV] = p->dv,
                           [FA_EXTENT_ROWS] = p->hkv > 0 ? (int64_t)p->sq * (p->hq / p->hkv) : 0,
                           [FA_EXTENT_TOTAL_Q] = (int64_t)p->b * p->sq,
                           [FA_EXTENT_TOTAL_K] = (int64_t)p->b * p->sk,
                           [FA_EXTENT_SMS] = sms,
                           [FA_EXTENT_BATCH_Q] = p->b,
                           [FA_EXTENT_ROWS_Q] = p->sq,
                           [FA_EXTENT_BATCH_K] = pages ? p->b * table : p->b,
                           [FA_EXTENT_ROWS_K] = pages ? p->page : p->sk,
                           [FA_EXTENT_BOUNDS] = (int64_t)p->b + 1,
                           [FA_EXTENT_TABLE] = table,
                           [FA_EXTENT_ENTRIES] = table,
                           [FA_EXTENT_PROMPTS] = p->hkv > 0 && (int64_t)p->sq * (p->hq / p->hkv) > FA_FEW_ROWS,
                           [FA_EXTENT_LONG] = p->sq > FA_SHORT_ROWS || p->sk > FA_SHORT_ROWS,
                           [FA_EXTENT_PARTS] = parts,
                           [FA_EXTENT_GROUP] = p->hkv > 0 ? p->hq / p->hkv : 0,
                           [FA_EXTENT_UNITS] = (int64_t)p->b * p->hkv,
                           [FA_EXTENT_MEMBERS] = p->hkv > 0 ? p->hq / p->hkv : 0,
                           [FA_EXTENT_BATCH_PARTS] = p->b * parts,
                           [FA_EXTENT_RNG] = p->features & FA_FEATURE_DROPOUT ? 2 : 0,
                           [FA_EXTENT_ANGLES] = p->rotary_dim ? p->sk : 0,
                           [FA_EXTENT_ROTARY] = p->rotary_dim,
                           [FA_EXTENT_COUNTER] = 1,
                           [FA_EXTENT_K_ROW] = k ? p->d / k->block : p->d,
                           [FA_EXTENT_V_ROW] = v ? p->dv / v->block : p->dv,
                       } };
    sizes.k_tokens = p->k_scale_by == FA_SCALE_TOKEN;
    sizes.v_tokens = p->v_scale_by == FA_SCALE_TOKEN;
    sizes.q_tokens = p->q_scale_by == FA_SCALE_TOKEN;
    sizes.k_channels = p->k_scale_by == FA_SCALE_CHANNEL;
    sizes.v_channels = p->v_scale_by == FA_SCALE_CHANNEL;
    sizes.v_columns = p->features & FA_FEATURE_V_COLUMNS;
    sizes.alike = p->mask == FA_MASK_NONE && !(p->features & (FA_FEATURE_LENGTHS | FA_FEATURE_SCORE)) && p->hq == p->hkv;
    fa_sizes_scale(&sizes);
    return sizes;
}

void fa_sizes_scale(fa_sizes *s)
{
    s->of[FA_EXTENT_SPACED_Q] = s->of[FA_EXTENT_TOTAL_Q] + 127 * s->of[FA_EXTENT_B];
    s->of[FA_EXTENT_SPACED_K] = s->of[FA_EXTENT_TOTAL_K] > 0 ? s->of[FA_EXTENT_TOTAL_K] + 127 * s->of[FA_EXTENT_B] : 0;
    s->of[FA_EXTENT_K_SCALE_BATCH] = s->k_tokens ? s->of[FA_EXTENT_BATCH_K] : s->of[FA_EXTENT_B];
    s->of[FA_EXTENT_K_SCALE_ROWS] = s->k_tokens ? s->of[FA_EXTENT_ROWS_K] : s->k_channels ? s->of[FA_EXTENT_D] : 1;
    s->of[FA_EXTENT_Q_SCALE_BATCH] = s->q_tokens ? s->of[FA_EXTENT_BATCH_Q] : s->of[FA_EXTENT_B];
    s->of[FA_EXTENT_Q_SCALE_ROWS] = s->q_tokens ? s->of[FA_EXTENT_ROWS_Q] : 1;
    s->of[FA_EXTENT_V_SCALE_BATCH] = s->v_tokens ? s->of[FA_EXTENT_BATCH_K] : s->of[FA_EXTENT_B];
    s->of[FA_EXTENT_V_SCALE_ROWS] = s->v_tokens ? s->of[FA_EXTENT_ROWS_K] : s->v_channels ? s->of[FA_EXTENT_DV] : 1;
}

static int extent_of(const char *s, size_t n)
{
    for (int i = 0; i < FA_EXTENT_COUNT; i++)
        if (strlen(words_of[i]) == n && !memcmp(words_of[i], s, n))
            return i;
    return -1;
}

/* A positive number of 31 bits that takes all of [s, s + n). */
static bool number_of(int32_t *out, const char *s, size_t n)
{
    int64_t v = 0;
    for (size_t i = 0; i < n && v <= INT32_MAX; i++) {
        if (s[i] < '0' || s[i] > '9')
            return false;
        v = 10 * v + (s[i] - '0');
    }
    *out = (int32_t)v;
    return n && v > 0 && v <= INT32_MAX;
}

static bool factor_of(fa_factor *out, const char *s, size_t n)
{
    const char *slash = memchr(s, '/', n);
    size_t word = slash ? (size_t)(slash - s) : n;
    *out = (fa_factor){ extent_of(s, word), 1 };
    if (out->extent < 0) {
        out->extent = FA_EXTENT_ONE;
        return !slash && number_of(&out->by, s, n);
    }
    return !slash || number_of(&out->by, slash + 1, n - word - 1);
}

fa_status fa_product_parse(fa_product *out, const char *text)
{
    *out = (fa_product){ .n = 0 };
    for (const char *s = text + strspn(text, " "); *s; s += strspn(s, " ")) {
        size_t n = strcspn(s, " ");
        fa_factor f;
        if (!factor_of(&f, s, n)) {
            char words[16 * FA_EXTENT_COUNT];
            int at = 0;
            for (int i = 0; i < FA_EXTENT_COUNT; i++)
                at += snprintf(words + at, sizeof words - (size_t)at, "%s%s", i ? ", " : "", words_of[i]);
            return fa_fail(FA_INVALID, "\"%.*s\" of \"%s\" is no extent; accepted: %s, each alone or as NAME/TILE, and numbers from 1",
                           (int)(n < 40 ? n : 40), s, text, words);
        }
        if (out->n == FA_FACTORS_MAX)
            return fa_fail(FA_INVALID, "\"%s\" has too many factors; accepted: at most %d", text, FA_FACTORS_MAX);
        out->factor[out->n++] = f;
        s += n;
    }
    return FA_OK;
}

int fa_product_print(char *buf, size_t n, const fa_product *p)
{
    int at = 0;
    if (n)
        buf[0] = 0;
    for (int i = 0; i < p->n; i++) {
        const fa_factor *f = &p->factor[i];
        char *to = (size_t)at < n ? buf + at : NULL;
        size_t room = to ? n - (size_t)at : 0;
        const char *gap = i ? " " : "";
        if (f->extent == FA_EXTENT_ONE)
            at += snprintf(to, room, "%s%d", gap, f->by);
        else if (f->by > 1)
            at += snprintf(to, room, "%s%s/%d", gap, words_of[f->extent], f->by);
        else
            at += snprintf(to, room, "%s%s", gap, words_of[f->extent]);
    }
    return at;
}

int64_t fa_product_value(const fa_product *p, const fa_sizes *s)
{
    int64_t v = 1;
    for (int i = 0; i < p->n; i++)
        if (__builtin_mul_overflow(v, fa_factor_value(&p->factor[i], s), &v))
            return -1;
    return v;
}

bool fa_product_has(const fa_product *p, fa_extent extent)
{
    for (int i = 0; i < p->n; i++)
        if (p->factor[i].extent == (int32_t)extent)
            return true;
    return false;
}
