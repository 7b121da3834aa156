/* problem: what is asked: the names of its values, its checks, its bucket. */
#include "problem.h"
#include "error.h"
#include "model.h"
#include "operation.h"
#include <string.h>

static const struct {
    int dtype;
    const char *name, *alias[2];
} dtypes[] = {
    { FA_F16, "fp16", { "half", "float16" } },
    { FA_BF16, "bf16", { "bfloat16", NULL } },
    { FA_TF32, "tf32", { NULL, NULL } },
    { FA_F32, "fp32", { "float32", NULL } },
};

static const struct {
    int32_t bit;
    const char *name;
} features[] = {
    { FA_FEATURE_LENGTHS, "lengths" },
    { FA_FEATURE_PAGES, "pages" },
    { FA_FEATURE_BATCH_INVARIANT, "batch-invariant" },
    { FA_FEATURE_DETERMINISTIC, "deterministic" },
    { FA_FEATURE_DROPOUT, "dropout" },
};
static const char *const masks[] = { "none", "causal", "window" }; /* indexed by fa_mask */

#define COUNT(a) (sizeof(a) / sizeof *(a))

const char *fa_dtype_name(int dtype)
{
    for (size_t i = 0; i < COUNT(dtypes); i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].name;
    return "?";
}

bool fa_dtype_parse(int *out, const char *s)
{
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        const char *const *alias = dtypes[i].alias;
        if (!strcmp(s, dtypes[i].name) || (alias[0] && !strcmp(s, alias[0])) || (alias[1] && !strcmp(s, alias[1]))) {
            *out = dtypes[i].dtype;
            return true;
        }
    }
    return false;
}

int fa_dtype_bytes(int dtype) /* of every operand of every launch: by index, not by search */
{
    static const int bytes[] = { [FA_F16] = 2, [FA_BF16] = 2, [FA_TF32] = 4, [FA_F32] = 4 };
    return dtype >= 0 && (size_t)dtype < COUNT(bytes) ? bytes[dtype] : 0;
}

const char *fa_mask_name(int mask)
{
    return mask >= 0 && (size_t)mask < COUNT(masks) ? masks[mask] : "?";
}

bool fa_mask_parse(int *out, const char *s)
{
    for (size_t i = 0; i < COUNT(masks); i++)
        if (!strcmp(s, masks[i])) {
            *out = (int)i;
            return true;
        }
    return false;
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

const char *fa_feature_name(int32_t bit)
{
    for (size_t i = 0; i < COUNT(features); i++)
        if (features[i].bit == bit)
            return features[i].name;
    return "?";
}

int32_t fa_feature_parse(const char *s, size_t n)
{
    for (size_t i = 0; i < COUNT(features); i++)
        if (strlen(features[i].name) == n && !memcmp(s, features[i].name, n))
            return features[i].bit;
    return 0;
}

const char *fa_feature_names(void)
{
    return "lengths, pages, batch-invariant, deterministic, dropout";
}

/* The largest power of two up to 16 that divides every row's bytes. */
static int natural_align(const fa_problem *p)
{
    unsigned bytes = (unsigned)fa_dtype_bytes(p->dtype);
    unsigned rows = (unsigned)p->d * bytes | (unsigned)p->dv * bytes | (unsigned)(p->dv * fa_dtype_bytes(p->o_dtype)) | 16;
    return (int)(rows & -rows);
}

static fa_status check_kernel(fa_problem *p)
{
    if (!fa_dtype_bytes(p->dtype))
        return fa_fail(FA_INVALID, "problem: dtype is %d; accepted: fp16 (1), bf16 (2), tf32 (3), fp32 (4)", p->dtype);
    if (!p->dv)
        p->dv = p->d;
    const struct {
        const char *name;
        int v;
    } dims[] = { { "d", p->d }, { "dv", p->dv } };
    for (size_t i = 0; i < COUNT(dims); i++)
        if (dims[i].v < 1 || dims[i].v > FA_MAX_HEAD_DIM)
            return fa_fail(dims[i].v < 1 ? FA_INVALID : FA_UNSUPPORTED, "problem: %s is %d; accepted: 1 to %d", dims[i].name,
                           dims[i].v, FA_MAX_HEAD_DIM);
    if (p->mask < 0 || (size_t)p->mask >= COUNT(masks))
        return fa_fail(FA_INVALID, "problem: mask is %d; accepted: none (0), causal (1), window (2)", p->mask);
    int own = p->dtype == FA_TF32 ? FA_F32 : p->dtype;
    if (!p->o_dtype || p->o_dtype == p->dtype)
        p->o_dtype = own;
    if (p->o_dtype != own && p->o_dtype != FA_F32)
        return fa_fail(fa_dtype_bytes(p->o_dtype) ? FA_UNSUPPORTED : FA_INVALID,
                       "problem: o_dtype is %d (%s); accepted with %s: %s, or fp32 (4)", p->o_dtype,
                       fa_dtype_name(p->o_dtype), fa_dtype_name(p->dtype), fa_dtype_name(own));
    int most = natural_align(p), least = fa_dtype_bytes(p->dtype);
    if (!p->align)
        p->align = most;
    if (p->align < least || p->align > most || (p->align & (p->align - 1)))
        return fa_fail(FA_INVALID, "problem: align is %d; accepted with %s, d=%d, dv=%d: a power of two from %d to %d",
                       p->align, fa_dtype_name(p->dtype), p->d, p->dv, least, most);
    return FA_OK;
}

/* What fagen.h names and no family computes yet. */
static fa_status check_built(const fa_problem *p)
{
    char text[96];
    const fa_operation *op = fa_operation_find(p->op);
    if (!op)
        return fa_fail(FA_INVALID, "problem: op is %d; accepted: forward (0), backward (1), merge (2)", p->op);
    if (!op->n)
        return fa_fail(FA_UNSUPPORTED, "problem: op is %s, which this version does not compute; accepted: forward", op->name);
    if (p->features)
        return fa_fail(FA_UNSUPPORTED, "problem: features is %s, which this version does not compute; accepted: none (0)",
                       fa_problem_field_text(text, sizeof text, &fa_problem_fields[FA_FIELD_features], p->features));
    if (p->page)
        return fa_fail(FA_UNSUPPORTED, "problem: page is %d, and this version does not compute with pages; accepted: 0", p->page);
    if (p->grad_dtype)
        return fa_fail(FA_UNSUPPORTED, "problem: grad_dtype is %d, and this version computes no gradients; accepted: 0", p->grad_dtype);
    if (p->kv_dtype)
        return fa_fail(FA_UNSUPPORTED, "problem: kv_dtype is %d; accepted by this version: 0, K and V in the type of Q", p->kv_dtype);
    return FA_OK;
}

static fa_status check_shape(const fa_problem *p)
{
    const struct {
        const char *name;
        int32_t v, most;
    } dims[] = {
        { "b", p->b, INT32_MAX },          { "hq", p->hq, 1 << 16 },           { "hkv", p->hkv, 1 << 16 },
        { "sq", p->sq, FA_MAX_LENGTH }, { "sk", p->sk, FA_MAX_LENGTH }, { "window", p->window, FA_MAX_LENGTH },
    };
    for (size_t i = 0; i < COUNT(dims); i++)
        if (dims[i].v < 0 || dims[i].v > dims[i].most)
            return fa_fail(FA_INVALID, "problem: %s is %d; accepted: 0 (unset) to %d", dims[i].name, dims[i].v, dims[i].most);
    if (p->window && p->mask != FA_MASK_WINDOW)
        return fa_fail(FA_INVALID, "problem: window is %d; accepted with mask=%s: 0", p->window, masks[p->mask]);
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
    if (st == FA_OK)
        st = check_built(&p);
    if (st == FA_OK)
        st = check_shape(&p);
    if (st == FA_OK)
        *out = p;
    return st;
}

void fa_problem_fill_shape(fa_problem *p)
{
    p->b = p->b ? p->b : 1;
    p->hq = p->hq ? p->hq : p->hkv ? p->hkv : 16;
    p->hkv = p->hkv ? p->hkv : p->hq;
    int32_t s = p->sq ? p->sq : p->sk ? p->sk : 4096;
    p->sk = p->sk ? p->sk : s;
    p->sq = p->sq ? p->sq : s;
}

/* log2 to the nearest step: bucket k is [2^(k - 1/2), 2^(k + 1/2)), so that the usual powers of two lie in the middle. */
static uint32_t nearest_log2(int64_t v)
{
    uint32_t k = 0;
    while (v >> (k + 1))
        k++;
    return k + (k < 31 && v * v >= (int64_t)2 << 2 * k);
}

uint32_t fa_problem_bucket(const fa_problem *in)
{
    fa_problem p = *in;
    fa_problem_fill_shape(&p);
    uint32_t group = 0;
    while (p.hq / p.hkv >> (group + 1))
        group++;
    uint32_t window = p.mask == FA_MASK_WINDOW ? nearest_log2(p.window ? p.window : FA_MODEL_WINDOW) : 0;
    return nearest_log2(p.sq) | nearest_log2(p.sk) << 6 | nearest_log2((int64_t)p.b * p.hq) << 12 | group << 18 | window << 24;
}
