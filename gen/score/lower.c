/* lower: what stands at the top of the text, then score, mask and sink. */
#include "lower.h"
#include "expression.h"
#include "statement.h"

#define SCALARS "scalar(value), scalar(value, type), scalar(value, type, least, most), where type is \"int\" or \"float\""

static fa_status constant(fa_lowering *l, int32_t at, int *out)
{
    fa_status st = fa_expression_node(l, at, out);
    if (st == FA_OK && l->ir->node[*out].op != FA_SCORE_CONST)
        return FA_LOWERING_FAIL(l, at, "this is no constant; accepted at the top of the text: constants, operands, functions");
    return st;
}

/* The numbers of "scalar(...)". */
static fa_status scalar(fa_lowering *l, int32_t at, fa_score_operand *o)
{
    const fa_score_tree_node *c = fa_lowering_tree_node(l, at);
    double v[3] = { 0, 0, 0 };
    int n = 0, given = 0;
    for (int32_t x = c->b; x; x = fa_lowering_tree_node(l, x)->next, given++) {
        int node;
        if (given == 1)
            continue; /* its type */
        fa_status st = constant(l, x, &node);
        if (st != FA_OK)
            return st;
        if (l->ir->node[node].type == FA_SCORE_BOOL)
            return FA_LOWERING_FAIL(l, x, "a truth in scalar; accepted: " SCALARS);
        v[n++] = l->ir->node[node].value;
    }
    int32_t type = given > 1 ? fa_lowering_tree_node(l, c->b)->next : 0;
    return fa_score_declare_scalar(o, l->tree->name, &c->token, type ? &fa_lowering_tree_node(l, type)->token : NULL, v, n);
}

static fa_status declare(fa_lowering *l, int32_t at, const fa_score_token *title, const fa_score_name *own)
{
    const fa_score_tree_node *c = fa_lowering_tree_node(l, at);
    int n = fa_lowering_arguments_of(l, c->b);
    fa_score_operand *o = &l->ir->operand[l->ir->operands];
    fa_status st;
    if (l->ir->operands == FA_SCORE_OPERANDS_MAX)
        return FA_LOWERING_FAIL(l, at, "more than %d operands; accepted: up to that, scalars among them", FA_SCORE_OPERANDS_MAX);
    fa_score_declare_begin(o, title);
    if (own->kind == FA_SCORE_NAME_SCALAR) {
        if (n < 1 || n > 4 || n == 3)
            return FA_LOWERING_FAIL(l, at, "scalar has %d arguments; accepted: " SCALARS, n);
        st = scalar(l, at, o);
    } else if (n != 1 || fa_lowering_tree_node(l, c->b)->kind != FA_SCORE_TREE_STRING)
        return FA_LOWERING_FAIL(l, at, "%s without a shape; accepted: %s \"hq sk\"", own->word, own->word);
    else
        st = fa_score_declare_array(o, l->tree->name, own->element, &fa_lowering_tree_node(l, c->b)->token);
    if (st == FA_OK)
        st = fa_score_global_add(&l->globals, l->tree->name, title, FA_SCORE_GLOBAL_OPERAND, l->ir->operands);
    l->ir->operands += st == FA_OK;
    return st;
}

static fa_status global(fa_lowering *l, int32_t at)
{
    const fa_score_tree_node *s = fa_lowering_tree_node(l, at);
    if (s->kind == FA_SCORE_TREE_FUNCTION)
        return fa_score_global_add(&l->globals, l->tree->name, &s->token, FA_SCORE_GLOBAL_FUNCTION, at);
    if (s->kind != FA_SCORE_TREE_ASSIGN && s->kind != FA_SCORE_TREE_LOCAL)
        return FA_LOWERING_FAIL(l, at, "a statement at the top of the text; accepted there: constants, operands, functions");
    const fa_score_token *title = &fa_lowering_tree_node(l, s->a)->token;
    if (fa_lowering_tree_node(l, s->a)->next || !s->b || fa_lowering_tree_node(l, s->b)->next)
        return FA_LOWERING_FAIL(l, at, "several names, or none with a value; accepted at the top of the text: name = value");
    const fa_score_tree_node *v = fa_lowering_tree_node(l, s->b);
    const fa_score_token *f = v->kind == FA_SCORE_TREE_CALL ? &fa_lowering_tree_node(l, v->a)->token : NULL;
    const fa_score_name *own = f ? fa_score_name_find(f->s, f->n) : NULL;
    if (own && (own->kind == FA_SCORE_NAME_ARRAY || own->kind == FA_SCORE_NAME_SCALAR))
        return declare(l, s->b, title, own);
    int node;
    fa_status st = constant(l, s->b, &node);
    return st == FA_OK ? fa_score_global_add(&l->globals, l->tree->name, title, FA_SCORE_GLOBAL_CONSTANT, node) : st;
}

/* score, mask or sink, whose parameters are the indices. */
static fa_status root(fa_lowering *l, const fa_score_global *g, const fa_score_name *own)
{
    static const fa_score_op leaf[] = { FA_SCORE_S, FA_SCORE_B, FA_SCORE_H, FA_SCORE_I, FA_SCORE_J };
    const fa_score_tree_node *f = fa_lowering_tree_node(l, g->of);
    fa_lowered given[5];
    int n = fa_lowering_arguments_of(l, f->b), out, skip = own->root != FA_SCORE_ROOT_SCORE;
    if (n != own->least)
        return FA_LOWERING_FAIL(l, g->of, "%s has %d parameters; accepted: score(s, b, h, i, j), mask(b, h, i, j), sink(b, h, i)",
                                own->word, n);
    for (int k = 0; k < n; k++)
        given[k] = fa_lowering_node_value(fa_score_ir_leaf(l->ir, leaf[k + skip]));
    fa_status st = fa_statement_apply(l, g->of, g->of, given, &out);
    if (st != FA_OK)
        return st;
    bool truth = l->ir->node[out].type == FA_SCORE_BOOL;
    if (truth != (own->root == FA_SCORE_ROOT_MASK))
        return FA_LOWERING_FAIL(l, g->of, "%s returns %s; accepted: %s", own->word, truth ? "a truth" : "a number",
                                truth ? "a number" : "a truth");
    fa_score_site here = fa_lowering_site(l, g->of);
    out = truth ? out : fa_score_fraction(l->ir, out);
    l->ir->root[own->root] = (int16_t)out;
    return fa_score_made(&here, out);
}

/* Every operand is read, and there are no more nodes than a program may have. */
static fa_status finish(fa_lowering *l, const fa_score_global *last)
{
    bool read[FA_SCORE_OPERANDS_MAX] = { false };
    int n = fa_score_ir_tidy(l->ir);
    if (n > FA_SCORE_NODES_MAX)
        return fa_score_fail(l->tree->name, last->token.at, "the program has %d nodes; accepted: at most %d, loops and calls written out",
                             n, FA_SCORE_NODES_MAX);
    for (int i = 0; i < n; i++)
        if (l->ir->node[i].operand >= 0)
            read[l->ir->node[i].operand] = true;
    for (int i = 0; i < l->globals.n; i++) {
        const fa_score_global *g = &l->globals.global[i];
        if (g->kind == FA_SCORE_GLOBAL_OPERAND && !read[g->of])
            return fa_score_fail(l->tree->name, g->token.at,
                                 "the operand %.*s is read nowhere; accepted: operands that score, mask or sink read", g->token.n,
                                 g->token.s);
    }
    return FA_OK;
}

fa_status fa_score_lower(fa_score_ir *out, const fa_score_tree *tree)
{
    fa_lowering l = { .tree = tree, .ir = out, .apply = fa_statement_apply };
    const fa_score_global *last = NULL;
    fa_status st = FA_OK;
    out->n = out->operands = 0;
    out->root[0] = out->root[1] = out->root[2] = -1;
    for (int32_t at = tree->first; at && st == FA_OK; at = fa_lowering_tree_node(&l, at)->next)
        st = global(&l, at);
    for (int i = 0; i < l.globals.n && st == FA_OK; i++) {
        const fa_score_global *g = &l.globals.global[i];
        const fa_score_name *own = g->kind == FA_SCORE_GLOBAL_FUNCTION ? fa_score_name_find(g->token.s, g->token.n) : NULL;
        if (own && own->kind == FA_SCORE_NAME_ROOT)
            st = root(&l, last = g, own);
    }
    if (st == FA_OK && !last)
        return fa_score_fail(tree->name, (fa_score_place){ 1, 1 },
                             "there is no score, mask or sink; accepted: function score(s, b, h, i, j)");
    return st == FA_OK ? finish(&l, last) : st;
}
