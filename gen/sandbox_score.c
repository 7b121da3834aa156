/* sandbox_score: what kernels print of a program is found once for each state, and kept by the program's identity. */
#include "sandbox_score.h"
#include "sandbox.h"
#include "score/known.h"
#include "score/lines.h"
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

typedef enum what { HELPERS, MEMBERS, FILL, PAIR, PAIR_AHEAD, AHEAD_ROW, DISTANCE, EXPONENT, SINK, WHATS } what;
static const char *const words[WHATS] = { "helpers", "members", "fill", "pair", "pair_ahead", "ahead_row", "distance", "exponent", "sink" };

/* n: which of what is read ahead. */
static void write(fa_text *out, const fa_score_kernel *k, what w, bool packed, int n)
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
    case PAIR_AHEAD:
        fa_score_kernel_pair_ahead(out, k, packed);
        break;
    case AHEAD_ROW:
        fa_score_kernel_ahead_row(out, k, packed, n);
        break;
    case DISTANCE:
        fa_score_kernel_distance(out, k);
        break;
    case EXPONENT:
        fa_score_kernel_exponent(out, k, packed);
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
    int n = w == AHEAD_ROW ? (int)luaL_checkinteger(L, 2) - 1 : 0;
    if (w == AHEAD_ROW && (n < 0 || n >= k->aheads))
        return luaL_error(L, "ahead_row: %d of %d lookups that are read ahead", n + 1, k->aheads);
    if (w == DISTANCE && k->of_distance < 0)
        return luaL_error(L, "the score program has no number of key - query");
    if ((w != HELPERS && w != SINK && k->pair < 0) || (w == SINK && k->sink < 0))
        return luaL_error(L, "the score program has no function %s", w == SINK ? "sink" : "score");
    fa_text text = { 0 };
    write(&text, k, w, lua_toboolean(L, 1), n);
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
    for (lua_Integer at = 1; *s; at++) {
        size_t length = strcspn(s, "\n");
        lua_pushlstring(L, s, length);
        lua_rawseti(L, -2, at);
        s += length + (s[length] == '\n');
    }
    return 1;
}

/* { { node =, operand =, rank =, bf16 =, wide =, diagonal =, by_row =, row_index = } } */
static void push_ahead(lua_State *L, const fa_score_kernel *k)
{
    lua_newtable(L);
    for (int i = 0; i < k->aheads; i++) {
        int operand = k->ir.node[k->ahead[i]].operand;
        lua_createtable(L, 0, 8);
        lua_pushinteger(L, k->ahead[i]);
        lua_setfield(L, -2, "node");
        lua_pushinteger(L, operand);
        lua_setfield(L, -2, "operand");
        lua_pushboolean(L, k->ir.operand[operand].element == FA_SCORE_ELEMENT_BF16);
        lua_setfield(L, -2, "bf16");
        lua_pushboolean(L, k->ir.operand[operand].element == FA_SCORE_ELEMENT_F32);
        lua_setfield(L, -2, "wide");
        lua_pushboolean(L, k->diagonal[i]);
        lua_setfield(L, -2, "diagonal");
        lua_pushboolean(L, k->by_row[i]);
        lua_setfield(L, -2, "by_row");
        if (k->row_index[i] >= 0) {
            lua_pushinteger(L, k->row_index[i]);
            lua_setfield(L, -2, "row_index");
        }
        lua_pushinteger(L, k->ir.operand[operand].rank);
        lua_setfield(L, -2, "rank");
        lua_rawseti(L, -2, i + 1);
    }
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
    lua_createtable(L, 0, WHATS + 16);
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
    push_ahead(L, k);
    lua_setfield(L, -2, "arrays");
    if (k->of_distance >= 0) {
        lua_pushinteger(L, k->of_distance);
        lua_setfield(L, -2, "of_distance");
    }
    lua_pushboolean(L, k->by_key_beside);
    lua_setfield(L, -2, "cuts_beside");
    lua_pushboolean(L, k->slopes);
    lua_setfield(L, -2, "slopes");
    lua_pushboolean(L, k->by_key);
    lua_setfield(L, -2, "cuts");
    lua_pushboolean(L, k->of_off);
    lua_setfield(L, -2, "off");
    lua_pushnumber(L, k->issue);
    lua_setfield(L, -2, "issue");
    lua_pushnumber(L, k->issue_ahead);
    lua_setfield(L, -2, "issue_ahead");
    lua_pushnumber(L, k->issue_staged);
    lua_setfield(L, -2, "issue_staged");
    lua_pushnumber(L, k->exps_staged);
    lua_setfield(L, -2, "exps_staged");
    lua_pushnumber(L, k->exps);
    lua_setfield(L, -2, "exps");
    lua_pushinteger(L, k->regs);
    lua_setfield(L, -2, "regs");
    lua_pushinteger(L, k->regs_ahead);
    lua_setfield(L, -2, "regs_ahead");
    lua_pushinteger(L, k->regs_staged);
    lua_setfield(L, -2, "regs_staged");
}
