/* kernel: the unit that scores share, and lookups that may be read before the product is there. */
#include "kernel.h"
#include "distance.h"
#include "lines.h"
#include "normal.h"
#include "print_cuda.h"
#include "reach.h"
#include "slope.h"

#define ISSUE_DISTANCE 7.3 /* counted in T5's, of which two keys and sixteen rows share most */
#define ISSUE_BEND 1       /* P times the derivative */
#define SHARE_OF_ROWS 0.5  /* of what a row takes: threads of the backward pass have many queries and two keys or more */

/* -1 where x is below 0, else 1. */
static int sign_of(fa_score_ir *ir, int x)
{
    int zero = fa_score_ir_number(ir, FA_SCORE_F32, 0), one = fa_score_ir_number(ir, FA_SCORE_F32, 1);
    int minus = fa_score_ir_number(ir, FA_SCORE_F32, -1);
    return fa_score_ir_make(ir, FA_SCORE_SELECT, fa_score_ir_make(ir, FA_SCORE_LT, x, zero, -1), minus, one);
}

/* The factor as the unit of the core. One whose sign is not known goes into a core that is odd, and the unit is what is left of it, but not
 * 0: the core's maximum is always that of the scores. False: neither can be. */
static bool take_unit(fa_score_kernel *k, const fa_score_normal *n)
{
    fa_score_ir *ir = &k->ir;
    const fa_score_node core = ir->node[n->core];
    bool odd = core.op == FA_SCORE_TANH || core.op == FA_SCORE_TANH_EXACT;
    if (!fa_score_is_value(ir, n->offset, 0) || fa_score_depends_on(ir, n->factor, ~0u) ||
        fa_score_reads(ir, n->factor, fa_score_is_of_sequence) || core.op == FA_SCORE_S)
        return false;
    k->pair = n->core;
    k->unit = n->factor;
    if (fa_score_normal_rises(ir, n))
        return true;
    if (!odd)
        return false;
    k->pair =
        fa_score_ir_make(ir, (fa_score_op)core.op, fa_score_ir_make(ir, FA_SCORE_MUL, core.arg[0], sign_of(ir, n->factor), -1), -1, -1);
    k->unit = fa_score_ir_make(ir, FA_SCORE_MAX, fa_score_ir_make(ir, FA_SCORE_ABS, n->factor, -1, -1),
                               fa_score_ir_number(ir, FA_SCORE_F32, 0x1p-126), -1);
    return k->pair >= 0 && k->unit >= 0;
}

/* Lookups that may be read ahead, of the pair. */
static void find_ahead(fa_score_kernel *k)
{
    fa_score_ir *ir = &k->ir;
    bool reached[FA_SCORE_ROOM] = { false }, apart[FA_SCORE_ROOM] = { false };
    fa_score_ir_reach(ir, k->pair, reached);
    k->of_distance = fa_score_distance_in(ir, k->pair);
    if (k->of_distance >= 0) {
        fa_score_ir_reach(ir, k->of_distance, apart);
        k->far = fa_score_far_of(ir, k->of_distance);
    }
    for (int i = 0; i <= k->pair; i++) {
        const fa_score_node a = ir->node[i];
        if (!reached[i] || !fa_score_is_lookup_by_key(&a))
            continue;
        int last = a.arg[a.n - 1], by_key = fa_score_slope_of(ir, last), by_row = fa_score_slope_by(ir, last, FA_SCORE_OF_I, FA_SCORE_I);
        bool alone = by_key >= 0 && fa_score_is_value(ir, by_key, 1) && fa_score_index_inside(ir, &a, a.n - 1), rows = false;
        int row_index = -1;
        for (int n = 0; n < a.n - 1; n++) {
            alone = alone && !fa_score_depends_on(ir, a.arg[n], FA_SCORE_OF_J | FA_SCORE_OF_S);
            if (!fa_score_depends_on(ir, a.arg[n], FA_SCORE_OF_I))
                continue;
            int slope = fa_score_slope_by(ir, a.arg[n], FA_SCORE_OF_I, FA_SCORE_I);
            bool one = slope >= 0 && fa_score_is_value(ir, slope, 1) && fa_score_index_inside(ir, &a, n);
            row_index = one && !rows ? n : -1;
            rows = true;
        }
        if (a.type == FA_SCORE_F32 && alone && k->aheads < FA_SCORE_AHEAD_MAX) {
            bool last_by_row = fa_score_depends_on(ir, last, FA_SCORE_OF_I);
            k->diagonal[k->aheads] = !rows && by_row >= 0 && fa_score_is_value(ir, by_row, -1);
            k->by_row[k->aheads] = rows || last_by_row;
            k->row_index[k->aheads] = last_by_row ? -1 : row_index;
            k->ahead[k->aheads++] = i;
        } else if (!apart[i])
            k->by_key_beside = true;
    }
}

/* What the product times the scale is multiplied by in the tanh that scores are in their unit, where that is the same for all of a launch.
 */
static int find_tanh_of(fa_score_kernel *k)
{
    fa_score_ir *ir = &k->ir;
    const fa_score_node core = ir->node[k->pair];
    fa_score_normal n;
    if (k->unit < 0 || (core.op != FA_SCORE_TANH && core.op != FA_SCORE_TANH_EXACT) || !fa_score_normal_of(ir, core.arg[0], &n))
        return -1;
    bool product = ir->node[n.core].op == FA_SCORE_S && fa_score_is_value(ir, n.offset, 0);
    return product && !fa_score_depends_on(ir, n.factor, ~0u) && !fa_score_reads(ir, n.factor, fa_score_is_of_sequence) ? n.factor : -1;
}

/* What is added to the scaled product, where that is a number which is read ahead. */
static int find_added(const fa_score_kernel *k, const fa_score_normal *n)
{
    const fa_score_ir *ir = &k->ir;
    bool added = k->unit < 0 && ir->node[n->core].op == FA_SCORE_S && fa_score_is_value(ir, n->factor, 1);
    for (int i = 0; i < k->aheads; i++)
        if (added && n->offset == k->ahead[i])
            return n->offset;
    return added && k->of_distance >= 0 && n->offset == k->of_distance ? n->offset : -1;
}

bool fa_score_kernel_of(fa_score_kernel *out, const fa_score_ir *ir)
{
    fa_score_normal n;
    fa_score_lines_costs costs;
    int score = ir->root[FA_SCORE_ROOT_SCORE];
    *out = (fa_score_kernel){
        .ir = *ir, .pair = score, .unit = -1, .of_distance = -1, .adds = -1, .tanh_of = -1, .sink = ir->root[FA_SCORE_ROOT_SINK]
    };
    out->by_key = fa_score_reads_inside(ir, score, FA_SCORE_OF_J);
    out->of_off = fa_score_reads(ir, score, fa_score_is_off) || fa_score_reads(ir, out->sink, fa_score_is_off);
    out->differentiable = true;
    if (score < 0)
        return true;
    if (!fa_score_normal_of(&out->ir, score, &n))
        return false;
    if (!take_unit(out, &n)) {
        out->pair = score;
        out->unit = -1;
    }
    find_ahead(out);
    out->adds = find_added(out, &n);
    out->tanh_of = find_tanh_of(out);
    if (!fa_score_lines_cost(&costs, out, FA_SCORE_LINES_PAIR))
        return false;
    out->issue = costs.issue;
    out->slopes = costs.slopes;
    out->fades = costs.fades;
    out->along = costs.along;
    out->exps = costs.exps;
    out->regs = costs.regs;
    if (!fa_score_lines_cost(&costs, out, FA_SCORE_LINES_AHEAD))
        return false;
    out->regs_ahead = costs.regs;
    out->regs_staged = costs.regs_staged;
    out->issue_staged = costs.issue;
    out->exps_staged = costs.exps;
    out->issue_ahead = costs.issue + 1.5 * out->aheads + (out->of_distance >= 0 ? ISSUE_DISTANCE : 0);
    if (!fa_score_lines_cost(&costs, out, FA_SCORE_LINES_BEND))
        return false;
    out->differentiable = costs.differentiable;
    out->bends = costs.bends;
    out->bends_below_one = costs.bends_below_one;
    out->bend_is_finite = costs.bend_is_finite;
    out->issue_back = costs.issue + costs.rows * SHARE_OF_ROWS + (costs.bends ? ISSUE_BEND : 0);
    out->exps_back = costs.exps + costs.exps_rows * SHARE_OF_ROWS;
    out->regs_back = costs.regs;
    return true;
}
