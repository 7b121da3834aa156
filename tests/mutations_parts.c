/* mutations_parts: faults of the families whose tiles are cut into parts whatever their number is, as in mutations.c. With three SMs a
 * block takes parts of several tiles. */
#include "mutations.h"
#include "verify/cases/case.h"
#include <stddef.h>

#define NONE -1, -1, 0, 0
#define USUAL FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, NULL, 0
#define MMA(br, bc, warps, rest) "split_mma:pack=1,q_regs=0,lag=8,ctas=1,br=" #br ",bc=" #bc ",warps=" #warps "," rest
#define WGMMA(br, schedule, grid, rescale, rest)                                                                                    \
    "split_wgmma:ctas=1,feeder=40,box=64,ahead=0,sections=1,cluster=1,exp=0,convert=1,o_path=0,stages_k=2,stages_v=2,bc=48,br=" #br \
    ",schedule=" #schedule ",grid=" #grid ",rescale=" #rescale "," rest
#define RAGGED(layout, ragged) FA_VALUES_NORMAL, FA_HIDDEN_NAN, layout, 0, ragged, 0
#define SECOND "parts=3,combine=1"
#define LAST "parts=4,combine=0"

enum { PACKED = FA_FORM_CU_Q | FA_FORM_CU_K, PAGED = FA_FORM_SEQLENS_K | FA_FORM_PAGES };
static const fa_ragged_how packed = { .seed = 6, .forms = PACKED, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM, .gap = 5 },
                           pages = { .seed = 3,
                                     .forms = FA_FORM_CU_Q | PAGED,
                                     .q = FA_SPREAD_UNIFORM,
                                     .k = FA_SPREAD_UNIFORM,
                                     .page_size = 16,
                                     .spare = 2 },
                           full = { .seed = 8, .forms = FA_FORM_SEQLENS_K, .k = FA_SPREAD_FULL };

static const scene scenes[] = {
    { "second", "bf16,d=64,mask=causal,b=1,hq=6,hkv=2", MMA(16, 16, 1, "stages_k=2,stages_v=2,order=2," SECOND), 5, 200, NONE, USUAL },
    { "last", "bf16,d=64,mask=none,b=1,hq=3,hkv=1", MMA(64, 16, 2, "stages_k=1,stages_v=2,order=1," LAST), 30, 300, NONE, USUAL },
    { "window", "fp16,d=64,mask=window,b=2,hq=2,hkv=1", MMA(32, 16, 2, "stages_k=1,stages_v=1,order=0," SECOND), 15, 300, 250, 3, 0, 0,
      USUAL },
    { "crowd", "bf16,d=64,mask=none,b=5,hq=1,hkv=1", MMA(256, 16, 8, "stages_k=1,stages_v=1,order=0," SECOND), 200, 300, NONE, USUAL },
    { "cost", "bf16,d=64,mask=causal,b=1,hq=3,hkv=1", MMA(16, 16, 1, "stages_k=2,stages_v=2,order=2,parts=0,combine=1"), 4, 6000, NONE,
      USUAL },
    { "many", "bf16,d=64,mask=causal,b=1,hq=4,hkv=1", MMA(16, 16, 1, "stages_k=2,stages_v=1,order=1,parts=16,combine=1"), 7, 450, NONE,
      USUAL },
    { "tall", "bf16,d=64,mask=none,b=1,hq=1,hkv=1", MMA(64, 16, 4, "stages_k=2,stages_v=2,order=0," SECOND), 250, 200, NONE, USUAL },
    { "hopper", "bf16,d=64,mask=causal,b=1,hq=3,hkv=1", WGMMA(128, 0, 1, 3, "q_bufs=1," SECOND), 40, 400, NONE, USUAL },
    { "hopper_even", "bf16,d=64,mask=none,b=1,hq=5,hkv=1", WGMMA(128, 1, 1, 3, "q_bufs=1,parts=1,combine=1"), 31, 4000, NONE, USUAL },
    { "hopper_rest", "bf16,d=64,mask=none,b=1,hq=5,hkv=5", WGMMA(64, 0, 1, 3, "q_bufs=1,parts=6,combine=1"), 40, 16000, NONE, USUAL },
    { "strides", "fp16,d=64,mask=none,features=lse-strides,b=1,hq=3,hkv=1", MMA(16, 16, 1, "stages_k=2,stages_v=2,order=2," SECOND), 9, 200,
      NONE, USUAL },
    { "hopper_strides", "bf16,d=64,mask=none,features=lse-strides,b=1,hq=3,hkv=1", WGMMA(64, 0, 1, 3, "q_bufs=1," LAST), 40, 400, NONE,
      USUAL },
    { "hopper_last", "bf16,d=72,mask=window,b=1,hq=5,hkv=1", WGMMA(64, 0, 2, 2, "q_bufs=2," LAST), 21, 400, 300, 0, 0, 0, USUAL },
    { "hopper_many", "fp16,d=64,mask=none,b=3,hq=4,hkv=2", WGMMA(128, 1, 1, 3, "q_bufs=1," SECOND), 50, 100, NONE, USUAL },
    { "lengths", "bf16,d=64,mask=causal,features=lengths,b=3,hq=6,hkv=2", WGMMA(64, 0, 2, 3, "q_bufs=1," SECOND), 20, 300, NONE,
      RAGGED(FA_LAYOUT_PADDED, &packed) },
    { "lengths_tall", "fp16,d=64,mask=none,features=lengths,b=2,hq=3,hkv=1", WGMMA(64, 0, 1, 2, "q_bufs=1," SECOND), 45, 300, NONE,
      RAGGED(FA_LAYOUT_PADDED, &full) },
    { "lengths_last", "bf16,d=64,mask=window,features=lengths+pages,page=16,b=2,hq=3,hkv=1", WGMMA(128, 1, 1, 3, "q_bufs=1," LAST), 50, 400,
      300, 0, 0, 0, RAGGED(FA_LAYOUT_HEADS, &pages) },
    { "lengths_whole", "fp16,d=64,mask=none,features=lengths,b=9,hq=4,hkv=2", WGMMA(64, 0, 1, 2, "q_bufs=1," SECOND), 40, 300, NONE,
      RAGGED(FA_LAYOUT_PADDED, &packed) },
    { "lengths_cost", "bf16,d=64,mask=none,features=lengths,b=1,hq=5,hkv=1", WGMMA(64, 0, 1, 3, "q_bufs=1,parts=0,combine=1"), 9, 6000,
      NONE, RAGGED(FA_LAYOUT_PADDED, &full) },
    { "invariant", "bf16,d=64,mask=causal,features=batch-invariant,b=4,hq=3,hkv=1", WGMMA(64, 0, 2, 3, "q_bufs=1," SECOND), 40, 400, NONE,
      USUAL },
    { "invariant_many", "fp16,d=64,mask=none,features=batch-invariant,b=1,hq=3,hkv=1", WGMMA(128, 1, 2, 2, "q_bufs=1,parts=16,combine=1"),
      80, 1700, NONE, USUAL },
    { "invariant_lengths", "bf16,d=64,mask=causal,features=lengths+batch-invariant,b=6,hq=4,hkv=2",
      WGMMA(64, 0, 2, 3, "q_bufs=1,parts=4,combine=1"), 50, 450, NONE, RAGGED(FA_LAYOUT_PADDED, &packed) },
    { "invariant_even", "fp16,d=64,mask=none,features=lengths+batch-invariant,b=2,hq=3,hkv=1", WGMMA(64, 0, 2, 2, "q_bufs=1," SECOND), 45,
      300, NONE, RAGGED(FA_LAYOUT_PADDED, &full) },
    { NULL, NULL, NULL, 0, 0, NONE, USUAL },
};

#define P "split_parts.cu"
#define M "split_merge.cu"
#define C "split_tile.cu"
#define Q "hopper_packed_queries.cu"
#define S "hopper_store.cu"
#define T "hopper_scheduler.cu"
#define O "tile_order.cu"
#define F "flash_fwd_mma.cu"
#define R "ranges.cu"
#define D "deal.cu"
#define A "parts.cu"

static const mutation mutations[] = {
    /* which part of which tile */
    { "a part begins one block late", R, "range.block_lo += $(upto(\"where.part\"));", "range.block_lo += $(upto(\"where.part\")) + 1;", 0,
      "second hopper" },
    { "a block is in two parts", R, "$(upto(\"(where.part + 1)\")) - 1;", "$(upto(\"(where.part + 1)\"));", 0, "last hopper_last" },
    { "every part has all keys", R, "  range.block_lo += $(upto(\"where.part\"));\n", "", 0, "window hopper" },
    { "a part is lost", P, "int total() const { return tiles * each; }", "int total() const { return tiles * each - 1; }", 0,
      "last hopper_last" },
    { "parts of the next tile", P, "const int tile = index / parts.each;", "const int tile = index % parts.each;", 0, "second" },
    { "all parts are the first", P, "w.part = index - tile * parts.each;", "w.part = 0;", 0, "second hopper" },
    { "more parts than there is room for", P, "thread_blocks * PART_TILES / tiles)", "thread_blocks * 8)", 0, "crowd" },
    { "tiles of a head have one place", O, "w.number = at * p.tiles + w.row / BR;", "w.number = at * p.tiles;", 0, "hopper last" },
    { "tiles of all heads have one place", O, "w.number = at * p.tiles + w.row / BR;", "w.number = w.row / BR;", 0, "second" },
    { "blocks take one part", D, "for (int round = 0;; round++) {", "for (int round = 0; round < 1; round++) {", 0, "second last" },
    { "the next part does not wait", F, "    if (round > 0) __syncthreads();  // everyone is through with the part before\n", "", 0,
      "last" },
    { "a round leaves out a block", D, ": %s - 1 - %s)", ": %s - 2 - %s)", 0, "second" },

    /* what adds them up */
    { "the second kernel has another number of parts", P, "= parts.each;  // for", "= parts.each - 1;  // for", 0, "second hopper" },
    { "the second kernel adds up too few rows", M, "all = p.b * p.hkv * rows", "all = p.b * p.hkv * (rows - 1)", 0, "second hopper" },
    { "evenly cut rows lack the last", O, "return (rows + tiles - 1) / tiles;", "return rows / tiles;", 0, "hopper_even" },
    { "the second kernel has higher tiles", M, "const int high = rows_of_tile(rows, tiles);", "const int high = BR;", 0, "hopper_even" },
    { "a tile before the last round is another", P, "tile_of(p, item < 0 ? index : parts.whole + tile);",
      "tile_of(p, index < parts.whole ? index / 2 : parts.whole + tile);", 0, "hopper_rest" },
    { "tiles of the last round are those of the first", P, "parts.whole + tile);", "tile);", 0, "hopper_rest" },
    { "the last part of the last round is lost", P, "whole + (tiles - whole) * each; }", "whole + (tiles - whole) * each - 1; }", 0,
      "hopper_rest" },
    { "the second kernel adds up the first round", M, "at = (open.y + number) / tiles, tile = open.y + number",
      "at = number / tiles, tile = number", 0, "hopper_rest" },
    { "the second kernel leaves out tiles of the last round", M, "(tiles * p.hkv * p.b - open.y) *", "(tiles * p.hkv * p.b - open.y - 1) *",
      0, "hopper_rest" },
    { "tiles of the last round have one place", P, "  w.number = tile;\n  w.part = item < 0 ? 0 : item",
      "  w.number = 0;\n  w.part = item < 0 ? 0 : item", 0, "hopper_rest" },
    { "the second kernel's numbers are the batch's", M, "where.number = at * tiles + row / $(high);", "where.number = at * tiles;", 0,
      "tall" },
    { "the second kernel has the first head of all", M, "where.head = where.kv_head * p.group;", "where.head = 0;", 2, "second" },
    { "the second kernel leaves out threads", D, "cast .. wk.blocks .. times", "\"2 * \" .. cast .. wk.blocks .. times", 0, "tall" },
    { "the second kernel writes what is there", M, "  if (parts == 1) return;  // O is there\n", "", 0, "hopper_many" },
    { "the last parts are left out", A, "for (int j = 0; j < $(parts); j += BATCH)", "for (int j = 0; j + BATCH <= $(parts); j += BATCH)",
      0, "many" },
    { "the last part is the one before by cost", C, "min(j + k, where.parts - 1)", "min(j + k, where.parts - 2)", 0, "cost" },
    { "the last part counts more than once", A, "if (j + k >= $(parts)) states[k].x = -infinity();", ";", 0, "second hopper" },
    { "the last but one adds up", A, "(u32)%s - 1) == (u32)%s - 1", "(u32)%s - 1) == (u32)%s - 2", 0, "last hopper_last" },
    { "the counter wraps one late", A, "(u32)%s - 1) == (u32)%s - 1", "(u32)%s) == (u32)%s - 1", 0, "last hopper_last" },
    { "the counter orders nothing", "tile_parts.cu", "atom.acq_rel.gpu", "atom.relaxed.gpu", 0, "last hopper_last" },
    { "the last to arrive does not know what the others wrote", "tile_parts.cu", "atom.acq_rel.gpu", "atom.release.gpu", 0,
      "last hopper_last" },
    { "who arrives does not tell what it wrote", "tile_parts.cu", "atom.acq_rel.gpu", "atom.acquire.gpu", 0, "last hopper_last" },
    { "the second kernel does not wait for the first", M, "  asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n", "", 0, "hopper" },
    { "parts weigh alike", "tile_parts.cu", "const float weight = weight_of(state[k].x, scale_log2, shift);", "const float weight = 1.f;",
      0, "second last hopper" },
    { "parts before keep their weight", "tile_parts.cu", "keep = weight_of(m, scale_log2, shift);", "keep = m > -infinity();", 0, "many" },
    { "O of the parts before keeps its weight", "tile_parts.cu", "o = make_float4(o.x * keep, o.y * keep, o.z * keep, o.w * keep);", ";", 0,
      "many" },
    { "the first part is in no sum", A, "for (int j = 0; j < $(parts);", "for (int j = 1; j < $(parts);", 0, "second last hopper" },
    { "all tiles have one counter", C, "where.number * (BR / ROWS_WARP) + warp", "warp", 0, "last" },
    { "warps share a counter", "part_rows.cu", "first / ROWS_WARP, first, rows", "0, first, rows", 0, "hopper_last" },

    { "LSE lies packed", "sequence.cu", "batch * p.lse_sb + head * p.lse_sh + query * p.lse_ss", "(batch * p.hq + head) * p.sq + query", 0,
      "strides hopper_strides" },

    /* of sequences with lengths of their own */
    { "the second kernel has the first sequence", P, "make_int4((int)where.batch, where", "make_int4(0, where", 0, "lengths" },
    { "the second kernel has the first head", P, "where.batch, where.kv_head, where.row, $(l.shared",
      "where.batch, 0, where.row, $(l.shared", 0, "lengths" },
    { "the second kernel has the first rows", P, "where.kv_head, where.row, $(l.shared", "where.kv_head, 0, $(l.shared", 0,
      "lengths_tall" },
    { "places are those of the tiles before", P, "[1 + where.number]", "[where.number]", 0, "lengths" },
    { "the last part alone has a place", P, "where.parts > 1 && where.part == 0)", "where.parts > 3 && where.part == 0)", 0, "lengths" },
    { "the second kernel looks for the tile before", M, "__ldcg(open + 1 + number)", "__ldcg(open + number)", 0, "lengths" },
    { "the second kernel leaves out the last tile", M, "launch.y * BR", "(launch.y - 1) * BR", 0, "lengths" },
    { "the second kernel adds up one part less", M, "where.parts = launch.x;", "where.parts = launch.x - 1;", 0, "lengths" },
    { "the second kernel writes rows past the last", M, "if (where.row + row < row_count(p, sequence)) add", "add", 0, "lengths" },
    { "the second kernel writes tiles that were whole", M, "  if (launch.x == 1) return;         // O is there\n", "", 0, "lengths_whole" },
    { "a head is that of the group's number", M, "where.head = where.kv_head * p.group;", "where.head = where.kv_head;", 0, "lengths" },
    { "more tiles than there are", P, "\"parts, tiles\"", "\"parts, tiles + 1\"", 0, "lengths" },
    { "one part less is told", P, "\"parts, tiles\"", "\"parts - 1, tiles\"", 0, "lengths" },
    { "tiles are counted before they are cut", "varlen_order.cu", "    n.total *= n.parts;\n", "", 0, "lengths lengths_last" },
    { "rows of the next sequence are read", Q, "row_count(p, sequence) - first : 0", "p.sq * p.group - first : 0", 0,
      "lengths lengths_last" },
    { "queries of the batch's first sequence", Q, "(const element *)p.q + sequence.q() +", "(const element *)p.q +", 1,
      "lengths lengths_last" },
    { "a tile is told without its sequence", T, "//|       publish_sequence()\n", "", 0, "lengths" },
    { "what a tile is is told late", T, "//|     publish_tile()\n", "", 0, "lengths lengths_last" },
    { "V of others stays", "hopper_out_of_range.cu", "        $(clear)(tile, own.end, BC, lane);\n", "", 0, "lengths lengths_last" },
    { "more rows of parts than the workspace has", "parts_family.lua", "split.rows_sm - 64", "split.rows_sm * 64", 0, "lengths_whole" },

    /* batch invariance: tiles that blocks share, and tiles of which one block walks all parts */
    { "blocks walk at one place", C, "(PART_TILES - 1) + $(wk.block))", "(PART_TILES - 1))", 0, "invariant invariant_lengths" },
    { "the second part begins the sum again", "part_rows.cu", "where.is_walked() && where.part > 0", "where.is_walked() && where.part > 1",
      0, "invariant invariant_lengths" },
    { "parts that are walked are all the first", T, "      where.part += done > 0;\n", "", 0, "invariant invariant_lengths" },
    { "the last part is not walked", T, "where.is_walked() ? where.parts : 1;", "where.is_walked() ? where.parts - 1 : 1;", 0,
      "invariant invariant_lengths" },
    { "what was walked is added up as parts", C, "  where.parts = 1;\n", "", 0, "invariant invariant_lengths" },
    { "shared parts lie over sums", P, "return (int)$(wk.blocks) * (PART_TILES - 1); }", "return (int)$(wk.blocks) * PART_TILES * 8; }", 0,
      "invariant_many" },
    { "tiles of a full round are shared", P, "tiles < blocks ? tiles : tiles % blocks, places() / each)", "tiles, places())", 0,
      "invariant_many" },
    { "a shared tile is another", P, "item < 0 ? index : parts.walked + tile", "item < 0 ? index : tile", 0, "invariant" },
    { "shared tiles have one place", P, "  w.place = tile;\n", "  w.place = 0;\n", 0, "invariant" },
    { "parts of shared tiles lie over each other", P, "item < 0 ? -1 : tile * parts.each;", "item < 0 ? -1 : tile;", 0, "invariant" },
    { "the second kernel has a part less", M, "where.parts = place.w & 255;", "where.parts = (place.w & 255) - 1;", 0,
      "invariant invariant_lengths" },
    { "a walked sum keeps its weight", "tile_parts.cu", "fmaf(part, x, to * sum)", "fmaf(part, x, to)", 0, "invariant invariant_lengths" },
    { "a walked part weighs all", "tile_parts.cu", "fmaf(part, x, to * sum)", "fmaf(1.f, x, to * sum)", 0, "invariant invariant_lengths" },
    { "the maximum of the sum stays", "part_rows.cu", "make_float2(w.m, w.add(sum.y, l))", "make_float2(sum.x, w.add(sum.y, l))", 0,
      "invariant invariant_lengths" },
    { "more sequences are shared than find room", "varlen_order.cu", "parts_upto <= places()", "true", 0, "invariant_lengths" },
    { "sequences that are shared lie over each other", "varlen_order.cu", "x.number_of_first = parts_upto - cut * x.parts",
      "x.number_of_first = 0", 0, "invariant_lengths" },
    { "their tiles have one place", "varlen_order.cu", "x.place = tiles_upto - cut;", "x.place = 0;", 0, "invariant_lengths" },
    { "the second pass counts on", "varlen_order.cu", "if (shared) sums.pass = 1, sums.parts = sums.places = 0;",
      "if (shared) sums.pass = 1;", 0, "invariant_lengths" },
    { "the second pass begins at the last sequences", "varlen_order.cu", "gather(shared ? 0 :", "gather(", 0, "invariant_lengths" },
    { "the second pass is none", "varlen_order.cu", "n.total = n.walked + __reduce_add_sync(~0u, items) * heads();", "n.total = n.walked;",
      0, "invariant_lengths" },
    { "the second kernel knows of no tile", "varlen_order.cu", "make_int4(shared, 0, 0, 0)", "make_int4(0, 0, 0, 0)", 0,
      "invariant_lengths" },
    { "heads of a sequence have one place", "varlen_order.cu", "const int at_head = w.row / BR * p.hkv + head;",
      "const int at_head = w.row / BR * p.hkv;", 0, "invariant_lengths" },
    { "tiles of a sequence are one", "varlen_order.cu", "w.part = n - tile * each;", "w.part = n;", 0, "invariant_even" },

    /* rows of several heads */
    { "the next query's heads come after the group's", Q, "from += p.q_ss - p.group * p.q_sh;", "from += p.q_ss;", 1, "hopper" },
    { "heads of the first group", Q, "(where.head + head) * p.q_sh", "head * p.q_sh", 0, "hopper_many" },
    { "rows are counted from the tile's first lane", Q, "head += heads;", "head += heads + 1;", 0, "hopper" },
    { "rows past the last are read", Q, "from, r < left);", "from, chunk * 8 < D);", 0, "hopper hopper_last hopper_many" },
    { "queries without their swizzle", Q, "(piece ^ swizzle) * 16", "piece * 16", 0, "hopper" },
    { "queries arrive before they are there", Q, "    cp_async_wait<0>();\n", "", 0, "hopper hopper_many" },
    { "wgmma may miss what was copied", Q, "    fence_async();\n", "", 0, "hopper" },
    { "the second warpgroup has the first's rows", Q, "where.row + wg * 64, lane$(", "where.row, lane$(", 0, "hopper" },
    { "both warps copy the same rows", Q, "const int begin = $(copier) * STEP +", "const int begin =", 0, "hopper_strides" },
    { "one warp's rows are awaited", "flash_fwd_wgmma.cu", "$(l.q_warps_rows or 1))", "1)", 0, "hopper_strides" },
    { "both warps copy for one warpgroup", Q, "for (int wg = $(warps > copiers and \"copier\"", "for (int wg = $(warps > copiers and \"0\"",
      0, "hopper hopper_many" },
    { "the next tile's queries come too soon", Q, "      mbarrier_wait(q_empty(smem, q.at, wg), q.parity ^ 1);\n", "", 0, "hopper_many" },
    { "O of a group's first head", S, "output *const to = (output *)p.o + sequence.o() + at.query * p.o_ss + at.head * p.o_sh",
      "output *const to = (output *)p.o + sequence.o() + at.query * p.o_ss + where.head * p.o_sh", 0, "hopper_many" },
    { "LSE of a group's first head", "hopper_rows.cu",
      "p.lse[sequence.lse(at.head, at.query)] =", "p.lse[sequence.lse(where.head, at.query)] =", 0, "hopper_many" },
    { "rows past the last leave", S, "const bool real = i < $(end_of_rows);", "const bool real = true;", 0, "hopper_many" },
    { "the number of a part is not published", T, "make_uint4(where.number, where.part, where.parts, 0)",
      "make_uint4(0, where.part, where.parts, 0)", 0, "hopper_last" },
    { "the counter of parts wraps one late", D, "(u32)%s - 1", "(u32)%s", 0, "hopper_last" },
    { "rows past the last have an LSE", "hopper_rows.cu", "t == 0 && row < $(end_of_rows))", "t == 0)", 0, "hopper_many" },
    { "parts leave as wholes", "hopper_consumer.cu", "if (where.parts > 1)", "if (where.parts > 8)", 0, "hopper" },
    { "parts leave as wholes on mma.sync", F, "if (where.parts > 1) {", "if (where.parts > 8) {", 0, "second" },
    { "tiles have one part more than there is", P, "w.parts = parts.each;", "w.parts = parts.each + 1;", 0, "second" },
    { "the second kernel leaves out a part", M, "where.parts = parts;", "where.parts = parts - 1;", 0, "second" },
    { "a lane's share of l", "part_rows.cu", "quad_sum($(holds.state).l)", "$(holds.state).l", 0, "second" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};

const mutation_list mutation_lists[] = {
    { scenes, mutations, 3, 0, false },
    { NULL, NULL, 0, 0, false },
};
