/* problem_fields: the list as a table, and its readers: printer, comparison. */
#include "problem_fields.h"
#include "problem.h"
#include <stdio.h>
#include <string.h>

enum { ALWAYS = 1, SET = 0, LESS = 1, SAME = 0 };

const fa_problem_field fa_problem_fields[FA_PROBLEM_FIELD_COUNT] = {
#define X(m, w, p, k, s, v) { #m, w, FA_FIELD_##p, FA_FIELD_##k, s, v, offsetof(fa_problem, m) },
    FA_PROBLEM_FIELDS(X)
#undef X
};

/* Every member but the size stands in the list. */
_Static_assert(sizeof(fa_problem) == sizeof(uint32_t) + FA_PROBLEM_FIELD_COUNT * sizeof(int32_t),
               "a member of fa_problem is missing in FA_PROBLEM_FIELDS");

int32_t fa_problem_get(const fa_problem *p, const fa_problem_field *f)
{
    int32_t v;
    memcpy(&v, (const char *)p + f->at, sizeof v);
    return v;
}

void fa_problem_set(fa_problem *p, const fa_problem_field *f, int32_t value)
{
    memcpy((char *)p + f->at, &value, sizeof value);
}

/* A bit without a name is its number. */
static const char *features_text(char *buf, size_t n, int32_t features)
{
    size_t at = 0;
    buf[0] = 0;
    for (int bit = 0; bit < 32; bit++)
        if ((uint32_t)features >> bit & 1) {
            char number[16];
            const char *name = fa_feature_name((int32_t)(1u << bit));
            if (!strcmp(name, "?"))
                snprintf(number, sizeof number, "0x%x", 1u << bit);
            int len = snprintf(buf + at, n - at, "%s%s", at ? "+" : "", strcmp(name, "?") ? name : number);
            at += len > 0 && (size_t)len < n - at ? (size_t)len : 0;
        }
    return buf;
}

const char *fa_problem_field_text(char *buf, size_t n, const fa_problem_field *f, int32_t value)
{
    switch (f->kind) {
    case FA_FIELD_DTYPE:
        return fa_dtype_name(value);
    case FA_FIELD_MASK:
        return fa_mask_name(value);
    case FA_FIELD_OP:
        return fa_op_name(value);
    case FA_FIELD_FEATURES:
        return features_text(buf, n, value);
    case FA_FIELD_NUMBER:
        break;
    }
    snprintf(buf, n, "%d", value);
    return buf;
}

/* Prints the fields of a part; the first one, the type, without its word. */
static int print(char *buf, size_t n, const fa_problem *p, bool shape)
{
    int len = 0;
    for (size_t i = 0; i < FA_PROBLEM_FIELD_COUNT; i++) {
        const fa_problem_field *f = &fa_problem_fields[i];
        int32_t v = fa_problem_get(p, f);
        char text[FA_FEATURES_TEXT];
        if ((f->part == FA_FIELD_SHAPE && !shape) || (!f->always && !v))
            continue;
        char *to = (size_t)len < n ? buf + len : NULL;
        size_t room = to ? n - (size_t)len : 0;
        const char *value = fa_problem_field_text(text, sizeof text, f, v);
        len += i ? snprintf(to, room, ",%s=%s", f->word, value) : snprintf(to, room, "%s", value);
    }
    return len;
}

int fa_problem_print_key(char *buf, size_t n, const fa_problem *p)
{
    return print(buf, n, p, false);
}

int fa_problem_print(char *buf, size_t n, const fa_problem *p)
{
    return print(buf, n, p, true);
}

bool fa_problem_same_class(const fa_problem *a, const fa_problem *b)
{
#define CLASS(m)      \
    if (a->m != b->m) \
        return false;
#define SHAPE(m)
#define X(m, w, p, k, s, v) p(m)
    FA_PROBLEM_FIELDS(X)
#undef X
#undef CLASS
#undef SHAPE
    return true;
}

bool fa_problem_same_shape(const fa_problem *a, const fa_problem *b)
{
#define CLASS(m)
#define SHAPE(m)      \
    if (a->m != b->m) \
        return false;
#define X(m, w, p, k, s, v) p(m)
    FA_PROBLEM_FIELDS(X)
#undef X
#undef CLASS
#undef SHAPE
    return true;
}

int32_t fa_problem_kv_align(const fa_problem *p)
{
    return p->kv_align ? p->kv_align : p->align;
}

int32_t fa_problem_serving(const fa_problem *p, const fa_problem_field *f)
{
    return f == &fa_problem_fields[FA_FIELD_kv_align] ? fa_problem_kv_align(p) : fa_problem_get(p, f);
}

static const fa_problem_field *hindrance(const fa_problem *kernel, const fa_problem *call)
{
    for (size_t i = 0; i < FA_PROBLEM_FIELD_COUNT; i++) {
        const fa_problem_field *f = &fa_problem_fields[i];
        int32_t has = fa_problem_serving(kernel, f), wants = fa_problem_serving(call, f);
        if (f->part == FA_FIELD_CLASS && (f->less_serves ? has > wants || !has != !wants : has != wants))
            return f;
    }
    return NULL;
}

const fa_problem_field *fa_problem_hindrance(const fa_problem *kernel, bool takes_workspace, const fa_problem *call)
{
    fa_problem has = *kernel, wants = *call;
    const int32_t lies = FA_FEATURE_SCORE_ANYWHERE | FA_FEATURE_SCORE_COLUMNS;
    if (kernel->features & FA_FEATURE_SCORE_ANYWHERE && call->features & FA_FEATURE_SCORE) /* it takes all that do */
        has.features &= ~lies, wants.features &= ~lies;
    if (!takes_workspace) {
        has.features &= ~FA_FEATURE_NO_WORKSPACE;
        wants.features &= ~FA_FEATURE_NO_WORKSPACE;
    }
    return hindrance(&has, &wants);
}
