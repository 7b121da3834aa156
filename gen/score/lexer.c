/* lexer: Lua's words, numbers and short strings. */
#include "lexer.h"
#include "gen/error.h"
#include "gen/text.h"
#include "limits.h"
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *text;
    fa_score_word word;
} keywords[] = {
#define X(name, text) { text, FA_SCORE_WORD_##name },
    FA_SCORE_KEYWORDS(X)
}, signs[] = { FA_SCORE_SIGNS(X)
#undef X
};
#define COUNT(a) (sizeof(a) / sizeof *(a))
#define DIGITS_MAX 63 /* of a number's text */

fa_status fa_score_fail(const char *name, fa_score_place at, const char *fmt, ...)
{
    char message[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    return fa_fail(FA_INVALID, "%s:%d:%d: %s", name, at.line, at.column, message);
}

const char *fa_score_token_text(char *buf, size_t n, const fa_score_token *token)
{
    if (token->word == FA_SCORE_WORD_END_OF_TEXT)
        snprintf(buf, n, "the end of the text");
    else
        snprintf(buf, n, "%s\"%.*s\"", token->word == FA_SCORE_WORD_STRING ? "the string " : "", token->n < 40 ? token->n : 40, token->s);
    return buf;
}

fa_status fa_score_lexer_open(fa_score_lexer *lexer, const char *name, const char *text, size_t n)
{
    if (n > FA_SCORE_TEXT_MAX)
        return fa_fail(FA_INVALID, "%s: the text is %zu bytes; accepted: at most %d", name, n, FA_SCORE_TEXT_MAX);
    *lexer = (fa_score_lexer){ name, text, text + n, { 1, 1 } };
    return FA_OK;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_digit(char c)
{
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static char peek(const fa_score_lexer *l, int i)
{
    return l->end - l->s > i ? l->s[i] : 0;
}

static void step(fa_score_lexer *l, int n)
{
    for (; n > 0; n--, l->s++) {
        l->at.column++;
        if (*l->s == '\n')
            l->at = (fa_score_place){ l->at.line + 1, 1 };
    }
}

/* Of "[[" or "[=[": the number of signs "="; -1: it is no long bracket. */
static int long_bracket(const fa_score_lexer *l, int from)
{
    int n = 0;
    if (peek(l, from) != '[')
        return -1;
    while (peek(l, from + 1 + n) == '=')
        n++;
    return peek(l, from + 1 + n) == '[' ? n : -1;
}

static bool closes(const fa_score_lexer *l, int level)
{
    for (int i = 0; i < level; i++)
        if (peek(l, 1 + i) != '=')
            return false;
    return peek(l, 0) == ']' && peek(l, 1 + level) == ']';
}

static fa_status comment(fa_score_lexer *l)
{
    fa_score_place at = l->at;
    step(l, 2);
    int level = long_bracket(l, 0);
    if (level < 0) {
        while (l->s < l->end && *l->s != '\n')
            step(l, 1);
        return FA_OK;
    }
    while (l->s < l->end && !closes(l, level))
        step(l, 1);
    if (l->s == l->end)
        return fa_score_fail(l->name, at, "the comment has no end; accepted: ]%.*s]", level < 8 ? level : 8, "========");
    step(l, level + 2);
    return FA_OK;
}

/* By the C locale, whatever the process has. Within 53 bits and 22 places this is exact; else the nearest number but for an ulp. */
static double decimal(const char *s, int n)
{
    char text[DIGITS_MAX + 8];
    const char *point = localeconv()->decimal_point;
    int k = 0;
    for (int i = 0; i < n; i++)
        if (s[i] == '.')
            k += snprintf(text + k, sizeof text - (size_t)k, "%.4s", point);
        else
            text[k++] = s[i];
    text[k] = 0;
    return strtod(text, NULL);
}

/* Whether all of its digits, but for an exponent's, are 0. */
static bool is_zero(const char *s, int n)
{
    for (int i = 0; i < n && s[i] != 'e' && s[i] != 'E'; i++)
        if (is_digit(s[i]) && s[i] != '0')
            return false;
    return true;
}

static fa_status number(fa_score_lexer *l, fa_score_token *t)
{
    bool hex = peek(l, 0) == '0' && (peek(l, 1) == 'x' || peek(l, 1) == 'X'), whole = true, digits = false;
    double value = 0;
    int n = 0;
    if (hex)
        for (n = 2; hex_digit(peek(l, n)) >= 0; n++, digits = true)
            value = value * 16 + hex_digit(peek(l, n));
    for (; !hex && (is_digit(peek(l, n)) || (peek(l, n) == '.' && whole)); n++) {
        digits = digits || is_digit(peek(l, n));
        whole = whole && peek(l, n) != '.';
    }
    if (!hex && (peek(l, n) == 'e' || peek(l, n) == 'E')) {
        whole = false;
        n += 1 + (peek(l, n + 1) == '+' || peek(l, n + 1) == '-');
        for (digits = false; is_digit(peek(l, n)); n++)
            digits = true;
    }
    if (!digits || is_letter(peek(l, n)) || is_digit(peek(l, n)) || peek(l, n) == '.')
        return fa_score_fail(l->name, l->at, "\"%.*s\" is no number; accepted: 12, 0x1f, 1.5, 1e-3",
                             (int)(l->end - l->s > n ? (n < 40 ? n + 1 : 40)
                                   : n < 40          ? n
                                                     : 40),
                             l->s);
    if (n > DIGITS_MAX)
        return fa_score_fail(l->name, l->at, "a number of %d digits; accepted: at most %d", n, DIGITS_MAX);
    t->word = whole ? FA_SCORE_WORD_INTEGER : FA_SCORE_WORD_NUMBER;
    t->value = hex ? value : decimal(l->s, n);
    t->n = n;
    if (whole && t->value > INT32_MAX)
        return fa_score_fail(l->name, l->at, "the integer %.*s is beyond int32; accepted: at most 2147483647, or a number with a fraction",
                             n, l->s);
    /* Kernels have numbers of fp32: one that is infinite there, or 0, is not what was written. */
    float held = (float)t->value;
    if (isinf(held) || (held == 0 && !is_zero(l->s, n)))
        return fa_score_fail(l->name, l->at, "the number %.*s is none of fp32; accepted: 0, 1.5e-45 to 3.4e38, or huge, which is infinite",
                             n, l->s);
    return FA_OK;
}

static fa_status string(fa_score_lexer *l, fa_score_token *t)
{
    char quote = *l->s;
    int n = 1;
    while (peek(l, n) && peek(l, n) != quote && peek(l, n) != '\n' && peek(l, n) != '\\')
        n++;
    if (peek(l, n) == '\\')
        return fa_score_fail(l->name, l->at, "a string has an escape (\\); accepted: letters, digits and signs as they are");
    if (peek(l, n) != quote)
        return fa_score_fail(l->name, l->at, "the string has no end; accepted: %c on the same line", quote);
    t->word = FA_SCORE_WORD_STRING;
    t->s = l->s + 1;
    t->n = n - 1;
    step(l, n + 1);
    return FA_OK;
}

static fa_status skip_blanks(fa_score_lexer *l)
{
    for (;;) {
        char c = peek(l, 0);
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
            step(l, 1);
        else if (c == '-' && peek(l, 1) == '-') {
            fa_status st = comment(l);
            if (st != FA_OK)
                return st;
        } else
            return FA_OK;
    }
}

fa_status fa_score_lexer_next(fa_score_lexer *l, fa_score_token *t)
{
    fa_status st = skip_blanks(l);
    *t = (fa_score_token){ .word = FA_SCORE_WORD_END_OF_TEXT, .at = l->at, .s = l->s };
    if (st != FA_OK || l->s == l->end)
        return st;
    if (is_letter(*l->s)) {
        t->word = FA_SCORE_WORD_NAME;
        while (is_letter(peek(l, t->n)) || is_digit(peek(l, t->n)))
            t->n++;
        for (size_t i = 0; i < COUNT(keywords); i++)
            if (strlen(keywords[i].text) == (size_t)t->n && !memcmp(keywords[i].text, t->s, (size_t)t->n))
                t->word = keywords[i].word;
    } else if (is_digit(*l->s) || (*l->s == '.' && is_digit(peek(l, 1)))) {
        if ((st = number(l, t)) != FA_OK)
            return st;
    } else if (*l->s == '"' || *l->s == '\'') {
        return string(l, t);
    } else if (long_bracket(l, 0) >= 0) {
        return fa_score_fail(l->name, l->at, "a string in long brackets; accepted: \"text\"");
    } else {
        for (size_t i = 0; i < COUNT(signs) && !t->n; i++)
            if ((size_t)(l->end - l->s) >= strlen(signs[i].text) && !memcmp(signs[i].text, l->s, strlen(signs[i].text))) {
                t->word = signs[i].word;
                t->n = (int32_t)strlen(signs[i].text);
            }
        if (!t->n && *l->s == '!')
            return fa_score_fail(l->name, l->at, "\"!\" is no sign of Lua; accepted: x ~= y, and not c");
        if (!t->n)
            return fa_score_fail(l->name, l->at, "the byte 0x%02x begins no word; accepted: names, numbers, strings, signs of Lua",
                                 (unsigned char)*l->s);
    }
    step(l, t->n);
    return FA_OK;
}
