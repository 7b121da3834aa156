/* tree: the text of a score program as its grammar has it. Nodes lie in one array and name each other by number; 0 is none. */
#ifndef FA_GEN_SCORE_TREE_H
#define FA_GEN_SCORE_TREE_H
#include "lexer.h"

typedef enum fa_score_kind {
    FA_SCORE_TREE_NONE,
    /* expressions */
    FA_SCORE_TREE_NUMBER, /* token */
    FA_SCORE_TREE_STRING,
    FA_SCORE_TREE_TRUTH, /* token: true or false */
    FA_SCORE_TREE_NAME,
    FA_SCORE_TREE_INDEX,  /* a[b] */
    FA_SCORE_TREE_CALL,   /* a: the name; b: the first argument, a list by `next` */
    FA_SCORE_TREE_UNARY,  /* token: the sign; a */
    FA_SCORE_TREE_BINARY, /* token: the sign; a, b */
    /* statements, lists by `next` */
    FA_SCORE_TREE_LOCAL,    /* a: names; b: values, may be none */
    FA_SCORE_TREE_ASSIGN,   /* a: names; b: values */
    FA_SCORE_TREE_RETURN,   /* a: the value */
    FA_SCORE_TREE_IF,       /* a: the condition; b: the block; c: the next IF of an elseif, or an ELSE */
    FA_SCORE_TREE_ELSE,     /* b: the block */
    FA_SCORE_TREE_FOR,      /* a: the name; b: the bounds, two or three; c: the block */
    FA_SCORE_TREE_DO,       /* b: the block */
    FA_SCORE_TREE_FUNCTION, /* a: the name; b: the parameters; c: the block */
} fa_score_kind;

typedef struct fa_score_tree_node {
    fa_score_kind kind;
    int32_t a, b, c, next;
    fa_score_token token;
} fa_score_tree_node;

typedef struct fa_score_tree {
    const char *name; /* of the text, in messages */
    fa_score_tree_node *node;
    int32_t n, room;
    int32_t first; /* statement of the text */
} fa_score_tree;

/* Reads the text, which stays where it is as long as the tree. name: of it, in messages. FA_INVALID with line and column, FA_NOMEM. Free
 * the tree in either case. */
fa_status fa_score_tree_read(fa_score_tree *tree, const char *name, const char *text, size_t n);
void fa_score_tree_free(fa_score_tree *tree);
#endif
