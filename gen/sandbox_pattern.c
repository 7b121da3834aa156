/* sandbox_pattern: the arguments and results of Lua's four functions, around the matcher. */
#include "sandbox_pattern.h"
#include "sandbox.h"
#include "sandbox_matcher.h"
#include <ctype.h>
#include <lauxlib.h>
#include <stdbool.h>
#include <string.h>

/* --- captures as values --- */

/* Pushes capture i; where the pattern has none, number 0 is the whole match. */
static void push_capture(fa_matcher *m, int i, const char *from, const char *end)
{
    if (i >= m->captures) {
        if (i)
            luaL_error(m->L, "invalid capture index %%%d", i + 1);
        lua_pushlstring(m->L, from, (size_t)(end - from));
    } else if (m->capture[i].length == FA_MATCHER_POSITION) {
        lua_pushinteger(m->L, m->capture[i].from - m->text + 1);
    } else if (m->capture[i].length == FA_MATCHER_OPEN) {
        luaL_error(m->L, "unfinished capture");
    } else {
        lua_pushlstring(m->L, m->capture[i].from, (size_t)m->capture[i].length);
        fa_matcher_step(m, (size_t)m->capture[i].length / FA_MATCHER_BYTES);
    }
}

/* Pushes all captures, or the whole match where the pattern has none and `whole`; how many. */
static int push_captures(fa_matcher *m, const char *from, const char *end, bool whole)
{
    int n = m->captures == 0 && whole ? 1 : m->captures;
    luaL_checkstack(m->L, n, "too many captures");
    for (int i = 0; i < n; i++)
        push_capture(m, i, from, end);
    return n;
}

/* --- the functions --- */

/* The matcher of the text and the pattern at the first two arguments; the pattern in *p. */
static fa_matcher begin(lua_State *L, const char **p)
{
    size_t n, k;
    const char *text = luaL_checklstring(L, 1, &n);
    *p = luaL_checklstring(L, 2, &k);
    return (fa_matcher){ .L = L, .text = text, .text_end = text + n, .pattern_end = *p + k };
}

/* An argument that counts places from 1, or from the end where it is negative, as an offset, which may be past the end. */
static size_t place(lua_State *L, int arg, size_t n)
{
    lua_Integer i = luaL_optinteger(L, arg, 1);
    return i > 0 ? (size_t)i - 1 : i == 0 || i < -(lua_Integer)n ? 0 : n - (size_t)-i;
}

/* What Lua's find looks for: a pattern that has a ']' or ')' alone is plain to it. */
static bool has_special(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memchr("^$*+?.([%-", p[i], 10))
            return true;
    return false;
}

static int find_or_match(lua_State *L, bool find)
{
    const char *p;
    fa_matcher m = begin(L, &p);
    size_t n = (size_t)(m.text_end - m.text), k = (size_t)(m.pattern_end - p), from = place(L, 3, n);
    const char *s = m.text + from;
    if (from > n) {
        lua_pushnil(L);
        return 1;
    }
    bool plain = find && (lua_toboolean(L, 4) || !has_special(p, k));
    if (plain) { /* glibc's memmem takes time by n + k */
        fa_matcher_step(&m, 1 + (n - from + k) / FA_MATCHER_BYTES);
        const char *at = k ? memmem(s, n - from, p, k) : s;
        if (!at) {
            lua_pushnil(L);
            return 1;
        }
        lua_pushinteger(L, at - m.text + 1);
        lua_pushinteger(L, at - m.text + (lua_Integer)k);
        return 2;
    }
    bool anchored = p < m.pattern_end && *p == '^';
    p += anchored;
    do {
        const char *end = fa_matcher_run(&m, s, p);
        if (!end)
            continue;
        int pushed = 0;
        if (find) {
            lua_pushinteger(L, s - m.text + 1);
            lua_pushinteger(L, end - m.text);
            pushed = 2;
        }
        pushed += push_captures(&m, s, end, !find);
        fa_sandbox_charge(L, m.steps);
        return pushed;
    } while (!anchored && s++ < m.text_end);
    fa_sandbox_charge(L, m.steps);
    lua_pushnil(L);
    return 1;
}

int fa_pattern_find(lua_State *L)
{
    return find_or_match(L, true);
}

int fa_pattern_match(lua_State *L)
{
    return find_or_match(L, false);
}

/* Upvalues: text, pattern, the offset to go on at, the end of the match before (-1: none). */
static int next_match(lua_State *L)
{
    lua_settop(L, 0);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_Integer at = lua_tointeger(L, lua_upvalueindex(3)), last = lua_tointeger(L, lua_upvalueindex(4));
    const char *p;
    fa_matcher m = begin(L, &p);
    for (; at <= m.text_end - m.text; at++) {
        const char *end = fa_matcher_run(&m, m.text + at, p);
        if (!end || end - m.text == last)
            continue;
        lua_pushinteger(L, end - m.text);
        lua_pushvalue(L, -1);
        lua_replace(L, lua_upvalueindex(3));
        lua_replace(L, lua_upvalueindex(4));
        int pushed = push_captures(&m, m.text + at, end, true);
        fa_sandbox_charge(L, m.steps);
        return pushed;
    }
    fa_sandbox_charge(L, m.steps);
    return 0;
}

int fa_pattern_gmatch(lua_State *L)
{
    const char *p;
    fa_matcher m = begin(L, &p);
    size_t n = (size_t)(m.text_end - m.text), from = place(L, 3, n);
    lua_settop(L, 2);
    lua_pushinteger(L, from > n ? (lua_Integer)n + 1 : (lua_Integer)from);
    lua_pushinteger(L, -1);
    lua_pushcclosure(L, next_match, 4);
    return 1;
}

/* The replacement text at argument 3, its %0 to %9 filled in. */
static void add_text(fa_matcher *m, luaL_Buffer *b, const char *from, const char *end)
{
    size_t n;
    const char *r = lua_tolstring(m->L, 3, &n), *r_end = r + n;
    for (const char *mark; (mark = memchr(r, '%', (size_t)(r_end - r))) != NULL; r = mark + 2) {
        fa_matcher_step(m, 2 + (size_t)(mark - r) / FA_MATCHER_BYTES);
        luaL_addlstring(b, r, (size_t)(mark - r));
        int c = mark + 1 < r_end ? (unsigned char)mark[1] : 0;
        if (c == '%') {
            luaL_addchar(b, '%');
        } else if (c == '0') {
            fa_matcher_step(m, (size_t)(end - from) / FA_MATCHER_BYTES);
            luaL_addlstring(b, from, (size_t)(end - from));
        } else if (isdigit(c)) {
            push_capture(m, c - '1', from, end);
            luaL_addvalue(b);
        } else {
            luaL_error(m->L, "invalid use of '%%' in replacement string");
        }
    }
    fa_matcher_step(m, 1 + (size_t)(r_end - r) / FA_MATCHER_BYTES);
    luaL_addlstring(b, r, (size_t)(r_end - r));
}

/* What takes the place of a match; whether it is other than the match. */
static bool add_value(fa_matcher *m, luaL_Buffer *b, const char *from, const char *end, int type)
{
    lua_State *L = m->L;
    if (type == LUA_TFUNCTION) {
        lua_pushvalue(L, 3);
        int n = push_captures(m, from, end, true);
        lua_call(L, n, 1);
    } else if (type == LUA_TTABLE) {
        push_capture(m, 0, from, end);
        lua_gettable(L, 3);
    } else {
        add_text(m, b, from, end);
        return true;
    }
    fa_matcher_step(m, 1 + (size_t)(end - from) / FA_MATCHER_BYTES);
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        luaL_addlstring(b, from, (size_t)(end - from));
        return false;
    }
    if (!lua_isstring(L, -1))
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    fa_matcher_step(m, lua_type(L, -1) == LUA_TSTRING ? (size_t)lua_rawlen(L, -1) / FA_MATCHER_BYTES : 1);
    luaL_addvalue(b);
    return true;
}

int fa_pattern_gsub(lua_State *L)
{
    const char *p;
    fa_matcher m = begin(L, &p);
    const char *s = m.text, *last = NULL;
    int type = lua_type(L, 3);
    lua_Integer most = luaL_optinteger(L, 4, m.text_end - m.text + 1), n = 0;
    bool anchored = p < m.pattern_end && *p == '^', changed = false;
    luaL_argexpected(L, type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION || type == LUA_TTABLE, 3,
                     "string/function/table");
    luaL_Buffer b;
    lua_settop(L, 3);
    luaL_buffinit(L, &b);
    p += anchored;
    while (n < most) {
        const char *end = fa_matcher_run(&m, s, p);
        if (end && end != last) {
            n++;
            changed |= add_value(&m, &b, s, end, type);
            s = last = end;
        } else if (s < m.text_end) {
            luaL_addchar(&b, *s++);
        } else {
            break;
        }
        if (anchored)
            break;
    }
    fa_matcher_step(&m, (size_t)(m.text_end - s) / FA_MATCHER_BYTES);
    fa_sandbox_charge(L, m.steps);
    if (changed) {
        luaL_addlstring(&b, s, (size_t)(m.text_end - s));
        luaL_pushresult(&b);
    } else {
        lua_pushvalue(L, 1);
    }
    lua_pushinteger(L, n);
    return 2;
}
