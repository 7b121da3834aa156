/* mutations_wide: faults of what wide heads have of their own: passes over the keys, two warpgroups that share rows, and K that serves as
 * V. */
#include "mutations.h"
#include "verify/cases/case.h"
#include <stddef.h>

#define NONE -1, -1, 0, 0
#define WITH(ragged) FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, ragged, 0
#define PASSES "wide_mma:br=64,bc=32,warps=4,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=8,ctas=1,pass_cols=128"
/* Blocks of a cluster share K and V, or are the parts of a tile. */
#define CLUSTER(keys, stages_v, blocks, combine)                                                                                           \
    "wide_wgmma:br=64,ctas=1,feeder=40,schedule=0,bc=" #keys ",box=64,stages_k=2,stages_v=" #stages_v ",q_bufs=1,q_held=0,grid=1,ahead=0," \
    "sections=1,cluster=" #blocks ",rescale=2,exp=0,convert=0,o_path=0,parts=0,combine=" #combine
#define NARROW                                                                                                                             \
    "wide_wgmma:br=64,ctas=1,feeder=40,schedule=0,bc=32,box=32,stages_k=2,stages_v=2,q_bufs=1,q_held=0,grid=2,ahead=0,sections=1,cluster=" \
    "1,"                                                                                                                                   \
    "rescale=2,exp=0,convert=0,o_path=0,parts=0,combine=1"
#define HELD                                                                                                                               \
    "wide_wgmma:br=64,ctas=1,feeder=40,schedule=0,bc=32,box=64,stages_k=2,stages_v=2,q_bufs=1,q_held=2,grid=2,ahead=0,sections=1,cluster=" \
    "1,"                                                                                                                                   \
    "rescale=2,exp=0,convert=0,o_path=0,parts=0,combine=1"
/* Halves of the columns of K and V come in turn through one ring; to two blocks, the first of which draws tiles for both. */
#define RING(keys, places, blocks)                                                                                                       \
    "wide_wgmma:br=64,ctas=1,feeder=24,schedule=2,bc=" #keys ",box=64,stages_k=" #places ",stages_v=1,q_bufs=1,q_held=1,grid=2,ahead=0," \
    "sections=1,cluster=" #blocks ",rescale=2,exp=0,convert=0,o_path=0,parts=0,combine=1"
#define HALVES(keys, places) RING(keys, places, 1)
/* O of more columns than one product has. */
#define TWO_PRODUCTS                                                                                                                      \
    "flash_fwd_wgmma:br=128,ctas=1,feeder=24,schedule=1,bc=48,box=64,stages_k=2,stages_v=2,q_bufs=1,grid=2,ahead=0,sections=1,cluster=1," \
    "rescale=3,exp=0,convert=1,o_path=0"
#define SHARED(keys, stages, parts)                                                                                                        \
    "wide_wgmma:br=64,ctas=1,feeder=40,schedule=0,bc=" #keys ",box=64,stages_k=" #stages ",stages_v=" #stages ",q_bufs=1,q_held=0,grid=2," \
    "ahead=0,sections=1,cluster=1,rescale=2,exp=0,convert=0,o_path=0,parts=" #parts ",combine=1"
/* The last of the warps with the same rows and columns adds up their parts. */
#define LAST(keys, stages, parts)                                                                                                          \
    "wide_wgmma:br=64,ctas=1,feeder=40,schedule=0,bc=" #keys ",box=64,stages_k=" #stages ",stages_v=" #stages ",q_bufs=1,q_held=0,grid=2," \
    "ahead=0,sections=1,cluster=1,rescale=2,exp=0,convert=0,o_path=0,parts=" #parts ",combine=0"

/* clang-format off */
static const fa_ragged_how
    pages = { .seed = 3, .forms = FA_FORM_SEQLENS_K | FA_FORM_PAGES, .k = FA_SPREAD_UNIFORM, .page_size = 16, .spare = 2, .wide = 1,
              .foreign = 1 },
    full = { .seed = 3, .forms = FA_FORM_SEQLENS_K, .k = FA_SPREAD_FULL },
    packed = { .seed = 6, .forms = FA_FORM_CU_K | FA_FORM_SEQLENS_K, .k = FA_SPREAD_UNIFORM, .gap = 5 },
    idle = { .seed = 3, .forms = FA_FORM_SEQLENS_Q | FA_FORM_SEQLENS_K, .q = FA_SPREAD_EDGES, .k = FA_SPREAD_UNIFORM },
    whole = { .seed = 6, .forms = FA_FORM_SEQLENS_K, .k = FA_SPREAD_FULL };
/* clang-format on */
static const scene scenes[] = {
    { "mla", "bf16,d=384,dv=320,mask=none,features=v-in-k,b=2,hq=16,hkv=1", SHARED(32, 2, 0), 2, 170, NONE, WITH(NULL) },
    { "steep", "bf16,d=384,dv=256,mask=none,features=v-in-k,b=1,hq=16,hkv=1", SHARED(32, 2, 0), 1, 250, NONE, FA_VALUES_NORMAL,
      FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 1, NULL, 0 },
    { "mla_parts", "bf16,d=384,dv=256,mask=causal,features=v-in-k,b=1,hq=16,hkv=1", SHARED(32, 2, 2), 2, 200, NONE, WITH(NULL) },
    { "parts", "bf16,d=320,dv=256,mask=none,b=1,hq=2,hkv=1", SHARED(32, 2, 2), 5, 200, NONE, WITH(NULL) },
    { "mla_sixteen", "bf16,d=384,dv=256,mask=none,features=v-in-k,b=1,hq=6,hkv=1", SHARED(32, 2, 16), 1, 2100, NONE, WITH(NULL) },
    { "mla_few_rows", "bf16,d=384,dv=256,mask=none,features=v-in-k,b=3,hq=16,hkv=1", SHARED(32, 2, 2), 1, 150, NONE, WITH(NULL) },
    { "last", "bf16,d=384,dv=256,mask=causal,features=v-in-k,b=1,hq=20,hkv=1", LAST(32, 2, 8), 2, 360, NONE, WITH(NULL) },
    { "last_middle", "bf16,d=320,dv=320,mask=none,b=1,hq=2,hkv=1", LAST(32, 2, 2), 5, 200, NONE, WITH(NULL) },
    { "mla_pages", "bf16,d=384,dv=256,mask=none,features=lengths+pages+v-in-k,page=16,b=3,hq=16,hkv=1", SHARED(32, 2, 0), 1, 150, NONE,
      WITH(&pages) },
    { "mla_packed", "bf16,d=384,dv=256,mask=none,features=lengths+v-in-k,b=3,hq=16,hkv=1", SHARED(32, 2, 0), 1, 150, NONE, WITH(&packed) },
    { "mla_many", "bf16,d=384,dv=256,mask=none,features=lengths+v-in-k,b=40,hq=4,hkv=1", SHARED(32, 2, 0), 1, 40, NONE, WITH(&idle) },
    { "pair", "bf16,d=320,dv=256,mask=causal,b=1,hq=2,hkv=1", CLUSTER(32, 2, 2, 1), 70, 150, NONE, WITH(NULL) },
    { "pair_pages", "bf16,d=384,dv=256,mask=none,features=lengths+pages+v-in-k,page=16,b=3,hq=72,hkv=1", CLUSTER(32, 2, 2, 1), 1, 150, NONE,
      WITH(&pages) },
    { "near", "bf16,d=384,dv=256,mask=none,features=v-in-k,b=70,hq=16,hkv=1", CLUSTER(64, 2, 4, 2), 1, 120, NONE, WITH(NULL) },
    { "near_pages", "bf16,d=384,dv=256,mask=none,features=lengths+pages+v-in-k,page=16,b=3,hq=16,hkv=1", CLUSTER(64, 2, 2, 2), 1, 250, NONE,
      WITH(&pages) },
    { "narrow", "bf16,d=320,dv=320,mask=causal,b=1,hq=2,hkv=1", NARROW, 70, 100, NONE, WITH(NULL) },
    { "apart", "bf16,d=320,dv=320,mask=causal,b=1,hq=2,hkv=1", SHARED(32, 2, 0), 70, 150, NONE, WITH(NULL) },
    { "held", "bf16,d=320,dv=256,mask=causal,b=1,hq=2,hkv=1", HELD, 70, 150, NONE, WITH(NULL) },
    { "held_few", "bf16,d=320,dv=256,mask=none,b=1,hq=2,hkv=1", HELD, 100, 30, NONE, WITH(NULL) },
    { "halves", "bf16,d=384,dv=384,mask=causal,b=1,hq=2,hkv=1", HALVES(32, 5), 70, 150, NONE, WITH(NULL) },
    { "halves_few", "bf16,d=384,dv=384,mask=none,b=1,hq=2,hkv=1", HALVES(32, 5), 100, 30, NONE, WITH(NULL) },
    { "halves_pair", "bf16,d=384,dv=384,mask=causal,b=1,hq=2,hkv=1", RING(32, 5, 2), 200, 100, NONE, WITH(NULL) },
    { "halves_keyless", "bf16,d=384,dv=384,mask=causal,b=1,hq=1,hkv=1", RING(32, 5, 2), 700, 30, NONE, WITH(NULL) },
    { "two_products", "bf16,d=264,dv=296,mask=causal,b=1,hq=2,hkv=1", TWO_PRODUCTS, 150, 170, NONE, WITH(NULL) },
    { "passes_parts", "bf16,d=40,dv=304,mask=none,features=lengths,b=1,hq=1,hkv=1", PASSES, 1, 1700, NONE, WITH(&whole) },
    { "passes", "bf16,d=40,dv=304,mask=causal,b=1,hq=2,hkv=1", PASSES, 40, 60, NONE, WITH(NULL) },
    { "mla_rest", "bf16,d=384,dv=256,mask=none,features=lengths+v-in-k,b=5,hq=16,hkv=1", SHARED(32, 2, 0), 1, 700, NONE, WITH(&full) },
    { "rest", "bf16,d=320,dv=256,mask=none,b=5,hq=2,hkv=1", SHARED(32, 2, 0), 1, 700, NONE, WITH(NULL) },
    { NULL, NULL, NULL, 0, 0, NONE, WITH(NULL) },
};

#define C "wide_consumer.cu"

static const mutation mutations[] = {
    { "both warpgroups have the first columns", C, "wg * (COLUMNS - 2 * NO)", "0 * (COLUMNS - 2 * NO)", 0, "mla" },
    { "P is awaited from nobody", C, "named_wait(1 + (wg ^ 1) * 4 + warp, 64);", "", 0, "mla" },
    { "m of the other's block is not taken", C, "keep[h] = raise(state[h], m[h],", "keep[h] = raise(state[h], state[h].m,", 0, "mla" },
    { "O stays when the other's maximum is larger", C, "rescale(o, keep);\n      }", "}", 0, "steep" },
    { "the other's keys are no part of l", C, "state[0].l += others[0], state[1].l += others[1];", "", 0, "mla" },
    { "l of the other's keys stays when m moves", C, "if (moved) others[0] *= keep[0], others[1] *= keep[1];", "", 0, "steep" },
    { "O stays when m moves", C, "if (moved) rescale(o, keep);", "", 0, "steep" },
    { "the mask is that of the block before", C, "mask(block - 1);", "mask(block);", 0, "apart mla" },
    { "the last block of the other is left out", C, "if (block == keys.loaded_lo) {", "if (false) {", 0, "mla" },
    { "the first half of a buffer is free too early", C, "if (wg == 0) release(k_empty", "if (wg == 1) release(k_empty", 0, "mla" },
    { "the rest of a buffer is free too early", C, "if (wg == 1 || OVERLAP > 0) release", "if (wg == 0 || OVERLAP > 0) release", 0,
      "mla_parts" },
    { "the rest is loaded without a wait", "hopper_pages.cu", "mbarrier_wait(rest_empty(smem, k.at), k.parity ^ 1);", "", 0, "mla_pages" },
    { "the rest is loaded without a wait, dense", "hopper_producer.cu", "mbarrier_wait(rest_empty(smem, k.at), k.parity ^ 1);", "", 0,
      "mla_parts" },
    { "rows of others are not cleared", "hopper_producer.cu", "const bool all = own_rows(sequence, $(block)).all();",
      "const bool all = true;", 0, "mla_packed" },
    { "the rest of V is taken before it is there", C, "if (wg == 1 || OVERLAP > 0) mbarrier_wait(rest_full",
      "if (false) mbarrier_wait(rest_full", 0, "apart" },
    { "the rest of V is loaded too early", "hopper_producer.cu", "mbarrier_wait(rest_empty(smem, v.at), v.parity ^ 1);", "", 0, "apart" },
    { "S goes on before the rest of K is there", C, "mbarrier_wait(rest_full(smem, own.at), own.parity);", "", 0, "mla mla_parts" },
    { "S begins before K beside V is there", C, "mbarrier_wait(tail_full(smem, own.at), own.parity);", "", 0, "mla" },
    { "K beside V is loaded too early", "hopper_pages.cu", "mbarrier_wait(tail_empty(smem, k.at), k.parity ^ 1);", "", 0, "mla_pages" },
    { "K beside V is loaded too early, dense", "hopper_producer.cu", "mbarrier_wait(tail_empty(smem, k.at), k.parity ^ 1);", "", 0,
      "mla_parts" },
    { "S starts from zero again at K that V lies in", "hopper_products.cu",
      "if (i == $(l.tail_barriers and \"BOXES_V * (BOX / 16)\" or \"0\"))", "if (i == FROM * (BOX / 16))", 0, "mla" },
    { "P of the other's block is passed over", C,
      "            take();\n            multiply();\n            wgmma_wait<0>(o);\n            next_block();\n            block -= 2;",
      "            take();\n            next_block();\n            block -= 2;", 0, "mla" },
    { "the last part of a row is left out", "split_merge_tiles.cu", "!real || j + k >= end", "!real || j + k + 1 >= end", 0, "mla_parts" },
    { "a part weighs what the first of four does", "split_merge_tiles.cu", "lane - t + k", "lane - t", 0, "mla_parts" },
    { "a warp's share of many parts lacks its last", "split_merge_tiles.cu", "parts * (warp + 1) / WARPS : parts;",
      "parts * (warp + 1) / WARPS - 1 : parts;", 0, "mla_sixteen" },
    { "shares of many parts weigh alike in l", "split_merge_tiles.cu", "sum.l = fmaf(weight, state.y, sum.l);", "sum.l += state.y;", 0,
      "mla_sixteen" },
    { "tiles of few rows have pieces of more", "split_merge_tiles.cu", "piece / GROUPS - number * eights", "piece / GROUPS % 8", 0,
      "mla_few_rows" },
    { "a row of parts is the next tile's", "split_parts.cu", "((float)x + .5f)", "((float)x + 1.5f)", 0, "mla_few_rows" },
    { "columns of parts stay as threads held them", "split_merge_tiles.cu", "in_order(sums.o[i])", "sums.o[i]", 0, "mla_parts" },
    { "the last of the warps leaves out the last part", "held_parts.cu", "if (j + k < where.parts && n0",
      "if (j + k + 1 < where.parts && n0", 0, "last" },
    { "parts past the last weigh as it does", "held_parts.cu", "of[h][k].x = -infinity();", "{}", 0, "last_middle" },
    { "the first of the warps adds up", "held_parts.cu", "last, 0) != 0 ?", "last, 0) == 0 ?", 0, "last" },
    { "warps of both halves count together", "held_parts.cu", "* CONSUMERS + (column > 0)\"", "* CONSUMERS\"", 0, "last" },
    { "both halves leave their states in one place", "parts.cu", "+ ($(column) > 0)]", "]", 0, "last" },
    { "lanes without a row add up rows that nobody left", "held_parts.cu", "const int row = first + min(h * 8 + g, rows - 1);",
      "const int row = first + h * 8 + g;", 0, "last" },
    { "the last of the warps begins at the first column", "held_parts.cu", "column / 8 + n0) * 32", "n0) * 32", 0, "last" },
    { "parts begin with the first column, as threads hold them", "parts.cu", "$(column) / 8) * 32", "0) * 32", 0, "parts" },
    { "halves begin with the first column, as threads hold them", "parts.cu", "$(column) / 16) * 32", "0) * 32", 0, "mla_parts" },
    { "halves weigh as if they had no room", "split_merge_tiles.cu", "weight * room", "weight", 0, "mla_parts" },
    { "both warpgroups' halves have one room", "tile_parts.cu", "row * CONSUMERS + second", "row * CONSUMERS", 0, "mla_parts" },
    { "rows of halves have the room of a thread's columns", "tile_parts.cu", "  top = quad_max(top);\n  if (__any", "  if (__any", 0,
      "mla_parts" },
    { "rows of Q are those of the first tile", "hopper_packed_queries.cu", "row_of(p, where, where.row + first)", "row_of(p, where, first)",
      0, "apart" },
    { "rows of Q go on past the heads of a group", "hopper_packed_queries.cu",
      "if (++head == p.group) head = 0, from += p.q_ss - p.group * p.q_sh;", "head++;", 0, "apart" },
    { "Q is copied over what a warp still reads", C, "if (!fresh) named_wait(9, 128 * CONSUMERS);", "", 0, "held_few" },
    { "Q is copied over what a warp still reads, halves", C, "named_wait(ALL_SCORED, 128 * CONSUMERS);", "", 0, "halves_few" },
    { "blocks that parts do not share evenly are left out", "ranges.cu", " + left * (where.part + 1) / parts) - 1", ") - 1", 0,
      "mla_parts" },
    { "sequences past the first 32 are those again", "varlen_order.cu", "gather(__shfl_sync(~0u, lanes.number, 31) + 1$(",
      "gather(__shfl_sync(~0u, lanes.number, 31) - 31$(", 0, "mla_many" },
    { "parts of the last tiles begin with the first tile", "varlen_order.cu", "index = sums.whole + w.number;", "index = w.number;", 0,
      "mla_rest" },
    { "the second step adds up tiles that are not cut", "split_parts.cu", "parts.each, tiles - parts.whole", "parts.each, tiles", 0,
      "mla_rest" },
    { "the second step begins with the first tile", "split_merge_tiles.cu", "open.y + number", "number", 0, "rest" },
    { "parts of the last tiles begin with the first tile, dense", "split_parts.cu", "item < 0 ? index : parts.whole + tile",
      "item < 0 ? index : tile", 0, "rest" },
    { "Q is multiplied before all of it is there", C, "fence_async();\n      named_wait(9, 128 * CONSUMERS);", "fence_async();", 0, "mla" },
    { "O begins with the first column", "hopper_store.cu", "l.shared and \" + column\" or \"\"", "\"\"", 0, "mla" },
    { "a block of a pair has the first one's rows", C, "const int first_row = where.row + row_in_tile(0);",
      "const int first_row = where.row;", 0, "pair" },
    { "a block of a pair stores the first one's rows", C, "where.row + row_in_tile(0) + warp_row + g", "where.row + warp_row + g", 1,
      "pair" },
    { "a buffer is free when one block of a pair has read it", C, "if (lane < CLUSTER) mbarrier_arrive_at(empty, lane);",
      "if (lane < CLUSTER) mbarrier_arrive(empty);", 0, "pair" },
    { "both blocks of a pair take all boxes", "hopper_pages.cu", "if (box % CLUSTER == cluster_rank())", "", 0, "pair_pages" },
    { "boxes of a pair come to one block", "hopper_pages.cu", "tma_load_for_all(", "tma_load(", 0, "pair_pages" },
    { "all blocks have the first part", "hopper_scheduler.cu", "where.part = (int)cluster_rank()", "where.part = 0", 0, "near_pages" },
    { "parts are read before they are there", "near_parts.cu", "cluster_wait(parts_there(smem), number & 1);", "", 0, "near_pages" },
    { "all blocks add up the first columns", "near_parts.cu", "at + rank * (NO_OWN / 4 * 2048)", "at", 0, "near_pages" },
    { "a block's own columns are the first", "near_parts.cu", "own = rank == j ? o[j * NO_OWN + n] : own;", "", 0, "near" },
    { "a block leaves its own columns alone", "near_parts.cu", "if (n / (NO_OWN / 4) != rank)", "if (n / (NO_OWN / 4) == rank)", 0,
      "near" },
    { "all parts weigh what the first does", "near_parts.cu", "weight_of(of[j][h].x,", "weight_of(of[0][h].x,", 0, "near_pages" },
    { "the first part alone counts in l", "near_parts.cu", "fmaf(weight[j][h], of[j][h].y, l)", "j == 0 ? of[j][h].y : l", 0,
      "near_pages" },
    { "keys are loaded over parts that others read", "near_parts.cu",
      "if (number > 0) cluster_wait(parts_read(smem), number - 1 & 1);\n  mbarrier_arrive", "mbarrier_arrive", 0, "near" },
    { "parts are written over those that others read", "near_parts.cu",
      "if (number > 0) cluster_wait(parts_read(smem), number - 1 & 1);\n  const u32 at", "const u32 at", 0, "near" },
    { "boxes of 32 columns lie as those of 64 do", "hopper_packed_queries.cu", "ROW == 128 ? r % 8 : r / 2 % 4", "r % 8", 0, "narrow" },
    { "what is held of Q are its first boxes", C, "BOXES - HELD + i * 16 / BOX", "i * 16 / BOX", 0, "held" },
    { "what is held of Q are the first warp's rows", C, "r = warp_row + lane % 16;", "r = lane % 16;", 0, "held" },
    { "what is held of Q is multiplied by other columns of K", "hopper_products.cu", "q_held[i - (BOXES - HELD) * BOX / 16]",
      "q_held[i % (HELD * BOX / 16) ^ 1]", 0, "held" },
    { "V of the last block has the place of one before K of the next", C, "min(4 * block + 4, 4 * last + 2)", "(4 * block + 4)", 0,
      "halves" },
    { "K of all blocks has places two later", C, "(block == 0 ? 0 : 4 * block - 2)", "4 * block", 0, "halves" },
    { "both warpgroups take V's first half", C, "4 * last + 2) + wg)", "4 * last + 2) + 0)", 0, "halves" },
    { "halves of the tile before are not counted", C, "begin_at += 4 * (last + 1);", "", 0, "halves_few" },
    { "P is exchanged over Q that is not held yet", C, "named_wait(9, 128 * CONSUMERS);  // both hold it: P may take its place", "", 0,
      "halves_few" },
    { "K's second half is multiplied past its end", C, "q_tile, k - BOXES / 2 * BC * ROW, q_held", "q_tile, k, q_held", 0, "halves" },
    { "half of K is free too early", C, "wgmma_wait_groups<decltype(behind)::value + 1>();\n        release_k(after, 0);",
      "release_k(after, 0);", 0, "halves" },
    { "V of a block has the next one's keys", "hopper_producer.cu", "load(v_map, half, key + BC, half);", "load(v_map, half, key, half);",
      0, "halves" },
    { "a half is loaded over one that is not read", "hopper_producer.cu", "mbarrier_wait(k_empty(smem, ring.at), ring.parity ^ 1);", "", 0,
      "halves" },
    { "both halves have the first columns", "hopper_producer.cu", "(half * (BOXES / 2) + box) * BOX, key", "box * BOX, key", 0, "halves" },
    { "Q of the next tile is that of this one", C, "ask_queries(next, warp_row", "ask_queries(where, warp_row", 0, "halves_few" },
    { "both blocks that share halves have Q of the first", C, "of.row += row_in_tile(0);", "", 0, "halves_pair" },
    { "every lane initialises the barriers of a draw", "flash_fwd_wgmma.cu", "if (lane == 0) mbarrier_init(draw_full(smem), 1)",
      "mbarrier_init(draw_full(smem), 1)", 0, "halves_pair" },
    { "both blocks draw", "deal.cu", "if (lane == 0 && cluster_rank() == 0) drawn", "if (lane == 0) drawn", 0, "halves_pair" },
    { "a block has another tile than is drawn", "cluster_draw.cu", "store_at(draw_slot(smem), lane, drawn);",
      "store_at(draw_slot(smem), lane, drawn + 1);", 0, "halves_pair" },
    { "a tile is read before it is stored", "cluster_draw.cu", "cluster_wait(draw_full(smem), turn.parity);", "", 0, "halves_pair" },
    { "a tile is stored over one that is not read", "cluster_draw.cu", "cluster_wait(draw_empty(smem), turn.parity ^ 1);", "", 0,
      "halves_keyless" },
    { "the second product has the first one's columns of V", "hopper_products.cu", "192 / BOX *", "0 *", 0, "two_products" },
    { "the second product has the first keys of P", "hopper_products.cu", "wgmma_output_right(o, a + 4 * i,", "wgmma_output_right(o, a,", 0,
      "two_products" },
    { "a pass begins at the first column", "flash_fwd_mma.cu", "at.o = (output *)p.o + column;", "at.o = p.o;", 0, "passes" },
    { "the last pass begins past the last columns", "flash_fwd_mma.cu", "min(pass * DV, COLUMNS - DV)", "pass * DV", 0, "passes" },
    { "parts of all passes lie in one place", "flash_fwd_mma.cu", "own.number = where.number * PASSES + pass;", "", 0, "passes_parts" },
    { "a pass of a part stores as that of a whole tile", "flash_fwd_mma.cu", "if (where.parts > 1) {", "if (false) {", 0, "passes_parts" },
    { "a pass begins before the one before has ended", "flash_fwd_mma.cu", "if (pass > 0) __syncthreads();", "", 0, "passes" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};

/* More blocks have room for more parts of a tile than are under way at once. */
static const scene many[] = {
    { "last_many", "bf16,d=384,dv=256,mask=none,features=v-in-k,b=1,hq=24,hkv=1", LAST(32, 2, 8), 2, 560, NONE, WITH(NULL) },
    { NULL, NULL, NULL, 0, 0, NONE, WITH(NULL) },
};
static const mutation of_many[] = {
    { "the last of the warps keeps sums as they were", "held_parts.cu", "x[h][n].x * keep, x[h][n].y * keep", "x[h][n].x, x[h][n].y", 0,
      "last_many" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};

/* Tiles of unlike lengths are cut into parts of one length, of more sequences than a warp has lanes. */
#define BY_LENGTH                                                                                                                  \
    "wide_wgmma:br=64,ctas=1,feeder=40,schedule=0,bc=64,box=64,stages_k=2,stages_v=2,q_bufs=1,q_held=0,grid=2,ahead=0,sections=1," \
    "cluster=1,rescale=2,exp=0,convert=0,o_path=0,parts=7,combine=1"
static const fa_ragged_how unlike = { .seed = 3, .forms = FA_FORM_SEQLENS_K, .k = FA_SPREAD_ZIPF, .quantiles = 1 };
static const scene lengths[] = {
    { "by_length", "bf16,d=320,dv=256,mask=none,features=lengths+v-in-k,b=36,hq=16,hkv=1", BY_LENGTH, 1, 1500, NONE, WITH(&unlike) },
    { "by_length_tiles", "bf16,d=320,dv=256,mask=causal,features=lengths+v-in-k,b=12,hq=72,hkv=1", BY_LENGTH, 2, 2400, NONE,
      WITH(&unlike) },
    { NULL, NULL, NULL, 0, 0, NONE, WITH(NULL) },
};
static const mutation of_lengths[] = {
    { "a tile's first part is all of them", "varlen_order.cu", "w.part = n / tiles;", "w.part = 0;", 0, "by_length by_length_tiles" },
    { "parts of a tile lie where those of the first do", "varlen_order.cu", "(head * tiles + tile) * w.parts;", "0;", 0,
      "by_length_tiles" },
    { "tiles past the first 32 sequences have the places of those", "varlen_order.cu",
      "sums.places += __reduce_add_sync(~0u, lanes.levels.tiles) * heads();", "{}", 0, "by_length" },
    { "a tile that is not cut is added up", "split_merge_tiles.cu", "if (parts == 1) continue;  // O is there", "", 0, "by_length" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};

const mutation_list mutation_lists[] = {
    { scenes, mutations, 2, 44, false }, { many, of_many, 4, 1, false }, { lengths, of_lengths, 32, 4, false }, { NULL, NULL, 0, 0, false }
};
