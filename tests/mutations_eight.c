/* mutations_eight: faults of what products of 8 bits have of their own: P that is raised, sums of a block each, V that is transposed on its
 * way, scales. */
#include "mutations.h"
#include "verify/cases/case.h"
#include <stddef.h>

#define NONE -1, -1, 0, 0
#define WITH(ragged) FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, ragged, 0
#define EIGHT(rows, keys, parts, box, rest)                                                                                    \
    "fp8_wgmma:br=" #rows ",ctas=1,feeder=56,bc=" #keys ",sums=" #parts ",box=" #box ",stages_k=2,stages_t=2,q_bufs=1,grid=2," \
    "sections=1,cluster=1,rescale=0," rest

static const fa_ragged_how packed = { .seed = 6, .forms = FA_FORM_CU_K | FA_FORM_SEQLENS_K, .k = FA_SPREAD_UNIFORM, .gap = 5 };
static const scene scenes[] = {
    { "dense", "e4m3,d=128,mask=none,b=1,hq=2,hkv=1", EIGHT(128, 192, 2, 128, "schedule=1,overlap=0,stages_v=1"), 80, 420, NONE,
      WITH(NULL) },
    { "beside", "e5m2,d=64,mask=causal,b=1,hq=2,hkv=1", EIGHT(128, 64, 1, 64, "schedule=1,overlap=1,stages_v=2"), 150, 240, NONE,
      WITH(NULL) },
    { "scaled", "e4m3,d=64,dv=48,mask=causal,q_scale=1,k_scale=1,v_scale=1,b=2,hq=2,hkv=1",
      EIGHT(64, 128, 1, 64, "schedule=0,overlap=0,stages_v=1"), 70, 200, NONE, WITH(NULL) },
    { "packed", "e4m3,d=32,dv=32,mask=none,features=lengths,b=3,hq=2,hkv=1", EIGHT(64, 96, 1, 32, "schedule=0,overlap=1,stages_v=1"), 60,
      250, NONE, WITH(&packed) },
    { "columns", "e4m3,d=64,mask=causal,features=v-columns,b=2,hq=2,hkv=1",
      "fp8_wgmma:br=64,ctas=1,feeder=56,bc=192,sums=1,box=64,stages_k=2,stages_t=1,q_bufs=1,grid=2,sections=1,cluster=1,rescale=0,"
      "schedule=0,overlap=1,stages_v=2",
      60, 250, NONE, WITH(NULL) },
    { "in_turns", "e4m3,d=64,mask=causal,o=e4m3,o_scale=1,b=2,hq=2,hkv=1", EIGHT(128, 96, 2, 64, "schedule=2,overlap=0,stages_v=1"), 150,
      240, NONE, WITH(NULL) },
    { "wide", "e4m3,d=64,dv=192,mask=causal,v=fp16,b=2,hq=2,hkv=1",
      "fp8_wgmma:br=64,ctas=1,feeder=56,bc=64,sums=4,box=64,stages_k=2,stages_t=1,q_bufs=1,grid=2,sections=1,cluster=1,rescale=0,"
      "schedule=0,overlap=0,stages_v=2",
      60, 250, NONE, WITH(NULL) },
    { "parts", "e4m3,d=64,mask=none,features=lengths,q_scale=1,k_scale=1,v_scale=1,b=1,hq=1,hkv=1",
      EIGHT(64, 64, 1, 64, "schedule=0,overlap=0,stages_v=1"), 20, 900, NONE, WITH(&packed) },
    { "ahead", "e4m3,d=64,mask=causal,b=2,hq=2,hkv=1", EIGHT(128, 64, 4, 64, "schedule=0,overlap=2,stages_v=1"), 150, 240, NONE,
      WITH(NULL) },
    { "ones", "e4m3,d=64,mask=causal,b=1,hq=2,hkv=1", EIGHT(128, 64, 4, 64, "schedule=0,overlap=2,stages_v=1,row_sums=1"), 150, 150, NONE,
      WITH(NULL) },
    { "pieces", "e5m2,d=32,dv=32,mask=none,b=1,hq=1,hkv=1", EIGHT(128, 64, 1, 32, "schedule=0,overlap=0,stages_v=1,pieces=1,row_sums=1"),
      380, 100, NONE, WITH(NULL) },
    { "before", "e4m3,d=64,dv=160,mask=causal,b=2,hq=2,hkv=2",
      "fp8_wgmma:br=128,ctas=1,feeder=24,bc=96,sums=1,box=64,stages_k=2,stages_t=1,q_bufs=1,grid=2,sections=1,cluster=1,rescale=0,"
      "schedule=0,overlap=0,stages_v=2,row_sums=1,transpose=1",
      150, 240, NONE, WITH(NULL) },
    { "halved", "e4m3,d=64,mask=causal,b=1,hq=2,hkv=1", EIGHT(128, 96, 1, 64, "schedule=0,overlap=0,stages_v=1,row_sums=1,exp=2"), 150, 200,
      NONE, WITH(NULL) },
    { "out_of_turn", "e5m2,d=64,mask=none,b=1,hq=1,hkv=1", EIGHT(128, 96, 1, 64, "schedule=2,overlap=0,stages_v=1,row_sums=1,exp=2"), 150,
      200, NONE, WITH(NULL) },
    { "split", "e4m3,d=64,mask=causal,b=1,hq=1,hkv=1", EIGHT(128, 128, 1, 64, "schedule=2,overlap=3,stages_v=1,row_sums=1"), 150, 280, NONE,
      WITH(NULL) },
    { NULL, NULL, NULL, 0, 0, NONE, WITH(NULL) },
};

#define B "eight_before.cu"
#define C "eight_consumer.cu"
#define X "eight_probabilities.cu"
#define H "hopper_eight.cu"
#define P "eight_producer.cu"
#define T "eight_transpose.cu"

static const mutation mutations[] = {
    { "P is as it is", X, "constexpr float RAISED = $(l.raised);", "constexpr float RAISED = 0;", 0, "dense" },
    { "O stays when m moves", C, "fmaf(o[part * NT + i], keep[i / 2 % 2], t[i])", "o[part * NT + i] + t[i]", 0, "dense beside" },
    { "O takes the weight of the other row", C, "keep[i / 2 % 2], t[i]", "keep[i / 2 % 2 ^ 1], t[i]", 0, "dense beside" },
    { "a block's sum begins with that of the block before", C, "wgmma_sums_first(t, a, vb);", "wgmma_sums(t, a, vb);", 1, "dense" },
    { "the second part of O has the columns of the first", C, "v + part * SUM * KEY_BOX", "v", 0, "dense" },
    { "all keys have P of the first", C, "wgmma_sums(t, a + 4 * i, vb);", "wgmma_sums(t, a, vb);", 1, "dense beside" },
    { "V of the first box is that of all", C, "i * 32 / KEY_BOX * $(l.ones and \"TURNED\" or \"COLUMNS\") * KEY_BOX + ", "", 1, "dense" },
    { "K of the first columns is that of all", C, "kb = b + (box * BC * ROW + in_box) / 16;", "kb = b;", 0, "dense beside" },
    { "P lies as S does", X, "s[8 * i + 2 * h + 1], s[8 * i + 4 + 2 * h], s[8 * i + 5 + 2 * h]);",
      "s[8 * i + 4 + 2 * h], s[8 * i + 2 * h + 1], s[8 * i + 5 + 2 * h]);", 0, "dense beside" },
    { "P is of the scores before the mask", C, "apply_mask(s, p, sequence, wg_row + warp_row + g, block, t);", "", 0, "beside scaled" },
    { "the mask is that of the block before", C, "weigh(s, block - 1, keep);", "weigh(s, block, keep);", 0, "beside" },
    { "a block's weight is that of the first", C, "weight[0] = keep[0], weight[1] = keep[1];", "", 0, "beside" },
    { "S is read before it is there", C, "wgmma_wait<1>($(raw));", "", 0, "beside" },
    { "V transposed is awaited from nobody", C, "mbarrier_wait($(v_full), v.parity);\n        add_values(a, keep, sums",
      "add_values(a, keep, sums", 0, "dense scaled in_turns" },
    { "sums of V transposed await nobody", C, "mbarrier_wait($(v_full), v.parity);\n        add_values(a, keep);", "add_values(a, keep);",
      0, "ahead" },
    { "P by multiply-adds is twice as large", X, "EXP_OFFSET = 15.", "EXP_OFFSET = 16.", 0, "halved out_of_turn" },
    { "the bytes of its first bits are swapped", X, "0x6521", "0x5612", 0, "halved" },
    { "its fraction has no one before it", X, "(bits & 0x03ff03ff) | one", "(bits & 0x03ff03ff)", 0, "halved" },
    { "scores stay where P is found out of turn", C, "other_exponentials(s, shift, $(unit), sum, adds);", "", 0, "out_of_turn" },
    { "LSE lacks the keys whose P is found so", X, "if (adds) sum += probability(x", "if (false) sum += probability(x", 0, "halved" },
    { "scores of later keys stay", C, "exponentials<FIRST, BC>(s, shift", "exponentials<0, FIRST>(s, shift", 0, "split" },
    { "P V of the later keys is left out", C, "issue_sums<FIRST, BC>(sums, a, $(values));", "", 0, "split" },
    { "l stays raised", C, "state[h].l *= lowered;", "", 0, "scaled" },
    { "O has no scale of V", C, "lowered * v_scale_of(p, sequence, where.kv_head)", "lowered", 0, "scaled" },
    { "LSE has no scale of Q and K", C, "state[h].m * scaled$(l.row_scaled and \"[h]\" or \"\");", "state[h].m;", 0, "scaled" },
    { "the scales of Q and K are added", "eight_scales.cu", "table.concat(of, \" * \")", "table.concat(of, \" + \")", 0, "scaled" },
    { "all heads have the first's scale", "eight_scales.cu", "head * p.$(x)_scale_sh", "0 * p.$(x)_scale_sh", 0, "scaled" },
    { "maxima below 0 go by bits", X, "(__float_as_int(top[0]) | __float_as_int(top[1])) < 0", "false", 0, "ones" },
    { "sums of P are those of the other row", C, "t[NT + 2 * h]);", "t[NT + 2 - 2 * h]);", 0, "ones" },
    { "sums of P stay when m moves", C, "fmaf(weights[h], keep[h], t[NT + 2 * h])", "weights[h] + t[NT + 2 * h]", 0, "ones" },
    { "LSE has no sum of P", X, "  if (adds)\n", "  if (false)\n", 0, "ones" },
    { "columns lie where ones do", T, "column < SUM ? column : column + 8", "column", 0, "ones" },
    { "ones are of the other type", "fp8_wgmma.cu", "0x3c3c3c3c", "0x38383838", 0, "pieces" },
    { "a tile's second piece has the rows of the first", "tile_order.cu", "w.row += low * 64;", "", 0, "pieces" },
    { "odd columns come first", T, "i % 2 ? 0x7531 : 0x6420", "i % 2 ? 0x6420 : 0x7531", 0, "dense" },
    { "V lies by rows of 16-bit units", T, "* 16 + m % 2 * 8 + r", "* 16 + m / 2 * 8 + r", 0, "dense" },
    { "V transposed is not swizzled", T, "(key_chunk ^ swizzle_of<KEY_BOX>(row))", "key_chunk", 0, "beside" },
    { "V is read as if it were not swizzled", T, "(at ^ swizzle_of<ROW>(lane))", "at", 0, "beside" },
    { "products meet what a warp has just written", P, "fence_async();\n      __syncwarp();", "__syncwarp();", 0, "dense beside" },
    { "V transposed is written where it is read", P, "mbarrier_wait(turned_empty(smem, turned.at), turned.parity ^ 1);", "", 0, "dense" },
    { "V is transposed before it is there", P, "mbarrier_wait(v_full(smem, v.at), v.parity);", "", 0, "dense" },
    { "keys of others have a part in the result", T, "if (first > 0 || end < BC)", "if (false)", 0, "packed" },
    { "one key more is the sequence's", T, "key < end ? 0xffffu", "key <= end ? 0xffffu", 0, "packed" },
    { "V is of the block before", P, "box * BOX, key + BC, where.kv_head", "box * BOX, key, where.kv_head", 0, "beside packed" },
    { "columns of O lie as those of V transposed", "eight_store.cu", "o[8 * n + 4 + 2 * h] * $(inverse), o[8 * n + 2 * h + 1] * $(inverse)",
      "o[8 * n + 2 * h + 1] * $(inverse), o[8 * n + 4 + 2 * h] * $(inverse)", 0, "dense" },
    { "P of the other half of a quad", X, "lane % 4 < 2 ? 0x5410 : 0x7632", "lane % 4 < 2 ? 0x7632 : 0x5410", 0, "columns" },
    { "P of one neighbour alone", X, "__shfl_sync(~0u, x, from + 1)", "__shfl_sync(~0u, x, from)", 0, "columns" },
    { "keys of V are those of the block before", P, "(block + 1) * BC + box * KEY_BOX", "block * BC + box * KEY_BOX", 0, "columns" },
    { "all boxes of V have the first keys", P, "(block + 1) * BC + box * KEY_BOX", "(block + 1) * BC", 0, "columns" },
    { "columns of O lie as if V had been transposed", "eight_store.cu", "//| if l.turned then", "//| if true then", 0, "columns" },
    { "exponentials are taken by all at once", C, "//| if exps then\n        pingpong_wait(wg);\n", "//| if exps then\n", 0, "in_turns" },
    { "all parts of O are new sums and the old", H, "{ \"_next\", \"ne\", \"+\" }", "{ \"_next\", \"eq\", \"+\" }", 0, "in_turns" },
    { "O is as it is", "eight_store.cu", "inverse * per_o", "inverse", 0, "in_turns" },
    { "O is multiplied by its scale", "eight_store.cu", "1.f / o_scale_of", "o_scale_of", 0, "in_turns" },
    { "sums of V of 16 bits begin with the first columns", C, "v + part * SUM * 2 * BC", "v", 0, "wide" },
    { "all keys have V of the first sixteen", C, "b + i * 16 * VALUE_ROW / 16", "b", 0, "wide" },
    { "boxes of V of 16 bits lie side by side", C, "v + part * SUM * 2 * BC, BC * VALUE_ROW", "v + part * SUM * 2 * BC, 16 * VALUE_ROW", 0,
      "wide" },
    { "P of 16 bits is of the pair's other key first", X, "to_values(s[2 * n], s[2 * n + 1])", "to_values(s[2 * n + 1], s[2 * n])", 0,
      "wide" },
    { "l of 16 bits is of one row", X, "state[n % 2].l += s[2 * n]", "state[0].l += s[2 * n]", 0, "wide" },
    { "V of 16 bits is of the block before", P, "box * VALUE_BOX, key + BC,", "box * VALUE_BOX, key,", 0, "wide" },
    { "a part is stored as a whole tile", C, "if (where.parts > 1)\n      store_part", "if (false)\n      store_part", 0, "parts" },
    { "columns of parts lie as those of V transposed", "part_rows.cu", "\"o[8 * n + 4 + 2 * h]\", \"o[8 * n + 1 + 2 * h]\"",
      "\"o[8 * n + 1 + 2 * h]\", \"o[8 * n + 4 + 2 * h]\"", 0, "parts" },
    { "a sum joins O before it is there", C, "wgmma_wait<1>(sums[part % 2]);", "", 0, "ahead" },
    { "the last sum joins O before it is there", C, "wgmma_wait<0>(sums[part % 2]);", "", 0, "ahead" },
    { "two sums under way have one place", C, "sums[(part + 1) % 2], a", "sums[part % 2], a", 0, "ahead" },
    { "O has the sum before twice", C, "add_sums(o, sums[part % 2], keep, part);", "add_sums(o, sums[0], keep, part);", 0, "ahead" },
    { "a sum is of the columns beside", C, "$(values), part + 1, part == 0", "$(values), part, part == 0", 0, "ahead" },
    { "V transposed before is of the block before", P, "where.kv_head, block + 1), V_TILE", "where.kv_head, block), V_TILE", 0, "before" },
    { "all heads have V of the first", B, "* p.hkv + kv_head)", "* p.hkv)", 0, "before" },
    { "V is transposed before it is there, by the kernel before", B, "mbarrier_wait(full, 0);", "", 0, "before" },
    { "V transposed before is not awaited", P,
      "  grid_wait();\n  while (tiles.next(p, smem, where)) {\n    const KeyRange keys = tiles.keys(p, smem, 0);\n    const Sequence "
      "sequence = $(sequence);\n    tiles.done(smem, false);\n    if (keys.loaded_hi",
      "  while (tiles.next(p, smem, where)) {\n    const KeyRange keys = tiles.keys(p, smem, 0);\n    const Sequence sequence = "
      "$(sequence);\n    tiles.done(smem, false);\n    if (keys.loaded_hi",
      0, "before" },
    { "ones of the kernel before are of the other type", B, "0x38383838", "0x3c3c3c3c", 0, "before" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};

const mutation_list mutation_lists[] = { { scenes, mutations, 2, 13, false }, { NULL, NULL, 0, 0, false } };
