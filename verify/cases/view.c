/* view: windows, diagonals and scales by a seed. */
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
}
