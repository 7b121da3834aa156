/* sandbox_pattern: see the header. Backtracking by recursion, as deep as Lua's; each test of a character is a step. */
#include "sandbox_pattern.h"
#include "sandbox.h"
#include <ctype.h>
#include <lauxlib.h>
#include <stdbool.h>
#include <string.h>

#define CAPTURES 32
#define DEEP 200          /* matches within matches */
#define CHARGE_EVERY 1000 /* steps between two charges */
#define BYTES_PER_STEP 8  /* that are compared, searched or copied at a time */

enum { OPEN = -1, POSITION = -2 }; /* in the place of a capture's length */

typedef struct matcher {
    lua_State *L;
    const char *text, *text_end, *pattern_end;
    double steps; /* not charged yet */
    int depth, captures;
    struct {
        const char *from;
        ptrdiff_t length;
    } capture[CAPTURES];
} matcher;

static void steps(matcher *m, size_t n)
{
    m->steps += (double)n;
    if (m->steps < CHARGE_EVERY)
        return;
    fa_sandbox_charge(m->L, m->steps);
    m->steps = 0;
}

/* --- one character --- */

/* Behind the item at p: a character, an escaped one, or a set. */
static const char *item_end(matcher *m, const char *p)
{
    if (*p == '%') {
        if (p + 1 == m->pattern_end)
            luaL_error(m->L, "malformed pattern (ends with '%%')");
        return p + 2;
    }
    if (*p != '[')
        return p + 1;
    const char *first = p + 1 + (p + 1 < m->pattern_end && p[1] == '^');
    for (p = first; p == first || p >= m->pattern_end || *p != ']'; p++) { /* a ']' that comes first is a member */
        if (p >= m->pattern_end)
            luaL_error(m->L, "malformed pattern (missing ']')");
        if (*p == '%' && ++p >= m->pattern_end)
            luaL_error(m->L, "malformed pattern (missing ']')");
    }
    steps(m, (size_t)(p - first));
    return p + 1;
}

static bool in_class(int c, int class)
{
    bool in;
    switch (tolower(class)) {
    case 'a': in = isalpha(c); break;
    case 'c': in = iscntrl(c); break;
    case 'd': in = isdigit(c); break;
    case 'g': in = isgraph(c); break;
    case 'l': in = islower(c); break;
    case 'p': in = ispunct(c); break;
    case 's': in = isspace(c); break;
    case 'u': in = isupper(c); break;
    case 'w': in = isalnum(c); break;
    case 'x': in = isxdigit(c); break;
    default: return class == c;
    }
    return isupper(class) ? !in : in;
}

/* Whether c is in the set from '[' at p to ']' at last. */
static bool in_set(matcher *m, int c, const char *p, const char *last)
{
    bool found = true;
    steps(m, (size_t)(last - p));
    if (*++p == '^') {
        found = false;
        p++;
    }
    for (; p < last; p++) {
        if (*p == '%') {
            if (in_class(c, (unsigned char)*++p))
                return found;
        } else if (p[1] == '-' && p + 2 < last) {
            if ((unsigned char)p[0] <= c && c <= (unsigned char)p[2])
                return found;
            p += 2;
        } else if ((unsigned char)*p == c) {
            return found;
        }
    }
    return !found;
}

/* Whether the character at s is of the item from p to end. */
static bool is_one(matcher *m, const char *s, const char *p, const char *end)
{
    steps(m, 1);
    if (s >= m->text_end)
        return false;
    int c = (unsigned char)*s;
    switch (*p) {
    case '.': return true;
    case '%': return in_class(c, (unsigned char)p[1]);
    case '[': return in_set(m, c, p, end - 1);
    default: return (unsigned char)*p == c;
    }
}

/* --- a pattern --- */

static const char *match(matcher *m, const char *s, const char *p);

static const char *match_captured(matcher *m, const char *s, const char *p, const char *from, ptrdiff_t length)
{
    if (m->captures >= CAPTURES)
        luaL_error(m->L, "too many captures");
    m->capture[m->captures].from = from;
    m->capture[m->captures++].length = length;
    const char *end = match(m, s, p);
    m->captures -= !end;
    return end;
}

static const char *match_closed(matcher *m, const char *s, const char *p)
{
    int i = m->captures - 1;
    while (i >= 0 && m->capture[i].length != OPEN)
        i--;
    if (i < 0)
        luaL_error(m->L, "invalid pattern capture");
    m->capture[i].length = s - m->capture[i].from;
    const char *end = match(m, s, p);
    if (!end)
        m->capture[i].length = OPEN;
    return end;
}

/* Behind the text from s that is balanced between p[0] and p[1]; NULL where there is none. */
static const char *balanced(matcher *m, const char *s, const char *p)
{
    if (p + 1 >= m->pattern_end)
        luaL_error(m->L, "malformed pattern (missing arguments to '%%b')");
    if (s >= m->text_end || *s != p[0])
        return NULL;
    for (int depth = 1; ++s < m->text_end;) {
        steps(m, 1);
        if (*s == p[1]) {
            if (--depth == 0)
                return s + 1;
        } else if (*s == p[0]) {
            depth++;
        }
    }
    return NULL;
}

/* The capture that the digit names, which must be whole. */
static int named_capture(matcher *m, int digit)
{
    int i = digit - '1';
    if (i < 0 || i >= m->captures || m->capture[i].length == OPEN)
        luaL_error(m->L, "invalid capture index %%%d", i + 1);
    return i;
}

static const char *same_again(matcher *m, const char *s, int digit)
{
    int i = named_capture(m, digit);
    size_t n = (size_t)m->capture[i].length; /* of a position, longer than any text */
    if ((size_t)(m->text_end - s) < n)
        return NULL;
    steps(m, 1 + n / BYTES_PER_STEP);
    return memcmp(m->capture[i].from, s, n) ? NULL : s + n;
}

static bool at_frontier(matcher *m, const char *s, const char *p, const char *end)
{
    int before = s == m->text ? 0 : (unsigned char)s[-1], after = s < m->text_end ? (unsigned char)*s : 0;
    return !in_set(m, before, p, end - 1) && in_set(m, after, p, end - 1);
}

/* As many of the item as there are, then fewer, until the rest matches; at least one where `one`. */
static const char *match_most(matcher *m, const char *s, const char *p, const char *end, bool one)
{
    ptrdiff_t n = 0;
    while (is_one(m, s + n, p, end))
        n++;
    for (; n >= one; n--) {
        const char *rest = match(m, s + n, end + 1);
        if (rest)
            return rest;
    }
    return NULL;
}

static const char *match_fewest(matcher *m, const char *s, const char *p, const char *end)
{
    for (;; s++) {
        const char *rest = match(m, s, end + 1);
        if (rest || !is_one(m, s, p, end))
            return rest;
    }
}

/* The end of the text from s that the pattern from p matches; NULL where none does. */
static const char *match_here(matcher *m, const char *s, const char *p)
{
    while (p < m->pattern_end) {
        steps(m, 1);
        if (*p == '(')
            return p + 1 < m->pattern_end && p[1] == ')' ? match_captured(m, s, p + 2, s, POSITION)
                                                         : match_captured(m, s, p + 1, s, OPEN);
        if (*p == ')')
            return match_closed(m, s, p + 1);
        if (*p == '$' && p + 1 == m->pattern_end)
            return s == m->text_end ? s : NULL;
        int escaped = *p == '%' && p + 1 < m->pattern_end ? (unsigned char)p[1] : 0;
        if (escaped == 'b') {
            if (!(s = balanced(m, s, p + 2)))
                return NULL;
            p += 4;
            continue;
        }
        if (escaped == 'f') {
            if (p + 2 >= m->pattern_end || p[2] != '[')
                luaL_error(m->L, "missing '[' after '%%f' in pattern");
            const char *end = item_end(m, p + 2);
            if (!at_frontier(m, s, p + 2, end))
                return NULL;
            p = end;
            continue;
        }
        if (isdigit(escaped)) {
            if (!(s = same_again(m, s, escaped)))
                return NULL;
            p += 2;
            continue;
        }
        const char *end = item_end(m, p);
        int suffix = end < m->pattern_end ? *end : 0;
        bool optional = suffix == '*' || suffix == '-' || suffix == '?';
        if (!is_one(m, s, p, end)) {
            if (!optional)
                return NULL;
            p = end + 1;
            continue;
        }
        if (suffix == '*' || suffix == '+')
            return match_most(m, s, p, end, suffix == '+');
        if (suffix == '-')
            return match_fewest(m, s, p, end);
        if (suffix == '?') {
            const char *rest = match(m, s + 1, end + 1);
            if (rest)
                return rest;
            p = end + 1;
        } else {
            s++;
            p = end;
        }
    }
    return s;
}

static const char *match(matcher *m, const char *s, const char *p)
{
    if (m->depth >= DEEP)
        luaL_error(m->L, "pattern too complex");
    m->depth++;
    const char *end = match_here(m, s, p);
    m->depth--;
    return end;
}

/* From the beginning of a pattern, without captures. */
static const char *match_at(matcher *m, const char *s, const char *p)
{
    m->captures = m->depth = 0;
    return match(m, s, p);
}

/* --- captures as values --- */

/* Pushes capture i; where the pattern has none, number 0 is the whole match. */
static void push_capture(matcher *m, int i, const char *from, const char *end)
{
    if (i >= m->captures) {
        if (i)
            luaL_error(m->L, "invalid capture index %%%d", i + 1);
        lua_pushlstring(m->L, from, (size_t)(end - from));
    } else if (m->capture[i].length == POSITION) {
        lua_pushinteger(m->L, m->capture[i].from - m->text + 1);
    } else if (m->capture[i].length == OPEN) {
        luaL_error(m->L, "unfinished capture");
    } else {
        lua_pushlstring(m->L, m->capture[i].from, (size_t)m->capture[i].length);
        steps(m, (size_t)m->capture[i].length / BYTES_PER_STEP);
    }
}

/* Pushes all captures, or the whole match where the pattern has none and `whole`; how many. */
static int push_captures(matcher *m, const char *from, const char *end, bool whole)
{
    int n = m->captures == 0 && whole ? 1 : m->captures;
    luaL_checkstack(m->L, n, "too many captures");
    for (int i = 0; i < n; i++)
        push_capture(m, i, from, end);
    return n;
}

/* --- the functions --- */

/* The matcher of the text and the pattern at the first two arguments; the pattern in *p. */
static matcher begin(lua_State *L, const char **p)
{
    size_t n, k;
    const char *text = luaL_checklstring(L, 1, &n);
    *p = luaL_checklstring(L, 2, &k);
    return (matcher){ .L = L, .text = text, .text_end = text + n, .pattern_end = *p + k };
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
    matcher m = begin(L, &p);
    size_t n = (size_t)(m.text_end - m.text), k = (size_t)(m.pattern_end - p), from = place(L, 3, n);
    const char *s = m.text + from;
    if (from > n) {
        lua_pushnil(L);
        return 1;
    }
    bool plain = find && (lua_toboolean(L, 4) || !has_special(p, k));
    if (plain) { /* glibc's memmem takes time by n + k */
        steps(&m, 1 + (n - from + k) / BYTES_PER_STEP);
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
        const char *end = match_at(&m, s, p);
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
    matcher m = begin(L, &p);
    for (; at <= m.text_end - m.text; at++) {
        const char *end = match_at(&m, m.text + at, p);
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
    matcher m = begin(L, &p);
    size_t n = (size_t)(m.text_end - m.text), from = place(L, 3, n);
    lua_settop(L, 2);
    lua_pushinteger(L, from > n ? (lua_Integer)n + 1 : (lua_Integer)from);
    lua_pushinteger(L, -1);
    lua_pushcclosure(L, next_match, 4);
    return 1;
}

/* The replacement text at argument 3, its %0 to %9 filled in. */
static void add_text(matcher *m, luaL_Buffer *b, const char *from, const char *end)
{
    size_t n;
    const char *r = lua_tolstring(m->L, 3, &n), *r_end = r + n;
    for (const char *mark; (mark = memchr(r, '%', (size_t)(r_end - r))) != NULL; r = mark + 2) {
        steps(m, 2 + (size_t)(mark - r) / BYTES_PER_STEP);
        luaL_addlstring(b, r, (size_t)(mark - r));
        int c = mark + 1 < r_end ? (unsigned char)mark[1] : 0;
        if (c == '%') {
            luaL_addchar(b, '%');
        } else if (c == '0') {
            steps(m, (size_t)(end - from) / BYTES_PER_STEP);
            luaL_addlstring(b, from, (size_t)(end - from));
        } else if (isdigit(c)) {
            push_capture(m, c - '1', from, end);
            luaL_addvalue(b);
        } else {
            luaL_error(m->L, "invalid use of '%%' in replacement string");
        }
    }
    steps(m, 1 + (size_t)(r_end - r) / BYTES_PER_STEP);
    luaL_addlstring(b, r, (size_t)(r_end - r));
}

/* What takes the place of a match; whether it is other than the match. */
static bool add_value(matcher *m, luaL_Buffer *b, const char *from, const char *end, int type)
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
    steps(m, 1 + (size_t)(end - from) / BYTES_PER_STEP);
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        luaL_addlstring(b, from, (size_t)(end - from));
        return false;
    }
    if (!lua_isstring(L, -1))
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    steps(m, lua_type(L, -1) == LUA_TSTRING ? (size_t)lua_rawlen(L, -1) / BYTES_PER_STEP : 1);
    luaL_addvalue(b);
    return true;
}

int fa_pattern_gsub(lua_State *L)
{
    const char *p;
    matcher m = begin(L, &p);
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
        const char *end = match_at(&m, s, p);
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
    steps(&m, (size_t)(m.text_end - s) / BYTES_PER_STEP);
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
