/* statement: statements of the text change what names stand for; of a branch both sides are evaluated. */
#include "statement.h"
#include "expression.h"
#include <math.h>

static fa_status block(fa_lowering *l, int32_t first, fa_flow *f);

/* Local names, or values of those that are there. All values are computed before the first name has its own. */
static fa_status assign(fa_lowering *l, int32_t at)
{
    const fa_score_tree_node *s = fa_lowering_tree_node(l, at);
    int names = fa_lowering_arguments_of(l, s->a), values = fa_lowering_arguments_of(l, s->b), k = 0;
    fa_lowered v[FA_SCORE_LIST_MAX] = { { FA_LOWERED_NONE, -1, -1 } };
    if (values != names && !(s->kind == FA_SCORE_TREE_LOCAL && values == 0))
        return FA_LOWERING_FAIL(l, at, "%d names and %d values; accepted: as many of both", names, values);
    for (int32_t x = s->b; x; x = fa_lowering_tree_node(l, x)->next, k++) {
        int node;
        fa_status st = fa_expression_node(l, x, &node);
        if (st != FA_OK)
            return st;
        v[k] = fa_lowering_node_value(node);
    }
    k = 0;
    for (int32_t x = s->a; x; x = fa_lowering_tree_node(l, x)->next, k++) {
        const fa_score_token *t = &fa_lowering_tree_node(l, x)->token;
        int i = l->n - 1;
        if (s->kind == FA_SCORE_TREE_LOCAL) {
            fa_status st = fa_lowering_push(l, x, t, values ? v[k] : (fa_lowered){ FA_LOWERED_NONE, -1, -1 });
            if (st != FA_OK)
                return st;
            continue;
        }
        while (i >= l->first && (l->locals[i].n != t->n || memcmp(l->locals[i].s, t->s, (size_t)t->n) != 0))
            i--;
        if (i < l->first)
            return FA_LOWERING_FAIL(l, x, "%.*s is no local name; accepted: local %.*s = ..., in a function", t->n, t->s, t->n, t->s);
        l->locals[i].value = v[k];
    }
    return FA_OK;
}

/* The value after an if: of the branch that was taken. A branch that has returned has none. */
static fa_status merge(fa_lowering *l, int32_t at, int condition, fa_lowered x, bool x_ends, fa_lowered y, bool y_ends, fa_lowered *out)
{
    fa_score_site here = fa_lowering_site(l, at);
    *out = x_ends ? y : x;
    if (x_ends || y_ends)
        return FA_OK;
    bool alike = x.kind == FA_LOWERED_NODE && y.kind == FA_LOWERED_NODE &&
                 (l->ir->node[x.node].type == FA_SCORE_BOOL) == (l->ir->node[y.node].type == FA_SCORE_BOOL);
    *out = (fa_lowered){ alike ? FA_LOWERED_NODE : FA_LOWERED_NONE, -1, -1 };
    return alike ? fa_score_pick(&here, &out->node, condition, x.node, y.node) : FA_OK;
}

/* What the block of a branch leaves in the names around it. */
static fa_status branch(fa_lowering *l, int32_t at, int32_t body, bool chain, fa_flow *f, fa_lowered *left);

static fa_status branches(fa_lowering *l, int32_t at, fa_flow *f)
{
    const fa_score_tree_node *s = fa_lowering_tree_node(l, at);
    fa_score_site here = fa_lowering_site(l, at);
    fa_lowered x[FA_SCORE_LOCALS_MAX], y[FA_SCORE_LOCALS_MAX];
    fa_flow fx = *f, fy = *f;
    int condition;
    if (s->kind == FA_SCORE_TREE_ELSE)
        return block(l, s->b, f);
    fa_status st = fa_expression_truth(l, s->a, &condition, "the condition is");
    if (st != FA_OK)
        return st;
    if (fa_lowering_holds(l, condition, 1))
        return block(l, s->b, f);
    if (fa_lowering_holds(l, condition, 0))
        return s->c ? branches(l, s->c, f) : FA_OK;
    if ((st = branch(l, at, s->b, false, &fx, x)) != FA_OK || (st = branch(l, at, s->c, true, &fy, y)) != FA_OK)
        return st;
    bool x_ends = fa_lowering_holds(l, fx.returned, 1), y_ends = fa_lowering_holds(l, fy.returned, 1);
    for (int i = l->first; i < l->n; i++)
        if ((st = merge(l, at, condition, x[i], x_ends, y[i], y_ends, &l->locals[i].value)) != FA_OK)
            return st;
    bool x_none = fa_lowering_holds(l, fx.returned, 0), y_none = fa_lowering_holds(l, fy.returned, 0);
    if (x_none && y_none)
        return FA_OK;
    if ((st = fa_score_pick(&here, &f->returned, condition, fx.returned, fy.returned)) != FA_OK)
        return st;
    st = merge(l, at, condition, fx.value, x_none, fy.value, y_none, &f->value);
    return st == FA_OK && f->value.kind != FA_LOWERED_NODE
               ? FA_LOWERING_FAIL(l, at, "a number is returned on one path and a truth on another; accepted: two of a kind")
               : st;
}

static fa_status branch(fa_lowering *l, int32_t at, int32_t body, bool chain, fa_flow *f, fa_lowered *left)
{
    fa_lowered before[FA_SCORE_LOCALS_MAX];
    fa_status st = FA_OK;
    (void)at;
    for (int i = l->first; i < l->n; i++)
        before[i] = l->locals[i].value;
    if (body)
        st = chain ? branches(l, body, f) : block(l, body, f);
    for (int i = l->first; i < l->n; i++) {
        left[i] = l->locals[i].value;
        l->locals[i].value = before[i];
    }
    return st;
}

static fa_status loop(fa_lowering *l, int32_t at, fa_flow *f)
{
    const fa_score_tree_node *s = fa_lowering_tree_node(l, at);
    double bound[3] = { 0, 0, 1 };
    int k = 0, n = l->n;
    if (fa_lowering_arguments_of(l, s->b) < 2 || fa_lowering_arguments_of(l, s->b) > 3)
        return FA_LOWERING_FAIL(l, at, "for with %d numbers; accepted: first, last, and a step or none", fa_lowering_arguments_of(l, s->b));
    for (int32_t x = s->b; x; x = fa_lowering_tree_node(l, x)->next, k++) {
        int node;
        fa_status st = fa_expression_node(l, x, &node);
        if (st != FA_OK)
            return st;
        if (l->ir->node[node].op != FA_SCORE_CONST || l->ir->node[node].type != FA_SCORE_I32)
            return FA_LOWERING_FAIL(l, x, "a bound of for is no constant integer; accepted: for i = 1, 8 do");
        bound[k] = l->ir->node[node].value;
    }
    if (bound[2] == 0)
        return FA_LOWERING_FAIL(l, at, "for with a step of 0; accepted: any other integer");
    double rounds = floor((bound[1] - bound[0]) / bound[2]) + 1;
    if (rounds > FA_SCORE_LOOP_MAX)
        return FA_LOWERING_FAIL(l, at, "for of %.0f rounds; accepted: at most %d", rounds, FA_SCORE_LOOP_MAX);
    for (int i = 0; i < rounds && !fa_lowering_holds(l, f->returned, 1); i++) {
        fa_score_site here = fa_lowering_site(l, at);
        int node = fa_score_ir_number(l->ir, FA_SCORE_I32, bound[0] + i * bound[2]);
        fa_status st = fa_score_made(&here, node);
        if (st == FA_OK)
            st = fa_lowering_push(l, at, &fa_lowering_tree_node(l, s->a)->token, fa_lowering_node_value(node));
        if (st == FA_OK)
            st = block(l, s->c, f);
        l->n = n;
        if (st != FA_OK)
            return st;
    }
    return FA_OK;
}

static fa_status result(fa_lowering *l, int32_t at, fa_flow *f)
{
    fa_score_site here = fa_lowering_site(l, at);
    int node;
    fa_status st = fa_expression_node(l, fa_lowering_tree_node(l, at)->a, &node);
    if (st != FA_OK)
        return st;
    if (fa_lowering_holds(l, f->returned, 0))
        f->value = fa_lowering_node_value(node);
    else if ((st = fa_score_pick(&here, &f->value.node, f->returned, f->value.node, node)) != FA_OK)
        return st;
    f->returned = fa_score_ir_number(l->ir, FA_SCORE_BOOL, 1);
    return fa_score_made(&here, f->returned);
}

static fa_status statement(fa_lowering *l, int32_t at, fa_flow *f)
{
    const fa_score_tree_node *s = fa_lowering_tree_node(l, at);
    switch (s->kind) {
    case FA_SCORE_TREE_IF:
        return branches(l, at, f);
    case FA_SCORE_TREE_FOR:
        return loop(l, at, f);
    case FA_SCORE_TREE_DO:
        return block(l, s->b, f);
    case FA_SCORE_TREE_RETURN:
        return result(l, at, f);
    default:
        return assign(l, at);
    }
}

/* Up to its end, or where every path has returned. Its own names end with it. */
static fa_status block(fa_lowering *l, int32_t first, fa_flow *f)
{
    int n = l->n;
    fa_status st = FA_OK;
    l->depth++;
    for (; first && st == FA_OK && !fa_lowering_holds(l, f->returned, 1); first = fa_lowering_tree_node(l, first)->next) {
        st = fa_lowering_step(l, first);
        if (st == FA_OK)
            st = statement(l, first, f);
    }
    l->depth--;
    l->n = n;
    return st;
}

/* The value of a function whose arguments are given. */
fa_status fa_statement_apply(fa_lowering *l, int32_t at, int32_t function, const fa_lowered *given, int *out)
{
    const fa_score_tree_node *f = fa_lowering_tree_node(l, function);
    int n = l->n, first = l->first, k = 0;
    fa_flow result = { fa_score_ir_number(l->ir, FA_SCORE_BOOL, 0), { FA_LOWERED_NONE, -1, -1 } };
    fa_status st = FA_OK;
    for (int i = 0; i < l->calls; i++)
        if (l->active[i] == function)
            return FA_LOWERING_FAIL(l, at, "%.*s calls itself; accepted: functions that do not", f->token.n, f->token.s);
    if (l->calls == FA_SCORE_NEST_MAX)
        return FA_LOWERING_FAIL(l, at, "calls nested deeper than %d; accepted: up to that", FA_SCORE_NEST_MAX);
    fa_score_site here = fa_lowering_site(l, at);
    if ((st = fa_score_made(&here, result.returned)) != FA_OK)
        return st;
    l->first = n;
    for (int32_t p = f->b; p && st == FA_OK; p = fa_lowering_tree_node(l, p)->next)
        st = fa_lowering_push(l, p, &fa_lowering_tree_node(l, p)->token, given[k++]);
    l->active[l->calls++] = function;
    if (st == FA_OK)
        st = block(l, f->c, &result);
    l->calls--;
    l->n = n;
    l->first = first;
    if (st != FA_OK)
        return st;
    if (!fa_lowering_holds(l, result.returned, 1) || result.value.kind != FA_LOWERED_NODE)
        return FA_LOWERING_FAIL(l, function, "%.*s may end without a value; accepted: return on every path", f->token.n, f->token.s);
    *out = result.value.node;
    return FA_OK;
}
