/* problem_fields: the list as a table, and its readers: printer, parser, comparison. */
#include "problem_fields.h"
#include "error.h"
#include "fields.h"
#include "problem.h"
#include "text.h"
#include <stdio.h>
#include <string.h>

enum { ALWAYS = 1, SET = 0, LESS = 1, SAME = 0 };

const fa_problem_field fa_problem_fields[FA_PROBLEM_FIELD_COUNT] = {
#define X(m, w, p, k, s, v) { #m, w, FA_FIELD_##p, FA_FIELD_##k, s, v, offsetof(fa_problem, m) },
    FA_PROBLEM_FIELDS(X)
#undef X
};

/* Every member but the size stands in the list. */
_Static_assert(sizeof(fa_problem) == sizeof(uint32_t) + FA_PROBLEM_FIELD_COUNT * sizeof(int32_t), "a member of fa_problem is missing in FA_PROBLEM_FIELDS");

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

static const char *features_text(char *buf, size_t n, int32_t features)
{
    size_t at = 0;
    buf[0] = 0;
    for (int bit = 0; bit < 31; bit++)
        if (features >> bit & 1) {
            int len = snprintf(buf + at, n - at, "%s%s", at ? "+" : "", fa_feature_name(1 << bit));
            at += len > 0 && (size_t)len < n - at ? (size_t)len : 0;
        }
    return buf;
}

const char *fa_problem_field_text(char *buf, size_t n, const fa_problem_field *f, int32_t value)
{
    switch (f->kind) {
    case FA_FIELD_DTYPE: return fa_dtype_name(value);
    case FA_FIELD_MASK: return fa_mask_name(value);
    case FA_FIELD_OP: return fa_op_name(value);
    case FA_FIELD_FEATURES: return features_text(buf, n, value);
    case FA_FIELD_NUMBER: break;
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
        char text[96];
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

static fa_status parse_features(int32_t *out, const char *text)
{
    *out = 0;
    for (const char *s = text; *s;) {
        size_t n = strcspn(s, "+");
        int32_t bit = fa_feature_parse(s, n);
        if (!bit)
            return fa_fail(FA_INVALID, "problem: features is \"%s\"; accepted: %s, joined by +", text, fa_feature_names());
        *out |= bit;
        s += n + (s[n] == '+');
    }
    return FA_OK;
}

static fa_status parse_value(int32_t *out, const fa_problem_field *f, const fa_field *in)
{
    int v = 0;
    switch (f->kind) {
    case FA_FIELD_DTYPE:
        if (!fa_dtype_parse(&v, in->value))
            return fa_fail(FA_INVALID, "problem: %s is \"%s\"; accepted: fp16, bf16, tf32, fp32", f->word, in->value);
        break;
    case FA_FIELD_MASK:
        if (!fa_mask_parse(&v, in->value))
            return fa_fail(FA_INVALID, "problem: mask is \"%s\"; accepted: none, causal, window", in->value);
        break;
    case FA_FIELD_OP:
        if (!fa_op_parse(&v, in->value))
            return fa_fail(FA_INVALID, "problem: op is \"%s\"; accepted: forward, backward, merge", in->value);
        break;
    case FA_FIELD_FEATURES: return parse_features(out, in->value);
    case FA_FIELD_NUMBER: return fa_field_int(out, in, "problem");
    }
    *out = v;
    return FA_OK;
}

fa_status fa_problem_parse(fa_problem *out, const char *s)
{
    fa_problem p = FA_PROBLEM_INIT;
    uint64_t seen = 0;
    fa_field in;
    fa_status st;
    while (fa_field_next(&s, &in, "problem", &st)) {
        const char *word = in.name[0] ? in.name : fa_problem_fields[0].word;
        size_t i = 0;
        while (i < FA_PROBLEM_FIELD_COUNT && strcmp(fa_problem_fields[i].word, word))
            i++;
        if (i == FA_PROBLEM_FIELD_COUNT) {
            fa_text words = { 0 };
            for (size_t k = 0; k < FA_PROBLEM_FIELD_COUNT; k++)
                fa_text_fmt(&words, "%s%s", k ? ", " : "", fa_problem_fields[k].word);
            st = fa_fail(FA_INVALID, "problem: unknown field \"%s\"; accepted: %s", word, fa_text_cstr(&words));
            fa_text_free(&words);
            return st;
        }
        if (seen >> i & 1)
            return fa_fail(FA_INVALID, "problem: %s is given twice (\"%s\")", word, in.value);
        seen |= (uint64_t)1 << i;
        int32_t v;
        if ((st = parse_value(&v, &fa_problem_fields[i], &in)) != FA_OK)
            return st;
        fa_problem_set(&p, &fa_problem_fields[i], v);
    }
    if (st != FA_OK)
        return st;
    if (!(seen & 1))
        return fa_fail(FA_INVALID, "problem: dtype is missing; accepted: fp16, bf16, tf32, fp32");
    return fa_problem_normalize(out, &p);
}

bool fa_problem_same_class(const fa_problem *a, const fa_problem *b)
{
#define CLASS(m) if (a->m != b->m) return false;
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
#define SHAPE(m) if (a->m != b->m) return false;
#define X(m, w, p, k, s, v) p(m)
    FA_PROBLEM_FIELDS(X)
#undef X
#undef CLASS
#undef SHAPE
    return true;
}

const fa_problem_field *fa_problem_hindrance(const fa_problem *kernel, const fa_problem *call)
{
    for (size_t i = 0; i < FA_PROBLEM_FIELD_COUNT; i++) {
        const fa_problem_field *f = &fa_problem_fields[i];
        int32_t has = fa_problem_get(kernel, f), wants = fa_problem_get(call, f);
        if (f->part == FA_FIELD_CLASS && (f->less_serves ? has > wants || !has != !wants : has != wants))
            return f;
    }
    return NULL;
}
