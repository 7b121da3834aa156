/* Does anything notice? Each row is a fault of what templates make of a score program's mask, and the kernel of mask_kernels named beside
 * it must be wrong, fault or fail a check of the simulator. One row in nine runs by default; FAGEN_TEST_FULL=1: all. */
#include "mask_kernels.h"
#include "score_mutation.h"
#include "test_full.h"

#define EVERY 9

#define P "program.cu"
#define S "scan.cu"
#define R "ranges.cu"
#define H "hide.cu"
#define M "mask_stage.cu"
#define L "mask_lines.cu"
#define W "hopper_masks.cu"
#define C "hopper_consumer.cu"

/* clang-format off */
static const score_fault faults[] = {
    { "what is seen is hidden", "mma_nan", P, "hides .. \" && !\" .. sees", "hides .. \" && \" .. sees" },
    { "the mask of the block's first key alone", "wgmma_bands", P, "head, query, %s, %s)\"):format(of.key, of.column)",
      "head, query, %s, 0 * (%s))\"):format(of.key, of.column)" },
    { "the mask where it is whole alone", "dots_bands", P, "local hides = masked or cut", "local hides = masked and \"!masked\" or cut" },
    { "keys past the last are looked up", "naive", P, "local sees = (\"score_sees<true>(p, scored, %s, %s, %s, 0)\")",
      "local sees = (\"score_sees<false>(p, scored, %s, %s, %s + 100000000, 0)\")" },
    { "rows that see no key are computed again", "mma_nan", P, "return has_mask and (\" && %s != -infinity()\"):format(m) or \"\" end",
      "return \"\" end" },
    { "a row that sees no key, in three passes", "naive_nan", "naive.cu", "  if (m == -infinity()) hi = lo - 1;  // no key that counts\n",
      "" },
    { "rows computed again without the mask", "mma_far", "exact_rows.cu",
      "//| indented(4, pr.pass_hidden, \"head\", \"query\", \"key\", \"uniform\")\n", "" },
    { "columns computed again without the mask", "decode_far", "exact_columns.cu",
      "//| indented(4, pr.pass_hidden, \"head\", \"query\", \"key\")\n", "" },
    { "the last key that is seen is not", "ffma_packed", R, "r.key_hi = min(last_key(sequence, i1), seen.hi);",
      "r.key_hi = min(last_key(sequence, i1), seen.hi - 1);" },
    { "the first key that is seen is not", "wgmma_cluster", R, "r.key_lo = max(first_key(sequence, i0), seen.lo);",
      "r.key_lo = max(first_key(sequence, i0), seen.lo + BC);" },
    { "blocks are whole that some row does not see", "wgmma_pages", R, "max(first_key(sequence, i1), seen.full_lo), all_hi",
      "first_key(sequence, i1), all_hi" },
    { "blocks are whole to the right of what all rows see", "wgmma_ahead", R, "min(last_key(sequence, i0), seen.full_hi);",
      "last_key(sequence, i0);" },
    { "a row's first key is left out", "wgmma_pages", H, "max($(pr.first_key(\"within\")), ends.lo)", "$(pr.first_key(\"within\"))" },
    { "a row's last key is left out", "wgmma_ahead", H, "min($(pr.last_key(\"within\")), ends.hi)", "$(pr.last_key(\"within\"))" },
    { "ends of the row eight above", "wgmma_ahead", H, "pr.own_row(of.score.row)", "pr.own_row((of.score.row:gsub(\"8 [*] h\", \"0\")))" },
    { "ends to the left are bits of the right", "wgmma_pages", H, "below_lo = columns_below(from - first);",
      "below_lo = columns_below(upto - first);" },
    { "the first of 32 blocks is left out", "mma_bands", S, "cut = __ballot_sync(~0u, is == 1);\n    }\n    const int n = __ffs(some) - 1;",
      "cut = __ballot_sync(~0u, is == 1);\n      some &= ~1u;\n    }\n    const int n = __ffs(some) - 1;" },
    { "blocks that are cut are whole", "mma_bands", S, "cut = __ballot_sync(~0u, is == 1);", "cut = __ballot_sync(~0u, is == 2);" },
    { "edges cut no block of a scan", "wgmma_blocks", S, "  if (block <= keys.full_lo || block >= keys.full_hi) return 1;\n", "" },
    { "what is cut for the tile is whole for its rows", "wgmma_blocks", S, "if (of_tile == 2) return 2;", "return 2;" },
    { "the block beside", "mma_nan", S, "return 2 * (top + 31 - n) +", "return 2 * max(top + 30 - n, 0) +" },
    { "the last 32 blocks are not looked at", "mma_bands", S, "if (top <= lo) return -1;", "if (top <= lo + 32) return -1;" },
    { "the second block ahead for the first", "mma_bands", S, "code$(n) = $(n < pr.walk_depth and", "code$(n) = $(n < 0 and" },
    { "iterations that are cut are whole", "decode_bands", S, "2 - (int)(cut >> n & 1);", "2;" },
    { "keys of iterations that are cut are not loaded", "decode_bands", "decode_loader.cu", "    if (is != 0) {", "    if (is == 2) {" },
    { "iterations where all is hidden", "decode_bands", "decode_kernel.cu", "if (is != 0) rows.attend(", "if (is >= 0) rows.attend(" },
    { "ranges of another tile's block", "dots_bands", S, "block > t.range.block_hi) return 0;\n  const int last",
      "block >= t.range.block_hi) return 0;\n  const int last" },
    { "V of the block at hand", "wgmma_bands_ahead", "hopper_producer.cu", "sequence.map_key((before >> CODE_BLOCK) * BC)",
      "sequence.map_key((max(code, 0) >> CODE_BLOCK) * BC)" },
    { "pages of the block at hand", "wgmma_bands", "hopper_pages.cu",
      "if (after >= 0) next = Runs(p, sequence, after >> CODE_BLOCK, lane).look_up();",
      "if (after >= 0) next = Runs(p, sequence, max(code, 0) >> CODE_BLOCK, lane).look_up();" },
    { "a tile without keys waits for some", "wgmma_bands", S, "BlockEnds ends = {lo, lo - 1};", "BlockEnds ends = {lo, lo};" },
    { "the scheduler does not wait for the kernel before", "wgmma_bias", "hopper_scheduler.cu",
      "  grid_wait();  // ranges are found of what the program reads\n", "" },
    { "the mask of the next block", "wgmma_bands_ahead", "hopper_consumer.cu", "      const int block = code >> CODE_BLOCK;\n",
      "      const int block = (code >> CODE_BLOCK) + 1;\n" },
    { "whole blocks are cut, cut ones whole", "wgmma_bands", "hopper_consumer.cu",
      "\"(code >> wg & 1) == 0\" or pr.is_whole(\"keys\")\n//| local arguments",
      "\"(code >> wg & 1) != 0\" or pr.is_whole(\"keys\")\n//| local arguments" },
    { "warpgroups have the bits of the first", "wgmma_steps", S, "cut[i] = i == wg ? bits : cut[i];", "cut[i] = wg == 0 ? bits : cut[i];" },
    { "the last block is not told", "wgmma_bands_ahead", "hopper_producer.cu", "(after < 0 ? (u32)CODE_LAST : 0u)", "0u" },
    { "the code of another buffer", "wgmma_bands", "hopper_main_loop.cu", "code_at(smem, k.at)", "code_at(smem, 0)" },
    { "the code of the first block ahead", "wgmma_bands_ahead", "hopper_epilogue.cu",
      "        code = (int)load_shared(code_at(smem, k.at));\n", "" },
    { "a mask of heads as that of the first", "mma_heads", P, "return packed() and head .. \" + p.group - 1\" or head end",
      "return head end" },
    { "rows of the sequence's end are not zeros", "wgmma_bands", "hopper_out_of_range.cu", "own_rows(sequence, code >> 1);",
      "own_rows(sequence, 0);" },
    { "values of the keys beside", "wgmma", M, "$(column.at) + t * 8;", "$(column.at) + t * 8 + 8;" },
    { "the value of the row eight above", "wgmma", M, "of.node, value(row .. \" + 8\"))", "of.node, value(row))" },
    { "elements that are 0 are not", "wgmma_seen", M, "l.masks.contrary and \"== 0\" or \"!= 0\"", "\"!= 0\"" },
    { "bytes of the key beside", "wgmma_seen", M, "e == 0 ? seen[h] & 255 : seen[h] >> 8", "e == 1 ? seen[h] & 255 : seen[h] >> 8" },
    { "bits from the middle of a word on", "wgmma_dense", M, "const int begin = ($(first)) & 31;", "const int begin = 0;" },
    { "words of a tree from their begin on", "wgmma_tree", M, "block * BC + mask_plane_first(p, scored, scored.h)", "block * BC" },
    { "what lies before the queries is hidden", "wgmma_tree", W, "word < 0 ? ~0u : ", "word < 0 ? 0u : " },
    { "past the last element is the word's rest", "wgmma_tree", W, " | after << left;", ";" },
    { "past the last word is the last", "wgmma_tree", W, "word > last ? after : x", "x" },
    { "words of the row eight above", "wgmma_dense", M, "load_shared(elements + h * $(8 * l.masks.pitch) + 4 * (word + 1))",
      "load_shared(elements + 4 * (word + 1))" },
    { "elements of the first warpgroup alone", "wgmma_dense", W, "if ((code >> wg & CODE_EDGE) == CODE_CUT)", "if (wg == 0)" },
    { "elements past the last key are read", "wgmma_seen", W, "min(max(keys - key - n, 0), BYTES)", "BYTES" },
    { "rows that do not begin at 16 bytes", "wgmma_seen", W, "if ($(stride) == 1 && apart % 16 == 0)", "if ($(stride) == 1)" },
    { "copies are not waited for", "wgmma_seen", W, "      mbarrier_arrive_copied(", "      mbarrier_arrive(" },
    { "a stage is filled while it is read", "wgmma_seen", W, "      mbarrier_wait(mask_empty(smem, masks.at), masks.parity ^ 1);\n", "" },
    { "a stage is read while it is filled", "wgmma", C,
      "        mbarrier_wait(mask_full(smem, masks.at), masks.parity);\n        if (code_is", "        if (code_is" },
    { "what a warpgroup does not see at all", "wgmma_skips", C, "s[i] = own == CODE_HIDDEN ? -infinity() : s[i];", "s[i] = s[i];" },
    { "the line of the tile's first rows for that of a warpgroup's", "wgmma_runs", M, "where.row + 64 * ((int)threadIdx.x % 32);",
      "where.row;" },
    { "edges of no warpgroup but the last", "wgmma_found", M, "(edges & ~maybe) >> n & 1",
      "(int)threadIdx.x % 32 == WGS - 1 && (edges & ~maybe) >> n & 1" },
    { "the first block of a word alone", "wgmma_runs", M, "some ^= 1u << n;", "some = 0;" },
    { "the first word of a line for all", "wgmma_words", M, "line != nullptr ? line[word]", "line != nullptr ? line[0]" },
    { "what the last warpgroup alone sees", "wgmma_runs", M, "for (int i = 0; i < WGS; i++) some |= __shfl",
      "for (int i = 0; i < WGS - 1; i++) some |= __shfl" },
    { "the scheduler sees the first warpgroup's blocks alone", "wgmma_runs", M, "for (int i = 0; i < WGS; i++)\n      if (i < lines",
      "for (int i = 0; i < 1; i++)\n      if (i < lines" },
    { "a tile of which nothing is seen waits for some", "wgmma_skips", M, "BlockEnds ends = {0, -1};", "BlockEnds ends = {0, 0};" },
    { "blocks with some hidden pair are whole", "wgmma", L, "{sees, sees && is == 1,", "{sees, sees && is == 2," },
    { "what is solved is no edge", "wgmma_found", L, "sees && (solved == 1 ||", "sees && (solved == 0 ||" },
    { "the launch's mask cuts no block", "wgmma_runs", L, " || block <= range.full_lo || block >= range.full_hi", "" },
    { "the line of the first head", "wgmma_runs", L, "program.marks_by_h and \"head\" or \"0\"", "\"0\"" },
    { "the line of the first sequence", "wgmma_runs", L, "program.marks_by_b and \"(int)sequence.batch\" or \"0\"", "\"0\"" },
    { "lines are found before the tables", "wgmma", L, "  grid_over(), grid_wait();\n  for (long long job = (long long)$(wk.block) * 8",
      "  for (long long job = (long long)$(wk.block) * 8" },
    { "the ends of the row eight above", "wgmma_ahead", H, "load_shared(ends + h * 64 + 4)", "load_shared(ends + 4)" },
    { "ends of the rows of another warp", "wgmma_turned", C, "smem + SMEM_ENDS + (wg * 64 + warp_row) * 8",
      "smem + SMEM_ENDS + (wg * 64 + (warp_row + 16) % 64) * 8" },
    { "what is skipped is not given back", "wgmma_skips", C, "        release_mask();\n      }\n//|   end\n      skip_v();",
      "      }\n//|   end\n      skip_v();" },
    { "V of what is skipped", "wgmma_skips", C, "//|   end\n      skip_v();\n", "//|   end\n" },
    { "the tile's last block is skipped at its begin", "wgmma_skips", "hopper_prologue.cu",
      "code_is(code, wg, CODE_HIDDEN) && !code_has(code, CODE_LAST)", "code_is(code, wg, CODE_HIDDEN)" },
    { "each run of blocks is the first", "wgmma_skips", "hopper_prologue.cu", "      if (fresh)\n", "      if (fresh || true)\n" },
    { "a block of which nothing is seen is a tile's last", "wgmma_skips", "hopper_epilogue.cu", "if (!hides) break;\n#pragma",
      "break;\n#pragma" },
    { "the last block of those that are skipped", "wgmma_apart", "hopper_epilogue.cu", "hides = !code_has(code, CODE_LAST);",
      "hides = true;" },
    { "Q is given back before the tile's last block", "wgmma_skips", "hopper_epilogue.cu", "pr.skips and \"if (!hides) \" or \"\"",
      "\"\"" },
    { "a warpgroup is over before the last block that it sees", "wgmma_skips", M, "(seen & ((1u << n) - 1)) == 0", "true" },
    { "blocks that only others see do not pass", "wgmma_skips", C, "while (!code_has(code, CODE_LAST)) {\n        mbarrier_wait(k_full",
      "while (false) {\n        mbarrier_wait(k_full" },
    { "Q is given back before its last S", "wgmma_skips", "hopper_main_loop.cu", "if (code_has(code, $(pr.last_s))) release", "release" },
    { "all warps store the first one's rows", "wgmma", "hopper_store.cu", "from, first = \"tile + warp_row * ROW\"",
      "from, first = \"tile\"" },
    { "rows computed again while their box leaves", "wgmma_far", "hopper_store.cu", "      if (lane == 0) tma_wait();\n", "" },
    { "lines of rows that are not turned round", "wgmma_skips", M, "slot == 0 ? lane : WGS - 1 - lane", "lane" },
    { "Q of rows that are not turned round", "wgmma_skips", "hopper_producer.cu",
      "sequence.map_query(where.row + row_in_tile(wg$(slot))), where.head, sequence.$(batch_q)());\n    }\n    q.next",
      "sequence.map_query(where.row + wg * 64), where.head, sequence.$(batch_q)());\n    }\n    q.next" },
    { "O of rows that are not turned round", "wgmma_skips", C, "const int row = where.row + row_in_tile(wg$(l.reverses and \", slot\" or \"\"));",
      "const int row = where.row + wg * 64;" },
    { "elements of rows that are not turned round", "wgmma_tree", W, "row_in_tile(wg$(l.reverses and \", tiles.slot.at\" or \"\")), key",
      "wg * 64, key" },
    { "ranges of rows that are not turned round", "wgmma_turned", R, "row_in_tile(wg$(l.reverses and \", slot\" or \"\")), rows",
      "wg * 64, rows" },
    { "a warp asks of the first key alone whether its rows see it", "wgmma", C, "< block * BC + BC - 1;", "< block * BC;" },
};
/* clang-format on */
#define FAULTS (sizeof faults / sizeof *faults)

Test(mutation_mask, faults_are_noticed, .timeout = 1200)
{
    score_ask(faults, FAULTS, mask_kernels, MASK_KERNELS, false, full() ? 1 : EVERY);
}

Test(mutation_mask, faults_are_noticed_on_hopper, .timeout = 1200)
{
    score_ask(faults, FAULTS, mask_kernels, MASK_KERNELS, true, full() ? 1 : EVERY);
}
