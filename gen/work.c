/* work: what a family's work() returns, read and checked. */
#include "work.h"
#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static double number(lua_State *L, const fa_family *f, const char *field, double fallback)
{
    int ok;
    if (lua_getfield(L, -1, field) == LUA_TNIL) {
        lua_pop(L, 1);
        return fallback;
    }
    double v = lua_tonumberx(L, -1, &ok);
    if (!ok || !(v >= 0) || isinf(v))
        luaL_error(L, "templates/%s: %s of work is not a number >= 0", f->file, field);
    lua_pop(L, 1);
    return v;
}

static void text(lua_State *L, const fa_family *f, const char *field, const char *fallback, char *out, size_t n)
{
    const char *s = fallback;
    if (lua_getfield(L, -1, field) != LUA_TNIL)
        s = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    if (!*s || strlen(s) >= n)
        luaL_error(L, "templates/%s: %s of work is not a short string", f->file, field);
    memcpy(out, s, strlen(s) + 1);
    lua_pop(L, 1);
}

/* The algorithm that counts the bytes: the one that the table at the top names, or the first where it has a block of scores and no bytes.
 */
static const fa_algorithm *algorithm(lua_State *L, const fa_family *f, const fa_work *w)
{
    char name[24], names[160];
    const fa_algorithm *a;
    int at = 0, type = lua_getfield(L, -1, "algorithm");
    lua_pop(L, 1);
    if (type == LUA_TNIL)
        return w->cols > 0 && w->bytes == 0 ? fa_algorithm_row(0) : NULL;
    text(L, f, "algorithm", "", name, sizeof name);
    for (size_t i = 0; (a = fa_algorithm_row(i)); i++) {
        if (!strcmp(a->name, name))
            return a;
        at += snprintf(names + at, sizeof names - (size_t)at, "%s%s", i ? ", " : "", a->name);
    }
    luaL_error(L, "templates/%s: algorithm of work is \"%s\"; accepted: %s", f->file, name, names);
    return NULL;
}

/* The entry at the top of the stack. */
static void read_work(lua_State *L, const fa_family *f, const fa_problem *p, const fa_arch *a, fa_work *w)
{
    const struct {
        const char *name;
        double rate;
    } units[] = { { "mma16", a->mma16_flop }, { "mma_tf32", a->mma_tf32_flop }, { "wgmma16", a->wgmma16_flop }, { "ffma", a->ffma_flop } };
    w->rows = number(L, f, "rows", 0);
    w->cols = number(L, f, "cols", 0);
    w->group = number(L, f, "group", 0);
    w->matrix_flops = number(L, f, "matrix_flops", 2.0 * (p->d + p->dv));
    w->exps = number(L, f, "exps", 1);
    w->issue = number(L, f, "issue", 0);
    w->smem_bytes = number(L, f, "smem_bytes", 0);
    w->latency = number(L, f, "latency", 0);
    w->tile_issue = number(L, f, "tile_issue", 0);
    w->tile_latency = number(L, f, "tile_latency", 0);
    w->efficiency = number(L, f, "efficiency", 1);
    w->shows = number(L, f, "shows", -1);
    w->felt = number(L, f, "felt", 0);
    w->l2_speed = number(L, f, "l2_speed", 1);
    w->hbm_speed = number(L, f, "hbm_speed", 1);
    w->regs = number(L, f, "regs", 0);
    w->bytes = number(L, f, "bytes", 0);
    w->even = number(L, f, "even", 0);
    w->cuts = number(L, f, "cuts", 1);
    w->rest = number(L, f, "rest", 0);
    w->gathers = number(L, f, "gathers", 0);
    w->share = number(L, f, "share", 1);
    w->uneven = number(L, f, "uneven", 0);
    text(L, f, "unit", "mma16", w->unit, sizeof w->unit);
    w->algorithm = algorithm(L, f, w);
    bool streams = w->cols == 0 && (w->algorithm ? w->rows >= 1 : w->bytes > 0);
    if ((w->cols < 1 && !streams) || (w->rows < 1 && w->cols >= 1) || w->rows > 1 << 20 || w->cols > 1 << 30 || w->efficiency <= 0 ||
        w->l2_speed <= 0 || w->hbm_speed <= 0 || w->cuts < 1 || w->share > 1 || (w->felt > 0 && w->felt < 1))
        luaL_error(L, "templates/%s: rows, cols, efficiency, felt, l2_speed, hbm_speed, share or cuts of work is out of range", f->file);
    if (w->algorithm && w->bytes > 0)
        luaL_error(L, "templates/%s: work has bytes beside algorithm = \"%s\"; accepted: one of them", f->file, w->algorithm->name);
    if (w->group != 0 && (w->cols < 1 || w->group < 1 || fmod(w->rows, w->group) != 0))
        luaL_error(L, "templates/%s: group of work is no part of its rows, or beside no cols", f->file);
    w->rate = -1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(units[i].name, w->unit))
            w->rate = units[i].rate;
    if (w->rate < 0)
        luaL_error(L, "templates/%s: unit of work is \"%s\"; accepted: mma16, mma_tf32, wgmma16, ffma", f->file, w->unit);
}

int fa_work_ask(lua_State *L, const fa_lua_args *fr, int shaped, const fa_family *f, const fa_problem *p, int layout, int steps,
                fa_work out[FA_SOURCE_STEPS])
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, f->work);
    lua_pushvalue(L, shaped);
    lua_pushvalue(L, fr->c);
    lua_pushvalue(L, fr->a);
    lua_pushvalue(L, layout);
    lua_call(L, 4, 1);
    if (!lua_istable(L, -1))
        luaL_error(L, "templates/%s: work returned a %s; accepted: a table", f->file, luaL_typename(L, -1));
    int n = (int)lua_rawlen(L, -1);
    if (n && n != steps)
        luaL_error(L, "templates/%s: work returned %d entries for %d steps; accepted: one for each step, or a table that stands for all",
                   f->file, n, steps);
    if (!n)
        read_work(L, f, p, fr->arch, &out[0]);
    for (int i = 0; i < n; i++) {
        if (lua_rawgeti(L, -1, i + 1) != LUA_TTABLE)
            luaL_error(L, "templates/%s: entry %d of work is a %s; accepted: a table", f->file, i + 1, luaL_typename(L, -1));
        read_work(L, f, p, fr->arch, &out[i]);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return n ? n : 1;
}
