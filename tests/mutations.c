/* mutations: faults to put into the templates, each with the scenes that must notice it. */
#include "mutations.h"
#include "verify/cases/case.h"
#include <stddef.h>

#define MMA "flash_fwd_mma:"
#define FFMA "flash_fwd_ffma:"
#define TILE(keys) MMA "br=32,bc=" #keys ",warps=2,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=0,ctas=1"
#define NONE -1, -1, 0, 0
#define PLAIN FA_VALUES_NORMAL, FA_HIDDEN_VALUES, FA_LAYOUT_PADDED, 0, NULL, 0
/* Rows side by side: what is read past one is finite. A row with NaN would be computed again, and right. */
#define PACKED FA_VALUES_NORMAL, FA_HIDDEN_VALUES, FA_LAYOUT_PACKED, 0, NULL, 0
#define HIDDEN FA_VALUES_NORMAL, FA_HIDDEN_NAN, FA_LAYOUT_PADDED, 0, NULL, 0

/* clang-format off */
static const scene scenes[] = {
    { "plain", "bf16,d=64,mask=none,b=3,hq=4,hkv=2", TILE(32), 70, 100, NONE, PLAIN },
    { "causal", "bf16,d=64,mask=causal,b=1,hq=2,hkv=2", TILE(32), 70, 100, NONE, PLAIN },
    { "blind", "bf16,d=64,mask=causal,b=1,hq=2,hkv=2", TILE(32), 100, 40, NONE, HIDDEN },
    { "topleft", "bf16,d=64,mask=causal,b=1,hq=2,hkv=2", TILE(32), 100, 40, -1, -1, FA_TOP_LEFT, 0, HIDDEN },
    { "window", "bf16,d=64,mask=window,b=1,hq=2,hkv=2", TILE(16), 100, 100, 20, 5, 0, 0, PLAIN },
    { "left", "bf16,d=64,mask=window,b=1,hq=2,hkv=2", MMA "br=16,bc=32,warps=1,stages_k=1,stages_v=1,order=0,q_regs=0,pack=0,lag=0,ctas=1", 30, 130, 10, 5, 0, 0, HIDDEN },
    { "away", "bf16,d=64,mask=window,b=1,hq=2,hkv=2", TILE(16), 50, 50, 3, 3, FA_OFFSET, -20, HIDDEN },
    { "nothing", "bf16,d=64,mask=window,b=1,hq=2,hkv=2", TILE(16), 40, 40, 3, 3, FA_OFFSET, -200, HIDDEN },
    { "pack", "bf16,d=64,mask=causal,b=1,hq=6,hkv=2", MMA "br=32,bc=32,warps=2,stages_k=1,stages_v=1,order=0,q_regs=0,pack=1,lag=0,ctas=1", 37, 50, NONE, PLAIN },
    { "group", "bf16,d=64,mask=none,b=2,hq=6,hkv=2", TILE(32), 37, 50, NONE, PLAIN },
    { "odd", "bf16,d=24,dv=40,mask=none,b=1,hq=2,hkv=2", TILE(32), 40, 70, NONE, PLAIN },
    { "odd_regs", "bf16,d=24,dv=40,mask=none,b=1,hq=2,hkv=2", MMA "br=32,bc=32,warps=2,stages_k=1,stages_v=1,order=0,q_regs=1,pack=0,lag=0,ctas=1", 40, 70, NONE, PLAIN },
    { "narrow", "bf16,d=20,dv=20,o=fp32,mask=none,b=1,hq=2,hkv=2", TILE(32), 40, 70, NONE, PACKED },
    { "two", "bf16,d=33,dv=33,mask=none,b=1,hq=2,hkv=2", TILE(32), 40, 70, NONE, PACKED },
    { "two_left", "bf16,d=33,dv=33,mask=window,b=1,hq=2,hkv=2", TILE(16), 100, 130, 20, 5, 0, 0, HIDDEN },
    { "stages", "fp16,d=64,mask=none,b=1,hq=2,hkv=2", MMA "br=64,bc=16,warps=4,stages_k=2,stages_v=2,order=2,q_regs=1,pack=0,lag=8,ctas=1", 70, 130, NONE, PLAIN },
    { "deep0", "fp16,d=64,mask=none,b=1,hq=2,hkv=2", MMA "br=64,bc=16,warps=4,stages_k=2,stages_v=2,order=0,q_regs=0,pack=0,lag=0,ctas=1", 70, 130, NONE, PLAIN },
    { "order1", "fp16,d=64,mask=none,b=1,hq=2,hkv=2", MMA "br=64,bc=32,warps=4,stages_k=2,stages_v=1,order=1,q_regs=0,pack=0,lag=0,ctas=1", 70, 130, NONE, PLAIN },
    { "tf32", "tf32,d=32,mask=causal,b=1,hq=2,hkv=2", TILE(32), 50, 70, NONE, PLAIN },
    { "fp32", "fp32,d=40,mask=causal,b=2,hq=4,hkv=2", FFMA "br=32,bc=32,warps=2,pack=0", 50, 70, NONE, PLAIN },
    { "fp32_blind", "fp32,d=40,mask=causal,b=1,hq=4,hkv=2", FFMA "br=32,bc=32,warps=2,pack=1", 70, 30, NONE, HIDDEN },
    { "fp32_odd", "fp32,d=5,dv=6,mask=none,b=1,hq=2,hkv=2", FFMA "br=16,bc=32,warps=2,pack=0", 40, 70, NONE, PLAIN },
    { "fp32_half", "fp32,d=8,dv=70,mask=causal,align=8,b=1,hq=2,hkv=2", FFMA "br=16,bc=32,warps=2,pack=0", 40, 70, NONE, PLAIN },
    { "fp32_half96", "fp32,d=8,dv=96,mask=causal,b=1,hq=2,hkv=2", FFMA "br=16,bc=32,warps=2,pack=0", 40, 70, NONE, PLAIN },
    { "steep", "fp16,d=64,mask=none,b=1,hq=2,hkv=2", MMA "br=64,bc=16,warps=2,stages_k=2,stages_v=2,order=2,q_regs=0,pack=0,lag=8,ctas=1", 64, 130, NONE,
      FA_VALUES_HEAVY, FA_HIDDEN_VALUES, FA_LAYOUT_PADDED, 1, NULL, 0 },
    { "far", "bf16,d=16,mask=none,b=1,hq=2,hkv=2", TILE(32), 40, 70, NONE,
      FA_VALUES_NORMAL, FA_HIDDEN_VALUES, FA_LAYOUT_FAR, 0, NULL, 0 },
    { "wide", "bf16,d=64,o=fp32,mask=none,b=1,hq=2,hkv=2", TILE(32), 40, 70, NONE, PLAIN },
    { NULL, NULL, NULL, 0, 0, NONE, PLAIN },
};
/* clang-format on */

#define P "prelude.cu"
#define S "softmax.cu"
#define M "mask.cu"
#define SK "seen_keys.cu"
#define T "tile.cu"
#define RANGES "ranges.cu"
#define E "epilogue.cu"
#define Q "sequence.cu"
#define L "tile_order.cu"
#define F "flash_fwd_mma.cu"
#define D "products.cu"
#define A "mma_softmax.cu"
#define X "flash_fwd_ffma.cu"

static const mutation mutations[] = {
    { "halves of a pair swapped", P, "\"f\"(hi), \"f\"(lo)", "\"f\"(lo), \"f\"(hi)", 0, "plain" },
    { "copies are never cut to zeros", P, "const int n = valid ? BYTES : 0;", "const int n = BYTES; (void)valid;", 0, "left" },
    { "maximum over two of four lanes", P, "return fmaxf(x, __shfl_xor_sync(~0u, x, 2));", "return x;", 0, "plain" },
    { "sum over two of four lanes", P, "return x + __shfl_xor_sync(~0u, x, 2);", "return x;", 0, "plain" },
    { "waits for one copy group less", P, "::\"n\"(N) : \"memory\"", "::\"n\"(N + 1) : \"memory\"", 0, "plain" },
    { "V is not transposed", P, "m8n8.x4.trans.shared", "m8n8.x4.shared", 0, "plain" },
    { "last V block is not transposed", P, "m8n8.x2.trans.shared", "m8n8.x2.shared", 0, "odd" },
    { "A fragment in another order", P, "\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2])", "\"r\"(a[0]), \"r\"(a[2]), \"r\"(a[1])", 0, "plain" },
    { "half A fragment in another order", P, "\"r\"(a0), \"r\"(a1), \"r\"(b0)", "\"r\"(a1), \"r\"(a0), \"r\"(b0)", 0, "odd" },
    { "commit dropped", P, "asm volatile(\"cp.async.commit_group;\" ::: \"memory\");", "", 0, "plain stages" },

    { "sum is not rescaled", S, "  row.l *= keep;\n", "", 0, "plain" },
    { "a later maximum is not kept", S, "  row.m = m;\n", "  row.m = row.m == -infinity() ? m : row.m;\n", 0, "plain" },
    { "division by an empty sum", S, "l == 0.f ? 0.f : fmaf(r,", "fmaf(r,", 0, "blind" },
    { "infinity minus infinity", S, "m == -infinity() ? 0.f : r", "r", 0, "blind" },

    { "causal sees one key too many", SK, "min(sequence.sk() - 1, i + sequence.diag_hi())",
      "min(sequence.sk() - 1, i + sequence.diag_hi() + 1)", 0, "causal" },
    { "causal sees one key too few", SK, "min(sequence.sk() - 1, i + sequence.diag_hi())",
      "min(sequence.sk() - 1, i + sequence.diag_hi() - 1)", 0, "causal" },
    { "keys beyond the end", SK, "min(sequence.sk() - 1, i + sequence.diag_hi())", "i + sequence.diag_hi()", 0, "topleft" },
    { "one key beyond the end", SK, "int) { return sequence.sk() - 1; }", "int) { return sequence.sk(); }", 0, "plain" },
    { "window one key short on the left", SK, "max(0, i + sequence.diag_lo())", "max(0, i + sequence.diag_lo() + 1)", 0, "window" },
    { "window one key wide on the left", SK, "max(0, i + sequence.diag_lo())", "max(0, i + sequence.diag_lo() - 1)", 0, "window" },
    { "keys before the first", SK, "max(0, i + sequence.diag_lo())", "i + sequence.diag_lo()", 0, "window away" },
    { "the last full block by one off", RANGES, "(last_key(sequence, i0) + 1) / BC", "(last_key(sequence, i0) + BC) / BC", 0, "causal" },
    { "packed rows: query by remainder", M, "return row / p.group;", "return row % p.group;", 0, "pack" },
    { "packed rows: one head's count", M, "return sequence.sq() * p.group;", "return sequence.sq();", 0, "pack" },

    { "K of the first batch for all", Q, "return batch * p.k_sb;", "return 0;", 0, "group" },
    { "V with the batches of K", Q, "return batch * p.v_sb;", "return batch * p.k_sb;", 0, "group" },
    { "O with the batches of Q", Q, "return batch * p.o_sb;", "return batch * p.q_sb;", 0, "group" },

    { "KV head by remainder", "order.cu", "w.head / p.group", "w.head % p.hkv", 0, "group" },
    { "batch by the wrong divisor", L, "w.batch = at / heads", "w.batch = at / p.b", 0, "plain" },
    { "tiles one too far", L, "(p.tiles - 1 - tile) * $(high)", "(p.tiles - tile) * $(high)", 0, "causal" },
    { "packed rows: head by quotient", L, "w.head + row % p.group", "w.head + row / p.group", 0, "pack" },
    { "packed rows: the group's first head only", "order.cu", "w.head = w.kv_head * p.group;", "w.head = w.kv_head;", 0, "pack" },

    { "swizzle added, not exclusive-ored", T, "(lane ^ (u32)(chunk % PERIOD * 16))", "(lane + (u32)(chunk % PERIOD * 16))", 0, "plain" },
    { "stores are not swizzled", T, "tile + tile_offset<CHUNKS, PAIRS>(row, S::col() + c), from",
      "tile + (row * CHUNKS + S::col() + c) * 16, from", 0, "plain" },
    { "pairs swizzle of TF32 dropped", T, "  if constexpr (PAIRS)\n", "  if constexpr (PAIRS && CHUNKS < 0)\n", 0, "tf32" },
    { "rows before the first are read", T, "(u32)(row - first) <= (u32)(last - first)", "row <= last", 0, "left" },
    { "rows after the last are read", T, "(u32)(row - first) <= (u32)(last - first)", "row >= first", 0, "plain" },
    { "source does not advance", T, "    from += S::STEP * stride;\n", "", 0, "plain" },
    { "bytes after a short row are read", T, "&& byte < ROW_BYTES);", ");", 0, "narrow" },
    { "rows of elements before the first are read", T, "(u32)(row - first) <= (u32)(last - first)", "row <= last", 1, "two_left" },
    { "no zeros after a row of single elements", T, "inside && byte < ROW_BYTES ? *(const", "inside ? *(const", 0, "two" },
    { "an element after an odd row is read", T, "inside && byte + 2 < ROW_BYTES ? *(const", "inside ? *(const", 0, "two" },
    { "elements of a batch from one row", T, "*(const u16 *)(from + i * (S::STEP * stride))", "*(const u16 *)from", 0, "two" },
    { "a batch of elements begins in the one before", T, "at += N * (S::STEP * stride)", "at += S::STEP * stride", 0, "two" },
    { "copies of a batch from one row", T, "from + i * (S::STEP * stride),\n", "from,\n", 0, "narrow" },
    { "a batch goes past its tile", T, "PASSES % N == 0 && ROWS % S::STEP == 0 ? 0 : ROWS", "0", 0, "two two_left" },

    { "rows past the last are stored", E, "const bool real = row < row_count(p, sequence);", "const bool real = true;", 0, "wide" },
    { "staged rows past the last are stored", E, "if (row >= row_count(p, sequence)) continue;", "", 0, "plain" },
    { "LSE with the key count as pitch", Q, "lse(long long head, long long query) const { return (batch * p.hq + head) * p.sq",
      "lse(long long head, long long query) const { return (batch * p.hq + head) * p.sk", 0, "plain" },
    { "LSE by KV heads", Q, "lse(long long head, long long query) const { return (batch * p.hq + head) * p.sq",
      "lse(long long head, long long query) const { return (batch * p.hkv + head) * p.sq", 0, "group" },
    { "half of O not divided", E, "o[m][v][2 * h + 1] * inverse)", "o[m][v][2 * h + 1])", 0, "plain" },
    { "columns past dv are stored", E, "if (real && col < DV) *(float2", "if (real) *(float2", 0, "narrow" },
    { "an odd last column is stored twice", E, "if (real && col + 1 < DV) to[col + 1] = (u16)", "if (real) to[col + 1] = (u16)", 0, "two" },
    { "O with the strides of Q", E, "at.query * p.o_ss + at.head * p.o_sh + chunk", "at.query * p.q_ss + at.head * p.q_sh + chunk", 0,
      "plain" },
    { "O is staged over tiles in use", E, "  __syncthreads();\n", "", 0, "stages" },

    { "K is not waited for", F, "      cp_async_wait<$(wait_k)>();\n      __syncthreads();\n//| if c.order == 2",
      "      __syncthreads();\n//| if c.order == 2", 0, "plain stages" },
    { "no barrier at the head of a block", F, "      cp_async_wait<$(wait_k)>();\n      __syncthreads();\n//| if c.order == 2",
      "      cp_async_wait<$(wait_k)>();\n//| if c.order == 2", 0, "stages plain" },
    { "V is not waited for", F, "      cp_async_wait<$(wait_v)>();\n", "", 0, "plain" },
    { "V is not waited for, after the softmax", F, "      cp_async_wait<$(wait_v)>();\n", "", 1, "order1" },
    { "no barrier before V", F, "      __syncthreads();  // V has arrived, K is free\n", "", 0, "plain" },
    { "no barrier before V, after the softmax", F, "      __syncthreads();  // V has arrived, K is free\n", "", 1, "order1" },
    { "Q fragments before their barrier", F, "    cp_async_wait<$(wait_k)>();\n    __syncthreads();\n    load_q(",
      "    cp_async_wait<$(wait_k)>();\n    load_q(", 0, "odd_regs" },
    { "K into the first buffer", F, "\"block - STAGES_K\")), stage_k$(after(SK))", "\"block - STAGES_K\")), 0$(after(SK))", 0, "deep0" },
    { "K buffer does not advance", F, "      stage_k = stage_k == STAGES_K - 1 ? 0 : stage_k + 1;\n", "", 0, "deep0 stages" },
    { "V buffer does not advance", F, "      stage_v = stage_v == STAGES_V - 1 ? 0 : stage_v + 1;\n", "", 0, "deep0 stages" },
    { "half of O not rescaled", A, "          o[m][v][2 * h + 1] *= keep;\n", "", 0, "plain" },
    { "only the last row asks for rescaling", A, "moved = moved || $(rises)", "moved = $(rises)", 0, "steep" },
    { "a late maximum is forgotten", A, "> LAG\" or", "> 1000.f * LAG\" or", 0, "steep" },
    { "columns of TF32 scores in order", D, "return (x >> 1) + (x & 1) * 4;", "return x;", 0, "tf32" },
    { "Q rows past the last are read", F, "0,\n        row_count(p, sequence) - 1 - where.row);", "0,\n        BR - 1);", 0, "plain" },
    { "elements: no block is masked", F, "$(pr.is_cut(\"range\"))", "false", 0, "two" },
    { "odd chunk of K from its neighbour", D, "lane % 16 * CHUNKS * 16 + (CHUNKS - 1) * 16", "lane % 16 * CHUNKS * 16 + (CHUNKS - 2) * 16",
      0, "odd" },
    { "odd chunk of V from its neighbour", D, "lane % 16 * CHUNKS_V * 16 + (CHUNKS_V - 1) * 16",
      "lane % 16 * CHUNKS_V * 16 + (CHUNKS_V - 2) * 16", 0, "odd" },
    { "half of the sum", A, "state[m][h].l += s[m][n][2 * h] + s[m][n][2 * h + 1];", "state[m][h].l += s[m][n][2 * h];", 0, "plain" },
    { "V with the stride of K", F, "v_stride = p.v_ss *", "v_stride = p.k_ss *", 0, "odd" },
    { "K of the query head", F, "where.kv_head * p.k_sh", "where.head * p.k_sh", 1, "group" },
    { "32-bit stride of K", F, "const long long k_stride = p.k_ss * (long long)sizeof(element), v_stride",
      "const int k_stride = (int)p.k_ss * (int)sizeof(element);\n  const long long v_stride", 0, "far" },

    { "FMA: K and V are not waited for", X, "      cp_async_wait<0>();\n      __syncthreads();  // K has arrived",
      "      __syncthreads();  // K has arrived", 0, "fp32" },
    { "FMA: V is not waited for", X, "      cp_async_wait<0>();\n      __syncthreads();  // V has arrived",
      "      __syncthreads();  // V has arrived", 0, "fp32" },
    { "FMA: no barrier before V", X, "      __syncthreads();  // V has arrived, K is free\n", "", 0, "fp32" },
    { "FMA: a quarter of O not rescaled", X, "          o[i][j].w *= keep;\n", "", 0, "fp32" },
    { "FMA: a column past dv is stored", X, "if (col + 3 < DV) to[col + 3] = y.w;", "to[col + 3] = y.w;", 0, "fp32_odd" },
    { "FMA: a half of the last columns not rescaled", X, "        o_half[i].y *= keep;\n", "", 0, "fp32_half" },
    { "FMA: the last columns of the first key for all", X, "(v_half_at ^ n * 16) + n *", "v_half_at + 0 *", 0, "fp32_half96" },
    { "FMA: the last columns of a row without swizzle", X, "16 * VJ + x / 2, CHUNKS_V - 1)) + x % 2 * 8", "16 * VJ + x / 2, CHUNKS_V - 1))",
      0, "fp32_half" },
    { "FMA: a last column past dv is stored", X, "    if (col < DV) to[col] = y.x;\n    if (col + 1", "    to[col] = y.x;\n    if (col + 1",
      0, "fp32_half" },
    { "FMA: LSE of the wrong head", X, "sequence.lse(at.head, ", "sequence.lse(where.kv_head, ", 0, "fp32" },
    { NULL, NULL, NULL, NULL, 0, NULL },
};

const mutation_list mutation_lists[] = {
    { scenes, mutations, 0, 0, false },
    { hopper_scenes, hopper_mutations, 2, 0, false },
    { NULL, NULL, 0, 0, false },
};
