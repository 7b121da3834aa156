/* mutations_work: faults of which tiles a thread block does, templates/work/order.cu and deal.cu, as in mutations.c. Each family that
 * prints it must notice. */
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
#define BWD "op=backward,b=2,hq=4,hkv=2"

/* clang-format off */
static const fa_ragged_how packed = { .seed = 6, .forms = FA_FORM_CU_Q | FA_FORM_CU_K, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM, .gap = 5 };

const scene work_scenes[] = {
    { "mma_lengths", "bf16,d=64,mask=causal,features=lengths,b=7,hq=4,hkv=2", "flash_fwd_mma:" MMA, 70, 110, NONE, LENGTHS },
    { "mixed", "bf16,d=64,mask=causal,features=lengths,b=3,hq=5,hkv=1", "mixed_mma:" MMA, 70, 110, NONE, LENGTHS },
    { "rounds", "bf16,d=64,mask=causal,b=1,hq=4,hkv=2", "flash_fwd_" WGMMA("rescale=2,convert=0,o_path=0,grid=1"), 200, 200, NONE, PLAIN },
    { "drawn", "bf16,d=64,mask=causal,b=1,hq=4,hkv=2", "flash_fwd_" WGMMA("rescale=2,convert=0,o_path=0,grid=2"), 200, 200, NONE, PLAIN },
    { "rounds_lengths", "bf16,d=64,mask=none,features=lengths,b=4,hq=2,hkv=1", "flash_fwd_" WGMMA("rescale=3,convert=1,o_path=0,grid=1"),
      150, 200, NONE, LENGTHS },
    { "drawn_lengths", "bf16,d=64,mask=none,features=lengths,b=4,hq=2,hkv=1", "flash_fwd_" WGMMA("rescale=3,convert=1,o_path=0,grid=2"),
      150, 200, NONE, LENGTHS },
    { "naive", "fp32,d=24,mask=none," BWD, "naive_bwd:tile=64", 90, 100, NONE, PLAIN },
    { "ffma", "fp32,d=24,mask=none," BWD, "flash_bwd_ffma:br=32,bc=32", 50, 70, NONE, PLAIN },
    { "anew", "bf16,d=32,mask=none," BWD, BWD_MMA(0), 90, 100, NONE, PLAIN },
    { "anew_causal", "bf16,d=32,mask=causal," BWD, BWD_MMA(0), 90, 100, NONE, PLAIN },
    { "spill", "bf16,d=32,mask=none," BWD, BWD_MMA(1), 90, 100, NONE, PLAIN },
    { "spill_causal", "bf16,d=32,mask=causal," BWD, BWD_MMA(1), 90, 100, NONE, PLAIN },
    { "one", "bf16,d=64,mask=causal," BWD, BWD_WGMMA("bc=64,schedule=0,dq=0,ds_bufs=0,q_stages=3"), 200, 150, NONE, PLAIN },
    { "add", "bf16,d=64,mask=none," BWD, BWD_WGMMA("bc=128,schedule=1,dq=1,ds_bufs=2,q_stages=4"), 190, 150, NONE, PLAIN },
    { NULL, NULL, NULL, 0, 0, NONE, PLAIN },
};
/* clang-format on */

#define O "order.cu"
#define D "deal.cu"
#define ROUNDS "mma_lengths mixed rounds rounds_lengths"
#define DRAWN "drawn drawn_lengths one add"
#define BWDS "naive ffma anew spill one add"

const mutation work_mutations[] = {
    { "every other round is left out", D, "round * %s", "2 * round * %s", 0, ROUNDS },
    { "rounds back begin a block late", D, "%s - 1 - %s", "%s - 2 - %s", 0, ROUNDS },
    { "the counter is not put back", D, "atomicInc(p.counter, (u32)%s - 1)", "atomicAdd(p.counter, 1u)", 0, DRAWN },
    { "the last draw but two puts the counter back", D, "(u32)%s - 1)", "(u32)%s - 3)", 0, DRAWN },
    { "a head has a tile more", O, "\"blockIdx.x % p.tiles\"", "\"blockIdx.x % (p.tiles + 1)\"", 0, BWDS },
    { "the first head for all", O, "\"blockIdx.x / p.tiles % \"", "\"0 * \"", 0, BWDS },
    { "the first sequence for all", O, "\"blockIdx.x / p.tiles / \"", "\"0 * \"", 0, BWDS },
    { "tiles of keys for one head less", O, "tile = blockIdx.x / heads_of_launch, place",
      "tile = blockIdx.x / (heads_of_launch - 1), place", 0, "anew_causal spill_causal" },
    { "the last tile of queries is left out", O, "p.tiles - 1 - blockIdx.x", "p.tiles - 2 - blockIdx.x", 0, "anew_causal spill_causal" },
    { "heads of keys side by side", O, "place = blockIdx.x % heads_of_launch;\n//|     else", "place = blockIdx.x % 2;\n//|     else", 0,
      "anew_causal spill_causal" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};
