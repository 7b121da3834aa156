/* sandbox_score: what kernels print of a program is found once for each state, and kept by the program's identity. */
#include "sandbox_score.h"
#include "sandbox.h"
#include "score/kernel.h"
#include "score/known.h"
#include <lauxlib.h>
#include <string.h>

/* The address is the key of the table of kernels in Lua's registry. */
static const char kernels;

#define KERNELS_MOST 16 /* that a state keeps */

/* Pushes the table: a new one where it is full. */
static void push_kernels(lua_State *L)
{
    lua_Integer n = KERNELS_MOST;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &kernels) == LUA_TTABLE) {
        lua_rawgeti(L, -1, 1);
        n = lua_tointeger(L, -1);
        lua_pop(L, 1);
    }
    if (n < KERNELS_MOST)
        return;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kernels);
}

/* Pushes the kernel of the program, a userdata. */
static const fa_score_kernel *push_kernel(lua_State *L, const fa_program *program)
{
    push_kernels(L);
    lua_pushlstring(L, (const char *)&program->id, sizeof program->id);
    if (lua_rawget(L, -2) != LUA_TUSERDATA) {
        lua_pop(L, 1);
        fa_score_kernel *k = lua_newuserdatauv(L, sizeof *k, 0);
        if (!fa_score_kernel_of(k, &program->ir))
            fa_sandbox_no_memory(L, "a score program");
        lua_pushlstring(L, (const char *)&program->id, sizeof program->id);
        lua_pushvalue(L, -2);
        lua_rawset(L, -4);
        lua_rawgeti(L, -2, 1);
        lua_pushinteger(L, lua_tointeger(L, -1) + 1);
        lua_rawseti(L, -4, 1);
        lua_pop(L, 1);
    }
    lua_remove(L, -2);
    return lua_touserdata(L, -1);
}

typedef enum what { HELPERS, MEMBERS, FILL, PAIR, SINK, WHATS } what;
static const char *const words[WHATS] = { "helpers", "members", "fill", "pair", "sink" };

static void write(fa_text *out, const fa_score_kernel *k, what w, bool packed)
{
    switch (w) {
    case HELPERS:
        fa_score_print_helpers(out, &k->ir, "Params");
        break;
    case MEMBERS:
        fa_score_kernel_members(out, k, packed);
        break;
    case FILL:
        fa_score_kernel_fill(out, k, packed);
        break;
    case PAIR:
        fa_score_kernel_pair(out, k, packed);
        break;
    default:
        fa_score_kernel_sink(out, k);
    }
}

/* The lines as an array. */
static int lines(lua_State *L)
{
    const fa_score_kernel *k = lua_touserdata(L, lua_upvalueindex(1));
    what w = (what)lua_tointeger(L, lua_upvalueindex(2));
    if ((w == PAIR && k->pair < 0) || (w == SINK && k->sink < 0))
        return luaL_error(L, "the score program has no function %s", w == PAIR ? "score" : "sink");
    fa_text text = { 0 };
    write(&text, k, w, lua_toboolean(L, 1));
    if (text.oom) {
        fa_text_free(&text);
        fa_sandbox_no_memory(L, "a score program");
    }
    const char *s = fa_text_cstr(&text);
    lua_pushlstring(L, s, text.n); /* what follows may raise an error */
    fa_text_free(&text);
    s = lua_tostring(L, -1);
    fa_sandbox_charge(L, (double)lua_rawlen(L, -1));
    lua_newtable(L);
    for (lua_Integer n = 1; *s; n++) {
        size_t length = strcspn(s, "\n");
        lua_pushlstring(L, s, length);
        lua_rawseti(L, -2, n);
        s += length + (s[length] == '\n');
    }
    return 1;
}

void fa_sandbox_score_push(lua_State *L, const fa_problem *p)
{
    const fa_program *program = fa_score_known(p);
    luaL_checkstack(L, 8, NULL);
    if (!program) {
        lua_pushboolean(L, false);
        return;
    }
    const fa_score_kernel *k = push_kernel(L, program);
    fa_text unit = { 0 };
    lua_createtable(L, 0, WHATS + 6);
    for (int w = 0; w < WHATS; w++) {
        lua_pushvalue(L, -2);
        lua_pushinteger(L, w);
        lua_pushcclosure(L, lines, 2);
        lua_setfield(L, -2, words[w]);
    }
    lua_remove(L, -2);
    fa_score_kernel_unit(&unit, k);
    if (unit.n > 0) {
        lua_pushlstring(L, unit.s, unit.n);
        lua_setfield(L, -2, "unit");
    }
    fa_text_free(&unit);
    lua_pushboolean(L, k->pair >= 0);
    lua_setfield(L, -2, "has_score");
    lua_pushboolean(L, k->sink >= 0);
    lua_setfield(L, -2, "has_sink");
    lua_pushboolean(L, k->by_key);
    lua_setfield(L, -2, "cuts");
    lua_pushboolean(L, k->of_off);
    lua_setfield(L, -2, "off");
    lua_pushnumber(L, k->issue);
    lua_setfield(L, -2, "issue");
    lua_pushnumber(L, k->exps);
    lua_setfield(L, -2, "exps");
}
