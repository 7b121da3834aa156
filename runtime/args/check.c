/* check: fa_args row by row, in 64 bits and with every overflow looked for. */
#include "check.h"
#include "append.h"
#include "array_layout.h"
#include "gen/batch_kind.h"
#include "gen/error.h"
#include "gen/pairs.h"
#include "gen/problem.h"
#include "gen/score/known.h"
#include "gen/splits.h"
#include "lengths.h"
#include "map.h"
#include "scales.h"
#include "score_values.h"
#include "struct_size.h"
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG2E 1.4426950408889634
#define PARTS_MAX (1 << 20)
#define PLAIN_ALIGN 8 /* bytes: rows that TMA cannot address */
#define END_OF(type, field) (uint32_t)(offsetof(type, field) + sizeof(((type *)0)->field))

fa_status fa_check_problem(fa_problem *out, const fa_problem *p)
{
    if (!p)
        return fa_fail(FA_INVALID, "problem: NULL; accepted: the address of an fa_problem");
    fa_status st = fa_struct_size_check(p, p->size, offsetof(fa_problem, dv), sizeof *p, "problem");
    return st == FA_OK ? fa_problem_normalize(out, p) : st;
}

fa_status fa_check_options(fa_options *out, const fa_options *opt)
{
    fa_options o = FA_OPTIONS_INIT;
    if (opt) {
        fa_status st = fa_struct_size_check(opt, opt->size, offsetof(fa_options, cache_dir), sizeof o, "options");
        if (st != FA_OK)
            return st;
        memcpy(&o, opt, opt->size < sizeof o ? opt->size : sizeof o);
        o.size = sizeof o;
    }
    if (o.log_level < FA_LOG_ERROR || o.log_level > FA_LOG_DEBUG)
        return fa_fail(FA_INVALID, "options: log_level is %d; accepted: 0 (error) to 3 (debug)", o.log_level);
    if (o.sram_budget < 0)
        return fa_fail(FA_INVALID, "options: sram_budget is %d; accepted: bytes, or 0 for all that the chip offers", o.sram_budget);
    if (o.bundle_only != 0 && o.bundle_only != 1)
        return fa_fail(FA_INVALID, "options: bundle_only is %d; accepted: 0, 1", o.bundle_only);
    if (o.in_order != 0 && o.in_order != 1)
        return fa_fail(FA_INVALID, "options: in_order is %d; accepted: 0, 1", o.in_order);
    if (o.cache_limit < -1)
        return fa_fail(FA_INVALID, "options: cache_limit is %lld; accepted: bytes, 0 for 4 GiB, or -1 for any amount",
                       (long long)o.cache_limit);
    if (o.on_miss < FA_MISS_COMPILE || o.on_miss > FA_MISS_FAIL)
        return fa_fail(FA_INVALID, "options: on_miss is %d; accepted: FA_MISS_COMPILE (0), FA_MISS_NEAREST (1), FA_MISS_FAIL (2)",
                       o.on_miss);
    if (o.check_device_data < -1 || o.check_device_data > 1)
        return fa_fail(FA_INVALID, "options: check_device_data is %d; accepted: 0 (on the simulator), 1 (always), -1 (never)",
                       o.check_device_data);
    if (o.workspace < FA_WORKSPACE_CONTEXT || o.workspace > FA_WORKSPACE_CALLER)
        return fa_fail(FA_INVALID, "options: workspace is %d; accepted: FA_WORKSPACE_CONTEXT (0), FA_WORKSPACE_CALLER (1)", o.workspace);
    if (o.reserved)
        return fa_fail(FA_INVALID, "options: reserved is %d; accepted: 0", o.reserved);
    *out = o;
    return FA_OK;
}

_Static_assert(offsetof(fa_args, cu_seqlens_q) % 8 == 0 && sizeof(fa_args) % 8 == 0, "what is unread is looked at by 8 bytes");

enum { NONE = 0, FORWARD = 1 << FA_FORWARD, BACKWARD = 1 << FA_BACKWARD, MERGE = 1 << FA_MERGE, APPEND = 1 << FA_APPEND };

#define READS_NO(operation) NONE
#define READS_IN(operation) operation
#define READS_MAY(operation) operation
#define READS_OUT(operation) operation
#define READS_MAY_OUT(operation) operation

/* Fields of operands, and those beside them. An operation that does not read one takes it only as 0, but for those without `what`. */
static const struct {
    const char *name, *what;
    size_t at, bytes;
    int32_t readers;
} fields[] = {
#define FIELD(field, what, readers, ...) { #field, what, offsetof(fa_args, field), sizeof((fa_args *)0)->field, readers },
#define VALUE FIELD
#define OPERAND(field, forward, backward, merge, append, what, ...)        \
    { #field, what, offsetof(fa_args, field), sizeof((fa_args *)0)->field, \
      READS_##forward(FORWARD) | READS_##backward(BACKWARD) | READS_##merge(MERGE) | READS_##append(APPEND) },
#include "gen/operands.def"
};

/* Whether the operation has an operand there, or a list of its host structs. */
static bool has_operand(const fa_operation *op, size_t at)
{
    for (int i = 0; i < op->n; i++)
        if (op->operand[i].at == at)
            return true;
    for (int i = 0; i < op->lists; i++)
        if (op->list[i].at == at || op->list[i].count_at == at)
            return true;
    return false;
}

static fa_status check_unread(const fa_args *a, const fa_operation *op)
{
    static const char zero[sizeof(fa_scale)]; /* the widest of them */
    const uint64_t *word = (const void *)&a->cu_seqlens_q, *end = (const void *)(a + 1);
    int32_t own = op->op <= FA_APPEND ? 1 << op->op : 0;
    uint64_t any = 0;
    size_t first = sizeof fields / sizeof *fields; /* in the order of fagen.h */
    for (; word < end; word++)
        any |= *word;
    if (!any)
        return FA_OK;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].what && !(fields[i].readers & own) && memcmp((const char *)a + fields[i].at, zero, fields[i].bytes) &&
            !has_operand(op, fields[i].at) && (first == sizeof fields / sizeof *fields || fields[i].at < fields[first].at))
            first = i;
    if (first == sizeof fields / sizeof *fields)
        return FA_OK;
    const char *name = fields[first].name, *what = fields[first].what;
    return fields[first].readers == NONE
               ? fa_fail(FA_UNSUPPORTED, "args: %s is set: %s, which this version does not compute; accepted: 0", name, what)
               : fa_fail(FA_INVALID, "args: %s is set: %s; accepted with op=%s: 0", name, what, op->name);
}

static const struct {
    uint32_t flag;
    const char *name;
} flags[] = {
    { FA_BROADCAST, "FA_BROADCAST (0x1)" },
    { FA_BATCH_INVARIANT, "FA_BATCH_INVARIANT (0x2)" },
    { FA_DETERMINISTIC, "FA_DETERMINISTIC (0x4)" },
    { FA_ACCUMULATE, "FA_ACCUMULATE (0x8)" },
};

static fa_status check_flags(const fa_args *a, const fa_operation *op)
{
    char names[160] = "";
    uint32_t known = 0;
    size_t at = 0;
    bool several = op->flags & (op->flags - 1);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        known |= flags[i].flag;
    if (!(a->flags & ~op->flags))
        return FA_OK;
    for (size_t i = 0; i < sizeof flags / sizeof *flags && at < sizeof names; i++)
        if (op->flags & flags[i].flag)
            at += (size_t)snprintf(names + at, sizeof names - at, "%s, ", flags[i].name);
    return fa_fail(a->flags & ~known ? FA_INVALID : FA_UNSUPPORTED, "args: flags is %#x; accepted%s with op=%s: %s%sor 0", a->flags,
                   a->flags & ~known ? "" : " by this version", op->name, names, several ? "or-ed together, " : "");
}

static fa_status check_op(const fa_args *a, const fa_operation **op)
{
    *op = fa_operation_find(a->op);
    if (!*op)
        return fa_fail(FA_INVALID, "args: op is %d; accepted: FA_FORWARD (%d), FA_BACKWARD (%d), FA_MERGE (%d), FA_APPEND (%d)", a->op,
                       FA_FORWARD, FA_BACKWARD, FA_MERGE, FA_APPEND);
    fa_status st = check_flags(a, *op);
    return st == FA_OK ? check_unread(a, *op) : st;
}

bool fa_check_within(const fa_args *a)
{
    return !(a->layout_flags & FA_V_IN_K) || !a->v.ptr || a->v.ptr == a->k.ptr;
}

/* V is a tensor of its own, or the first columns of K's rows. */
static fa_status check_layout(const fa_args *a, const fa_operation *op)
{
    if (!a->layout_flags || !(op->features & FA_FEATURE_V_IN_K))
        return FA_OK;
    if (a->layout_flags != FA_V_IN_K && a->layout_flags != FA_V_COLUMNS)
        return fa_fail(FA_INVALID, "args: layout_flags is %#x; accepted: FA_V_COLUMNS (0x1), FA_V_IN_K (0x2), or 0",
                       (unsigned)a->layout_flags);
    if (a->layout_flags == FA_V_COLUMNS)
        return FA_OK;
    const struct {
        const char *name;
        int64_t v, k;
    } strides[] = { { "sb", a->v.sb, a->k.sb }, { "ss", a->v.ss, a->k.ss }, { "sh", a->v.sh, a->k.sh } };
    if (!fa_check_within(a))
        return fa_fail(FA_INVALID, "args: v.ptr is %p; accepted with layout_flags=FA_V_IN_K: k.ptr, %p, or NULL", a->v.ptr, a->k.ptr);
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        if (strides[i].v != strides[i].k && (a->v.ptr || strides[i].v))
            return fa_fail(FA_INVALID, "args: v.%s is %lld; accepted with layout_flags=FA_V_IN_K: that of k, %lld", strides[i].name,
                           (long long)strides[i].v, (long long)strides[i].k);
    return FA_OK;
}

/* Keys that a row sees beside its own: what tells windows apart where configs are chosen. */
static int32_t window_of(const fa_args *a)
{
    int64_t left = a->window_left >= 0 ? a->window_left : a->sk, right = a->window_right >= 0 ? a->window_right : a->sk, all = left + right;
    all = all < a->sk ? all : a->sk;
    return a->mask != FA_MASK_WINDOW ? 0 : all > 1 ? (int32_t)all : 1;
}

/* The scalars: those of the problem go to *p, in the form fa_problem_normalize leaves. What is said of keys is not read where no operand
 * has them. */
static fa_status check_scalars(fa_problem *p, const fa_args *a, const fa_operation *op, const fa_score *score)
{
    bool keys = fa_operation_has_keys(op);
    int32_t hkv = keys ? a->hkv : a->hq, sk = keys ? a->sk : a->sq;
    const struct {
        const char *name;
        int64_t v, least, most;
    } rows[] = {
        { "b", a->b, 0, INT32_MAX },
        { "hq", a->hq, 1, 1 << 16 },
        { "hkv", hkv, 1, 1 << 16 },
        { "sq", a->sq, 0, FA_MAX_LENGTH },
        { "sk", sk, 0, FA_MAX_LENGTH },
        { "diagonal", a->diagonal, FA_BOTTOM_RIGHT, FA_OFFSET },
        { "window_left", a->mask == FA_MASK_WINDOW ? a->window_left : -1, -1, INT32_MAX },
        { "window_right", a->mask == FA_MASK_WINDOW ? a->window_right : -1, -1, INT32_MAX },
        { "parts", a->parts, 0, PARTS_MAX },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].v < rows[i].least || rows[i].v > rows[i].most)
            return fa_fail(FA_INVALID, "args: %s is %lld; accepted: %lld to %lld", rows[i].name, (long long)rows[i].v,
                           (long long)rows[i].least, (long long)rows[i].most);
    if (a->hq % hkv)
        return fa_fail(FA_INVALID, "args: hq is %d; accepted with hkv=%d: a multiple of it", a->hq, hkv);
    if (!(a->scale >= 0) || isinf((float)(a->scale * LOG2E)))
        return fa_fail(
            FA_INVALID,
            "args: scale is %g; accepted: above 0 and up to 2.358e38, where its product with log2(e) is a number of fp32, or 0 for "
            "1/sqrt(d); for a negative one negate Q or K: kernels look for the largest score before they multiply by it",
            (double)a->scale);
    if (!(a->dropout >= 0 && a->dropout < 1))
        return fa_fail(FA_INVALID, "args: dropout is %g; accepted: the probability of a weight to be dropped, 0 to below 1",
                       (double)a->dropout);
    fa_problem q = { .size = sizeof q, .dtype = a->dtype, .d = a->d, .dv = a->dv, .mask = a->mask, .o_dtype = a->o_dtype, .op = a->op };
    q.features = fa_operation_features(op, a); /* of operations without that feature each kernel takes strides of lse */
    q.features |= a->flags & FA_BATCH_INVARIANT ? FA_FEATURE_BATCH_INVARIANT : 0;
    q.features |= a->flags & FA_DETERMINISTIC ? FA_FEATURE_DETERMINISTIC : 0;
    q.features |= a->dropout > 0 ? FA_FEATURE_DROPOUT : 0;
    q.features |= op->features & FA_FEATURE_V_IN_K && a->layout_flags & FA_V_IN_K ? FA_FEATURE_V_IN_K : 0;
    q.features |= op->features & FA_FEATURE_V_COLUMNS && a->layout_flags & FA_V_COLUMNS ? FA_FEATURE_V_COLUMNS : 0;
    q.grad_dtype = a->grad_dtype;
    q.kv_dtype = a->kv_dtype;
    q.v_dtype = a->v_dtype;
    q.q_dtype = a->q_dtype;
    q.q_scale_by = a->q_scale.by;
    q.o_scale_by = a->o_scale.by;
    q.k_scale_by = a->k_scale.by;
    q.v_scale_by = a->v_scale.by;
    q.page = q.features & (FA_FEATURE_PAGES | FA_FEATURE_SLOTS) ? fa_lengths_page(a) : 0;
    if (op->op == FA_APPEND)
        fa_append_class(&q, a);
    if (score) {
        fa_score_known_name(&q, score->program);
        q.score_grads = fa_score_values_grads(a, score);
    }
    fa_status st = fa_problem_normalize(p, &q);
    if (st != FA_OK)
        return fa_wrap(st, "args");
    if (a->flags & FA_ACCUMULATE && p->grad_dtype != FA_F32)
        return fa_fail(FA_INVALID, "args: flags has FA_ACCUMULATE and grad_dtype is %s; accepted with it: fp32 (4)",
                       fa_dtype_name(p->grad_dtype));
    p->b = a->b;
    p->hq = a->hq;
    p->hkv = hkv;
    p->sq = a->sq;
    p->sk = sk;
    p->window = window_of(a);
    return FA_OK;
}

/* The mask as two diagonals, clamped so that the kernel's 32-bit arithmetic cannot wrap; and as the shift that a sequence's own lengths
 * come to on the device, which clamps again. */
static void fill_mask(fa_values *v, const fa_args *a)
{
    fa_shift shift = fa_shift_of(a->mask, a->diagonal, a->offset, a->window_left, a->window_right);
    fa_pairs pairs = fa_pairs_of(shift, a->sq, a->sk);
    v->diag_lo = (int32_t)pairs.band.lo;
    v->diag_hi = (int32_t)pairs.band.hi;
    v->key_base = (int32_t)fa_pairs_all_keys(&pairs).first;
    v->relative = shift.relative;
    v->shift_lo = shift.lo;
    v->shift_hi = shift.hi;
    v->off = fa_offset_of(a->diagonal, a->offset);
}

void fa_check_place_within(fa_call *c)
{
    int k = c->problem.features & FA_FEATURE_V_IN_K ? fa_operand_slot(c->op, FA_ID_k) : -1;
    for (int i = 0; i < c->op->n && k >= 0; i++)
        if (c->problem.features & c->op->operand[i].within)
            c->values.operand[i] = c->values.operand[k];
}

static void fill(fa_call *c, const fa_args *a, const fa_span *s)
{
    fa_values *v = &c->values;
    uint64_t has = c->has;
    memset(v->operand, 0, (size_t)c->op->n * sizeof *v->operand);
    for (int i; (i = fa_operands_next(&has)) >= 0; s++) {
        v->operand[i].address = (uint64_t)(uintptr_t)fa_operand_address(&c->op->operand[i], a);
        memcpy(v->operand[i].stride, s->stride, sizeof s->stride);
    }
    fa_check_place_within(c);
    v->workspace = (uint64_t)(uintptr_t)a->workspace;
    v->scale = a->scale > 0 ? a->scale : (float)(1 / sqrt((double)c->problem.d));
    v->scale_log2 = (float)(v->scale * LOG2E);
    v->b = a->b;
    v->hq = a->hq;
    v->hkv = c->problem.hkv;
    v->group = a->hq / v->hkv;
    v->sq = a->sq;
    v->sk = a->sk;
#define VALUE(field, ...) v->field = a->field;
#include "gen/operands.def"
    v->page_table_stride = fa_lengths_table_stride(a);
    v->drop_below = fa_dropout_word_below(a->dropout);
    v->drop_bits = fa_dropout_below(a->dropout);
    v->keep_scale = fa_dropout_scale(a->dropout);
    v->accumulate = a->flags & FA_ACCUMULATE ? 1 : 0;
    fill_mask(v, a);
    c->workspace_size = a->workspace_size;
}

/* Strides, and addresses where tensors is set. The workspace's span is after those of the operands. */
static fa_status check_operands(const fa_call *c, const fa_args *a, bool tensors, fa_span *s)
{
    const fa_operation *op = c->op;
    fa_sizes one = c->sizes; /* of one part */
    fa_status st = FA_OK;
    uint64_t has = c->has;
    one.of[FA_EXTENT_BATCH_PARTS] = one.of[FA_EXTENT_B];
    for (int i, k = 0; st == FA_OK && (i = fa_operands_next(&has)) >= 0; k++) {
        const fa_operand *o = &op->operand[i];
        st = fa_span_shape(&s[k], o, a, &one, fa_operand_bytes(o, &c->problem), o->output || (a->flags & FA_BROADCAST && o->broadcast));
        if (st == FA_OK && o->parts_at)
            st = fa_span_parts(&s[k], a);
        if (st == FA_OK && tensors)
            st = fa_span_place(&s[k], (uint64_t)(uintptr_t)fa_operand_address(o, a));
    }
    for (int k = 0; st == FA_OK && k < c->operands; k++)
        if (s[k].operand->output && s[k].some && (s[k].operand->strided || s[k].operand->strides_at))
            st = fa_span_rows_apart(&s[k]);
    fa_span_workspace(&s[c->operands], a);
    if (st == FA_OK && tensors)
        st = fa_span_place(&s[c->operands], (uint64_t)(uintptr_t)a->workspace);
    return st;
}

/* The score program's operands, whose spans are after the workspace's. */
static fa_status check_score_values(fa_call *c, const fa_args *a, const fa_score *score, bool tensors, fa_span *s)
{
    const int64_t *of = c->sizes.of;
    const int64_t lengths[FA_SCORE_LENGTHS] = {
        [FA_SCORE_LENGTH_B] = of[FA_EXTENT_B],        [FA_SCORE_LENGTH_HQ] = of[FA_EXTENT_HQ], [FA_SCORE_LENGTH_HKV] = of[FA_EXTENT_HKV],
        [FA_SCORE_LENGTH_SQ] = of[FA_EXTENT_SQ],      [FA_SCORE_LENGTH_SK] = of[FA_EXTENT_SK], [FA_SCORE_LENGTH_TQ] = of[FA_EXTENT_TOTAL_Q],
        [FA_SCORE_LENGTH_TK] = of[FA_EXTENT_TOTAL_K],
    };
    return fa_score_values_check(c->values.score, s + c->operands + 1, &c->arrays, a, score, lengths, tensors);
}

void fa_check_align(fa_call *c, const fa_span *s)
{
    bool apart = fa_problem_kv_apart(&c->problem);
    uint64_t bits = 16, kv = 16;
    for (int i = 0; i < c->operands; i++) {
        bool own = apart && (s[i].operand->id == FA_ID_k || s[i].operand->id == FA_ID_v);
        if (s[i].operand->strided)
            *(own ? &kv : &bits) |= s[i].bits | (s[i].hi ? s[i].lo - (uint64_t)s[i].low : 0); /* the address, where it is given */
    }
    fa_problem_set_align(&c->problem, (int32_t)(bits & -bits), (int32_t)(kv & -kv));
}

/* Arguments of any size as those of this header: *args becomes *copy where the sizes differ. Nothing past the size is read. */
static fa_status take(const fa_args **args, fa_args *copy)
{
    const fa_args *a = *args;
    if (!a)
        return fa_fail(FA_INVALID, "args: NULL; accepted: the address of an fa_args");
    if (a->size == sizeof *a)
        return FA_OK;
    fa_status st = fa_struct_size_check(a, a->size, offsetof(fa_args, workspace), sizeof *a, "args");
    if (st != FA_OK)
        return st;
    memset(copy, 0, sizeof *copy);
    memcpy(copy, a, a->size < sizeof *copy ? a->size : sizeof *copy);
    *args = copy;
    return FA_OK;
}

/* No output has a row. */
static bool is_empty(const fa_operation *op, const fa_sizes *s)
{
    bool queries = s->of[FA_EXTENT_SQ] && s->of[FA_EXTENT_ROWS_Q], keys = s->of[FA_EXTENT_SK] && s->of[FA_EXTENT_ROWS_K];
    bool any = false;
    for (int i = 0; i < op->n; i++)
        any = any || (op->operand[i].output && (fa_operand_has_keys(&op->operand[i]) ? keys : queries));
    any = op->op == FA_APPEND ? queries : any; /* which counts what a cache without rows has no room for */
    return !any || !s->of[FA_EXTENT_B];
}

/* Of a call without a row nothing is to be read, and no gradient of an operand changes but those that become 0. */
static void forget_values(fa_call *c, const fa_score *score, const fa_args *args)
{
    fa_score_given given[FA_SCORE_OPERANDS_MAX];
    memcpy(given, c->values.score, sizeof given);
    memset(&c->values, 0, sizeof c->values);
    for (int i = 0; score && !(args->flags & FA_ACCUMULATE) && i < score->program->ir.operands; i++)
        c->values.score[i] = given[i];
    c->workspace_size = 0;
}

static fa_status check(fa_call *out, const fa_args *args, bool tensors, fa_span *spans)
{
    const fa_score *score = NULL;
    fa_status st = check_op(args, &out->op);
    if (st == FA_OK)
        st = fa_scores_find(&score, args);
    if (st == FA_OK)
        st = fa_score_values_count(args, score);
    if (st == FA_OK)
        st = check_layout(args, out->op);
    if (st == FA_OK)
        st = fa_lengths_check(args);
    if (st == FA_OK && args->op == FA_APPEND)
        st = fa_append_check(args);
    if (st == FA_OK)
        st = fa_scales_check(args);
    if (st == FA_OK)
        st = check_scalars(&out->problem, args, out->op, score);
    if (st != FA_OK)
        return st;
    out->has = fa_operands_of(out->op, &out->problem);
    out->operands = __builtin_popcountll(out->has);
    out->sizes = fa_sizes_of(&out->problem, 0);
    fa_lengths_sizes(&out->sizes, args);
    out->sizes.of[FA_EXTENT_ANGLES] = args->rotary_positions;
    out->sizes.of[FA_EXTENT_PARTS] = args->parts;
    out->sizes.of[FA_EXTENT_BATCH_PARTS] = (int64_t)args->b * args->parts;
    st = check_operands(out, args, tensors, spans);
    out->arrays = 0;
    if (st == FA_OK && score)
        st = check_score_values(out, args, score, tensors, spans);
    if (st == FA_OK && tensors)
        st = fa_spans_apart(spans, out->operands + 1 + out->arrays, NULL);
    if (st != FA_OK)
        return st;
    out->empty = is_empty(out->op, &out->sizes);
    if (out->empty) {
        forget_values(out, score, args);
        return FA_OK;
    }
    out->problem.sq = out->problem.sq ? out->problem.sq : 1;
    out->problem.sk = out->problem.sk ? out->problem.sk : 1;
    fa_check_align(out, spans);
    if (out->problem.kv_dtype && fa_problem_kv_align(&out->problem) < 2)
        return fa_fail(FA_UNSUPPORTED, "args: rows of k or v in %s start at odd addresses; accepted: multiples of 2 bytes",
                       fa_dtype_name(out->problem.kv_dtype));
    fill(out, args, spans);
    if (score && args->op == FA_FORWARD && fa_dtype_bytes(out->problem.dtype) == 2 && !(out->problem.features & FA_FEATURE_LENGTHS))
        out->problem.features |= fa_arrays_feature(&score->program->planes, out->values.score);
    return FA_OK;
}

fa_status fa_check_spans(fa_call *out, const fa_args *args, bool tensors, fa_span spans[FA_SPANS_MAX])
{
    fa_args copy;
    fa_status st = take(&args, &copy);
    return st == FA_OK ? check(out, args, tensors, spans) : st;
}

fa_status fa_check_args(fa_call *out, const fa_args *args, bool tensors)
{
    fa_span spans[FA_SPANS_MAX];
    return fa_check_spans(out, args, tensors, spans);
}

/* Whether the operation's first operand that no call is without, q of the forward one, has an address. */
static bool has_first(const fa_args *a)
{
    const fa_operation *op = fa_operation_find(a->op);
    int i = 0;
    while (op && i < op->n && op->operand[i].optional)
        i++;
    return op && i < op->n && fa_operand_address(&op->operand[i], a);
}

fa_status fa_check_given(fa_call *out, const fa_args *args)
{
    fa_span spans[FA_SPANS_MAX];
    fa_args copy;
    fa_status st = take(&args, &copy);
    return st == FA_OK ? check(out, args, has_first(args), spans) : st;
}

/* What a caller has room for: the bytes of fa_problem in the fagen.h whose fa_args has so many. A struct that grows gets a row here. */
static uint32_t problem_room(uint32_t args_size)
{
    return args_size <= END_OF(fa_args, kv_dtype) ? END_OF(fa_problem, kv_dtype) : sizeof(fa_problem); /* the first: fagen 0.1 */
}

fa_status fa_problem_of(const fa_args *args, fa_problem *out)
{
    fa_call call;
    if (!out)
        return fa_fail(FA_INVALID, "out: NULL; accepted: where to write the problem");
    fa_status st = args ? fa_check_given(&call, args) : fa_fail(FA_INVALID, "args: NULL; accepted: the address of an fa_args");
    if (st != FA_OK)
        return st;
    if (!call.empty)
        fa_check_lacks(&call, false);
    uint32_t room = problem_room(args->size);
    memcpy(out, &call.problem, room);
    out->size = room;
    return FA_OK;
}

bool fa_check_may_lack(const fa_problem *p)
{
    bool wide = (p->d > FA_HEAD_DIM_USUAL || p->dv > FA_HEAD_DIM_USUAL) && p->dtype != FA_F32; /* whose fp32 has one family */
    return p->op == FA_FORWARD && !p->kv_dtype &&
           !(p->features &
             ~(FA_FEATURE_LSE_STRIDES | FA_FEATURE_SCORE | FA_FEATURE_V_IN_K | FA_FEATURE_SCORE_ANYWHERE | FA_FEATURE_SCORE_COLUMNS)) &&
           (wide || (p->d <= FA_HEAD_DIM_USUAL && p->dv <= FA_HEAD_DIM_USUAL && (fa_problem_few_rows(p) || fa_problem_splits(p))));
}

void fa_check_lacks(fa_call *c, bool workspace)
{
    fa_problem *p = &c->problem;
    p->features &= ~FA_FEATURE_NO_WORKSPACE; /* of a repeated call, the launch before decided it for its own address */
    if (p->align > PLAIN_ALIGN && !fa_maps_possible(c, p, NULL, 0))
        fa_problem_set_align(p, PLAIN_ALIGN, fa_problem_kv_align(p));
    if (workspace && !c->values.workspace && fa_check_may_lack(p))
        p->features |= FA_FEATURE_NO_WORKSPACE;
}

fa_status fa_check_workspace(const fa_call *call, size_t need)
{
    uint64_t at = call->values.workspace;
    if (need == 0)
        return FA_OK;
    if (call->workspace_size < need)
        return fa_fail(FA_INVALID, "args: workspace_size is %zu; accepted: at least %zu, as fa_workspace_size() tells",
                       call->workspace_size, need);
    if (!at || at % 256)
        return fa_fail(FA_INVALID, "args: workspace is %#llx; accepted: a device address that is a multiple of 256",
                       (unsigned long long)at);
    return FA_OK;
}
