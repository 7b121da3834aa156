/* cost: what one config costs on one chip: a roofline over six units, with tiles, waves and occupancy.
 *
 * Roofline: Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for Multicore Architectures",
 * CACM 2009, taken per unit: a launch lasts at least as long as its busiest unit. What is assumed on top, to be calibrated
 * against measurement, is in the constants below and in docs/templates.md. */
#include "error.h"
#include "family.h"
#include "model.h"
#include "problem.h"
#include <lauxlib.h>
#include <math.h>
#include <string.h>

#define LAUNCH_SECONDS 3e-6 /* of each step: driver, block scheduling, the last block's drain */
#define SCHEDULERS 4        /* of an SM */
/* With one warp per scheduler the matrix unit idles while that warp takes exponentials, and the other way round; with two
 * or more they alternate, and this share of the shorter phase still shows. Linear in between. */
#define SHOWS_ALONE 1.0
#define SHOWS_SHARED 0.77
/* What an SM could do if it never waited, and what its thread blocks take one by one, shared by those that reside: neither is
 * reached, and near the corner both are felt. The p-norm of the two. This and the numbers above were fitted to timings on an
 * H200: docs/performance.md, "The model". */
#define CORNER 4.0

/* What the family's work() says of one block of rows x cols scores. A cluster takes it together: what is per pair is shared out
 * among its thread blocks, the rest is of each. */
typedef struct work {
    double rows, cols;
    double matrix_flops, exps;         /* per pair */
    double issue, smem_bytes, latency; /* per block of scores; latency: clocks in which its thread block only waits */
    double tile_issue, tile_latency;   /* per row tile: prologue and epilogue; instructions, and clocks of waiting */
    double efficiency;                 /* of the matrix unit's rate */
    double regs;                       /* per thread, as the compiler is expected to use them; 0 = the layout's */
    double rate;                       /* of the unit, FLOP per clock and SM */
    char unit[12];
    bool naive;                        /* three passes: S and P go through memory */
} work;

typedef struct job {
    const fa_family *family;
    const fa_problem *shaped;
    const fa_config *c;
    const fa_arch *a;
    fa_point point;
    bool supported, has_work;
    fa_source source; /* steps only */
    work w;
} job;

static double number(lua_State *L, const job *j, const char *field, double fallback)
{
    int ok = 1;
    double v = fallback;
    if (lua_getfield(L, -1, field) != LUA_TNIL)
        v = lua_tonumberx(L, -1, &ok);
    if (!ok || !(v >= 0) || isinf(v))
        luaL_error(L, "templates/%s.lua: %s of work is not a number >= 0", j->family->name, field);
    lua_pop(L, 1);
    return v;
}

static void text(lua_State *L, const job *j, const char *field, const char *fallback, char *out, size_t n)
{
    const char *s = fallback;
    if (lua_getfield(L, -1, field) != LUA_TNIL)
        s = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    if (!*s || strlen(s) >= n)
        luaL_error(L, "templates/%s.lua: %s of work is not a short string", j->family->name, field);
    memcpy(out, s, strlen(s) + 1);
    lua_pop(L, 1);
}

static void read_work(lua_State *L, job *j)
{
    const fa_arch *a = j->a;
    const struct {
        const char *name;
        double rate;
    } units[] = { { "mma16", a->mma16_flop }, { "mma_tf32", a->mma_tf32_flop }, { "wgmma16", a->wgmma16_flop },
                  { "ffma", a->ffma_flop } };
    work *w = &j->w;
    char algorithm[12];
    if (!lua_istable(L, -1))
        luaL_error(L, "templates/%s.lua: work returned a %s; accepted: a table", j->family->name, luaL_typename(L, -1));
    w->rows = number(L, j, "rows", 0);
    w->cols = number(L, j, "cols", 0);
    w->matrix_flops = number(L, j, "matrix_flops", 2.0 * (j->shaped->d + j->shaped->dv));
    w->exps = number(L, j, "exps", 1);
    w->issue = number(L, j, "issue", 0);
    w->smem_bytes = number(L, j, "smem_bytes", 0);
    w->latency = number(L, j, "latency", 0);
    w->tile_issue = number(L, j, "tile_issue", 0);
    w->tile_latency = number(L, j, "tile_latency", 0);
    w->efficiency = number(L, j, "efficiency", 1);
    w->regs = number(L, j, "regs", 0);
    text(L, j, "unit", "mma16", w->unit, sizeof w->unit);
    text(L, j, "algorithm", "flash2", algorithm, sizeof algorithm);
    w->naive = !strcmp(algorithm, "naive");
    if (!w->naive && strcmp(algorithm, "flash2"))
        luaL_error(L, "templates/%s.lua: algorithm of work is \"%s\"; accepted: flash2, naive", j->family->name, algorithm);
    if (w->rows < 1 || w->cols < 1 || w->rows > 1 << 20 || w->cols > 1 << 30 || w->efficiency <= 0)
        luaL_error(L, "templates/%s.lua: rows, cols or efficiency of work is out of range", j->family->name);
    w->rate = -1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(units[i].name, w->unit))
            w->rate = units[i].rate;
    if (w->rate < 0)
        luaL_error(L, "templates/%s.lua: unit of work is \"%s\"; accepted: mma16, mma_tf32, wgmma16, ffma", j->family->name,
                   w->unit);
}

static int run(lua_State *L)
{
    job *j = lua_touserdata(L, 1);
    fa_frame fr, shaped;
    bool size_only;
    fa_frame_push(L, &fr, j->family, j->shaped, j->a, 0, false);
    j->supported = fa_family_supports(L, &fr, j->family, j->point.why, sizeof j->point.why);
    if (!j->supported)
        return 0;
    for (int i = 0; i < j->c->n; i++)
        fa_frame_set(L, &fr, j->c->tunable[i].name, j->c->tunable[i].value);
    fa_family_judge(L, &fr, j->family, false, &j->point, &size_only);
    if (!j->point.fits || j->family->work == LUA_NOREF)
        return 0;
    int layout = lua_gettop(L);
    fa_family_steps(L, &fr, j->family, layout, &j->source);
    fa_frame_push(L, &shaped, j->family, j->shaped, j->a, 0, true);
    lua_rawgeti(L, LUA_REGISTRYINDEX, j->family->work);
    lua_pushvalue(L, shaped.p);
    lua_pushvalue(L, fr.c);
    lua_pushvalue(L, fr.a);
    lua_pushvalue(L, layout);
    lua_call(L, 4, 1);
    read_work(L, j);
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

/* Blocks of scores that the row tiles of one head visit: in all, and in the longest and shortest tile. */
typedef struct visits {
    double all, longest, shortest;
} visits;

static visits count_visits(const fa_problem *p, const work *w, int pack, fa_band band)
{
    int64_t group = pack ? p->hq / p->hkv : 1, rows = p->sq * group, br = (int64_t)w->rows, bc = (int64_t)w->cols;
    visits v = { 0, 0, INFINITY };
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

static double corner(double a, double b)
{
    return pow(pow(a, CORNER) + pow(b, CORNER), 1 / CORNER);
}

static void estimate(fa_cost *out, const job *j, fa_band band)
{
    const fa_problem *p = j->shaped;
    const fa_arch *a = j->a;
    const work *w = &j->w;
    const fa_step *s = &j->source.step[0];
    double clock = a->clock_ghz * 1e9, pairs = w->rows * w->cols / s->cluster, heads = (double)p->b * (s->pack ? p->hkv : p->hq);
    visits v = count_visits(p, w, s->pack, band);
    double tiles = ceil((double)p->sq * (s->pack ? p->hq / p->hkv : 1) / w->rows);

    /* Clocks of one SM for its part of a block of scores, by unit. */
    double matrix = pairs * w->matrix_flops / (w->rate * w->efficiency), exps = pairs * w->exps / a->exp_rate;
    double issue = w->issue / a->issue_rate, smem = w->smem_bytes / a->smem_bytes_clk;
    double sharing = fmax(1, fmin(out->blocks_sm, ceil((double)out->grid / a->sm_count)));
    double warps = sharing * s->threads / 32 / SCHEDULERS;
    double shows = SHOWS_ALONE + (SHOWS_SHARED - SHOWS_ALONE) * fmin(1, fmax(0, warps - 1));
    double other = fmax(exps, issue);
    double busy = fmax(fmax(matrix, other) + shows * fmin(matrix, other), smem);
    double alone = (fmax(matrix + other, smem) + w->latency) / sharing;
    double block = corner(busy, alone);
    double tile = w->tile_issue / a->issue_rate + w->tile_latency / sharing;

    /* Equal tiles finish in whole rounds over the SMs; unequal ones are launched longest first and fill the gaps. */
    double owners = heads * s->cluster, mean = owners * (v.all * block + tiles * tile) / a->sm_count, longest = v.longest * block + tile;
    double clocks = v.longest == v.shortest ? ceil(owners * tiles / a->sm_count) * longest : fmax(mean, longest);

    double all = owners * v.all / (a->sm_count * clock);
    double fed = fmin(1, (double)out->grid / a->sm_count); /* an idle SM asks for no bytes */
    out->t_matrix = all * matrix;
    out->t_exp = all * exps;
    out->t_issue = all * issue + owners * tiles * tile / (a->sm_count * clock);
    out->t_smem = all * smem;
    out->t_l2 = fa_traffic_total(&out->traffic) / (a->l2_gbs * 1e9 * fed);
    out->t_hbm = hbm_bytes(p, a, out, s->pack, s->cluster, tiles, w->naive) / (a->hbm_gbs * 1e9);
    out->seconds = LAUNCH_SECONDS * j->source.steps + corner(clocks / clock, fmax(out->t_l2, out->t_hbm));

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

fa_status fa_model_cost(fa_gen *g, const fa_problem *in, const fa_config *c, const fa_arch *a, int regs, fa_cost *out)
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
    job j = { .family = f, .shaped = &p, .c = &config, .a = a };
    if ((st = fa_sandbox_run(g->sb, run, &j, &error)) != FA_OK)
        return fa_template_fail(&g->files, st, f->name, error);
    if (!j.supported || !j.point.fits)
        return fa_family_reject(f, &p, a, &config, &j.point, j.supported);
    if (!j.has_work)
        return fa_fail(FA_UNSUPPORTED, "%s declares no work(): it has no model", f->name);
    if (j.w.rate == 0)
        return fa_fail(FA_UNSUPPORTED, "%s needs the unit %s, which %s lacks", f->name, j.w.unit, a->name);
    if (regs <= 0)
        regs = j.w.regs > 0 ? (int)j.w.regs : j.source.min_regs;
    occupancy(out, a, j.source.step[0].smem, regs, j.source.step[0].threads);
    if (out->blocks_sm < 1)
        return fa_fail(FA_NO_FIT, "%s: no block fits an SM of %s: %s", f->name, a->name, out->limiter);
    const fa_step *s = &j.source.step[0];
    out->grid = fa_step_grid(s, fa_step_total(s, p.b, p.hq, p.hkv, p.sq, p.sk), a->sm_count);
    if (s->per_sm && s->per_sm < out->blocks_sm) {
        out->occupancy *= (double)s->per_sm / out->blocks_sm;
        out->blocks_sm = s->per_sm;
        out->limiter = "grid";
    }
    if (out->grid < 1)
        return fa_fail(FA_UNSUPPORTED, "%s: the grid exceeds 2^31 - 1 blocks", f->name);
    out->waves = (double)out->grid / ((double)a->sm_count * out->blocks_sm);
    fa_band band = fa_band_of(&p, FA_BOTTOM_RIGHT, 0, FA_MODEL_WINDOW, 0);
    out->traffic = j.w.naive ? fa_model_naive(&p) : fa_model_flash2(&p, (int)j.w.rows, j.source.step[0].pack, band, 0);
    out->flops = fa_model_matrix_flops(&p, band) + fa_model_other_flops(&p, band);
    out->bytes = fa_traffic_total(&out->traffic);
    out->intensity = out->flops / out->bytes;
    estimate(out, &j, band);
    return FA_OK;
}
