/* view: windows, diagonals, and how scales lie, by a seed. */
#include "view.h"
#include <math.h>

static int32_t pick_window(fa_random *r, int32_t sk)
{
    int32_t kind = fa_random_below(r, 6);
    return kind == 0 ? -1 : kind == 1 ? 0 : kind < 4 ? fa_random_below(r, 33) : fa_random_below(r, sk + 20);
}

void fa_case_make_view(fa_case *c, fa_random *r, int32_t bottom_right)
{
    c->window_left = pick_window(r, c->problem.sk);
    c->window_right = pick_window(r, c->problem.sk);
    int32_t diagonal = fa_random_below(r, 10);
    c->diagonal = diagonal < bottom_right ? FA_BOTTOM_RIGHT : diagonal < 9 ? FA_TOP_LEFT : FA_OFFSET;
    c->offset = fa_random_within(r, -c->problem.sq - 5, c->problem.sk + 5);
    c->scale = fa_random_below(r, 4) ? 0 : (float)(fa_random_unit(r) / sqrt(c->problem.d));
    if (c->problem.dtype == FA_S8)
        c->scale /= FA_CASE_CODES * FA_CASE_CODES;
}

/* Scales that are written are each its own; of scales of tokens, what no sequence sees is NaN, and is no other batch's. */
int32_t fa_case_scale_layout(const fa_case *c, int operand)
{
    static const int32_t kinds[] = { FA_LAYOUT_PACKED,    FA_LAYOUT_PADDED,     FA_LAYOUT_HEADS,
                                     FA_LAYOUT_SAME_HEAD, FA_LAYOUT_SAME_BATCH, FA_LAYOUT_SAME };
    const fa_operand *o = &fa_operation_find(c->problem.op)->operand[operand];
    bool tokens = (o->extent[1] == FA_EXTENT_K_SCALE_ROWS   ? c->problem.k_scale_by
                   : o->extent[1] == FA_EXTENT_Q_SCALE_ROWS ? c->problem.q_scale_by
                                                            : c->problem.v_scale_by) == FA_SCALE_TOKEN;
    size_t n = o->output ? 3 : tokens ? 4 : sizeof kinds / sizeof *kinds;
    return kinds[fa_random_mix(c->seed ^ (0x7363616c65 + (uint64_t)operand)) % n];
}
