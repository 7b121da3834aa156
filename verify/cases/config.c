/* config: which config a case is run with. */
#include "case.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "gen/space.h"
#include "runtime/args/array_layout.h"
#include "runtime/args/map.h"
#include "verify/operands/random.h"
#include <string.h>

#define DRAWS 400 /* of a config before all are listed */

/* Any of the family's configs, fit or not. */
static bool draw_any(fa_gen *g, const char *family, fa_random *r, fa_config *out)
{
    fa_tunable t;
    *out = (fa_config){ .n = 0 };
    strncpy(out->family, family, sizeof out->family - 1);
    for (size_t i = 0; fa_gen_tunable(g, family, i, &t); i++)
        if (!fa_tunable_set(out, &t, t.values[fa_random_below(r, (int32_t)t.n)]))
            return false;
    return true;
}

/* One of those that fit, out of the list of all. */
static fa_status draw_listed(fa_gen *g, const char *family, const fa_case *c, const fa_arch *a, int32_t budget, fa_random *r,
                             fa_config *out)
{
    fa_space space = { 0 };
    fa_status st = fa_space_list(g, &c->problem, a, budget, family, &space);
    if (st == FA_OK)
        st = fa_space_check(&space, &c->problem, a, budget);
    for (int32_t left = st == FA_OK ? fa_random_below(r, (int32_t)space.fitting) : -1, i = 0; left >= 0; i++)
        if (space.points[i].fits && left-- == 0)
            *out = space.points[i].config;
    fa_space_free(&space);
    return st;
}

/* Whether a kernel that loads by TMA takes the case's strides. */
static bool is_mappable(const fa_case *c, const fa_ragged *ragged)
{
    const fa_operation *op = fa_operation_find(c->problem.op);
    fa_sizes sizes = fa_case_sizes(c, ragged);
    for (int i = 0; i < op->n; i++) {
        fa_layout l = fa_case_layout(c, &sizes, i);
        int bytes = fa_operand_bytes(&op->operand[i], &c->problem);
        const struct {
            int32_t size;
            int64_t stride;
        } dims[] = { { l.s, l.ss }, { l.h, l.sh }, { l.b, l.sb } };
        if (!op->operand[i].strided || !l.s || !fa_problem_maps(&c->problem, &op->operand[i]))
            continue;
        for (size_t k = 0; k < sizeof dims / sizeof *dims; k++)
            if (dims[k].size > 1 && !fa_map_stride_fits(dims[k].stride * bytes))
                return false;
    }
    return true;
}

/* One of the family's configs that fit, each as likely as any other: by trial, or out of the list where few fit. */
static fa_status draw_config(fa_gen *g, const char *family, const fa_case *c, const fa_arch *a, int32_t budget, fa_random *r,
                             fa_config *out)
{
    fa_source s = { 0 };
    fa_ragged ragged = { .args = { 0 } };
    fa_status st = FA_NO_FIT;
    for (int i = 0; i < DRAWS && (st == FA_NO_FIT || st == FA_UNSUPPORTED) && draw_any(g, family, r, out); i++)
        st = fa_render(g, &c->problem, out, a, budget, &s);
    if (st == FA_NO_FIT || st == FA_UNSUPPORTED) {
        st = draw_listed(g, family, c, a, budget, r, out);
        if (st == FA_OK)
            st = fa_render(g, &c->problem, out, a, budget, &s);
    }
    bool maps = st == FA_OK && fa_steps_map(s.step, s.steps);
    if (maps)
        st = fa_case_ragged(c, &ragged);
    if (maps && st == FA_OK && !is_mappable(c, &ragged))
        st = fa_fail(FA_UNSUPPORTED, "%s loads by TMA, which does not take the strides of the case", family);
    fa_ragged_close(&ragged);
    fa_source_free(&s);
    return st;
}

fa_status fa_case_config(fa_gen *g, const fa_case *c, const fa_arch *a, int32_t budget, const char *only, fa_config *out)
{
    fa_random r = { fa_random_mix(c->choice ^ 0x636f6e666967) };
    if (only)
        return draw_config(g, only, c, a, budget, &r, out);
    fa_status st = FA_UNSUPPORTED;
    size_t n = fa_gen_defaults(g), first = (size_t)fa_random_below(&r, (int32_t)n + 1); /* the first, with most configs, twice as often */
    for (size_t i = 0; i < n; i++) {
        const char *family = fa_gen_family(g, (first + i) % n);
        if (fa_gen_operation(g, (first + i) % n) != c->problem.op)
            continue;
        st = draw_config(g, family, c, a, budget, &r, out);
        if (st != FA_NO_FIT && st != FA_UNSUPPORTED)
            return st;
    }
    return fa_wrap(st, "no family");
}
