/* steps: the kernels that a family's steps() returns, read and checked. */
#include "family.h"
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#define BOX_MAX 256   /* elements of each dimension of a TMA box */
#define TMA_UNIT 16   /* bytes: rows of a box are a multiple of it */
#define PER_SM_MAX 32 /* blocks that an SM of any chip holds */

static const char *const tensors[] = { "q", "k", "v", "o" }; /* indexed by fa_map_tensor */

/* Bytes of an element of the tensor, from the problem's table. */
static int32_t element(lua_State *L, const fa_frame *fr, const fa_family *f, int32_t tensor)
{
    lua_pushvalue(L, fr->p);
    int32_t bytes = fa_family_integer(L, f, "the problem", tensor == FA_MAP_O ? "o_bytes" : "bytes", -1);
    lua_pop(L, 1);
    return bytes;
}

/* The map at the top of the stack, map number i of the step. */
static void read_map(lua_State *L, const fa_frame *fr, const fa_family *f, const fa_step *s, int i, fa_map *m)
{
    char of[64];
    snprintf(of, sizeof of, "map %d of step %s", i, s->entry);
    if (!lua_istable(L, -1))
        luaL_error(L, "templates/%s.lua: %s is a %s; accepted: { tensor =, cols =, rows =, swizzle = }", f->name, of,
                   luaL_typename(L, -1));
    const char *name = lua_getfield(L, -1, "tensor") == LUA_TSTRING ? lua_tostring(L, -1) : luaL_typename(L, -1);
    m->tensor = 0;
    while (m->tensor <= FA_MAP_O && strcmp(tensors[m->tensor], name))
        m->tensor++;
    if (m->tensor > FA_MAP_O)
        luaL_error(L, "templates/%s.lua: tensor of %s is \"%s\"; accepted: q, k, v, o", f->name, of, name);
    lua_pop(L, 1);
    m->cols = fa_family_integer(L, f, of, "cols", -1);
    m->rows = fa_family_integer(L, f, of, "rows", -1);
    m->swizzle = fa_family_integer(L, f, of, "swizzle", 0);
    int32_t bytes = element(L, fr, f, m->tensor);
    if (m->tensor == FA_MAP_O && bytes != element(L, fr, f, FA_MAP_Q))
        luaL_error(L, "templates/%s.lua: %s is of o, which is fp32 here; accepted: a map of o where it has the type of q", f->name, of);
    if (m->rows < 1 || m->rows > BOX_MAX)
        luaL_error(L, "templates/%s.lua: rows of %s is %d; accepted: 1 to %d", f->name, of, m->rows, BOX_MAX);
    if (m->cols < 1 || m->cols > BOX_MAX || m->cols * bytes % TMA_UNIT)
        luaL_error(L, "templates/%s.lua: cols of %s is %d; accepted: a multiple of %d up to %d", f->name, of, m->cols,
                   TMA_UNIT / bytes, BOX_MAX);
    if (m->swizzle != 0 && m->swizzle != 32 && m->swizzle != 64 && m->swizzle != 128)
        luaL_error(L, "templates/%s.lua: swizzle of %s is %d; accepted: 0, 32, 64, 128", f->name, of, m->swizzle);
    if (m->swizzle && m->cols * bytes > m->swizzle)
        luaL_error(L, "templates/%s.lua: cols of %s is %d, %d bytes; accepted with a swizzle of %d: at most as many bytes",
                   f->name, of, m->cols, m->cols * bytes, m->swizzle);
}

/* The list `maps` of the step at the top of the stack. */
static void read_maps(lua_State *L, const fa_frame *fr, const fa_family *f, fa_step *s)
{
    int type = lua_getfield(L, -1, "maps");
    lua_Unsigned n = type == LUA_TTABLE ? lua_rawlen(L, -1) : 0;
    if ((type != LUA_TTABLE && type != LUA_TNIL) || n > FA_STEP_MAPS)
        luaL_error(L, "templates/%s.lua: maps of step %s is not an array of at most %d maps", f->name, s->entry, FA_STEP_MAPS);
    if (n && fr->arch->cc < 90)
        luaL_error(L, "templates/%s.lua: step %s has maps; accepted on %s, which has no TMA: none", f->name, s->entry,
                   fr->arch->name);
    for (s->n_maps = 0; s->n_maps < (int32_t)n; s->n_maps++) {
        lua_rawgeti(L, -1, s->n_maps + 1);
        read_map(L, fr, f, s, s->n_maps + 1, &s->map[s->n_maps]);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static void read_step(lua_State *L, const fa_frame *fr, const fa_family *f, const fa_point *defaults, fa_step *s)
{
    if (!lua_istable(L, -1) || lua_getfield(L, -1, "entry") != LUA_TSTRING)
        luaL_error(L, "templates/%s.lua: a step is not a table with an entry", f->name);
    size_t n;
    const char *entry = lua_tolstring(L, -1, &n);
    if (!n || n >= sizeof s->entry)
        luaL_error(L, "templates/%s.lua: entry \"%s\" is not a name of 1 to %d letters", f->name, entry, (int)sizeof s->entry - 1);
    memcpy(s->entry, entry, n + 1);
    lua_pop(L, 1);
    s->threads = fa_family_integer(L, f, "a step", "threads", defaults->threads);
    s->smem = fa_family_integer(L, f, "a step", "smem", defaults->smem);
    s->br = fa_family_integer(L, f, "a step", "br", 0);
    s->bc = fa_family_integer(L, f, "a step", "bc", 0);
    s->pack = fa_family_integer(L, f, "a step", "pack", 0) != 0;
    s->per_sm = fa_family_integer(L, f, "a step", "per_sm", 0);
    s->cluster = fa_family_integer(L, f, "a step", "cluster", 1);
    s->counter = fa_family_integer(L, f, "a step", "counter", 0);
    s->early = fa_family_integer(L, f, "a step", "early", 0);
    if (s->threads < 1 || s->threads > FA_THREADS_MAX)
        luaL_error(L, "templates/%s.lua: step %s has %d threads; accepted: 1 to %d", f->name, s->entry, s->threads, FA_THREADS_MAX);
    if (s->per_sm > PER_SM_MAX)
        luaL_error(L, "templates/%s.lua: per_sm of step %s is %d; accepted: 0 (a block per tile) to %d", f->name, s->entry, s->per_sm,
                   PER_SM_MAX);
    if (s->cluster < 1 || s->cluster > FA_CLUSTER_MAX)
        luaL_error(L, "templates/%s.lua: cluster of step %s is %d; accepted: 1 (none) to %d", f->name, s->entry, s->cluster,
                   FA_CLUSTER_MAX);
    if (s->cluster > 1 && fr->arch->cc < 90)
        luaL_error(L, "templates/%s.lua: cluster of step %s is %d; accepted on %s, which has none: 1", f->name, s->entry, s->cluster,
                   fr->arch->name);
    if (s->counter > 1)
        luaL_error(L, "templates/%s.lua: counter of step %s is %d; accepted: 0, 1", f->name, s->entry, s->counter);
    if (s->early > (fr->arch->cc >= 90))
        luaL_error(L, "templates/%s.lua: early of step %s is %d; accepted on %s: %s", f->name, s->entry, s->early, fr->arch->name,
                   fr->arch->cc >= 90 ? "0, 1" : "0, a kernel cannot wait there");
    read_maps(L, fr, f, s);
}

void fa_family_steps(lua_State *L, const fa_frame *fr, const fa_family *f, int layout, fa_source *out)
{
    fa_point defaults = { .fits = true };
    layout = lua_absindex(L, layout);
    lua_pushvalue(L, layout);
    defaults.threads = fa_family_integer(L, f, "layout", "threads", 0);
    defaults.smem = fa_family_integer(L, f, "layout", "bytes", 0);
    out->min_regs = fa_family_integer(L, f, "layout", "regs", 0);
    lua_pop(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, f->steps);
    lua_pushvalue(L, fr->p);
    lua_pushvalue(L, fr->c);
    lua_pushvalue(L, fr->a);
    lua_pushvalue(L, layout);
    lua_call(L, 4, 1);
    lua_Unsigned n = lua_istable(L, -1) ? lua_rawlen(L, -1) : 0;
    if (n < 1 || n > FA_SOURCE_STEPS)
        luaL_error(L, "templates/%s.lua: steps returned no array of 1 to %d steps", f->name, FA_SOURCE_STEPS);
    out->steps = (int32_t)n;
    for (int i = 0; i < out->steps; i++) {
        lua_rawgeti(L, -1, i + 1);
        read_step(L, fr, f, &defaults, &out->step[i]);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    out->score_bytes = f->score_bytes;
    if (f->score == LUA_NOREF)
        return;
    lua_rawgeti(L, LUA_REGISTRYINDEX, f->score);
    lua_pushvalue(L, fr->p);
    lua_pushvalue(L, fr->c);
    lua_pushvalue(L, fr->a);
    lua_call(L, 3, 1);
    int ok;
    lua_Integer v = lua_tointegerx(L, -1, &ok);
    if (!ok || v < 0 || v > 64)
        luaL_error(L, "templates/%s.lua: score_bytes returned no integer from 0 to 64", f->name);
    out->score_bytes = (int32_t)v;
    lua_pop(L, 1);
}
