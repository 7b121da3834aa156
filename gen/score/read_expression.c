/* read_expression: by how strongly signs bind. */
#include "read_expression.h"
#include <string.h>

/* Binary signs, how strongly they bind to the left and to the right, as in Lua. */
static const struct {
    fa_score_word word;
    int left, right;
} binary[] = {
    { FA_SCORE_WORD_OR, 1, 1 },      { FA_SCORE_WORD_AND, 2, 2 },     { FA_SCORE_WORD_LT, 3, 3 },        { FA_SCORE_WORD_GT, 3, 3 },
    { FA_SCORE_WORD_LE, 3, 3 },      { FA_SCORE_WORD_GE, 3, 3 },      { FA_SCORE_WORD_NE, 3, 3 },        { FA_SCORE_WORD_EQ, 3, 3 },
    { FA_SCORE_WORD_BAR, 4, 4 },     { FA_SCORE_WORD_TILDE, 5, 5 },   { FA_SCORE_WORD_AMPERSAND, 6, 6 }, { FA_SCORE_WORD_SHL, 7, 7 },
    { FA_SCORE_WORD_SHR, 7, 7 },     { FA_SCORE_WORD_CONCAT, 9, 8 },  { FA_SCORE_WORD_PLUS, 10, 10 },    { FA_SCORE_WORD_MINUS, 10, 10 },
    { FA_SCORE_WORD_STAR, 11, 11 },  { FA_SCORE_WORD_SLASH, 11, 11 }, { FA_SCORE_WORD_IDIV, 11, 11 },    { FA_SCORE_WORD_PERCENT, 11, 11 },
    { FA_SCORE_WORD_CARET, 14, 13 },
};
#define UNARY 12
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Values up to `close`, at least one unless `none`. */
fa_status fa_score_read_list(fa_score_reader *r, int32_t *first, fa_score_word close, bool none)
{
    int32_t last = 0, one = 0, n = 0;
    *first = 0;
    while (!(none && n == 0 && r->token.word == close)) {
        fa_status st = n++ == FA_SCORE_LIST_MAX ? fa_score_fail(r->tree->name, r->token.at,
                                                                "more than %d values in a list; accepted: up to that", FA_SCORE_LIST_MAX)
                                                : fa_score_read_expression(r, &one, 0);
        if (st != FA_OK)
            return st;
        if (last)
            r->tree->node[last].next = one;
        else
            *first = one;
        last = one;
        if (r->token.word != FA_SCORE_WORD_COMMA)
            break;
        if ((st = fa_score_reader_next(r)) != FA_OK)
            return st;
    }
    return FA_OK;
}

/* The name, with "math." before it or not. */
static fa_status name(fa_score_reader *r, int32_t *out)
{
    fa_score_token t = r->token;
    fa_status st = fa_score_reader_next(r);
    if (st == FA_OK && r->token.word == FA_SCORE_WORD_DOT && t.n == 4 && !memcmp(t.s, "math", 4)) {
        st = fa_score_reader_next(r);
        t = r->token;
        if (st == FA_OK)
            st = fa_score_reader_take(r, FA_SCORE_WORD_NAME, "a function of math");
    }
    return st == FA_OK ? fa_score_reader_add(r, out, FA_SCORE_TREE_NAME, &t) : st;
}

/* What follows a name: indices, or arguments of a call; of a call with one string the parentheses may be left out. */
static fa_status suffixes(fa_score_reader *r, int32_t *out)
{
    fa_status st = FA_OK;
    while (st == FA_OK) {
        fa_score_token t = r->token;
        int32_t node, inner = 0;
        bool index = t.word == FA_SCORE_WORD_OPEN_INDEX, call = t.word == FA_SCORE_WORD_OPEN;
        if (t.word == FA_SCORE_WORD_STRING && r->tree->node[*out].kind == FA_SCORE_TREE_NAME) {
            if ((st = fa_score_reader_add(r, &inner, FA_SCORE_TREE_STRING, &t)) == FA_OK)
                st = fa_score_reader_next(r);
        } else if (!index && !call) {
            return t.word == FA_SCORE_WORD_DOT
                       ? fa_score_reader_expected(r, "an operator, or [ for an index; fields are read of math alone")
                       : FA_OK;
        } else if ((st = fa_score_reader_deeper(r)) == FA_OK && (st = fa_score_reader_next(r)) == FA_OK) {
            st = index ? fa_score_read_expression(r, &inner, 0) : fa_score_read_list(r, &inner, FA_SCORE_WORD_CLOSE, true);
            if (st == FA_OK)
                st = index ? fa_score_reader_take(r, FA_SCORE_WORD_CLOSE_INDEX, "]")
                           : fa_score_reader_take(r, FA_SCORE_WORD_CLOSE, "\",\" or \")\"");
            r->depth--;
        }
        if (st == FA_OK && !index && r->tree->node[*out].kind != FA_SCORE_TREE_NAME)
            return fa_score_fail(r->tree->name, t.at, "what is called here is no name; accepted: a function by its name");
        if (st == FA_OK && (st = fa_score_reader_add(r, &node, index ? FA_SCORE_TREE_INDEX : FA_SCORE_TREE_CALL, &t)) == FA_OK) {
            r->tree->node[node].a = *out;
            r->tree->node[node].b = inner;
            *out = node;
        }
    }
    return st;
}

static fa_status refused(fa_score_reader *r)
{
    switch (r->token.word) {
    case FA_SCORE_WORD_NIL:
        return fa_score_reader_expected(r, "a number or a truth: nothing is nil here");
    case FA_SCORE_WORD_FUNCTION:
        return fa_score_reader_expected(r, "a value; functions are written as \"function name(...)\" at the top of the text");
    case FA_SCORE_WORD_OPEN_BRACE:
        return fa_score_reader_expected(r, "a value; arrays are operands: x = f32 \"hq sk\"");
    case FA_SCORE_WORD_ELLIPSIS:
        return fa_score_reader_expected(r, "a value; functions have a fixed number of parameters");
    case FA_SCORE_WORD_LENGTH:
        return fa_score_reader_expected(r, "a value; lengths are sq, sk and off");
    default:
        return fa_score_reader_expected(r, "a value");
    }
}

static fa_status primary(fa_score_reader *r, int32_t *out)
{
    fa_score_token t = r->token;
    fa_status st;
    switch (t.word) {
    case FA_SCORE_WORD_INTEGER:
    case FA_SCORE_WORD_NUMBER:
    case FA_SCORE_WORD_TRUE:
    case FA_SCORE_WORD_FALSE:
        st = fa_score_reader_next(r);
        return st == FA_OK
                   ? fa_score_reader_add(
                         r, out, t.word == FA_SCORE_WORD_TRUE || t.word == FA_SCORE_WORD_FALSE ? FA_SCORE_TREE_TRUTH : FA_SCORE_TREE_NUMBER,
                         &t)
                   : st;
    case FA_SCORE_WORD_STRING: /* what reads it knows whether it is a shape */
        st = fa_score_reader_next(r);
        return st == FA_OK ? fa_score_reader_add(r, out, FA_SCORE_TREE_STRING, &t) : st;
    case FA_SCORE_WORD_NAME:
        st = name(r, out);
        return st == FA_OK ? suffixes(r, out) : st;
    case FA_SCORE_WORD_OPEN:
        if ((st = fa_score_reader_deeper(r)) != FA_OK || (st = fa_score_reader_next(r)) != FA_OK ||
            (st = fa_score_read_expression(r, out, 0)) != FA_OK)
            return st;
        r->depth--;
        return fa_score_reader_take(r, FA_SCORE_WORD_CLOSE, "an operator or \")\"");
    default:
        return refused(r);
    }
}

static fa_status unary(fa_score_reader *r, int32_t *out)
{
    fa_score_token t = r->token;
    int32_t inner;
    if (t.word != FA_SCORE_WORD_MINUS && t.word != FA_SCORE_WORD_NOT && t.word != FA_SCORE_WORD_TILDE)
        return primary(r, out);
    fa_status st = fa_score_reader_deeper(r);
    if (st == FA_OK)
        st = fa_score_reader_next(r);
    if (st == FA_OK)
        st = fa_score_read_expression(r, &inner, UNARY);
    if (st == FA_OK)
        st = fa_score_reader_add(r, out, FA_SCORE_TREE_UNARY, &t);
    if (st == FA_OK)
        r->tree->node[*out].a = inner;
    r->depth--;
    return st;
}

fa_status fa_score_read_expression(fa_score_reader *r, int32_t *out, int above)
{
    fa_status st = unary(r, out);
    for (int chain = 1; st == FA_OK; chain++) {
        fa_score_token t = r->token;
        size_t i = 0;
        int32_t right, node;
        while (i < COUNT(binary) && binary[i].word != t.word)
            i++;
        if (i == COUNT(binary) || binary[i].left <= above)
            return FA_OK;
        if (t.word == FA_SCORE_WORD_CONCAT)
            return fa_score_reader_expected(r, "an operator on numbers: strings are not joined");
        if (chain > FA_SCORE_CHAIN_MAX)
            return fa_score_fail(r->tree->name, t.at, "more than %d operators in a row; accepted: up to that", FA_SCORE_CHAIN_MAX);
        bool turns = t.word == FA_SCORE_WORD_CARET; /* binds to the right, and so nests */
        if ((turns && (st = fa_score_reader_deeper(r)) != FA_OK) || (st = fa_score_reader_next(r)) != FA_OK ||
            (st = fa_score_read_expression(r, &right, binary[i].right)) != FA_OK ||
            (st = fa_score_reader_add(r, &node, FA_SCORE_TREE_BINARY, &t)) != FA_OK)
            return st;
        r->depth -= turns;
        r->tree->node[node].a = *out;
        r->tree->node[node].b = right;
        *out = node;
    }
    return st;
}
