/* mutations_backward: faults of the families of the backward pass, as in mutations.c. */
#include "mutations.h"
#include "verify/cases/case.h"
#include <stddef.h>

#define FFMA "flash_bwd_ffma:"
#define MMA "flash_bwd_mma:"
#define NAIVE "naive_bwd:tile=64"
#define NONE -1, -1, 0, 0
#define PLAIN FA_VALUES_NORMAL, FA_HIDDEN_VALUES, FA_LAYOUT_PADDED, 0, NULL, 0
#define FAR FA_VALUES_WIDE, FA_HIDDEN_VALUES, FA_LAYOUT_PADDED, 0, NULL, 0
#define BEYOND FA_VALUES_BEYOND, FA_HIDDEN_VALUES, FA_LAYOUT_PADDED, 0, NULL, 0
#define SLICED(chunk) FA_VALUES_NORMAL, FA_HIDDEN_VALUES, FA_LAYOUT_PADDED, 0, NULL, chunk
#define HIDDEN FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, NULL, 0
#define RAGGED(how) FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, &how, 0

/* clang-format off */
static const fa_ragged_how
    packed = { .seed = 6, .forms = FA_FORM_CU_Q | FA_FORM_CU_K, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM, .gap = 5 },
    padded = { .seed = 13, .forms = FA_FORM_SEQLENS_Q | FA_FORM_SEQLENS_K, .q = FA_SPREAD_UNIFORM, .k = FA_SPREAD_UNIFORM },
    gaps = { .seed = 3, .forms = FA_FORM_CU_Q | FA_FORM_CU_K | FA_FORM_SEQLENS_Q, .q = FA_SPREAD_FULL, .k = FA_SPREAD_FULL, .gap = 9 };

static const scene scenes[] = {
    { "plain", "fp32,d=64,mask=none,op=backward,b=2,hq=4,hkv=2", FFMA "br=32,bc=32", 50, 70, NONE, PLAIN },
    { "causal", "fp32,d=40,mask=causal,op=backward,b=1,hq=2,hkv=2", FFMA "br=16,bc=16", 50, 67, NONE, PLAIN },
    { "wide", "fp32,d=24,dv=40,mask=causal,op=backward,b=2,hq=2,hkv=1", FFMA "br=32,bc=64", 70, 100, NONE, PLAIN },
    { "blind", "fp32,d=40,mask=causal,op=backward,b=1,hq=2,hkv=2", FFMA "br=32,bc=32", 80, 40, NONE, HIDDEN },
    { "topleft", "fp32,d=40,mask=causal,op=backward,b=1,hq=2,hkv=2", FFMA "br=32,bc=32", 40, 90, -1, -1, FA_TOP_LEFT, 0, HIDDEN },
    { "window", "fp32,d=32,mask=window,op=backward,b=1,hq=2,hkv=1", FFMA "br=16,bc=16", 90, 90, 17, 5, 0, 0, HIDDEN },
    { "left", "fp32,d=32,mask=window,op=backward,b=1,hq=2,hkv=1", FFMA "br=16,bc=32", 30, 110, 10, 5, 0, 0, HIDDEN },
    { "odd", "fp32,d=5,dv=6,mask=none,op=backward,b=1,hq=2,hkv=2", FFMA "br=16,bc=32", 40, 50, NONE, PLAIN },
    { "odd_wide", "fp32,d=71,dv=66,mask=none,op=backward,b=1,hq=1,hkv=1", FFMA "br=16,bc=16", 30, 30, NONE, PLAIN },
    { "turned", "fp32,d=32,mask=causal,op=backward,features=lse-strides,b=2,hq=4,hkv=2", FFMA "br=32,bc=32", 50, 50, NONE, PLAIN },
    { "packed", "fp32,d=32,mask=causal,op=backward,features=lengths,b=3,hq=2,hkv=1", FFMA "br=32,bc=32", 60, 70, NONE, RAGGED(packed) },
    { "padded", "fp32,d=32,mask=window,op=backward,features=lengths+lse-strides,b=3,hq=2,hkv=1", FFMA "br=16,bc=32", 50, 60, 4, 3, 0, 0,
      RAGGED(padded) },
    /* more rows are allocated than all sequences have */
    { "gaps", "fp32,d=32,mask=none,op=backward,features=lengths,b=3,hq=2,hkv=1", FFMA "br=32,bc=32", 20, 30, NONE, RAGGED(gaps) },
    { "naive", "bf16,d=72,dv=40,mask=causal,op=backward,b=2,hq=4,hkv=2", NAIVE, 80, 100, NONE, PLAIN },
    { "naive_blind", "fp16,d=40,mask=causal,op=backward,grad=fp32,b=1,hq=2,hkv=1", NAIVE, 90, 40, NONE, HIDDEN },
    { "naive_topleft", "bf16,d=24,dv=33,o=fp32,mask=causal,op=backward,b=1,hq=2,hkv=1", NAIVE, 40, 140, -1, -1, FA_TOP_LEFT, 0, HIDDEN },
    { "mma", "bf16,d=64,mask=none,op=backward,b=2,hq=4,hkv=2", MMA
      "br=32,br_part=32,bc=32,warps=2,twins=0,stages=2,dq=0,q_br=32,q_bc=32", 90, 100, NONE, PLAIN },
    { "mma_causal", "bf16,d=32,mask=causal,op=backward,b=1,hq=2,hkv=1", MMA
      "br=32,br_part=16,bc=64,warps=2,twins=0,stages=1,dq=0,q_br=64,q_bc=16", 90, 100, NONE, PLAIN },
    { "mma_twins", "fp16,d=72,dv=40,mask=causal,op=backward,b=2,hq=2,hkv=1", MMA
      "br=32,br_part=32,bc=32,warps=4,twins=1,stages=2,dq=0,q_br=64,q_bc=32", 100, 90, NONE, PLAIN },
    { "mma_wide", "bf16,d=32,mask=none,op=backward,grad=fp32,b=1,hq=2,hkv=2", MMA
      "br=16,br_part=16,bc=64,warps=4,twins=1,stages=1,dq=0,q_br=64,q_bc=32", 90, 90, NONE, PLAIN },
    { "mma_window", "fp16,d=40,mask=window,op=backward,grad=fp32,b=1,hq=2,hkv=1", MMA
      "br=32,br_part=32,bc=32,warps=2,twins=0,stages=1,dq=0,q_br=32,q_bc=16", 90, 110, 17, 5, 0, 0, HIDDEN },
    { "mma_left", "fp16,d=16,mask=window,op=backward,b=1,hq=2,hkv=1", MMA
      "br=16,br_part=16,bc=32,warps=2,twins=0,stages=1,dq=0,q_br=32,q_bc=16", 110, 110, 40, 0, 0, 0, HIDDEN },
    { "mma_topleft", "bf16,d=64,mask=causal,op=backward,b=1,hq=2,hkv=2", MMA
      "br=32,br_part=32,bc=32,warps=2,twins=0,stages=2,dq=0,q_br=32,q_bc=32", 40, 90, -1, -1, FA_TOP_LEFT, 0, HIDDEN },
    { "passes", "bf16,d=264,dv=320,mask=causal,op=backward,b=1,hq=2,hkv=1", "wide_bwd_mma:"
      "br=16,br_part=16,bc=32,warps=4,twins=1,stages=1,dq=0,q_br=64,q_bc=16,pass=16", 40, 50, NONE, HIDDEN },
    { "passes_alone", "fp16,d=320,dv=200,mask=none,op=backward,b=1,hq=2,hkv=1", "wide_bwd_mma:"
      "br=16,br_part=16,bc=32,warps=2,twins=0,stages=2,dq=0,q_br=32,q_bc=16,pass=8", 40, 40, NONE, HIDDEN },
    { "passes_spill", "bf16,d=264,dv=320,mask=causal,op=backward,b=1,hq=2,hkv=1", "wide_bwd_mma:"
      "br=16,br_part=16,bc=32,warps=4,twins=1,stages=1,dq=1,q_br=64,q_bc=16,pass=16", 40, 50, NONE, HIDDEN },
    { "passes_slices", "fp16,d=320,dv=200,mask=none,op=backward,b=1,hq=3,hkv=1", "wide_bwd_mma:"
      "br=16,br_part=16,bc=32,warps=2,twins=0,stages=1,dq=1,q_br=32,q_bc=16,pass=16", 40, 40, NONE, SLICED(48 * 48 * 2) },
    { "mma_blind", "fp16,d=24,mask=causal,op=backward,b=1,hq=2,hkv=1", MMA
      "br=16,br_part=16,bc=32,warps=2,twins=0,stages=2,dq=0,q_br=32,q_bc=32", 80, 40, NONE, HIDDEN },
    { "mma_odd", "bf16,d=33,dv=21,mask=none,op=backward,b=1,hq=2,hkv=2", MMA
      "br=16,br_part=16,bc=32,warps=2,twins=0,stages=2,dq=0,q_br=32,q_bc=32", 50, 40, NONE, PLAIN },
    { "mma_packed", "bf16,d=32,mask=causal,op=backward,features=lengths,b=3,hq=2,hkv=1", MMA
      "br=32,br_part=32,bc=32,warps=2,twins=0,stages=2,dq=0,q_br=32,q_bc=32", 60, 70, NONE, RAGGED(packed) },
    /* Q and K far apart in size, so that LSE holds no logarithm of a sum; and scores beyond fp32 */
    { "far", "fp32,d=64,mask=none,op=backward,b=1,hq=4,hkv=2", FFMA "br=32,bc=32", 90, 70, NONE, FAR },
    { "beyond", "fp32,d=64,mask=none,op=backward,b=1,hq=4,hkv=2", FFMA "br=32,bc=32", 90, 70, NONE, BEYOND },
    { "naive_far", "fp32,d=64,mask=none,op=backward,b=1,hq=4,hkv=2", NAIVE, 90, 70, NONE, FAR },
    { "mma_far", "bf16,d=64,mask=none,op=backward,b=1,hq=4,hkv=2", MMA
      "br=32,br_part=32,bc=32,warps=2,twins=0,stages=2,dq=0,q_br=32,q_bc=32", 90, 100, NONE, FAR },
    { "mma_beyond", "bf16,d=64,mask=none,op=backward,b=1,hq=4,hkv=2", MMA
      "br=32,br_part=32,bc=32,warps=2,twins=0,stages=2,dq=0,q_br=32,q_bc=32", 90, 100, NONE, BEYOND },
    { "spill", "bf16,d=64,mask=none,op=backward,b=2,hq=4,hkv=2", MMA
      "br=32,br_part=32,bc=32,warps=2,twins=0,stages=2,dq=1,q_br=64,q_bc=32", 90, 100, NONE, PLAIN },
    { "spill_causal", "bf16,d=32,mask=causal,op=backward,b=1,hq=2,hkv=1", MMA
      "br=32,br_part=16,bc=64,warps=2,twins=0,stages=1,dq=1,q_br=64,q_bc=64", 90, 100, NONE, PLAIN },
    { "spill_twins", "fp16,d=72,dv=40,mask=causal,op=backward,b=2,hq=4,hkv=2", MMA
      "br=32,br_part=32,bc=64,warps=4,twins=1,stages=2,dq=1,q_br=128,q_bc=16", 100, 90, NONE, PLAIN },
    { "spill_window", "fp16,d=40,mask=window,op=backward,grad=fp32,b=1,hq=2,hkv=1", MMA
      "br=32,br_part=32,bc=32,warps=2,twins=0,stages=1,dq=1,q_br=32,q_bc=32", 90, 110, 17, 5, 0, 0, HIDDEN },
    { "spill_left", "fp16,d=16,mask=window,op=backward,b=1,hq=2,hkv=1", MMA
      "br=16,br_part=16,bc=32,warps=2,twins=0,stages=1,dq=1,q_br=64,q_bc=16", 110, 110, 40, 0, 0, 0, HIDDEN },
    { "spill_topleft", "bf16,d=64,mask=causal,op=backward,b=1,hq=2,hkv=2", MMA
      "br=32,br_part=16,bc=32,warps=2,twins=0,stages=2,dq=1,q_br=64,q_bc=32", 40, 90, -1, -1, FA_TOP_LEFT, 0, HIDDEN },
    { "spill_blind", "fp16,d=24,mask=causal,op=backward,b=1,hq=2,hkv=1", MMA
      "br=16,br_part=16,bc=32,warps=2,twins=0,stages=2,dq=1,q_br=64,q_bc=32", 80, 40, NONE, HIDDEN },
    { "spill_packed", "bf16,d=32,mask=causal,op=backward,features=lengths,b=3,hq=2,hkv=1", MMA
      "br=32,br_part=32,bc=32,warps=2,twins=0,stages=2,dq=1,q_br=32,q_bc=32", 60, 70, NONE, RAGGED(packed) },
    /* the workspace holds dS of one head of two sequences; of one head of each unit; of two */
    { "spill_units", "bf16,d=32,mask=causal,op=backward,features=lengths,b=3,hq=2,hkv=1", MMA
      "br=32,br_part=32,bc=32,warps=2,twins=0,stages=2,dq=1,q_br=32,q_bc=32", 60, 70, NONE, FA_VALUES_NORMAL, FA_HIDDEN_NAN,
      FA_LAYOUT_PADDED, 0, &packed, 2 * 64 * 80 * 2 },
    { "spill_slices", "bf16,d=64,mask=causal,op=backward,b=2,hq=6,hkv=2", MMA
      "br=32,br_part=32,bc=32,warps=2,twins=0,stages=2,dq=1,q_br=64,q_bc=32", 60, 100, NONE, SLICED(4 * 64 * 112 * 2) },
    { "spill_slices_twins", "fp16,d=72,dv=40,mask=none,op=backward,b=1,hq=6,hkv=2", MMA
      "br=32,br_part=32,bc=64,warps=4,twins=1,stages=2,dq=1,q_br=128,q_bc=16", 60, 100, NONE, SLICED(4 * 64 * 112 * 2) },
    { NULL, NULL, NULL, 0, 0, NONE, PLAIN },
};
/* clang-format on */

#define RANGES "ranges.cu"
#define F "flash_bwd_ffma.cu"
#define M "flash_bwd_mma.cu"
#define A "grad_q_recompute.cu"
#define L "grad_q_spill.cu"
#define P "grad_products.cu"
#define S "grad_store.cu"
#define T "grad_spill.cu"
#define SUMS "grad_sums.cu"
#define N "naive_bwd.cu"
#define D "delta.cu"
#define G "gradient.cu"
#define R "query_range.cu"
#define Q "sequence.cu"
#define X "grad_probability.cu"

static const mutation mutations[] = {
    /* D */
    { "each pass of dK has the first columns", M, "q.on + first_k * 16", "q.on", 0, "passes" },
    { "each pass of dV has the first columns", M, "grad_o.on + first_v * 16", "grad_o.on", 0, "passes_alone" },
    { "each pass of dQ has the first columns", A, "\"(u32)first_q * 16\"", "\"0\"", 0, "passes" },
    { "a pass stores over the first columns", "grad_store.cu", "(first + chunk) * 8) = load", "chunk * 8) = load", 0,
      "passes passes_alone" },
    { "a pass stores columns that are not there", "grad_store.cu", " && (first + chunk) * 8 < WIDTH", "", 0, "passes" },
    { "a pass loads over what is stored", M, "  __syncthreads();  // what was stored has been read\n", "", 0, "passes" },
    { "each pass of dQ out of memory has the first columns", L, "\"(u32)first_q * 16\"", "\"0\"", 0, "passes_spill" },
    { "a pass of dQ out of memory loads over what is stored", L, "  __syncthreads();  // what was stored has been read\n", "", 0,
      "passes_spill" },
    { "sums of all passes lie in one place", SUMS, "* PASSES + pass)", "* PASSES)", 0, "passes_slices" },
    { "sums of dV of a pass over those of dK", M, "sums_k + KEYS * 2 * PASS;", "sums_k;", 0, "passes_slices" },
    { "dQ is stored where keys are still read", A, "  __syncthreads();  // the stages are free for what is stored\n", "  __syncwarp();\n",
      0, "passes_alone" },
    { "D without the gradient of LSE", D, "= sum - extra;", "= sum;", 0, "plain" },
    { "D with the gradient of LSE added", D, "= sum - extra;", "= sum + extra;", 0, "plain" },
    { "D of O alone", D, "((const DeltaPiece *)grad)[i]", "((const DeltaPiece *)o)[i]", 0, "plain" },
    { "D over half of the lanes", D, "i = DELTA_LANES / 2; i > 0", "i = DELTA_LANES / 2; i > 1", 0, "plain" },
    { "D without the last pieces", D, "i < DELTA_PIECES;", "i < DELTA_PIECES - 1;", 0, "plain" },
    { "halves of a word mixed up", D, "o_to_float((u16)a) * o_to_float((u16)b)", "o_to_float((u16)a) * o_to_float((u16)(b >> 16))", 1,
      "naive" },
    { "D with O's strides for dO", D, "row * p.grad_o_ss + head", "row * p.o_ss + head", 0, "plain" },
    { "D with dO's heads for O", D, "head * p.o_sh", "head * p.grad_o_sh", 0, "plain" },
    { "D of rows after the last", D, "if (!real || lane != 0) return;", "if (lane != 0) return;", 0, "padded packed" },

    /* where tensors lie */
    { "dO with the batches of Q", Q, "return batch * p.grad_o_sb;", "return batch * p.q_sb;", 0, "wide" },
    { "dQ with the batches of Q", Q, "return batch * p.grad_q_sb;", "return batch * p.q_sb;", 0, "plain" },
    { "dK with the batches of K", Q, "return batch * p.grad_k_sb;", "return batch * p.k_sb;", 0, "plain" },
    { "dV of the first batch for all", Q, "return batch * p.grad_v_sb;", "return 0;", 0, "plain" },
    { "D of the first batch for all", Q, "(batch * p.hq + head) * p.sq + query; }\n//|   end\n};", "head * p.sq + query; }\n//|   end\n};",
      0, "plain" },
    { "packed dO from the first row", Q, "index * p.grad_o_sb + first_q * p.grad_o_ss", "index * p.grad_o_sb", 0, "packed" },
    { "packed dQ from the first row", Q, "index * p.grad_q_sb + first_q * p.grad_q_ss", "index * p.grad_q_sb", 0, "packed" },
    { "packed dK by queries", Q, "index * p.grad_k_sb + first_k * p.grad_k_ss", "index * p.grad_k_sb + first_q * p.grad_k_ss", 0,
      "packed" },
    { "padded dV of the first sequence", Q, "index * p.grad_v_sb + first_k * p.grad_v_ss", "first_k * p.grad_v_ss", 0, "padded" },
    { "D by the rows that are allocated", Q, "return (index * (long long)p.hq + head) * p.sq + query;",
      "return (long long)head * p.total_q + first_q + query;", 0, "gaps" },
    { "D of the first sequence for all", Q, "(index * (long long)p.hq + head) * p.sq", "head * p.sq", 0, "packed" },

    /* which queries */
    { "first query one late", R, "max(0, j - sequence.diag_hi())", "max(0, j - sequence.diag_hi() + 1)", 0, "causal" },
    { "queries before the first", R, "max(0, j - sequence.diag_hi())", "(j - sequence.diag_hi())", 0, "causal wide" },
    { "last query one early", R, "min(sequence.sq() - 1, j - sequence.diag_lo())", "min(sequence.sq() - 1, j - sequence.diag_lo() - 1)", 0,
      "window" },
    { "queries of the last key of the tile", F, "row_lo = $(pr.first_query(\"key0\"))", "row_lo = first_query(sequence, key0 + BC - 1)", 0,
      "causal" },

    /* P and dS */
    { "LSE in base 2", F, "\"finite_lse(lse)\", \"LOG2E\"", "\"finite_lse(lse) * LOG2E\", \"LOG2E\"", 0, "plain" },
    { "P in base e of a power of 2", F, "\"finite_lse(lse)\", \"LOG2E\"", "\"finite_lse(lse)\"", 0, "plain" },
    { "rows after the last have P", F, "const bool real = row < sequence.sq();", "const bool real = true;", 0, "plain packed" },
    { "Q for dO", F, "smem + SMEM_GRAD_O, smem + SMEM_V, x, y", "smem + SMEM_Q, smem + SMEM_V, x, y", 0, "plain" },
    { "rows y + 8 i", F, "rows + tile_offset<N>(y + 16 * i, c)", "rows + tile_offset<N>(y + 8 * i, c)", 0, "plain" },

    /* sums */
    { "the first head of the group alone", F, "head < (kv_head + 1) * p.group; head++", "head < kv_head * p.group + 1; head++", 0,
      "plain" },
    { "KV head by remainder", F, "head / p.group, block", "head % p.hkv, block", 0, "plain" },
    { "dV out of dS", F, "(dv, smem + SMEM_P,", "(dv, smem + SMEM_DS,", 0, "plain" },
    { "dK out of P", F, "(dk, smem + SMEM_DS,", "(dk, smem + SMEM_P,", 0, "plain" },
    { "dK without the scale", F, "dk[i][j], $(pr.grad_scale))", "dk[i][j], 1.f)", 0, "plain" },
    { "dV with the scale", F, "dv[i][j], $(pr.keep_scale)", "dv[i][j], p.scale", 0, "plain" },
    { "dQ without the scale", F, "dq[i][j], $(pr.grad_scale))", "dq[i][j], 1.f)", 0, "plain" },
    { "one query of a tile is left out", F, "for (int r = 0; r < BR; r++)", "for (int r = 1; r < BR; r++)", 0, "plain" },
    { "keys of a thread in another order", F, "4 * y + i / 4 * 64 + i % 4", "4 * y + i / 4 * 64 + 3 - i % 4", 0, "wide" },
    { "four elements where the row has fewer", F, "if (col + 2 < WIDTH) store", "if (col < WIDTH) store", 0, "odd" },
    { "the last element of four is left out", F, "if (col + 3 < WIDTH)", "if (col + 4 < WIDTH)", 0, "plain" },
    { "every 16th float4 becomes every 8th", F, "min(x + 16 * j, N - 1)", "min(x + 8 * j, N - 1)", 0, "odd_wide" },

    /* what is loaded, and when */
    { "P and dS before all have stored", F, "        __syncthreads();  // P and dS are complete\n", "", 0, "plain" },
    { "the next tile before all have read", F, "        __syncthreads();  // before the next tile takes their place\n", "", 0, "plain" },
    { "the next block before all have read", F, "    __syncthreads();  // before the next block takes the place of K and V\n", "", 0,
      "plain" },
    { "Q and dO are not waited for", F, "        cp_async_wait<0>();\n", "", 0, "plain" },
    { "K and V are not waited for", F, "    cp_async_commit();\n    cp_async_wait<0>();\n    __syncthreads();", "    __syncthreads();", 0,
      "plain" },
    { "hidden keys are loaded for dQ", F, "block * BC, range.key_lo, range.key_hi", "block * BC, 0, sequence.sk() - 1", 0, "topleft left" },
    { "queries after the last are loaded", F, "const int last = sequence.sq() - 1 - row0;", "const int last = BR;", 0, "plain packed" },

    /* naive */
    { "P above 1", X, "min.NaN.f32 %0, %1, 0f00000000;", "mov.f32 %0, %1;", 0, "far mma_far" },
    { "P is 1 where the score is NaN", X, "min.NaN.f32", "min.f32", 0, "beyond mma_beyond" },
    { "P is 0 where LSE is +inf", X, "fabsf(lse) < infinity() ? lse", "true ? lse", 0, "beyond mma_beyond" },
    { "P above 1: naive", "score.lua", "expf(at_most_zero(%s - %s))", "expf(%s - %s)", 0, "naive_far" },
    { "naive: P without LSE", N, "\"finite_lse(lse)\")", "\"0.f\")", 0, "naive" },
    { "naive: a sum short of its last step", N, "k0 < to; k0 += DEPTH", "k0 + DEPTH < to; k0 += DEPTH", 0, "naive" },
    { "naive: dV out of dS", N, "e[(long long)row * p.sk + key]", "ds[(long long)row * p.sk + key]", 0, "naive" },
    { "naive: dK of the first head", N, "head < (kv_head + 1) * p.group; head++", "head < kv_head * p.group + 1; head++", 0, "naive" },
    { "naive: dQ without the scale", N, "sum[i][j] * $(pr.grad_scale));", "sum[i][j]);", 0, "naive" },
    { "a gradient in the other half of a word", G, "pack2(x, 0.f)", "pack2(0.f, x)", 0, "naive" },

    /* mma: P and dS */
    { "mma: LSE in base e", D, "make_float2(sees ? lse_log2(p, lse)", "make_float2(sees ? lse", 0, "mma" },
    { "mma: D for LSE", M, "{{__uint_as_float(x.x), __uint_as_float(x.z)}", "{{__uint_as_float(x.y), __uint_as_float(x.z)}", 0, "mma" },
    { "mma: D of the neighbour", M, "{__uint_as_float(x.y), __uint_as_float(x.w)}", "{__uint_as_float(x.w), __uint_as_float(x.y)}", 0,
      "mma" },
    { "mma: pairs of other queries", M, "(n * 8 + 2 * t) * 8", "(n * 8 + t) * 8", 0, "mma_causal" },
    { "mma: D of the row eight on", A, "ds[m][n][e], delta[m][e / 2])", "ds[m][n][e], delta[m][e % 2])", 0, "mma" },

    /* mma: which pairs */
    { "mma: a tile that the diagonal cuts is taken as whole", RANGES, "if (key + 16 * KB - 1 - row > sequence", "if (key - row > sequence",
      0, "mma_causal" },
    { "mma: a tile that the left edge cuts is taken as whole", RANGES, "if (key - (row + PART - 1) < sequence", "if (key - row < sequence",
      0, "mma_left" },
    { "mma: queries of the last key of the tile", M, "first_row = $(pr.first_query(\"key0\"))",
      "first_row = first_query(sequence, key0 + KEYS - 1)", 0, "mma_causal" },

    /* mma: sums and where they go */
    { "mma: the first head of the group alone", M, "end_of_heads(\"(kv_head + 1) * p.group\")", "end_of_heads(\"kv_head * p.group + 1\")",
      0, "mma" },
    { "mma: KV head by remainder", A, "kv_head = head / p.group", "kv_head = head % p.hkv", 0, "mma" },
    { "mma: D of the head in front", M, "sequence.delta(next_head, next_row)", "sequence.delta(max(next_head - 1, 0), next_row)", 0,
      "mma" },
    { "mma: dK without the scale", M, "dk, $(pr.grad_scale), $(staging_k)", "dk, 1.f, $(staging_k)", 0, "mma_twins" },
    { "mma: dQ without the scale", A, "dq, $(pr.grad_scale), $(l.pass", "dq, 1.f, $(l.pass", 0, "mma" },
    { "mma: one pair of warps for all", M, "% (WARPS / 2), warp_key", "% 1, warp_key", 0, "mma_twins" },
    { "mma: P of another block of queries", M, "load_shared_x4(p_from + (m * NB_ROWS + n) * 512)",
      "load_shared_x4(p_from + (m * NB_ROWS + (n ^ 1)) * 512)", 0, "mma_twins" },
    { "mma: rows of dK of the next sequence", M, "const int rows = sk - key0 - warp_key;", "const int rows = 16 * KB;", 0,
      "mma mma_packed" },
    { "mma: rows of dQ of the next sequence", A, "p.grad_q_ss, sq - row0 - warp_row", "p.grad_q_ss, 16 * QB", 0, "mma mma_packed" },
    { "products: halves of a word mixed up", P, "pack2(x[0], x[1])", "pack2(x[1], x[0])", 0, "mma" },
    { "products: rows eight on for columns", P, "a[1] = pack2(x[2], x[3])", "a[1] = pack2(y[0], x[3])", 0, "mma" },
    { "products: without the last odd chunk", P, "mma_half(s[m][n + 1], a[m][0], a[m][1], b1);", "", 0, "mma_twins mma_window" },
    { "products: the last odd chunk of other rows", P, "at.last + row * CHUNKS", "at.last + row / 2 * CHUNKS", 0, "mma_twins mma_window" },
    { "products: sums begin with what is there", P, "s[m][n][0] = s[m][n][1] = s[m][n][2] = s[m][n][3] = 0.f", "s[m][n][0] = 1.f", 0,
      "mma" },
    { "store: the staged row of another half", S, "staging + tile_offset<CHUNKS>(row, n)", "staging + tile_offset<CHUNKS>(row ^ 8, n)", 0,
      "mma" },
    { "store: rows of the warp that are not there", S, "if (row >= rows) continue;", "", 0, "mma_wide mma_window" },
    { "store: a column too many", S, "if (col + 1 < WIDTH)", "if (col < WIDTH)", 0, "mma_odd" },

    /* mma: what is loaded, and when */
    { "mma: the next tile before all have read", M, "      parts(smem);\n      __syncthreads();\n", "      parts(smem);\n", 0,
      "mma_causal" },
    { "mma: tiles of queries are not waited for", M, "      cp_async_wait<0>();\n      __syncthreads();", "      __syncthreads();", 0,
      "mma" },
    { "mma: blocks of keys are not waited for", A, "    cp_async_wait<0>();\n    __syncthreads();  // K", "    __syncthreads();  // K", 0,
      "mma" },
    { "mma: a barrier less for a tile of queries", M, "      cp_async_wait<0>();\n      __syncthreads();", "      cp_async_wait<0>();", 0,
      "mma" },
    { "mma: a barrier less for a block of keys", A, "    cp_async_wait<0>();\n    __syncthreads();  // K", "    cp_async_wait<0>();  // K",
      0, "mma" },
    { "mma: the next block before all have read", A, "    __syncthreads();\n    load_next();\n//| end\n  }",
      "    load_next();\n//| end\n  }", 0, "mma_causal" },
    { "mma: P is not waited for", M, "      asm volatile(\"bar.sync %0, 64;\" ::\"r\"(pair + 1) : \"memory\");  // P has come\n", "", 0,
      "mma_twins" },
    { "mma: gradients over tiles that are still read", M, "    __syncthreads();  // the tiles of K and V are free for what is stored\n", "",
      0, "mma_twins mma" },
    { "mma: the other stage", M, "      stage ^= 1;\n", "", 0, "mma" },
    { "mma: keys that no query sees are loaded", M, "first = $(pr.first_own_key), last = $(pr.last_own_key(\"sq\"))",
      "first = 0, last = sk - 1", 0, "mma_topleft mma_window" },
    { "mma: keys that no query sees are loaded for dQ", A, "next * BC, range.key_lo, range.key_hi", "next * BC, 0, sequence.sk() - 1", 0,
      "mma_topleft mma_window" },
    { "mma: the next head's queries from where the last ended", M, "next_head++;\n        begin_head();", "next_head++;", 0, "mma" },
    { "mma: rows of dO as far apart as of Q", M, "piece_v, p.grad_o_ss", "piece_v, p.grad_o_ss / 2", 0, "mma" },
    { "mma: queries after the last are loaded", M, "next_row, seen_first, seen_last", "next_row, 0, sq + BR", 0, "mma mma_packed" },

    /* mma: queries of an iteration in parts */
    { "part: pairs of the first for all", M, "STAGE_PAIRS + r * 8", "STAGE_PAIRS", 0, "spill_causal mma_causal" },
    { "part: the diagonal of the first for all", M, "const int from = row + r;", "const int from = row;", 0, "spill_causal" },
    { "part: dO of the first for all", M, "grad_o = {tile + r * CHUNKS_V * 16,", "grad_o = {tile,", 0, "mma_causal" },
    { "part: left out by its first query", RANGES, "key - (row + PART - 1) > sequence", "key - row > sequence", 0,
      "spill_causal mma_causal" },
    { "part: left out by its first key", RANGES, "key + 16 * KB - 1 - row < sequence", "key - row < sequence", 0, "mma_window spill_left" },

    /* dS through memory: how it is left */
    { "spill: a matrix as it is", T, "transpose(a[n][m][0])", "a[n][m][0]", 0, "spill" },
    { "spill: matrices in the order of dK", T, "transpose(a[n][m][2]), transpose(a[n][m][1])",
      "transpose(a[n][m][1]), transpose(a[n][m][2])", 0, "spill" },
    { "spill: P for dS", M, "pack_scores(weights, ds)", "pack_scores(weights, s)", 1, "spill" },
    { "spill: rows of tiles as long as columns", T, "query / 16) * blocks_k", "query / 16) * blocks_q", 0, "spill" },
    { "spill: heads of a group share tiles", T, "* p.members + member)", "* p.members)", 0, "spill" },
    { "spill: units share tiles", T, "(u32)(local * p.members", "(u32)(0 * p.members", 0, "spill" },
    { "spill: the head for its number in the group", M, "local, head - first_head, from", "local, head, from", 1, "spill" },
    { "spill: the iteration's queries for the part's", M, "head - first_head, from", "head - first_head, row", 1, "spill_causal" },
    { "spill: 8 queries on", T, "(p.sk + 15) / 16 * (SCORES / 16);  // 16", "(p.sk + 15) / 16 * (SCORES / 32);  // 16", 0, "spill" },
    { "spill: a tile less of the queries", T, "row + n * 16 < sq", "row + n * 16 + 16 < sq", 0, "spill" },
    { "spill: tiles after the last key", T, " && key + m * 16 < sk) to", ") to", 0, "spill_causal" },
    { "spill: members from the first in every launch, of dK and dV", M, "kv_head * p.group + p.member;", "kv_head * p.group;", 0,
      "spill_slices" },
    { "spill: members from the first in every launch, of dQ", L, "+ p.member + member)", "+ member)", 0, "spill_slices" },
    { "spill: all members in every launch", M, "end_of_heads(\"first_head + p.members\")", "end_of_heads(\"(kv_head + 1) * p.group\")", 0,
      "spill_slices" },
    { "spill: dS as if all of a group were there", T, "(u32)(local * p.members + member)", "(u32)(local * p.group + member)", 0,
      "spill_slices" },
    { "spill: sums of the slice in front are not loaded", SUMS, "p.member > 0", "false", 0, "spill_slices spill_slices_twins" },
    { "spill: every slice stores gradients", SUMS, "return p.member + p.members == p.group;", "return true;", 0,
      "spill_slices spill_slices_twins" },
    { "spill: sums of dV over those of dK", M, "sums_k + KEYS * 2 * CHUNKS;", "sums_k;", 0, "spill_slices spill_slices_twins" },
    { "spill: sums of all units in one place", SUMS, "(u32)local * (u32)p.tiles + (u32)tile", "(u32)tile", 1, "spill_slices" },
    { "spill: sums of all threads in one place", SUMS, "  to += threadIdx.x % HOLDERS;\n", "", 0, "spill_slices" },
    { "spill: twins leave no dV", M, "    if (!last_members(p)) return leave_sums<THREADS / 2>(dv, sums_v);\n", "", 0,
      "spill_slices_twins" },
    { "spill: twins leave no dK", M, "    if (!last_members(p)) return leave_sums<THREADS / 2>(dk, sums_k);\n", "", 0,
      "spill_slices_twins" },
    { "spill: the first units for all, of dK and dV", M, "unit = p.unit + local", "unit = local", 0, "spill_units" },
    { "spill: the first units for all, of dQ", L, "unit = p.unit + local", "unit = local", 0, "spill_units" },

    /* and how dQ takes it */
    { "spill: KV head by quotient", L, "kv_head = unit % p.hkv", "kv_head = unit / p.hkv", 0, "spill_twins" },
    { "spill: without the last tile of keys", RANGES, "hi / 16 - lo / 16 + 1", "hi / 16 - lo / 16", 0, "spill" },
    { "spill: tiles of the first row", RANGES, "min(row + 16, sequence.sq()) - 1", "row", 0, "spill_causal" },
    { "spill: tiles that nobody left", RANGES, "(u32)(tile - lo) < (u32)count", "tile >= lo", 0, "spill_causal" },
    { "spill: tiles of rows that see no key", RANGES, "row < sequence.sq() && lo <= hi", "row < sequence.sq()", 0, "spill_blind" },
    { "spill: tiles of rows that are not there", RANGES, "row < sequence.sq() && lo <= hi", "lo <= hi", 0, "spill_topleft" },
    { "spill: a block by its first tile", RANGES, "tile < lo + count && lo < tile + n", "tile < lo + count && lo <= tile", 0,
      "spill_window" },
    { "spill: a block by the first 16 rows", L, "sees = sees || tiles[m]", "sees = sees || tiles[0]", 0, "spill_causal" },
    { "spill: the tiles of this block again", L, "    advance();\n//| end\n    stage", "//| end\n    stage", 0, "spill" },
    { "spill: no tiles after a block that is left out", L, "for (int i = 0; i < BC / 16; i++) load_scores(Constant<false>(), i, $(after));",
      "", 0, "spill_left" },
    { "spill: tiles after the last for all", RANGES, "lo <= tile && tile + n <= lo + count", "lo <= tile", 0, "spill_causal" },
    { "spill: the next block of K for this one", L, "    stage ^= 1;\n", "", 0, "spill" },
    { "spill: K is not waited for", L, "    cp_async_wait<0>();\n", "", 0, "spill" },
    { "spill: a barrier less for a block of K", L, "    __syncthreads();  // K", "    // K", 0, "spill" },
    { "spill: dQ over blocks that are still read", L, "  __syncthreads();  // the blocks of K are free for what is stored\n", "", 0,
      "spill" },
    { "spill: keys that no query sees are loaded", L, "range.key_lo,\n                               range.key_hi", "0, sequence.sk() - 1",
      0, "spill_topleft spill_window" },
    { "spill: dQ without the scale", L, "dq, $(pr.grad_scale), smem", "dq, 1.f, smem", 0, "spill" },
    { "spill: rows of dQ of the next sequence", L, "sq - row0 - warp_row$(l.pass", "16 * QB$(l.pass", 0, "spill spill_packed" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};

const mutation_list mutation_lists[] = {
    { scenes, mutations, 0, 0, false },
    { hopper_scenes, hopper_mutations, 2, 0, false },
    { hopper_lengths_scenes, hopper_lengths_mutations, 2, 0, false },
    { NULL, NULL, 0, 0, false },
};
