/* lines: nodes become lines from their arguments up; what the product and the key are linear in is taken together on the way. */
#include "lines.h"
#include "bend.h"
#include "derive.h"
#include "distance.h"
#include "issue.h"
#include "normal.h"
#include "reach.h"
#include "slope.h"
#include <stdlib.h>
#include <string.h>

/* Nodes that are found to be needed while lines are written join k->ir, which they are written of. */
typedef struct writer {
    fa_text *out;
    fa_score_kernel *k;
    fa_score_printer pair, base; /* of a pair; of the key that keys are counted from */
    unsigned tile;               /* what the same for a tile depends on */
    bool member[FA_SCORE_ROOM], looked[FA_SCORE_ROOM], done[FA_SCORE_ROOM];
    fa_score_lines_of what;
    const fa_score_read_list *reads; /* of FA_SCORE_LINES_READS */
    fa_score_read_by by;
    int bend; /* of FA_SCORE_LINES_BEND; -1: there is no room for it */
    bool row_counted[FA_SCORE_ROOM];
    double issue, exps, rows, exps_rows;
} writer;

static bool of_tile(const writer *w, int node)
{
    return !fa_score_depends_on(&w->k->ir, node, ~w->tile);
}

/* The largest parts of a node that the tile's pairs share, and that look something up. */
static void find_members(writer *w, int node)
{
    const fa_score_node *a = &w->k->ir.node[node];
    if (w->what == FA_SCORE_LINES_READS || w->looked[node] || !fa_score_reads(&w->k->ir, node, fa_score_is_lookup))
        return;
    w->looked[node] = true;
    if (of_tile(w, node)) {
        w->member[node] = true;
        w->pair.named[node] = w->base.named[node] = FA_SCORE_MEMBER;
    } else
        for (int i = 0; i < a->n; i++)
            find_members(w, a->arg[i]);
}

/* Of what is computed once for a row: of its query, and of the key that keys are counted from. */
static void count_row(writer *w, int node)
{
    const fa_score_ir *ir = &w->k->ir;
    bool reached[FA_SCORE_ROOM] = { false };
    fa_score_ir_reach(ir, node, reached);
    for (int i = 0; i <= node; i++)
        if (reached[i] && !w->row_counted[i] && fa_score_depends_on(ir, i, FA_SCORE_OF_I)) {
            w->row_counted[i] = true;
            w->rows += fa_score_instructions(ir, &ir->node[i], &w->exps_rows);
        }
}

/* A row's value: its variables. */
static void need_row(writer *w, int node)
{
    count_row(w, node);
    find_members(w, node);
    fa_score_print_variables(w->out, &w->pair, node, ~0, "  ");
}

/* Column values are computed once for two rows or more. */
static void count(writer *w, int node, double more)
{
    const fa_score_ir *ir = &w->k->ir;
    double share = fa_score_depends_on(ir, node, FA_SCORE_OF_S | FA_SCORE_OF_I) ? 1 : 0.5, exps = 0;
    w->issue += share * (more > 0 ? more : fa_score_instructions(ir, &ir->node[node], &exps));
    w->exps += share * (more > 0 ? 0 : exps);
}

static void need(writer *w, int node);

static void begin_line(writer *w, int node)
{
    const fa_score_ir *ir = &w->k->ir;
    fa_text_fmt(w->out, "  %s%s score_v%d = ", fa_score_cuda_const(ir, node), fa_score_cuda_type(ir->node[node].type), node);
}

static void end_line(writer *w, int node)
{
    fa_text_str(w->out, ";\n");
    w->pair.named[node] = FA_SCORE_VARIABLE;
}

/* factor * core + offset. A core that is the product itself takes the scale along. */
static void write_normal(writer *w, int node, const fa_score_normal *n)
{
    const fa_score_ir *ir = &w->k->ir;
    bool product = ir->node[n->core].op == FA_SCORE_S, one = fa_score_is_value(ir, n->factor, 1),
         zero = fa_score_is_value(ir, n->offset, 0);
    if (!product)
        need(w, n->core);
    need_row(w, n->factor);
    need(w, n->offset);
    if (product && !one) {
        fa_text_fmt(w->out, "  const float score_k%d = p.scale * ", node);
        fa_score_print_value(w->out, &w->pair, n->factor);
        fa_text_str(w->out, ";\n");
    }
    bool sum = !product && one;
    begin_line(w, node);
    fa_text_str(w->out, sum ? "" : zero ? "" : "fmaf(");
    if (product)
        fa_text_str(w->out, "x");
    else
        fa_score_print_value(w->out, &w->pair, n->core);
    fa_text_str(w->out, sum ? " + " : zero ? " * " : ", ");
    if (product && one)
        fa_text_str(w->out, "p.scale");
    else if (product)
        fa_text_fmt(w->out, "score_k%d", node);
    else if (!sum)
        fa_score_print_value(w->out, &w->pair, n->factor);
    if (!zero) {
        fa_text_str(w->out, sum ? "" : ", ");
        fa_score_print_value(w->out, &w->pair, n->offset);
        fa_text_str(w->out, sum ? "" : ")");
    }
    count(w, node, 1);
    end_line(w, node);
}

/* slope * column + what it is of the key that columns are counted from. */
static void write_linear(writer *w, int node, int slope)
{
    need_row(w, slope);
    count_row(w, node);
    find_members(w, node);
    fa_score_print_variables(w->out, &w->base, node, ~0, "  ");
    begin_line(w, node);
    fa_text_str(w->out, "fmaf(");
    fa_score_print_value(w->out, &w->pair, slope);
    fa_text_str(w->out, ", (float)column, ");
    fa_score_print_value(w->out, &w->base, node);
    fa_text_str(w->out, ")");
    count(w, node, 1);
    end_line(w, node);
}

/* An integer as a number, where its larger, smaller or absolute one is that of numbers: of those that are linear in the key none is
 * converted. -1: it is no such. */
static int converted_first(fa_score_ir *ir, const fa_score_node *a)
{
    const fa_score_node of = ir->node[a->arg[0]];
    int x[2] = { -1, -1 };
    if (a->op != FA_SCORE_TOFLOAT || (of.op != FA_SCORE_ABS && of.op != FA_SCORE_MIN && of.op != FA_SCORE_MAX))
        return -1;
    for (int i = 0; i < of.n; i++)
        if (fa_score_slope_of(ir, of.arg[i]) < 0)
            return -1;
    for (int i = 0; i < of.n; i++)
        x[i] = fa_score_ir_make(ir, FA_SCORE_TOFLOAT, of.arg[i], -1, -1);
    return fa_score_ir_make(ir, (fa_score_op)of.op, x[0], x[1], -1);
}

/* The lines of a node and of all that it is made of. */
static void need(writer *w, int node)
{
    fa_score_ir *ir = &w->k->ir;
    const fa_score_node a = ir->node[node];
    fa_score_normal n;
    if (w->done[node] || a.op == FA_SCORE_CONST)
        return;
    w->done[node] = true;
    if (!fa_score_depends_on(ir, node, FA_SCORE_OF_S | FA_SCORE_OF_J)) {
        need_row(w, node);
        return;
    }
    if (a.op == FA_SCORE_S) {
        begin_line(w, node);
        fa_text_str(w->out, "x * p.scale");
        count(w, node, 1);
        end_line(w, node);
        return;
    }
    if (fa_score_depends_on(ir, node, FA_SCORE_OF_S) && a.type == FA_SCORE_F32 && fa_score_normal_of(ir, node, &n) && n.core != node) {
        write_normal(w, node, &n);
        return;
    }
    int slope = a.type == FA_SCORE_F32 && fa_score_depends_on(ir, node, FA_SCORE_OF_J) ? fa_score_slope_of(ir, node) : -1;
    if (slope >= 0) {
        write_linear(w, node, slope);
        return;
    }
    int other = a.op == FA_SCORE_TOFLOAT ? converted_first(ir, &a) : -1;
    if (other >= 0) {
        need(w, other);
        begin_line(w, node);
        fa_score_print_value(w->out, &w->pair, other);
        end_line(w, node);
        return;
    }
    for (int i = 0; i < a.n; i++)
        need(w, a.arg[i]);
    if (!a.n)
        return;
    begin_line(w, node);
    fa_score_print_expression(w->out, &w->pair, node);
    count(w, node, 0);
    end_line(w, node);
}

/* Counted by compiling: two rows' addresses, and what a clamped index takes besides. */
enum { REGS_LOOKUP = 18, REGS_CLAMP = 4, REGS_DISTANCE = 8 };

static bool is_ahead(const fa_score_kernel *k, int node)
{
    for (int i = 0; i < k->aheads; i++)
        if (k->ahead[i] == node)
            return true;
    return false;
}

/* staged: what is read ahead lies in shared memory. */
static int registers(const writer *w, bool staged)
{
    const fa_score_ir *ir = &w->k->ir;
    bool reached[FA_SCORE_ROOM] = { false }, apart[FA_SCORE_ROOM] = { false },
         once = w->what == FA_SCORE_LINES_AHEAD && w->k->of_distance >= 0;
    int n = once && !staged ? REGS_DISTANCE : 0;
    fa_score_ir_reach(ir, w->k->pair, reached);
    if (once)
        fa_score_ir_reach(ir, w->k->of_distance, apart);
    for (int i = 0; i < ir->n; i++) {
        n += w->member[i];
        if (!reached[i] || apart[i] || !fa_score_is_lookup_by_key(&ir->node[i]) || (staged && is_ahead(w->k, i)))
            continue;
        n += REGS_LOOKUP;
        for (int k = 0; k < ir->node[i].n; k++)
            n += fa_score_index_inside(ir, &ir->node[i], k) ? 0 : REGS_CLAMP;
    }
    return n;
}

#define LOG2E "1.44269504088896341f"

/* x * scale * factor + slope * column + what is left, all times log2(e), less shift: what does not depend on the key is the row's. */
static void write_exponent(writer *w, const fa_score_normal *n, int slope)
{
    bool keys = !fa_score_is_value(&w->k->ir, slope, 0), none = fa_score_is_value(&w->k->ir, n->offset, 0);
    need_row(w, n->factor);
    need_row(w, slope);
    find_members(w, n->offset);
    fa_score_print_variables(w->out, &w->base, n->offset, ~0, "  ");
    fa_text_str(w->out, "  return fmaf(x, p.scale_log2");
    if (!fa_score_is_value(&w->k->ir, n->factor, 1)) {
        fa_text_str(w->out, " * ");
        fa_score_print_value(w->out, &w->pair, n->factor);
    }
    fa_text_str(w->out, keys ? ", fmaf(" : ", ");
    if (keys) {
        fa_score_print_value(w->out, &w->pair, slope);
        fa_text_str(w->out, " * " LOG2E ", (float)column, ");
    }
    fa_text_str(w->out, none ? "-shift" : "fmaf(");
    if (!none) {
        fa_score_print_value(w->out, &w->base, n->offset);
        fa_text_str(w->out, ", " LOG2E ", -shift)");
    }
    fa_text_str(w->out, keys ? "));\n" : ");\n");
}

/* Whether the score is factor * s + what is linear in the key, or the same for all of a row. */
static bool find_slope(fa_score_kernel *k, fa_score_normal *n, int *slope)
{
    fa_score_ir *ir = &k->ir;
    if (k->pair < 0 || k->unit >= 0 || !fa_score_normal_of(ir, k->pair, n) || ir->node[n->core].op != FA_SCORE_S ||
        fa_score_reads(ir, n->offset, fa_score_is_lookup_by_key))
        return false;
    *slope = fa_score_slope_of(ir, n->offset);
    return *slope >= 0;
}

/* Writes the lines of a pair to `out`, of a kernel that may grow. */
static void write_pair(writer *w, fa_text *out, fa_score_kernel *k, bool packed, fa_score_lines_of what, const fa_score_read_list *reads,
                       fa_score_read_by by)
{
    fa_score_normal n;
    int slope;
    memset(w, 0, sizeof *w);
    w->out = out;
    w->k = k;
    w->what = what;
    w->reads = reads;
    w->by = by;
    w->bend = what == FA_SCORE_LINES_BEND ? fa_score_bend_of(&k->ir, k->pair, k->unit) : -1;
    w->tile = FA_SCORE_OF_B | (packed ? 0 : FA_SCORE_OF_H);
    w->pair = (fa_score_printer){
        .ir = &k->ir,
        .words = { "t.b", packed ? "head" : "t.h", "query", "j", NULL, "t.off", "t.sq", "t.sk", "p.group", "p" },
        .member = "t.v",
    };
    w->base = w->pair;
    w->base.words.j = "key";
    w->base.variable = "score_w";
    bool by_row = fa_score_reads_inside(&k->ir, k->pair, FA_SCORE_OF_I), by_key = fa_score_reads_inside(&k->ir, k->pair, FA_SCORE_OF_J);
    fa_text_fmt(out, "  const int query = %s;\n", by_row ? "min(row, t.sq - 1)" : "row");
    fa_text_fmt(out, "  const int j = %s;\n", by_key ? "CUT ? min(key + column, t.sk - 1) : key + column" : "key + column");
    w->issue += by_key ? 0.5 : 0;
    if (what == FA_SCORE_LINES_AHEAD && !packed && k->of_distance >= 0) {
        w->pair.named[k->of_distance] = w->base.named[k->of_distance] = FA_SCORE_PARAMETER;
        w->done[k->of_distance] = true;
    }
    for (int i = 0; what == FA_SCORE_LINES_AHEAD && i < k->aheads; i++) {
        w->pair.named[k->ahead[i]] = w->base.named[k->ahead[i]] = FA_SCORE_PARAMETER;
        w->done[k->ahead[i]] = true;
    }
    if (what == FA_SCORE_LINES_EXPONENT && find_slope(k, &n, &slope)) {
        write_exponent(w, &n, slope);
        return;
    }
    need(w, k->pair);
    if (w->bend >= 0) {
        int below = fa_score_bend_below_one(&k->ir, w->bend), of = below >= 0 ? below : w->bend;
        need(w, of);
        fa_text_str(out, below >= 0 ? "  bend = -" : "  bend = ");
        fa_score_print_value(out, &w->pair, of);
        fa_text_str(out, ";\n");
    }
    for (int i = 0; what == FA_SCORE_LINES_READS && i < w->reads->n; i++) {
        const fa_score_read *r = &w->reads->read[i];
        if (r->root != FA_SCORE_ROOT_SCORE || r->by != w->by)
            continue;
        int d = fa_score_derive(&k->ir, k->ir.root[FA_SCORE_ROOT_SCORE], r->node);
        if (d < 0)
            continue;
        need(w, d);
        fa_text_fmt(out, "  by[%d] = ", r->plane);
        fa_score_print_value(out, &w->pair, d);
        fa_text_str(out, ";\n");
    }
    fa_text_str(out, "  return ");
    fa_score_print_value(out, &w->pair, k->pair);
    fa_text_str(out, ";\n");
}

/* The same of a copy, so that k stays as it is. False: there is no memory for it. */
static bool write_reads(writer **w, fa_text *out, const fa_score_kernel *k, bool packed, fa_score_lines_of what,
                        const fa_score_read_list *reads, fa_score_read_by by)
{
    struct {
        writer w;
        fa_score_kernel k;
    } *room = malloc(sizeof *room);
    *w = (writer *)room;
    out->oom = out->oom || !room;
    if (!room)
        return false;
    room->k = *k;
    write_pair(&room->w, out, &room->k, packed, what, reads, by);
    return true;
}

static bool write_copy(writer **w, fa_text *out, const fa_score_kernel *k, bool packed, fa_score_lines_of what)
{
    return write_reads(w, out, k, packed, what, NULL, FA_SCORE_BY_ROW);
}

void fa_score_kernel_pair(fa_text *out, const fa_score_kernel *k, bool packed)
{
    writer *w;
    if (write_copy(&w, out, k, packed, FA_SCORE_LINES_PAIR))
        free(w);
}

void fa_score_kernel_pair_ahead(fa_text *out, const fa_score_kernel *k, bool packed)
{
    writer *w;
    if (write_copy(&w, out, k, packed, FA_SCORE_LINES_AHEAD))
        free(w);
}

void fa_score_kernel_bend(fa_text *out, const fa_score_kernel *k, bool packed)
{
    writer *w;
    if (write_copy(&w, out, k, packed, FA_SCORE_LINES_BEND))
        free(w);
}

void fa_score_kernel_reads(fa_text *out, const fa_score_kernel *k, const fa_score_read_list *reads, fa_score_read_by by)
{
    writer *w;
    if (write_reads(&w, out, k, false, FA_SCORE_LINES_READS, reads, by))
        free(w);
}

void fa_score_kernel_distance(fa_text *out, const fa_score_kernel *k)
{
    fa_score_printer printer = {
        .ir = &k->ir,
        .words = { "t.b", "t.h", "0", "distance", NULL, "t.off", "t.sq", "t.sk", "p.group", "p" },
    };
    fa_score_print_variables(out, &printer, k->of_distance, ~0, "  ");
    fa_text_str(out, "  return ");
    fa_score_print_value(out, &printer, k->of_distance);
    fa_text_str(out, ";\n");
}

void fa_score_kernel_far(fa_text *out, const fa_score_kernel *k, fa_score_side side)
{
    fa_score_printer printer = {
        .ir = &k->ir,
        .words = { "t.b", "t.h", "0", "0", NULL, "t.off", "t.sq", "t.sk", "p.group", "p" },
    };
    fa_score_print_variables(out, &printer, k->far.base, ~0, "  ");
    fa_text_fmt(out, "  return %d %s ", k->far.at[side], k->far.negative ? "+" : "-");
    fa_score_print_value(out, &printer, k->far.base);
    fa_text_str(out, ";\n");
}

void fa_score_kernel_ahead_row(fa_text *out, const fa_score_kernel *k, bool packed, int n)
{
    fa_score_printer printer = {
        .ir = &k->ir,
        .words = { "t.b", packed ? "head" : "t.h", "query", "0", NULL, "t.off", "t.sq", "t.sk", "p.group", "p" },
    };
    const fa_score_node *a = &k->ir.node[k->ahead[n]];
    bool wide = k->ir.operand[a->operand].element == FA_SCORE_ELEMENT_F32;
    fa_text_str(out, "  const int query = min(row, t.sq - 1);\n");
    for (int i = 0; i < a->n; i++)
        fa_score_print_variables(out, &printer, a->arg[i], ~0, "  ");
    fa_text_fmt(out, "  return (const %s *)p.score%d", wide ? "float" : "unsigned short", a->operand);
    for (int i = 0; i < a->n; i++) {
        bool in = fa_score_index_inside(&k->ir, a, i);
        fa_text_str(out, in ? " + " : " + score_clamp(");
        fa_score_print_value(out, &printer, a->arg[i]);
        if (!in)
            fa_text_fmt(out, ", p.score%d_extent[%d])", a->operand, i);
        fa_text_fmt(out, " * p.score%d_stride[%d]", a->operand, i);
    }
    fa_text_str(out, ";\n");
}

void fa_score_kernel_ahead_at(fa_text *out, const fa_score_kernel *k, int n)
{
    fa_score_printer printer = {
        .ir = &k->ir,
        .words = { "t.b", "t.h", "query", "0", NULL, "t.off", "t.sq", "t.sk", "p.group", "p" },
    };
    const fa_score_node *a = &k->ir.node[k->ahead[n]];
    fa_text_str(out, "  const int query = row;\n");
    for (int i = 0; i < a->n; i++)
        fa_score_print_variables(out, &printer, a->arg[i], ~0, "  ");
    for (int i = 0; i < a->n; i++) {
        bool in = fa_score_index_inside(&k->ir, a, i);
        fa_text_fmt(out, "  at[%d] = p.score%d_stride[%d] == 0 ? 0 : ", i, a->operand, i);
        fa_text_str(out, in ? "" : "score_clamp(");
        fa_score_print_value(out, &printer, a->arg[i]);
        if (!in)
            fa_text_fmt(out, ", p.score%d_extent[%d])", a->operand, i);
        fa_text_str(out, ";\n");
    }
}

void fa_score_kernel_exponent(fa_text *out, const fa_score_kernel *k, bool packed)
{
    writer *w;
    if (write_copy(&w, out, k, packed, FA_SCORE_LINES_EXPONENT))
        free(w);
}

void fa_score_kernel_members(fa_text *out, const fa_score_kernel *k, bool packed, fa_score_lines_of of)
{
    writer *w;
    fa_text lines = { 0 };
    if (k->pair < 0 || !write_copy(&w, &lines, k, packed, of))
        return;
    for (int i = 0; i < w->k->ir.n; i++)
        if (w->member[i])
            fa_text_fmt(out, "%s v%d\n", fa_score_cuda_type(w->k->ir.node[i].type), i);
    out->oom = out->oom || lines.oom;
    fa_text_free(&lines);
    free(w);
}

void fa_score_kernel_fill(fa_text *out, const fa_score_kernel *k, bool packed, fa_score_lines_of of)
{
    writer *w;
    fa_text lines = { 0 };
    if (k->pair < 0 || !write_copy(&w, &lines, k, packed, of))
        return;
    fa_score_printer printer = {
        .ir = &w->k->ir,
        .words = { "t.b", packed ? NULL : "t.h", NULL, NULL, NULL, "t.off", "t.sq", "t.sk", "p.group", "p" },
    };
    for (int i = 0; i < w->k->ir.n; i++)
        if (w->member[i]) {
            fa_text_fmt(out, "t.v%d = ", i);
            fa_score_print_value(out, &printer, i);
            fa_text_str(out, ";\n");
        }
    out->oom = out->oom || lines.oom;
    fa_text_free(&lines);
    free(w);
}

void fa_score_kernel_sink(fa_text *out, const fa_score_kernel *k)
{
    fa_score_printer printer = {
        .ir = &k->ir,
        .words = { "b", "h", "query", NULL, NULL, "off", "sq", "sk", "p.group", "p" },
    };
    fa_text_fmt(out, "  const int query = %s;\n",
                fa_score_reads_inside(&k->ir, k->sink, FA_SCORE_OF_I) ? "max(min(row, sq - 1), 0)" : "row");
    fa_score_print_variables(out, &printer, k->sink, ~0, "  ");
    fa_text_str(out, "  return ");
    fa_score_print_value(out, &printer, k->sink);
    fa_text_str(out, ";\n");
}

void fa_score_kernel_unit(fa_text *out, const fa_score_kernel *k)
{
    fa_score_printer printer = { .ir = &k->ir, .words = { .group = "p.group", .params = "p" } };
    if (k->unit >= 0)
        fa_score_print_value(out, &printer, k->unit);
}

void fa_score_kernel_tanh_of(fa_text *out, const fa_score_kernel *k)
{
    fa_score_printer printer = { .ir = &k->ir, .words = { .group = "p.group", .params = "p" } };
    if (k->tanh_of < 0)
        return;
    fa_text_str(out, "p.scale * ");
    fa_score_print_value(out, &printer, k->tanh_of);
}

bool fa_score_lines_cost(fa_score_lines_costs *out, const fa_score_kernel *k, fa_score_lines_of of)
{
    fa_score_normal n;
    writer *w;
    fa_text lines = { 0 };
    int slope;
    if (!write_copy(&w, &lines, k, false, of))
        return false;
    *out = (fa_score_lines_costs){ .issue = w->issue,
                                   .exps = w->exps,
                                   .rows = w->rows,
                                   .exps_rows = w->exps_rows,
                                   .regs = registers(w, false),
                                   .regs_staged = registers(w, true) };
    out->differentiable = w->bend >= 0;
    out->bends = w->bend >= 0 && !fa_score_is_value(&w->k->ir, w->bend, 1);
    out->bends_below_one = w->bend >= 0 && fa_score_bend_below_one(&w->k->ir, w->bend) >= 0;
    out->bend_is_finite = w->bend >= 0 && fa_score_is_finite(&w->k->ir, w->bend);
    out->slopes = find_slope(w->k, &n, &slope);
    out->fades = out->slopes && fa_score_is_value(&w->k->ir, n.factor, 1) && !fa_score_is_value(&w->k->ir, slope, 0);
    out->along = out->slopes && !fa_score_depends_on(&w->k->ir, n.factor, FA_SCORE_OF_I) && fa_score_of_distance(&w->k->ir, n.offset);
    fa_text_free(&lines);
    free(w);
    return !lines.oom;
}
