/* cost: what one config costs on one chip: the sum of its steps. */
#include "cost.h"
#include "error.h"
#include "model.h"
#include "price.h"
#include "problem.h"
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
    const fa_family *family;
    const fa_config *c;
    const fa_pricing *on;
    int32_t budget;
    fa_point point;
    bool supported, has_work;
    fa_source source; /* steps only */
    fa_work work[FA_SOURCE_STEPS];
    int works; /* one for each step, or one for all of them */
} job;

/* Asks the steps of the config in fr->c, whose layout is at the top. */
static void ask_steps(lua_State *L, job *j, const fa_lua_args *fr)
{
    int layout = lua_gettop(L);
    j->source = (fa_source){ 0 };
    fa_family_steps(L, fr, j->family, layout, &j->source);
    for (int i = 0; i < j->source.steps; i++)
        if (fa_step_chunked(&j->source.step[i])) {
            fa_family_workspace(L, fr, j->family, layout, &j->source);
            break;
        }
}

/* Asks the work of these steps for the problem with its shape, whose table is at index shaped. */
static void ask_work(lua_State *L, job *j, const fa_lua_args *fr, int shaped)
{
    j->works = fa_work_ask(L, fr, shaped, j->family, j->on->problem, lua_gettop(L), j->source.steps, j->work);
}

static int run(lua_State *L)
{
    job *j = lua_touserdata(L, 1);
    fa_lua_args fr, shaped;
    fa_lua_args_push(L, &shaped, j->family, j->on->problem, j->on->arch, 0, true);
    fa_lua_args_push(L, &fr, j->family, j->on->problem, j->on->arch, j->budget, false);
    j->supported = fa_family_judge_named(L, &fr, j->family, j->c, &j->point);
    if (!j->supported || !j->point.fits || j->family->work == LUA_NOREF)
        return 0;
    ask_steps(L, j, &fr);
    ask_work(L, j, &fr, shaped.p);
    j->has_work = true;
    return 0;
}

/* The shape that is priced. Of sequences with lengths of their own it has the longest: gradients cost what a third as many of that length
 * do, or blocks of keys would seem to fill the chip that do not. */
static void fill(fa_problem *p)
{
    fa_problem_fill_shape(p);
    if (p->op == FA_BACKWARD && p->features & FA_FEATURE_LENGTHS)
        p->b = (p->b + 2) / 3;
}

static fa_pricing pricing_of(const fa_problem *p, const fa_arch *a)
{
    fa_band band = fa_band_of_problem(p);
    return (fa_pricing){ .problem = p, .arch = a, .band = band, .flops = fa_model_matrix_flops(p, band) + fa_model_other_flops(p, band) };
}

/* Adds one step to the sum. */
static void add(fa_cost *sum, const fa_cost *step, double *longest)
{
    fa_cost was = *sum;
    if (step->seconds > *longest) {
        *longest = step->seconds;
        *sum = *step;
    }
    sum->seconds = was.seconds + step->seconds;
    sum->t_matrix = was.t_matrix + step->t_matrix;
    sum->t_exp = was.t_exp + step->t_exp;
    sum->t_issue = was.t_issue + step->t_issue;
    sum->t_smem = was.t_smem + step->t_smem;
    sum->t_l2 = was.t_l2 + step->t_l2;
    sum->t_hbm = was.t_hbm + step->t_hbm;
    sum->traffic = fa_traffic_sum(&was.traffic, &step->traffic);
}

static const char *bound(const fa_cost *c)
{
    const struct {
        const char *name;
        double t;
    } units[] = { { "matrix", c->t_matrix }, { "exp", c->t_exp }, { "issue", c->t_issue },
                  { "smem", c->t_smem },     { "l2", c->t_l2 },   { "hbm", c->t_hbm } };
    size_t most = 0;
    for (size_t i = 1; i < sizeof units / sizeof *units; i++)
        if (units[i].t > units[most].t)
            most = i;
    return units[most].name;
}

/* How often the step is launched; of a family with one work for all its steps, they. */
static fa_repeats repeats_of(const job *j, const fa_step *s)
{
    fa_repeats repeats = { .units = 1, .members = 1, .launches = j->works > 1 ? 1 : j->source.steps };
    fa_sizes sizes = fa_sizes_of(j->on->problem, j->on->arch->sm_count);
    int64_t units = sizes.of[FA_EXTENT_UNITS], members = sizes.of[FA_EXTENT_MEMBERS];
    if (!fa_step_chunked(s) || units < 1 || members < 1)
        return repeats;
    fa_portion at = fa_workspace_portion(&j->source.workspace, &sizes);
    repeats.units = (double)((units + at.units - 1) / at.units);
    repeats.members = (double)((members + at.members - 1) / at.members);
    if (units % at.units && at.members == members)
        repeats.last = (double)(units % at.units) / (double)at.units;
    return repeats;
}

/* What the config costs, of which the family told its steps and its work. */
static fa_status price(const job *j, int regs, fa_cost *out)
{
    double longest = -1;
    *out = (fa_cost){ .bound = "", .limiter = "" };
    for (int i = 0; i < j->works; i++) {
        const fa_work *w = &j->work[i];
        fa_cost step;
        int per_thread = regs > 0 ? regs : w->regs > 0 ? (int)w->regs : j->source.min_regs;
        fa_status st = fa_price_step(j->on, j->family->name, &j->source.step[i], w, per_thread, repeats_of(j, &j->source.step[i]), &step);
        if (st != FA_OK)
            return st;
        add(out, &step, &longest);
    }
    out->bound = bound(out);
    out->flops = j->on->flops;
    out->bytes = fa_traffic_total(&out->traffic);
    return FA_OK;
}

fa_status fa_cost_judged(lua_State *L, const fa_lua_args *fr, const fa_lua_args *shaped, const fa_family *f, fa_tile_counts *known,
                         fa_cost *out)
{
    fa_pricing on = pricing_of(shaped->asked, fr->arch);
    job j = { .family = f, .on = &on };
    on.known = known;
    *out = (fa_cost){ .bound = "", .limiter = "" };
    if (f->work == LUA_NOREF)
        return FA_UNSUPPORTED;
    ask_steps(L, &j, fr);
    ask_work(L, &j, fr, shaped->p);
    return price(&j, 0, out);
}

fa_status fa_cost_problem(fa_problem *out, const fa_problem *in)
{
    fa_status st = fa_problem_normalize(out, in);
    if (st == FA_OK)
        fill(out);
    return st;
}

fa_status fa_model_cost(fa_gen *g, const fa_problem *p, const fa_config *c, const fa_arch *a, int regs, fa_cost *out)
{
    return fa_model_named(g, p, c, a, 0, regs, NULL, out);
}

fa_status fa_model_named(fa_gen *g, const fa_problem *in, const fa_config *c, const fa_arch *a, int32_t budget, int regs, fa_point *pt,
                         fa_cost *out)
{
    fa_problem p;
    fa_config config;
    const char *error;
    *out = (fa_cost){ .bound = "", .limiter = "" };
    fa_status st = fa_cost_problem(&p, in);
    if (st != FA_OK)
        return st;
    if ((st = fa_gen_load_family(g, c->family)) != FA_OK)
        return st;
    g->priced++;
    const fa_family *f = fa_family_find(g, c->family);
    if (!f || fa_family_config(&config, f, c) != FA_OK)
        return FA_INVALID;
    fa_pricing on = pricing_of(&p, a);
    job j = { .family = f, .c = &config, .on = &on, .budget = budget };
    if ((st = fa_sandbox_run(g->sb, run, &j, &error)) != FA_OK)
        return fa_template_fail(&g->files, st, f->name, error);
    if (!j.supported || !j.point.fits)
        return fa_family_reject(f, &p, a, &config, &j.point, j.supported);
    if (pt) {
        *pt = j.point;
        pt->config = config;
    }
    if (!j.has_work)
        return fa_fail(FA_UNSUPPORTED, "%s declares no work(): it has no model", f->name);
    return price(&j, regs, out);
}

/* A config under several shapes. */
typedef struct ends {
    const fa_family *family;
    const fa_config *c;
    const fa_problem *p;
    const fa_arch *a;
    size_t n;
    fa_cost *out;
    fa_status st;
} ends;

static int run_ends(lua_State *L)
{
    ends *e = lua_touserdata(L, 1);
    fa_lua_args fr, shaped;
    fa_point pt;
    fa_lua_args_push(L, &fr, e->family, e->p, e->a, 0, false);
    for (int i = 0; i < e->c->n; i++)
        fa_lua_args_set(L, &fr, e->c->tunable[i].name, e->c->tunable[i].value);
    fa_family_layout(L, &fr, e->family, &pt);
    int layout = lua_gettop(L);
    for (size_t k = 0; k < e->n && e->st == FA_OK; k++) {
        fa_lua_args_push(L, &shaped, e->family, &e->p[k], e->a, 0, true);
        lua_pushvalue(L, layout);
        e->st = fa_cost_judged(L, &fr, &shaped, e->family, NULL, &e->out[k]);
    }
    return 0;
}

fa_status fa_model_ends(fa_gen *g, const fa_problem in[FA_MODEL_ENDS], const fa_config *c, const fa_arch *a, fa_cost out[FA_MODEL_ENDS])
{
    fa_problem p[FA_MODEL_ENDS];
    fa_config config;
    const char *error;
    fa_status st = FA_OK;
    for (size_t k = 0; k < FA_MODEL_ENDS && st == FA_OK; k++)
        st = fa_cost_problem(&p[k], &in[k]);
    if (st != FA_OK || (st = fa_gen_load_family(g, c->family)) != FA_OK)
        return st;
    ends e = { fa_family_find(g, c->family), &config, p, a, FA_MODEL_ENDS, out, FA_OK };
    if (!e.family || fa_family_config(&config, e.family, c) != FA_OK)
        return FA_INVALID;
    g->priced += FA_MODEL_ENDS;
    st = fa_sandbox_run(g->sb, run_ends, &e, &error);
    return st == FA_OK ? e.st : fa_template_fail(&g->files, st, e.family->name, error);
}

/* A part of a space, priced in one run. */
typedef struct sweep {
    fa_gen *g;
    const fa_space *space;
    fa_problem problem[FA_MODEL_SHAPES];
    fa_pricing on[FA_MODEL_SHAPES];
    size_t shapes;
    job j;
    size_t at, end, told;
    fa_status st; /* of the last point without a price */
    fa_model_tell_shape *tell;
    void *user;
} sweep;

#define SWEEP 2048 /* prices of a run, whose instructions and memory are limited */

/* Prices the point under every shape; its layout is at the top, the tables of the shapes from index shaped on, `apart` from each other. */
static void price_point(lua_State *L, sweep *s, const fa_lua_args *fr, int shaped, int apart)
{
    job *j = &s->j;
    j->on = &s->on[0];
    ask_steps(L, j, fr);
    for (size_t k = 0; k < s->shapes; k++) {
        fa_cost cost;
        j->on = &s->on[k];
        ask_work(L, j, fr, shaped + (int)k * apart);
        fa_status st = price(j, 0, &cost);
        if (st != FA_OK) {
            s->st = st;
            continue;
        }
        s->tell(s->user, k, s->at, &cost);
        s->g->priced++;
        s->told++;
    }
}

static int run_sweep(lua_State *L)
{
    sweep *s = lua_touserdata(L, 1);
    job *j = &s->j;
    const fa_arch *a = s->on[0].arch;
    fa_lua_args fr, shaped;
    const fa_config *set = NULL; /* what fr.c holds */
    int first = 0, apart = 0;
    j->family = NULL;
    for (; s->at < s->end; s->at++) {
        const fa_point *pt = &s->space->points[s->at];
        if (!pt->fits)
            continue;
        if (!j->family || strcmp(j->family->name, pt->config.family)) {
            lua_settop(L, 1);
            j->family = fa_family_find(s->g, pt->config.family);
            for (size_t k = 0; k < s->shapes; k++) {
                fa_lua_args_push(L, &shaped, j->family, s->on[k].problem, a, 0, true);
                first = k ? first : shaped.p;
                apart = k == 1 ? shaped.p - first : apart;
            }
            fa_lua_args_push(L, &fr, j->family, s->on[0].problem, a, 0, false);
            set = NULL;
        }
        if (j->family->work == LUA_NOREF) {
            s->st = fa_fail(FA_UNSUPPORTED, "%s declares no work(): it has no model", j->family->name);
            continue;
        }
        int top = lua_gettop(L);
        j->c = &pt->config;
        for (int i = 0; i < pt->config.n; i++)
            if (!set || set->tunable[i].value != pt->config.tunable[i].value)
                fa_lua_args_set(L, &fr, pt->config.tunable[i].name, pt->config.tunable[i].value);
        set = &pt->config;
        fa_family_layout(L, &fr, j->family, &j->point);
        price_point(L, s, &fr, first, apart);
        lua_settop(L, top);
    }
    return 0;
}

fa_status fa_model_shapes(fa_gen *g, const fa_problem *in, size_t n, const fa_space *space, const fa_arch *a, fa_model_tell_shape *tell,
                          void *user)
{
    const char *error;
    sweep s = { .g = g, .space = space, .shapes = n, .tell = tell, .user = user };
    size_t points = SWEEP / n;
    for (size_t k = 0; k < n; k++) {
        fa_status st = fa_problem_normalize(&s.problem[k], &in[k]);
        if (st != FA_OK)
            return st;
        fill(&s.problem[k]);
        s.on[k] = pricing_of(&s.problem[k], a);
    }
    s.st = fa_fail(FA_NO_FIT, "none of %zu configs fits %s", space->n, a->name);
    fa_tile_counts *known = calloc(n * FA_TILE_COUNTS, sizeof *known);
    if (!known)
        return fa_fail(FA_NOMEM, "no memory for the tiles of the model");
    for (size_t k = 0; k < n; k++)
        s.on[k].known = known + k * FA_TILE_COUNTS;
    fa_status st = FA_OK;
    while (s.at < space->n && st == FA_OK) {
        s.end = space->n - s.at < points ? space->n : s.at + points;
        if ((st = fa_sandbox_run(g->sb, run_sweep, &s, &error)) != FA_OK)
            fa_template_fail(&g->files, st, "pricing the configs", error);
    }
    free(known);
    return st != FA_OK ? st : s.told ? FA_OK : s.st;
}

typedef struct one_shape {
    fa_model_tell *tell;
    void *user;
} one_shape;

static void tell_one(void *user, size_t shape, size_t point, const fa_cost *cost)
{
    const one_shape *to = user;
    (void)shape;
    to->tell(to->user, point, cost);
}

fa_status fa_model_space(fa_gen *g, const fa_problem *in, const fa_space *space, const fa_arch *a, fa_model_tell *tell, void *user)
{
    one_shape to = { tell, user };
    return fa_model_shapes(g, in, 1, space, a, tell_one, &to);
}
