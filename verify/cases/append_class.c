/* append_class: classes of FA_APPEND by a seed. */
#include "append_class.h"

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
    static const int32_t pages[] = { 1, 2, 16, 16, 64 }, types[] = { FA_F16, FA_BF16, FA_F32 };
    p->o_dtype = 0;
    p->mask = FA_MASK_NONE;
    p->features = PICK(r, places);
    p->page = p->features & (FA_FEATURE_PAGES | FA_FEATURE_SLOTS) ? PICK(r, pages) : 0;
    p->kv_dtype = fa_random_below(r, 3) ? 0 : PICK(r, types);
    p->v_dtype = fa_random_below(r, 5) ? 0 : PICK(r, types);
    if (p->d > 1 && fa_random_below(r, 4)) {
        p->rotary_dim = fa_random_below(r, 3) ? p->d / 2 * 2 : 2 * fa_random_within(r, 1, p->d / 2);
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
