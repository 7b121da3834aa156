/* issue: counted in compiled kernels. */
#include "issue.h"
#include "print_cuda.h"
#include "reach.h"

double fa_score_instructions(const fa_score_ir *ir, const fa_score_node *a, double *exps)
{
    double clamps = 0;
    switch (a->op) {
    case FA_SCORE_LOOKUP:
        for (int i = 0; i < a->n; i++)
            clamps += fa_score_depends_on(ir, a->arg[i], FA_SCORE_OF_J | FA_SCORE_OF_S) && !fa_score_index_inside(ir, a, i) ? 2 : 0;
        return 3 + clamps;
    case FA_SCORE_TANH:
    case FA_SCORE_SQRT:
    case FA_SCORE_RSQRT:
        *exps += 1;
        return 1;
    case FA_SCORE_EXP:
    case FA_SCORE_EXP2:
    case FA_SCORE_LOG:
    case FA_SCORE_LOG2:
        *exps += 1;
        return 4;
    case FA_SCORE_TANH_EXACT:
        *exps += 2;
        return 5;
    case FA_SCORE_SIGMOID:
        *exps += 2;
        return 8;
    case FA_SCORE_DIV:
        *exps += 1;
        return 9;
    case FA_SCORE_IDIV:
    case FA_SCORE_MOD:
        return 12;
    case FA_SCORE_TOFLOAT:
    case FA_SCORE_FLOOR:
        *exps += 1; /* conversions are as slow */
        return 1;
    default:
        return a->n ? 1 : 0;
    }
}
