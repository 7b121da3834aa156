/* band: the diagonals of a mask and the pairs between them, counted in closed form. */
#include "model.h"
#include "operation.h"

static int64_t clamp(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

fa_band fa_band_of(const fa_problem *p, int diagonal, int64_t offset, int64_t left, int64_t right)
{
    const int64_t far = (int64_t)1 << 40; /* beyond every length, and sums of two do not overflow */
    int64_t off = diagonal == FA_TOP_LEFT ? 0 : diagonal == FA_OFFSET ? clamp(offset, -far, far) : (int64_t)p->sk - p->sq;
    fa_band band = { -(int64_t)p->sq, p->sk };
    if (p->mask == FA_MASK_CAUSAL)
        left = -1, right = 0;
    if (p->mask == FA_MASK_NONE)
        left = right = -1;
    if (left >= 0)
        band.lo = clamp(off - clamp(left, 0, far), -(int64_t)p->sq, p->sk);
    if (right >= 0)
        band.hi = clamp(off + clamp(right, 0, far), -(int64_t)p->sq, p->sk);
    return band;
}

/* The sum of clamp(t, 0, n) for t = a ... a + rows - 1: the keys up to a diagonal. At most 2^60. */
static int64_t keys_below(int64_t a, int64_t rows, int64_t n)
{
    int64_t end = a + rows; /* past the last t */
    int64_t first = clamp(a, 0, n), last = clamp(end, 0, n);
    int64_t ramp = (last * (last - 1) - first * (first - 1)) / 2;
    int64_t full = end > n ? end - (a > n ? a : n) : 0;
    return ramp + full * n;
}

double fa_model_visible(const fa_problem *p, fa_band band)
{
    if (p->sq <= 0 || p->sk <= 0 || band.hi < band.lo)
        return 0;
    return (double)(keys_below(band.hi + 1, p->sq, p->sk) - keys_below(band.lo, p->sq, p->sk));
}

double fa_model_matrix_flops(const fa_problem *p, fa_band band)
{
    const fa_operation *op = fa_operation_find(p->op);
    return op ? 2 * fa_model_visible(p, band) * (op->products_d * p->d + op->products_dv * p->dv) * p->b * p->hq : 0;
}

double fa_model_other_flops(const fa_problem *p, fa_band band)
{
    const fa_operation *op = fa_operation_find(p->op);
    return op ? op->others * fa_model_visible(p, band) * p->b * p->hq : 0;
}

fa_band fa_band_of_problem(const fa_problem *p)
{
    return fa_band_of(p, FA_BOTTOM_RIGHT, 0, p->window ? p->window : FA_MODEL_WINDOW, 0);
}
