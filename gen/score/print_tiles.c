/* print_tiles: a line for each node, of the function of templates/pairs/intervals.cu that its operation has. */
#include "print_tiles.h"
#include "print_cuda.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Integers and numbers with a fraction call functions of one name. */
static const char *const functions[FA_SCORE_OPS] = {
    [FA_SCORE_ADD] = "score_add",   [FA_SCORE_SUB] = "score_sub",       [FA_SCORE_MUL] = "score_mul",
    [FA_SCORE_NEG] = "score_neg",   [FA_SCORE_DIV] = "score_div",       [FA_SCORE_IDIV] = "score_idiv",
    [FA_SCORE_MOD] = "score_mod",   [FA_SCORE_MIN] = "score_min",       [FA_SCORE_MAX] = "score_max",
    [FA_SCORE_ABS] = "score_abs",   [FA_SCORE_FLOOR] = "score_floor",   [FA_SCORE_TOFLOAT] = "score_tofloat",
    [FA_SCORE_EXP] = "score_exp",   [FA_SCORE_EXP2] = "score_exp2",     [FA_SCORE_LOG] = "score_log",
    [FA_SCORE_LOG2] = "score_log2", [FA_SCORE_TANH] = "score_tanh",     [FA_SCORE_TANH_EXACT] = "score_tanh",
    [FA_SCORE_SQRT] = "score_sqrt", [FA_SCORE_RSQRT] = "score_rsqrt",   [FA_SCORE_SIGMOID] = "score_sigmoid",
    [FA_SCORE_BAND] = "score_band", [FA_SCORE_BOR] = "score_bor",       [FA_SCORE_BXOR] = "score_bxor",
    [FA_SCORE_SHR] = "score_shr",   [FA_SCORE_LT] = "score_lt",         [FA_SCORE_LE] = "score_le",
    [FA_SCORE_EQ] = "score_eq",     [FA_SCORE_AND] = "score_min",       [FA_SCORE_OR] = "score_max",
    [FA_SCORE_NOT] = "score_not",   [FA_SCORE_SELECT] = "score_select",
};

typedef struct writer {
    fa_text *out;
    const fa_score_tiles *t;
    bool needed[FA_SCORE_ROOM], parts[FA_SCORE_ROOM]; /* parts: its interval comes of its arguments */
} writer;

static const fa_score_node *node_of(const fa_score_tiles *t, int node)
{
    return &t->ir->node[node];
}

static const char *span_type(const fa_score_node *a)
{
    return a->type == FA_SCORE_F32 ? "ScoreReal" : "ScoreSpan";
}

/* Marks what lines are written of. Sums read their leaves alone. */
static void mark(writer *w, int node)
{
    const fa_score_node *a = node_of(w->t, node);
    fa_score_sum s = { .n = 0 };
    if (w->needed[node])
        return;
    w->needed[node] = true;
    bool pairs = w->t->reading[node] == FA_SCORE_BY_PAIRS;
    w->parts[node] = w->t->reading[node] == FA_SCORE_BY_PARTS;
    if (!w->parts[node] && !pairs)
        return;
    bool sum = w->parts[node] && a->type == FA_SCORE_I32 && (a->op == FA_SCORE_ADD || a->op == FA_SCORE_SUB || a->op == FA_SCORE_NEG);
    if (sum)
        fa_score_sum_add(&s, w->t->ir, node, 1, w->t->reading);
    for (int k = 0; sum && !s.full && k < s.n; k++)
        if (s.times[k])
            mark(w, s.leaf[k]);
    for (int k = 0; (!sum || s.full) && k < a->n; k++)
        mark(w, a->arg[k]);
}

/* ---- values at a head, a query, a key ---- */

static void value_printer(fa_score_printer *p, const fa_score_ir *ir, const char *h, const char *i, const char *j)
{
    *p = (fa_score_printer){ .ir = ir, .words = { "t.b", h, i, j, NULL, "t.off", "t.sq", "t.sk", "p.group", "p" } };
}

static void print_value_line(fa_text *out, fa_score_printer *p, int node, const char *name, const char *indent)
{
    fa_score_print_variables(out, p, node, ~0, indent);
    fa_text_fmt(out, "%s%s%s %s = ", indent, fa_score_cuda_const(p->ir, node), fa_score_cuda_type(p->ir->node[node].type), name);
    fa_score_print_value(out, p, node);
    fa_text_str(out, ";\n");
}

/* ---- lines of intervals ---- */

static const char *nothing(const fa_score_node *a)
{
    return a->type == FA_SCORE_F32 ? "score_nothing_real()" : "score_nothing()";
}

static const char *as_number(const fa_score_node *a)
{
    return a->type == FA_SCORE_BOOL ? "(int)value" : "value";
}

static void write_by_head(writer *w, int node)
{
    const fa_score_node *a = node_of(w->t, node);
    bool heads = a->depends & FA_SCORE_OF_H;
    fa_score_printer p;
    value_printer(&p, w->t->ir, heads ? "h" : "h0", NULL, NULL);
    fa_text_fmt(w->out, "  %s c%d = %s;\n", span_type(a), node, nothing(a));
    fa_text_str(w->out, heads ? "  for (int h = h0; h <= h1; h++) {\n" : "  {\n");
    print_value_line(w->out, &p, node, "value", "    ");
    fa_text_fmt(w->out, "    c%d = score_hull(c%d, score_point(%s));\n  }\n", node, node, as_number(a));
    if (a->type == FA_SCORE_F32)
        fa_text_fmt(w->out, "  c%d = score_rounded(c%d);\n", node, node);
}

static void write_by_side(writer *w, int node, bool keys)
{
    const fa_score_node *a = node_of(w->t, node);
    const fa_score_side_tables *side = keys ? &w->t->keys : &w->t->queries;
    const fa_score_value_table *table = &side->table[w->t->table[node]];
    const char *which = keys ? "keys" : "queries", x = keys ? 'j' : 'i';
    fa_text_fmt(w->out, "  %s c%d = %s;\n", span_type(a), node, nothing(a));
    if (table->set)
        fa_text_fmt(w->out, "  unsigned long long set%d = 0;\n", node);
    fa_text_str(w->out, side->by_h ? "  for (int h = h0; h <= h1; h++) {\n" : "  {\n");
    fa_text_fmt(w->out, "    const int *const of = (const int *)p.mask_%s + %d;\n", which, table->at);
    fa_text_fmt(w->out, "    const long long first = (long long)(%s%s) * score_steps(p.%s);\n", side->by_b ? "t.b" : "0",
                side->by_h ? " * p.hq + h" : "", keys ? "sk" : "sq");
    /* Four at a time, the last more than once, so that they are under way together. */
    fa_text_fmt(w->out, "    const int end = %c1 / %d;\n    for (int n = %c0 / %d; n <= end; n += 4)\n#pragma unroll\n", x,
                FA_SCORE_TABLE_STEP, x, FA_SCORE_TABLE_STEP);
    fa_text_fmt(w->out, "      for (int k = 0; k < 4; k++) {\n        const int *const entry = of + (first + min(n + k, end)) * %d;\n",
                side->words);
    fa_text_fmt(w->out, "        score_join(c%d, entry);\n", node);
    if (table->set)
        fa_text_fmt(w->out, "        set%d |= *(const unsigned long long *)(entry + 2);\n", node);
    fa_text_str(w->out, "      }\n  }\n");
    if (a->type == FA_SCORE_F32)
        fa_text_fmt(w->out, "  c%d = score_rounded(c%d);\n", node, node);
}

static void write_arguments(writer *w, const fa_score_node *a)
{
    for (int k = 0; k < a->n; k++)
        fa_text_fmt(w->out, "%sc%d", k ? ", " : "", a->arg[k]);
}

static void write_leaf(writer *w, const fa_score_node *a)
{
    static const char *const leaves[FA_SCORE_OPS] = {
        [FA_SCORE_B] = "score_point(t.b)",
        [FA_SCORE_H] = "{h0, h1}",
        [FA_SCORE_I] = "{i0, i1}",
        [FA_SCORE_J] = "{j0, j1}",
        [FA_SCORE_OFF] = "score_point(t.off)",
        [FA_SCORE_SQ] = "score_point(t.sq)",
        [FA_SCORE_SK] = "score_point(t.sk)",
        [FA_SCORE_GROUP] = "score_point((int)p.group)",
    };
    fa_score_printer p = { .ir = w->t->ir, .words = { .params = "p" } };
    if (leaves[a->op]) {
        fa_text_str(w->out, leaves[a->op]);
        return;
    }
    fa_text_str(w->out, a->type == FA_SCORE_BOOL ? "score_point((int)" : "score_point(");
    fa_score_print_expression(w->out, &p, (int)(a - w->t->ir->node));
    fa_text_str(w->out, ")");
}

/* One end of a sum. */
static void write_end(writer *w, const fa_score_sum *s, bool upper)
{
    fa_text_fmt(w->out, "%lldll", (long long)s->more);
    for (int k = 0; k < s->n; k++)
        if (s->times[k])
            fa_text_fmt(w->out, " %c %lldll * c%d.%s", s->times[k] < 0 ? '-' : '+', llabs((long long)s->times[k]), s->leaf[k],
                        (s->times[k] > 0) == upper ? "hi" : "lo");
}

/* Whether the node is a sum whose leaves are written instead of its arguments. */
static bool is_sum(const writer *w, int node, fa_score_sum *s)
{
    const fa_score_node *a = node_of(w->t, node);
    if (a->type != FA_SCORE_I32 || (a->op != FA_SCORE_ADD && a->op != FA_SCORE_SUB && a->op != FA_SCORE_NEG))
        return false;
    *s = (fa_score_sum){ .n = 0 };
    fa_score_sum_add(s, w->t->ir, node, 1, w->t->reading);
    return !s->full;
}

static bool has_sets(const fa_score_tiles *t, const fa_score_node *a)
{
    int x = a->arg[0], y = a->arg[1];
    bool sides = (t->reading[x] == FA_SCORE_BY_QUERIES && t->reading[y] == FA_SCORE_BY_KEYS) ||
                 (t->reading[y] == FA_SCORE_BY_QUERIES && t->reading[x] == FA_SCORE_BY_KEYS);
    return sides && t->ir->node[x].type == FA_SCORE_I32;
}

static void write_parts(writer *w, int node)
{
    const fa_score_node *a = node_of(w->t, node);
    fa_score_sum s;
    fa_text_fmt(w->out, "  const %s c%d = ", span_type(a), node);
    if (!a->n)
        write_leaf(w, a);
    else if (is_sum(w, node, &s)) {
        fa_text_str(w->out, "score_narrow(");
        write_end(w, &s, false);
        fa_text_str(w->out, ", ");
        write_end(w, &s, true);
        fa_text_str(w->out, ")");
    } else {
        fa_text_fmt(w->out, "%s(", functions[a->op]);
        write_arguments(w, a);
        if (a->op == FA_SCORE_EQ && has_sets(w->t, a))
            fa_text_fmt(w->out, ", set%d, set%d", a->arg[0], a->arg[1]);
        fa_text_str(w->out, ")");
    }
    fa_text_str(w->out, ";\n");
}

static void write_needed(writer *w)
{
    for (int i = 0; i < w->t->ir->n; i++) {
        if (!w->needed[i])
            continue;
        switch (w->t->reading[i]) {
        case FA_SCORE_BY_HEAD:
            write_by_head(w, i);
            break;
        case FA_SCORE_BY_QUERIES:
        case FA_SCORE_BY_KEYS:
            write_by_side(w, i, w->t->reading[i] == FA_SCORE_BY_KEYS);
            break;
        case FA_SCORE_BY_PAIRS:
            fa_text_fmt(w->out, "  const %s c%d = score_pairs%d(p, ", span_type(node_of(w->t, i)), i, node_of(w->t, i)->operand);
            write_arguments(w, node_of(w->t, i));
            fa_text_str(w->out, ");\n");
            break;
        default:
            write_parts(w, i);
        }
    }
}

void fa_score_tiles_print_class(fa_text *out, const fa_score_tiles *t)
{
    writer w = { .out = out, .t = t };
    mark(&w, t->mask);
    write_needed(&w);
    fa_text_fmt(out, "  return c%d.lo > 0 ? 2 : c%d.hi > 0 ? 1 : 0;\n", t->mask, t->mask);
}

static void print_all(fa_text *out, const char *name, const int16_t *truth, int n)
{
    fa_text_fmt(out, "  ScoreSpan %s = c%d;\n", name, truth[0]);
    for (int k = 1; k < n; k++)
        fa_text_fmt(out, "  %s = score_min(%s, c%d);\n", name, name, truth[k]);
}

void fa_score_tiles_print_classes(fa_text *out, const fa_score_tiles *t, const fa_score_conditions *c)
{
    writer w = { .out = out, .t = t };
    for (int k = 0; k < c->solved; k++)
        mark(&w, c->of_solved[k]);
    for (int k = 0; k < c->rest; k++)
        mark(&w, c->of_rest[k]);
    write_needed(&w);
    print_all(out, "rest", c->of_rest, c->rest);
    print_all(out, "solved", c->of_solved, c->solved);
    fa_text_str(out, "  return (rest.lo > 0 ? 2 : rest.hi > 0 ? 1 : 0) + (solved.lo > 0 ? 8 : solved.hi > 0 ? 4 : 0);\n");
}

void fa_score_tiles_print_solved(fa_text *out, const fa_score_tiles *t, const fa_score_conditions *c)
{
    writer w = { .out = out, .t = t };
    for (int k = 0; k < c->solved; k++)
        mark(&w, c->of_solved[k]);
    write_needed(&w);
    print_all(out, "solved", c->of_solved, c->solved);
    fa_text_str(out, "  return solved.lo > 0 ? 2 : solved.hi > 0 ? 1 : 0;\n");
}

/* ---- bounds ---- */

static void write_half(writer *w, const fa_score_bounds *b, int node)
{
    const fa_score_bound *a = &b->node[node];
    fa_text_fmt(w->out, "  ScoreWide e%d = {0, 0};\n", node);
    for (int k = 0; k < a->steps; k++) {
        fa_text_fmt(w->out, "  e%d = score_less(e%d, ", node, node);
        write_end(w, &a->step[k].rest, false);
        fa_text_str(w->out, ", ");
        write_end(w, &a->step[k].rest, true);
        fa_text_str(w->out, ");\n");
        if (a->step[k].by >= 0)
            fa_text_fmt(w->out, "  e%d = score_times(e%d, c%d, %d);\n", node, node, a->step[k].by, !a->step[k].at_least);
    }
    fa_text_fmt(w->out, "  const ScoreBounds r%d = score_half<%d>(e%d, last);\n", node, a->times, node);
}

static void write_bound(writer *w, const fa_score_bounds *b, int node)
{
    const fa_score_bound *a = &b->node[node];
    switch (a->kind) {
    case FA_SCORE_BOUND_UNKNOWN:
        fa_text_fmt(w->out, "  const ScoreBounds r%d = {0, last, 1, 0};\n", node);
        break;
    case FA_SCORE_BOUND_FREE:
        fa_text_fmt(w->out,
                    a->contrary ? "  const ScoreBounds r%d = score_free(score_not(c%d), last);\n"
                                : "  const ScoreBounds r%d = score_free(c%d, last);\n",
                    node, a->node);
        break;
    case FA_SCORE_BOUND_HALF:
        write_half(w, b, node);
        break;
    default:
        fa_text_fmt(w->out, "  const ScoreBounds r%d = score_%s(r%d, r%d);\n", node, a->kind == FA_SCORE_BOUND_OR ? "either" : "both", a->x,
                    a->y);
    }
}

static const char *last_of(const fa_score_bounds *b)
{
    return b->of == FA_SCORE_J ? "t.sk - 1" : "t.sq - 1";
}

/* The nodes of a solution that its root is made of: arguments come before. */
static void reach(const fa_score_bounds *b, int node, bool reached[FA_SCORE_BOUNDS_MAX])
{
    const fa_score_bound *a = &b->node[node];
    reached[node] = true;
    if (a->kind == FA_SCORE_BOUND_AND || a->kind == FA_SCORE_BOUND_OR) {
        reach(b, a->x, reached);
        reach(b, a->y, reached);
    }
}

static void mark_bound(writer *w, const fa_score_bound *a)
{
    if (a->kind == FA_SCORE_BOUND_FREE)
        mark(w, a->node);
    for (int k = 0; a->kind == FA_SCORE_BOUND_HALF && k < a->steps; k++) {
        for (int x = 0; x < a->step[k].rest.n; x++)
            if (a->step[k].rest.times[x])
                mark(w, a->step[k].rest.leaf[x]);
        if (a->step[k].by >= 0)
            mark(w, a->step[k].by);
    }
}

void fa_score_tiles_print_bounds(fa_text *out, const fa_score_bounds *b)
{
    writer w = { .out = out, .t = b->tiles };
    bool reached[FA_SCORE_BOUNDS_MAX] = { false };
    reach(b, b->root, reached);
    for (int n = 0; n < b->n; n++)
        if (reached[n])
            mark_bound(&w, &b->node[n]);
    write_needed(&w);
    fa_text_fmt(out, "  const int last = %s;\n", last_of(b));
    for (int n = 0; n < b->n; n++)
        if (reached[n])
            write_bound(&w, b, n);
    fa_text_fmt(out, "  return {r%d.lo, r%d.hi, r%d.full_lo, r%d.full_hi};\n", b->root, b->root, b->root, b->root);
}

/* ---- ends of a row, exactly ---- */

/* Whether |the sum of integers| is 2^32 at most, beyond which ends are nowhere. */
static bool is_near(const fa_score_sum *s)
{
    int64_t of = 0;
    for (int k = 0; k < s->n; k++) {
        if (s->times[k] < -2 || s->times[k] > 2)
            return false;
        of += s->times[k] < 0 ? -s->times[k] : s->times[k];
    }
    return of < 2 ? s->more >= INT32_MIN && s->more <= INT32_MAX : of == 2 && s->more == 0;
}

/* first: of an end that is 0 until then. */
static void print_rest(fa_text *out, fa_score_printer *p, const fa_score_sum *s, const char *name, bool first)
{
    bool any = s->more != 0;
    for (int k = 0; k < s->n; k++)
        if (s->times[k]) {
            any = true;
            fa_score_print_variables(out, p, s->leaf[k], ~0, "  ");
        }
    if (!any)
        return;
    const char *near = first && is_near(s) ? "" : "score_near";
    fa_text_fmt(out, "  %s = %s(%s - (%lldll", name, near, name, (long long)s->more);
    for (int k = 0; k < s->n; k++)
        if (s->times[k]) {
            fa_text_fmt(out, " %c %lldll * ", s->times[k] < 0 ? '-' : '+', llabs((long long)s->times[k]));
            fa_score_print_value(out, p, s->leaf[k]);
        }
    fa_text_str(out, "));\n");
}

static void print_end(fa_text *out, fa_score_printer *p, const fa_score_bounds *b, int node)
{
    const fa_score_bound *a = &b->node[node];
    char name[16];
    snprintf(name, sizeof name, "e%d", node);
    switch (a->kind) {
    case FA_SCORE_BOUND_FREE:
        fa_score_print_variables(out, p, a->node, ~0, "  ");
        fa_text_fmt(out, "  const ScoreEnds r%d = {0, %s(", node, a->contrary ? "!" : "");
        fa_score_print_value(out, p, a->node);
        fa_text_str(out, ") ? last : -1};\n");
        break;
    case FA_SCORE_BOUND_HALF:
        fa_text_fmt(out, "  long long %s = 0;\n", name);
        for (int k = 0; k < a->steps; k++) {
            print_rest(out, p, &a->step[k].rest, name, k == 0);
            if (a->step[k].by < 0)
                continue;
            fa_score_print_variables(out, p, a->step[k].by, ~0, "  ");
            fa_text_fmt(out, a->step[k].at_least ? "  %s = score_near(%s * " : "  %s = score_near((%s + 1) * ", name, name);
            fa_score_print_value(out, p, a->step[k].by);
            fa_text_str(out, a->step[k].at_least ? ");\n" : " - 1);\n");
        }
        fa_text_fmt(out, "  const ScoreEnds r%d = score_end<%d>(%s, last);\n", node, a->times, name);
        break;
    default:
        fa_text_fmt(out, "  const ScoreEnds r%d = score_%s(r%d, r%d);\n", node, a->kind == FA_SCORE_BOUND_OR ? "either" : "both", a->x,
                    a->y);
    }
}

void fa_score_tiles_print_ends(fa_text *out, const fa_score_bounds *b)
{
    fa_score_printer p;
    bool reached[FA_SCORE_BOUNDS_MAX] = { false }, keys = b->of == FA_SCORE_J;
    reach(b, b->root, reached);
    value_printer(&p, b->tiles->ir, "head", keys ? "row" : NULL, keys ? NULL : "key");
    fa_text_fmt(out, "  const int last = %s;\n", last_of(b));
    for (int n = 0; n < b->n; n++)
        if (reached[n])
            print_end(out, &p, b, n);
    fa_text_fmt(out, "  return {r%d.lo, r%d.hi};\n", b->root, b->root);
}

void fa_score_tiles_print_runs(fa_text *out, const fa_score_bounds *b)
{
    fa_score_printer p;
    value_printer(&p, b->tiles->ir, "head", "0", NULL);
    fa_score_print_variables(out, &p, b->run_of, ~0, "  ");
    fa_score_print_variables(out, &p, b->run_by, ~0, "  ");
    fa_text_str(out, "  return {");
    fa_score_print_value(out, &p, b->run_of);
    fa_text_str(out, ", ");
    fa_score_print_value(out, &p, b->run_by);
    fa_text_str(out, "};\n");
}

/* ---- tables ---- */

static void print_accumulators(fa_text *out, const fa_score_tiles *t, const fa_score_side_tables *side)
{
    for (int k = 0; k < side->n; k++) {
        const fa_score_node *a = node_of(t, side->table[k].node);
        fa_text_fmt(out, "  %s r%d = %s;\n", span_type(a), k, nothing(a));
        if (side->table[k].set)
            fa_text_fmt(out, "  unsigned long long set%d = 0;\n", k);
    }
}

static void print_fill_side(fa_text *out, const fa_score_tiles *t, bool keys, const char *params_type)
{
    const fa_score_side_tables *side = keys ? &t->keys : &t->queries;
    fa_score_printer p;
    value_printer(&p, t->ir, "head", keys ? NULL : "at", keys ? "at" : NULL);
    fa_text_fmt(out,
                "__device__ __forceinline__ void score_fill_%s(const %s &p, const ScoreTile &t, int head, int step, int lane, int *to) {\n",
                keys ? "keys" : "queries", params_type);
    print_accumulators(out, t, side);
    fa_text_fmt(out, "  for (int at = step * %d + lane; at < min(step * %d + %d, %s.%s); at += 32) {\n", FA_SCORE_TABLE_STEP,
                FA_SCORE_TABLE_STEP, FA_SCORE_TABLE_STEP, side->by_b ? "t" : "p", keys ? "sk" : "sq");
    for (int k = 0; k < side->n; k++) {
        char name[24];
        snprintf(name, sizeof name, "value%d", k);
        print_value_line(out, &p, side->table[k].node, name, "    ");
        fa_text_fmt(out, "    r%d = score_hull(r%d, score_point(%s%s));\n", k, k,
                    node_of(t, side->table[k].node)->type == FA_SCORE_BOOL ? "(int)" : "", name);
        if (side->table[k].set)
            fa_text_fmt(out, "    set%d |= 1ull << (%s & 63);\n", k, name);
    }
    fa_text_str(out, "  }\n");
    for (int k = 0; k < side->n; k++)
        if (side->table[k].set)
            fa_text_fmt(out, "  score_store(to + %d, lane, r%d, set%d);\n", side->table[k].at, k, k);
        else
            fa_text_fmt(out, "  score_store(to + %d, lane, r%d);\n", side->table[k].at, k);
    fa_text_str(out, "}\n");
}

/* Of keys the last warps are the first, so that few warps have both. */
static void print_side_jobs(fa_text *out, const fa_score_side_tables *side, bool keys)
{
    fa_text_fmt(out, "  {\n    const int steps = score_steps(p.%s), heads = %s, jobs = %s * heads * steps;\n", keys ? "sk" : "sq",
                side->by_h ? "p.hq" : "1", side->by_b ? "p.b" : "1");
    fa_text_fmt(out, "    for (int job = %s; job < jobs; job += warps) {\n", keys ? "warps - 1 - warp" : "warp");
    fa_text_str(out, "      const int step = job % steps, head = job / steps % heads;\n"
                     "      const ScoreTile t = score_tile(p, sequence_of(p, job / steps / heads), head);\n");
    fa_text_fmt(out, "      score_fill_%s(p, t, head, step, lane, (int *)p.mask_%s + (long long)job * %d);\n    }\n  }\n",
                keys ? "keys" : "queries", keys ? "keys" : "queries", side->words);
}

void fa_score_tiles_print_fill(fa_text *out, const fa_score_tiles *t, const char *params_type)
{
    if (t->queries.n)
        print_fill_side(out, t, false, params_type);
    if (t->keys.n)
        print_fill_side(out, t, true, params_type);
    fa_text_fmt(out, "__device__ __forceinline__ void score_fill_tables(const %s &p, int warp, int warps, int lane) {\n", params_type);
    if (t->queries.n)
        print_side_jobs(out, &t->queries, false);
    if (t->keys.n)
        print_side_jobs(out, &t->keys, true);
    for (int k = 0; k < t->pairs; k++) {
        int operand = t->pair[k].operand;
        const fa_score_operand *o = &t->ir->operand[operand];
        fa_text_fmt(
            out, "  score_fill_pairs<%s, %d>(p.score%d, p.score%d_extent, p.score%d_stride, (int *)p.mask_pairs%d, warp, warps, lane);\n",
            o->element == FA_SCORE_ELEMENT_BITS ? "true" : "false", o->rank, operand, operand, operand, k);
    }
    fa_text_str(out, "}\n");
}
