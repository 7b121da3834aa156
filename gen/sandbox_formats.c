/* sandbox_formats: rows of the table of formats as scripts have them. */
#include "sandbox_formats.h"
#include "format.h"
#include <lauxlib.h>
#include <string.h>

int fa_sandbox_formats_codes(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    lua_Integer cc = luaL_checkinteger(L, 2);
    const fa_format *f;
    for (size_t i = 0; (f = fa_format_row(i)) && strcmp(f->name, name);)
        i++;
    if (!f)
        return lua_pushnil(L), 1;
    const fa_unpack *unpack = fa_format_unpack(f, (int32_t)cc);
    const struct {
        const char *name;
        int32_t value;
    } numbers[] = {
        { "bits", f->bits },
        { "block", f->block },
        { "block_bytes", f->block_bytes },
        { "codes_at", f->codes_at },
        { "scale_at", f->scale_at },
        { "zero", f->zero },
        { "power", unpack->power },
        { "unpack_cc", unpack->cc },
        { "owed", unpack->power - (f->scale_dtype == FA_E4M3 ? FA_E4M3_SCALE_POWER : 0) },
        { "exponent", f->exponent },
        { "fraction", f->fraction },
        { "most", (int32_t)f->most },
        { "least_at", f->least_at },
        { "high_at", f->high_at },
        { "scales", f->scales },
        { "shared", fa_format_shared(f) },
    };
    lua_createtable(L, 0, 24);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        lua_pushinteger(L, numbers[i].value);
        lua_setfield(L, -2, numbers[i].name);
    }
    lua_pushstring(L, f->name);
    lua_setfield(L, -2, "name");
    lua_pushnumber(L, unpack->cost);
    lua_setfield(L, -2, "cost");
    lua_pushboolean(L, f->scale_dtype != 0);
    lua_setfield(L, -2, "has_scale");
    lua_pushboolean(L, f->order == FA_ORDER_HALVES);
    lua_setfield(L, -2, "halves");
    static const char *const kinds[] = { "floats", "signed", "unsigned", "table" };
    lua_pushstring(L, kinds[f->kind]);
    lua_setfield(L, -2, "kind");
    lua_pushboolean(L, f->scale_dtype == FA_E4M3);
    lua_setfield(L, -2, "scale_is_e4m3");
    lua_createtable(L, 16, 0);
    for (int i = 0; i < 16; i++) {
        lua_pushinteger(L, f->table[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "table");
    return 1;
}

int fa_sandbox_formats_name(lua_State *L)
{
    lua_Integer i = luaL_checkinteger(L, 1);
    const fa_format *f = i > 0 ? fa_format_row((size_t)i - 1) : NULL;
    if (f)
        lua_pushstring(L, f->name);
    else
        lua_pushnil(L);
    return 1;
}
