/* bucket_ends: a step less and a step more. */
#include "bucket_ends.h"
#include "batch_kind.h"
#include "problem.h"
#include "shape_rulers.h"
#include "tile_rounds.h"

/* A step is a quarter to a sixteenth of its value wide. */
static int32_t beside(int32_t v, int32_t sixteenths)
{
    int64_t to = v + (int64_t)v * sixteenths / 16;
    return to < 1 ? 1 : to < FA_MAX_LENGTH ? (int32_t)to : FA_MAX_LENGTH;
}

/* KV heads to which each number is a step; beyond, one is some tenth wide to either side of its value. Sequences and heads are to a kernel
 * what else is equal. */
#define HEADS_EXACT 16
#define HEADS_EIGHTHS 128 /* up to here half as wide */

static void set_heads_beside(fa_problem *p, int32_t tenths)
{
    int64_t all = (int64_t)p->b * p->hkv, to = all + all * tenths / (all <= HEADS_EIGHTHS ? 20 : 10);
    int32_t group = p->hq / p->hkv;
    if (all <= HEADS_EXACT || to > INT32_MAX)
        return;
    p->b = (int32_t)to;
    p->hkv = 1;
    p->hq = group;
}

bool fa_problem_ends(const fa_problem *p, fa_problem *lower, fa_problem *upper)
{
    *lower = *upper = *p;
    if (p->op != FA_FORWARD || p->features & (FA_FEATURE_LENGTHS | FA_FEATURE_BATCH_INVARIANT) || fa_problem_group_rows(p) <= FA_FEW_ROWS)
        return false;
    /* sq may be the last of its step: the first comes after that of the step before. */
    bool rounds = fa_problem_rounds_step(p) > 0, upto = rounds || fa_problem_before_keys(p);
    fa_ruler r = rounds ? fa_ruler_rows_of_rounds : fa_ruler_rows_before_keys;
    uint32_t step = upto ? fa_ruler_upto(r, p->sq) : 0;
    lower->sq = !upto ? beside(p->sq, -1) : step > 0 ? fa_ruler_length(r, step - 1) + 1 : p->sq;
    lower->sk = rounds ? lower->sq : beside(p->sk, -1);
    upper->sq = beside(p->sq, upto ? 0 : 1);
    upper->sk = rounds ? upper->sq : beside(p->sk, 1);
    set_heads_beside(lower, -1);
    set_heads_beside(upper, 1);
    return true;
}
