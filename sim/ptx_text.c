/* ptx_text: reading PTX text character by character: names, numbers, strings and operands. An opcode is one run of letters,
 * digits, dots and colons. */
#include "ptx_text.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- characters ---- */

void sim_text_blank(ptx_parser *p)
{
    while (p->at < p->end) {
        char c = *p->at;
        if (c == '\n')
            p->line++, p->at++;
        else if (isspace((unsigned char)c))
            p->at++;
        else if (c == '/' && p->at + 1 < p->end && p->at[1] == '/')
            while (p->at < p->end && *p->at != '\n')
                p->at++;
        else if (c == '/' && p->at + 1 < p->end && p->at[1] == '*') {
            for (p->at += 2; p->at + 1 < p->end && !(p->at[0] == '*' && p->at[1] == '/'); p->at++)
                p->line += *p->at == '\n';
            if (p->at + 1 >= p->end)
                sim_ptx_fail(p, p->line, "a comment is not closed");
            p->at += 2;
        } else
            return;
    }
}
char sim_text_peek(ptx_parser *p)
{
    sim_text_blank(p);
    return p->at < p->end ? *p->at : 0;
}
bool sim_text_take(ptx_parser *p, char c)
{
    if (sim_text_peek(p) != c)
        return false;
    p->at++;
    return true;
}
void sim_text_need(ptx_parser *p, char c)
{
    if (!sim_text_take(p, c))
        sim_ptx_fail(p, p->line, "expected '%c' before \"%.20s\"", c, p->at);
}
/* A name; with dots, an opcode, a directive or a special register. */
char *sim_text_name(ptx_parser *p, bool dots)
{
    sim_text_blank(p);
    const char *s = p->at;
    while (p->at < p->end && (sim_text_in_name(*p->at) || (dots && *p->at == '.') ||
                              (dots && *p->at == ':' && p->at + 1 < p->end && (p->at[1] == ':' || p->at[-1] == ':'))))
        p->at++;
    if (s == p->at)
        sim_ptx_fail(p, p->line, "expected a name before \"%.20s\"", s);
    return sim_ptx_copy(p, s, (size_t)(p->at - s));
}
bool sim_text_word(ptx_parser *p, const char *w) /* consumes w if it stands here as a whole */
{
    sim_text_blank(p);
    size_t n = strlen(w);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, w, n) || (p->at + n < p->end && sim_text_in_name(p->at[n])))
        return false;
    p->at += n;
    return true;
}
char *sim_text_string(ptx_parser *p)
{
    sim_text_need(p, '"');
    const char *s = p->at;
    while (p->at < p->end && *p->at != '"' && *p->at != '\n')
        p->at += *p->at == '\\' && p->at + 1 < p->end ? 2 : 1;
    if (p->at >= p->end || *p->at != '"')
        sim_ptx_fail(p, p->line, "a string is not closed");
    return sim_ptx_copy(p, s, (size_t)(p->at++ - s));
}

void sim_text_braces(ptx_parser *p)
{
    sim_text_need(p, '{');
    for (int depth = 1; depth;) {
        char c = sim_text_peek(p);
        if (!c)
            sim_ptx_fail(p, p->line, "a '{' is not closed");
        if (c == '"') {
            sim_text_string(p);
            continue;
        }
        depth += (c == '{') - (c == '}');
        p->at++;
    }
}
char *sim_text_squeeze(ptx_parser *p, const char *start)
{
    char *text = sim_ptx_copy(p, start, (size_t)(p->at - start)), *to = text;
    for (const char *s = text; *s; s++)
        if (!isspace((unsigned char)*s) || (to > text && to[-1] != ' '))
            *to++ = isspace((unsigned char)*s) ? ' ' : *s;
    *to = 0;
    return text;
}

/* A number: decimal, 0x, 0, 0b, with an optional U; 0f and 0d float bits; a decimal point or exponent makes a double. */
void sim_text_number(ptx_parser *p, ptx_operand *o)
{
    sim_text_blank(p);
    bool minus = false;
    while (p->at < p->end && (*p->at == '-' || *p->at == '+'))
        minus ^= *p->at++ == '-', sim_text_blank(p);
    const char *s = p->at, *e = s;
    if (s >= p->end || !isdigit((unsigned char)*s))
        sim_ptx_fail(p, p->line, "expected a number before \"%.20s\"", s);
    char kind = s + 1 < p->end && *s == '0' ? (char)tolower((unsigned char)s[1]) : 0;
    if (kind == 'f' || kind == 'd') {
        uint64_t bits = 0;
        for (e += 2; e < p->end && isxdigit((unsigned char)*e); e++)
            bits = bits << 4 | (uint64_t)(isdigit((unsigned char)*e) ? *e - '0' : tolower(*e) - 'a' + 10);
        o->kind = O_FLOAT, o->single = kind == 'f';
        o->imm = bits ^ (minus ? o->single ? 1ull << 31 : 1ull << 63 : 0);
    } else {
        while (e < p->end && (isalnum((unsigned char)*e) || *e == '.'))
            e++;
        bool real =
            memchr(s, '.', (size_t)(e - s)) || (kind != 'x' && (memchr(s, 'e', (size_t)(e - s)) || memchr(s, 'E', (size_t)(e - s))));
        if (real && e < p->end && (*e == '-' || *e == '+'))
            for (e++; e < p->end && isdigit((unsigned char)*e); e++) {
            }
        char text[64], *stop;
        size_t n = (size_t)(e - s) < 63 ? (size_t)(e - s) : 63;
        memcpy(text, s, n), text[n] = 0;
        if (real) {
            union {
                double d;
                uint64_t q;
            } x = { .d = strtod(text, &stop) };
            o->kind = O_FLOAT, o->imm = x.q ^ (minus ? 1ull << 63 : 0);
        } else {
            uint64_t v = kind == 'b' ? strtoull(text + 2, &stop, 2) : strtoull(text, &stop, 0);
            if (*stop == 'U' || *stop == 'u')
                stop++;
            o->kind = O_IMM, o->imm = minus ? 0 - v : v;
        }
        if (*stop)
            sim_ptx_fail(p, p->line, "\"%s\" is no number", text);
    }
    p->at = e;
}

/* ---- operands ---- */

#define NESTED 8 /* [{%r1, %r2}] and !%p are two deep */

static void list(ptx_parser *p, ptx_function *f, ptx_operand *o, char close)
{
    size_t cap = 0;
    if (sim_text_take(p, close))
        return;
    do {
        o->elem = sim_ptx_grow(p, o->elem, &cap, (size_t)o->n, sizeof *o->elem);
        sim_text_operand(p, f, &o->elem[o->n++]);
    } while (sim_text_take(p, ','));
    sim_text_need(p, close);
}

static void operand(ptx_parser *p, ptx_function *f, ptx_operand *o);

void sim_text_operand(ptx_parser *p, ptx_function *f, ptx_operand *o)
{
    if (++p->nested > NESTED)
        sim_ptx_fail(p, p->line, "operands are nested too deeply");
    operand(p, f, o);
    p->nested--;
}

static void operand(ptx_parser *p, ptx_function *f, ptx_operand *o)
{
    *o = (ptx_operand){ .reg = -1, .pair = -1 };
    char c = sim_text_peek(p);
    if (c == '{') {
        p->at++;
        o->kind = O_VECTOR;
        list(p, f, o, '}');
    } else if (c == '[') {
        p->at++;
        list(p, f, o, ']');
        if (!o->n)
            sim_ptx_fail(p, p->line, "an address is empty");
        o->kind = O_MEMORY;
        o->imm = o->elem[0].kind == O_IMM ? 0 : o->elem[0].imm;
    } else if (c == '!') {
        p->at++;
        sim_text_operand(p, f, o);
        o->negated = true;
    } else if (isdigit((unsigned char)c) || c == '-' || c == '+') {
        sim_text_number(p, o);
    } else {
        char *s = sim_text_name(p, false);
        if (!strcmp(s, "_")) {
            o->kind = O_SINK;
        } else if ((o->reg = sim_text_find_register(f, s)) >= 0) {
            o->kind = O_REG;
        } else if (*s == '%') {
            while (p->at < p->end && *p->at == '.') {
                p->at++;
                char *member = sim_text_name(p, false), *whole = sim_ptx_alloc(p, strlen(s) + strlen(member) + 2);
                sprintf(whole, "%s.%s", s, member);
                s = whole;
            }
            o->kind = O_SPECIAL;
        } else {
            o->kind = O_SYMBOL;
            if (f && !(o->local = sim_ptx_find_local(f, s)))
                sim_ptx_use(p, f, s);
        }
        o->name = s;
        if (!strcmp(s, "WARP_SZ"))
            o->kind = O_IMM, o->imm = 32;
        if (sim_text_peek(p) == '|') {
            p->at++;
            char *second = sim_text_name(p, false);
            if (strcmp(second, "_") && (o->pair = sim_text_find_register(f, second)) < 0)
                sim_ptx_fail(p, p->line, "register %s is not declared", second);
        }
        if (sim_text_peek(p) == '+' || (sim_text_peek(p) == '-')) {
            ptx_operand off = { 0 };
            sim_text_number(p, &off);
            if (off.kind != O_IMM)
                sim_ptx_fail(p, p->line, "an offset must be an integer");
            o->imm = off.imm;
        }
    }
}
