/* What is proven of score programs: intervals hold what a pair has, derivatives are the quotients of differences. */
#include "gen/score/derive.h"
#include "gen/score/far.h"
#include "gen/score/normal.h"
#include "score_programs.h"
#include "score_world.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())
#define BOXES 200
#define PAIRS 20

static fa_program *read_program(const score_program *p)
{
    fa_program *out;
    OK(fa_program_read(&out, p->name, p->text, strlen(p->text)));
    return out;
}

/* The hull of the elements that a box of indices reads; of large boxes what their type holds. */
static fa_score_range look(void *user, int operand, const fa_score_range *index)
{
    score_world *w = user;
    const fa_score_operand *o = &w->ir->operand[operand];
    int64_t at[FA_SCORE_RANK_MAX] = { 0 }, lo[FA_SCORE_RANK_MAX], hi[FA_SCORE_RANK_MAX], n = 1;
    fa_score_range r = { INFINITY, -INFINITY, false };
    for (int k = 0; k < o->rank; k++) {
        double most = (double)w->data.extent[operand][k] - 1;
        at[k] = lo[k] = (int64_t)fmin(fmax(index[k].lo, 0), most);
        hi[k] = (int64_t)fmin(fmax(index[k].hi, 0), most);
        n *= hi[k] - lo[k] + 1;
    }
    if (n > 512)
        return o->type == FA_SCORE_F32 ? (fa_score_range){ -3, 3, false } : (fa_score_range){ -2, FA_SCORE_INT_MAX, false };
    for (; n > 0; n--) {
        double v = fmin(score_element(w, operand, at), FA_SCORE_INT_MAX);
        r.lo = fmin(r.lo, v);
        r.hi = fmax(r.hi, v);
        for (int k = o->rank - 1; k >= 0 && ++at[k] > hi[k]; k--)
            at[k] = lo[k];
    }
    return r;
}

static fa_score_range point(int64_t v)
{
    return (fa_score_range){ (double)v, (double)v, false };
}

static int64_t to(uint64_t *state, int64_t from, int64_t end)
{
    int64_t wide = score_below(state, 3) ? 1 + score_below(state, 8) : 1 + score_below(state, 80);
    return from + wide < end ? from + wide - 1 : end - 1;
}

/* Every node of a program, of pairs in a box. *whole: boxes whose mask is the same for all pairs, by proof. */
static void boxes(const score_program *text, uint64_t seed, int *whole)
{
    static fa_score_range of[FA_SCORE_ROOM];
    static double value[FA_SCORE_ROOM];
    fa_program *p = read_program(text);
    const fa_score_ir *ir = &p->ir;
    uint64_t state = seed;
    for (int n = 0; n < BOXES; n++) {
        score_world w;
        score_world_draw(&w, ir, &state);
        fa_score_box box = fa_score_box_widest(ir);
        int64_t i0 = score_below(&state, w.data.sq), i1 = to(&state, i0, w.data.sq), j0 = score_below(&state, w.data.sk),
                j1 = to(&state, j0, w.data.sk);
        int64_t b = score_below(&state, w.b), h = score_below(&state, w.hq);
        double s0 = score_normal(&state) * 8, s1 = s0 + (double)score_below(&state, 5);
        box.b = point(b), box.h = point(h), box.off = point(w.data.off), box.sq = point(w.data.sq), box.sk = point(w.data.sk),
        box.group = point(2);
        box.i = (fa_score_range){ (double)i0, (double)i1, false };
        box.j = (fa_score_range){ (double)j0, (double)j1, false };
        box.s = (fa_score_range){ s0, s1, false };
        box.look = look;
        box.user = &w;
        for (int k = 0; k < ir->operands; k++)
            box.scalar[k] = (fa_score_range){ w.data.scalar[k], w.data.scalar[k], false };
        fa_score_ranges(ir, &box, of);
        for (int k = 0; k < PAIRS; k++) {
            fa_score_pair at = { b, h, i0 + score_below(&state, i1 - i0 + 1), j0 + score_below(&state, j1 - j0 + 1),
                                 s0 + (s1 - s0) * (double)score_below(&state, 1001) / 1000 };
            fa_score_eval(ir, ir->n - 1, &w.data, &at, value);
            for (int x = 0; x < ir->n; x++)
                cr_assert((isnan(value[x]) && of[x].nan) || (value[x] >= of[x].lo && value[x] <= of[x].hi),
                          "%s, box %d: node %d (%s) is %.17g, not %.17g to %.17g", text->name, n, x, fa_score_op_word(ir->node[x].op),
                          value[x], of[x].lo, of[x].hi);
        }
        if (ir->root[FA_SCORE_ROOT_MASK] >= 0)
            *whole += fa_score_range_verdict(&of[ir->root[FA_SCORE_ROOT_MASK]]) != FA_SCORE_DEPENDS;
    }
    fa_program_free(p);
}

Test(score_ir, ranges_hold_every_value)
{
    int whole = 0;
    for (size_t i = 0; i < SCORE_PROGRAMS; i++)
        boxes(&score_programs[i], 11 + i, &whole);
    cr_assert_gt(whole, 500); /* and prove something */
}

/* What the page of the design says of tiles. */
Test(score_ir, verdicts_of_tiles)
{
    static const struct {
        const char *mask;
        double i0, i1, j0, j1;
        fa_score_verdict is;
    } rows[] = {
        { "j <= i", 128, 255, 0, 127, FA_SCORE_ALWAYS },
        { "j <= i", 128, 255, 128, 255, FA_SCORE_DEPENDS },
        { "j <= i", 0, 127, 128, 255, FA_SCORE_NEVER },
        { "i - j + j >= 128", 128, 255, 0, 1000, FA_SCORE_ALWAYS }, /* j cancels */
        { "j - i - (j - 2 * i) <= 100", 0, 100, 0, 1000, FA_SCORE_ALWAYS },
        { "i // 8192 == j // 8192", 8192, 8319, 0, 127, FA_SCORE_NEVER },
        { "i // 8192 == j // 8192", 8192, 8319, 16000, 16127, FA_SCORE_ALWAYS },
        { "i % 64 < 32 and j % 64 >= 32", 64, 95, 96, 127, FA_SCORE_ALWAYS },
        { "abs(i - j) <= 64", 0, 31, 0, 31, FA_SCORE_ALWAYS },
        { "abs(i - j) <= 64", 0, 31, 100, 131, FA_SCORE_NEVER },
        { "not (j > i) or j < 16", 0, 31, 0, 15, FA_SCORE_ALWAYS },
        { "min(i, j) == max(i, j)", 5, 5, 5, 5, FA_SCORE_ALWAYS },
        { "(i & 7) < 8", 0, 1000, 0, 0, FA_SCORE_ALWAYS },
        { "(i >> 4) ~= 3", 64, 127, 0, 0, FA_SCORE_ALWAYS },
        { "(i < 10 and 1 or 2) == 1", 0, 9, 0, 0, FA_SCORE_ALWAYS },
        { "sqrt(i) < 3", 0, 8, 0, 0, FA_SCORE_ALWAYS },
        { "log(j) > 0", 0, 0, 0, 8, FA_SCORE_DEPENDS },        /* of 0 minus infinity */
        { "log(j - 4) < 100", 0, 0, 0, 8, FA_SCORE_DEPENDS },  /* NaN is less than nothing */
        { "log(j - 4) > -100", 0, 0, 0, 3, FA_SCORE_DEPENDS }, /* NaN is taken for anything */
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char text[160];
        fa_program *p;
        fa_score_range of[FA_SCORE_ROOM];
        snprintf(text, sizeof text, "function mask(b, h, i, j) return %s end", rows[k].mask);
        OK(fa_program_read(&p, "score", text, strlen(text)));
        fa_score_box box = fa_score_box_widest(&p->ir);
        box.i = (fa_score_range){ rows[k].i0, rows[k].i1, false };
        box.j = (fa_score_range){ rows[k].j0, rows[k].j1, false };
        fa_score_ranges(&p->ir, &box, of);
        cr_assert_eq(fa_score_range_verdict(&of[p->ir.root[FA_SCORE_ROOT_MASK]]), rows[k].is, "%s: %.17g to %.17g", text,
                     of[p->ir.root[FA_SCORE_ROOT_MASK]].lo, of[p->ir.root[FA_SCORE_ROOT_MASK]].hi);
        fa_program_free(p);
    }
}

/* ---- derivatives ---- */

/* The score where s, a scalar or one element is moved by `bump`. */
static double moved(score_world *w, int root, int by, const fa_score_pair *at, double bump, double *value)
{
    const fa_score_node *x = &w->ir->node[by];
    score_world other = *w;
    fa_score_pair pair = *at;
    other.data.user = &other;
    if (x->op == FA_SCORE_S)
        pair.s += bump;
    else if (x->op == FA_SCORE_SCALAR)
        other.data.scalar[x->operand] += bump;
    else {
        other.bumped = x->operand;
        other.bump = bump;
    }
    return fa_score_eval(w->ir, root, &other.data, &pair, value);
}

/* Counts the points where a difference exists; there the derivative is that. */
static int derivatives(fa_program *p, const char *name, int by, uint64_t seed)
{
    static double value[FA_SCORE_ROOM], scratch[FA_SCORE_ROOM];
    static fa_score_ir ir;
    ir = p->ir;
    uint64_t state = seed;
    int root = ir.root[FA_SCORE_ROOT_SCORE], d = fa_score_derive(&ir, root, by), counted = 0;
    cr_assert_geq(d, 0);
    for (int n = 0; n < 300; n++) {
        const double step = 1e-6;
        score_world w;
        score_world_draw(&w, &ir, &state);
        fa_score_pair at = score_pair_draw(&w, &state);
        double dy = fa_score_eval(&ir, ir.n - 1, &w.data, &at, value);
        dy = value[d];
        for (int k = 0; k < ir.node[by].n; k++)
            w.at[k] = (int64_t)fmin(fmax(value[ir.node[by].arg[k]], 0), (double)w.data.extent[ir.node[by].operand][k] - 1);
        double y = value[root], up = moved(&w, root, by, &at, step, scratch), down = moved(&w, root, by, &at, -step, scratch);
        double right = (up - y) / step, left = (y - down) / step, both = (up - down) / (2 * step);
        if (!isfinite(y) || fabs(both) > 1e5 || !(fabs(right - left) <= 1e-3 * (1 + fabs(both))))
            continue; /* a corner, a jump */
        counted++;
        cr_assert(fabs(dy - both) <= 2e-4 * (1 + fabs(both)), "%s by node %d (%s): %.12g, difference %.12g at i %d j %d s %.12g", name, by,
                  fa_score_op_word(ir.node[by].op), dy, both, (int)at.i, (int)at.j, at.s);
    }
    return counted;
}

Test(score_ir, derivatives_are_those_of_differences)
{
    int leaves = 0;
    for (size_t i = 0; i < SCORE_PROGRAMS; i++) {
        fa_program *p = read_program(&score_programs[i]);
        /* of one element that several nodes look up each is a part of the difference */
        bool shares = !strcmp(score_programs[i].name, "loop") || !strcmp(score_programs[i].name, "signs");
        for (int x = 0; x < p->ir.n && p->ir.root[FA_SCORE_ROOT_SCORE] >= 0; x++) {
            const fa_score_node *node = &p->ir.node[x];
            bool leaf = node->type == FA_SCORE_F32 &&
                        (node->op == FA_SCORE_S || node->op == FA_SCORE_SCALAR || (node->op == FA_SCORE_LOOKUP && !shares));
            if (!leaf)
                continue;
            cr_assert_gt(derivatives(p, score_programs[i].name, x, 3 + i), 100, "%s", score_programs[i].name);
            leaves++;
        }
        fa_program_free(p);
    }
    cr_assert_geq(leaves, 25);
}

/* ---- the normal form ---- */

Test(score_ir, the_normal_form_is_the_score)
{
    static double value[FA_SCORE_ROOM];
    for (size_t i = 0; i < SCORE_PROGRAMS; i++) {
        fa_program *p = read_program(&score_programs[i]);
        int root = p->ir.root[FA_SCORE_ROOT_SCORE];
        uint64_t state = 77 + i;
        fa_score_normal n;
        if (root >= 0) {
            cr_assert(fa_score_normal_of(&p->ir, root, &n));
            cr_assert(!(p->ir.node[n.factor].depends & (FA_SCORE_OF_S | FA_SCORE_OF_J)) && !(p->ir.node[n.offset].depends & FA_SCORE_OF_S));
            for (int k = 0; k < 500; k++) {
                score_world w;
                score_world_draw(&w, &p->ir, &state);
                fa_score_pair at = score_pair_draw(&w, &state);
                fa_score_eval(&p->ir, p->ir.n - 1, &w.data, &at, value);
                double form = value[n.factor] * value[n.core] + value[n.offset];
                cr_assert(form == value[root] || fabs(form - value[root]) <= 1e-12 * (1 + fabs(value[root]) + fabs(value[n.offset])) ||
                              isnan(form + value[root]) || value[n.factor] == 0,
                          "%s: %.17g, not %.17g", score_programs[i].name, form, value[root]);
            }
        }
        fa_program_free(p);
    }
}

Test(score_ir, cores_and_factors)
{
    static const struct {
        const char *score;
        fa_score_op core;
        bool rises; /* the factor is above 0 */
    } rows[] = {
        { "c * tanh(s / c)", FA_SCORE_TANH, true },
        { "s + x[h] * (j - i - off)", FA_SCORE_S, true },
        { "s * c / 2", FA_SCORE_S, true },
        { "s * x[h]", FA_SCORE_S, false }, /* of any sign */
        { "-s", FA_SCORE_S, false },
        { "3 - (x[h] - (s - 1) / c)", FA_SCORE_S, true },
        { "s * (1 + j)", FA_SCORE_MUL, true }, /* the factor would depend on the key */
        { "s * s", FA_SCORE_MUL, true },
        { "1 / s", FA_SCORE_DIV, true },
        { "s > 0 and s or 2 * s", FA_SCORE_SELECT, true },
        { "x[h] + j", FA_SCORE_CONST, true },
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char text[200];
        fa_program *p;
        fa_score_normal n;
        snprintf(text, sizeof text,
                 "x = f32 'hq'; c = scalar(2, 'float', 0.5, 100)\nfunction score(s, b, h, i, j) return %s + 0 * c * x[0] end",
                 rows[k].score);
        OK(fa_program_read(&p, "score", text, strlen(text)));
        cr_assert(fa_score_normal_of(&p->ir, p->ir.root[FA_SCORE_ROOT_SCORE], &n));
        cr_assert_eq(p->ir.node[n.core].op, rows[k].core, "%s: the core is %s", rows[k].score, fa_score_op_word(p->ir.node[n.core].op));
        cr_assert_eq(fa_score_normal_rises(&p->ir, &n), rows[k].rises, "%s", rows[k].score);
        fa_program_free(p);
    }
}

/* Bounds are of key - query - off. */
Test(score_ir, far_from_the_diagonal_functions_of_the_distance_are_one_number)
{
    static const struct {
        const char *score;
        bool below, above;
        int low, high;
    } rows[] = {
        { "t[h][max(min(j - i - off, 9), -7)]", true, true, -7, 9 },
        { "t[h][max(min(i - j + off, 9), -7) + 7]", true, true, -9, 7 },
        { "t[h][min(abs(j - i - off), 12)]", true, true, -12, 12 },
        { "t[h][max(-(j - i - off), 0)]", false, true, 0, 0 },
        { "t[h][j - i - off < -20 and 3 or max(i - j + off, -5)]", true, true, -21, 5 },
        { "t[h][min(16 + floor(log(max(i + off - j, 1) / 16) / log(8) * 16), 31)]", true, true, -113, -1 },
        { "1.0 * min((j - i - off) // 2, 9)", false, true, 0, 18 },
        { "1.0 * min(j - i - off, 9) + 1.0 * max(j - i + off, 4)", false, false, 0, 0 },
        { "1.0 * min(j - i - off, 9) * max(j - i, 4)", false, false, 0, 0 },
        { "log(1.0 + abs(j - i - off))", false, false, 0, 0 },
        { "1.0 * min(j - off, 9)", false, false, 0, 0 },
    };
    static double value[FA_SCORE_ROOM];
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char text[200];
        fa_program *p;
        score_world w;
        uint64_t state = k;
        snprintf(text, sizeof text, "t = f32 'hq 40'\nfunction score(s, b, h, i, j) return %s + 0 * t[0][0] end", rows[k].score);
        OK(fa_program_read(&p, "score", text, strlen(text)));
        int root = p->ir.root[FA_SCORE_ROOT_SCORE];
        fa_score_far far = fa_score_far_of(&p->ir, root);
        cr_expect_eq(far.has[FA_SCORE_BELOW], rows[k].below, "%s: below", rows[k].score);
        cr_expect_eq(far.has[FA_SCORE_ABOVE], rows[k].above, "%s: above", rows[k].score);
        score_world_draw(&w, &p->ir, &state);
        w.data.off = 3;
        for (int side = 0; side < FA_SCORE_SIDES; side++) {
            if (!far.has[side])
                continue;
            fa_score_pair at = { 0, 1, 0, 0, 0 };
            fa_score_eval(&p->ir, p->ir.n - 1, &w.data, &at, value);
            double base = far.negative ? -value[far.base] : value[far.base];
            int bound = (int)(far.at[side] - base) - 3;
            cr_expect_eq(bound, side == FA_SCORE_BELOW ? rows[k].low : rows[k].high, "%s: %d", rows[k].score, bound);
            at.i = 5000;
            at.j = at.i + 3 + bound;
            double one = fa_score_eval(&p->ir, root, &w.data, &at, value);
            for (int n = 0; n < 200; n++) {
                at.j = at.i + 3 + bound + (side == FA_SCORE_BELOW ? -n : n);
                cr_expect_eq(fa_score_eval(&p->ir, root, &w.data, &at, value), one, "%s: %d", rows[k].score, n);
            }
        }
        fa_program_free(p);
    }
}
