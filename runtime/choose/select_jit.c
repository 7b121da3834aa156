/* select_jit: what fa_choose() says of a point, rendered; where no candidate fits, the model's best of the whole space. */
#include "choose.h"
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

/* A point on this context's chip, what is known of it, and what was chosen. */
typedef struct choosing {
    fa_context *ctx;
    const fa_problem *p;
    fa_gen *g;
    fa_facts facts;
    fa_choice *choice;
} choosing;

static fa_status choose(choosing *c, fa_context *ctx, const fa_problem *p, bool whole)
{
    *c = (choosing){ .ctx = ctx, .p = p, .choice = malloc(sizeof *c->choice) };
    if (!c->choice)
        return fa_fail(FA_NOMEM, "no memory for the candidates");
    c->choice->n = 0;
    fa_status st = fa_generator_take(ctx, &c->g);
    if (st == FA_OK)
        st = fa_facts_of(&c->facts, ctx->store, p, &ctx->device.arch, ctx->budget);
    return st == FA_OK ? fa_choose(c->g, p, &ctx->device.arch, ctx->budget, &c->facts, whole, c->choice) : st;
}

static void done(choosing *c)
{
    fa_facts_free(&c->facts);
    free(c->choice);
    fa_generator_give(c->ctx, c->g);
}

static const char *const wheres[] = { [FA_FACT_MEASURED] = "measured record",
                                      [FA_FACT_SHIPPED] = "default table",
                                      [FA_FACT_MODELLED] = "modelled record",
                                      [FA_FACT_NONE] = "model" };

static void say_why(const choosing *c, const fa_choosable *x, const fa_source *s, fa_selection *out)
{
    char line[256], price[48] = "";
    const fa_fact *f = x->fact;
    *out = (fa_selection){ .config = x->config, .seconds = x->price };
    snprintf(out->where, sizeof out->where, "%s", wheres[x->kind]);
    if (!c->choice->decided)
        snprintf(price, sizeof price, "; the best of %zu by its price", c->choice->n);
    if (!f) {
        snprintf(out->why, sizeof out->why, "the model's best of %zu candidates: %.3g us, bound by %s; never measured here", c->choice->n,
                 x->model * 1e6, x->bound);
        return;
    }
    fa_problem_print(line, sizeof line, &f->problem);
    if (x->kind == FA_FACT_SHIPPED) {
        snprintf(out->why, sizeof out->why, "shipped winner of %s at %.120s%.40s; not measured here", f->chip, line, price);
        return;
    }
    bool told = f->source[0] || f->source[1], older = told && (f->source[0] != s->hash[0] || f->source[1] != s->hash[1]);
    snprintf(out->why, sizeof out->why, "%s %.3g us on %s at %.120s, %.20s%s%.40s", x->kind == FA_FACT_MEASURED ? "measured" : "modelled",
             f->seconds * 1e6, f->chip, line, f->date, older ? ", with an older text of the kernel" : "", price);
}

/* The first candidate that renders: each was judged by its constraints, but not by its text. */
static fa_status render_first(const choosing *c, fa_selection *out, fa_source *source)
{
    fa_status st = FA_NO_FIT;
    for (size_t i = 0; i < c->choice->n && st != FA_OK; i++) {
        const fa_choosable *x = &c->choice->row[i];
        st = fa_render(c->g, c->p, &x->config, &c->ctx->device.arch, c->ctx->budget, source);
        if (st == FA_OK)
            say_why(c, x, source, out);
        else
            fa_log_say(&c->ctx->log, FA_LOG_DEBUG, "a config out of the %s is passed over: %s", wheres[x->kind], fa_last_error());
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
    for (size_t i = 0; i < b->facts->n_failed; i++)
        if (fa_config_equal(&b->facts->failed[i], c))
            return;
    if (!b->priced || (spills == spilled ? cost->seconds < b->cost.seconds : spilled)) {
        b->cost = *cost;
        b->point = point;
    }
    b->priced++;
}

static fa_status best_point(const choosing *c, const fa_space *space, fa_selection *out)
{
    best b = { .space = space, .facts = &c->facts };
    fa_status st = fa_model_space(c->g, c->p, space, &c->ctx->device.arch, consider, &b);
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
static fa_status from_space(const choosing *c, fa_selection *out, fa_source *source)
{
    fa_space space = { 0 };
    const fa_arch *a = &c->ctx->device.arch;
    fa_status st = fa_space_list(c->g, c->p, a, c->ctx->budget, NULL, &space);
    if (st == FA_OK)
        st = fa_space_check(&space, c->p, a, c->ctx->budget);
    if (st == FA_OK)
        st = best_point(c, &space, out);
    fa_space_free(&space);
    return st == FA_OK ? fa_render(c->g, c->p, &out->config, a, c->ctx->budget, source) : st;
}

fa_status fa_select_jit(fa_context *ctx, const fa_problem *of, fa_selection *out, fa_source *source)
{
    const fa_problem p = fa_problem_point(of);
    fa_source s = { 0 };
    choosing c;
    fa_status st = choose(&c, ctx, &p, false);
    if (st == FA_OK)
        st = render_first(&c, out, &s);
    else if (st == FA_NO_FIT)
        st = from_space(&c, out, &s);
    if (st == FA_OK)
        out->facts = c.facts.hash;
    done(&c);
    if (source)
        *source = s;
    else
        fa_source_free(&s);
    return st;
}

#define TOLD_MOST 12 /* candidates: the cheapest */

void fa_jit_candidates(fa_context *ctx, const fa_problem *of, fa_text *t)
{
    const fa_problem p = fa_problem_point(of);
    char line[512];
    choosing c;
    fa_message before;
    fa_message_keep(&before);
    fa_problem_print(line, sizeof line, &p);
    fa_text_fmt(t, "point      %s\n", line);
    if (choose(&c, ctx, &p, true) == FA_OK) {
        fa_text_fmt(t, "facts      %016llx: %zu winners near, %zu configs that fail; %zu candidates, %zu winners do not run here\n",
                    (unsigned long long)c.facts.hash, c.facts.n, c.facts.n_failed, c.choice->n, c.choice->refused);
        for (size_t i = 0; i < c.choice->n && i < TOLD_MOST; i++) {
            const fa_choosable *x = &c.choice->row[i];
            fa_gen_config_print(c.g, line, sizeof line, &x->config);
            fa_text_fmt(t, "candidate  %.4g us (model %.4g us), %s", x->price * 1e6, x->model * 1e6, wheres[x->kind]);
            if (x->fact)
                fa_text_fmt(t, " of %s, %.3g doublings away", x->fact->chip, x->fact->far);
            if (x->spills)
                fa_text_str(t, ", expected to spill");
            fa_text_fmt(t, "%s: %s\n", !i && c.choice->decided ? ", its own bucket: decides" : "", line);
        }
    }
    done(&c);
    fa_message_settle(&before, FA_OK);
}
