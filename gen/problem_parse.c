/* problem_parse: a problem from its text. */
#include "error.h"
#include "fields.h"
#include "problem.h"
#include "score/known.h"
#include "text.h"
#include <string.h>

#define DTYPES "fp16, bf16, tf32, fp32, e4m3, e5m2, s8"

static fa_status parse_value(int32_t *out, const fa_problem_field *f, const fa_field *in)
{
    int v = 0;
    switch (f->kind) {
    case FA_FIELD_DTYPE:
        if (!fa_dtype_parse(&v, in->value))
            return fa_fail(FA_INVALID, "problem: %s is \"%s\"; accepted: " DTYPES "%s", f->word, in->value,
                           f->at == offsetof(fa_problem, kv_dtype) || f->at == offsetof(fa_problem, v_dtype)
                               ? ", or a format of docs/lowbits.md"
                               : "");
        break;
    case FA_FIELD_MASK:
        if (!fa_mask_parse(&v, in->value))
            return fa_fail(FA_INVALID, "problem: mask is \"%s\"; accepted: none, causal, window", in->value);
        break;
    case FA_FIELD_OP:
        if (!fa_op_parse(&v, in->value))
            return fa_fail(FA_INVALID, "problem: op is \"%s\"; accepted: forward, backward, merge, append", in->value);
        break;
    case FA_FIELD_FEATURES:
        return fa_features_parse(out, in->value)
                   ? FA_OK
                   : fa_fail(FA_INVALID, "problem: features is \"%s\"; accepted: %s, joined by +", in->value, fa_feature_names());
    case FA_FIELD_NUMBER:
        return fa_field_int(out, in, "problem");
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
            return fa_fail(FA_INVALID, "problem: %s is given twice (the second is \"%s\"); accepted: once", word, in.value);
        seen |= (uint64_t)1 << i;
        int32_t v;
        if ((st = parse_value(&v, &fa_problem_fields[i], &in)) != FA_OK)
            return st;
        fa_problem_set(&p, &fa_problem_fields[i], v);
    }
    if (st != FA_OK)
        return st;
    if (!(seen & 1))
        return fa_fail(FA_INVALID, "problem: dtype is missing; accepted: " DTYPES);
    return fa_problem_normalize(out, &p);
}

fa_status fa_problem_parse_scored(fa_problem *out, const char *s, const char *score, size_t n)
{
    fa_message before;
    const fa_program *program;
    fa_message_keep(&before);
    fa_status st = fa_problem_parse(out, s);
    if (st == FA_OK || !score || !strstr(s, "score0=") || fa_score_known_read(&program, "score", score, n) != FA_OK)
        return st;
    return fa_message_settle(&before, fa_problem_parse(out, s));
}
