/* mutations_work: faults of which tiles a thread block does, templates/work/order.cu and its neighbours, as in mutations.c. Each family
 * that prints it must notice. */
#include "mutations.h"
#include "verify/cases/case.h"
#include <stddef.h>

#define NONE -1, -1, 0, 0
#define PLAIN FA_VALUES_NORMAL, FA_HIDDEN_VALUES, FA_LAYOUT_PADDED, 0, NULL, 0
#define LENGTHS FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, &packed, 0
#define MMA "br=16,bc=32,warps=1,stages_k=2,stages_v=2,order=0,q_regs=0,pack=0,lag=8,ctas=1"
#define BWD_MMA(dq) "flash_bwd_mma:br=32,br_part=32,bc=32,warps=2,twins=0,stages=1,q_br=64,q_bc=16,dq=" #dq
#define WGMMA(rest) \
    "wgmma:ctas=1,feeder=40,br=64,box=64,bc=48,schedule=0,stages_k=2,stages_v=2,q_bufs=1,ahead=0,sections=1,cluster=1,exp=0," rest
#define BWD_WGMMA(rest) "flash_bwd_wgmma:br=64,twins=0,box=64,stages=2,held=0,q_br=128,grid=2," rest
#define DECODE "ctas=1,min_turns=1,kv_lanes=1,combine=0"
#define PARTS FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, &full, 0
#define BWD "op=backward,b=2,hq=4,hkv=2"

/* clang-format off */
static const fa_ragged_how full = { .seed = 8, .forms = FA_FORM_SEQLENS_K, .k = FA_SPREAD_FULL }, packed = { .seed = 6, .forms = FA_FORM_CU_Q | FA_FORM_CU_K, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM, .gap = 5 };

const scene work_scenes[] = {
    { "mma_lengths", "bf16,d=64,mask=causal,features=lengths,b=7,hq=4,hkv=2", "flash_fwd_mma:" MMA, 70, 110, NONE, LENGTHS },
    { "mixed", "bf16,d=64,mask=causal,features=lengths,b=3,hq=5,hkv=1", "mixed_mma:" MMA, 70, 110, NONE, LENGTHS },
    { "rounds", "bf16,d=64,mask=causal,b=1,hq=4,hkv=2", "flash_fwd_" WGMMA("rescale=2,convert=0,o_path=0,grid=1"), 200, 200, NONE, PLAIN },
    { "drawn", "bf16,d=64,mask=causal,b=1,hq=4,hkv=2", "flash_fwd_" WGMMA("rescale=2,convert=0,o_path=0,grid=2"), 200, 200, NONE, PLAIN },
    { "rounds_lengths", "bf16,d=64,mask=none,features=lengths,b=4,hq=2,hkv=1", "flash_fwd_" WGMMA("rescale=3,convert=1,o_path=0,grid=1"),
      150, 200, NONE, LENGTHS },
    { "drawn_lengths", "bf16,d=64,mask=none,features=lengths,b=4,hq=2,hkv=1", "flash_fwd_" WGMMA("rescale=3,convert=1,o_path=0,grid=2"),
      150, 200, NONE, LENGTHS },
    { "mma_parts", "bf16,d=64,mask=causal,features=lengths+lse-strides,b=1,hq=1,hkv=1",
      "flash_fwd_mma:br=32,bc=32,warps=2,stages_k=1,stages_v=2,order=1,q_regs=0,pack=0,lag=8,ctas=1", 31, 1700, NONE, PARTS },
    { "mma_parts_six", "fp16,d=64,mask=none,features=lengths,b=1,hq=1,hkv=1",
      "flash_fwd_mma:br=128,bc=16,warps=8,stages_k=2,stages_v=2,order=0,q_regs=0,pack=0,lag=8,ctas=2", 100, 900, NONE, PARTS },
    { "wgmma_parts", "bf16,d=64,mask=causal,features=lengths,b=1,hq=1,hkv=1", "flash_fwd_" WGMMA("rescale=3,convert=1,o_path=0,grid=2"),
      50, 1700, NONE, PARTS },
    { "split", "bf16,d=64,mask=none,b=1,hq=3,hkv=1",
      "split_mma:br=64,bc=16,warps=2,stages_k=1,stages_v=2,order=1,q_regs=0,pack=1,lag=8,ctas=1,parts=4,combine=0", 30, 300, NONE, PLAIN },
    { "split_many", "bf16,d=64,mask=causal,b=1,hq=4,hkv=1",
      "split_mma:br=16,bc=16,warps=1,stages_k=2,stages_v=1,order=1,q_regs=0,pack=1,lag=8,ctas=1,parts=16,combine=1", 7, 450, NONE, PLAIN },
    { "split_rounds", "bf16,d=64,mask=causal,b=1,hq=3,hkv=1", "split_" WGMMA("rescale=3,convert=1,o_path=0,grid=1,parts=3,combine=1"), 40,
      400, NONE, PLAIN },
    { "split_drawn", "bf16,d=64,mask=causal,b=1,hq=5,hkv=1", "split_" WGMMA("rescale=3,convert=1,o_path=0,grid=2,parts=4,combine=0"), 21,
      400, NONE, PLAIN },
    { "decode_line", "bf16,d=128,mask=causal,b=5,hq=2,hkv=1", "decode_mma:br=16,bk=16,key_warps=2,row_warps=1,stages=3,sm_shares=1," DECODE,
      2, 400, NONE, PLAIN },
    { "decode_parts", "bf16,d=64,mask=causal,b=1,hq=2,hkv=1", "decode_mma:br=32,bk=16,key_warps=1,row_warps=2,stages=2,sm_shares=4," DECODE,
      10, 144, NONE, PLAIN },
    { "naive", "fp32,d=24,mask=none," BWD, "naive_bwd:tile=64", 90, 100, NONE, PLAIN },
    { "ffma", "fp32,d=24,mask=none," BWD, "flash_bwd_ffma:br=32,bc=32", 50, 70, NONE, PLAIN },
    { "recomputed", "bf16,d=32,mask=none," BWD, BWD_MMA(0), 90, 100, NONE, PLAIN },
    { "recomputed_causal", "bf16,d=32,mask=causal," BWD, BWD_MMA(0), 90, 100, NONE, PLAIN },
    { "spill", "bf16,d=32,mask=none," BWD, BWD_MMA(1), 90, 100, NONE, PLAIN },
    { "spill_causal", "bf16,d=32,mask=causal," BWD, BWD_MMA(1), 90, 100, NONE, PLAIN },
    { "one", "bf16,d=64,mask=causal," BWD, BWD_WGMMA("bc=64,schedule=0,dq=0,ds_bufs=0,q_stages=3"), 200, 150, NONE, PLAIN },
    { "add", "bf16,d=64,mask=none," BWD, BWD_WGMMA("bc=128,schedule=1,dq=1,ds_bufs=2,q_stages=4"), 190, 150, NONE, PLAIN },
    { NULL, NULL, NULL, 0, 0, NONE, PLAIN },
};
/* clang-format on */

#define O "order.cu"
#define D "deal.cu"
#define P "parts.cu"
#define Q "queue.cu"
#define QUEUES "rounds drawn drawn_lengths split_drawn one add"
#define ROUNDS "mma_lengths mixed rounds rounds_lengths split split_rounds"
#define DRAWN "drawn drawn_lengths split_drawn one add"
#define BWDS "naive ffma recomputed spill one add"

const mutation work_mutations[] = {
    { "every other round is left out", D, "round * %s", "2 * round * %s", 0, ROUNDS },
    { "rounds back begin a block late", D, "%s - 1 - %s", "%s - 2 - %s", 0, ROUNDS },
    { "the counter is not put back", D, "atomicInc(p.counter, (u32)%s - 1)", "atomicAdd(p.counter, 1u)", 0, DRAWN },
    { "the last draw but three puts the counter back", D, "(u32)%s - 1)", "(u32)%s - 4)", 0, DRAWN },
    { "a slot is taken before it is published", Q, "    mbarrier_wait(tile_full(smem, slot.at), slot.parity);\n", "", 0, QUEUES },
    { "a slot is never given back", Q, "mbarrier_arrive(tile_empty(smem, slot.at));", ";", 0, QUEUES },
    { "what ends the tiles is a tile", Q, "return $(o.is);", "return true;", 0, QUEUES },
    { "both slots are one", Q, "smem + SMEM_SLOTS + slot * $(bytes)", "smem + SMEM_SLOTS", 0, QUEUES },
    { "a head has a tile more", O, "(\"%s %% %s\"):format(number or wk.block, tiles",
      "(\"%s %% (%s + 1)\"):format(number or wk.block, tiles", 0, BWDS },
    { "the first head for all", O, "\"%s / %s %% %s\"", "\"0 * (%s / %s %% %s)\"", 0, BWDS },
    { "the first sequence for all", O, "\"%s / %s / %s\"", "\"0 * (%s / %s / %s)\"", 0, BWDS },
    { "tiles of keys for one head less", O, "tile = $(wk.block) / heads_of_launch, head_index",
      "tile = $(wk.block) / (heads_of_launch - 1), head_index", 0, "recomputed_causal spill_causal" },
    { "the last tile of queries is left out", O, "p.tiles - 1 - $(wk.block)", "p.tiles - 2 - $(wk.block)", 0,
      "recomputed_causal spill_causal" },
    { "the counter of parts wraps one late", P, "(u32)%s - 1) == (u32)%s - 1", "(u32)%s) == (u32)%s - 1", 0,
      "mma_parts wgmma_parts decode_line split split_drawn" },
    { "the last part but one adds up", P, "(u32)%s - 1) == (u32)%s - 1", "(u32)%s - 1) == (u32)%s - 2", 0,
      "mma_parts wgmma_parts decode_line split split_drawn" },
    { "the last parts are left out", P, "for (int j = 0; j < $(parts); j += BATCH)", "for (int j = 0; j + BATCH <= $(parts); j += BATCH)",
      0, "mma_parts_six decode_parts split_many" },
    { "the last part alone is left out", P, "if (j + k >= $(parts)) states", "if (j + k >= $(parts) - 1) states", 0,
      "mma_parts wgmma_parts decode_line split split_drawn" },
    { "the last part counts more than once", P, "if (j + k >= $(parts)) states[k].x = -infinity();", ";", 0,
      "mma_parts_six wgmma_parts decode_line split_rounds" },
    { "a sum of parts is not divided by l", P, "reciprocal($(all))", "1.f", 0, "mma_parts decode_line decode_parts split split_many" },
    { "O of a sum is in the rows of the first query", P, "sequence.o() + $(at[2]) * p.o_ss", "sequence.o()", 0,
      "mma_parts decode_line split split_many" },
    { "a row of a part has the first columns alone", P, "(to + $(v) * $(4 * n) + $(n) * t)", "(to + $(n) * t)", 0,
      "mma_parts wgmma_parts split split_rounds" },
    { "the second column of a part's rows is the first", P, "table.concat(of, \", \")",
      "table.concat({ of[1], of[1], of[3], of[3] }, \", \")", 0, "mma_parts wgmma_parts split split_rounds" },
    { "heads of keys side by side", O, "head_index = $(wk.block) % heads_of_launch;\n//|     else",
      "head_index = $(wk.block) % 2;\n//|     else", 0, "recomputed_causal spill_causal" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};
