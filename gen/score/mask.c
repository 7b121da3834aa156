/* mask: the mask's nodes as lines; what the compiler can take out of loops over rows or keys is left to it. */
#include "mask.h"
#include "print_cuda.h"
#include "reach.h"

static unsigned of_tile(bool packed)
{
    return FA_SCORE_OF_B | (packed ? 0 : FA_SCORE_OF_H);
}

/* The largest parts of the mask that a tile's pairs share, and that look something up. */
static void find_members(const fa_score_ir *ir, int node, bool packed, bool looked[FA_SCORE_ROOM], uint8_t named[FA_SCORE_ROOM])
{
    const fa_score_node *a = &ir->node[node];
    if (looked[node] || !fa_score_reads(ir, node, fa_score_is_lookup))
        return;
    looked[node] = true;
    if (!(a->depends & ~of_tile(packed)))
        named[node] = FA_SCORE_MEMBER;
    else
        for (int k = 0; k < a->n; k++)
            find_members(ir, a->arg[k], packed, looked, named);
}

static fa_score_printer printer_of(const fa_score_ir *ir, bool packed)
{
    bool looked[FA_SCORE_ROOM] = { false };
    fa_score_printer p = {
        .ir = ir,
        .words = { "t.b", packed ? "head" : "t.h", "query", "j", NULL, "t.off", "t.sq", "t.sk", "p.group", "p" },
        .variable = "mask_v",
        .member = "t.m",
    };
    find_members(ir, ir->root[FA_SCORE_ROOT_MASK], packed, looked, p.named);
    return p;
}

/* A tile's pairs share much of it: rows what depends on the key, keys what depends on the row. */
fa_score_mask fa_score_mask_of(const fa_score_ir *ir)
{
    enum { REGS = 4, REGS_LOOKUP = 6, ISSUE_LOOKUP = 4 };
    bool reached[FA_SCORE_ROOM] = { false };
    fa_score_mask m = { .root = ir->root[FA_SCORE_ROOT_MASK] };
    if (m.root < 0)
        return m;
    fa_score_ir_reach(ir, m.root, reached);
    m.issue = 1; /* the select */
    m.regs = REGS;
    m.of_off = fa_score_reads(ir, m.root, fa_score_is_off);
    for (int i = 0; i < ir->n; i++) {
        const fa_score_node *a = &ir->node[i];
        bool row = a->depends & FA_SCORE_OF_I, key = a->depends & FA_SCORE_OF_J;
        if (!reached[i])
            continue;
        m.issue += !a->n || !key ? 0 : (a->op == FA_SCORE_LOOKUP ? ISSUE_LOOKUP : 1) * (row ? 1 : 0.5);
        m.regs += a->op == FA_SCORE_LOOKUP && key ? REGS_LOOKUP : 0;
    }
    return m;
}

void fa_score_mask_members(fa_text *out, const fa_score_ir *ir, bool packed)
{
    fa_score_printer p = printer_of(ir, packed);
    for (int i = 0; i < ir->n; i++)
        if (p.named[i])
            fa_text_fmt(out, "%s m%d\n", fa_score_cuda_type(ir->node[i].type), i);
}

void fa_score_mask_fill(fa_text *out, const fa_score_ir *ir, bool packed)
{
    fa_score_printer members = printer_of(ir, packed), p = members;
    for (int i = 0; i < ir->n; i++)
        p.named[i] = FA_SCORE_UNNAMED;
    for (int i = 0; i < ir->n; i++)
        if (members.named[i]) {
            fa_text_fmt(out, "t.m%d = ", i);
            fa_score_print_value(out, &p, i);
            fa_text_str(out, ";\n");
        }
}

void fa_score_mask_pair(fa_text *out, const fa_score_ir *ir, bool packed)
{
    fa_score_printer p = printer_of(ir, packed);
    int root = ir->root[FA_SCORE_ROOT_MASK];
    fa_text_fmt(out, "  const int query = %s;\n", fa_score_reads_inside(ir, root, FA_SCORE_OF_I) ? "min(row, t.sq - 1)" : "row");
    fa_text_fmt(out, "  const int j = %s;\n",
                fa_score_reads_inside(ir, root, FA_SCORE_OF_J) ? "CUT ? min(key + column, t.sk - 1) : key + column" : "key + column");
    fa_score_print_variables(out, &p, root, ~0, "  ");
    fa_text_str(out, "  return ");
    fa_score_print_value(out, &p, root);
    fa_text_str(out, ";\n");
}
