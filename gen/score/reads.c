/* reads: by what the indices of a lookup depend on. */
#include "reads.h"
#include "derive.h"
#include "distance.h"
#include "print_cuda.h"
#include "reach.h"
#include "slope.h"
#include <stdio.h>
#include <string.h>

/* The index that is the leaf itself, inside of its extent whatever the launch. */
int fa_score_read_dimension(const fa_score_ir *ir, const fa_score_read *r, fa_score_op leaf)
{
    const fa_score_node *a = &ir->node[r->node];
    for (int k = 0; a->op == FA_SCORE_LOOKUP && k < a->n; k++)
        if (ir->node[a->arg[k]].op == leaf && fa_score_index_inside(ir, a, k))
            return k;
    return -1;
}

/* Whether the extent is the length itself, so that each element has a pair. */
static bool is_length(const fa_score_extent *e, fa_score_length length)
{
    bool is = !e->any && e->more == 0;
    for (int i = 0; i < FA_SCORE_LENGTHS; i++)
        is = is && (e->times[i] == (i == (int)length ? 1 : 0)) && e->divisor[i] <= 1;
    return is;
}

/* Whether the element of a pair is of that pair alone, but for the sequence and the head. */
static bool is_of_pair(const fa_score_ir *ir, const fa_score_read *r)
{
    static const struct {
        fa_score_op leaf;
        fa_score_length length;
    } rows[] = { { FA_SCORE_B, FA_SCORE_LENGTH_B },
                 { FA_SCORE_H, FA_SCORE_LENGTH_HQ },
                 { FA_SCORE_I, FA_SCORE_LENGTH_SQ },
                 { FA_SCORE_J, FA_SCORE_LENGTH_SK } };
    const fa_score_operand *o = &ir->operand[r->operand];
    int known = 0;
    for (int i = 0; i < 4; i++) {
        int k = fa_score_read_dimension(ir, r, rows[i].leaf);
        known += k >= 0 && is_length(&o->extent[k], rows[i].length);
        if (i >= 2 && k < 0)
            return false;
    }
    return known == o->rank;
}

static fa_score_read_by by_of(fa_score_ir *ir, const fa_score_read *r)
{
    const fa_score_node a = ir->node[r->node];
    unsigned depends = a.op == FA_SCORE_LOOKUP ? a.depends : 0;
    bool row = depends & FA_SCORE_OF_I, key = depends & FA_SCORE_OF_J, distance = true;
    if (depends & FA_SCORE_OF_S)
        return FA_SCORE_BY_OTHER;
    if (!key)
        return FA_SCORE_BY_ROW;
    if (!row)
        return FA_SCORE_BY_KEY;
    for (int k = 0; k < a.n; k++)
        distance = distance && fa_score_of_distance(ir, a.arg[k]);
    return distance ? FA_SCORE_BY_BAND : is_of_pair(ir, r) ? FA_SCORE_BY_PAIR : FA_SCORE_BY_OTHER;
}

static void add(fa_score_read_list *out, fa_score_ir *ir, int node, fa_score_root root)
{
    fa_score_read r = { .node = (int16_t)node, .operand = ir->node[node].operand, .root = root };
    if (out->n == FA_SCORE_READS_MAX) {
        out->room = false;
        return;
    }
    r.by = by_of(ir, &r);
    r.plane = root == FA_SCORE_ROOT_SCORE ? out->planes[r.by]++ : 0;
    out->read[out->n++] = r;
}

/* An operand with an element for each pair has one read, since nothing adds up several. */
static void check_pairs(fa_score_read_list *out)
{
    for (int i = 0; i < out->n; i++)
        for (int k = 0; k < out->n; k++)
            if (i != k && out->read[i].operand == out->read[k].operand && out->read[i].by == FA_SCORE_BY_PAIR)
                out->read[i].by = FA_SCORE_BY_OTHER;
}

void fa_score_reads_of(fa_score_read_list *out, fa_score_ir *ir, uint32_t operands)
{
    static const fa_score_root roots[] = { FA_SCORE_ROOT_SCORE, FA_SCORE_ROOT_SINK };
    *out = (fa_score_read_list){ .operands = operands, .room = true };
    for (int n = ir->n, k = 0; k < 2; k++) {
        bool reached[FA_SCORE_ROOM] = { false };
        if (ir->root[roots[k]] < 0)
            continue;
        fa_score_ir_reach(ir, ir->root[roots[k]], reached);
        for (int i = 0; i < n; i++) {
            const fa_score_node *a = &ir->node[i];
            if (reached[i] && (a->op == FA_SCORE_LOOKUP || a->op == FA_SCORE_SCALAR) && a->type == FA_SCORE_F32 &&
                operands >> a->operand & 1)
                add(out, ir, i, roots[k]);
        }
    }
    check_pairs(out);
}

/* A node of an index, as a program has it, down to lookups. */
static void print_node(char *buf, size_t n, const fa_score_ir *ir, int node)
{
    const fa_score_node *a = &ir->node[node];
    size_t at = 0;
    if (a->op == FA_SCORE_LOOKUP) {
        at = (size_t)snprintf(buf, n, "%s", ir->operand[a->operand].name);
        for (int k = 0; k < a->n && at < n; k++) {
            char index[80];
            print_node(index, sizeof index, ir, a->arg[k]);
            at += (size_t)snprintf(buf + at, n - at, "[%s]", index);
        }
    } else if (a->op == FA_SCORE_CONST)
        snprintf(buf, n, "%.9g", a->value);
    else if (!a->n)
        snprintf(buf, n, "%s", a->op == FA_SCORE_SCALAR ? ir->operand[a->operand].name : fa_score_op_word(a->op));
    else
        snprintf(buf, n, "...");
}

void fa_score_read_print_index(char *buf, size_t n, const fa_score_ir *ir, const fa_score_read *r)
{
    const fa_score_node *a = &ir->node[r->node];
    int found = a->arg[0];
    for (int k = 0; k < a->n; k++) /* the one that depends on most */
        if (__builtin_popcount(ir->node[a->arg[k]].depends) > __builtin_popcount(ir->node[found].depends))
            found = a->arg[k];
    bool reached[FA_SCORE_ROOM] = { false };
    fa_score_ir_reach(ir, found, reached);
    for (int i = found; i >= 0; i--) /* the lookup in it, where there is one */
        if (reached[i] && ir->node[i].op == FA_SCORE_LOOKUP) {
            print_node(buf, n, ir, i);
            return;
        }
    snprintf(buf, n, "%s%s%s", ir->node[found].depends & FA_SCORE_OF_S ? "s" : "",
             ir->node[found].depends & FA_SCORE_OF_S && ir->node[found].depends & (FA_SCORE_OF_I | FA_SCORE_OF_J) ? " and " : "",
             ir->node[found].depends & FA_SCORE_OF_J ? ir->node[found].depends & FA_SCORE_OF_I ? "i and j" : "j" : "i");
}

static fa_score_words words_of(const fa_score_read *r, const char *x)
{
    return (fa_score_words){ .b = "b",
                             .h = "h",
                             .i = r->by == FA_SCORE_BY_BAND ? "0" : x,
                             .j = x,
                             .off = "off",
                             .sq = "sq",
                             .sk = "sk",
                             .group = "p.group",
                             .params = "p" };
}

void fa_score_read_fixed(fa_text *out, fa_score_ir *ir, const fa_score_read *r, fa_score_loop over)
{
    static const fa_score_op leaf[] = { FA_SCORE_B, FA_SCORE_H };
    const fa_score_node a = ir->node[r->node];
    if (over != FA_SCORE_OVER_X || r->by != FA_SCORE_BY_BAND) {
        fa_score_op own = over != FA_SCORE_OVER_X ? leaf[over] : r->by == FA_SCORE_BY_KEY ? FA_SCORE_J : FA_SCORE_I;
        int k = fa_score_read_dimension(ir, r, own);
        if (k >= 0)
            fa_text_fmt(out, "x%d", k);
        return;
    }
    for (int k = 0; k < a.n; k++) { /* key - query + what does not depend on them */
        int by_key = fa_score_slope_of(ir, a.arg[k]);
        if (by_key < 0 || !fa_score_is_value(ir, by_key, 1) || !fa_score_index_inside(ir, &ir->node[r->node], k))
            continue;
        fa_score_printer printer = { .ir = ir, .words = words_of(r, "0") };
        fa_text_fmt(out, "x%d - ", k);
        fa_score_print_value(out, &printer, a.arg[k]);
        return;
    }
}

void fa_score_read_match(fa_text *out, const fa_score_ir *ir, const fa_score_read *r)
{
    fa_score_printer printer = { .ir = ir, .words = words_of(r, "x") };
    const fa_score_node *a = &ir->node[r->node];
    fa_text_str(out, "  return ");
    for (int k = 0; a->op == FA_SCORE_LOOKUP && k < a->n; k++) {
        bool in = fa_score_index_inside(ir, a, k);
        fa_text_fmt(out, "%s(%s", k ? " & " : "", in ? "" : "score_clamp(");
        fa_score_print_value(out, &printer, a->arg[k]);
        if (!in)
            fa_text_fmt(out, ", p.score%d_extent[%d])", a->operand, k);
        fa_text_fmt(out, " == x%d)", k);
    }
    fa_text_str(out, a->op == FA_SCORE_LOOKUP ? ";\n" : "true;\n");
}

void fa_score_read_sink(fa_text *out, const fa_score_ir *ir, const fa_score_read *r)
{
    fa_score_ir own = *ir;
    fa_score_printer printer = {
        .ir = &own,
        .words = { "b", "h", "query", NULL, NULL, "off", "sq", "sk", "p.group", "p" },
    };
    int d = fa_score_derive(&own, own.root[FA_SCORE_ROOT_SINK], r->node);
    if (d < 0)
        return;
    fa_text_str(out, "  const int query = row;\n");
    fa_score_print_variables(out, &printer, d, ~0, "  ");
    fa_text_str(out, "  return ");
    fa_score_print_value(out, &printer, d);
    fa_text_str(out, ";\n");
}
