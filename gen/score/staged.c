/* staged: the one truth that looks something up by query and key together is the plane. Where there are more, or where it is more than an
 * element, nothing is staged: one warp would compute it for all. */
#include "staged.h"
#include "print_cuda.h"
#include "reach.h"
#include "sum.h"
#include <string.h>

typedef struct search {
    const fa_score_tiles *t;
    fa_score_staged *out;
    bool seen[FA_SCORE_ROOM];
    int planes;
} search;

static const fa_score_node *node_of(const fa_score_tiles *t, int node)
{
    return &t->ir->node[node];
}

/* Whether an array is read by query and key, or by either without a table. */
static bool reads_pairs(const fa_score_tiles *t, int node)
{
    const fa_score_node *a = node_of(t, node);
    if (t->reading[node] != FA_SCORE_BY_PARTS)
        return t->reading[node] == FA_SCORE_BY_PAIRS;
    for (int k = 0; k < a->n; k++)
        if (reads_pairs(t, a->arg[k]))
            return true;
    return false;
}

/* "j < x or bits[..][j - x]", with x of a head: the lookup, -1: it is none. */
static int shifted_lookup(const fa_score_tiles *t, int node)
{
    const fa_score_node *a = node_of(t, node);
    for (int k = 0; k < 2 && a->op == FA_SCORE_OR; k++) {
        const fa_score_node *less = node_of(t, a->arg[k]), *x = node_of(t, a->arg[1 - k]);
        if (less->op != FA_SCORE_LT || node_of(t, less->arg[0])->op != FA_SCORE_J || !fa_score_is_lookup(x))
            continue;
        fa_score_sum s = { .n = 0 };
        fa_score_sum_add(&s, t->ir, x->arg[x->n - 1], 1, NULL);
        fa_score_sum_add(&s, t->ir, less->arg[0], -1, NULL);
        fa_score_sum_add(&s, t->ir, less->arg[1], 1, NULL);
        unsigned depends = node_of(t, less->arg[1])->depends | (node_of(t, x->arg[x->n - 1])->depends & ~(unsigned)FA_SCORE_OF_J);
        bool good = !s.full && s.more == 0 && t->ir->operand[x->operand].element == FA_SCORE_ELEMENT_BITS;
        for (int n = 0; n < s.n; n++)
            good = good && s.times[n] == 0;
        if (good && !(depends & (FA_SCORE_OF_I | FA_SCORE_OF_J)))
            return a->arg[1 - k];
    }
    return -1;
}

static void find_plane(search *s, int node)
{
    const fa_score_node *a = node_of(s->t, node);
    bool parts = a->type == FA_SCORE_BOOL && (a->op == FA_SCORE_AND || a->op == FA_SCORE_OR || a->op == FA_SCORE_NOT);
    parts = parts && shifted_lookup(s->t, node) < 0;
    if (s->seen[node])
        return;
    s->seen[node] = true;
    if (!reads_pairs(s->t, node))
        return;
    for (int k = 0; parts && k < a->n; k++)
        find_plane(s, a->arg[k]);
    if (parts)
        return;
    s->out->plane = node;
    s->planes++;
}

/* What is by one side, outside of the plane. */
static void find_sides(search *s, int node)
{
    const fa_score_node *a = node_of(s->t, node);
    if (s->seen[node] || node == s->out->plane)
        return;
    s->seen[node] = true;
    switch (s->t->reading[node]) {
    case FA_SCORE_BY_KEYS:
        s->out->column[s->out->columns++] = (int16_t)node;
        break;
    case FA_SCORE_BY_QUERIES:
        s->out->row[s->out->rows++] = (int16_t)node;
        break;
    case FA_SCORE_BY_HEAD:
        break;
    default:
        for (int k = 0; k < a->n; k++)
            find_sides(s, a->arg[k]);
    }
}

/* A truth that is whether an element is 0, or not: "x == 0", "0 < x", or bits. */
static void find_lookup(fa_score_staged *out, const fa_score_tiles *t)
{
    const fa_score_node *a = node_of(t, out->plane);
    int at = out->plane, shifted = shifted_lookup(t, out->plane);
    if (shifted >= 0)
        at = shifted, out->shifted = true;
    else if (a->op == FA_SCORE_EQ && fa_score_is_value(t->ir, a->arg[1], 0))
        at = a->arg[0], out->contrary = true;
    else if (a->op == FA_SCORE_EQ && fa_score_is_value(t->ir, a->arg[0], 0))
        at = a->arg[1], out->contrary = true;
    else if (a->op == FA_SCORE_LT && fa_score_is_value(t->ir, a->arg[0], 0))
        at = a->arg[1];
    const fa_score_node *x = node_of(t, at);
    if (!fa_score_is_lookup(x))
        return;
    const fa_score_operand *o = &t->ir->operand[x->operand];
    bool good = o->element == FA_SCORE_ELEMENT_U8 || o->element == FA_SCORE_ELEMENT_BITS;
    good = good && (out->shifted || (node_of(t, x->arg[x->n - 1])->op == FA_SCORE_J && fa_score_index_inside(t->ir, x, x->n - 1)));
    for (int k = 0; k < x->n - 1; k++)
        good = good && !fa_score_depends_on(t->ir, x->arg[k], FA_SCORE_OF_J);
    out->lookup = good ? at : -1;
}

static int gcd(int x, int y)
{
    return y == 0 ? x : gcd(y, x % y);
}

/* Of a node that reads keys by j // 128: 128. 0: it reads none, or was looked at. of: FA_SCORE_J, or FA_SCORE_I. */
static int grain_of(const fa_score_ir *ir, int node, fa_score_op of, bool seen[FA_SCORE_ROOM])
{
    const fa_score_node *a = &ir->node[node];
    int grain = 0;
    if (seen[node] || !(a->depends & (of == FA_SCORE_J ? FA_SCORE_OF_J : FA_SCORE_OF_I)))
        return 0;
    seen[node] = true;
    if (a->op == of)
        return 1;
    if (a->op == FA_SCORE_IDIV && ir->node[a->arg[0]].op == of && ir->node[a->arg[1]].op == FA_SCORE_CONST)
        return (int)ir->node[a->arg[1]].value;
    for (int k = 0; k < a->n; k++)
        grain = gcd(grain, grain_of(ir, a->arg[k], of, seen));
    return grain;
}

/* What a node is made of, down to the plane. */
static void reach_outside(const fa_score_ir *ir, int node, int plane, bool reached[FA_SCORE_ROOM])
{
    if (reached[node])
        return;
    reached[node] = true;
    for (int k = 0; node != plane && k < ir->node[node].n; k++)
        reach_outside(ir, ir->node[node].arg[k], plane, reached);
}

/* Whether what is left for pairs is one equality, of the one value by key and the one by query. */
static bool is_equal(const fa_score_staged *s, const fa_score_tiles *t, const fa_score_conditions *c)
{
    if (c->rest != 1 || s->columns != 1 || s->rows != 1 || s->plane >= 0)
        return false;
    const fa_score_node *a = node_of(t, c->of_rest[0]);
    return a->op == FA_SCORE_EQ &&
           ((a->arg[0] == s->column[0] && a->arg[1] == s->row[0]) || (a->arg[0] == s->row[0] && a->arg[1] == s->column[0]));
}

/* A comparison for each that reads a key's value, and the select; words of bits are shared by 32 keys. */
static double issue_of(const fa_score_staged *s, const fa_score_tiles *t, const fa_score_conditions *c)
{
    bool reached[FA_SCORE_ROOM] = { false };
    double issue = 1 + 0.25 * s->columns + (s->plane >= 0 ? 1 : 0);
    for (int k = 0; k < c->rest; k++)
        reach_outside(t->ir, c->of_rest[k], s->plane, reached);
    for (int i = 0; i < t->ir->n; i++) {
        const fa_score_node *a = node_of(t, i);
        bool is = reached[i] && a->n && t->reading[i] == FA_SCORE_BY_PARTS && i != s->plane && a->depends & FA_SCORE_OF_J;
        issue += is && a->op != FA_SCORE_AND && a->op != FA_SCORE_OR && a->op != FA_SCORE_NOT ? 1 : 0;
    }
    return issue;
}

/* Tables tell of 64 queries or keys at a time, and intervals of numbers with a fraction are wider than these. */
static bool is_grained(const fa_score_ir *ir, const fa_score_conditions *c, int grain, int row_grain)
{
    bool reached[FA_SCORE_ROOM] = { false }, good = grain % FA_SCORE_TABLE_STEP == 0 && row_grain % FA_SCORE_TABLE_STEP == 0;
    for (int k = 0; k < c->rest; k++)
        fa_score_ir_reach(ir, c->of_rest[k], reached);
    for (int i = 0; i < ir->n; i++)
        good = good && !(reached[i] && ir->node[i].type == FA_SCORE_F32);
    return good;
}

static int grain_by(const fa_score_ir *ir, const int16_t *node, int n, fa_score_op of)
{
    bool seen[FA_SCORE_ROOM] = { false };
    int grain = 0;
    for (int k = 0; k < n; k++)
        grain = gcd(grain, grain_of(ir, node[k], of, seen));
    return grain > 1 ? grain : 1;
}

void fa_score_staged_of(fa_score_staged *out, const fa_score_tiles *t, const fa_score_conditions *c)
{
    search s = { .t = t, .out = out };
    memset(out, 0, sizeof *out);
    out->plane = out->lookup = -1;
    if (t->mask < 0)
        return;
    for (int k = 0; k < c->rest; k++)
        find_plane(&s, c->of_rest[k]);
    memset(s.seen, 0, sizeof s.seen);
    for (int k = 0; k < c->rest; k++)
        find_sides(&s, c->of_rest[k]);
    if (out->plane >= 0)
        find_lookup(out, t);
    out->can = s.planes <= 1 && (out->plane >= 0 ? out->lookup >= 0 : out->columns > 0);
    out->equal = is_equal(out, t, c);
    out->issue = issue_of(out, t, c);
    out->grain = grain_by(t->ir, c->of_rest, c->rest, FA_SCORE_J);
    out->row_grain = grain_by(t->ir, c->of_rest, c->rest, FA_SCORE_I);
    out->grained = is_grained(t->ir, c, out->grain, out->row_grain);
    if (out->plane >= 0 && !out->grained) {
        const int16_t plane = (int16_t)out->plane;
        out->grain = grain_by(t->ir, &plane, 1, FA_SCORE_J);
        out->row_grain = grain_by(t->ir, &plane, 1, FA_SCORE_I);
    }
}

/* ---- lines ---- */

/* What a tile's pairs share is a member of it, as in mask.c. */
static void find_members(const fa_score_tiles *t, int node, bool packed, bool looked[FA_SCORE_ROOM], fa_score_printer *p)
{
    const fa_score_node *a = node_of(t, node);
    if (looked[node] || !fa_score_reads(t->ir, node, fa_score_is_lookup))
        return;
    looked[node] = true;
    if (!(a->depends & ~(unsigned)(FA_SCORE_OF_B | (packed ? 0 : FA_SCORE_OF_H))))
        p->named[node] = FA_SCORE_MEMBER;
    else
        for (int k = 0; k < a->n; k++)
            find_members(t, a->arg[k], packed, looked, p);
}

static fa_score_printer printer_of(const fa_score_tiles *t, bool packed)
{
    bool looked[FA_SCORE_ROOM] = { false };
    fa_score_printer p = {
        .ir = t->ir,
        .words = { "t.b", packed ? "head" : "t.h", "query", "j", NULL, "t.off", "t.sq", "t.sk", "p.group", "p" },
        .variable = "mask_v",
        .member = "t.m",
    };
    find_members(t, t->mask, packed, looked, &p);
    return p;
}

static void print_value(fa_text *out, fa_score_printer *p, int node)
{
    fa_score_print_variables(out, p, node, ~0, "  ");
    fa_text_str(out, "  return ");
    fa_score_print_value(out, p, node);
    fa_text_str(out, ";\n");
}

static void print_query(fa_text *out, const fa_score_tiles *t, int node)
{
    bool inside = fa_score_reads_inside(t->ir, node, FA_SCORE_OF_I);
    fa_text_str(out, inside ? "  const int query = min(row, t.sq - 1);\n" : "  const int query = row;\n");
}

static void print_key(fa_text *out, const fa_score_tiles *t, int node)
{
    bool inside = fa_score_reads_inside(t->ir, node, FA_SCORE_OF_J);
    fa_text_str(out, inside ? "  const int j = min(key, t.sk - 1);\n" : "  const int j = key;\n");
}

void fa_score_staged_column(fa_text *out, const fa_score_staged *s, const fa_score_tiles *t, bool packed, int n)
{
    fa_score_printer p = printer_of(t, packed);
    print_key(out, t, s->column[n]);
    print_value(out, &p, s->column[n]);
}

void fa_score_staged_row(fa_text *out, const fa_score_staged *s, const fa_score_tiles *t, bool packed, int n)
{
    fa_score_printer p = printer_of(t, packed);
    print_query(out, t, s->row[n]);
    print_value(out, &p, s->row[n]);
}

void fa_score_staged_plane_row(fa_text *out, const fa_score_staged *s, const fa_score_tiles *t, bool packed)
{
    fa_score_printer p = printer_of(t, packed);
    const fa_score_node *a = node_of(t, s->lookup);
    bool bits = t->ir->operand[a->operand].element == FA_SCORE_ELEMENT_BITS;
    print_query(out, t, s->lookup);
    for (int k = 0; k < a->n - 1; k++)
        fa_score_print_variables(out, &p, a->arg[k], ~0, "  ");
    fa_text_fmt(out, "  return (const unsigned%s *)p.score%d", bits ? "" : " char", a->operand);
    for (int k = 0; k < a->n - 1; k++) {
        bool in = fa_score_index_inside(t->ir, a, k);
        fa_text_str(out, in ? " + " : " + score_clamp(");
        fa_score_print_value(out, &p, a->arg[k]);
        if (!in)
            fa_text_fmt(out, ", p.score%d_extent[%d])", a->operand, k);
        fa_text_fmt(out, " * p.score%d_stride[%d]", a->operand, k);
    }
    fa_text_str(out, ";\n");
}

void fa_score_staged_plane_first(fa_text *out, const fa_score_staged *s, const fa_score_tiles *t, bool packed)
{
    fa_score_printer p = printer_of(t, packed);
    const fa_score_node *a = node_of(t, s->lookup);
    if (!s->shifted) {
        fa_text_str(out, "  return 0;\n");
        return;
    }
    fa_text_str(out, "  const int j = 0;\n");
    print_value(out, &p, a->arg[a->n - 1]);
}

void fa_score_staged_pair(fa_text *out, const fa_score_staged *s, const fa_score_tiles *t, const fa_score_conditions *c, bool packed)
{
    fa_score_printer p = printer_of(t, packed);
    for (int k = 0; k < s->columns; k++)
        p.named[s->column[k]] = FA_SCORE_PARAMETER;
    for (int k = 0; k < s->rows; k++)
        p.named[s->row[k]] = FA_SCORE_PARAMETER;
    if (s->plane >= 0)
        p.named[s->plane] = FA_SCORE_PARAMETER;
    fa_text_str(out, "  const int query = row, j = key + column;\n");
    for (int k = 0; k < c->rest; k++)
        fa_score_print_variables(out, &p, c->of_rest[k], ~0, "  ");
    fa_text_str(out, "  return ");
    for (int k = 0; k < c->rest; k++) {
        fa_text_str(out, k ? " & " : "");
        fa_score_print_value(out, &p, c->of_rest[k]);
    }
    fa_text_str(out, ";\n");
}
