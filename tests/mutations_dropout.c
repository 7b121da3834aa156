/* mutations_dropout: faults of what is dropped, as in mutations.c. */
#include "mutations.h"
#include "verify/cases/case.h"
#include <stddef.h>

#define NONE -1, -1, 0, 0
#define PLAIN FA_VALUES_NORMAL, FA_HIDDEN_VALUES, FA_LAYOUT_PADDED, 0, NULL, 0
#define SLICED(chunk) FA_VALUES_NORMAL, FA_HIDDEN_VALUES, FA_LAYOUT_PADDED, 0, NULL, chunk /* groups in parts */
#define RAGGED(how) FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, &how, 0
#define MMA(br, bc, warps, pack) \
    "flash_fwd_mma:br=" #br ",bc=" #bc ",warps=" #warps ",stages_k=1,stages_v=2,order=1,q_regs=0,pack=" #pack ",lag=8,ctas=1"
#define BWD(bc, warps, twins, dq) \
    "flash_bwd_mma:br=32,br_part=32,bc=" #bc ",warps=" #warps ",twins=" #twins ",stages=1,dq=" #dq ",q_br=64,q_bc=32"
#define WGMMA(br, schedule, rest)                                                                                                        \
    "flash_fwd_wgmma:ctas=1,feeder=40,br=" #br ",schedule=" #schedule ",bc=48,box=64,stages_k=2,stages_v=2,q_bufs=1,ahead=0,sections=1," \
    "cluster=1,rescale=2,exp=0," rest
#define GRAD(bc, twins, schedule, dq, rest) \
    "flash_bwd_wgmma:br=64,bc=" #bc ",twins=" #twins ",schedule=" #schedule ",box=64,stages=2,grid=2,held=0,dq=" #dq "," rest

static const fa_ragged_how packed = { .seed = 6, .forms = FA_FORM_CU_Q | FA_FORM_CU_K, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM },
                           chunk = { .seed = 8, .forms = FA_FORM_SEQLENS_K, .k = FA_SPREAD_FULL };

/* clang-format off */
static const scene scenes[] = {
    { "forward", "bf16,d=32,mask=causal,features=dropout,b=2,hq=4,hkv=2", MMA(32, 32, 2, 0), 50, 70, NONE, PLAIN },
    { "pack", "fp16,d=32,mask=none,features=dropout,b=2,hq=6,hkv=2", MMA(32, 32, 2, 1), 30, 40, NONE, PLAIN },
    { "packed", "bf16,d=32,mask=causal,features=lengths+dropout,b=3,hq=2,hkv=1", MMA(32, 32, 2, 0), 60, 70, NONE, RAGGED(packed) },
    { "split", "bf16,d=64,mask=causal,features=lengths+dropout,b=2,hq=1,hkv=1", MMA(32, 32, 2, 0), 32, 300, NONE, RAGGED(chunk) },
    { "ffma", "fp32,d=24,mask=causal,features=dropout,b=1,hq=4,hkv=2", "flash_fwd_ffma:br=32,bc=32,warps=2,pack=1", 50, 70, NONE, PLAIN },
    { "naive", "fp32,d=24,mask=causal,features=dropout,b=2,hq=4,hkv=2", "naive:tile=64", 50, 70, NONE, PLAIN },
    { "recomputed", "bf16,d=32,mask=causal,op=backward,features=dropout,b=2,hq=4,hkv=2", BWD(32, 2, 0, 0), 90, 80, NONE, PLAIN },
    { "spill", "fp16,d=32,mask=none,op=backward,features=dropout,b=2,hq=4,hkv=2", BWD(32, 2, 0, 1), 90, 80, NONE, SLICED(4 * 96 * 80 * 2) },
    { "twins", "bf16,d=32,mask=causal,op=backward,features=dropout,b=1,hq=4,hkv=2", BWD(64, 4, 1, 0), 90, 80, NONE, PLAIN },
    { "packed_bwd", "bf16,d=32,mask=causal,op=backward,features=lengths+dropout,b=3,hq=2,hkv=1",
      BWD(32, 2, 0, 1), 60, 70, NONE, RAGGED(packed) },
    { "ffma_bwd", "fp32,d=24,mask=causal,op=backward,features=dropout,b=2,hq=4,hkv=2", "flash_bwd_ffma:br=32,bc=32", 50, 70, NONE, PLAIN },
    { "naive_bwd", "fp32,d=24,mask=causal,op=backward,features=dropout,b=2,hq=4,hkv=2", "naive_bwd:tile=64", 50, 70, NONE, PLAIN },
    { NULL, NULL, NULL, 0, 0, NONE, PLAIN },
};
static const scene on_hopper[] = {
    { "direct", "bf16,d=64,mask=causal,features=dropout,b=2,hq=3,hkv=1", WGMMA(64, 0, "convert=0,o_path=0,grid=0"), 100, 150, NONE, PLAIN },
    { "staged", "fp16,d=64,mask=none,features=dropout,b=1,hq=2,hkv=1", WGMMA(128, 2, "convert=1,o_path=2,grid=2"), 150, 200, NONE, PLAIN },
    { "single", "bf16,d=64,mask=causal,op=backward,features=dropout,b=2,hq=4,hkv=2",
      GRAD(64, 0, 0, 0, "ds_bufs=0,q_br=128,q_stages=3"), 150, 150, NONE, PLAIN },
    { "twins", "bf16,d=64,mask=none,op=backward,features=dropout,b=1,hq=4,hkv=2",
      GRAD(64, 1, 0, 0, "ds_bufs=0,q_br=128,q_stages=3"), 150, 100, NONE, PLAIN },
    { "add", "bf16,d=64,mask=none,op=backward,features=dropout,b=1,hq=4,hkv=2",
      GRAD(128, 0, 1, 1, "ds_bufs=2,q_br=128,q_stages=4"), 150, 150, NONE, PLAIN },
    { NULL, NULL, NULL, 0, 0, NONE, PLAIN },
};
/* clang-format on */

#define P "philox.cu"
#define F "mma_dropout.cu"
#define M "flash_fwd_mma.cu"
#define G "grad_dropout.cu"
#define B "flash_bwd_mma.cu"
#define S "sequence.cu"
#define KEEP "$(pr.out_scale)"
#define KEEP_V "dv, $(pr.keep_scale)"

static const mutation mutations[] = {
    /* the function */
    { "six rounds", P, "round < 7", "round < 6", 0, "forward" },
    { "the keys of rounds swapped", P, "k0 += 0x9e3779b9, k1 += 0xbb67ae85", "k1 += 0x9e3779b9, k0 += 0xbb67ae85", 0, "forward" },
    { "queries and keys swapped", P, "block((u32)i[n]), block((u32)j) / 2", "block((u32)j) / 2, block((u32)i[n])", 0, "forward" },
    { "the same for every four keys", P, "block((u32)j) / 2", "block((u32)j) / 4", 0, "forward" },
    { "the same for every head", P, "offset, (u32)number", "offset, 0u", 0, "forward" },
    { "the same for every eight queries and keys", P, "place / 16 * 8 + place % 8", "place / 16 * 8", 0, "naive" },
    { "what is to be kept is dropped", P, "0x8000u) != 0", "0x8000u) == 0", 0, "forward" },
    { "all sixteen bits decide", P, "word & 0x7fff7fffu", "word", 0, "forward" },
    { "odd keys by the bits of even ones", P, ">> odd * 16", ">> 0 * odd", 0, "forward naive" },
    { "a pair's bits of another key", P, ": w.x, j % 2)", ": w.x, j / 2 % 2)", 0, "naive ffma" },
    { "the low half of the seed alone", P, "(u32)(seed >> 32) ^ ", "", 0, "forward" },
    { "the offset is forgotten", P, "(u32)offset, (0x8000u", "0, (0x8000u", 0, "forward" },
    { "a pair's word of another query", P, "i / 8 % 2 ? j / 8", "i / 4 % 2 ? j / 8", 0, "naive ffma" },

    /* forward */
    { "O without the scale", "epilogue.cu", KEEP, "", 0, "forward" },
    { "O of parts without the scale", "split_tile.cu", ", pr.out_scale)", ")", 0, "split" },
    { "queries of the first warp", M, "dropout, where, where.row + warp_row", "dropout, where, where.row", 0, "forward" },
    { "packed sequences: heads of the first", "layouts.lua", "where.batch * p.hq + where.head", "where.head", 0, "packed" },
    { "ffma: l of what is kept", "flash_fwd_ffma.cu",
      "          state[i].l += e;\n//| indented(10, pr.drop_pair, \"e\", \"number\", \"(int)own.query\", \"block * BC + x + 16 * j\")\n",
      "//| indented(10, pr.drop_pair, \"e\", \"number\", \"(int)own.query\", \"block * BC + x + 16 * j\")\n          state[i].l += e;\n", 0,
      "ffma" },
    { "ffma: heads of the group's first", "flash_fwd_ffma.cu", "p.hq + own.head", "p.hq + where.head", 0, "ffma" },
    { "naive: heads of the first sequence", "naive.cu", "(int)(t.batch * p.hq + t.head)", "t.head", 0, "naive" },
    { "packed sequences: the first's for all", S, "return index; }", "return 0; }", 0, "packed_bwd" },

    /* backward */
    { "dense: the first sequence's for all", S, "number() const { return batch; }", "number() const { return 0; }", 0, "recomputed" },
    { "dV of all pairs", B, "\"drop(s, kept, 1.f);\"", "\";\"", 0, "spill recomputed" },
    { "dP of all pairs", B, "\"drop(ds, kept, \" .. pr.keep_scale .. \");\"", "\";\"", 0, "spill" },
    { "dP without the scale", B, "drop(ds, kept, \" .. pr.keep_scale .. \")", "drop(ds, kept, 1.f)", 0, "spill" },
    { "dS of P that is dropped", B, "drop(ds, kept, \" .. pr.keep_scale .. \");",
      "drop(ds, kept, \" .. pr.keep_scale .. \"), drop(s, kept, 1.f);", 0, "spill" },
    { "dV without the scale", B, KEEP_V, "dv, 1.f", 1, "spill" },
    { "twins: dV without the scale", B, KEEP_V, "dv, 1.f", 0, "twins" },
    { "twins: dV of all pairs", B, "\"drop(s, kept_of(dropout, number0 + head, from, key0 + warp_key), 1.f);\"", "\";\"", 0, "twins" },
    { "twins: dP of the group's first head", B, "drop(ds, kept_of(dropout, number0 + head,", "drop(ds, kept_of(dropout, number0,", 0,
      "twins" },
    { "dK: queries of odd keys by even ones", "layouts.lua", "n * 16 + 2 * t + odd", "n * 16 + 2 * t", 0, "spill recomputed twins" },
    { "dK: bits of the other thread's keys", "drop.cu", "odd ? 0x3276 : 0x5410", "odd ? 0x5410 : 0x3276", 0, "spill recomputed twins" },
    { "dQ: dP without the scale", "grad_q_recompute.cu", "block * BC, \" .. pr.keep_scale .. \")", "block * BC, 1.f)", 0, "recomputed" },
    { "dQ: heads of the first sequence", "grad_q_recompute.cu", "(int)(sequence.number() * p.hq) + head", "head", 0, "recomputed" },
    { "ffma: dV of all pairs", "flash_bwd_ffma.cu", "if (!kept) e = 0.f;", "", 0, "ffma_bwd" },
    { "ffma: dP of all pairs", "flash_bwd_ffma.cu", "pr.kept(\"dp[i][j]\")", "\"dp[i][j] * p.keep_scale\"", 0, "ffma_bwd" },
    { "naive: dV without the scale", "naive_bwd.cu", "$(pr.kept(\"e\"))", "kept ? e : 0.f", 0, "naive_bwd" },
    { "naive: dP without the scale", "naive_bwd.cu", "pr.kept(\"dp[i][j]\")", "\"(kept ? dp[i][j] : 0.f)\"", 0, "naive_bwd" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};

#define H "hopper_dropout.cu"
#define D "grad_hopper_dropout.cu"
#define A "grad_hopper_add.cu"
#define T "grad_hopper_warpgroup_pair.cu"
#define N "grad_hopper_single.cu"
static const mutation hopper[] = {
    { "keys of the block before", "hopper_main_loop.cu", "or \"drop_block(block - 1);\"", "or \"drop_block(block);\"", 0, "direct" },
    { "the first block whole", "hopper_prologue.cu", "\"drop_block(block);\"", "\";\"", 0, "staged" },
    { "heads of the first sequence", "hopper_consumer.cu", "(int)(tile.batch * p.hq) + tile.head", "tile.head", 0, "direct" },
    { "O without the scale", "hopper_store.cu", KEEP, "", 2, "direct" },
    { "O on its way through shared memory without the scale", "hopper_store.cu", KEEP, "", 3, "staged" },
    { "dV of all pairs", N, "\"drop(a, kept);\"", "\";\"", 0, "single" },
    { "dP of all pairs", N, "\"drop(dp, kept, \" .. pr.keep_scale .. \");\"", "\";\"", 0, "single" },
    { "dP without the scale", N, "drop(dp, kept, \" .. pr.keep_scale .. \")", "drop(dp, kept, 1.f)", 0, "single" },
    { "dV without the scale", "grad_hopper_kv.cu", KEEP_V, "dv, 1.f", 0, "single" },
    { "one head for a group", N, "first_head(p, unit) + member;", "first_head(p, unit);", 0, "single" },
    { "this block's for the next", N, "(block + 1) * BR", "block * BR", 0, "single" },
    { "the words of another place", "layouts.lua", "word * 64 + n * 16 + odd\"", "word * 64 + n * 8 + odd\"", 0, "single" },
    { "queries of odd keys by even ones", "layouts.lua", "n * 16 + odd\", key = \"j\"", "n * 16\", key = \"j\"", 0, "single" },
    { "bits of the other thread's keys", "drop.cu", "odd ? 0x3276 : 0x5410", "odd ? 0x5410 : 0x3276", 0, "single" },
    { "bits of an operand one further", "layouts.lua", "<< (15 - x % 16)", "<< (15 - (x ^ 1) % 16)", 0, "single add" },
    { "keys of the first warp", D, "threadIdx.x / 32 % 4 * 16", "0", 0, "single" },
    { "add: one head for a group", A, "number += block == blocks.hi;", ";", 0, "add" },
    { "add: dV of all pairs", A, "\"drop(a, kept);\"", "\";\"", 0, "add" },
    { "twins: one head for a group in dP", T, "first_head(p, unit) + member, key0", "first_head(p, unit), key0", 0, "twins" },
    { "twins: one head for a group in dV", T, "number += block == blocks.hi;", ";", 0, "twins" },
    { "twins: dV without the scale", T, KEEP_V, "dv, 1.f", 0, "twins" },
    { "twins: dP without the scale", T, "drop(dp, kept, \" .. pr.keep_scale .. \")", "drop(dp, kept, 1.f)", 0, "twins" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};

const mutation_list mutation_lists[] = {
    { scenes, mutations, 0, 23, false },
    { on_hopper, hopper, 2, 13, false },
    { NULL, NULL, 0, 0, false },
};
