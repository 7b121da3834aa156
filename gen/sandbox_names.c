/* sandbox_names: which names scripts see, and those of C functions that are charged by what they are asked to do. */
#include "sandbox_names.h"
#include "sandbox.h"
#include "sandbox_formats.h"
#include "sandbox_order.h"
#include "sandbox_pairs.h"
#include "sandbox_pattern.h"
#include <lauxlib.h>
#include <lualib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a library call does that runs no Lua instruction, in such instructions, from its arguments. What works through a list takes some
 * for each value, what works through text one for some bytes. Memory has limits of its own. */
#define PER_VALUE 4.0
#define BYTES_PER_STEP 8.0
#define VALUES_MOST 1e6 /* that a call can take or return */

static double bytes_of(lua_State *L, int arg)
{
    return lua_type(L, arg) == LUA_TSTRING ? (double)lua_rawlen(L, arg) / BYTES_PER_STEP : 0;
}

static double length_of(lua_State *L, int arg)
{
    return lua_istable(L, arg) ? (double)lua_rawlen(L, arg) : 0;
}

static double work_of_arguments(lua_State *L)
{
    return 1 + PER_VALUE * lua_gettop(L);
}

static double work_of_text(lua_State *L)
{
    return 1 + bytes_of(L, 1);
}

/* tonumber: a step for each byte, which is multiplied and added. */
static double work_of_digits(lua_State *L)
{
    return 1 + BYTES_PER_STEP * bytes_of(L, 1);
}

/* byte(s, i, j): each byte becomes a value. */
static double work_of_bytes(lua_State *L)
{
    return lua_gettop(L) < 3 ? 1 : 1 + PER_VALUE * BYTES_PER_STEP * bytes_of(L, 1);
}

static double work_of_concat(lua_State *L)
{
    return 1 + PER_VALUE * fmax(length_of(L, 1), fmin(lua_tonumber(L, 4), VALUES_MOST)) + bytes_of(L, 2);
}

/* insert(t, v) and remove(t) move nothing; with a place, what is after it. */
static double moved(lua_State *L, double from)
{
    double n = length_of(L, 1);
    return 1 + PER_VALUE * fmax(0, n - fmax(0, fmin(from, n)));
}

static double work_of_insert(lua_State *L)
{
    return lua_gettop(L) < 3 ? 1 : moved(L, lua_tonumber(L, 2));
}

static double work_of_remove(lua_State *L)
{
    return lua_gettop(L) < 2 ? 1 : moved(L, lua_tonumber(L, 2));
}

/* unpack(t, i, j): gives out the values from one place to another. */
static double work_of_list(lua_State *L)
{
    double first = lua_isnoneornil(L, 2) ? 1 : lua_tonumber(L, 2), last = lua_isnoneornil(L, 3) ? length_of(L, 1) : lua_tonumber(L, 3);
    return 1 + PER_VALUE * fmax(0, fmin(last - first + 1, VALUES_MOST));
}

#define CHARGED(fn, work)                            \
    static int fn(lua_State *L)                      \
    {                                                \
        fa_sandbox_charge(L, work(L));               \
        lua_pushvalue(L, lua_upvalueindex(1));       \
        lua_insert(L, 1);                            \
        lua_call(L, lua_gettop(L) - 1, LUA_MULTRET); \
        return lua_gettop(L);                        \
    }
CHARGED(charged_arguments, work_of_arguments)
CHARGED(charged_text, work_of_text)
CHARGED(charged_digits, work_of_digits)
CHARGED(charged_bytes, work_of_bytes)
CHARGED(charged_concat, work_of_concat)
CHARGED(charged_insert, work_of_insert)
CHARGED(charged_remove, work_of_remove)
CHARGED(charged_list, work_of_list)

/* rep(s, n, separator): n copies of nothing are nothing, which Lua's own makes one by one. */
static int safe_rep(lua_State *L)
{
    size_t length, between = 0;
    luaL_checklstring(L, 1, &length);
    double n = (double)luaL_checkinteger(L, 2);
    luaL_optlstring(L, 3, "", &between);
    if (length + between == 0) {
        fa_sandbox_charge(L, 1);
        lua_pushliteral(L, "");
        return 1;
    }
    double bytes = n * (double)(length + between);
    fa_sandbox_charge(L, bytes > 0 && bytes <= FA_SANDBOX_BYTES ? 1 + n + bytes / BYTES_PER_STEP : 1); /* else empty, or an error at once */
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

/* Tables and functions print as their address, which differs from run to run. */
static int safe_tostring(lua_State *L)
{
    int t = lua_type(L, 1);
    if (t == LUA_TTABLE || t == LUA_TFUNCTION || t == LUA_TUSERDATA || t == LUA_TLIGHTUSERDATA || t == LUA_TTHREAD)
        return luaL_error(L, "a %s has no text", luaL_typename(L, 1));
    luaL_checkany(L, 1);
    luaL_tolstring(L, 1, NULL);
    return 1;
}

static int safe_format(lua_State *L)
{
    size_t n;
    const char *f = luaL_checklstring(L, 1, &n), *end = f + n;
    double work = work_of_arguments(L) + (double)n;
    while ((f = memchr(f, '%', (size_t)(end - f)))) { /* past zero bytes too, as format itself goes */
        f += 1 + strspn(f + 1, "-+ #0123456789.");
        if (*f == 'p')
            return luaL_error(L, "'%%p' prints an address, which differs from run to run");
        f += f < end;
    }
    for (int i = 2; i <= lua_gettop(L); i++)
        if (lua_type(L, i) != LUA_TNUMBER && lua_type(L, i) != LUA_TSTRING && lua_type(L, i) != LUA_TBOOLEAN)
            return luaL_error(L, "format: argument %d is a %s; accepted: number, string, boolean", i, luaL_typename(L, i));
        else
            work += bytes_of(L, i);
    fa_sandbox_charge(L, work);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

/* f32(x): a C literal that reads back as the nearest float. */
static int f32(lua_State *L)
{
    char buf[48];
    float x = (float)luaL_checknumber(L, 1);
    if (isnan(x) || isinf(x))
        return luaL_error(L, "f32: %f has no literal", (double)x);
    snprintf(buf, sizeof buf, "%.9g", (double)x);
    for (int digits = 1; digits < 9; digits++) {
        char shorter[48];
        snprintf(shorter, sizeof shorter, "%.*g", digits, (double)x);
        if (strtof(shorter, NULL) == x) {
            memcpy(buf, shorter, sizeof buf);
            break;
        }
    }
    if (strpbrk(buf, ".e"))
        lua_pushfstring(L, "%sf", buf);
    else
        lua_pushfstring(L, "%s.0f", buf);
    return 1;
}

static int fail(lua_State *L)
{
    return luaL_error(L, "%s", luaL_checkstring(L, 1));
}

static int undefined(lua_State *L)
{
    if (lua_type(L, 2) == LUA_TSTRING)
        return luaL_error(L, "undefined name '%s'", lua_tostring(L, 2));
    return luaL_error(L, "undefined name");
}

static int no_field(lua_State *L)
{
    const char *what = lua_tostring(L, lua_upvalueindex(1));
    lua_pushvalue(L, 2);
    const char *key = lua_tostring(L, -1);
    return luaL_error(L, "%s has no field '%s'", what, key ? key : luaL_typename(L, 2));
}

void fa_sandbox_strict(lua_State *L, int index, const char *what)
{
    index = lua_absindex(L, index);
    lua_createtable(L, 0, 1);
    lua_pushstring(L, what);
    lua_pushcclosure(L, no_field, 1);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, index);
}

/* What a script sees: library, name, and the function in the place of Lua's, which is its first upvalue and which it charges for. NULL
 * function: what takes the same time whatever it is given, or copies what counts as memory. NULL library: a plain name. */
typedef struct allowed {
    const char *library, *name;
    lua_CFunction wrap;
} allowed;

/* clang-format off */
static const allowed names[] = {
    { NULL, "assert", charged_arguments },                   { NULL, "error", NULL },
    { NULL, "ipairs", NULL },                                { NULL, "select", charged_arguments },
    { NULL, "tonumber", charged_digits },                    { NULL, "type", NULL },
    { NULL, "tostring", safe_tostring },
    { "string", "byte", charged_bytes },                     { "string", "char", charged_arguments },
    { "string", "find", fa_pattern_find },                   { "string", "format", safe_format },
    { "string", "gmatch", fa_pattern_gmatch },               { "string", "gsub", fa_pattern_gsub },
    { "string", "len", NULL },                               { "string", "lower", charged_text },
    { "string", "match", fa_pattern_match },                 { "string", "rep", safe_rep },
    { "string", "reverse", charged_text },                   { "string", "sub", NULL },
    { "string", "upper", charged_text },
    { "table", "concat", charged_concat },                   { "table", "insert", charged_insert },
    { "table", "remove", charged_remove },                   { "table", "sort", fa_order_sort },
    { "table", "unpack", charged_list },
    { "math", "abs", NULL },    { "math", "ceil", NULL },    { "math", "exp", NULL },     { "math", "floor", NULL },
    { "math", "fmod", NULL },   { "math", "huge", NULL },    { "math", "log", NULL },     { "math", "max", charged_arguments },
    { "math", "maxinteger", NULL },                          { "math", "min", charged_arguments },
    { "math", "mininteger", NULL },                          { "math", "modf", NULL },    { "math", "pi", NULL },
    { "math", "sqrt", NULL },   { "math", "tointeger", NULL },                            { "math", "type", NULL },
    { "math", "ult", NULL },
};
/* clang-format on */

/* Pushes the table of what is allowed in one library (NULL: the plain names). Lua's own are in the table at `from`. */
static void push_library(lua_State *L, int from, const char *library)
{
    lua_newtable(L);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const allowed *a = &names[i];
        if ((a->library == NULL) != (library == NULL) || (library && strcmp(a->library, library)))
            continue;
        lua_getfield(L, from, a->name);
        if (a->wrap)
            lua_pushcclosure(L, a->wrap, 1);
        lua_setfield(L, -2, a->name);
    }
}

static const char originals_key, envmeta_key;
static const char *const libraries[] = { "string", "table", "math" };

void fa_sandbox_env(lua_State *L)
{
    luaL_checkstack(L, 8, NULL);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &originals_key);
    int originals = lua_gettop(L);
    push_library(L, originals, NULL);
    int env = lua_gettop(L);
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        lua_getfield(L, originals, libraries[i]);
        push_library(L, lua_gettop(L), libraries[i]);
        if (!strcmp(libraries[i], "math")) {
            lua_getfield(L, -1, "min");
            lua_setfield(L, env, "min");
            lua_getfield(L, -1, "max");
            lua_setfield(L, env, "max");
        }
        lua_setfield(L, env, libraries[i]);
        lua_pop(L, 1);
    }
    lua_pushcfunction(L, fa_order_sorted);
    lua_setfield(L, env, "sorted");
    lua_pushcfunction(L, f32);
    lua_setfield(L, env, "f32");
    lua_pushcfunction(L, fail);
    lua_setfield(L, env, "fail");
    lua_pushcfunction(L, fa_sandbox_pairs_share);
    lua_setfield(L, env, "seen_share");
    lua_pushcfunction(L, fa_sandbox_pairs_keys);
    lua_setfield(L, env, "seen_keys");
    lua_pushcfunction(L, fa_sandbox_formats_codes);
    lua_setfield(L, env, "codes");
    lua_pushcfunction(L, fa_sandbox_formats_name);
    lua_setfield(L, env, "code_name");
    lua_rawgetp(L, LUA_REGISTRYINDEX, &envmeta_key);
    lua_setmetatable(L, env);
    lua_remove(L, originals);
}

/* Opens Lua's libraries where only push_library finds them. */
int fa_sandbox_names_open(lua_State *L)
{
    static const struct {
        const char *name;
        lua_CFunction open;
    } open[] = { { "_G", luaopen_base }, { "string", luaopen_string }, { "table", luaopen_table }, { "math", luaopen_math } };
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        luaL_requiref(L, open[i].name, open[i].open, 1);
        lua_pop(L, 1);
    }
    lua_pushglobaltable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &originals_key);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, undefined);
    lua_setfield(L, -2, "__index");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &envmeta_key);
    /* s:upper() and the like find a table that no script can reach, so none can change it. */
    lua_pushliteral(L, "");
    lua_getmetatable(L, -1);
    lua_getglobal(L, "string");
    push_library(L, lua_gettop(L), "string");
    lua_setfield(L, -3, "__index");
    return 0;
}
