/* problem_normalize: checks a problem and settles the fields that follow from others. */
#include "error.h"
#include "format.h"
#include "model.h"
#include "operation.h"
#include "problem_checks.h"
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* The largest power of two up to 16 that divides the bytes of rows of K and V in the cache. */
static int natural_kv_align(const fa_problem *p)
{
    unsigned rows = (unsigned)fa_problem_row_bytes(p->kv_dtype, p->d) |
                    (unsigned)fa_problem_row_bytes(p->v_dtype ? p->v_dtype : p->kv_dtype, p->dv) | 16;
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

/* A merge multiplies nothing: TF32 is fp32, there is one head_dim, and parts in fp32 may become an O in 16 bits. */
static void settle_merge(fa_problem *p)
{
    p->dtype = p->dtype == FA_TF32 ? FA_F32 : p->dtype;
    p->o_dtype = p->o_dtype == FA_TF32 ? FA_F32 : p->o_dtype;
    p->d = p->dv;
}

/* The types of an output that has the inputs' own or fp32, for messages. */
static const char *own_or_fp32(char *buf, size_t n, int32_t own)
{
    if (own == FA_F32)
        snprintf(buf, n, "fp32 (4)");
    else
        snprintf(buf, n, "%s (%d), fp32 (4)", fa_dtype_name(own), own);
    return buf;
}

/* Gradients have the type of the inputs, or fp32. */
static fa_status settle_gradients(fa_problem *p)
{
    char types[32];
    if (!p->grad_dtype)
        p->grad_dtype = p->dtype;
    if (p->grad_dtype == p->dtype || p->grad_dtype == FA_F32)
        return FA_OK;
    return fa_fail(fa_dtype_bytes(p->grad_dtype) ? FA_UNSUPPORTED : FA_INVALID, "problem: grad_dtype is %d (%s); accepted with %s: 0, %s",
                   p->grad_dtype, fa_dtype_name(p->grad_dtype), fa_dtype_name(p->dtype), own_or_fp32(types, sizeof types, p->dtype));
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

static fa_status check_kernel(fa_problem *p)
{
    bool eight = fa_problem_eight(p);
    char types[32];
    if (!fa_dtype_bytes(p->dtype))
        return fa_fail(FA_INVALID, "problem: dtype is %d; accepted: fp16 (1), bf16 (2), tf32 (3), fp32 (4), e4m3 (5), e5m2 (6), s8 (7)",
                       p->dtype);
    if ((eight && p->op != FA_FORWARD) || (p->dtype == FA_TF32 && p->op == FA_BACKWARD))
        return fa_fail(FA_UNSUPPORTED, "problem: dtype is %d (%s); accepted with op=%s: fp16 (1), bf16 (2), %sfp32 (4)", p->dtype,
                       fa_dtype_name(p->dtype), fa_op_name(p->op), p->op == FA_BACKWARD ? "" : "tf32 (3), ");
    p->q_dtype = p->q_dtype == p->dtype ? 0 : p->q_dtype;
    if (!p->dv)
        p->dv = p->d;
    if (p->op == FA_MERGE)
        settle_merge(p);
    fa_status st = p->op == FA_BACKWARD ? settle_gradients(p) : p->op == FA_APPEND ? fa_problem_settle_append(p) : FA_OK;
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
    st = p->op == FA_APPEND ? FA_OK : fa_problem_settle_low_bits(p);
    if (st == FA_OK)
        st = fa_problem_check_scales(p);
    if (st != FA_OK)
        return st;
    int own = p->dtype == FA_TF32 ? FA_F32 : eight ? FA_BF16 : p->dtype;
    if (!p->o_dtype || (p->o_dtype == p->dtype && !eight))
        p->o_dtype = own;
    bool merges32 = p->op == FA_MERGE && p->dtype == FA_F32, narrows = merges32 && (p->o_dtype == FA_F16 || p->o_dtype == FA_BF16);
    bool narrow = p->o_dtype == FA_E4M3 && p->dtype != FA_S8;
    if (eight && p->o_dtype != FA_F16 && p->o_dtype != FA_BF16 && p->o_dtype != FA_F32 && !narrow)
        return fa_fail(fa_dtype_bytes(p->o_dtype) ? FA_UNSUPPORTED : FA_INVALID,
                       "problem: o_dtype is %d (%s); accepted with %s: fp16 (1), bf16 (2), fp32 (4)%s", p->o_dtype,
                       fa_dtype_name(p->o_dtype), fa_dtype_name(p->dtype), p->dtype == FA_S8 ? "" : ", e4m3 (5)");
    if (p->o_scale_by && p->o_dtype != FA_E4M3)
        return fa_fail(FA_UNSUPPORTED, "problem: o_scale_by is %d; accepted with O in %s: 0, or with O in e4m3 FA_SCALE_FOLDED (1)",
                       p->o_scale_by, fa_dtype_name(p->o_dtype));
    if (!eight && p->o_dtype != own && p->o_dtype != FA_F32 && !narrows)
        return fa_fail(fa_dtype_bytes(p->o_dtype) ? FA_UNSUPPORTED : FA_INVALID, "problem: o_dtype is %d (%s); accepted with %s: 0, %s%s",
                       p->o_dtype, fa_dtype_name(p->o_dtype), fa_dtype_name(p->dtype), merges32 ? "fp16 (1), bf16 (2), " : "",
                       own_or_fp32(types, sizeof types, own));
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

/* What fagen.h names and no family computes yet. */
static fa_status check_built(const fa_problem *p)
{
    char text[FA_FEATURES_TEXT], takes[FA_FEATURES_TEXT];
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
        st = fa_problem_check_hadamard(p);
    return st == FA_OK ? fa_problem_check_score(p) : st;
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

/* No device has room for more, and whole numbers of families' costs would not hold what it takes. */
static fa_status check_size(const fa_problem *p)
{
    const struct {
        const char *tensor, *heads_name, *rows_name;
        int32_t heads, rows;
    } of[] = { { "Q", "hq", "sq", p->hq, p->sq }, { "K", "hkv", "sk", p->hkv, p->sk } };
    const int32_t width = p->d > p->dv ? p->d : p->dv;
    for (size_t i = 0; i < COUNT(of); i++) {
        double rows = (p->b ? (double)p->b : 1) * (of[i].heads ? of[i].heads : 1) * (of[i].rows ? of[i].rows : 1);
        if (rows * width > (double)FA_MAX_ELEMENTS)
            return fa_fail(FA_INVALID, "problem: b=%d, %s=%d, %s=%d are %.4g rows of %s with %d elements; accepted: 2^50 elements at most",
                           p->b, of[i].heads_name, of[i].heads, of[i].rows_name, of[i].rows, rows, of[i].tensor, width);
    }
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
    return check_size(p);
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
        st = fa_problem_check_rotary(&p);
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
