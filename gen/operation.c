/* operation: the table of operations and operands, and its look-ups. */
#include "operation.h"
#include "format.h"
#include "model.h"
#include "problem.h"
#include <stdio.h>
#include <string.h>

#define EXTRA_MAX 4 /* of fa_operation_add */

/* Members of the rows in gen/operands.def. */
#define E(x) FA_EXTENT_##x
#define TENSOR(batch, rows, heads, width) .rank = 4, .extent = { E(batch), E(rows), E(heads), E(width) }, .strided = true
#define QUERIES(width) TENSOR(BATCH_Q, ROWS_Q, HQ, width)
#define KEYS(width) TENSOR(BATCH_K, ROWS_K, HKV, width)
#define ROWS_OF_HEADS(batch, rows) .rank = 3, .extent = { E(batch), E(HQ), E(rows) }
#define LIST(n) .rank = 1, .extent = { E(n) }
#define TYPE(rule) .type = FA_TYPE_##rule
#define AT(field) offsetof(fa_args, field)
#define SCALES_OF(x, batch, rows)                                                                                 \
    .rank = 3, .extent = { E(batch), E(rows), E(HKV) }, TYPE(F32), .strides_at = offsetof(fa_args, x##_scale.sb), \
    .class_at = offsetof(fa_problem, x##_scale_by), .drawn = FA_DRAWN_FACTOR
#define LENGTHS_OF(n) LIST(n), TYPE(I32), .drawn = FA_DRAWN_SEQUENCES, .feature = FA_FEATURE_LENGTHS, .asks = true

/* An operation's rows, and how many there are. */
#define ROW(field, command, ...) { .name = #field, .at = offsetof(fa_args, field), .id = FA_ID_##field, .word = command, __VA_ARGS__ },
#define ROW_NO(...)
#define ROW_IN(...) ROW(__VA_ARGS__)
#define ROW_MAY(...) ROW(__VA_ARGS__, .optional = true)
#define ROW_OUT(...) ROW(__VA_ARGS__, .output = true)
#define ROW_MAY_OUT(...) ROW(__VA_ARGS__, .optional = true, .output = true)
#define COUNT_NO
#define COUNT_IN +1
#define COUNT_MAY +1
#define COUNT_OUT +1
#define COUNT_MAY_OUT +1

enum {
    FORWARD_OPERANDS = 0
#define OPERAND(field, forward, backward, merge, append, ...) COUNT_##forward
#include "operands.def"
    ,
    BACKWARD_OPERANDS = 0
#define OPERAND(field, forward, backward, merge, append, ...) COUNT_##backward
#include "operands.def"
    ,
    MERGE_OPERANDS = 0
#define OPERAND(field, forward, backward, merge, append, ...) COUNT_##merge
#include "operands.def"
    ,
    APPEND_OPERANDS = 0
#define OPERAND(field, forward, backward, merge, append, ...) COUNT_##append
#include "operands.def"
};
_Static_assert(FA_ID_COUNT - 1 <= FA_OPERANDS_MAX && FA_OPERANDS_MAX < 64, "a bit of a mask for each, and for the workspace");

/* clang-format off */
static const fa_operation operations[] = {
    { .op = FA_FORWARD, .name = "forward", .products_d = 1, .products_dv = 1, .others = 5, .n = FORWARD_OPERANDS,
      .flags = FA_BROADCAST | FA_BATCH_INVARIANT,
      .lists = 1, .list = { { "score_values", AT(score_values), AT(score_value_count), sizeof(fa_score_value) } },
      .features = FA_FEATURE_LENGTHS | FA_FEATURE_PAGES | FA_FEATURE_BATCH_INVARIANT | FA_FEATURE_DROPOUT | FA_FEATURE_LSE_STRIDES |
                  FA_FEATURE_NO_WORKSPACE | FA_FEATURE_SCORE | FA_FEATURE_V_IN_K | FA_FEATURE_V_COLUMNS |
                  FA_FEATURE_SCORE_ANYWHERE | FA_FEATURE_SCORE_COLUMNS,
      .operand = {
#define OPERAND(field, forward, backward, merge, append, what, files, word, letter, help, ...) ROW_##forward(field, word, __VA_ARGS__)
#include "operands.def"
      } },
    { .op = FA_BACKWARD, .name = "backward", .products_d = 3, .products_dv = 2, .others = 8, .n = BACKWARD_OPERANDS,
      .flags = FA_BROADCAST | FA_DETERMINISTIC | FA_ACCUMULATE,
      .lists = 1, .list = { { "score_values", AT(score_values), AT(score_value_count), sizeof(fa_score_value) } },
      .features = FA_FEATURE_LENGTHS | FA_FEATURE_DETERMINISTIC | FA_FEATURE_DROPOUT | FA_FEATURE_LSE_STRIDES | FA_FEATURE_SCORE,
      .follows = true, .after = FA_FORWARD,
      .operand = {
#define OPERAND(field, forward, backward, merge, append, what, files, word, letter, help, ...) ROW_##backward(field, word, __VA_ARGS__)
#include "operands.def"
      } },
    { .op = FA_MERGE, .name = "merge", .n = MERGE_OPERANDS, .flags = FA_BROADCAST,
      .operand = {
#define OPERAND(field, forward, backward, merge, append, what, files, word, letter, help, ...) ROW_##merge(field, word, __VA_ARGS__)
#include "operands.def"
      } },
    { .op = FA_APPEND, .name = "append", .n = APPEND_OPERANDS, .flags = FA_BROADCAST,
      .features = FA_FEATURE_LENGTHS | FA_FEATURE_PAGES | FA_FEATURE_SLOTS | FA_FEATURE_POSITIONS | FA_FEATURE_POSITIONS64 |
                  FA_FEATURE_ROTARY | FA_FEATURE_ROTARY_PAIRS | FA_FEATURE_HADAMARD_K | FA_FEATURE_HADAMARD_V,
      .operand = {
#define OPERAND(field, forward, backward, merge, append, what, files, word, letter, help, ...) ROW_##append(field, word, __VA_ARGS__)
#include "operands.def"
      } },
};
/* clang-format on */

static fa_operation grown[sizeof operations / sizeof *operations]; /* by fa_operand_add; n = 0: as it was */
static const fa_operation *extra[EXTRA_MAX];
static size_t extras;

const fa_operation *fa_operation_row(size_t i)
{
    size_t n = sizeof operations / sizeof *operations;
    if (i < n)
        return grown[i].n ? &grown[i] : &operations[i];
    return i - n < extras ? extra[i - n] : NULL;
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

bool fa_operand_add(int32_t op, const fa_operand *row)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        const fa_operation *before = fa_operation_row(i);
        bool taken = before->op != op || before->n == FA_OPERANDS_MAX;
        for (int k = 0; k < before->n && !taken; k++)
            taken = before->operand[k].at == row->at || !strcmp(before->operand[k].name, row->name);
        if (taken)
            continue;
        grown[i] = *before;
        grown[i].operand[grown[i].n++] = *row;
        return true;
    }
    return false;
}

int fa_operand_index(const fa_operation *op, const char *name)
{
    for (int i = 0; i < op->n; i++)
        if (!strcmp(op->operand[i].name, name))
            return i;
    return -1;
}

int fa_operand_slot(const fa_operation *op, fa_operand_id id)
{
    for (int i = 0; i < op->n; i++)
        if (op->operand[i].id == id)
            return i;
    return -1;
}

int fa_operand_dtype(const fa_operand *o, const fa_problem *p)
{
    switch (o->type) {
    case FA_TYPE_INPUT:
        return p->dtype;
    case FA_TYPE_QUERY:
        return p->q_dtype ? p->q_dtype : p->dtype;
    case FA_TYPE_KV:
        return p->kv_dtype ? p->kv_dtype : p->dtype;
    case FA_TYPE_V:
        return p->v_dtype ? p->v_dtype : p->kv_dtype ? p->kv_dtype : p->dtype;
    case FA_TYPE_OUTPUT:
        return p->o_dtype;
    case FA_TYPE_GRAD:
        return p->grad_dtype;
    case FA_TYPE_F32:
        return FA_F32;
    case FA_TYPE_ANGLE:
        return p->cos_sin_dtype;
    case FA_TYPE_I32:
    case FA_TYPE_U64:
    case FA_TYPE_I64:
    case FA_TYPE_POSITION:
        break;
    }
    return 0;
}

int fa_operand_bytes(const fa_operand *o, const fa_problem *p)
{
    const fa_format *f = fa_format_of(fa_operand_dtype(o, p));
    if (f)
        return f->block_bytes;
    switch (o->type) {
    case FA_TYPE_I32:
        return 4;
    case FA_TYPE_I64:
    case FA_TYPE_U64:
        return 8;
    case FA_TYPE_POSITION:
        return p->features & FA_FEATURE_POSITIONS64 ? 8 : 4;
    case FA_TYPE_INPUT:
    case FA_TYPE_QUERY:
    case FA_TYPE_KV:
    case FA_TYPE_OUTPUT:
    case FA_TYPE_GRAD:
    case FA_TYPE_F32:
    case FA_TYPE_V:
    case FA_TYPE_ANGLE:
        break;
    }
    return fa_dtype_bytes(fa_operand_dtype(o, p));
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

int32_t fa_operation_features(const fa_operation *op, const fa_args *a)
{
    bool strides = a->lse && (a->lse_sb || a->lse_sh || a->lse_ss);
    int32_t features = strides ? FA_FEATURE_LSE_STRIDES & op->features : 0;
    for (int i = 0; i < op->n; i++)
        features |= op->operand[i].asks && fa_operand_address(&op->operand[i], a) ? op->operand[i].feature : 0;
    return features;
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

/* Of an append: what the arguments have beside the class, which says it; with slots a cache that holds all keys of the problem. */
static int32_t append_flags_of(const fa_problem *p)
{
    return (p->features & FA_FEATURE_HADAMARD_K ? FA_HADAMARD_K : 0) | (p->features & FA_FEATURE_HADAMARD_V ? FA_HADAMARD_V : 0);
}

static int32_t layout_flags_of(const fa_problem *p)
{
    return p->features & FA_FEATURE_V_IN_K ? FA_V_IN_K : p->features & FA_FEATURE_V_COLUMNS ? FA_V_COLUMNS : 0;
}

static int32_t position_bytes_of(const fa_problem *p)
{
    return p->features & FA_FEATURE_POSITIONS64 ? 8 : p->features & FA_FEATURE_POSITIONS ? 4 : 0;
}

static int32_t slots_page(const fa_problem *p)
{
    return p->features & FA_FEATURE_SLOTS ? p->page : 0;
}

static int32_t slots_pages(const fa_problem *p, int32_t page)
{
    int64_t pages = page > 0 ? ((int64_t)p->sk / page + (p->sk % page != 0)) * p->b : 0;
    return pages < INT32_MAX ? (int32_t)pages : INT32_MAX;
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
    a.q_scale.by = p->q_scale_by, a.q_scale.dtype = p->q_scale_by ? FA_F32 : 0;
    a.o_scale.by = p->o_scale_by, a.o_scale.dtype = p->o_scale_by ? FA_F32 : 0;
    a.k_scale.by = p->k_scale_by, a.k_scale.dtype = p->k_scale_by ? FA_F32 : 0;
    a.v_scale.by = p->v_scale_by, a.v_scale.dtype = p->v_scale_by ? FA_F32 : 0;
    a.k_scale_out.by = p->k_scale_out_by, a.k_scale_out.dtype = p->k_scale_out_by ? FA_F32 : 0;
    a.v_scale_out.by = p->v_scale_out_by, a.v_scale_out.dtype = p->v_scale_out_by ? FA_F32 : 0;
#define NO_TENSOR (fa_tensor) FA_TENSOR_INIT
#define FIELD(field, what, operations, typical) a.field = typical;
#define VALUE FIELD
#include "operands.def"
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
