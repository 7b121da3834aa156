/* select_jit: what fa_choose() says of a point, rendered; where no candidate fits, the model's best of the whole space. */
#include "choosing.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/model.h"
#include "gen/problem.h"
#include "gen/space.h"
#include "generators.h"
#include "jit.h"
#include "runtime/context/context.h"
#include "select.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fa_status fa_render_in(fa_context *ctx, const fa_problem *p, const fa_config *c, fa_source *out)
{
    fa_gen *g;
    memset(out, 0, sizeof *out);
    fa_status st = fa_generator_take(ctx, &g);
    if (st == FA_OK)
        st = fa_render(g, p, c, &ctx->device.arch, ctx->budget, out);
    fa_generator_give(ctx, g);
    return st;
}

fa_status fa_choose_reference(fa_context *ctx, int32_t op, fa_config *out)
{
    fa_gen *g;
    fa_status st = fa_generator_take(ctx, &g);
    if (st == FA_OK)
        st = fa_gen_reference_config(g, op, out);
    fa_generator_give(ctx, g);
    return st;
}

void fa_jit_config(fa_context *ctx, const fa_config *c, char *buf, size_t n)
{
    fa_gen *g;
    fa_message before;
    fa_message_keep(&before);
    fa_status st = fa_generator_take(ctx, &g);
    if (st == FA_OK && fa_gen_load_family(g, c->family) == FA_OK)
        fa_gen_config_print(g, buf, n, c);
    else
        fa_config_print(buf, n, c);
    fa_message_settle(&before, FA_OK);
    fa_generator_give(ctx, g);
}

static void say_why(const fa_choosing *c, const fa_choosable *x, const fa_source *s, fa_selection *out)
{
    char line[FA_PROBLEM_TEXT], price[48] = "";
    const fa_fact *f = x->fact;
    *out = (fa_selection){ .config = x->config, .seconds = x->price };
    snprintf(out->where, sizeof out->where, "%s", fa_fact_name(x->kind));
    if (!c->choice->decided)
        snprintf(price, sizeof price, "; the best of %zu by its price", c->choice->n);
    if (x->kind == FA_FACT_PINNED) {
        snprintf(out->why, sizeof out->why, "named by fa_pin(); %s%.3g us", f->seconds > 0 ? "measured " : "by the model ", x->price * 1e6);
        return;
    }
    if (!f) {
        snprintf(out->why, sizeof out->why, "the model's best of %zu candidates: %.3g us, bound by %s; never measured here", c->choice->n,
                 x->model * 1e6, x->bound);
        return;
    }
    fa_problem at = f->problem;
    at.score_id0 = at.score_id1 = at.score_id2 = at.score_id3 = at.score_grads = 0; /* of the problem that is asked about, or of none */
    fa_problem_print(line, sizeof line, &at);
    if (x->kind == FA_FACT_SHIPPED) {
        snprintf(out->why, sizeof out->why, "shipped winner of %s at %.120s%.40s; not measured here", f->chip, line, price);
        return;
    }
    bool told = f->source[0] || f->source[1], older = told && (f->source[0] != s->hash[0] || f->source[1] != s->hash[1]);
    snprintf(out->why, sizeof out->why, "%s %.3g us on %s at %.120s, %.20s%s%.40s", x->kind == FA_FACT_MODELLED ? "modelled" : "measured",
             f->seconds * 1e6, f->chip, line, f->date,
             x->kind == FA_FACT_IMPORTED ? ", imported"
             : older                     ? ", with an older text of the kernel"
                                         : "",
             price);
}

/* The first candidate that renders: each was judged by its constraints, but not by its text. */
static fa_status render_first(const fa_choosing *c, fa_selection *out, fa_source *source)
{
    fa_status st = FA_NO_FIT;
    for (size_t i = 0; i < c->choice->n && st != FA_OK; i++) {
        const fa_choosable *x = &c->choice->row[i];
        st = fa_render(c->g, c->point, &x->config, &c->ctx->device.arch, c->ctx->budget, source);
        if (st == FA_OK)
            say_why(c, x, source, out);
        else
            fa_log_say(&c->ctx->log, FA_LOG_DEBUG, "a config out of the %s is passed over: %s", fa_fact_name(x->kind), fa_last_error());
    }
    return st;
}

/* The point of the space that the model thinks fastest, of those not known to fail. */
typedef struct best {
    const fa_space *space;
    const fa_facts *facts;
    size_t priced, point;
    fa_cost cost;
} best;

static void consider(void *user, size_t point, const fa_cost *cost)
{
    best *b = user;
    const fa_config *c = &b->space->points[point].config;
    bool spills = b->space->points[point].spills, spilled = b->priced && b->space->points[b->point].spills;
    if (fa_facts_failure(b->facts, c))
        return;
    if (!b->priced || (spills == spilled ? cost->seconds < b->cost.seconds : spilled)) {
        b->cost = *cost;
        b->point = point;
    }
    b->priced++;
}

static fa_status best_point(const fa_choosing *c, const fa_space *space, fa_selection *out)
{
    best b = { .space = space, .facts = &c->facts };
    fa_status st = fa_model_space(c->g, c->point, space, &c->ctx->device.arch, consider, &b);
    if (st != FA_OK)
        return st;
    if (!b.priced)
        return fa_fail(FA_NO_FIT, "each of the %zu configs that fit is known to fail", space->fitting);
    *out = (fa_selection){ .config = space->points[b.point].config, .where = "model", .seconds = b.cost.seconds };
    snprintf(out->why, sizeof out->why, "the model's best of %zu configs: %.3g us, bound by %s; never measured here", b.priced,
             b.cost.seconds * 1e6, b.cost.bound);
    return FA_OK;
}

/* Under a small budget, or for families that a folder of templates brings. */
static fa_status from_space(const fa_choosing *c, fa_selection *out, fa_source *source)
{
    fa_space space = { 0 };
    const fa_arch *a = &c->ctx->device.arch;
    fa_status st = fa_space_list(c->g, c->point, a, c->ctx->budget, NULL, &space);
    if (st == FA_OK)
        st = fa_space_check(&space, c->point, a, c->ctx->budget);
    if (st == FA_OK)
        st = best_point(c, &space, out);
    fa_space_free(&space);
    return st == FA_OK ? fa_render(c->g, c->point, &out->config, a, c->ctx->budget, source) : st;
}

fa_status fa_select_jit(fa_context *ctx, const fa_problem *of, fa_selection *out, fa_source *source)
{
    const fa_problem p = fa_problem_point(of);
    fa_source s = { 0 };
    fa_choosing c;
    fa_status st = fa_choosing_open(&c, ctx, &p, false);
    if (st == FA_OK)
        st = render_first(&c, out, &s);
    else if (st == FA_NO_FIT)
        st = from_space(&c, out, &s);
    if (st == FA_OK)
        out->facts = c.facts.hash, out->pin = c.pin;
    fa_choosing_close(&c);
    if (source)
        *source = s;
    else
        fa_source_free(&s);
    return st;
}

/* The config of a text, its tunables in the family's order; each must be there. */
static fa_status parse_whole(fa_gen *g, const char *text, fa_config *out)
{
    fa_config given;
    char family[sizeof given.family];
    fa_tunable t;
    snprintf(family, sizeof family, "%.*s", (int)strcspn(text, ":"), text);
    fa_status st = fa_gen_load_family(g, family);
    if (st == FA_OK && !fa_gen_tunable(g, family, 0, &t))
        st = fa_fail(FA_INVALID, "config is \"%.100s\", and there is no family of that name; accepted: the texts of fa_candidates()", text);
    if (st == FA_OK)
        st = fa_gen_config_parse(g, &given, text);
    if (st != FA_OK)
        return st;
    *out = given;
    out->n = 0;
    memset(out->tunable, 0, sizeof out->tunable);
    for (size_t i = 0; fa_gen_tunable(g, given.family, i, &t); i++) {
        int32_t at = 0;
        while (at < given.n && strcmp(given.tunable[at].name, t.name))
            at++;
        if (at == given.n && t.later)
            continue;
        if (at == given.n)
            return fa_fail(FA_INVALID, "%s has no %s; accepted: a config with each tunable, as fa_candidates() tells them", text, t.name);
        out->tunable[out->n++] = given.tunable[at];
    }
    if (out->n < given.n)
        *out = given; /* one that the family does not have: rendering says which */
    return FA_OK;
}

fa_status fa_jit_pinnable(fa_context *ctx, const fa_problem *point, const char *text, fa_config *out)
{
    fa_choosing c = { .ctx = ctx, .point = point };
    fa_source s = { 0 };
    fa_status st = fa_generator_take(ctx, &c.g);
    if (st == FA_OK)
        st = parse_whole(c.g, text, out);
    if (st == FA_OK)
        st = fa_render(c.g, point, out, &ctx->device.arch, ctx->budget, &s);
    fa_source_free(&s);
    if (st == FA_OK && !fa_gen_chosen_for(c.g, out->family, point))
        st = fa_fail(FA_UNSUPPORTED, "%s cuts keys into parts, which lie in a workspace; launches of this problem have none", out->family);
    if (st == FA_OK)
        st = fa_facts_of(&c.facts, ctx->store, point, &ctx->device.arch, ctx->budget);
    const fa_failure *f = st == FA_OK ? fa_facts_failure(&c.facts, out) : NULL;
    if (f)
        st = fa_fail(strncmp(f->why, "wrong", 5) ? FA_UNSUPPORTED : FA_WRONG, "a record of this chip tells that it fails here: %s", f->why);
    fa_choosing_close(&c);
    return st;
}
