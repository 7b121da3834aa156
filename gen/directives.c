/* directives: the phases of translation as far as words: continued lines, comments, strings, and words of directives. */
#include "directives.h"
#include "error.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD 24 /* letters of a word that tell it from all others, and the zero */

typedef struct scan {
    const char *s;
    const char *row; /* where the line begins */
    long line;
    const char *file;
    size_t file_n;
    bool begins; /* nothing but blanks and comments stands before this on its line */
} scan;

typedef struct refused {
    const char *word;
    bool directive; /* after '#'; else anywhere */
    const char *why;
} refused;

static const refused table[] = {
    { "include", true, "reads a file" },
    { "include_next", true, "reads a file" },
    { "import", true, "reads a file" },
    { "embed", true, "reads a file" },
    { "__has_include", false, "looks for a file" },
    { "__has_include_next", false, "looks for a file" },
    { "__has_embed", false, "looks for a file" },
    { "__DATE__", false, "is the day of the compilation" },
    { "__TIME__", false, "is the time of the compilation" },
    { "__TIMESTAMP__", false, "is the time of a file" },
};

static size_t end_of_line(const char *s)
{
    return s[0] == '\n' ? 1 : s[0] == '\r' && s[1] == '\n' ? 2 : 0;
}

/* Bytes of a backslash, or of the trigraph that stands for one. */
static size_t backslash(const char *s)
{
    return s[0] == '\\' ? 1 : s[0] == '?' && s[1] == '?' && s[2] == '/' ? 3 : 0;
}

/* Past line ends that a backslash continues. */
static void splice(scan *t)
{
    for (size_t n, slash; (slash = backslash(t->s)) && (n = end_of_line(t->s + slash));) {
        t->s += slash + n;
        t->row = t->s;
        t->line++;
    }
}

/* Bytes of the trigraph that stands for '#'. */
static size_t number_sign(const char *s)
{
    return s[0] == '?' && s[1] == '?' && s[2] == '=' ? 3 : 0;
}

/* The next character, 0 at the end. */
static char peek(scan *t)
{
    splice(t);
    return number_sign(t->s) ? '#' : *t->s;
}

static void step(scan *t)
{
    bool newline = *t->s == '\n';
    t->s += number_sign(t->s) ? number_sign(t->s) : *t->s != 0;
    if (newline) {
        t->line++;
        t->row = t->s;
    }
}

/* Steps over c when it is next. */
static bool take(scan *t, char c)
{
    bool is = peek(t) == c;
    if (is)
        step(t);
    return is;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 128;
}

/* Blanks and comments of a line; with lines, those after it too. False: what comes next is no such thing. */
static bool skip_blank(scan *t, bool lines)
{
    char c = peek(t);
    if (c == '\n' || c == '\r') {
        if (!lines)
            return false;
        step(t);
        t->begins = true;
        return true;
    }
    if (c == ' ' || c == '\t' || c == '\v' || c == '\f') {
        step(t);
        return true;
    }
    scan at = *t;
    step(&at);
    if (c != '/' || (peek(&at) != '/' && peek(&at) != '*'))
        return false;
    bool to_end = take(&at, '/');
    if (!to_end)
        step(&at);
    while ((c = peek(&at)) && !(to_end && (c == '\n' || c == '\r'))) {
        step(&at);
        if (c == '\n')
            at.begins = true;
        if (!to_end && c == '*' && take(&at, '/'))
            break;
    }
    *t = at;
    return true;
}

static void read_word(scan *t, char word[WORD])
{
    size_t n = 0;
    for (char c; is_word(c = peek(t)); step(t))
        if (n < WORD - 1)
            word[n++] = c;
    word[n] = 0;
}

/* A string or character after its first quote: to the other one, or the end of its line. */
static void skip_quoted(scan *t, char quote)
{
    for (char c; (c = peek(t)) && c != '\n' && c != '\r'; step(t)) {
        if (c == '\\')
            step(t), peek(t);
        else if (c == quote) {
            step(t);
            return;
        }
    }
}

/* A raw string after its first quote: lines in it are not continued. */
static void skip_raw(scan *t)
{
    char close[20] = ")";
    size_t n = strcspn(t->s, "( )\\\t\v\f\n");
    if (t->s[n] != '(' || n > 16)
        return;
    memcpy(close + 1, t->s, n);
    memcpy(close + 1 + n, "\"", 2);
    const char *end = strstr(t->s + n, close);
    end = end ? end + n + 2 : t->s + strlen(t->s);
    for (; t->s < end; t->s++)
        if (*t->s == '\n') {
            t->line++;
            t->row = t->s + 1;
        }
}

/* A number: its quotes part digits. */
static void skip_number(scan *t)
{
    for (char c; is_word(c = peek(t)) || c == '.' || c == '\'';) {
        step(t);
        if (c == '\'' && !is_word(peek(t)))
            return;
    }
}

static fa_status refuse(const scan *at, const char *sign, const char *word, bool directive)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].directive == directive && !strcmp(table[i].word, word)) {
            int n = (int)strcspn(at->row, "\r\n");
            return fa_fail(FA_TEMPLATE,
                           "%.*s:%ld: %s%s %s, which the cache's key does not hold; accepted: text of templates, which take in one "
                           "another by //| include \"NAME.cu\"\n  %ld | %.*s",
                           (int)at->file_n, at->file, at->line, sign, word, table[i].why, at->line, n < 200 ? n : 200, at->row);
        }
    return FA_OK;
}

/* After '#line': what it says holds from the next line on. */
static void relocate(scan *t)
{
    char *end;
    long line = strtol(t->s, &end, 10);
    const char *name = end + strspn(end, " \t");
    if (end == t->s || line < 1 || line > INT32_MAX)
        return;
    size_t n = *name == '"' ? strcspn(name + 1, "\"\n") : 0;
    if (n && name[1 + n] == '"') {
        t->file = name + 1;
        t->file_n = n;
    }
    t->line = line - 1;
}

fa_status fa_directives_check(const char *text, const char *name)
{
    scan t = { .s = text, .row = text, .line = 1, .file = name, .file_n = strlen(name), .begins = true };
    fa_status st = FA_OK;
    for (char c; st == FA_OK && (c = peek(&t));) {
        char word[WORD];
        bool begins = t.begins;
        if (skip_blank(&t, true))
            continue;
        t.begins = false;
        scan at = t;
        if (isdigit((unsigned char)c)) {
            skip_number(&t);
        } else if (is_word(c)) {
            read_word(&t, word);
            size_t n = strlen(word);
            if (peek(&t) == '"' && word[n - 1] == 'R' && (n == 1 || !strcmp(word, "u8R") || (n == 2 && strchr("uUL", word[0])))) {
                step(&t);
                skip_raw(&t);
            }
            st = refuse(&at, "", word, false);
        } else if (c == '"' || c == '\'') {
            step(&t);
            skip_quoted(&t, c);
        } else {
            step(&t);
            if (!begins || !(c == '#' || (c == '%' && take(&t, ':'))))
                continue;
            while (skip_blank(&t, false))
                ;
            read_word(&t, word);
            st = refuse(&at, "#", word, true);
            if (!strcmp(word, "line"))
                relocate(&t);
        }
    }
    return st;
}
