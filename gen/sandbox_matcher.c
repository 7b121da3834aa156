/* sandbox_matcher: see the header. */
#include "sandbox_matcher.h"
#include "sandbox.h"
#include <ctype.h>
#include <lauxlib.h>
#include <stdbool.h>
#include <string.h>

#define DEEP 200          /* matches within matches */
#define CHARGE_EVERY 1000 /* steps between two charges */

void fa_matcher_step(fa_matcher *m, size_t n)
{
    m->steps += (double)n;
    if (m->steps < CHARGE_EVERY)
        return;
    fa_sandbox_charge(m->L, m->steps);
    m->steps = 0;
}

/* --- one character --- */

/* After the item at p: a character, an escaped one, or a set. */
static const char *item_end(fa_matcher *m, const char *p)
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
    fa_matcher_step(m, (size_t)(p - first));
    return p + 1;
}

static bool in_class(int c, int class)
{
    bool in;
    switch (tolower(class)) {
    case 'a':
        in = isalpha(c);
        break;
    case 'c':
        in = iscntrl(c);
        break;
    case 'd':
        in = isdigit(c);
        break;
    case 'g':
        in = isgraph(c);
        break;
    case 'l':
        in = islower(c);
        break;
    case 'p':
        in = ispunct(c);
        break;
    case 's':
        in = isspace(c);
        break;
    case 'u':
        in = isupper(c);
        break;
    case 'w':
        in = isalnum(c);
        break;
    case 'x':
        in = isxdigit(c);
        break;
    default:
        return class == c;
    }
    return isupper(class) ? !in : in;
}

/* Whether c is in the set from '[' at p to ']' at last. */
static bool in_set(fa_matcher *m, int c, const char *p, const char *last)
{
    bool found = true;
    fa_matcher_step(m, (size_t)(last - p));
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
static bool is_one(fa_matcher *m, const char *s, const char *p, const char *end)
{
    fa_matcher_step(m, 1);
    if (s >= m->text_end)
        return false;
    int c = (unsigned char)*s;
    switch (*p) {
    case '.':
        return true;
    case '%':
        return in_class(c, (unsigned char)p[1]);
    case '[':
        return in_set(m, c, p, end - 1);
    default:
        return (unsigned char)*p == c;
    }
}

/* --- a pattern --- */

static const char *match(fa_matcher *m, const char *s, const char *p);

static const char *match_captured(fa_matcher *m, const char *s, const char *p, const char *from, ptrdiff_t length)
{
    if (m->captures >= FA_MATCHER_CAPTURES)
        luaL_error(m->L, "too many captures");
    m->capture[m->captures].from = from;
    m->capture[m->captures++].length = length;
    const char *end = match(m, s, p);
    m->captures -= !end;
    return end;
}

static const char *match_closed(fa_matcher *m, const char *s, const char *p)
{
    int i = m->captures - 1;
    while (i >= 0 && m->capture[i].length != FA_MATCHER_OPEN)
        i--;
    if (i < 0)
        luaL_error(m->L, "invalid pattern capture");
    m->capture[i].length = s - m->capture[i].from;
    const char *end = match(m, s, p);
    if (!end)
        m->capture[i].length = FA_MATCHER_OPEN;
    return end;
}

/* After the text from s that is balanced between p[0] and p[1]; NULL where there is none. */
static const char *balanced(fa_matcher *m, const char *s, const char *p)
{
    if (p + 1 >= m->pattern_end)
        luaL_error(m->L, "malformed pattern (missing arguments to '%%b')");
    if (s >= m->text_end || *s != p[0])
        return NULL;
    for (int depth = 1; ++s < m->text_end;) {
        fa_matcher_step(m, 1);
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
static int named_capture(fa_matcher *m, int digit)
{
    int i = digit - '1';
    if (i < 0 || i >= m->captures || m->capture[i].length == FA_MATCHER_OPEN)
        luaL_error(m->L, "invalid capture index %%%d", i + 1);
    return i;
}

static const char *same_again(fa_matcher *m, const char *s, int digit)
{
    int i = named_capture(m, digit);
    size_t n = (size_t)m->capture[i].length; /* of a position, longer than any text */
    if ((size_t)(m->text_end - s) < n)
        return NULL;
    fa_matcher_step(m, 1 + n / FA_MATCHER_BYTES);
    return memcmp(m->capture[i].from, s, n) ? NULL : s + n;
}

static bool at_frontier(fa_matcher *m, const char *s, const char *p, const char *end)
{
    int before = s == m->text ? 0 : (unsigned char)s[-1], after = s < m->text_end ? (unsigned char)*s : 0;
    return !in_set(m, before, p, end - 1) && in_set(m, after, p, end - 1);
}

/* As many of the item as there are, then fewer, until the rest matches; at least one where `one`. */
static const char *match_most(fa_matcher *m, const char *s, const char *p, const char *end, bool one)
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

static const char *match_fewest(fa_matcher *m, const char *s, const char *p, const char *end)
{
    for (;; s++) {
        const char *rest = match(m, s, end + 1);
        if (rest || !is_one(m, s, p, end))
            return rest;
    }
}

/* The end of the text from s that the pattern from p matches; NULL where none does. */
static const char *match_here(fa_matcher *m, const char *s, const char *p)
{
    while (p < m->pattern_end) {
        fa_matcher_step(m, 1);
        if (*p == '(')
            return p + 1 < m->pattern_end && p[1] == ')' ? match_captured(m, s, p + 2, s, FA_MATCHER_POSITION)
                                                         : match_captured(m, s, p + 1, s, FA_MATCHER_OPEN);
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

static const char *match(fa_matcher *m, const char *s, const char *p)
{
    if (m->depth >= DEEP)
        luaL_error(m->L, "pattern too complex");
    m->depth++;
    const char *end = match_here(m, s, p);
    m->depth--;
    return end;
}

const char *fa_matcher_run(fa_matcher *m, const char *s, const char *p)
{
    m->captures = m->depth = 0;
    return match(m, s, p);
}
