/* problem_low_bits: K and V of few bits, and scales of all operands. */
#include "error.h"
#include "format.h"
#include "operation.h"
#include "problem_checks.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* K and V of few bits: a type that is another one's is 0. */
fa_status fa_problem_settle_low_bits(fa_problem *p)
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
        bool wide = i && p->op == FA_FORWARD && fa_problem_eight(p), integers = p->dtype == FA_S8; /* P V in 16 bits beside Q K^T in 8 */
        if (types[i].dtype && (!f || !few || !p->kv_dtype) && !(wide && fa_problem_wide_values(p)))
            return fa_fail(types[i].dtype < 0 ? FA_INVALID : FA_UNSUPPORTED, "problem: %s is %d (%s); accepted with op=%s, %s: %s%s%s%s",
                           types[i].field, types[i].dtype, fa_dtype_name(types[i].dtype), fa_op_name(p->op), fa_dtype_name(p->dtype),
                           wide && integers ? "" : "0, the type of ",
                           wide && integers ? ""
                           : i              ? "K"
                                            : "Q",
                           wide                         ? integers ? "fp16 (1), bf16 (2)" : ", or fp16 (1), bf16 (2)"
                           : few && (p->kv_dtype || !i) ? ", or "
                                                        : "",
                           few && (p->kv_dtype || !i) ? fa_format_names(accepted, sizeof accepted) : "");
    }
    if (p->dtype == FA_S8 && !p->v_dtype)
        return fa_fail(FA_UNSUPPORTED, "problem: v_dtype is 0, the type of K; accepted with s8 in Q and K: fp16 (1), bf16 (2)");
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
fa_status fa_problem_check_scales(const fa_problem *p)
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
            bool tokens = p->dtype == FA_S8 && (i == 0 || i == 2); /* of K, of Q */
            if (by && by != FA_SCALE_FOLDED && !(tokens && by == FA_SCALE_TOKEN))
                return fa_fail(by >= FA_SCALE_TOKEN && by <= FA_SCALE_CHANNEL ? FA_UNSUPPORTED : FA_INVALID,
                               "problem: %s is %d; accepted with %s in Q: 0 (none), FA_SCALE_FOLDED (1)%s", scales[i].field, by,
                               fa_dtype_name(p->dtype), tokens ? ", FA_SCALE_TOKEN (2)" : "");
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
