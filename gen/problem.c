/* problem: what is asked: its checks, its parser, its bucket. */
#include "problem.h"
#include "error.h"
#include "fields.h"
#include "format.h"
#include "model.h"
#include "operation.h"
#include "score/known.h"
#include "score/reads.h"
#include "text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Bytes of a row of the cache; 0: it has the type of the others. */
static int64_t cache_bytes(int32_t dtype, int32_t n)
{
    const fa_format *f = fa_format_of(dtype);
    return f ? fa_format_bytes(f, n) : (int64_t)n * fa_dtype_bytes(dtype);
}

/* The largest power of two up to 16 that divides the bytes of rows of K and V in the cache. */
static int natural_kv_align(const fa_problem *p)
{
    unsigned rows = (unsigned)cache_bytes(p->kv_dtype, p->d) | (unsigned)cache_bytes(p->v_dtype ? p->v_dtype : p->kv_dtype, p->dv) | 16;
    return (int)(rows & -rows);
}

/* The same of every row, but for those that have an alignment of their own. */
static int natural_align(const fa_problem *p)
{
    unsigned bytes = (unsigned)fa_dtype_bytes(p->dtype);
    unsigned rows = (unsigned)p->d * bytes | (unsigned)p->dv * bytes | (unsigned)(p->dv * fa_dtype_bytes(p->o_dtype)) | 16;
    rows |= fa_problem_kv_apart(p) ? 0 : (unsigned)natural_kv_align(p);
    return (int)(rows & -rows);
}

bool fa_problem_kv_apart(const fa_problem *p)
{
    const fa_format *k = fa_format_k(p), *v = fa_format_v(p);
    return p->op == FA_FORWARD && ((k && k->block > 1) || (v && v->block > 1));
}

void fa_problem_set_align(fa_problem *p, int32_t align, int32_t kv)
{
    p->align = align;
    p->kv_align = kv < align ? kv : 0;
}

int32_t fa_problem_align_apart(const fa_problem *kernel, const fa_problem *call)
{
    int32_t rows = call->align - kernel->align, kv = fa_problem_kv_align(call) - fa_problem_kv_align(kernel);
    return rows > kv ? rows : kv;
}

static fa_status settle_kv_align(fa_problem *p)
{
    if (!fa_problem_kv_apart(p))
        return p->kv_align
                   ? fa_fail(FA_INVALID, "problem: kv_align is %d; accepted without K or V in blocks (q8_0 to nvfp4): 0", p->kv_align)
                   : FA_OK;
    int32_t natural = natural_kv_align(p), most = natural < p->align ? natural : p->align, kv = p->kv_align ? p->kv_align : most;
    if (kv < 2 || kv > most || (kv & (kv - 1)))
        return fa_fail(FA_INVALID, "problem: kv_align is %d; accepted with align=%d, d=%d, dv=%d: 0, or a power of two from 2 to %d", kv,
                       p->align, p->d, p->dv, most);
    fa_problem_set_align(p, p->align, kv);
    return FA_OK;
}

bool fa_problem_eight(const fa_problem *p)
{
    return p->dtype == FA_E4M3 || p->dtype == FA_E5M2;
}

int32_t fa_problem_wide_values(const fa_problem *p)
{
    bool wide = fa_problem_eight(p) && (p->v_dtype == FA_F16 || p->v_dtype == FA_BF16);
    return wide ? p->v_dtype : 0;
}

/* A merge multiplies nothing: TF32 is fp32, there is one head_dim, and parts in fp32 may become an O in 16 bits. */
static void settle_merge(fa_problem *p)
{
    p->dtype = p->dtype == FA_TF32 ? FA_F32 : p->dtype;
    p->o_dtype = p->o_dtype == FA_TF32 ? FA_F32 : p->o_dtype;
    p->d = p->dv;
}

/* A type of memory: fp32 for TF32. */
static int32_t stored(int32_t dtype)
{
    return dtype == FA_TF32 ? FA_F32 : dtype;
}

/* "e4m3 (5), e5m2 (6), ..." */
static const char *formats_text(char *buf, size_t n)
{
    const fa_format *f;
    size_t at = 0;
    for (size_t i = 0; (f = fa_format_row(i)) && at < n; i++)
        at += (size_t)snprintf(buf + at, n - at, "%s%s (%d)", i ? ", " : "", f->name, f->dtype);
    return buf;
}

/* Of a row of `width` elements. */
static fa_status check_cache_type(const char *name, int32_t dtype, int32_t width)
{
    char accepted[160];
    const fa_format *f = fa_format_of(dtype);
    int32_t unit = f && f->block > 8 ? f->block : 8;
    if (f && width % unit)
        return fa_fail(FA_UNSUPPORTED, "problem: %s is %d (%s) and rows have %d elements; accepted with it: a multiple of %d", name, dtype,
                       f->name, width, unit);
    if (!dtype || f || fa_dtype_bytes(dtype))
        return FA_OK;
    return fa_fail(FA_INVALID, "problem: %s is %d; accepted with op=append: 0, fp16 (1), bf16 (2), fp32 (4), %s", name, dtype,
                   formats_text(accepted, sizeof accepted));
}

/* Scales that an append finds: of each row, of formats that have none of their own, in the place of scales that are given. */
static fa_status check_found_scales(const fa_problem *p)
{
    const struct {
        const char *name, *tensor;
        int32_t by, given, dtype;
    } rows[] = { { "k_scale_out_by", "K", p->k_scale_out_by, p->k_scale_by, p->kv_dtype ? p->kv_dtype : p->dtype },
                 { "v_scale_out_by", "V", p->v_scale_out_by, p->v_scale_by,
                   p->v_dtype    ? p->v_dtype
                   : p->kv_dtype ? p->kv_dtype
                                 : p->dtype } };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const fa_format *f = fa_format_of(rows[i].dtype);
        if (rows[i].by && rows[i].by != FA_SCALE_TOKEN)
            return fa_fail(FA_INVALID, "problem: %s is %d; accepted: FA_SCALE_TOKEN (2), or 0 where no scale is found", rows[i].name,
                           rows[i].by);
        if (rows[i].by && (!f || f->scale_dtype))
            return fa_fail(FA_INVALID, "problem: %s is %d; accepted with %s in %s: 0", rows[i].name, rows[i].by,
                           fa_dtype_name(rows[i].dtype), rows[i].tensor);
        if (rows[i].by && rows[i].given)
            return fa_fail(FA_INVALID, "problem: %s is %d, and scales of %s are given; accepted: one of them", rows[i].name, rows[i].by,
                           rows[i].tensor);
    }
    return FA_OK;
}

static fa_status check_rotary(fa_problem *p)
{
    bool pairs = p->features & FA_FEATURE_ROTARY_PAIRS;
    if (p->rotary_dim < 0 || p->rotary_dim % 2 || p->rotary_dim > p->d)
        return fa_fail(FA_INVALID,
                       "problem: rotary_dim is %d; accepted with d=%d: an even number from 2 to %d, or 0 where nothing is rotated",
                       p->rotary_dim, p->d, p->d / 2 * 2);
    p->features |= p->rotary_dim ? FA_FEATURE_ROTARY : 0;
    if (p->features & FA_FEATURE_ROTARY && !p->rotary_dim)
        return fa_fail(FA_INVALID, "problem: features has rotary and rotary_dim is 0; accepted: both or neither");
    if (!p->rotary_dim && (p->cos_sin_dtype || pairs || p->features & FA_FEATURE_POSITIONS))
        return fa_fail(FA_INVALID, "problem: rotary_dim is 0 and %s; accepted with it: nothing that is said of rotation",
                       p->cos_sin_dtype ? "cos_sin_dtype is set"
                       : pairs          ? "features has rotary-pairs"
                                        : "features has positions");
    if (p->features & FA_FEATURE_POSITIONS64 && !(p->features & FA_FEATURE_POSITIONS))
        return fa_fail(FA_INVALID, "problem: features has positions64 and no positions; accepted: positions+positions64");
    if (p->rotary_dim && p->cos_sin_dtype != FA_F32 && p->cos_sin_dtype != FA_F16 && p->cos_sin_dtype != FA_BF16)
        return fa_fail(FA_INVALID, "problem: cos_sin_dtype is %d; accepted with rotary_dim=%d: fp16 (1), bf16 (2), fp32 (4)",
                       p->cos_sin_dtype, p->rotary_dim);
    return FA_OK;
}

static fa_status check_hadamard(const fa_problem *p)
{
    const struct {
        int32_t feature, of;
        const char *name, *dim;
    } rows[] = { { FA_FEATURE_HADAMARD_K, p->d, "hadamard-k", "d" }, { FA_FEATURE_HADAMARD_V, p->dv, "hadamard-v", "dv" } };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (p->features & rows[i].feature && rows[i].of & (rows[i].of - 1))
            return fa_fail(FA_UNSUPPORTED, "problem: %s is %d and features has %s; accepted with it: a power of two", rows[i].dim,
                           rows[i].of, rows[i].name);
    return FA_OK;
}

/* An append multiplies nothing either; the cache may have types of its own. */
static fa_status settle_append(fa_problem *p)
{
    p->dtype = stored(p->dtype);
    if (p->o_dtype && stored(p->o_dtype) != p->dtype)
        return fa_fail(FA_INVALID, "problem: o_dtype is %d (%s); accepted with op=append: 0", p->o_dtype, fa_dtype_name(p->o_dtype));
    p->o_dtype = p->dtype;
    fa_status st = check_cache_type("kv_dtype", p->kv_dtype, p->d);
    if (st == FA_OK)
        st = check_cache_type("v_dtype", p->v_dtype ? p->v_dtype : p->kv_dtype, p->dv);
    if (st == FA_OK)
        st = check_found_scales(p);
    int32_t k = stored(p->kv_dtype ? p->kv_dtype : p->dtype), v = stored(p->v_dtype ? p->v_dtype : k);
    p->kv_dtype = k == p->dtype ? 0 : k;
    p->v_dtype = v == k ? 0 : v;
    return st;
}

/* Gradients have the type of the inputs, or fp32. */
static fa_status settle_gradients(fa_problem *p)
{
    if (p->dtype == FA_TF32)
        return fa_fail(FA_UNSUPPORTED, "problem: dtype is tf32; accepted with op=backward: fp16, bf16, fp32");
    if (!p->grad_dtype)
        p->grad_dtype = p->dtype;
    if (p->grad_dtype == p->dtype || p->grad_dtype == FA_F32)
        return FA_OK;
    return fa_fail(fa_dtype_bytes(p->grad_dtype) ? FA_UNSUPPORTED : FA_INVALID,
                   "problem: grad_dtype is %d (%s); accepted with %s: 0, %s, or fp32 (4)", p->grad_dtype, fa_dtype_name(p->grad_dtype),
                   fa_dtype_name(p->dtype), fa_dtype_name(p->dtype));
}

/* Bytes of an element of the narrowest type that rows have. */
static int narrowest(const fa_problem *p, bool narrows)
{
    const int32_t dtypes[] = { narrows ? p->o_dtype : p->dtype, p->kv_dtype, p->v_dtype };
    int least = fa_dtype_bytes(dtypes[0]);
    for (size_t i = 1; i < COUNT(dtypes) && p->op == FA_APPEND; i++) {
        const fa_format *f = fa_format_of(dtypes[i]);
        int bytes = f ? f->block_bytes & -f->block_bytes : fa_dtype_bytes(dtypes[i]);
        least = dtypes[i] && bytes < least ? bytes : least;
    }
    return least;
}

/* K and V of few bits: a type that is another one's is 0. */
static fa_status settle_low_bits(fa_problem *p)
{
    char accepted[160];
    bool few = p->op == FA_FORWARD && (p->dtype == FA_F16 || p->dtype == FA_BF16);
    p->kv_dtype = p->kv_dtype == p->dtype ? 0 : p->kv_dtype;
    p->v_dtype = p->v_dtype == (p->kv_dtype ? p->kv_dtype : p->dtype) ? 0 : p->v_dtype;
    const struct {
        const char *field;
        int32_t dtype, width;
    } types[] = { { "kv_dtype", p->kv_dtype, p->d }, { "v_dtype", p->v_dtype, p->dv } };
    for (size_t i = 0; i < COUNT(types); i++) {
        const fa_format *f = fa_format_of(types[i].dtype);
        bool wide = i && p->op == FA_FORWARD && fa_problem_eight(p); /* P V in 16 bits beside Q K^T in 8 */
        if (types[i].dtype && (!f || !few || !p->kv_dtype) && !(wide && fa_problem_wide_values(p)))
            return fa_fail(types[i].dtype < 0 ? FA_INVALID : FA_UNSUPPORTED,
                           "problem: %s is %d (%s); accepted with op=%s, %s: 0, the type of %s%s%s", types[i].field, types[i].dtype,
                           fa_dtype_name(types[i].dtype), fa_op_name(p->op), fa_dtype_name(p->dtype), i ? "K" : "Q",
                           wide                         ? ", or fp16 (1), bf16 (2)"
                           : few && (p->kv_dtype || !i) ? ", or "
                                                        : "",
                           few && (p->kv_dtype || !i) ? formats_text(accepted, sizeof accepted) : "");
    }
    if (p->q_dtype && (p->q_dtype != FA_F32 || !p->kv_dtype))
        return fa_fail(FA_UNSUPPORTED, "problem: q_dtype is %d: Q in another type than the products; accepted: 0%s", p->q_dtype,
                       p->kv_dtype ? ", fp32 (4)" : ", or over K and V of few bits fp32 (4)");
    if (!p->kv_dtype)
        return FA_OK;
    const fa_format *of[] = { fa_format_k(p), fa_format_v(p) };
    for (int i = 0; i < 2; i++) {
        int32_t width = i ? p->dv : p->d, unit = of[i]->block > 8 ? of[i]->block : 8;
        if (width % unit)
            return fa_fail(FA_UNSUPPORTED, "problem: %s is %d; accepted with %s in %s: a multiple of %d", i ? "dv" : "d", width,
                           i ? "V" : "K", of[i]->name, unit);
    }
    return FA_OK;
}

/* Of K and V alone, and of those whose format has none of its own. */
static fa_status check_scales(const fa_problem *p)
{
    const struct {
        const char *field, *tensor;
        int32_t by;
        const fa_format *format;
    } scales[] = { { "k_scale_by", "K", p->k_scale_by, fa_format_k(p) },
                   { "v_scale_by", "V", p->v_scale_by, fa_format_v(p) },
                   { "q_scale_by", "Q", p->q_scale_by, NULL },
                   { "o_scale_by", "O", p->o_scale_by, NULL } };
    for (size_t i = 0; i < COUNT(scales); i++) {
        int32_t by = scales[i].by;
        if (fa_problem_eight(p)) {
            if (by && by != FA_SCALE_FOLDED)
                return fa_fail(by >= FA_SCALE_TOKEN && by <= FA_SCALE_CHANNEL ? FA_UNSUPPORTED : FA_INVALID,
                               "problem: %s is %d; accepted with %s in Q: 0 (none), FA_SCALE_FOLDED (1)", scales[i].field, by,
                               fa_dtype_name(p->dtype));
            continue;
        }
        if (by && !scales[i].format)
            return fa_fail(FA_UNSUPPORTED, "problem: %s is %d; accepted with %s in %s: 0", scales[i].field, by, scales[i].tensor,
                           fa_dtype_name(p->dtype));
        if (by < 0 || by > FA_SCALE_CHANNEL || by == FA_SCALE_BLOCK)
            return fa_fail(by == FA_SCALE_BLOCK ? FA_UNSUPPORTED : FA_INVALID,
                           "problem: %s is %d; accepted: 0 (none), FA_SCALE_FOLDED (1), FA_SCALE_TOKEN (2), FA_SCALE_CHANNEL (4)",
                           scales[i].field, by);
        if (by == FA_SCALE_CHANNEL && p->op != FA_FORWARD)
            return fa_fail(FA_UNSUPPORTED,
                           "problem: %s is FA_SCALE_CHANNEL (4); accepted with op=%s: FA_SCALE_FOLDED (1), FA_SCALE_TOKEN (2)",
                           scales[i].field, fa_op_name(p->op));
        if (by && scales[i].format->scale_dtype)
            return fa_fail(FA_UNSUPPORTED, "problem: %s is %d; accepted with %s in %s, whose blocks have scales of their own: 0",
                           scales[i].field, by, scales[i].tensor, scales[i].format->name);
    }
    return FA_OK;
}

static fa_status check_kernel(fa_problem *p)
{
    bool eight = fa_problem_eight(p);
    if (!fa_dtype_bytes(p->dtype))
        return fa_fail(FA_INVALID, "problem: dtype is %d; accepted: fp16 (1), bf16 (2), tf32 (3), fp32 (4), e4m3 (5), e5m2 (6)", p->dtype);
    if (eight && p->op != FA_FORWARD)
        return fa_fail(FA_UNSUPPORTED, "problem: dtype is %d (%s); accepted with op=%s: fp16 (1), bf16 (2), tf32 (3), fp32 (4)", p->dtype,
                       fa_dtype_name(p->dtype), fa_op_name(p->op));
    p->q_dtype = p->q_dtype == p->dtype ? 0 : p->q_dtype;
    if (!p->dv)
        p->dv = p->d;
    if (p->op == FA_MERGE)
        settle_merge(p);
    fa_status st = p->op == FA_BACKWARD ? settle_gradients(p) : p->op == FA_APPEND ? settle_append(p) : FA_OK;
    if (st != FA_OK)
        return st;
    const struct {
        const char *name;
        int v;
    } dims[] = { { "d", p->d }, { "dv", p->dv } };
    for (size_t i = 0; i < COUNT(dims); i++)
        if (dims[i].v < 1 || dims[i].v > FA_MAX_HEAD_DIM)
            return fa_fail(dims[i].v < 1 ? FA_INVALID : FA_UNSUPPORTED, "problem: %s is %d; accepted: 1 to %d", dims[i].name, dims[i].v,
                           FA_MAX_HEAD_DIM);
    if (p->mask < FA_MASK_NONE || p->mask > FA_MASK_WINDOW)
        return fa_fail(FA_INVALID, "problem: mask is %d; accepted: none (0), causal (1), window (2)", p->mask);
    st = p->op == FA_APPEND ? FA_OK : settle_low_bits(p);
    if (st == FA_OK)
        st = check_scales(p);
    if (st != FA_OK)
        return st;
    int own = p->dtype == FA_TF32 ? FA_F32 : eight ? FA_BF16 : p->dtype;
    if (!p->o_dtype || (p->o_dtype == p->dtype && !eight))
        p->o_dtype = own;
    bool narrows = p->op == FA_MERGE && p->dtype == FA_F32 && fa_dtype_bytes(p->o_dtype);
    if (eight && p->o_dtype != FA_F16 && p->o_dtype != FA_BF16 && p->o_dtype != FA_F32 && p->o_dtype != FA_E4M3)
        return fa_fail(fa_dtype_bytes(p->o_dtype) ? FA_UNSUPPORTED : FA_INVALID,
                       "problem: o_dtype is %d (%s); accepted with %s: fp16 (1), bf16 (2), fp32 (4), e4m3 (5)", p->o_dtype,
                       fa_dtype_name(p->o_dtype), fa_dtype_name(p->dtype));
    if (p->o_scale_by && p->o_dtype != FA_E4M3)
        return fa_fail(FA_UNSUPPORTED, "problem: o_scale_by is %d; accepted with O in %s: 0, or with O in e4m3 FA_SCALE_FOLDED (1)",
                       p->o_scale_by, fa_dtype_name(p->o_dtype));
    if (!eight && p->o_dtype != own && p->o_dtype != FA_F32 && !narrows)
        return fa_fail(fa_dtype_bytes(p->o_dtype) ? FA_UNSUPPORTED : FA_INVALID,
                       "problem: o_dtype is %d (%s); accepted with %s: %s, or fp32 (4)", p->o_dtype, fa_dtype_name(p->o_dtype),
                       fa_dtype_name(p->dtype), fa_dtype_name(own));
    int most = natural_align(p), least = narrowest(p, narrows);
    if (!p->align)
        p->align = most;
    if (p->align < least || p->align > most || (p->align & (p->align - 1)))
        return fa_fail(FA_INVALID, "problem: align is %d; accepted with %s, d=%d, dv=%d: a power of two from %d to %d", p->align,
                       fa_dtype_name(p->dtype), p->d, p->dv, least, most);
    return settle_kv_align(p);
}

/* Fields that name classes of which there are no kernels yet. */
static fa_status check_later(const fa_problem *p)
{
    static const struct {
        int field;
        const char *what;
        bool append; /* FA_APPEND has it */
    } rows[] = {
        { FA_FIELD_q_scale_by, "scales of Q", false },
        { FA_FIELD_o_scale_by, "scales of O", false },
        { FA_FIELD_rotary_dim, "rotation beside attention", true },
        { FA_FIELD_cos_sin_dtype, "rotation beside attention", true },
        { FA_FIELD_k_scale_out_by, "scales of appended keys", true },
        { FA_FIELD_v_scale_out_by, "scales of appended values", true },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const fa_problem_field *f = &fa_problem_fields[rows[i].field];
        if (fa_problem_get(p, f) && !(rows[i].append && p->op == FA_APPEND) &&
            !((rows[i].field == FA_FIELD_q_scale_by || rows[i].field == FA_FIELD_o_scale_by) && fa_problem_eight(p)))
            return fa_fail(FA_UNSUPPORTED, "problem: %s is %d: %s, which this version does not compute; accepted: 0", f->member,
                           fa_problem_get(p, f), rows[i].what);
    }
    return FA_OK;
}

/* Gradients of operands that the program reads as numbers with a fraction, each by sums that have an order. */
static fa_status check_score_grads(const fa_problem *p, const fa_program *program)
{
    if (!p->score_grads)
        return FA_OK;
    if (p->op != FA_BACKWARD || !program)
        return fa_fail(FA_INVALID, "problem: score_grads is %#x; accepted %s: 0", (unsigned)p->score_grads,
                       program ? "without op=backward" : "without a score program");
    const fa_score_operand *operand = program->ir.operand;
    for (int k = 0; k < 32; k++) {
        bool asked = (uint32_t)p->score_grads >> k & 1;
        if (asked && k >= program->ir.operands)
            return fa_fail(FA_INVALID, "problem: score_grads is %#x; accepted: bits of the program's %d operands", (unsigned)p->score_grads,
                           program->ir.operands);
        if (asked && operand[k].type != FA_SCORE_F32)
            return fa_fail(FA_INVALID, "problem: score_grads has operand %d, %s, which has no gradient; accepted: numbers with a fraction",
                           k, operand[k].name);
    }
    struct {
        fa_score_ir ir;
        fa_score_read_list list;
    } *own = malloc(sizeof *own);
    if (!own)
        return fa_fail(FA_NOMEM, "no memory for the reads of a score program");
    own->ir = program->ir;
    fa_score_reads_of(&own->list, &own->ir, (uint32_t)p->score_grads);
    fa_status st = FA_OK;
    if (!own->list.room)
        st = fa_fail(FA_UNSUPPORTED, "problem: the score program reads operands whose gradients are asked for at more than %d places",
                     FA_SCORE_READS_MAX);
    for (int i = 0; st == FA_OK && i < own->list.n; i++) {
        const fa_score_read *r = &own->list.read[i];
        char index[120];
        if (r->by != FA_SCORE_BY_OTHER)
            continue;
        fa_score_read_print_index(index, sizeof index, &own->ir, r);
        st = fa_fail(FA_UNSUPPORTED,
                     "problem: gradient of %s is not deterministic: index depends on %s; accepted: an index of b, h and one of i, j, "
                     "j - i, or i and j themselves",
                     operand[r->operand].name, index);
    }
    free(own);
    return st;
}

/* A score program is one that this process has read, and that kernels compute. */
static fa_status check_score(const fa_problem *p)
{
    bool feature = p->features & FA_FEATURE_SCORE, named = p->score_id0 || p->score_id1 || p->score_id2 || p->score_id3;
    if (named && (p->op == FA_MERGE || p->op == FA_APPEND))
        return fa_fail(FA_UNSUPPORTED,
                       "problem: score_id0 is %d: a score program, which this version does not compute with op=%s; accepted: 0",
                       p->score_id0, fa_op_name(p->op));
    if (feature != named)
        return fa_fail(FA_INVALID, "problem: features %s score and score_id0 to score_id3 are %s; accepted: both or neither",
                       feature ? "has" : "has no", named ? "set" : "0");
    if (!named)
        return check_score_grads(p, NULL);
    if (!fa_score_known(p))
        return fa_fail(FA_INVALID,
                       "problem: score_id0 to score_id3 are %d, %d, %d, %d, which is no score program of this process; accepted: the words "
                       "of fa_score_id() of one that fa_score_create() has read in it",
                       p->score_id0, p->score_id1, p->score_id2, p->score_id3);
    return check_score_grads(p, fa_score_known(p));
}

/* What fagen.h names and no family computes yet. */
static fa_status check_built(const fa_problem *p)
{
    char text[96], takes[96];
    const fa_operation *op = fa_operation_find(p->op);
    if (!op)
        return fa_fail(FA_INVALID, "problem: op is %d; accepted: forward (0), backward (1), merge (2), append (3)", p->op);
    if ((p->op == FA_MERGE || p->op == FA_APPEND) && p->mask != FA_MASK_NONE)
        return fa_fail(FA_INVALID, "problem: mask is %s; accepted with op=%s: none", fa_mask_name(p->mask), op->name);
    const fa_problem_field *features = &fa_problem_fields[FA_FIELD_features];
    if (p->features && !op->features)
        return fa_fail(FA_INVALID, "problem: features is %s; accepted with op=%s: none",
                       fa_problem_field_text(text, sizeof text, features, p->features), op->name);
    if (p->features & ~op->features)
        return fa_fail(FA_UNSUPPORTED, "problem: features is %s, which this version does not compute%s%s; accepted: %s",
                       fa_problem_field_text(text, sizeof text, features, p->features),
                       p->op == FA_FORWARD ? "" : " with op=", p->op == FA_FORWARD ? "" : op->name,
                       fa_problem_field_text(takes, sizeof takes, features, op->features));
    if (p->features & FA_FEATURE_PAGES && !(p->features & FA_FEATURE_LENGTHS))
        return fa_fail(FA_INVALID, "problem: features has pages and no lengths; accepted: lengths+pages");
    if (p->features & FA_FEATURE_BATCH_INVARIANT && p->features & FA_FEATURE_DROPOUT)
        return fa_fail(FA_UNSUPPORTED,
                       "problem: features has batch-invariant and dropout; accepted: one of them, as what is dropped depends on "
                       "where in the batch a sequence lies");
    if (p->page < 0 || p->page > FA_PAGE_MAX || p->page & (p->page - 1))
        return fa_fail(FA_INVALID, "problem: page is %d; accepted: a power of two from 1 to %d, or 0 without pages", p->page, FA_PAGE_MAX);
    if (p->features & FA_FEATURE_PAGES && p->features & FA_FEATURE_SLOTS)
        return fa_fail(FA_INVALID, "problem: features has pages and slots; accepted: one of them");
    bool slots = p->features & FA_FEATURE_SLOTS;
    if (!p->page != !(p->features & (FA_FEATURE_PAGES | FA_FEATURE_SLOTS)))
        return fa_fail(FA_INVALID, "problem: page is %d and features %s %s; accepted: both or neither", p->page, p->page ? "has no" : "has",
                       slots ? "slots" : "pages");
    if (p->grad_dtype && p->op != FA_BACKWARD)
        return fa_fail(FA_INVALID, "problem: grad_dtype is %d; accepted with op=%s: 0", p->grad_dtype, op->name);
    fa_status st = check_later(p);
    if (st == FA_OK && p->op == FA_APPEND)
        st = check_hadamard(p);
    return st == FA_OK ? check_score(p) : st;
}

/* V by columns is an operand of products of 8 bits as it lies. */
static fa_status check_v_columns(const fa_problem *p)
{
    const int32_t others = FA_FEATURE_LENGTHS | FA_FEATURE_PAGES | FA_FEATURE_V_IN_K;
    if (!(p->features & FA_FEATURE_V_COLUMNS))
        return FA_OK;
    if (!fa_problem_eight(p))
        return fa_fail(FA_UNSUPPORTED, "problem: features has v-columns; accepted with %s in Q: none, of e4m3 and e5m2 alone",
                       fa_dtype_name(p->dtype));
    if (p->v_dtype)
        return fa_fail(FA_UNSUPPORTED, "problem: v_dtype is %d (%s) and features has v-columns; accepted with it: 0", p->v_dtype,
                       fa_dtype_name(p->v_dtype));
    if (p->features & others)
        return fa_fail(FA_UNSUPPORTED, "problem: features has v-columns and %s; accepted: one of them",
                       fa_feature_name(p->features & others & -(p->features & others)));
    return FA_OK;
}

static fa_status check_v_in_k(const fa_problem *p)
{
    if (!(p->features & FA_FEATURE_V_IN_K))
        return FA_OK;
    if (p->dv > p->d)
        return fa_fail(FA_INVALID, "problem: dv is %d and features has v-in-k; accepted with d=%d: 1 to %d", p->dv, p->d, p->d);
    if (p->kv_dtype || p->v_dtype)
        return fa_fail(FA_UNSUPPORTED, "problem: %s is %d (%s) and features has v-in-k; accepted with it: 0",
                       p->kv_dtype ? "kv_dtype" : "v_dtype", p->kv_dtype ? p->kv_dtype : p->v_dtype,
                       fa_dtype_name(p->kv_dtype ? p->kv_dtype : p->v_dtype));
    return FA_OK;
}

static fa_status check_shape(const fa_problem *p)
{
    const struct {
        const char *name;
        int32_t v, most;
    } dims[] = {
        { "b", p->b, INT32_MAX },       { "hq", p->hq, 1 << 16 },       { "hkv", p->hkv, 1 << 16 },
        { "sq", p->sq, FA_MAX_LENGTH }, { "sk", p->sk, FA_MAX_LENGTH }, { "window", p->window, FA_MAX_LENGTH },
    };
    for (size_t i = 0; i < COUNT(dims); i++)
        if (dims[i].v < 0 || dims[i].v > dims[i].most)
            return fa_fail(FA_INVALID, "problem: %s is %d; accepted: 0 (unset) to %d", dims[i].name, dims[i].v, dims[i].most);
    if (p->window && p->mask != FA_MASK_WINDOW)
        return fa_fail(FA_INVALID, "problem: window is %d; accepted with mask=%s: 0", p->window, fa_mask_name(p->mask));
    if (p->hq && p->hkv && p->hq % p->hkv)
        return fa_fail(FA_INVALID, "problem: hq is %d; accepted with hkv=%d: a multiple of it", p->hq, p->hkv);
    return FA_OK;
}

fa_status fa_problem_normalize(fa_problem *out, const fa_problem *in)
{
    fa_problem p = FA_PROBLEM_INIT;
    if (!in)
        return fa_fail(FA_INVALID, "problem: NULL");
    if (in->size < offsetof(fa_problem, dv))
        return fa_fail(FA_INVALID, "problem: size is %u; accepted: sizeof(fa_problem), set by FA_PROBLEM_INIT", in->size);
    memcpy(&p, in, in->size < sizeof p ? in->size : sizeof p);
    p.size = sizeof p;
    fa_status st = check_kernel(&p);
    if (st == FA_OK && p.op == FA_APPEND)
        st = check_rotary(&p);
    if (st == FA_OK)
        st = check_built(&p);
    if (st == FA_OK)
        st = check_v_in_k(&p);
    if (st == FA_OK)
        st = check_v_columns(&p);
    if (st == FA_OK)
        st = check_shape(&p);
    if (st == FA_OK)
        *out = p;
    return st;
}

static fa_status parse_value(int32_t *out, const fa_problem_field *f, const fa_field *in)
{
    int v = 0;
    switch (f->kind) {
    case FA_FIELD_DTYPE:
        if (!fa_dtype_parse(&v, in->value))
            return fa_fail(FA_INVALID, "problem: %s is \"%s\"; accepted: fp16, bf16, tf32, fp32%s", f->word, in->value,
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

void fa_problem_fill_shape(fa_problem *p)
{
    p->b = p->b ? p->b : 1;
    p->hq = p->hq ? p->hq : p->hkv ? p->hkv : 16;
    p->hkv = p->hkv ? p->hkv : p->hq;
    int32_t s = p->sq ? p->sq : p->sk ? p->sk : 4096;
    p->sk = p->sk ? p->sk : s;
    p->sq = p->sq ? p->sq : s;
    if (p->op == FA_MERGE) { /* it has no keys: what is said of them chooses nothing */
        p->hkv = p->hq;
        p->sk = p->sq;
    }
}

int64_t fa_problem_key_bytes(const fa_problem *p)
{
    if (fa_problem_wide_values(p))
        return (int64_t)p->d * fa_dtype_bytes(p->dtype) + (int64_t)p->dv * fa_dtype_bytes(p->v_dtype);
    if (!p->kv_dtype)
        return (int64_t)(p->d + (p->features & FA_FEATURE_V_IN_K ? 0 : p->dv)) * fa_dtype_bytes(p->dtype);
    int64_t scales = (p->k_scale_by == FA_SCALE_TOKEN ? 4 : 0) + (p->v_scale_by == FA_SCALE_TOKEN ? 4 : 0);
    return cache_bytes(p->kv_dtype, p->d) + cache_bytes(p->v_dtype ? p->v_dtype : p->kv_dtype, p->dv) + scales;
}

fa_problem fa_problem_widened(const fa_problem *p)
{
    fa_problem q = *p;
    q.kv_dtype = q.v_dtype = 0;
    q.k_scale_by = q.v_scale_by = 0;
    q.features &= ~FA_FEATURE_PAGES;
    q.page = 0;
    q.kv_align = 0; /* the workspace has rows of 16 bits, at multiples of 16 bytes where d and dv allow */
    return q;
}
