/* reader: the words of a score program's text one after the other, and the tree that grows. How deep the grammar nests is counted, so that
 * no text uses up the stack. */
#ifndef FA_GEN_SCORE_READER_H
#define FA_GEN_SCORE_READER_H
#include "limits.h"
#include "tree.h"

typedef struct fa_score_reader {
    fa_score_tree *tree;
    fa_score_lexer lexer;
    fa_score_token token; /* the next one */
    int depth;
} fa_score_reader;

fa_status fa_score_reader_next(fa_score_reader *r);
/* A new node. FA_NOMEM */
fa_status fa_score_reader_add(fa_score_reader *r, int32_t *out, fa_score_kind kind, const fa_score_token *token);
/* FA_INVALID: the next word stands where something else is accepted. */
fa_status fa_score_reader_expected(fa_score_reader *r, const char *what);
/* The next word is this one, and is passed. */
fa_status fa_score_reader_take(fa_score_reader *r, fa_score_word word, const char *what);
/* One level more; whoever leaves it takes one from depth. */
fa_status fa_score_reader_deeper(fa_score_reader *r);
#endif
