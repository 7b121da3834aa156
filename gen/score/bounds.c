/* bounds: comparisons become sums that are at most 0; what the solved one stands in, inside of them, is taken away step by step. */
#include "bounds.h"
#include "reach.h"
#include <stdlib.h>
#include <string.h>

/* What is solved: times the steps so far, and the sum that is left, "steps, then sum <= 0". */
typedef struct half {
    fa_score_bound_step step[FA_SCORE_STEPS_OF_HALF];
    int steps;
    fa_score_sum sum;
} half;

static unsigned of_x(const fa_score_bounds *b)
{
    return b->of == FA_SCORE_J ? FA_SCORE_OF_J : FA_SCORE_OF_I;
}

static int add(fa_score_bounds *b, const fa_score_bound *node)
{
    if (b->n == FA_SCORE_BOUNDS_MAX)
        return -1;
    b->node[b->n] = *node;
    return b->n++;
}

static int unknown(fa_score_bounds *b)
{
    fa_score_bound node = { .kind = FA_SCORE_BOUND_UNKNOWN };
    return add(b, &node);
}

static int both(fa_score_bounds *b, bool either, int x, int y)
{
    fa_score_bound node = { .kind = either ? FA_SCORE_BOUND_OR : FA_SCORE_BOUND_AND, .x = (int16_t)x, .y = (int16_t)y };
    return x < 0 || y < 0 ? -1 : add(b, &node);
}

static int free_of(fa_score_bounds *b, int truth, bool contrary)
{
    fa_score_bound node = { .kind = FA_SCORE_BOUND_FREE, .node = (int16_t)truth, .contrary = contrary };
    return add(b, &node);
}

static void sum_add(const fa_score_bounds *b, fa_score_sum *s, int node, int64_t times)
{
    fa_score_sum_add(s, b->tiles->ir, node, times, b->tiles->reading);
}

static int solve_half(fa_score_bounds *b, const half *h, int depth);

/* The sum with another node in the place of leaf k. */
static int solve_with(fa_score_bounds *b, const half *h, int k, int node, int64_t times, int depth)
{
    half other = *h;
    other.sum.times[k] = 0;
    sum_add(b, &other.sum, node, times);
    return solve_half(b, &other, depth + 1);
}

/* Leaf k is a quotient, once, or once below 0: what it is a quotient of takes its place. */
static int solve_quotient(fa_score_bounds *b, const half *h, int k, int depth)
{
    const fa_score_ir *ir = b->tiles->ir;
    const fa_score_node *a = &ir->node[h->sum.leaf[k]];
    int by = a->arg[1];
    int64_t times = h->sum.times[k];
    bool good = (times == 1 || times == -1) && ir->node[by].range.lo > 0 && !fa_score_depends_on(ir, by, of_x(b)) &&
                h->steps < FA_SCORE_STEPS_OF_HALF - 1;
    if (!good)
        return unknown(b);
    half other = *h;
    other.sum.times[k] = 0;
    other.step[other.steps++] = (fa_score_bound_step){ other.sum, by, times < 0 };
    other.sum = (fa_score_sum){ .n = 0 };
    sum_add(b, &other.sum, a->arg[0], times);
    return solve_half(b, &other, depth + 1);
}

static int solve_half(fa_score_bounds *b, const half *h, int depth)
{
    const fa_score_ir *ir = b->tiles->ir;
    int at = -1, found = 0, x, y;
    if (b->n == FA_SCORE_BOUNDS_MAX)
        return -1;
    if (depth > FA_SCORE_NEST_MAX || h->sum.full)
        return unknown(b);
    for (int k = 0; k < h->sum.n; k++)
        if (h->sum.times[k] && fa_score_depends_on(ir, h->sum.leaf[k], of_x(b))) {
            at = k;
            found++;
        }
    if (found > 1)
        return unknown(b);
    const fa_score_node *a = at >= 0 ? &ir->node[h->sum.leaf[at]] : NULL;
    int64_t times = at >= 0 ? h->sum.times[at] : 0;
    fa_score_bound end = { .kind = FA_SCORE_BOUND_HALF, .times = (int)times, .steps = h->steps + 1 };
    if (!a || a->op == b->of) {
        memcpy(end.step, h->step, sizeof end.step);
        end.step[h->steps] = (fa_score_bound_step){ h->sum, -1, false };
        if (at >= 0)
            end.step[h->steps].rest.times[at] = 0;
        return llabs(times) > INT32_MAX ? unknown(b) : add(b, &end);
    }
    switch (a->op) {
    case FA_SCORE_ABS: /* the larger of x and -x */
        x = solve_with(b, h, at, a->arg[0], times, depth);
        y = solve_with(b, h, at, a->arg[0], -times, depth);
        return both(b, times < 0, x, y);
    case FA_SCORE_MIN:
    case FA_SCORE_MAX:
        x = solve_with(b, h, at, a->arg[0], times, depth);
        y = solve_with(b, h, at, a->arg[1], times, depth);
        return both(b, (a->op == FA_SCORE_MIN) == (times > 0), x, y);
    case FA_SCORE_IDIV:
        return solve_quotient(b, h, at, depth);
    default:
        return unknown(b);
    }
}

/* x - y + more <= 0 */
static int at_most(fa_score_bounds *b, int x, int y, int64_t more)
{
    half h = { .sum = { .more = more } };
    sum_add(b, &h.sum, x, 1);
    sum_add(b, &h.sum, y, -1);
    return solve_half(b, &h, 0);
}

static int solve(fa_score_bounds *b, int node, bool contrary, int depth)
{
    const fa_score_node *a = &b->tiles->ir->node[node];
    bool whole = a->n == 2 && b->tiles->ir->node[a->arg[0]].type == FA_SCORE_I32;
    int x, y;
    if (b->n == FA_SCORE_BOUNDS_MAX)
        return -1;
    if (!fa_score_depends_on(b->tiles->ir, node, of_x(b)))
        return free_of(b, node, contrary);
    if (depth > FA_SCORE_NEST_MAX || b->tiles->reading[node] != FA_SCORE_BY_PARTS)
        return unknown(b);
    switch (a->op) {
    case FA_SCORE_NOT:
        return solve(b, a->arg[0], !contrary, depth + 1);
    case FA_SCORE_AND:
    case FA_SCORE_OR:
        x = solve(b, a->arg[0], contrary, depth + 1);
        y = solve(b, a->arg[1], contrary, depth + 1);
        return both(b, (a->op == FA_SCORE_OR) != contrary, x, y);
    case FA_SCORE_SELECT:
        x = both(b, false, solve(b, a->arg[0], false, depth + 1), solve(b, a->arg[1], contrary, depth + 1));
        y = both(b, false, solve(b, a->arg[0], true, depth + 1), solve(b, a->arg[2], contrary, depth + 1));
        return both(b, true, x, y);
    case FA_SCORE_LE:
    case FA_SCORE_LT:
        if (!whole)
            return unknown(b);
        x = contrary ? a->arg[1] : a->arg[0];
        y = contrary ? a->arg[0] : a->arg[1];
        return at_most(b, x, y, (a->op == FA_SCORE_LT) != contrary); /* x < y is x + 1 <= y; its contrary y <= x */
    case FA_SCORE_EQ:
        if (!whole)
            return unknown(b);
        x = at_most(b, a->arg[0], a->arg[1], contrary);
        y = at_most(b, a->arg[1], a->arg[0], contrary);
        return both(b, contrary, x, y);
    default:
        return unknown(b);
    }
}

/* ---- whether it is one interval ---- */

typedef struct shape {
    bool one, ends_below, ends_above; /* an interval for each row; with such an end, unless it is empty or all */
} shape;

static shape shape_of(const fa_score_bounds *b, int node)
{
    const fa_score_bound *a = &b->node[node];
    shape x, y;
    switch (a->kind) {
    case FA_SCORE_BOUND_FREE:
        return (shape){ true, false, false };
    case FA_SCORE_BOUND_HALF:
        return (shape){ true, a->times<0, a->times> 0 };
    case FA_SCORE_BOUND_AND:
    case FA_SCORE_BOUND_OR:
        x = shape_of(b, a->x);
        y = shape_of(b, a->y);
        shape s = { x.one && y.one, x.ends_below || y.ends_below, x.ends_above || y.ends_above };
        if (a->kind == FA_SCORE_BOUND_OR) /* two that go on without end, the same way */
            s.one = s.one && (!s.ends_below || !s.ends_above || !(x.ends_below || x.ends_above) || !(y.ends_below || y.ends_above));
        return s;
    default:
        return (shape){ false, false, false };
    }
}

/* Of a half with a quotient: whether queries whose quotient by the same divisor is equal, and they alone, have that end of keys. */
static bool is_run(const fa_score_bounds *b, const fa_score_bound *end, int *of)
{
    const fa_score_ir *ir = b->tiles->ir;
    const fa_score_sum *rest = &end->step[0].rest;
    const unsigned others = FA_SCORE_OF_B | FA_SCORE_OF_H | FA_SCORE_OF_I | FA_SCORE_OF_J;
    const fa_score_node *quotient = NULL;
    fa_score_sum sum = { .n = 0 };
    int queries = 0;
    for (int k = 0; k < rest->n; k++) {
        const fa_score_node *a = &ir->node[rest->leaf[k]];
        if (rest->times[k] && (quotient || a->op != FA_SCORE_IDIV || llabs(rest->times[k]) != 1))
            return false;
        if (rest->times[k])
            quotient = a;
    }
    if (!quotient || quotient->arg[1] != end->step[0].by || fa_score_depends_on(ir, end->step[0].by, others))
        return false;
    *of = quotient->arg[0];
    sum_add(b, &sum, *of, 1);
    for (int k = 0; k < sum.n; k++)
        if (ir->node[sum.leaf[k]].op == FA_SCORE_I)
            queries += sum.times[k] == 1 ? 1 : 2;
        else if (sum.times[k] && fa_score_depends_on(ir, sum.leaf[k], others))
            return false;
    return queries == 1 && !sum.full;
}

void fa_score_bounds_of(fa_score_bounds *out, const fa_score_tiles *tiles, fa_score_op of)
{
    const int16_t mask = (int16_t)tiles->mask;
    fa_score_bounds_of_all(out, tiles, of, &mask, 1);
}

void fa_score_bounds_of_all(fa_score_bounds *out, const fa_score_tiles *tiles, fa_score_op of, const int16_t *truth, int n)
{
    out->tiles = tiles;
    out->of = of;
    out->n = 0;
    out->root = solve(out, truth[0], false, 0);
    for (int k = 1; k < n; k++)
        out->root = both(out, false, out->root, solve(out, truth[k], false, 0));
    if (out->root < 0) { /* no more room */
        out->n = 0;
        out->root = unknown(out);
    }
    shape s = shape_of(out, out->root);
    out->exact = s.one;
    out->two_ended = s.one && s.ends_below && s.ends_above;
    out->in_runs = false;
    out->run_of = out->run_by = -1;
    for (int k = 0; k < out->n; k++) {
        const fa_score_bound *a = &out->node[k];
        if (a->kind != FA_SCORE_BOUND_HALF || a->steps < 2)
            continue;
        out->in_runs = true;
        if (of == FA_SCORE_J && out->run_of < 0 && a->steps == 2 && is_run(out, a, &out->run_of))
            out->run_by = a->step[0].by;
        else if (out->run_by < 0)
            out->run_of = -1;
    }
}
