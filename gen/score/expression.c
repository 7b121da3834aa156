/* expression: numbers and truths of the text as nodes. */
#include "expression.h"
#include <stdio.h>

static fa_status expression(fa_lowering *l, int32_t at, fa_lowered *out);

/* A number or a truth, of an expression where one is needed. */
fa_status fa_expression_node(fa_lowering *l, int32_t at, int *out)
{
    fa_lowered v;
    fa_status st = expression(l, at, &v);
    if (st != FA_OK)
        return st;
    *out = v.node;
    if (v.kind == FA_LOWERED_MAYBE)
        return FA_LOWERING_FAIL(l, at, "\"c and x\" is false where c does not hold; accepted: c and x or y");
    return v.kind == FA_LOWERED_NODE ? FA_OK : FA_LOWERING_FAIL(l, at, "this has no value on some path; accepted: a value on every path");
}

fa_status fa_expression_truth(fa_lowering *l, int32_t at, int *out, const char *what)
{
    fa_status st = fa_expression_node(l, at, out);
    if (st == FA_OK && l->ir->node[*out].type != FA_SCORE_BOOL)
        return FA_LOWERING_FAIL(l, at, "%s a number, which Lua takes for true; accepted: a truth, by a comparison", what);
    return st;
}

static fa_status name(fa_lowering *l, int32_t at, fa_lowered *out)
{
    const fa_score_token *t = &fa_lowering_tree_node(l, at)->token;
    fa_score_site here = fa_lowering_site(l, at);
    for (int i = l->n - 1; i >= l->first; i--)
        if (l->locals[i].n == t->n && !memcmp(l->locals[i].s, t->s, (size_t)t->n)) {
            *out = l->locals[i].value;
            return out->kind == FA_LOWERED_NONE
                       ? FA_LOWERING_FAIL(l, at, "%.*s has no value here on some path; accepted: a value on every path", t->n, t->s)
                       : FA_OK;
        }
    const fa_score_global *g = fa_score_global_find(&l->globals, t);
    const fa_score_name *own = fa_score_name_find(t->s, t->n);
    if (g && g->kind == FA_SCORE_GLOBAL_CONSTANT)
        *out = fa_lowering_node_value(g->of);
    else if (g && g->kind == FA_SCORE_GLOBAL_OPERAND && l->ir->operand[g->of].scalar)
        *out = fa_lowering_node_value(fa_score_ir_scalar(l->ir, g->of));
    else if (g && g->kind == FA_SCORE_GLOBAL_OPERAND)
        return FA_LOWERING_FAIL(l, at, "%.*s is an array of %d indices; accepted: %.*s with all of them", t->n, t->s,
                                l->ir->operand[g->of].rank, t->n, t->s);
    else if (own && own->kind == FA_SCORE_NAME_LENGTH)
        *out = fa_lowering_node_value(fa_score_ir_leaf(l->ir, own->op));
    else if (own && own->kind == FA_SCORE_NAME_CONSTANT)
        *out = fa_lowering_node_value(fa_score_ir_number(l->ir, FA_SCORE_F32, own->value));
    else if (g || own)
        return FA_LOWERING_FAIL(l, at, "%.*s is a function; accepted: a call of it", t->n, t->s);
    else
        return FA_LOWERING_FAIL(
            l, at, "%.*s is not defined; accepted: parameters, locals, constants, operands, functions, and sq, sk, off, group", t->n, t->s);
    return fa_score_made(&here, out->node);
}

static fa_status lookup(fa_lowering *l, int32_t at, fa_lowered *out)
{
    int32_t chain[FA_SCORE_RANK_MAX + 1], n = 0, base = at;
    int index[FA_SCORE_RANK_MAX];
    char shape[160];
    fa_score_site here = fa_lowering_site(l, at);
    for (; fa_lowering_tree_node(l, base)->kind == FA_SCORE_TREE_INDEX; base = fa_lowering_tree_node(l, base)->a)
        if (n <= FA_SCORE_RANK_MAX)
            chain[n++] = fa_lowering_tree_node(l, base)->b;
    const fa_score_token *t = &fa_lowering_tree_node(l, base)->token;
    const fa_score_global *g = fa_lowering_tree_node(l, base)->kind == FA_SCORE_TREE_NAME ? fa_score_global_find(&l->globals, t) : NULL;
    if (!g || g->kind != FA_SCORE_GLOBAL_OPERAND)
        return FA_LOWERING_FAIL(l, base, "what is indexed here is no array; accepted: an operand: x = f32 \"hq sk\"");
    const fa_score_operand *o = &l->ir->operand[g->of];
    fa_score_shape_print(shape, sizeof shape, o);
    if (o->scalar)
        return FA_LOWERING_FAIL(l, base, "%.*s is a scalar; accepted: no index", t->n, t->s);
    if (n != o->rank)
        return FA_LOWERING_FAIL(l, base, "%.*s has %d indices (\"%s\"), %s%d given", t->n, t->s, o->rank, shape,
                                n > FA_SCORE_RANK_MAX ? "more than " : "", n > FA_SCORE_RANK_MAX ? FA_SCORE_RANK_MAX : n);
    for (int k = 0; k < n; k++) {
        int32_t of = chain[n - 1 - k];
        fa_status st = fa_expression_node(l, of, &index[k]);
        if (st != FA_OK)
            return st;
        if (l->ir->node[index[k]].type != FA_SCORE_I32)
            return FA_LOWERING_FAIL(l, of, "index %d of %.*s is %s; accepted: an integer, of a number by floor", k + 1, t->n, t->s,
                                    l->ir->node[index[k]].type == FA_SCORE_BOOL ? "a truth" : "a number with a fraction");
        if (l->ir->node[index[k]].depends & FA_SCORE_OF_S)
            return FA_LOWERING_FAIL(l, of, "index %d of %.*s depends on the score; accepted: functions of b, h, i, j", k + 1, t->n, t->s);
        if (l->ir->node[index[k]].lookups >= FA_SCORE_LOOKUPS_MAX)
            return FA_LOWERING_FAIL(l, of, "more than %d lookups in the index of each other; accepted: up to that", FA_SCORE_LOOKUPS_MAX);
    }
    *out = fa_lowering_node_value(fa_score_ir_lookup(l->ir, g->of, index));
    return fa_score_made(&here, out->node);
}

static fa_status call(fa_lowering *l, int32_t at, fa_lowered *out)
{
    const fa_score_tree_node *c = fa_lowering_tree_node(l, at);
    const fa_score_token *t = &fa_lowering_tree_node(l, c->a)->token;
    const fa_score_global *g = fa_score_global_find(&l->globals, t);
    const fa_score_name *own = g ? NULL : fa_score_name_find(t->s, t->n);
    int n = fa_lowering_arguments_of(l, c->b), node[FA_SCORE_LIST_MAX] = { 0 }, k = 0;
    fa_lowered given[FA_SCORE_LIST_MAX];
    bool function = own && (own->kind == FA_SCORE_NAME_FUNCTION || own->kind == FA_SCORE_NAME_OTHER);
    if (own && (own->kind == FA_SCORE_NAME_ARRAY || own->kind == FA_SCORE_NAME_SCALAR))
        return FA_LOWERING_FAIL(l, c->a, "%s declares an operand; accepted: at the top of the text, name = %s(...)", own->word, own->word);
    if (!function && !(g && g->kind == FA_SCORE_GLOBAL_FUNCTION))
        return FA_LOWERING_FAIL(
            l, c->a,
            "%.*s is no function that is defined; accepted: those of the text, abs, ceil, exp, exp2, floor, log, log2, max, min, "
            "rsqrt, sigmoid, sqrt, tanh, tanh_exact",
            t->n, t->s);
    int least = function ? own->least : fa_lowering_arguments_of(l, fa_lowering_tree_node(l, g->of)->b),
        most = function ? own->most : least;
    if (n < least || n > most)
        return FA_LOWERING_FAIL(l, c->a, "%.*s has %d arguments; accepted: %d%s", t->n, t->s, n, least, most > least ? " or more" : "");
    for (int32_t x = c->b; x; x = fa_lowering_tree_node(l, x)->next, k++) {
        fa_status st = fa_expression_node(l, x, &node[k]);
        if (st != FA_OK)
            return st;
        given[k] = fa_lowering_node_value(node[k]);
    }
    fa_score_site here = fa_lowering_site(l, c->a);
    *out = fa_lowering_node_value(-1);
    return function ? fa_score_function(&here, &out->node, own, node, n) : l->apply(l, c->a, g->of, given, &out->node);
}

/* What a condition of "and" and "or" is. */
static fa_status check_side(fa_lowering *l, int32_t at, const fa_lowered *v, const char *sign)
{
    if (v->kind == FA_LOWERED_NONE)
        return FA_LOWERING_FAIL(l, at, "this has no value on some path; accepted: a value on every path");
    if (v->kind == FA_LOWERED_NODE && l->ir->node[v->node].type != FA_SCORE_BOOL)
        return FA_LOWERING_FAIL(l, at, "%s after a number, which Lua takes for true; accepted: a truth, by a comparison", sign);
    return FA_OK;
}

static fa_status conjunction(fa_lowering *l, int32_t at, const fa_lowered *x, const fa_lowered *y, fa_lowered *out)
{
    fa_score_site here = fa_lowering_site(l, at);
    if (x->kind == FA_LOWERED_MAYBE)
        return FA_LOWERING_FAIL(l, at, "\"c and x and y\", where x is a number; accepted: truths before the last and");
    bool number = y->kind == FA_LOWERED_NODE && l->ir->node[y->node].type != FA_SCORE_BOOL;
    int both = number ? x->node : fa_score_ir_make(l->ir, FA_SCORE_AND, x->node, y->kind == FA_LOWERED_MAYBE ? y->condition : y->node, -1);
    *out = number || y->kind == FA_LOWERED_MAYBE ? (fa_lowered){ FA_LOWERED_MAYBE, y->node, both } : fa_lowering_node_value(both);
    return fa_score_made(&here, both);
}

static fa_status disjunction(fa_lowering *l, int32_t at, const fa_lowered *x, const fa_lowered *y, fa_lowered *out)
{
    fa_score_site here = fa_lowering_site(l, at);
    bool number = y->kind == FA_LOWERED_MAYBE || l->ir->node[y->node].type != FA_SCORE_BOOL;
    if ((x->kind == FA_LOWERED_MAYBE) != number)
        return FA_LOWERING_FAIL(l, at, "a truth on one side of or and a number on the other; accepted: two truths, or c and x or y");
    if (!number) {
        *out = fa_lowering_node_value(fa_score_ir_make(l->ir, FA_SCORE_OR, x->node, y->node, -1));
        return fa_score_made(&here, out->node);
    }
    out->kind = y->kind;
    out->condition = y->kind == FA_LOWERED_MAYBE ? fa_score_ir_make(l->ir, FA_SCORE_OR, x->condition, y->condition, -1) : 0;
    fa_status st = fa_score_made(&here, out->condition);
    return st == FA_OK ? fa_score_pick(&here, &out->node, x->condition, x->node, y->node) : st;
}

static fa_status binary(fa_lowering *l, int32_t at, fa_lowered *out)
{
    const fa_score_tree_node *b = fa_lowering_tree_node(l, at), *right = fa_lowering_tree_node(l, b->b);
    fa_score_site here = fa_lowering_site(l, at);
    bool logic = b->token.word == FA_SCORE_WORD_AND || b->token.word == FA_SCORE_WORD_OR;
    fa_lowered x, y;
    int left_node, right_node;
    fa_status st;
    if (logic) {
        st = expression(l, b->a, &x);
        if (st == FA_OK)
            st = check_side(l, b->a, &x, b->token.word == FA_SCORE_WORD_AND ? "and" : "or");
        if (st == FA_OK)
            st = expression(l, b->b, &y);
        if (st == FA_OK && y.kind == FA_LOWERED_NONE)
            st = check_side(l, b->b, &y, "");
        if (st != FA_OK)
            return st;
        return b->token.word == FA_SCORE_WORD_AND ? conjunction(l, at, &x, &y, out) : disjunction(l, at, &x, &y, out);
    }
    st = fa_expression_node(l, b->a, &left_node);
    if (st == FA_OK)
        st = fa_expression_node(l, b->b, &right_node);
    if (right->kind == FA_SCORE_TREE_NAME || right->kind == FA_SCORE_TREE_NUMBER) {
        here.divisor = right->token.s;
        here.divisor_n = right->token.n;
    }
    *out = fa_lowering_node_value(-1);
    return st == FA_OK ? fa_score_binary(&here, &out->node, left_node, right_node) : st;
}

static fa_status shallow(fa_lowering *l, int32_t at, fa_lowered *out)
{
    const fa_score_tree_node *x = fa_lowering_tree_node(l, at);
    fa_score_site here = fa_lowering_site(l, at);
    fa_status st;
    int inner;
    switch (x->kind) {
    case FA_SCORE_TREE_NUMBER:
        *out = fa_lowering_node_value(
            fa_score_ir_number(l->ir, x->token.word == FA_SCORE_WORD_INTEGER ? FA_SCORE_I32 : FA_SCORE_F32, x->token.value));
        return fa_score_made(&here, out->node);
    case FA_SCORE_TREE_TRUTH:
        *out = fa_lowering_node_value(fa_score_ir_number(l->ir, FA_SCORE_BOOL, x->token.word == FA_SCORE_WORD_TRUE));
        return fa_score_made(&here, out->node);
    case FA_SCORE_TREE_NAME:
        return name(l, at, out);
    case FA_SCORE_TREE_INDEX:
        return lookup(l, at, out);
    case FA_SCORE_TREE_CALL:
        return call(l, at, out);
    case FA_SCORE_TREE_BINARY:
        return binary(l, at, out);
    case FA_SCORE_TREE_UNARY:
        st = fa_expression_node(l, x->a, &inner);
        *out = fa_lowering_node_value(-1);
        return st == FA_OK ? fa_score_unary(&here, &out->node, inner) : st;
    default:
        return FA_LOWERING_FAIL(l, at, "a string stands here; accepted: strings as the shapes of operands alone");
    }
}

static fa_status expression(fa_lowering *l, int32_t at, fa_lowered *out)
{
    fa_status st = fa_lowering_step(l, at);
    l->depth++;
    if (st == FA_OK)
        st = shallow(l, at, out);
    l->depth--;
    return st;
}
