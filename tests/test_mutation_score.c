/* Does anything notice? Each row is a fault of what templates make of a score program, and the kernel named beside it must be wrong, fault
 * or fail a check of the simulator. The kernels are those of score_kernels, which holds them right without. One row in four runs by
 * default; FAGEN_TEST_FULL=1: all. */
#include "score_kernels.h"
#include "score_mutation.h"
#include "test_full.h"

#define EVERY 4

#define P "program.cu"
#define LAYOUTS "layouts.lua"
#define SCORE "//|   indented(8, pr.apply, \"ffma\", \"s\", \"MASKED\")\n"
#define HIDE "        if constexpr (MASKED) {\n//| indented(10, pr.hide, \"ffma\", \"s\", \"-infinity()\")\n        }\n"

/* clang-format off */
static const score_fault faults[] = {
    { "the mask before the score", "ffma_packed", "flash_fwd_ffma.cu", "//| if pr.of_pairs then\n" SCORE "//| end\n" HIDE,
      HIDE "//| if pr.of_pairs then\n" SCORE "//| end\n" },
    { "the mask before the score, decoding", "decode", "decode_fragments.cu",
      "//| indented(4, pr.begin_score, \"tile.head\")\n"
      "//| indented(4, pr.scoring_by, \"!masked\", \"s, p, scored, tile.row + row, block, at\")\n"
      "    if (masked) apply_mask(s, p, sequence$(pr.ends_argument), tile.row + row, block, at);\n",
      "    if (masked) apply_mask(s, p, sequence$(pr.ends_argument), tile.row + row, block, at);\n//| indented(4, pr.begin_score, \"tile.head\")\n"
      "//| indented(4, pr.scoring_by, \"!masked\", \"s, p, scored, tile.row + row, block, at\")\n" },
    { "no score where a block is whole", "mma_bias", "flash_fwd_mma.cu",
      "\"apply_score<MASKED>(s, p, scored, where.row + warp_row, block, at);\"",
      "\"if constexpr (MASKED) apply_score<true>(s, p, scored, where.row + warp_row, block, at);\"" },
    { "a score of another block", "wgmma_alibi_lazy", "hopper_main_loop.cu", "($(next)$(l.besides and", "(block$(l.besides and" },
    { "no score of the first block", "wgmma_exact", "hopper_prologue.cu", "      mask($(at));\n", "" },
    { "no mask before exponents", "wgmma_rows_near", "hopper_mask.cu",
      "  if (!whole) apply_mask(s, p, sequence$(pr.ends_argument), row, block, t);\n", "" },
    { "exponents relative to the other row", "wgmma_rows_near", LAYOUTS, "shift = \"shift[h]\"", "shift = \"shift[1 - h]\"" },
    { "an exponent that is none", "wgmma_rows", "hopper_softmax.cu", "//|   if not pr.slopes then", "//|   if true then" },
    { "the batch is another", "mma_bias", P, "\"(int)sequence.batch\"", "\"0\"" },
    { "the sequence is another", "decode_invariant", P, "\"sequence.index\"", "\"0\"" },
    { "the diagonal's offset is left out", "wgmma_alibi", P, "t.off = $(off)", "t.off = 0" },
    { "the diagonal's offset is always sk - sq", "ffma_packed", P, "\"p.relative ? sequence.sk() - sequence.sq() : p.off\"",
      "\"sequence.sk() - sequence.sq()\"" },
    { "the head of another row", "mma_packed", P, "head = scored.h + own - query * p.group", "head = scored.h" },
    { "the query of another row", "split_wgmma", P, "query = query_of(p, own)", "query = own" },
    { "the head of another tile", "wgmma_alibi", "hopper_consumer.cu", "pr.begin_score, \"where.head\"",
      "pr.begin_score, \"where.head ^ 1\"" },
    { "the head of another tile, decoding", "dots_alibi", "decode_dots.cu", "pr.begin_score, \"tile.head\"", "pr.begin_score, \"0\"" },
    { "lookups of rows past the last", "mma_bias", P, "t.sq = sequence.sq()", "t.sq = sequence.sq() + 100000000" },
    { "lookups of keys past the last", "decode_keys", P, "t.sk = sequence.sk()", "t.sk = sequence.sk() + 100000000" },
    { "keys of another lane", "mma_bias", LAYOUTS, "key = \"block * BC + key_of_column(2 * at.t)\"", "key = \"block * BC\"" },
    { "keys out of order", "mma_tf32", LAYOUTS, "column = \"n * 8 + e * key_of_column(1)\"", "column = \"n * 8 + e\"" },
    { "the key beside", "wgmma_alibi_lazy", LAYOUTS, "column = \"n * 8 + e\", shift", "column = \"n * 8\", shift" },
    { "the row eight above", "wgmma_alibi_lazy", LAYOUTS, "row = \"row + 8 * h\", key = \"block * BC + 2 * t\"",
      "row = \"row\", key = \"block * BC + 2 * t\"" },
    { "columns of another pitch", "ffma", LAYOUTS, "column = \"16 * j\"", "column = \"j\"" },
    { "the factor twice", "wgmma_cap", P, "(\"(%s * 1.44269504088896341f)\"):format(unit)",
      "(\"(%s * %s * 1.44269504088896341f)\"):format(unit, unit)" },
    { "the factor left out of the exponent", "mma_cap", P, "(\"(%s * 1.44269504088896341f)\"):format(unit)", "\"1.44269504088896341f\"" },
    { "the factor left out of LSE", "wgmma_cap", "hopper_rows.cu", "log2_scale, scale = \"1.f\", \"0.693147180559945309f\"",
      "log2_scale, scale = \"1.f\", \"0.5f\"" },
    { "the factor left out of LSE, in units", "mma_cap", P, "pr.unit, pr.unit_log2 = unit or \"1.f\",",
      "pr.unit, pr.unit_log2 = \"1.f\"," },
    { "the factor left out of the score", "naive_cap", "score.lua", "(p.score.unit and \" * \" .. p.score.unit or \"\")", "\"\"" },
    { "base 2 taken for base e", "wgmma_alibi", P, "or \"1.44269504088896341f\"", "or \"1.f\"" },
    { "rows computed again without the program", "wgmma_rows", "exact_rows.cu",
      "//| indented(4, pr.scoring, \"s = \" .. pr.score_of(\"s\", \"head\", \"query\", \"key\") .. \";\")\n", "" },
    { "rows computed again without the program, mma", "mma_never", "exact_rows.cu",
      "//| indented(4, pr.scoring, \"s = \" .. pr.score_of(\"s\", \"head\", \"query\", \"key\") .. \";\")\n", "" },
    { "columns computed again without the program", "decode_heads", "exact_columns.cu",
      "//| indented(4, pr.scoring, \"s = \" .. pr.score_of(\"s\", \"head\", \"query\", \"key\") .. \";\")\n", "" },
    { "arrays of the block before", "wgmma_bias", "hopper_main_loop.cu", "\"read(\" .. next .. \");\"", "\"read(block);\"" },
    { "arrays of the row eight above", "wgmma_bias", LAYOUTS, "word = \"[2 * n + h]\"", "word = \"[2 * n]\"" },
    { "arrays of the key beside", "wgmma_bias_relative", "hopper_ahead.cu", "next = min(first + 8 * n + 1,", "next = min(first + 8 * n,"},
    { "pairs of another column", "wgmma_bias", "hopper_ahead.cu", "+ h] = pairs[4 * n];", "+ h] = pairs[n];" },
    { "a distance of the row beside", "wgmma_t5", "hopper_ahead.cu", "- 15 + (int)threadIdx.x % 32", "- 14 + (int)threadIdx.x % 32" },
    { "a distance of another word", "wgmma_t5", "hopper_ahead.cu", "return own / 32 == first ? low : high;", "return low;" },
    { "a distance of the row eight above", "wgmma_t5", LAYOUTS, "8 * n + e - 8 * h, t", "8 * n + e, t" },
    { "a diagonal of the row beside", "wgmma_relative", "hopper_ahead.cu", "\"at[8 * n]\", \"at[8 * n + 1]\"",
      "\"at[8 * n + 1]\", \"at[8 * n + 2]\"" },
    { "a diagonal that is none", "wgmma_relative", "hopper_ahead.cu", "= $(to)[2 * n - 2];", "= $(to)[2 * n];" },
    { "a line of the row beside", "wgmma_staged_line", "hopper_staged.cu", "- (where.row + BR - 1) + lane", "- (where.row + BR) + lane" },
    { "an odd distance out of the even copy", "wgmma_staged_line", P, "(place$(n) & 1) * LINE", "0 * LINE" },
    { "a line of the row eight below", "wgmma_staged_line", P, "v%d[1 + i - h].x : v%d[1 + i - h].y", "v%d[1 + i].x : v%d[1 + i].y" },
    { "distances of the block before that are none of this", "wgmma_staged_line", "hopper_staged.cu", "load_shared_x4(before + i)",
      "load_shared_x4(before + (i ^ 16))" },
    { "blocks that are not far yet", "wgmma_staged_far", "hopper_staged.cu", "key + BC - 1 - row <=", "key - row <=" },
    { "blocks that are not far yet, above", "wgmma_staged_far_sides", "hopper_staged.cu", "key - (row + BR - 1) >=", "key - row >=" },
    { "the number of the other side", "wgmma_staged_far_sides", "hopper_staged.cu", "side < 0 ? ", "side > 0 ? " },
    { "distances of a block before that has none", "wgmma_staged_far_sides", "hopper_staged.cu",
      "if far and far.above then first = first", "if false then first = first" },
    { "products in the place of what scores begin with", "wgmma_staged_line", "hopper_products.cu",
      "\"issue_scores_onto\", \"wgmma_scores\"", "\"issue_scores_onto\", \"wgmma_scores_first\"" },
    { "scores begin with those of the row eight below", "wgmma_staged_line", P, "%s + 32 + (u32)", "%s + (u32)" },
    { "scores begin in units of scores", "wgmma_staged_line", "hopper_staged.cu", "? x * reciprocal(p.scale) :", "? x :" },
    { "the first block in units of products", "wgmma_staged_line", P, "p.scale * (e == 0", "1.f * (e == 0" },
    { "exponents in units of scores", "wgmma_staged_line", "hopper_main_loop.cu", "l.begins and \"p.scale_log2\"", "l.begins and \"1.f\"" },
    { "scores begin with the block at hand's", "wgmma_staged_line", "hopper_prologue.cu", "      if (second) release_stage();\n", "" },
    { "a scale that is beyond all numbers", "wgmma_begins_vast", "hopper_staged.cu", "p.scale < 0x1p125f ? ", "true ? " },
    { "what all of a block have left out", "wgmma_staged_far", "hopper_softmax.cu", "less[2] = {shift[0] - beside, shift[1] - beside}",
      "less[2] = {shift[0], shift[1]}" },
    { "a far block in units of scores", "wgmma_staged_far", "hopper_consumer.cu", "        unit_log2 = p.scale_log2;\n", "        unit_log2 = 1.f;\n" },
    { "a tile of the row eight above", "wgmma_staged_tile", P, "(%s + lane %% 16) * %d", "(%s + lane %% 8) * %d" },
    { "a tile of the column beside", "wgmma_staged_wide", P, "load_shared_float2(from$(n) + m * 64 + 32),\n",
      "load_shared_float2(from$(n) + m * 64),\n" },
    { "no wait for a stage", "wgmma_staged_tile", "hopper_consumer.cu",
      "      mbarrier_wait(score_full(smem, stages.at), stages.parity);\n//| end\n//| indented(6, pr.scoring_by",
      "//| end\n//| indented(6, pr.scoring_by" },
    { "keys of the block beside", "wgmma_staged_keys", "hopper_staged.cu", "where.row, block * BC,\n", "where.row, block * BC + BC,\n" },
    { "exponents of rows that stay relative to the other row", "wgmma_high", "hopper_softmax.cu", "\"shift[i / 2 % 2]\"))", "\"shift[0]\"))" },
    { "a sum as it was beside a lowered O", "wgmma_sums_rise", "hopper_softmax.cu",
      "    state[h].l *= keep[h];\n  }\n#pragma unroll\n  for (int i = 0; i < NO",
      "  }\n#pragma unroll\n  for (int i = 0; i < NO" },
    { "a lowered sum beside O as it was", "wgmma_sums_rise", "hopper_softmax.cu",
      "o[i] *= keep[i / 2 % 2];\n#pragma unroll\n  for (int i = 0; i < NS / 2",
      "o[i] *= 1.f;\n#pragma unroll\n  for (int i = 0; i < NS / 2" },
    { "P lowered by the other row", "wgmma_sums_rise", "hopper_softmax.cu", "(a[i] << 16) * keep[i % 2]", "(a[i] << 16) * keep[1 - i % 2]" },
    { "infinite sums that are no row to compute again", "wgmma_sums_beyond", "hopper_rows.cu", "if l.most or l.sums then", "if l.most then" },
    { "a factor of the row left out", "wgmma_rows", "hopper_softmax.cu", "//|   if not pr.slopes then", "//|   if true then" },
    { "no sink", "mma_pages", P, "$(l) += sink_weight($(z),", "$(l) += 0.f * sink_weight($(z)," },
    { "no sink where warpgroups store boxes", "wgmma_lengths", "hopper_store.cu",
      "    inverse[h] = reciprocal(l[h])$(pr.out_scale);\n  }", "    inverse[h] = reciprocal(quad_sum(state[h].l))$(pr.out_scale);\n  }" },
    { "the sink of the row eight above", "wgmma_lengths", "hopper_store.cu", "where.head, row + warp_row + lane / 4 + 8 * h);",
      "where.head, row + warp_row + lane / 4);" },
    { "the sink of another head", "mma_lengths", "epilogue.cu", "of .. \".head\", of", "\"w.head\", of" },
    { "the sink of another query", "decode", "parts.cu", "pr.add_sink(\"l\", sum .. \".m\", at[1], at[2]",
      "pr.add_sink(\"l\", sum .. \".m\", at[1], at[2] .. \" + 1\"" },
    { "the sink twice, where parts are merged", "split_wgmma", "parts.cu",
      "//|       pr.add_sink(\"l\", sum .. \".m\", at[1], at[2], scale_log2, scale)\n",
      "//|       pr.add_sink(\"l\", sum .. \".m\", at[1], at[2], scale_log2, scale)\n"
      "l += sink_weight(z, $(sum).m, $(scale_log2), $(scale));\n" },
    { "the sink in every part", "split_mma", "part_rows.cu", "const float l = quad_sum($(holds.state).l);",
      "const float l = quad_sum($(holds.state).l) + sink_weight(sink_of(p, sequence, row_of(p, where, where.row + first + "
      "$(holds.row)).head, row_of(p, where, where.row + first + $(holds.row)).query), $(holds.state).m, 1.44269504088896341f, 1.f);" },
    { "the sink left out of LSE", "mma_pages", "epilogue.cu", "$(pr.log_sum_exp(\"state[m][h]\", \"l\", \"z\"))",
      "$(pr.log_sum_exp(\"state[m][h]\", \"quad_sum(state[m][h].l)\", \"z\"))" },
    { "the sink left out of LSE, merged", "decode", "parts.cu", "local lse = pr.log_sum_exp((\"{%s.m, %s.l}\"):format(sum, sum), all,",
      "local lse = pr.log_sum_exp((\"{%s.m, %s.l}\"):format(sum, sum), sum .. \".l\"," },
    { "no sink of rows without keys", "decode_invariant", P,
      "return has_sink and (\"sink_of(p, sequence, %s, %s)\"):format(head, query) or \"-infinity()\"", "return \"-infinity()\"" },
    { "rows without keys take the sink for a sum", "wgmma_cap_sink", P, "((row.m == -infinity()) | ", "(" },
    { "sinks that outweigh all keys", "split_sink", P, " > 64.f)) ? z : lse;", " > 1e30f)) ? z : lse;" },
    { "sinks beyond fp32", "split_sink", P, "x > 120.f ? 120.f : x", "x" },
    { "the sink relative to another maximum", "wgmma_pages", P, "$(l) += sink_weight($(z), $(m),",
      "$(l) += sink_weight($(z), 0.f * $(m)," },
    { "the sink in other units", "wgmma_cap_sink", P, "scale_log2 or pr.unit_log2), $(scale or pr.unit)",
      "scale_log2 and \"1.f\" or \"1.f\"), $(scale or pr.unit)" },
    { "a box of the row beside", "wgmma_staged_held", "hopper_staged.cu", "score_at$(node)(p, scored, row, index);",
      "score_at$(node)(p, scored, row + 1, index);" },
    { "a box of the key beside", "wgmma_staged_held", "hopper_staged.cu", "index[%d] + key\"", "index[%d] + key + 1\"" },
    { "a box of another head", "wgmma_staged_held", "hopper_staged.cu", "load_tile$(tile.node)(p, map$(tile.node), scored, ",
      "load_tile$(tile.node)(p, map$(tile.node), score_tile(p, sequence, 0), " },
    { "a box that counts at another stage", "wgmma_staged_held", "hopper_staged.cu",
      "stage + $(tile.at), score_full(smem, at), where.row", "stage + $(tile.at), score_full(smem, (at + 1) % STAGES_SCORE), where.row" },
    { "a box that is not awaited", "wgmma_staged_held", "hopper_staged.cu", "mbarrier_expect(score_full(smem, at), $(bytes));",
      "mbarrier_arrive(score_full(smem, at));" },
    { "rows where no box can lie", "wgmma_staged_held", "hopper_staged.cu", "\"if (!p.boxed) \"", "\"if (false) \"" },
    { "a box of the row's own pattern", "wgmma_staged_held", P, "turn$(n) = lane / 16 * 16 ^ lane % 8 * 16", "turn$(n) = lane / 16 * 16" },
    { "elements that are not where a box has them", "wgmma_staged_held", "hopper_staged.cu", " ^ i % 8 * 16)", ")" },
    { "blocks of which something is left", "wgmma_alibi_steep", "hopper_mask.cu", "NOTHING = -127.f", "NOTHING = 400.f" },
    { "what is left at the last key", "wgmma_alibi_steep", "hopper_mask.cu", "last = exponent(h, BC - 7)", "last = exponent(h, 0)" },
    { "products that outweigh the distance", "wgmma_alibi_steep", "hopper_mask.cu", "fmaf(__int_as_float(top), p.scale_log2, most)", "most" },
    { "probabilities of the block before", "wgmma_alibi", "hopper_main_loop.cu", "          clear_operand(a);\n", "" },
    { "V of a block of which nothing is left", "wgmma_alibi", "hopper_main_loop.cu",
      "          release_v();\n//|   if l.pingpong_softmax then", "//|   if l.pingpong_softmax then" },
    { "a turn without exponentials", "wgmma_alibi", "hopper_main_loop.cu", "          pingpong_pass(wg);\n//|   end\n          clear", "//|   end\n          clear" },
};
/* clang-format on */
#define FAULTS (sizeof faults / sizeof *faults)

Test(mutation_score, faults_are_noticed, .timeout = 1200)
{
    score_ask(faults, FAULTS, score_kernels, SCORE_KERNELS, false, full() ? 1 : EVERY);
}

Test(mutation_score, faults_are_noticed_on_hopper, .timeout = 1200)
{
    score_ask(faults, FAULTS, score_kernels, SCORE_KERNELS, true, full() ? 1 : EVERY);
}
