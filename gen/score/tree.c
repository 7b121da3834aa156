/* tree: statements of the text. */
#include "tree.h"
#include "read_expression.h"
#include <stdlib.h>

static fa_status block(fa_score_reader *r, int32_t *out);

/* Names, commas between; none: there may be no name. */
static fa_status names(fa_score_reader *r, int32_t *first, const char *what, bool none)
{
    int32_t last = 0, one = 0;
    int n = 0;
    *first = 0;
    if (none && r->token.word != FA_SCORE_WORD_NAME)
        return FA_OK;
    for (;; n++) {
        fa_score_token t = r->token;
        if (n == FA_SCORE_LIST_MAX)
            return fa_score_fail(r->tree->name, t.at, "more than %d names in a list; accepted: up to that", FA_SCORE_LIST_MAX);
        fa_status st = fa_score_reader_take(r, FA_SCORE_WORD_NAME, what);
        if (st == FA_OK)
            st = fa_score_reader_add(r, &one, FA_SCORE_TREE_NAME, &t);
        if (st != FA_OK)
            return st;
        if (last)
            r->tree->node[last].next = one;
        else
            *first = one;
        last = one;
        if (r->token.word != FA_SCORE_WORD_COMMA)
            return FA_OK;
        if ((st = fa_score_reader_next(r)) != FA_OK)
            return st;
    }
}

static fa_status function(fa_score_reader *r, int32_t *out)
{
    fa_score_token t = r->token;
    int32_t title = 0, parameters = 0, body = 0;
    fa_status st = fa_score_reader_next(r);
    fa_score_token own = r->token;
    if (st == FA_OK)
        st = fa_score_reader_take(r, FA_SCORE_WORD_NAME, "the function's name");
    if (st == FA_OK && r->depth)
        return fa_score_fail(r->tree->name, t.at, "a function inside another block; accepted: functions at the top of the text");
    if (st == FA_OK)
        st = fa_score_reader_add(r, &title, FA_SCORE_TREE_NAME, &own);
    if (st == FA_OK)
        st = fa_score_reader_take(r, FA_SCORE_WORD_OPEN, "\"(\" and the parameters");
    if (st == FA_OK)
        st = names(r, &parameters, "a parameter's name", true);
    if (st == FA_OK)
        st = fa_score_reader_take(r, FA_SCORE_WORD_CLOSE, "\",\" or \")\"");
    if (st == FA_OK)
        st = block(r, &body);
    if (st == FA_OK)
        st = fa_score_reader_take(r, FA_SCORE_WORD_END, "a statement or \"end\"");
    if (st == FA_OK)
        st = fa_score_reader_add(r, out, FA_SCORE_TREE_FUNCTION, &own);
    if (st == FA_OK) {
        r->tree->node[*out].a = title;
        r->tree->node[*out].b = parameters;
        r->tree->node[*out].c = body;
    }
    return st;
}

static fa_status assignment(fa_score_reader *r, int32_t *out, fa_score_kind kind)
{
    fa_score_token t = r->token;
    int32_t left, right = 0;
    fa_status st = names(r, &left, "a name", false);
    bool given = r->token.word == FA_SCORE_WORD_ASSIGN;
    if (st == FA_OK && r->token.word == FA_SCORE_WORD_LT)
        return fa_score_reader_expected(r, "\"=\": attributes such as <const> are not read");
    if (st == FA_OK && kind == FA_SCORE_TREE_ASSIGN && r->token.word == FA_SCORE_WORD_OPEN_INDEX)
        return fa_score_reader_expected(r, "\"=\": operands are read only");
    if (st == FA_OK && !given && kind == FA_SCORE_TREE_ASSIGN)
        return fa_score_reader_expected(r, "\"=\", as a statement is an assignment, local, if, for, do or return");
    if (st == FA_OK && given && (st = fa_score_reader_next(r)) == FA_OK)
        st = fa_score_read_list(r, &right, FA_SCORE_WORD_END_OF_TEXT, false);
    if (st == FA_OK)
        st = fa_score_reader_add(r, out, kind, &t);
    if (st == FA_OK) {
        r->tree->node[*out].a = left;
        r->tree->node[*out].b = right;
    }
    return st;
}

/* From "if" to its "end"; each branch hangs on c of the one before. */
static fa_status branches(fa_score_reader *r, int32_t *out)
{
    int32_t last = 0, clauses = 0;
    fa_score_word word = FA_SCORE_WORD_IF;
    while (word == FA_SCORE_WORD_IF || r->token.word == FA_SCORE_WORD_ELSEIF || r->token.word == FA_SCORE_WORD_ELSE) {
        fa_score_token t = r->token;
        int32_t condition = 0, body = 0, node;
        word = t.word;
        if (clauses++ == FA_SCORE_NEST_MAX)
            return fa_score_fail(r->tree->name, t.at, "more than %d branches; accepted: up to that", FA_SCORE_NEST_MAX);
        fa_status st = fa_score_reader_next(r);
        if (st == FA_OK && word != FA_SCORE_WORD_ELSE && (st = fa_score_read_expression(r, &condition, 0)) == FA_OK)
            st = fa_score_reader_take(r, FA_SCORE_WORD_THEN, "an operator or \"then\"");
        if (st == FA_OK)
            st = block(r, &body);
        if (st == FA_OK)
            st = fa_score_reader_add(r, &node, word == FA_SCORE_WORD_ELSE ? FA_SCORE_TREE_ELSE : FA_SCORE_TREE_IF, &t);
        if (st != FA_OK)
            return st;
        r->tree->node[node].a = condition;
        r->tree->node[node].b = body;
        if (last)
            r->tree->node[last].c = node;
        else
            *out = node;
        last = node;
        if (word == FA_SCORE_WORD_ELSE)
            break;
        word = FA_SCORE_WORD_ELSEIF;
    }
    return fa_score_reader_take(r, FA_SCORE_WORD_END,
                                word == FA_SCORE_WORD_ELSE ? "a statement or \"end\"" : "a statement, \"elseif\", \"else\" or \"end\"");
}

static fa_status loop(fa_score_reader *r, int32_t *out)
{
    fa_score_token t = r->token, own;
    int32_t title, bounds, body;
    fa_status st = fa_score_reader_next(r);
    own = r->token;
    if (st == FA_OK)
        st = fa_score_reader_take(r, FA_SCORE_WORD_NAME, "the name that counts");
    if (st == FA_OK && (r->token.word == FA_SCORE_WORD_COMMA || r->token.word == FA_SCORE_WORD_IN))
        return fa_score_reader_expected(r, "\"=\": loops count from a number to a number");
    if (st == FA_OK)
        st = fa_score_reader_take(r, FA_SCORE_WORD_ASSIGN, "\"=\"");
    if (st == FA_OK)
        st = fa_score_reader_add(r, &title, FA_SCORE_TREE_NAME, &own);
    if (st == FA_OK)
        st = fa_score_read_list(r, &bounds, FA_SCORE_WORD_DO, false);
    if (st == FA_OK)
        st = fa_score_reader_take(r, FA_SCORE_WORD_DO, "\",\" or \"do\"");
    if (st == FA_OK)
        st = block(r, &body);
    if (st == FA_OK)
        st = fa_score_reader_take(r, FA_SCORE_WORD_END, "a statement or \"end\"");
    if (st == FA_OK)
        st = fa_score_reader_add(r, out, FA_SCORE_TREE_FOR, &t);
    if (st == FA_OK) {
        r->tree->node[*out].a = title;
        r->tree->node[*out].b = bounds;
        r->tree->node[*out].c = body;
    }
    return st;
}

static fa_status result(fa_score_reader *r, int32_t *out)
{
    fa_score_token t = r->token;
    int32_t value;
    fa_status st = fa_score_reader_next(r);
    if (st == FA_OK && (r->token.word == FA_SCORE_WORD_END || r->token.word == FA_SCORE_WORD_SEMICOLON))
        return fa_score_reader_expected(r, "the value to return");
    if (st == FA_OK)
        st = fa_score_read_expression(r, &value, 0);
    if (st == FA_OK && r->token.word == FA_SCORE_WORD_COMMA)
        return fa_score_reader_expected(r, "\"end\": a function returns one value");
    if (st == FA_OK)
        st = fa_score_reader_add(r, out, FA_SCORE_TREE_RETURN, &t);
    if (st == FA_OK)
        r->tree->node[*out].a = value;
    return st;
}

static fa_status statement(fa_score_reader *r, int32_t *out)
{
    fa_score_token t = r->token;
    fa_status st;
    switch (t.word) {
    case FA_SCORE_WORD_FUNCTION:
        return function(r, out);
    case FA_SCORE_WORD_LOCAL:
        if ((st = fa_score_reader_next(r)) != FA_OK)
            return st;
        return r->token.word == FA_SCORE_WORD_FUNCTION ? function(r, out) : assignment(r, out, FA_SCORE_TREE_LOCAL);
    case FA_SCORE_WORD_NAME:
        return assignment(r, out, FA_SCORE_TREE_ASSIGN);
    case FA_SCORE_WORD_RETURN:
        return r->depth ? result(r, out) : fa_score_reader_expected(r, "a function around it");
    case FA_SCORE_WORD_IF:
        return branches(r, out);
    case FA_SCORE_WORD_FOR:
        return loop(r, out);
    case FA_SCORE_WORD_DO: {
        int32_t body;
        if ((st = fa_score_reader_next(r)) != FA_OK || (st = block(r, &body)) != FA_OK ||
            (st = fa_score_reader_take(r, FA_SCORE_WORD_END, "a statement or \"end\"")) != FA_OK ||
            (st = fa_score_reader_add(r, out, FA_SCORE_TREE_DO, &t)) != FA_OK)
            return st;
        r->tree->node[*out].b = body;
        return FA_OK;
    }
    case FA_SCORE_WORD_WHILE:
    case FA_SCORE_WORD_REPEAT:
        return fa_score_reader_expected(r, "for, from a constant to a constant: how often a loop runs is known beforehand");
    case FA_SCORE_WORD_BREAK:
    case FA_SCORE_WORD_GOTO:
    case FA_SCORE_WORD_LABEL:
        return fa_score_reader_expected(r, "if and return: nothing jumps");
    default:
        return fa_score_reader_expected(r, "a statement: an assignment, local, if, for, do, function or return");
    }
}

/* Statements up to a word that ends the block around them. */
static fa_status block(fa_score_reader *r, int32_t *first)
{
    int32_t last = 0, one = 0;
    *first = 0;
    fa_status st = fa_score_reader_deeper(r);
    while (st == FA_OK) {
        switch (r->token.word) {
        case FA_SCORE_WORD_END:
        case FA_SCORE_WORD_ELSE:
        case FA_SCORE_WORD_ELSEIF:
        case FA_SCORE_WORD_UNTIL:
        case FA_SCORE_WORD_END_OF_TEXT:
            r->depth--;
            return FA_OK;
        case FA_SCORE_WORD_SEMICOLON:
            st = fa_score_reader_next(r);
            continue;
        default:
            break;
        }
        if (last && r->tree->node[last].kind == FA_SCORE_TREE_RETURN)
            return fa_score_reader_expected(r, "\"end\": return ends its block");
        if ((st = statement(r, &one)) != FA_OK)
            return st;
        if (last)
            r->tree->node[last].next = one;
        else
            *first = one;
        last = one;
    }
    return st;
}

fa_status fa_score_tree_read(fa_score_tree *tree, const char *name, const char *text, size_t n)
{
    fa_score_reader r = { .tree = tree, .depth = -1 }; /* the top of the text is no block */
    *tree = (fa_score_tree){ .name = name };
    fa_status st = fa_score_lexer_open(&r.lexer, name, text, n);
    if (st == FA_OK)
        st = fa_score_reader_next(&r);
    if (st == FA_OK)
        st = block(&r, &tree->first);
    return st == FA_OK && r.token.word != FA_SCORE_WORD_END_OF_TEXT ? fa_score_reader_expected(&r, "a statement or the end of the text")
                                                                    : st;
}

void fa_score_tree_free(fa_score_tree *tree)
{
    free(tree->node);
    *tree = (fa_score_tree){ .name = NULL };
}
