/* lowering: what evaluation of a score program's text has in hand: expressions (expression.h), statements (statement.h). */
#ifndef FA_GEN_SCORE_LOWERING_H
#define FA_GEN_SCORE_LOWERING_H
#include "arithmetic.h"
#include "declare.h"
#include "tree.h"
#include <string.h>

#define FA_LOWERING_DEPTH_MAX 192 /* of the recursion */

typedef enum fa_lowered_kind {
    FA_LOWERED_NONE, /* a name without a value, or with values of different kinds */
    FA_LOWERED_NODE,
    FA_LOWERED_MAYBE /* "c and x": x where the truth c holds, else false */
} fa_lowered_kind;

typedef struct fa_lowered {
    fa_lowered_kind kind;
    int node, condition;
} fa_lowered;

typedef struct fa_lowering_local {
    const char *s;
    int32_t n;
    fa_lowered value;
} fa_lowering_local;

/* What has been returned so far: a truth, and the value where it holds. */
typedef struct fa_flow {
    int returned;
    fa_lowered value;
} fa_flow;

typedef struct fa_lowering fa_lowering;
struct fa_lowering {
    const fa_score_tree *tree;
    fa_score_ir *ir;
    fa_score_globals globals;
    fa_lowering_local locals[FA_SCORE_LOCALS_MAX]; /* of the functions that are being written out, the innermost last */
    int n, first;                                  /* names in all; the first of the innermost function */
    int32_t active[FA_SCORE_NEST_MAX];             /* these functions */
    int calls, steps, depth;
    /* Writes out a function with arguments: statement.c, which calls expression.c. */
    fa_status (*apply)(fa_lowering *l, int32_t at, int32_t function, const fa_lowered *given, int *out);
};

static inline const fa_score_tree_node *fa_lowering_tree_node(const fa_lowering *l, int32_t at)
{
    return &l->tree->node[at];
}

static inline fa_score_site fa_lowering_site(const fa_lowering *l, int32_t at)
{
    return (fa_score_site){ .ir = l->ir, .name = l->tree->name, .token = fa_lowering_tree_node(l, at)->token };
}

#define FA_LOWERING_FAIL(l, where, ...) fa_score_fail((l)->tree->name, fa_lowering_tree_node(l, where)->token.at, __VA_ARGS__)

static inline fa_status fa_lowering_step(fa_lowering *l, int32_t at)
{
    if (++l->steps > FA_SCORE_STEPS_MAX)
        return FA_LOWERING_FAIL(l, at, "the program takes more than %d steps, loops and calls written out; accepted: up to that",
                                FA_SCORE_STEPS_MAX);
    if (l->depth >= FA_LOWERING_DEPTH_MAX)
        return FA_LOWERING_FAIL(l, at, "calls and expressions are nested deeper than %d; accepted: up to that", FA_LOWERING_DEPTH_MAX);
    return FA_OK;
}

static inline fa_lowered fa_lowering_node_value(int node)
{
    return (fa_lowered){ FA_LOWERED_NODE, node, -1 };
}

static inline bool fa_lowering_holds(const fa_lowering *l, int truth, int what)
{
    const fa_score_node *node = &l->ir->node[truth];
    return node->op == FA_SCORE_CONST && node->value == what;
}

static inline int fa_lowering_arguments_of(const fa_lowering *l, int32_t first)
{
    int n = 0;
    for (; first; first = fa_lowering_tree_node(l, first)->next)
        n++;
    return n;
}

static inline fa_status fa_lowering_push(fa_lowering *l, int32_t at, const fa_score_token *t, fa_lowered v)
{
    if (l->n == FA_SCORE_LOCALS_MAX)
        return FA_LOWERING_FAIL(l, at, "more than %d names at a time; accepted: up to that", FA_SCORE_LOCALS_MAX);
    l->locals[l->n++] = (fa_lowering_local){ t->s, t->n, v };
    return FA_OK;
}
#endif
