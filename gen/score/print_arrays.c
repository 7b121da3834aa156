/* print_arrays: elements one by one where they are few, else blocks of them by the tables. */
#include "print_arrays.h"
#include <stdio.h>

static void print_one_by_one(fa_text *out, const fa_score_operand *o, int operand)
{
    fa_text_fmt(out, "  const float n = 1.f");
    for (int k = 0; k < o->rank; k++)
        fa_text_fmt(out, " * (float)(x%d.hi - x%d.lo + 1)", k, k);
    fa_text_fmt(out, ";\n  if (n <= %d.f) {\n", FA_SCORE_ONE_BY_ONE);
    for (int k = 0; k < o->rank; k++)
        fa_text_fmt(out, "    for (int a%d = x%d.lo; a%d <= x%d.hi; a%d++)\n", k, k, k, k, k);
    fa_text_fmt(out, "      r = score_hull(r, score_point(%sscore_read%d(p", o->type == FA_SCORE_BOOL ? "(int)" : "", operand);
    for (int k = 0; k < o->rank; k++)
        fa_text_fmt(out, ", a%d", k);
    fa_text_str(out, ")));\n    return r;\n  }\n");
}

static void print_by_blocks(fa_text *out, const fa_score_operand *o, int operand, int table)
{
    int rank = o->rank;
    fa_text_str(out, "  if (");
    for (int k = 0; k < rank - 2; k++)
        fa_text_fmt(out, "x%d.lo != x%d.hi || ", k, k);
    const char *row0 = "0", *row1 = "0";
    char first[24], last[24];
    if (rank > 1) {
        snprintf(first, sizeof first, "x%d.lo / %d", rank - 2, FA_SCORE_TABLE_STEP);
        snprintf(last, sizeof last, "x%d.hi / %d", rank - 2, FA_SCORE_TABLE_STEP);
        row0 = first;
        row1 = last;
    }
    fa_text_fmt(out, "(float)(%s - %s + 1) * (float)(x%d.hi / %d - x%d.lo / %d + 1) > %d.f) return any;\n", row1, row0, rank - 1,
                FA_SCORE_TABLE_STEP, rank - 1, FA_SCORE_TABLE_STEP, FA_SCORE_BLOCKS_MAX);
    fa_text_str(out, "  long long lead = 0;\n");
    for (int k = 0; k < rank - 2; k++)
        fa_text_fmt(out, "  lead = lead * p.score%d_extent[%d] + (p.score%d_stride[%d] == 0 ? 0 : x%d.lo);\n", operand, k, operand, k, k);
    if (rank > 1)
        fa_text_fmt(out, "  lead *= score_steps(p.score%d_extent[%d]);\n", operand, rank - 2);
    fa_text_fmt(out, "  int all = 1, bits = 0;\n  const int rows = %s, columns = x%d.hi / %d;\n", row1, rank - 1, FA_SCORE_TABLE_STEP);
    fa_text_fmt(out, "  for (int row = %s; row <= rows; row += 2)\n    for (int column = x%d.lo / %d; column <= columns; column += 2)\n",
                row0, rank - 1, FA_SCORE_TABLE_STEP);
    fa_text_str(out, "#pragma unroll\n      for (int k = 0; k < 4; k++) {\n"); /* together, as above */
    fa_text_fmt(
        out,
        "        const int word = ((const int *)p.mask_pairs%d)[(lead + min(row + k / 2, rows)) * score_steps(p.score%d_extent[%d]) + "
        "min(column + k %% 2, columns)];\n",
        table, operand, rank - 1);
    fa_text_str(out, "        all &= word;\n        bits |= word >> 8;\n      }\n  return {all & 1, bits};\n");
}

static const char *any_of(const fa_score_operand *o)
{
    switch (o->element) {
    case FA_SCORE_ELEMENT_I32:
    case FA_SCORE_ELEMENT_I64:
        return "ScoreSpan any = {-1073741824, 1073741824}";
    case FA_SCORE_ELEMENT_U8:
        return "ScoreSpan any = {0, 255}";
    case FA_SCORE_ELEMENT_BITS:
        return "ScoreSpan any = {0, 1}";
    default:
        return "ScoreReal any = score_anything()";
    }
}

static void print_pairs(fa_text *out, const fa_score_tiles *t, int operand, int table, const char *params_type)
{
    const fa_score_operand *o = &t->ir->operand[operand];
    const char *type = o->type == FA_SCORE_F32 ? "ScoreReal" : "ScoreSpan";
    fa_text_fmt(out, "__device__ __forceinline__ %s score_pairs%d(const %s &p", type, operand, params_type);
    for (int k = 0; k < o->rank; k++)
        fa_text_fmt(out, ", ScoreSpan x%d", k);
    fa_text_str(out, ") {\n");
    for (int k = 0; k < o->rank; k++)
        fa_text_fmt(out, "  x%d = score_inside(x%d, p.score%d_extent[%d]);\n", k, k, operand, k);
    fa_text_fmt(out, "  const %s;\n  %s r = score_nothing%s();\n", any_of(o), type, o->type == FA_SCORE_F32 ? "_real" : "");
    print_one_by_one(out, o, operand);
    if (table >= 0)
        print_by_blocks(out, o, operand, table);
    else
        fa_text_str(out, "  return any;\n");
    fa_text_str(out, "}\n");
}

void fa_score_tiles_print_helpers(fa_text *out, const fa_score_tiles *t, const char *params_type)
{
    bool printed[FA_SCORE_OPERANDS_MAX] = { false };
    for (int i = 0; i < t->ir->n; i++) {
        int operand = t->ir->node[i].operand;
        if (t->mask < 0 || t->reading[i] != FA_SCORE_BY_PAIRS || printed[operand])
            continue;
        printed[operand] = true;
        print_pairs(out, t, operand, t->table[i], params_type);
    }
}
