/* cost: what one config costs on one chip: a roofline over six units, with tiles, waves and occupancy.
 *
 * Roofline: Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for Multicore Architectures",
 * CACM 2009, taken per unit: a launch lasts at least as long as its busiest unit. What is assumed on top, to be calibrated
 * against measurement, is in the constants below and in docs/templates.md. */
#include "error.h"
#include "family.h"
#include "model.h"
#include "problem.h"
#include "work.h"
#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCHEDULERS 4        /* of an SM */
/* With one warp per scheduler the matrix unit idles while that warp takes exponentials, and the other way round; with two
 * or more they alternate, and this share of the shorter phase still shows. Linear in between. */
#define SHOWS_ALONE 1.0
#define SHOWS_SHARED 0.77
/* What an SM could do if it never waited, and what its thread blocks take one by one, shared by those that reside: neither is
 * reached, and near the corner both are felt. The p-norm of the two. This and the numbers above were fitted to timings on an
 * H200: docs/performance.md, "The model". */
#define CORNER 4.0
/* Unequal tiles that persistent blocks get dealt out beforehand end later than those that whoever is free draws. */
#define DEALT 1.09

/* Blocks of scores that the row tiles of one head visit: in all, and in the longest and shortest tile; and, where rows walk in groups,
 * what the groups visit in all. */
typedef struct visits {
    double all, longest, shortest, groups;
} visits;

/* What depends on the tile alone, and is counted row tile by row tile. */
typedef struct counts {
    double rows, cols, group;
    int pack;
    bool naive;
    visits visits;
    fa_traffic traffic;
} counts;

#define KNOWN 256 /* a power of two */

typedef struct job {
    const fa_family *family;
    const fa_problem *shaped;
    const fa_config *c;
    const fa_arch *a;
    int32_t budget;
    fa_point point;
    bool supported, has_work;
    fa_source source; /* steps only */
    fa_work w;
    fa_band band;
    double flops;
    counts *known;    /* KNOWN of them, or NULL */
} job;

/* Asks steps and work of the config in fr->c, whose layout is at the top. */
static void ask_work(lua_State *L, job *j, const fa_frame *fr, const fa_frame *shaped)
{
    int layout = lua_gettop(L);
    j->source = (fa_source){ 0 };
    fa_family_steps(L, fr, j->family, layout, &j->source);
    fa_work_ask(L, fr, shaped->p, j->family, j->shaped, layout, &j->w);
}

static int run(lua_State *L)
{
    job *j = lua_touserdata(L, 1);
    fa_frame fr, shaped;
    bool size_only;
    fa_frame_push(L, &shaped, j->family, j->shaped, j->a, 0, true);
    fa_frame_push(L, &fr, j->family, j->shaped, j->a, j->budget, false);
    j->supported = fa_family_supports(L, &fr, j->family, j->point.why, sizeof j->point.why);
    if (!j->supported)
        return 0;
    for (int i = 0; i < j->c->n; i++)
        fa_frame_set(L, &fr, j->c->tunable[i].name, j->c->tunable[i].value);
    fa_family_judge(L, &fr, j->family, FA_NAMED, &j->point, &size_only);
    if (!j->point.fits || j->family->work == LUA_NOREF)
        return 0;
    ask_work(L, j, &fr, &shaped);
    j->has_work = true;
    return 0;
}

static int32_t round_up(int32_t v, int32_t to)
{
    return (v + to - 1) / to * to;
}

/* Blocks that an SM holds. Registers are given out 8 per thread and 256 per warp (CUDA occupancy calculator). */
static void occupancy(fa_cost *out, const fa_arch *a, int smem, int regs, int threads)
{
    int warps = (threads + 31) / 32;
    const struct {
        const char *name;
        int32_t blocks;
    } limits[] = {
        { "smem", a->smem_sm / (smem + a->smem_reserved) },
        { "regs", regs > 0 ? a->regs_sm / (warps * round_up(round_up(regs, 8) * 32, 256)) : a->blocks_sm },
        { "threads", a->warps_sm / warps < a->threads_sm / threads ? a->warps_sm / warps : a->threads_sm / threads },
        { "blocks", a->blocks_sm },
    };
    out->blocks_sm = INT32_MAX;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].blocks < out->blocks_sm) {
            out->blocks_sm = limits[i].blocks;
            out->limiter = limits[i].name;
        }
    out->occupancy = (double)out->blocks_sm * warps / a->warps_sm;
}

static visits count_visits(const fa_problem *p, int64_t br, int64_t bc, int pack, fa_band band)
{
    int64_t group = pack ? p->hq / p->hkv : 1, rows = p->sq * group;
    visits v = { .shortest = INFINITY };
    for (int64_t r = 0; r < rows; r += br) {
        int64_t last = r + br < rows ? r + br - 1 : rows - 1;
        int64_t hi = last / group + band.hi, lo = r / group + band.lo;
        hi = hi < p->sk ? hi : p->sk - 1;
        lo = lo > 0 ? lo : 0;
        double n = hi >= lo ? (double)(hi / bc - lo / bc + 1) : 0;
        v.all += n;
        v.longest = fmax(v.longest, n);
        v.shortest = fmin(v.shortest, n);
    }
    return v;
}

/* K and V of the heads at work come from HBM once as far as they fit the L2, and again for each row tile beyond it. */
static double hbm_bytes(const fa_problem *p, const fa_arch *a, const fa_cost *cost, int pack, int cluster, double tiles, bool naive)
{
    const fa_traffic *t = &cost->traffic;
    if (naive)
        return fa_traffic_total(t);
    double e = fa_dtype_bytes(p->dtype), head = (double)p->sk * (p->d + p->dv) * e;
    double running = fmin((double)cost->grid, (double)a->sm_count * cost->blocks_sm) / cluster;
    double heads = ceil(running / fmax(tiles, 1));
    if (!pack)
        heads = ceil(heads / (p->hq / p->hkv));
    double kv = t->read_k + t->read_v, once = fmin(kv, head * p->b * p->hkv);
    double hit = fmin(1, (double)a->l2_bytes / fmax(1, heads * head));
    return t->read_q + t->write_o + t->write_lse + once + (kv - once) * (1 - hit);
}

static counts count(const job *j)
{
    const fa_work *w = &j->w;
    int pack = fa_step_packs(&j->source.step[0]);
    size_t at = ((size_t)w->rows / 16 * 37 + (size_t)w->cols / 16 * 2 + (size_t)pack) & (KNOWN - 1);
    counts *k = j->known ? &j->known[at] : NULL;
    if (k && k->rows == w->rows && k->cols == w->cols && k->group == w->group && k->pack == pack && k->naive == w->naive)
        return *k;
    counts c = { .rows = w->rows, .cols = w->cols, .group = w->group, .pack = pack, .naive = w->naive };
    c.visits = count_visits(j->shaped, (int64_t)w->rows, (int64_t)w->cols, pack, j->band);
    if (w->group > 0)
        c.visits.groups = count_visits(j->shaped, (int64_t)w->group, (int64_t)w->cols, pack, j->band).all;
    c.traffic = w->naive ? fa_model_naive(j->shaped) : fa_model_flash2(j->shaped, (int)w->rows, pack, j->band, 0);
    if (k)
        *k = c;
    return c;
}

static double corner(double a, double b)
{
    return pow(pow(a, CORNER) + pow(b, CORNER), 1 / CORNER);
}

static void estimate(fa_cost *out, const job *j, visits v)
{
    const fa_problem *p = j->shaped;
    const fa_arch *a = j->a;
    const fa_work *w = &j->w;
    const fa_step *s = &j->source.step[0];
    bool pack = fa_step_packs(s);
    double clock = a->clock_ghz * 1e9, pairs = w->rows * w->cols / s->cluster, heads = (double)p->b * (pack ? p->hkv : p->hq);
    double tiles = ceil((double)p->sq * (pack ? p->hq / p->hkv : 1) / w->rows);

    /* Clocks of one SM for its part of a block of scores, by unit. */
    double matrix = pairs * w->matrix_flops / (w->rate * w->efficiency), exps = pairs * w->exps / a->exp_rate;
    double issue = w->issue / a->issue_rate, smem = w->smem_bytes / a->smem_bytes_clk;
    double sharing = fmax(1, fmin(out->blocks_sm, ceil((double)out->grid / a->sm_count)));
    double warps = sharing * s->threads / 32 / SCHEDULERS;
    double shows = w->shows >= 0 ? w->shows : SHOWS_ALONE + (SHOWS_SHARED - SHOWS_ALONE) * fmin(1, fmax(0, warps - 1));
    double other = fmax(exps, issue);
    /* Groups walk side by side: alone each takes its own part of a block, and one whose mask ends early leaves the SM to the others. */
    double groups = w->group > 0 ? fmax(1, w->rows / s->cluster / w->group) : 1;
    double walked = w->group > 0 && v.all > 0 ? v.groups / (v.all * groups * s->cluster) : 1;
    double busy = fmax(fmax(matrix, other) + shows * fmin(matrix, other), smem) * walked;
    double alone = (fmax((matrix + other) / groups, smem) + w->latency) / sharing;
    double block = corner(busy, alone);
    double tile = w->tile_issue / a->issue_rate + w->tile_latency / sharing;

    /* Equal tiles finish in whole rounds over the SMs; unequal ones are launched longest first and fill the gaps. */
    double owners = heads * s->cluster, mean = owners * (v.all * block + tiles * tile) / a->sm_count, longest = v.longest * block + tile;
    double clocks = v.longest == v.shortest ? ceil(owners * tiles / a->sm_count) * longest : fmax(mean, longest);
    if (v.longest != v.shortest && s->per_sm && !s->counter)
        clocks *= DEALT;

    double all = owners * v.all / (a->sm_count * clock);
    double fed = fmin(1, (double)out->grid / a->sm_count); /* an idle SM asks for no bytes */
    out->t_matrix = all * walked * matrix;
    out->t_exp = all * walked * exps;
    out->t_issue = all * walked * issue + owners * tiles * tile / (a->sm_count * clock);
    out->t_smem = all * smem;
    out->t_l2 = fa_traffic_total(&out->traffic) / (a->l2_gbs * 1e9 * w->l2_speed * fed);
    out->t_hbm = hbm_bytes(p, a, out, pack, s->cluster, tiles, w->naive) / (a->hbm_gbs * 1e9);
    out->seconds = (a->launch_seconds > 0 ? a->launch_seconds : FA_LAUNCH_SECONDS) * j->source.steps + corner(clocks / clock, fmax(out->t_l2, out->t_hbm));

    const struct {
        const char *name;
        double t;
    } units[] = { { "matrix", out->t_matrix }, { "exp", out->t_exp }, { "issue", out->t_issue }, { "smem", out->t_smem },
                  { "l2", out->t_l2 },         { "hbm", out->t_hbm } };
    double most = -1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].t > most) {
            most = units[i].t;
            out->bound = units[i].name;
        }
}

static void set_problem(job *j, const fa_problem *p, const fa_arch *a)
{
    j->shaped = p;
    j->a = a;
    j->band = fa_band_of_problem(p);
    j->flops = fa_model_matrix_flops(p, j->band) + fa_model_other_flops(p, j->band);
}

/* What the config costs, of which the family told its steps and its work. */
static fa_status price(const job *j, int regs, fa_cost *out)
{
    const fa_problem *p = j->shaped;
    const fa_arch *a = j->a;
    const fa_family *f = j->family;
    const fa_step *s = &j->source.step[0];
    *out = (fa_cost){ .bound = "", .limiter = "", .packed = fa_step_packs(s) };
    if (j->w.rate == 0)
        return fa_fail(FA_UNSUPPORTED, "%s needs the unit %s, which %s lacks", f->name, j->w.unit, a->name);
    if (regs <= 0)
        regs = j->w.regs > 0 ? (int)j->w.regs : j->source.min_regs;
    occupancy(out, a, s->smem, regs, s->threads);
    if (out->blocks_sm < 1)
        return fa_fail(FA_NO_FIT, "%s: no block fits an SM of %s: %s", f->name, a->name, out->limiter);
    fa_sizes sizes = fa_sizes_of(p, a->sm_count);
    int64_t total = fa_step_total(s, &sizes);
    out->grid = total > 0 ? fa_step_grid(s, total, a->sm_count) : total;
    if (s->per_sm && s->per_sm < out->blocks_sm) {
        out->occupancy *= (double)s->per_sm / out->blocks_sm;
        out->blocks_sm = s->per_sm;
        out->limiter = "grid";
    }
    if (out->grid < 1)
        return fa_fail(FA_UNSUPPORTED, "%s: the grid exceeds 2^31 - 1 blocks", f->name);
    out->waves = (double)out->grid / ((double)a->sm_count * out->blocks_sm);
    counts c = count(j);
    out->traffic = c.traffic;
    out->flops = j->flops;
    out->bytes = fa_traffic_total(&out->traffic);
    estimate(out, j, c.visits);
    return FA_OK;
}

fa_status fa_model_cost(fa_gen *g, const fa_problem *in, const fa_config *c, const fa_arch *a, int regs, fa_cost *out)
{
    return fa_model_named(g, in, c, a, 0, regs, NULL, out);
}

fa_status fa_model_named(fa_gen *g, const fa_problem *in, const fa_config *c, const fa_arch *a, int32_t budget, int regs, fa_point *pt,
                         fa_cost *out)
{
    fa_problem p;
    fa_config config;
    const char *error;
    *out = (fa_cost){ .bound = "", .limiter = "" };
    fa_status st = fa_problem_normalize(&p, in);
    if (st != FA_OK)
        return st;
    fa_problem_fill_shape(&p);
    const fa_family *f = fa_family_find(g, c->family);
    if (!f || fa_family_config(&config, f, c) != FA_OK)
        return FA_INVALID;
    job j = { .family = f, .c = &config, .budget = budget };
    set_problem(&j, &p, a);
    if ((st = fa_sandbox_run(g->sb, run, &j, &error)) != FA_OK)
        return fa_template_fail(&g->files, st, f->name, error);
    if (!j.supported || !j.point.fits)
        return fa_family_reject(f, &p, a, &config, &j.point, j.supported);
    if (!j.has_work)
        return fa_fail(FA_UNSUPPORTED, "%s declares no work(): it has no model", f->name);
    if (pt) {
        *pt = j.point;
        pt->config = config;
    }
    return price(&j, regs, out);
}

/* A part of a space, priced in one run. */
typedef struct sweep {
    fa_gen *g;
    const fa_space *space;
    job j;
    size_t at, end, told;
    fa_status st; /* of the last point without a price */
    fa_model_tell *tell;
    void *user;
} sweep;

#define SWEEP 2048 /* points of a run, whose instructions and memory are limited */

static int run_sweep(lua_State *L)
{
    sweep *s = lua_touserdata(L, 1);
    job *j = &s->j;
    fa_frame fr, shaped;
    const fa_config *set = NULL; /* what fr.c holds */
    j->family = NULL;
    for (; s->at < s->end; s->at++) {
        const fa_point *pt = &s->space->points[s->at];
        fa_cost cost;
        if (!pt->fits)
            continue;
        if (!j->family || strcmp(j->family->name, pt->config.family)) {
            lua_settop(L, 1);
            j->family = fa_family_find(s->g, pt->config.family);
            fa_frame_push(L, &shaped, j->family, j->shaped, j->a, 0, true);
            fa_frame_push(L, &fr, j->family, j->shaped, j->a, 0, false);
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
                fa_frame_set(L, &fr, pt->config.tunable[i].name, pt->config.tunable[i].value);
        set = &pt->config;
        fa_family_layout(L, &fr, j->family, &j->point);
        ask_work(L, j, &fr, &shaped);
        lua_settop(L, top);
        fa_status st = price(j, 0, &cost);
        if (st != FA_OK) {
            s->st = st;
            continue;
        }
        s->tell(s->user, s->at, &cost);
        s->told++;
    }
    return 0;
}

fa_status fa_model_space(fa_gen *g, const fa_problem *in, const fa_space *space, const fa_arch *a, fa_model_tell *tell, void *user)
{
    fa_problem p;
    const char *error;
    sweep s = { .g = g, .space = space, .tell = tell, .user = user };
    fa_status st = fa_problem_normalize(&p, in);
    if (st != FA_OK)
        return st;
    fa_problem_fill_shape(&p);
    set_problem(&s.j, &p, a);
    s.st = fa_fail(FA_NO_FIT, "none of %zu configs fits %s", space->n, a->name);
    if (!(s.j.known = calloc(KNOWN, sizeof *s.j.known)))
        return fa_fail(FA_NOMEM, "no memory for the tiles of the model");
    while (s.at < space->n && st == FA_OK) {
        s.end = space->n - s.at < SWEEP ? space->n : s.at + SWEEP;
        if ((st = fa_sandbox_run(g->sb, run_sweep, &s, &error)) != FA_OK)
            fa_template_fail(&g->files, st, "pricing the configs", error);
    }
    free(s.j.known);
    return st != FA_OK ? st : s.told ? FA_OK : s.st;
}
