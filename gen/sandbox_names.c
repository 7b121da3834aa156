/* sandbox_names: see the header. What runs no Lua instruction is charged by what it is asked to do. */
#include "sandbox_names.h"
#include "sandbox.h"
#include <lauxlib.h>
#include <lualib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Work of a library call that runs no Lua instruction, from its arguments. */
static double work_of_table(lua_State *L)
{
    return lua_istable(L, 1) ? 1 + 16.0 * (double)lua_rawlen(L, 1) : 1;
}

/* Of sorting n values: n log2 n comparisons, some steps each. */
static double work_of_order(double n)
{
    return 1 + 4 * n * log2(n + 1);
}

static double work_of_sort(lua_State *L)
{
    return lua_istable(L, 1) ? work_of_order((double)lua_rawlen(L, 1)) : 1;
}

/* Of what gives out the values from one place to another: table.unpack. */
static double work_of_list(lua_State *L)
{
    double n = lua_istable(L, 1) ? (double)lua_rawlen(L, 1) : 0, asked = lua_tonumber(L, 3) - lua_tonumber(L, 2);
    return 1 + 16 * fmax(n, fmin(asked, 1e6)); /* no call returns more */
}

static double work_of_bytes(lua_State *L)
{
    return lua_gettop(L) < 3 || lua_type(L, 1) != LUA_TSTRING ? 1 : 1 + (double)lua_rawlen(L, 1);
}

/* A backtracking match takes at most about subject^(repetitions + 1) tries, each of which may read a whole set, [...], or compare
 * what was captured. */
static double work_of_pattern(lua_State *L)
{
    size_t n = 0, m = 0, k = 1;
    const char *s = lua_tolstring(L, 1, &n), *p = lua_tolstring(L, 2, &m);
    if (!s || !p)
        return 1;
    for (size_t i = 0; i < m; i++)
        k += strchr("*+-?", p[i]) != NULL || (p[i] == '%' && i + 1 < m && p[i + 1] && strchr("bf123456789", p[i + 1]));
    return 1 + pow((double)n + 1, (double)k) * ((double)m + 2) / 16 + (double)n;
}

static double work_of_string(lua_State *L)
{
    return lua_type(L, 1) == LUA_TSTRING ? 1 + (double)lua_rawlen(L, 1) / 8 : 1;
}

#define CHARGED(fn, work)                                   \
    static int fn(lua_State *L)                             \
    {                                                       \
        fa_sandbox_charge(L, work(L));                      \
        lua_pushvalue(L, lua_upvalueindex(1));              \
        lua_insert(L, 1);                                   \
        lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);        \
        return lua_gettop(L);                               \
    }
CHARGED(charged_table, work_of_table)
CHARGED(charged_sort, work_of_sort)
CHARGED(charged_list, work_of_list)
CHARGED(charged_bytes, work_of_bytes)
CHARGED(charged_pattern, work_of_pattern)
CHARGED(charged_string, work_of_string)

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
    while ((f = memchr(f, '%', (size_t)(end - f)))) { /* past zero bytes too, as format itself goes */
        f += 1 + strspn(f + 1, "-+ #0123456789.");
        if (*f == 'p')
            return luaL_error(L, "'%%p' prints an address, which differs from run to run");
        f += f < end;
    }
    for (int i = 2; i <= lua_gettop(L); i++)
        if (lua_type(L, i) != LUA_TNUMBER && lua_type(L, i) != LUA_TSTRING && lua_type(L, i) != LUA_TBOOLEAN)
            return luaL_error(L, "format: argument %d is a %s; accepted: number, string, boolean", i, luaL_typename(L, i));
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

/* sorted(t): the keys of t as an array, numbers before strings, each ascending. */
static int key_less(lua_State *L)
{
    int a = lua_type(L, 1), b = lua_type(L, 2);
    lua_pushboolean(L, a == b ? lua_compare(L, 1, 2, LUA_OPLT) : a == LUA_TNUMBER);
    return 1;
}

static int sorted(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1)); /* table.sort */
    lua_newtable(L);
    lua_Integer n = 0;
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TNUMBER && lua_type(L, -2) != LUA_TSTRING)
            return luaL_error(L, "sorted: a key is a %s; accepted: numbers and strings", luaL_typename(L, -2));
        lua_pushvalue(L, -2);
        lua_rawseti(L, 3, ++n);
    }
    fa_sandbox_charge(L, work_of_order((double)n));
    lua_pushvalue(L, 3);
    lua_insert(L, 2);
    lua_pushcfunction(L, key_less);
    lua_call(L, 2, 0);
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

/* What a script sees: library, name, and the function that charges for it. NULL library: a plain name. */
typedef struct allowed {
    const char *library, *name;
    lua_CFunction wrap;
} allowed;

static const allowed names[] = {
    { NULL, "assert", NULL },   { NULL, "error", NULL },     { NULL, "ipairs", NULL },    { NULL, "select", NULL },
    { NULL, "tonumber", charged_string }, { NULL, "type", NULL },      { NULL, "tostring", safe_tostring },
    { "string", "byte", charged_bytes }, { "string", "char", NULL },  { "string", "find", charged_pattern },
    { "string", "format", safe_format },                     { "string", "gmatch", charged_pattern },
    { "string", "gsub", charged_pattern },                   { "string", "len", NULL },
    { "string", "lower", charged_string },                   { "string", "match", charged_pattern },
    { "string", "rep", NULL },                               { "string", "reverse", charged_string },
    { "string", "sub", NULL },                               { "string", "upper", charged_string },
    { "table", "concat", charged_table },                    { "table", "insert", charged_table },
    { "table", "remove", charged_table },                    { "table", "sort", charged_sort },
    { "table", "unpack", charged_list },
    { "math", "abs", NULL },    { "math", "ceil", NULL },    { "math", "exp", NULL },     { "math", "floor", NULL },
    { "math", "fmod", NULL },   { "math", "huge", NULL },    { "math", "log", NULL },     { "math", "max", NULL },
    { "math", "maxinteger", NULL },                          { "math", "min", NULL },     { "math", "mininteger", NULL },
    { "math", "modf", NULL },   { "math", "pi", NULL },      { "math", "sqrt", NULL },    { "math", "tointeger", NULL },
    { "math", "type", NULL },   { "math", "ult", NULL },
};

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
    lua_getfield(L, originals, "table");
    lua_getfield(L, -1, "sort");
    lua_pushcclosure(L, sorted, 1);
    lua_setfield(L, env, "sorted");
    lua_pop(L, 1);
    lua_pushcfunction(L, f32);
    lua_setfield(L, env, "f32");
    lua_pushcfunction(L, fail);
    lua_setfield(L, env, "fail");
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
