/* head_slices: by the largest that divides the heads. */
#include "head_slices.h"
#include "batch_kind.h"
#include "format.h"

bool fa_problem_has_head_slices(const fa_problem *p)
{
    return p->op == FA_FORWARD && fa_problem_group_rows(p) <= FA_FEW_ROWS && fa_format_of(p->kv_dtype) &&
           !(p->features & FA_FEATURE_BATCH_INVARIANT);
}

fa_head_slices fa_head_slices_of(int32_t hkv)
{
    return hkv % 8 == 0 ? FA_SLICES_OF_EIGHT : hkv % 4 == 0 ? FA_SLICES_OF_FOUR : hkv > 1 ? FA_SLICES_OF_TWO : FA_SLICES_NONE;
}
