/* problem: what is asked, its checks, its printer and its parser. */
#include "problem.h"
#include "error.h"
#include "fields.h"
#include <stdio.h>
#include <string.h>

static const struct {
    int dtype, bytes;
    const char *name, *alias[2];
} dtypes[] = {
    { FA_F16, 2, "fp16", { "half", "float16" } },
    { FA_BF16, 2, "bf16", { "bfloat16", NULL } },
    { FA_TF32, 4, "tf32", { NULL, NULL } },
    { FA_F32, 4, "fp32", { "float32", NULL } },
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

int fa_dtype_bytes(int dtype)
{
    for (size_t i = 0; i < COUNT(dtypes); i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].bytes;
    return 0;
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

static fa_status check_shape(const fa_problem *p)
{
    const struct {
        const char *name;
        int32_t v, most;
    } dims[] = {
        { "b", p->b, INT32_MAX },          { "hq", p->hq, 1 << 16 },           { "hkv", p->hkv, 1 << 16 },
        { "sq", p->sq, FA_MAX_LENGTH }, { "sk", p->sk, FA_MAX_LENGTH },
    };
    for (size_t i = 0; i < COUNT(dims); i++)
        if (dims[i].v < 0 || dims[i].v > dims[i].most)
            return fa_fail(FA_INVALID, "problem: %s is %d; accepted: 0 (unset) to %d", dims[i].name, dims[i].v, dims[i].most);
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

int fa_problem_print_key(char *buf, size_t n, const fa_problem *p)
{
    return snprintf(buf, n, "%s,d=%d,dv=%d,mask=%s,o=%s,align=%d", fa_dtype_name(p->dtype), p->d, p->dv,
                    fa_mask_name(p->mask), fa_dtype_name(p->o_dtype), p->align);
}

int fa_problem_print(char *buf, size_t n, const fa_problem *p)
{
    const struct {
        const char *name;
        int32_t v;
    } dims[] = { { "b", p->b }, { "hq", p->hq }, { "hkv", p->hkv }, { "sq", p->sq }, { "sk", p->sk } };
    int len = fa_problem_print_key(buf, n, p);
    for (size_t i = 0; i < COUNT(dims); i++)
        if (dims[i].v)
            len += snprintf((size_t)len < n ? buf + len : NULL, (size_t)len < n ? n - (size_t)len : 0, ",%s=%d",
                            dims[i].name, dims[i].v);
    return len;
}

fa_status fa_problem_parse(fa_problem *out, const char *s)
{
    fa_problem p = FA_PROBLEM_INIT;
    enum { DTYPE, MASK, O, NUMBER };
    const struct {
        const char *name;
        int kind;
        int32_t *v;
    } fields[] = {
        { "dtype", DTYPE, &p.dtype }, { "d", NUMBER, &p.d },     { "dv", NUMBER, &p.dv },   { "mask", MASK, &p.mask },
        { "o", O, &p.o_dtype },       { "align", NUMBER, &p.align }, { "b", NUMBER, &p.b }, { "hq", NUMBER, &p.hq },
        { "hkv", NUMBER, &p.hkv },    { "sq", NUMBER, &p.sq },   { "sk", NUMBER, &p.sk },
    };
    unsigned seen = 0;
    fa_field f;
    fa_status st;
    while (fa_field_next(&s, &f, "problem", &st)) {
        const char *name = f.name[0] ? f.name : "dtype";
        size_t i = 0;
        while (i < COUNT(fields) && strcmp(fields[i].name, name))
            i++;
        if (i == COUNT(fields))
            return fa_fail(FA_INVALID, "problem: unknown field \"%s\"; accepted: dtype, d, dv, mask, o, align, b, hq, hkv, sq, sk",
                           name);
        if (seen >> i & 1)
            return fa_fail(FA_INVALID, "problem: %s is given twice (\"%s\")", name, f.value);
        seen |= 1u << i;
        int v;
        switch (fields[i].kind) {
        case DTYPE:
        case O:
            if (!fa_dtype_parse(&v, f.value))
                return fa_fail(FA_INVALID, "problem: %s is \"%s\"; accepted: fp16, bf16, tf32, fp32", name, f.value);
            break;
        case MASK:
            if (!fa_mask_parse(&v, f.value))
                return fa_fail(FA_INVALID, "problem: mask is \"%s\"; accepted: none, causal, window", f.value);
            break;
        default:
            if ((st = fa_field_int(&v, &f, "problem")) != FA_OK)
                return st;
        }
        *fields[i].v = v;
    }
    if (st != FA_OK)
        return st;
    if (!(seen & 1))
        return fa_fail(FA_INVALID, "problem: dtype is missing; accepted: fp16, bf16, tf32, fp32");
    return fa_problem_normalize(out, &p);
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
    return nearest_log2(p.sq) | nearest_log2(p.sk) << 6 | nearest_log2((int64_t)p.b * p.hq) << 12 | group << 18;
}
