/* append: rules between the fields. */
#include "append.h"
#include "gen/error.h"
#include "gen/problem.h"

#define FLAGS (FA_HADAMARD_K | FA_HADAMARD_V)

static fa_status check_slots(const fa_args *a)
{
    if (!a->slots)
        return FA_OK;
    if (a->page_table)
        return fa_fail(FA_INVALID, "args: slots and page_table are set; accepted: one of them");
    if (a->cu_seqlens_k)
        return fa_fail(FA_INVALID, "args: slots and cu_seqlens_k are set; accepted: one of them");
    if (a->page_size < 1)
        return fa_fail(FA_INVALID, "args: page_size is %d; accepted with slots: tokens of a page, from 1", a->page_size);
    if (a->pages < 0)
        return fa_fail(FA_INVALID, "args: pages is %d; accepted with slots: pages that are allocated, from 0", a->pages);
    return FA_OK;
}

static fa_status check_rotation(const fa_args *a)
{
    const struct {
        const char *name;
        int32_t v;
    } rows[] = { { "cos_sin_dtype", a->cos_sin_dtype },
                 { "rotary_dim", a->rotary_dim },
                 { "rotary_style", a->rotary_style },
                 { "position_bytes", a->position_bytes },
                 { "rotary_positions", a->rotary_positions } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !a->cos_sin; i++)
        if (rows[i].v)
            return fa_fail(FA_INVALID, "args: %s is %d and cos_sin is NULL; accepted: 0, or cosines and sines", rows[i].name, rows[i].v);
    if (a->positions && !a->cos_sin)
        return fa_fail(FA_INVALID, "args: positions is set and cos_sin is NULL; accepted: both or neither");
    if (!a->cos_sin)
        return FA_OK;
    if (a->rotary_dim < 2 || a->rotary_dim % 2 || a->rotary_dim > a->d)
        return fa_fail(FA_INVALID, "args: rotary_dim is %d; accepted with cos_sin and d=%d: an even number from 2 to %d", a->rotary_dim,
                       a->d, a->d / 2 * 2);
    if (a->rotary_style != FA_ROTARY_HALVES && a->rotary_style != FA_ROTARY_PAIRS)
        return fa_fail(FA_INVALID, "args: rotary_style is %d; accepted: FA_ROTARY_HALVES (0), FA_ROTARY_PAIRS (1)", a->rotary_style);
    if (a->cos_sin_dtype != FA_F32 && a->cos_sin_dtype != FA_F16 && a->cos_sin_dtype != FA_BF16)
        return fa_fail(FA_INVALID, "args: cos_sin_dtype is %d; accepted with cos_sin: fp16 (1), bf16 (2), fp32 (4)", a->cos_sin_dtype);
    if (a->rotary_positions < 1)
        return fa_fail(FA_INVALID, "args: rotary_positions is %d; accepted with cos_sin: its rows, from 1", a->rotary_positions);
    if (a->positions ? a->position_bytes != 4 && a->position_bytes != 8 : a->position_bytes != 0)
        return fa_fail(FA_INVALID, "args: position_bytes is %d; accepted %s: %s", a->position_bytes,
                       a->positions ? "with positions" : "where positions is NULL", a->positions ? "4, 8" : "0");
    return FA_OK;
}

fa_status fa_append_check(const fa_args *a)
{
    int64_t tokens = a->cu_seqlens_q ? a->total_q : (int64_t)a->b * a->sq;
    if (!a->q.ptr != !a->q_out.ptr)
        return fa_fail(FA_INVALID, "args: %s.ptr is NULL and %s.ptr is set; accepted: both or neither", a->q.ptr ? "q_out" : "q",
                       a->q.ptr ? "q" : "q_out");
    if (a->append_flags & ~FLAGS)
        return fa_fail(FA_INVALID, "args: append_flags is %#x; accepted: FA_HADAMARD_K (0x1), FA_HADAMARD_V (0x2), or-ed together, or 0",
                       (unsigned)a->append_flags);
    if (tokens > INT32_MAX)
        return fa_fail(FA_INVALID, "args: b is %d and sq %d; accepted with op=append: together 2^31 - 1 new rows or less", a->b, a->sq);
    fa_status st = check_slots(a);
    return st == FA_OK ? check_rotation(a) : st;
}

void fa_append_class(fa_problem *out, const fa_args *a)
{
    out->k_scale_out_by = a->k_scale_out.by;
    out->v_scale_out_by = a->v_scale_out.by;
    out->rotary_dim = a->rotary_dim;
    out->cos_sin_dtype = a->cos_sin_dtype;
    out->features |= a->position_bytes == 8 ? FA_FEATURE_POSITIONS64 : 0;
    out->features |= a->rotary_style == FA_ROTARY_PAIRS ? FA_FEATURE_ROTARY_PAIRS : 0;
    out->features |= a->append_flags & FA_HADAMARD_K ? FA_FEATURE_HADAMARD_K : 0;
    out->features |= a->append_flags & FA_HADAMARD_V ? FA_FEATURE_HADAMARD_V : 0;
}
