/* choose: near winners and starts, each with a price. */
#include "choose.h"
#include "gen/batch_kind.h"
#include "gen/bucket_ends.h"
#include "gen/error.h"
#include "gen/model.h"
#include "gen/problem.h"
#include "gen/space.h"
#include "gen/start.h"
#include "gen/workspace.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STARTS_MAX 192    /* of all families together */
#define HALF_FAME 3.0     /* doublings after which a winner's fame, and what was measured of it, count for half */
#define HALF_FAME_CUT 2.0 /* likewise of fame, where tiles are cut: how many there are, and into how many parts, is another shape's */
#define OTHER_GROUPS 0.25 /* of fame, where rows are long and a winner has groups of heads and the problem none, or the other way round */
#define WEIGHED_MOST 12   /* candidates, at the ends of a bucket too */
#define MOST_OFF 4.0      /* a measurement that differs more from the model corrects no more than that */

/* How far the model errs between two configs of a class. Of it a winner is dearer at most before it gives way, where it won. */
static double error_of(const fa_problem *p)
{
    static const struct {
        int32_t op;
        bool few, lengths;
        double error;
    } rows[] = {
        { FA_FORWARD, false, false, 0.08 }, { FA_FORWARD, true, false, 0.25 },   { FA_FORWARD, false, true, 0.20 },
        { FA_FORWARD, true, true, 0.25 },   { FA_BACKWARD, false, false, 0.20 },
    };
    bool few = p->op == FA_FORWARD && fa_problem_few_rows(p), lengths = p->op == FA_FORWARD && p->features & FA_FEATURE_LENGTHS;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == p->op && rows[i].few == few && rows[i].lengths == lengths)
            return rows[i].error;
    return 0.20;
}

/* Of long rows dS in memory has room for few groups of heads at a time, whose tiles fill no round of the SMs: of that winners with as many
 * key heads know little, and those of groups of them. */
static double apart_by_groups(const fa_problem *p, const fa_problem *won)
{
    bool groups = p->hq > p->hkv, long_rows = (double)p->sq * p->sk * 2 * p->hq / p->hkv > FA_WORKSPACE_CHUNK / 4.0;
    return p->op == FA_BACKWARD && long_rows && groups != (won->hq > won->hkv) && !(p->features & FA_FEATURE_LENGTHS) ? OTHER_GROUPS : 1;
}

/* half: doublings after which what is far counts for half. */
static double fade(double far, double half)
{
    return exp2(-far / half);
}

typedef struct choosing {
    fa_gen *g;
    const fa_problem *point;
    const fa_arch *arch;
    int32_t budget;
    const fa_facts *facts;
    bool whole;
    fa_choice *out;
} choosing;

/* The model's price of a config that runs. A fault in a template is told; what does not fit is FA_NO_FIT or FA_UNSUPPORTED. */
static fa_status model(const choosing *c, const fa_problem *p, const fa_config *config, fa_point *pt, fa_cost *cost)
{
    return fa_model_named(c->g, p, config, c->arch, c->budget, 0, pt, cost);
}

/* Whether its seconds are those of a chip like this one. */
static bool timed(const fa_fact *f)
{
    return f->kind == FA_FACT_MEASURED || f->kind == FA_FACT_IMPORTED;
}

/* measured / model where it was measured; 1: nothing was measured. */
static double correction(const choosing *c, const fa_fact *f)
{
    fa_cost cost;
    if (!timed(f) || f->seconds <= 0 || model(c, &f->problem, &f->config, NULL, &cost) != FA_OK || cost.seconds <= 0)
        return 1;
    return fmin(MOST_OFF, fmax(1 / MOST_OFF, f->seconds / cost.seconds));
}

/* The model does not price spills: what they cost was measured, or is not known. */
static bool cheaper(const fa_choosable *a, const fa_choosable *b)
{
    if (a->spills != b->spills)
        return b->spills;
    return a->price < b->price;
}

/* Keeps the cheapest of all, after the first `kept` rows, which stay. */
static void put(fa_choice *o, size_t kept, const fa_choosable *x)
{
    size_t at = o->n;
    while (at > kept && cheaper(x, &o->row[at - 1]))
        at--;
    if (at == FA_CANDIDATES_MAX)
        return;
    size_t last = o->n < FA_CANDIDATES_MAX ? o->n++ : FA_CANDIDATES_MAX - 1;
    memmove(&o->row[at + 1], &o->row[at], (last - at) * sizeof *x);
    o->row[at] = *x;
}

/* What the rest of the candidates are held against: what was measured nearest says how far the model is off for all of them. */
static double reference(const choosing *c)
{
    for (size_t i = 0; i < c->facts->n; i++)
        if (timed(&c->facts->fact[i]))
            return pow(correction(c, &c->facts->fact[i]), fade(c->facts->fact[i].far, HALF_FAME));
    return 1;
}

static bool is_there(const fa_choice *o, const fa_config *c)
{
    for (size_t i = 0; i < o->n; i++)
        if (fa_config_equal(&o->row[i].config, c))
            return true;
    return false;
}

/* What a winner would be with other values of tunables that came later: where it was measured, it may not have been held against them. Of
 * what makes it a winner they keep `off`, what the model errs by, and half of its fame; all of it where keys have four heads of queries
 * or more here and one there: how a group is dealt out was not measured then. */
static fa_status add_variants(const choosing *c, const fa_fact *f, double off, double fame)
{
    fa_tunable t;
    bool groups = c->point->mask == FA_MASK_CAUSAL && c->point->hq >= 4 * c->point->hkv && f->problem.hq == f->problem.hkv;
    for (size_t i = 0; fa_gen_tunable(c->g, f->config.family, i, &t); i++)
        for (size_t v = 0; t.later && v < t.n; v++) {
            fa_choosable x = { .config = f->config, .kind = FA_FACT_NONE };
            fa_point pt = { .fits = false };
            fa_cost cost;
            if (!fa_tunable_set(&x.config, &t, t.values[v]) || is_there(c->out, &x.config) || fa_facts_failure(c->facts, &x.config))
                continue;
            fa_status st = model(c, c->point, &x.config, &pt, &cost);
            if (st == FA_NOMEM)
                return st;
            if (st != FA_OK)
                continue;
            x.model = cost.seconds;
            x.bound = cost.bound;
            x.spills = pt.spills;
            x.price = cost.seconds * off * (1 - (groups ? fame : fame / 2));
            put(c->out, c->out->decided, &x);
        }
    return FA_OK;
}

static fa_status add_winners(const choosing *c, double base)
{
    double error = error_of(c->point);
    for (size_t i = 0; i < c->facts->n && (c->whole || !c->out->decided); i++) {
        const fa_fact *f = &c->facts->fact[i];
        fa_choosable x = { .config = f->config, .kind = f->kind, .fact = f };
        fa_cost cost = { .bound = "" };
        fa_point pt = { .fits = false };
        fa_status st = FA_NO_FIT;
        bool cuts = fa_gen_splits(c->g, f->config.family);
        bool sound = f->kind == FA_FACT_PINNED || !fa_facts_failure(c->facts, &f->config);
        if (sound && fa_gen_chosen_for(c->g, f->config.family, c->point))
            st = model(c, c->point, &f->config, &pt, &cost);
        if (st == FA_NOMEM)
            return st;
        /* of a family without a model what was measured is the price; a pin asks for none */
        if (st != FA_OK && !(pt.fits && (f->seconds > 0 || f->kind == FA_FACT_PINNED))) {
            c->out->refused++;
            continue;
        }
        double off = timed(f) ? pow(correction(c, f), fade(f->far, HALF_FAME)) : base;
        x.model = cost.seconds;
        x.bound = cost.bound;
        x.spills = pt.spills && f->kind == FA_FACT_SHIPPED && !f->arch; /* on its own arch it won with the same code */
        double fame = f->kind == FA_FACT_MODELLED ? 0 : error * fade(f->far, cuts ? HALF_FAME_CUT : HALF_FAME);
        fame *= apart_by_groups(c->point, &f->problem);
        x.price = (f->own || st != FA_OK) && f->seconds > 0 ? f->seconds : cost.seconds * off * (1 - fame);
        if (f->own && !c->out->decided) {
            c->out->decided = true;
            memmove(&c->out->row[1], &c->out->row[0], c->out->n++ * sizeof x);
            c->out->row[0] = x;
        } else {
            put(c->out, c->out->decided, &x);
        }
        if (st == FA_OK && f->kind != FA_FACT_PINNED && f->kind != FA_FACT_MODELLED && (c->whole || !c->out->decided))
            st = add_variants(c, f, off, fame);
        if (st == FA_NOMEM)
            return st;
    }
    return FA_OK;
}

static fa_status add_starts(const choosing *c, double base, fa_start *start)
{
    size_t n = 0;
    fa_status st = fa_gen_starts(c->g, c->point, c->arch, c->budget, start, STARTS_MAX, &n);
    for (size_t i = 0; i < n && st == FA_OK; i++) {
        fa_choosable x = { .config = start[i].config, .kind = FA_FACT_NONE, .spills = start[i].spills };
        if (is_there(c->out, &x.config) || fa_facts_failure(c->facts, &x.config))
            continue;
        if (start[i].priced == FA_NOMEM || start[i].priced == FA_TEMPLATE)
            st = start[i].priced;
        if (start[i].priced != FA_OK)
            continue;
        x.model = start[i].cost.seconds;
        x.bound = start[i].cost.bound;
        x.price = x.model * base;
        put(c->out, c->out->decided, &x);
    }
    return st;
}

/* A config may be fast for the shape that stands for the bucket alone, which fills its last tile or wave: of the cheapest, those are first
 * that are cheap over the bucket. The cheapest keeps its price; beside it another's is in the mean over the shape and the ends. */
static fa_status weigh_ends(const choosing *c)
{
    fa_problem at[FA_MODEL_ENDS];
    fa_choice *o = c->out;
    size_t n = o->n < WEIGHED_MOST ? o->n : WEIGHED_MOST;
    fa_cost first[FA_MODEL_ENDS] = { { .seconds = 0 }, { .seconds = 0 } };
    if (o->decided || n < 2 || !fa_problem_ends(c->point, &at[0], &at[1]))
        return FA_OK;
    for (size_t i = 0; i < n; i++) {
        fa_choosable *x = &o->row[i];
        fa_cost cost[FA_MODEL_ENDS] = { { .seconds = 0 }, { .seconds = 0 } };
        double times = 1;
        fa_status st = x->model > 0 ? fa_model_ends(c->g, at, &x->config, c->arch, cost) : FA_OK;
        if (st == FA_NOMEM)
            return st;
        for (size_t k = 0; k < FA_MODEL_ENDS; k++) {
            if (i == 0)
                first[k] = cost[k];
            bool known = st == FA_OK && cost[k].seconds > 0 && first[k].seconds > 0 && o->row[0].model > 0;
            times += known ? cost[k].seconds / first[k].seconds / (x->model / o->row[0].model) : 1;
        }
        x->price *= times / 3;
        x->model *= times / 3;
    }
    for (size_t i = 1; i < o->n; i++) {
        fa_choosable x = o->row[i];
        size_t k = i;
        for (; k && cheaper(&x, &o->row[k - 1]); k--)
            o->row[k] = o->row[k - 1];
        o->row[k] = x;
    }
    return FA_OK;
}

/* Where bits are promised that do not depend on how many SMs a chip has, nor do prices: they are those of the table's row. */
static fa_arch arch_of_prices(const fa_arch *a, const fa_problem *p)
{
    if (p->features & (FA_FEATURE_DETERMINISTIC | FA_FEATURE_BATCH_INVARIANT))
        for (size_t i = 0; i < fa_arch_count(); i++)
            if (fa_arch_at(i)->source == a->source)
                return *fa_arch_at(i);
    return *a;
}

fa_status fa_choose(fa_gen *g, const fa_problem *point, const fa_arch *a, int32_t budget, const fa_facts *facts, bool whole, fa_choice *out)
{
    const fa_arch arch = arch_of_prices(a, point);
    choosing c = { g, point, &arch, budget, facts, whole, out };
    fa_message before;
    out->n = out->refused = 0;
    out->decided = false;
    fa_message_keep(&before);
    double base = whole || !facts->n || !facts->fact[0].own ? reference(&c) : 1;
    fa_status st = add_winners(&c, base);
    if (st == FA_OK && (whole || !out->decided)) {
        fa_start *start = malloc(STARTS_MAX * sizeof *start);
        st = start ? add_starts(&c, base, start) : fa_fail(FA_NOMEM, "no memory for the starts of families");
        free(start);
    }
    if (st == FA_OK)
        st = weigh_ends(&c);
    if (st == FA_OK && !out->n)
        return fa_fail(FA_NO_FIT, "none of the candidates fits");
    return fa_message_settle(&before, st);
}
