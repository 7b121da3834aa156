/* problem: what is asked, and what follows from its fields alone. */
#include "problem.h"
#include "format.h"

int64_t fa_problem_row_bytes(int32_t dtype, int32_t n)
{
    const fa_format *f = fa_format_of(dtype);
    return f ? fa_format_bytes(f, n) : (int64_t)n * fa_dtype_bytes(dtype);
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

bool fa_problem_eight(const fa_problem *p)
{
    return p->dtype == FA_E4M3 || p->dtype == FA_E5M2 || p->dtype == FA_S8;
}

int32_t fa_problem_wide_values(const fa_problem *p)
{
    bool wide = fa_problem_eight(p) && (p->v_dtype == FA_F16 || p->v_dtype == FA_BF16);
    return wide ? p->v_dtype : 0;
}

bool fa_problem_maps(const fa_problem *p, const fa_operand *o)
{
    int bytes = fa_operand_bytes(o, p);
    bool codes = p->op == FA_FORWARD && p->kv_dtype && (o->type == FA_TYPE_KV || o->type == FA_TYPE_V) && bytes == 1;
    return bytes == fa_dtype_bytes(p->dtype) || codes || (o->id == FA_ID_v && fa_problem_wide_values(p));
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
    return fa_problem_row_bytes(p->kv_dtype, p->d) + fa_problem_row_bytes(p->v_dtype ? p->v_dtype : p->kv_dtype, p->dv) + scales;
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
