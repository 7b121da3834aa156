/* problem_append: what FA_APPEND is asked: types of the cache, scales that it finds, rotation, Hadamard. */
#include "error.h"
#include "format.h"
#include "problem_checks.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* A type of memory: fp32 for TF32. */
static int32_t stored(int32_t dtype)
{
    return dtype == FA_TF32 ? FA_F32 : dtype;
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
                   fa_format_names(accepted, sizeof accepted));
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

fa_status fa_problem_check_rotary(fa_problem *p)
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

fa_status fa_problem_check_hadamard(const fa_problem *p)
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
fa_status fa_problem_settle_append(fa_problem *p)
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
