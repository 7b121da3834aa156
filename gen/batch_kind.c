/* batch_kind: by the most rows and keys of a sequence. */
#include "batch_kind.h"
#include "problem.h"

int64_t fa_problem_group_rows(const fa_problem *p)
{
    return (int64_t)p->sq * (p->hq / p->hkv);
}

bool fa_problem_few_rows(const fa_problem *in)
{
    fa_problem p = *in;
    fa_problem_fill_shape(&p);
    return fa_problem_group_rows(&p) <= FA_FEW_ROWS;
}

fa_batch_kind fa_problem_batch_kind(const fa_problem *in)
{
    fa_problem p = *in;
    fa_problem_fill_shape(&p);
    if (!(p.features & FA_FEATURE_LENGTHS) || fa_problem_few_rows(&p) || p.sq > p.sk)
        return FA_BATCH_ANY;
    return p.sq == p.sk ? FA_BATCH_PROMPTS : p.b < FA_BATCH_LEAST ? FA_BATCH_CHUNKS : FA_BATCH_MIXED;
}

bool fa_problem_alike(const fa_problem *a, const fa_problem *b)
{
    return fa_problem_few_rows(a) == fa_problem_few_rows(b) && fa_problem_batch_kind(a) == fa_problem_batch_kind(b);
}

/* Of sequences with their own lengths: 16 of 8192 keys, with chunks of 512 queries among them, so that the config serves tokens and prompts
 * alike. A dense batch's lengths are those of each of its sequences. */
fa_problem fa_problem_chosen_by(const fa_problem *in)
{
    fa_problem p = *in;
    if (!(p.features & FA_FEATURE_BATCH_INVARIANT))
        return p;
    fa_problem_fill_shape(&p);
    p.b = FA_BATCH_TYPICAL;
    if (p.features & FA_FEATURE_LENGTHS) {
        p.sq = 512;
        p.sk = 8192;
        p.window = 0;
    }
    return p;
}
