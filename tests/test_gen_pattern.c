/* The sandbox's find, match, gmatch and gsub against Lua's own: the same results and the same errors, for many random patterns; its
 * sort, which is stable; and that a listing whose limits are used up by one family says nothing of another. */
#include "gen/sandbox.h"
#include "gen/sandbox_names.h"
#include "gen/sandbox_order.h"
#include "gen/sandbox_pattern.h"
#include "gen/space.h"
#include "test_gen_toy.h"
#include "verify/operands/random.h"
#include <lauxlib.h>

#ifdef __SANITIZE_THREAD__
#define ROUNDS 20 /* each error that Lua raises by longjmp() leaves frames on the sanitizer's own stack */
#else
#define ROUNDS 400 /* runs of the sandbox, each of CASES */
#endif
#define CASES 50

static const char *const pieces[] = {
    "a",  "b",  ".",  "%a", "%d", "%S", "%w", "[ab]", "[^a]", "[a-c]", "[%d_]", "[]a]", "[^]]",  "[a-",
    "%",  "(",  ")",  "()", "*",  "+",  "-",  "?",    "^",    "$",     "%b()",  "%b",   "%f[a]", "%f",
    "%1", "%2", "%0", "a*", ".-", "b+", "a?", "%%",   "%.",   "[",     "]",     "(a*)", "(.-)",  "([ab])",
};
static const char *const texts[] = { "a", "b", "c", "ab", " ", "1", "_", "(", ")", "()", "]", "%", "^", "$", ".", "aa" };
static const char *const replacements[] = { "", "x", "%0", "%1", "%2", "%%", "<%0%0>", "%", "%x", "%1%0y" };
#define ONE_OF(r, list) list[fa_random_below(r, (int32_t)(sizeof list / sizeof *list))]

static void build(fa_random *r, char out[128], const char *const *list, int n, int most)
{
    out[0] = 0;
    for (int i = fa_random_below(r, most + 1); i > 0; i--)
        strcat(out, list[fa_random_below(r, n)]);
}

/* Calls the function at the top with n arguments below it, and packs what comes of it into a table: its status, then values. */
static void outcome(lua_State *L, int n)
{
    int base = lua_gettop(L) - n - 1;
    lua_insert(L, base + 1);
    int status = lua_pcall(L, n, LUA_MULTRET, 0), values = lua_gettop(L) - base;
    lua_createtable(L, values + 1, 0);
    lua_insert(L, base + 1);
    for (int i = values; i >= 1; i--)
        lua_rawseti(L, base + 1, i + 1);
    lua_pushinteger(L, status);
    lua_rawseti(L, base + 1, 1);
}

static void same(lua_State *L, const char *what, const char *text, const char *pattern)
{
    lua_Integer n = (lua_Integer)lua_rawlen(L, -1), k = (lua_Integer)lua_rawlen(L, -2);
    cr_expect_eq(n, k, "%s of \"%s\" with \"%s\": %d values, not %d", what, text, pattern, (int)n - 1, (int)k - 1);
    for (lua_Integer i = 1; i <= n && i <= k; i++) {
        lua_rawgeti(L, -2, i);
        lua_rawgeti(L, -2, i);
        const char *a = luaL_tolstring(L, -2, NULL), *b = luaL_tolstring(L, -2, NULL);
        cr_expect(lua_compare(L, -4, -3, LUA_OPEQ), "%s of \"%s\" with \"%s\": value %d is \"%s\", not \"%s\"", what, text, pattern,
                  (int)i - 1, b, a);
        lua_pop(L, 4);
    }
    lua_pop(L, 2);
}

/* All matches of an iterator as one list: the function at the top makes it of the n arguments below. */
static int collect(lua_State *L)
{
    int n = lua_gettop(L) - 1;
    lua_insert(L, 1);
    lua_call(L, n, 1);
    for (int rounds = 0; rounds < 40; rounds++) {
        int before = lua_gettop(L);
        lua_pushvalue(L, 1);
        lua_call(L, 0, LUA_MULTRET);
        if (lua_gettop(L) == before || lua_isnil(L, before + 1))
            return before - 1;
    }
    return lua_gettop(L) - 1;
}

static int compare(lua_State *L)
{
    static const struct {
        const char *name;
        lua_CFunction ours;
    } functions[] = {
        { "find", fa_pattern_find },
        { "match", fa_pattern_match },
        { "gmatch", fa_pattern_gmatch },
        { "gsub", fa_pattern_gsub },
    };
    fa_random *r = lua_touserdata(L, 1);
    for (int c = 0; c < CASES; c++) {
        char text[128], pattern[128];
        build(r, text, texts, sizeof texts / sizeof *texts, 8);
        build(r, pattern, pieces, sizeof pieces / sizeof *pieces, 5);
        const char *replacement = ONE_OF(r, replacements);
        int place = fa_random_below(r, 12) - 5, kind = fa_random_below(r, 3);
        for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
            bool gsub = f == 3;
            for (int ours = 0; ours < 2; ours++) {
                lua_pushstring(L, text);
                lua_pushstring(L, pattern);
                if (!gsub || kind)
                    lua_pushinteger(L, gsub ? 0 : place);
                if (gsub) {
                    lua_settop(L, lua_gettop(L) - (kind != 0));
                    if (kind == 2)
                        lua_newtable(L), lua_pushliteral(L, "T"), lua_setfield(L, -2, "a"), lua_pushboolean(L, 1), lua_setfield(L, -2, "b");
                    else
                        lua_pushstring(L, replacement);
                }
                int n = 3;
                lua_getglobal(L, "string");
                lua_getfield(L, -1, functions[f].name);
                lua_remove(L, -2);
                if (ours)
                    lua_pop(L, 1), lua_pushcfunction(L, functions[f].ours);
                if (f == 2)
                    lua_pushcfunction(L, collect), n++;
                outcome(L, n);
            }
            same(L, functions[f].name, text, pattern);
        }
    }
    return 0;
}

Test(gen_pattern, as_lua_has_it, .timeout = 300)
{
    fa_sandbox *sb;
    const char *error;
    fa_random r = { 7 };
    cr_assert_eq(fa_sandbox_open(&sb, fa_sandbox_names_open), FA_OK);
    for (int i = 0; i < ROUNDS; i++)
        cr_assert_eq(fa_sandbox_run(sb, compare, &r, &error), FA_OK, "%s", error);
    fa_sandbox_close(sb);
}

/* Pairs { key, place } with few keys: sorted by key alone, places ascend. */
static int sort_pairs(lua_State *L)
{
    static const char text[] = "local sort, n = ...  local t = {}  for i = 1, n do t[i] = { i * 7919 % 13, i } end\n"
                               "sort(t, function(a, b) return a[1] < b[1] end)\n"
                               "for i = 2, n do local a, b = t[i - 1], t[i]\n"
                               "  if a[1] > b[1] or a[1] == b[1] and a[2] > b[2] then return false end end\n"
                               "local u = {} for i = 1, n do u[i] = i * 7919 % 104729 end sort(u)\n"
                               "for i = 2, n do if u[i - 1] > u[i] then return false end end  return #t == n and #u == n";
    for (int n = 0; n < 300; n += n < 20 ? 1 : 93) {
        luaL_loadstring(L, text);
        lua_pushcfunction(L, fa_order_sort);
        lua_pushinteger(L, n);
        lua_call(L, 2, 1);
        cr_expect(lua_toboolean(L, -1), "%d values", n);
        lua_settop(L, 1);
    }
    return 0;
}

Test(gen_pattern, sort_is_stable)
{
    fa_sandbox *sb;
    const char *error;
    cr_assert_eq(fa_sandbox_open(&sb, fa_sandbox_names_open), FA_OK);
    cr_assert_eq(fa_sandbox_run(sb, sort_pairs, NULL, &error), FA_OK, "%s", error);
    fa_sandbox_close(sb);
}

/* A family that takes more than half of the steps that it may leaves as many to those that are listed after it. */
Test(gen_pattern, limits_are_each_familys, .timeout = 120)
{
    char dir[64], lua[4096];
    fa_problem p;
    fa_gen *g;
    fa_space s;
    toy_dir(dir, "x\n");
    const char *at = strstr(toy_lua, "supports = function("), *body = at ? strchr(at, ')') : NULL;
    cr_assert(body);
    snprintf(lua, sizeof lua, "%.*s for i = 1, 30000000 do end %s", (int)(body + 1 - toy_lua), toy_lua, body + 1);
    memcpy(strstr(lua, "false,"), "true, ", 6); /* by default */
    toy_write(dir, "a_toy.lua", lua);
    toy_write(dir, "a_toy.cu", "x\n");
    toy_write(dir, "b_toy.lua", lua);
    toy_write(dir, "b_toy.cu", "x\n");
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_problem_parse(&p, "bf16,d=64"), FA_OK);
    cr_expect_eq(fa_space_list(g, &p, fa_arch_find("sm_80"), 0, NULL, &s), FA_OK, "%s", fa_last_error());
    fa_space_free(&s);
    fa_gen_close(g);
    toy_remove(dir, (const char *const[]){ "a_toy.lua", "a_toy.cu", "b_toy.lua", "b_toy.cu", NULL });
}
