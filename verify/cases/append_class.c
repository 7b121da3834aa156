/* append_class: classes of FA_APPEND by a seed. */
#include "append_class.h"
#include "gen/format.h"

#define PICK(r, table) ((table)[fa_random_below(r, (int)(sizeof(table) / sizeof *(table)))])

void fa_append_draw(fa_problem *p, fa_random *r)
{
    static const int32_t places[] = { 0,
                                      FA_FEATURE_LENGTHS,
                                      FA_FEATURE_LENGTHS | FA_FEATURE_PAGES,
                                      FA_FEATURE_LENGTHS | FA_FEATURE_PAGES,
                                      FA_FEATURE_SLOTS,
                                      FA_FEATURE_SLOTS,
                                      FA_FEATURE_SLOTS | FA_FEATURE_LENGTHS };
    static const int32_t pages[] = { 1, 2, 16, 16, 64 }, types[] = { FA_F16, FA_BF16, FA_F32 },
                         formats[] = { FA_E4M3, FA_E5M2, FA_S8, FA_Q8_0, FA_Q4_0, FA_Q4_1, FA_Q5_0, FA_Q5_1, FA_IQ4_NL, FA_NVFP4 };
    p->o_dtype = 0;
    p->mask = FA_MASK_NONE;
    p->features = PICK(r, places);
    p->page = p->features & (FA_FEATURE_PAGES | FA_FEATURE_SLOTS) ? PICK(r, pages) : 0;
    p->kv_dtype = fa_random_below(r, 3) ? 0 : PICK(r, types);
    p->v_dtype = fa_random_below(r, 5) ? 0 : PICK(r, types);
    if (fa_random_below(r, 5) < 2) { /* few bits: rows of whole blocks */
        p->d = (p->d + 63) / 64 * 64;
        p->dv = (p->dv + 63) / 64 * 64;
        p->kv_dtype = PICK(r, formats);
        p->v_dtype = fa_random_below(r, 3) ? 0 : fa_random_below(r, 2) ? PICK(r, formats) : PICK(r, types);
        int32_t v = p->v_dtype ? p->v_dtype : p->kv_dtype;
        bool k_scales = !fa_format_of(p->kv_dtype)->scale_dtype, v_scales = fa_format_of(v) && !fa_format_of(v)->scale_dtype;
        int32_t how = fa_random_below(r, 4), other = fa_random_below(r, 4); /* none, one of a head, of a row, found */
        p->k_scale_by = k_scales && how < 3 ? how : 0;
        p->k_scale_out_by = k_scales && how == 3 ? FA_SCALE_TOKEN : 0;
        p->v_scale_by = v_scales && other < 3 ? other : 0;
        p->v_scale_out_by = v_scales && other == 3 ? FA_SCALE_TOKEN : 0;
    }
    if (p->d > 1 && fa_random_below(r, 4)) {
        p->rotary_dim = fa_random_below(r, 3) ? p->d / 2 * 2 : 2 * fa_random_within(r, 1, p->d / 2);
        while (p->rotary_dim < p->d / 2 * 2 && p->rotary_dim & 2 && p->rotary_dim & (p->rotary_dim - 1))
            p->rotary_dim &= p->rotary_dim - 1; /* half of those that are less: a power of two, whose halves one lane may have */
        p->cos_sin_dtype = PICK(r, types);
        p->features |= fa_random_below(r, 2) ? FA_FEATURE_ROTARY_PAIRS : 0;
        p->features |= fa_random_below(r, 2) ? FA_FEATURE_POSITIONS : 0;
        p->features |= p->features & FA_FEATURE_POSITIONS && fa_random_below(r, 2) ? FA_FEATURE_POSITIONS64 : 0;
    }
    if (!(p->d & (p->d - 1)) && fa_random_below(r, 3) == 0)
        p->features |= FA_FEATURE_HADAMARD_K;
    if (!(p->dv & (p->dv - 1)) && fa_random_below(r, 3) == 0)
        p->features |= FA_FEATURE_HADAMARD_V;
}
