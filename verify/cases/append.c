/* append: cases of FA_APPEND computed and judged. */
#include "append.h"
#include "gen/error.h"
#include "gen/format.h"
#include "gen/problem.h"
#include "verify/operands/number.h"
#include "verify/truth/append.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows of the case's tensors: of outputs as they should become. */
typedef struct images {
    const fa_case_tensors *t;
    uint8_t *const *expected;
} images;

static uint8_t *row_of(void *user, fa_operand_id tensor, int64_t batch, int64_t row, int32_t head)
{
    const images *of = user;
    int i = fa_operand_slot(of->t->op, tensor);
    const fa_buffer *b = &of->t->tensor[i];
    return fa_buffer_row(b, of->t->op->operand[i].output ? of->expected[i] : b->image, (int32_t)batch, (int32_t)row, head);
}

/* The arguments with lists in host memory. */
static fa_args host_args(const fa_case_tensors *t)
{
    fa_args a = t->args;
    for (int i = 0; i < t->op->n; i++) {
        const fa_operand *o = &t->op->operand[i];
        const fa_buffer *b = &t->tensor[i];
        if (!o->strided && !o->output && fa_case_has(&t->c, i))
            fa_operand_set(o, &a, b->image + b->origin, 0, 0, 0);
    }
    return a;
}

fa_status fa_append_expect(uint8_t *image[FA_OPERANDS_MAX], const fa_case_tensors *t)
{
    images rows = { t, image };
    fa_args a = host_args(t);
    fa_append_call call = { .args = &a, .problem = t->c.problem, .row = row_of, .user = &rows };
    int counter = fa_operand_slot(t->op, FA_ID_skipped);
    uint64_t skipped = 0, was;
    for (int i = 0; i < t->op->n; i++) {
        const fa_buffer *b = &t->tensor[i];
        if (!t->op->operand[i].output || !fa_case_has(&t->c, i))
            continue;
        image[i] = malloc(b->image_size + 1);
        if (!image[i])
            return fa_fail(FA_NOMEM, "no memory for the %zu bytes of a tensor", b->image_size);
        memcpy(image[i], b->image, b->image_size);
    }
    fa_append_truth(&call, &skipped);
    if (image[counter]) {
        uint8_t *at = image[counter] + t->tensor[counter].origin;
        memcpy(&was, at, sizeof was);
        was += skipped;
        memcpy(at, &was, sizeof was);
    }
    return FA_OK;
}

/* An element as it is, or a NaN in place of another. */
static bool is_right(const uint8_t *got, const uint8_t *wanted, int dtype, int bytes)
{
    static const uint8_t poison[4] = { FA_POISON, FA_POISON, FA_POISON, FA_POISON };
    if (!memcmp(got, wanted, (size_t)bytes) || fa_format_of(dtype))
        return !memcmp(got, wanted, (size_t)bytes);
    return dtype && isnan(fa_number_load(wanted, dtype)) && isnan(fa_number_load(got, dtype)) && memcmp(got, poison, (size_t)bytes) != 0;
}

/* Rows of one output; those that are right become the image's, so that what is left must equal it. */
static bool judge_rows(const fa_case_tensors *t, int operand, uint8_t *image, fa_verdict *v)
{
    const fa_buffer *b = &t->tensor[operand];
    const fa_layout *l = &b->layout;
    const fa_operand *o = &t->op->operand[operand];
    int dtype = fa_operand_dtype(o, &t->c.problem);
    for (int32_t i = 0; i < l->b; i++)
        for (int32_t s = 0; s < l->s; s++)
            for (int32_t h = 0; h < l->h; h++) {
                uint8_t *got = fa_buffer_row(b, b->back, i, s, h), *wanted = fa_buffer_row(b, image, i, s, h);
                for (int32_t x = 0; x < l->width; x++) {
                    const uint8_t *one = got + x * b->bytes, *other = wanted + x * b->bytes;
                    if (is_right(one, other, dtype, b->bytes))
                        continue;
                    v->rule = "bit for bit";
                    v->at = -1;
                    if (fa_format_of(dtype))
                        snprintf(v->text, sizeof v->text, "%s[%d, %d, %d], block %d: %02x %02x %02x %02x; wanted: %02x %02x %02x %02x",
                                 o->name, i, s, h, x, one[0], one[b->bytes > 1], one[b->bytes > 1 ? 2 : 0], one[b->bytes - 1], other[0],
                                 other[b->bytes > 1], other[b->bytes > 1 ? 2 : 0], other[b->bytes - 1]);
                    else if (!dtype)
                        snprintf(v->text, sizeof v->text, "%s is wrong by %lld", o->name,
                                 (long long)(*(const int64_t *)(const void *)one - *(const int64_t *)(const void *)other));
                    else
                        snprintf(v->text, sizeof v->text, "%s[%d, %d, %d, %d] is %.9g; wanted: %.9g, bit for bit", o->name, i, s, h, x,
                                 (double)fa_number_load(one, dtype), (double)fa_number_load(other, dtype));
                    return false;
                }
                memcpy(got, wanted, (size_t)l->width * (size_t)b->bytes);
            }
    return true;
}

bool fa_append_judge(const fa_case_tensors *t, uint8_t *const image[FA_OPERANDS_MAX], fa_verdict *v)
{
    v->bits = 0xcbf29ce484222325u;
    for (int i = 0; i < t->op->n; i++) {
        const fa_buffer *b = &t->tensor[i];
        if (!fa_case_has(&t->c, i))
            continue;
        for (size_t k = 0; t->op->operand[i].output && k < b->image_size; k++)
            v->bits = (v->bits ^ b->back[k]) * 0x100000001b3u; /* FNV-1a */
        if (t->op->operand[i].output && !judge_rows(t, i, image[i], v))
            return false;
        const uint8_t *wanted = t->op->operand[i].output ? image[i] : b->image;
        for (size_t k = 0; k < b->image_size; k++)
            if (b->back[k] != wanted[k]) {
                v->rule = "bytes outside the outputs";
                v->at = -1;
                snprintf(v->text, sizeof v->text, "byte %lld of %s was changed, counted from its first element: %s",
                         (long long)k - (long long)b->origin, t->op->operand[i].name,
                         t->op->operand[i].output ? "a gap or a canary" : "an input");
                return false;
            }
    }
    v->ok = true;
    return true;
}
