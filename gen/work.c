/* work: what a family's work() returns, read and checked. */
#include "work.h"
#include <lauxlib.h>
#include <math.h>
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
        luaL_error(L, "templates/%s.lua: %s of work is not a number >= 0", f->name, field);
    lua_pop(L, 1);
    return v;
}

static void text(lua_State *L, const fa_family *f, const char *field, const char *fallback, char *out, size_t n)
{
    const char *s = fallback;
    if (lua_getfield(L, -1, field) != LUA_TNIL)
        s = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    if (!*s || strlen(s) >= n)
        luaL_error(L, "templates/%s.lua: %s of work is not a short string", f->name, field);
    memcpy(out, s, strlen(s) + 1);
    lua_pop(L, 1);
}

void fa_work_ask(lua_State *L, const fa_frame *fr, int shaped, const fa_family *f, const fa_problem *p, int layout, fa_work *w)
{
    const fa_arch *a = fr->arch;
    const struct {
        const char *name;
        double rate;
    } units[] = { { "mma16", a->mma16_flop }, { "mma_tf32", a->mma_tf32_flop }, { "wgmma16", a->wgmma16_flop },
                  { "ffma", a->ffma_flop } };
    char algorithm[12];
    lua_rawgeti(L, LUA_REGISTRYINDEX, f->work);
    lua_pushvalue(L, shaped);
    lua_pushvalue(L, fr->c);
    lua_pushvalue(L, fr->a);
    lua_pushvalue(L, layout);
    lua_call(L, 4, 1);
    if (!lua_istable(L, -1))
        luaL_error(L, "templates/%s.lua: work returned a %s; accepted: a table", f->name, luaL_typename(L, -1));
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
    w->l2_speed = number(L, f, "l2_speed", 1);
    w->regs = number(L, f, "regs", 0);
    text(L, f, "unit", "mma16", w->unit, sizeof w->unit);
    text(L, f, "algorithm", "flash2", algorithm, sizeof algorithm);
    w->naive = !strcmp(algorithm, "naive");
    if (!w->naive && strcmp(algorithm, "flash2"))
        luaL_error(L, "templates/%s.lua: algorithm of work is \"%s\"; accepted: flash2, naive", f->name, algorithm);
    if (w->rows < 1 || w->cols < 1 || w->rows > 1 << 20 || w->cols > 1 << 30 || w->efficiency <= 0 || w->l2_speed <= 0)
        luaL_error(L, "templates/%s.lua: rows, cols, efficiency or l2_speed of work is out of range", f->name);
    if (w->group != 0 && (w->group < 1 || fmod(w->rows, w->group) != 0))
        luaL_error(L, "templates/%s.lua: group of work is no part of its rows", f->name);
    w->rate = -1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(units[i].name, w->unit))
            w->rate = units[i].rate;
    if (w->rate < 0)
        luaL_error(L, "templates/%s.lua: unit of work is \"%s\"; accepted: mma16, mma_tf32, wgmma16, ffma", f->name, w->unit);
    lua_pop(L, 1);
}
