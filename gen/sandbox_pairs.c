/* sandbox_pairs: a problem as scripts have it, read back. */
#include "sandbox_pairs.h"
#include "pairs.h"
#include "problem.h"
#include <lauxlib.h>

static int32_t number_of(lua_State *L, const char *name)
{
    int ok;
    lua_getfield(L, 1, name);
    lua_Integer v = lua_tointegerx(L, -1, &ok);
    if (!ok || v < 0 || v > FA_MAX_LENGTH)
        luaL_error(L, "%s of the problem is not a number from 0 to %d", name, FA_MAX_LENGTH);
    lua_pop(L, 1);
    return (int32_t)v;
}

static fa_pairs pairs_of(lua_State *L)
{
    int mask = FA_MASK_NONE;
    luaL_checktype(L, 1, LUA_TTABLE);
    if (lua_getfield(L, 1, "mask") != LUA_TSTRING || !fa_mask_parse(&mask, lua_tostring(L, -1)))
        luaL_error(L, "mask of the problem is no mask; accepted: none, causal, window");
    lua_pop(L, 1);
    fa_problem p = { .mask = mask, .sq = number_of(L, "sq"), .sk = number_of(L, "sk"), .window = number_of(L, "window") };
    return (fa_pairs){ p.sq, p.sk, fa_band_of_problem(&p) };
}

int fa_sandbox_pairs_share(lua_State *L)
{
    fa_pairs p = pairs_of(L);
    lua_pushnumber(L, fa_pairs_share(&p));
    return 1;
}

int fa_sandbox_pairs_keys(lua_State *L)
{
    fa_pairs p = pairs_of(L);
    lua_Integer rows = luaL_checkinteger(L, 2);
    if (rows < 0 || rows > (lua_Integer)1 << 46) /* the longest sequence of the largest group */
        return luaL_error(L, "seen_keys: rows is %I; accepted: 0 to 2^46", (LUAI_UACINT)rows);
    lua_pushinteger(L, fa_pairs_keys_most(&p, rows));
    return 1;
}
