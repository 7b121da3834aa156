/* reader: a word early, nodes in one array. */
#include "reader.h"
#include "gen/error.h"
#include <stdlib.h>

fa_status fa_score_reader_next(fa_score_reader *r)
{
    return fa_score_lexer_next(&r->lexer, &r->token);
}

fa_status fa_score_reader_add(fa_score_reader *r, int32_t *out, fa_score_kind kind, const fa_score_token *token)
{
    fa_score_tree *t = r->tree;
    if (t->n == t->room) {
        int32_t room = t->room ? t->room * 2 : 64;
        fa_score_tree_node *more = realloc(t->node, (size_t)room * sizeof *more);
        if (!more)
            return fa_fail(FA_NOMEM, "%s: host memory", t->name);
        t->node = more;
        t->room = room;
        t->n = t->n ? t->n : 1;
    }
    t->node[t->n] = (fa_score_tree_node){ .kind = kind, .token = *token };
    *out = t->n++;
    return FA_OK;
}

fa_status fa_score_reader_expected(fa_score_reader *r, const char *what)
{
    char text[80];
    return fa_score_fail(r->tree->name, r->token.at, "%s stands here; accepted: %s", fa_score_token_text(text, sizeof text, &r->token),
                         what);
}

fa_status fa_score_reader_take(fa_score_reader *r, fa_score_word word, const char *what)
{
    return r->token.word == word ? fa_score_reader_next(r) : fa_score_reader_expected(r, what);
}

fa_status fa_score_reader_deeper(fa_score_reader *r)
{
    if (++r->depth > FA_SCORE_NEST_MAX)
        return fa_score_fail(r->tree->name, r->token.at, "nested deeper than %d; accepted: parentheses, calls and blocks up to that",
                             FA_SCORE_NEST_MAX);
    return FA_OK;
}
