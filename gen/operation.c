/* operation: the table of operations and operands, and its look-ups. */
#include "operation.h"
#include "model.h"
#include "problem.h"
#include <stdio.h>
#include <string.h>

#define EXTRA_MAX 4 /* of fa_operation_add */

/* clang-format off */
#define E(x) FA_EXTENT_##x
#define TENSOR(field, of, h, w, type, ...) \
    { #field, 4, { E(BATCH_##of), E(ROWS_##of), E(h), E(w) }, FA_TYPE_##type, .strided = true, .at = offsetof(fa_args, field), __VA_ARGS__ }
#define ROWS_OF_HEADS(field, type, ...) \
    { #field, 3, { E(BATCH_Q), E(HQ), E(ROWS_Q) }, FA_TYPE_##type, .at = offsetof(fa_args, field), __VA_ARGS__ }
#define LENGTHS(field, extent) \
    { #field, 1, { E(extent) }, FA_TYPE_I32, .optional = true, .at = offsetof(fa_args, field), .feature = FA_FEATURE_LENGTHS }
#define RANDOM { "rng", 1, { E(RNG) }, FA_TYPE_U64, .at = offsetof(fa_args, rng), .feature = FA_FEATURE_DROPOUT }

static const fa_operation operations[] = {
    { .op = FA_FORWARD, .name = "forward", .products_d = 1, .products_dv = 1, .others = 5, .n = 11,
      .flags = FA_BROADCAST | FA_BATCH_INVARIANT,
      .features = FA_FEATURE_LENGTHS | FA_FEATURE_PAGES | FA_FEATURE_BATCH_INVARIANT | FA_FEATURE_DROPOUT | FA_FEATURE_LSE_STRIDES |
                  FA_FEATURE_NO_WORKSPACE,
      .operand = {
          TENSOR(q, Q, HQ, D, INPUT),
          TENSOR(k, K, HKV, D, INPUT),
          TENSOR(v, K, HKV, DV, INPUT),
          TENSOR(o, Q, HQ, DV, OUTPUT, .output = true),
          ROWS_OF_HEADS(lse, F32, .output = true, .optional = true, .strides_at = offsetof(fa_args, lse_sb)),
          LENGTHS(cu_seqlens_q, BOUNDS),
          LENGTHS(cu_seqlens_k, BOUNDS),
          LENGTHS(seqlens_q, B),
          LENGTHS(seqlens_k, B),
          { "page_table", 2, { E(B), E(TABLE) }, FA_TYPE_I32, .at = offsetof(fa_args, page_table), .row = E(ENTRIES),
            .feature = FA_FEATURE_PAGES },
          RANDOM,
      } },
    { .op = FA_BACKWARD, .name = "backward", .products_d = 3, .products_dv = 2, .others = 8, .n = 15,
      .flags = FA_BROADCAST | FA_DETERMINISTIC | FA_ACCUMULATE,
      .features = FA_FEATURE_LENGTHS | FA_FEATURE_DETERMINISTIC | FA_FEATURE_DROPOUT | FA_FEATURE_LSE_STRIDES,
      .follows = true, .after = FA_FORWARD,
      .operand = {
          TENSOR(q, Q, HQ, D, INPUT),
          TENSOR(k, K, HKV, D, INPUT),
          TENSOR(v, K, HKV, DV, INPUT),
          TENSOR(o, Q, HQ, DV, OUTPUT),
          ROWS_OF_HEADS(lse, F32, .strides_at = offsetof(fa_args, lse_sb)),
          TENSOR(grad_o, Q, HQ, DV, OUTPUT),
          ROWS_OF_HEADS(grad_lse, F32, .optional = true, .strides_at = offsetof(fa_args, lse_sb)),
          TENSOR(grad_q, Q, HQ, D, GRAD, .output = true),
          TENSOR(grad_k, K, HKV, D, GRAD, .output = true),
          TENSOR(grad_v, K, HKV, DV, GRAD, .output = true),
          LENGTHS(cu_seqlens_q, BOUNDS),
          LENGTHS(cu_seqlens_k, BOUNDS),
          LENGTHS(seqlens_q, B),
          LENGTHS(seqlens_k, B),
          RANDOM,
      } },
    { .op = FA_MERGE, .name = "merge", .n = 4, .flags = FA_BROADCAST,
      .operand = {
          { "part", 4, { E(BATCH_PARTS), E(ROWS_Q), E(HQ), E(DV) }, FA_TYPE_INPUT, .strided = true, .at = offsetof(fa_args, part),
            .parts_at = offsetof(fa_args, part_stride) },
          { "part_lse", 3, { E(BATCH_PARTS), E(HQ), E(SQ) }, FA_TYPE_F32, .at = offsetof(fa_args, part_lse),
            .parts_at = offsetof(fa_args, part_lse_stride) },
          TENSOR(o, Q, HQ, DV, OUTPUT, .output = true),
          ROWS_OF_HEADS(lse, F32, .output = true, .optional = true, .strides_at = offsetof(fa_args, lse_sb)),
      } },
};
/* clang-format on */

static const fa_operation *extra[EXTRA_MAX];
static size_t extras;

const fa_operation *fa_operation_row(size_t i)
{
    size_t n = sizeof operations / sizeof *operations;
    return i < n ? &operations[i] : i - n < extras ? extra[i - n] : NULL;
}

const fa_operation *fa_operation_find(int32_t op)
{
    const fa_operation *row;
    for (size_t i = 0; (row = fa_operation_row(i)); i++)
        if (row->op == op)
            return row;
    return NULL;
}

const fa_operation *fa_operation_named(const char *name)
{
    const fa_operation *row;
    for (size_t i = 0; (row = fa_operation_row(i)); i++)
        if (!strcmp(row->name, name))
            return row;
    return NULL;
}

bool fa_operation_add(const fa_operation *row)
{
    if (extras == EXTRA_MAX || fa_operation_find(row->op) || fa_operation_named(row->name))
        return false;
    extra[extras++] = row;
    return true;
}

int fa_operand_index(const fa_operation *op, const char *name)
{
    for (int i = 0; i < op->n; i++)
        if (!strcmp(op->operand[i].name, name))
            return i;
    return -1;
}

int fa_operand_dtype(const fa_operand *o, const fa_problem *p)
{
    switch (o->type) {
    case FA_TYPE_INPUT:
        return p->dtype;
    case FA_TYPE_OUTPUT:
        return p->o_dtype;
    case FA_TYPE_GRAD:
        return p->grad_dtype;
    case FA_TYPE_F32:
        return FA_F32;
    case FA_TYPE_I32:
    case FA_TYPE_U64:
        break;
    }
    return 0;
}

int fa_operand_bytes(const fa_operand *o, const fa_problem *p)
{
    return o->type == FA_TYPE_I32 ? 4 : o->type == FA_TYPE_U64 ? 8 : fa_dtype_bytes(fa_operand_dtype(o, p));
}

double fa_operation_passes(int32_t op)
{
    const fa_operation *row = fa_operation_find(op);
    int products = row ? row->products_d + row->products_dv : 0;
    return products > 2 ? products / 2.0 : 1;
}

const char *fa_operand_title(char buf[FA_OPERAND_TITLE], const fa_operand *o)
{
    snprintf(buf, FA_OPERAND_TITLE, "%s", o->name);
    for (char *s = buf; *s; s++)
        *s = *s >= 'a' && *s <= 'z' ? (char)(*s - 'a' + 'A') : *s;
    return buf;
}

int fa_operand_print(char *buf, size_t n, const fa_operand *o)
{
    int at = snprintf(buf, n, "[");
    for (int i = 0; i < o->rank; i++)
        at += snprintf((size_t)at < n ? buf + at : NULL, (size_t)at < n ? n - (size_t)at : 0, "%s%s", i ? ", " : "",
                       fa_extent_shapes[o->extent[i]]);
    return at + snprintf((size_t)at < n ? buf + at : NULL, (size_t)at < n ? n - (size_t)at : 0, "]");
}

void fa_operand_set(const fa_operand *o, fa_args *a, void *address, int64_t sb, int64_t ss, int64_t sh)
{
    if (o->strided)
        *(fa_tensor *)((char *)a + o->at) = (fa_tensor){ address, sb, ss, sh };
    else
        *(void **)((char *)a + o->at) = address;
    if (o->parts_at)
        *(int64_t *)((char *)a + o->parts_at) = o->strided ? sb * a->b : 0;
}

fa_args fa_operation_args(const fa_problem *p)
{
    fa_args a = FA_ARGS_INIT;
    a.dtype = p->dtype;
    a.o_dtype = p->o_dtype;
    a.d = p->d;
    a.dv = p->dv;
    a.b = p->b;
    a.hq = p->hq;
    a.hkv = p->hkv;
    a.sq = p->sq;
    a.sk = p->sk;
    a.mask = p->mask;
    a.window_left = p->window ? p->window : FA_MODEL_WINDOW;
    a.op = p->op;
    a.flags = p->features & FA_FEATURE_BATCH_INVARIANT ? FA_BATCH_INVARIANT : 0;
    a.flags |= p->features & FA_FEATURE_DETERMINISTIC ? FA_DETERMINISTIC : 0;
    a.grad_dtype = p->grad_dtype;
    a.dropout = p->features & FA_FEATURE_DROPOUT ? FA_DROPOUT_TYPICAL : 0;
    a.parts = p->op == FA_MERGE ? FA_PARTS_TYPICAL : 0;
    return a;
}

const char *fa_op_name(int op)
{
    const fa_operation *row = fa_operation_find(op);
    return row ? row->name : "?";
}

bool fa_op_parse(int *out, const char *s)
{
    const fa_operation *row = fa_operation_named(s);
    if (row)
        *out = row->op;
    return row != NULL;
}
