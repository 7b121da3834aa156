/* considered: what a choice looked at, as lines for people and as rows for programs. */
#include "choosing.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/model.h"
#include "gen/problem.h"
#include "gen/space.h"
#include "jit.h"
#include "runtime/context/context.h"
#include <stdio.h>
#include <string.h>

#define TOLD_MOST 12 /* candidates: the cheapest */

void fa_jit_candidates(fa_context *ctx, const fa_problem *of, fa_text *t)
{
    const fa_problem p = fa_problem_point(of);
    char line[512];
    fa_choosing c;
    fa_message before;
    fa_message_keep(&before);
    fa_problem_print(line, sizeof line, &p);
    fa_text_fmt(t, "point      %s\n", line);
    if (fa_choosing_open(&c, ctx, &p, true) == FA_OK) {
        fa_text_fmt(t, "facts      %016llx: %zu winners near, %zu configs that fail; %zu candidates, %zu winners do not run here\n",
                    (unsigned long long)c.facts.hash, c.facts.n, c.facts.n_failed, c.choice->n, c.choice->refused);
        for (size_t i = 0; i < c.choice->n && i < TOLD_MOST; i++) {
            const fa_choosable *x = &c.choice->row[i];
            fa_gen_config_print(c.g, line, sizeof line, &x->config);
            fa_text_fmt(t, "candidate  %.4g us (model %.4g us), %s", x->price * 1e6, x->model * 1e6, fa_fact_name(x->kind));
            if (x->fact && x->kind != FA_FACT_PINNED)
                fa_text_fmt(t, " of %s, %.3g doublings away", x->fact->chip, x->fact->far);
            if (x->spills)
                fa_text_str(t, ", expected to spill");
            fa_text_fmt(t, "%s: %s\n",
                        i || !c.choice->decided     ? ""
                        : x->kind == FA_FACT_PINNED ? ", decides"
                                                    : ", its own bucket: decides",
                        line);
        }
    }
    fa_choosing_close(&c);
    fa_message_settle(&before, FA_OK);
}

/* Rows on their way to a caller. */
typedef struct telling {
    const fa_choosing *c;
    const fa_selection *runs;
    fa_candidate_fn tell;
    void *user;
    int stopped;
} telling;

static const int32_t from_kind[] = {
    [FA_FACT_PINNED] = FA_FROM_PIN,      [FA_FACT_MEASURED] = FA_FROM_RECORD, [FA_FACT_IMPORTED] = FA_FROM_IMPORT,
    [FA_FACT_SHIPPED] = FA_FROM_SHIPPED, [FA_FACT_MODELLED] = FA_FROM_GUESS,  [FA_FACT_NONE] = FA_FROM_START
};

/* fact NULL: nothing is known of it. why: it does not run here; NULL: it does. */
static void tell(telling *t, const fa_config *config, fa_fact_kind kind, const fa_fact *fact, const fa_choosable *x, const char *why)
{
    char name[512], problem[FA_PROBLEM_TEXT] = "";
    fa_candidate_info row = { .size = sizeof row, .source = from_kind[kind], .config = name, .chip = "", .date = "", .problem = problem };
    if (t->stopped)
        return;
    fa_gen_config_print(t->c->g, name, sizeof name, config);
    row.why = why ? why : "";
    row.runs = !why && fa_config_equal(config, &t->runs->config) && !t->runs->bundle_row;
    if (x) {
        row.price = x->price;
        row.model = x->model;
    }
    if (fact) {
        row.measured = kind <= FA_FACT_IMPORTED ? fact->seconds : 0;
        row.distance = fact->far;
        row.chip = fact->chip;
        row.date = fact->date;
        fa_problem_print(problem, sizeof problem, &fact->problem);
    }
    t->stopped = t->tell(t->user, &row);
}

static bool is_row(const fa_choice *o, const fa_config *config)
{
    for (size_t i = 0; i < o->n; i++)
        if (fa_config_equal(&o->row[i].config, config))
            return true;
    return false;
}

/* Winners that are no candidates here, each with its reason; then what is known to fail. */
static void tell_refused(telling *t)
{
    const fa_choosing *c = t->c;
    const fa_context *ctx = c->ctx;
    for (size_t i = 0; i < c->facts.n; i++) {
        const fa_fact *f = &c->facts.fact[i];
        char why[512] = "";
        fa_cost cost;
        if (is_row(c->choice, &f->config) || fa_facts_failure(&c->facts, &f->config))
            continue;
        if (!fa_gen_chosen_for(c->g, f->config.family, c->point))
            snprintf(why, sizeof why, "cuts keys into parts, which lie in a workspace; launches of this problem have none");
        else if (fa_model_named(c->g, c->point, &f->config, &ctx->device.arch, ctx->budget, 0, NULL, &cost) != FA_OK)
            snprintf(why, sizeof why, "%s", fa_last_error());
        else /* dearer than all that are kept */
            snprintf(why, sizeof why, "not among the cheapest %d", FA_CANDIDATES_MAX);
        tell(t, &f->config, f->kind, f, NULL, why);
    }
    for (size_t i = 0; i < c->facts.n_failed; i++)
        tell(t, &c->facts.failed[i].config, FA_FACT_MEASURED, NULL, NULL, c->facts.failed[i].why);
}

fa_status fa_jit_tell(fa_context *ctx, const fa_problem *of, const fa_selection *runs, fa_candidate_fn fn, void *user)
{
    const fa_problem p = fa_problem_point(of);
    fa_choosing c;
    telling t = { .c = &c, .runs = runs, .tell = fn, .user = user };
    fa_message before;
    fa_message_keep(&before);
    fa_status st = fa_choosing_open(&c, ctx, &p, true);
    if (st == FA_OK) {
        const fa_choice *o = c.choice;
        for (int pass = 0; pass < 2; pass++) /* what runs first */
            for (size_t i = 0; i < o->n; i++)
                if (fa_config_equal(&o->row[i].config, &runs->config) == (pass == 0))
                    tell(&t, &o->row[i].config, o->row[i].kind, o->row[i].fact, &o->row[i], NULL);
        tell_refused(&t);
    }
    fa_choosing_close(&c);
    return fa_message_settle(&before, st == FA_NO_FIT ? FA_OK : st); /* what the whole space has is told by the caller */
}
