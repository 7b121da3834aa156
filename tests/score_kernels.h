/* score_kernels: kernels of score programs that several suites run: every forward family, with what its tunables change of a score's way,
 * and programs that differ in what they read. */
#ifndef FA_TESTS_SCORE_KERNELS_H
#define FA_TESTS_SCORE_KERNELS_H
#include "score_launch.h"

#define CAP "cap = scalar(20)\nfunction score(s, b, h, i, j) return cap * tanh(s / cap) end\n"
#define EXACT "cap = scalar(2)\nfunction score(s, b, h, i, j) return cap * tanh_exact(s / cap) end\n"
#define NEGATIVE "cap = scalar(-3)\nfunction score(s, b, h, i, j) return cap * tanh_exact(s / cap) end\n"
#define HIGH "cap = scalar(60)\nfunction score(s, b, h, i, j) return cap * tanh_exact(s / cap) end\n"
#define ALIBI "slope = f32 'hq'\nfunction score(s, b, h, i, j) return s + slope[h] * (j - i - off) end\n"
#define STEEP "slope = f32 'hq'\nfunction score(s, b, h, i, j) return s + 4 * slope[h] * (j - i - off) end\n"
#define RELATIVE "t = bf16 'hq sq+sk-1'\nfunction score(s, b, h, i, j) return s + t[h][j - i + sq - 1] end\n"
#define BIAS "bias = f16 'b hq sq sk'\nfunction score(s, b, h, i, j) return s + bias[b][h][i][j] end\n"
#define BIAS_BF16 "bias = bf16 'hq sq sk'\nfunction score(s, b, h, i, j) return s + bias[h][i][j] end\n"
#define BIAS_F32 "bias = f32 'hq sq sk'\nfunction score(s, b, h, i, j) return s + bias[h][i][j] end\n"
#define T5                                                                 \
    "rel = f32 'hq 32'\n"                                                  \
    "function bucket(d)\n"                                                 \
    "  local n = abs(d)\n"                                                 \
    "  local far = min(15, 8 + floor(log(max(n, 1) / 8) / log(16) * 8))\n" \
    "  return (d > 0 and 16 or 0) + (n < 8 and n or far)\n"                \
    "end\n"                                                                \
    "function score(s, b, h, i, j) return s + rel[h][bucket(j - i)] end\n"
#define T5_BIAS                                                                 \
    "rel = f32 'hq 32'; bias = f32 'hq sq sk'\n"                                \
    "function bucket(d)\n"                                                      \
    "  local far = min(15, 8 + floor(log(max(abs(d), 1) / 8) / log(16) * 8))\n" \
    "  return (d > 0 and 16 or 0) + (abs(d) < 8 and abs(d) or far)\n"           \
    "end\n"                                                                     \
    "function score(s, b, h, i, j) return s + rel[h][bucket(j - i)] + bias[h][i][j] end\n"
#define T5_DECODER                                                                      \
    "rel = f32 'hq 32'\n"                                                               \
    "function bucket(d)\n"                                                              \
    "  local n = max(-d, 0)\n"                                                          \
    "  return n < 16 and n or min(31, 16 + floor(log(max(n, 1) / 16) / log(8) * 16))\n" \
    "end\n"                                                                             \
    "function score(s, b, h, i, j) return s + rel[h][bucket(j - i - off)] end\n"
#define ENDS /* numbers of key - query at fp32's ends, and beyond */               \
    "function score(s, b, h, i, j)\n"                                              \
    "  local x = floor(log(1.0 + abs(j - i)) * 5)\n"                               \
    "  return s + (x % 4 == 0 and -3.4e38 or x % 4 == 1 and -huge or 0.125 * x)\n" \
    "end\n"
#define HEADS "t = f32 'hq'\nfunction score(s, b, h, i, j) return s * t[h] end\n"
#define ROWS "t = f32 'sq'\nfunction score(s, b, h, i, j) return s * (1 + 0.25 * t[i]) - i end\n"
#define KEYS "w = f32 'b sk'\nfunction score(s, b, h, i, j) return s + w[b][j] end\n"
#define KEYS_RELATIVE                         \
    "t = f16 'hq sq+sk-1'; w = bf16 'b sk'\n" \
    "function score(s, b, h, i, j) return s * w[b][j] + t[h][j - i + sq - 1] end\n"
#define KERPLE "r = f32 'hq'\nfunction score(s, b, h, i, j) return s - r[h] ^ 2 * log(1 + abs(j - i)) end\n"
#define BOOST "function score(s, b, h, i, j)\n  if abs(i - j) <= 3 then return 2 * s end\n  return s\nend\n"
#define NEVER "function score(s, b, h, i, j) return (i + j) % 3 == 0 and -huge or s end\n"
#define CHAINS /* each step reads the one before three times: walks by every way to it are 3^22 */ \
    "function score(s, b, h, i, j)\n"                                                              \
    "  local x, d = s, i\n"                                                                        \
    "  for k = 1, 22 do\n"                                                                         \
    "    x = x > (k - 11) / 8 and 0.875 * x + (k - 11) / 64 or x\n"                                \
    "    d = d > k and d - 1 or d + 2\n"                                                           \
    "  end\n"                                                                                      \
    "  return x + d / 64\n"                                                                        \
    "end\n"
#define RISING /* from block to block by 2^46 */       \
    "function score(s, b, h, i, j)\n"                  \
    "  local d = max(i + off - j, 0)\n"                \
    "  return s + sqrt(0.25 * d * d + log(1.0 + d))\n" \
    "end\n"
#define BEYOND /* by more than fp32 has */                                 \
    "function score(s, b, h, i, j)\n"                                      \
    "  local d = max(i - j, 0)\n"                                          \
    "  return s + (10 + 50 * tanh_exact(4 * (d - 20.5)) + log(1.0 + d))\n" \
    "end\n"
#define SINK "z = f32 'hq'\nfunction sink(b, h, i) return 100 * z[h] end\n" /* beyond any sum of keys, and far below */
#define SINK_ROWS "z = f32 'b sq'\nfunction sink(b, h, i) return 2 * z[b][i] + 0.5 * (sk - sq) / (1 + sk) - h end\n"
#define CAP_SINK                                                                                     \
    "cap = scalar(20); z = f32 'hq'\nfunction score(s, b, h, i, j) return cap * tanh(s / cap) end\n" \
    "function sink(b, h, i) return z[h] end\n"
#define ALL                                                                                                                 \
    "cap = scalar(3); slope = f32 'hq'; bias = bf16 'hq sq sk'; z = f32 'hq sq'\n"                                          \
    "function score(s, b, h, i, j) return cap * tanh_exact(s / cap) + 0.1 * slope[h] * (j - i - off) + bias[h][i][j] end\n" \
    "function sink(b, h, i) return z[h][i] end\n"

#define MMA(rest) "flash_fwd_mma:stages_k=1,stages_v=2,q_regs=0,ctas=1," rest
#define MMA16 "br=32,bc=32,warps=2,"
#define EIGHT(rest) \
    "fp8_wgmma:br=128,ctas=1,feeder=56,bc=64,sums=1,box=64,stages_k=2,stages_t=2,q_bufs=1,grid=2,sections=1,cluster=1,rescale=0," rest
#define WGMMA(rest) "flash_fwd_wgmma:ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,sections=1,exp=0," rest
#define DECODE(rest) "key_warps=2,stages=2,ctas=1,kv_lanes=1,sm_shares=1,min_turns=1," rest
#define CAUSAL ",mask=causal"
#define WINDOW ",mask=window"

/* clang-format off */
static const score_kernel score_kernels[] = {
    { "naive", ALL, "fp32,d=24" CAUSAL, "naive:tile=64", false, 0, 0, 80, 90, 0, 0 },
    { "naive_cap", CAP_SINK, "bf16,d=24" WINDOW, "naive:tile=64", false, 0, 0, 80, 90, 0, 4e-3 },
    { "ffma_packed", ALL, "fp32,d=24" WINDOW, "flash_fwd_ffma:br=32,bc=32,warps=2,pack=1", false, 0, 0, 60, 90, 0, 0 },
    { "ffma", KERPLE, "fp32,d=24" CAUSAL, "flash_fwd_ffma:br=32,bc=32,warps=2,pack=0", false, 0, 0, 60, 90, 0, 0 },
    { "mma_cap", CAP, "bf16,d=32" CAUSAL, MMA(MMA16 "order=v_last,pack=0,lag=8"), false, 0, 0, 90, 90, 4, 2e-2 },
    { "mma_packed", ALL, "fp16,d=32" WINDOW, MMA(MMA16 "order=v_first,pack=1,lag=0"), false, 0, 0, 60, 90, 0, 0 },
    { "wgmma_t5", T5, "bf16,d=64,features=lengths" CAUSAL,
      WGMMA("br=128,schedule=pingpong,bc=80,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=direct"),
      true, 0, 0, 200, 250, 0, 0 },
    { "mma_tf32", ALL, "tf32,d=32" CAUSAL, MMA(MMA16 "order=v_first,pack=0,lag=8"), false, 0, 0, 60, 70, 0, 0 },
    { "mma_bias", BIAS, "bf16,d=32,align=2" CAUSAL, MMA(MMA16 "order=v_first,pack=0,lag=8"), false, 0, 0, 60, 70, 0, 0 },
    { "mma_pages", SINK_ROWS, "bf16,d=32,features=lengths+pages,page=16" CAUSAL, MMA(MMA16 "order=v_last,pack=0,lag=8"), false, 0, 0, 60,
      300, 0, 0 },
    { "mma_lengths", ALL, "bf16,d=32,features=lengths" CAUSAL, MMA(MMA16 "order=v_last,pack=1,lag=8"), false, 0, 0, 60, 90, 0, 0 },
    { "mma_never", NEVER, "bf16,d=32" CAUSAL, MMA(MMA16 "order=v_last,pack=0,lag=8"), false, 0, 0, 90, 90, 1e7, 0 },
    { "wgmma_cap_sink", CAP_SINK, "bf16,d=64" CAUSAL,
      WGMMA("br=64,schedule=plain,bc=48,q_bufs=1,grid=per_tile,ahead=0,cluster=1,rescale=always,convert=late,o_path=direct"), true, 0, 0,
      150, 200, 4, 2e-2 },
    { "wgmma_cap", CAP, "fp16,d=64" WINDOW,
      WGMMA("br=128,schedule=pingpong,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma"),
      true, 0, 0, 260, 200, 4, 2e-2 },
    { "wgmma_alibi", ALIBI, "bf16,d=64" CAUSAL,
      WGMMA("br=128,schedule=pingpong_exp,bc=64,q_bufs=2,grid=persistent,ahead=1,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma_q"),
       true, 0, 0, 260, 200, 0, 0 },
    { "wgmma_alibi_lazy", ALIBI, "bf16,d=64,mask=none",
      WGMMA("br=64,schedule=plain,bc=64,q_bufs=2,grid=static,ahead=1,cluster=1,rescale=lazy,convert=early,o_path=direct"), true, 0, 0,
      150, 200, 0, 0 },
    { "wgmma_bias", BIAS, "bf16,d=64,features=lengths" CAUSAL,
      WGMMA("br=128,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=moved,convert=late,o_path=direct"), true, 0,
      0, 200, 200, 0, 0 },
    { "wgmma_bias_relative", BIAS_F32, "fp16,d=64,features=lengths" WINDOW,
      WGMMA("br=64,schedule=plain,bc=48,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=direct"),
      true, 0, 0, 150, 200, 0, 0 },
    { "wgmma_relative", RELATIVE, "bf16,d=64,features=lengths" CAUSAL,
      WGMMA("br=64,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma"), true, 0, 0,
      200, 200, 0, 0 },
    { "wgmma_staged_line", RELATIVE, "fp16,d=64" WINDOW,
      WGMMA("br=128,schedule=pingpong,bc=80,q_bufs=2,grid=persistent,ahead=1,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma_q"),
      true, 0, 0, 250, 250, 0, 0 },
    { "wgmma_staged_tile", ALL, "bf16,d=64" CAUSAL,
      WGMMA("br=128,schedule=pingpong,bc=80,q_bufs=2,grid=static,ahead=1,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma"),
      true, 0, 0, 250, 250, 0, 0 },
    { "wgmma_staged_keys", KEYS_RELATIVE, "bf16,d=64" CAUSAL,
      WGMMA("br=128,schedule=plain,bc=64,q_bufs=1,grid=per_tile,ahead=0,cluster=1,rescale=lazy,convert=late,o_path=direct"),
      true, 0, 0, 200, 250, 0, 0 },
    { "wgmma_staged_wide", T5_BIAS, "fp16,d=64,mask=none",
      WGMMA("br=64,schedule=plain,bc=48,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=direct"),
      true, 0, 0, 150, 200, 0, 0 },
    { "wgmma_held_columns", BIAS, "bf16,d=128" CAUSAL,
      WGMMA("br=128,schedule=pingpong,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=direct"),
      true, 0, 0, 150, 200, 0, 0 },
    { "wgmma_staged_far", T5_DECODER, "fp16,d=64" CAUSAL,
      WGMMA("br=128,schedule=pingpong,bc=64,q_bufs=2,grid=persistent,ahead=1,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma_q"),
      true, 0, 0, 150, 330, 0, 0 },
    { "wgmma_begins_vast", RELATIVE, "bf16,d=64" CAUSAL,
      WGMMA("br=64,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=direct"),
      true, 0, 0, 60, 100, 0x1p-130f, 0 },
    { "wgmma_begins_ends", ENDS, "bf16,d=64" CAUSAL,
      WGMMA("br=64,schedule=plain,bc=64,q_bufs=1,grid=static,ahead=0,cluster=1,rescale=steady,convert=early,o_path=direct"),
      true, 0, 0, 80, 120, 0, 0 },
    { "wgmma_staged_far_sides", T5, "fp16,d=64,mask=none",
      WGMMA("br=64,schedule=plain,bc=48,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy,convert=early,o_path=direct"),
      true, 0, 0, 150, 260, 0, 0 },
    { "wgmma_exact", EXACT, "bf16,d=64,mask=none",
      "flash_fwd_wgmma:ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,sections=1,exp=8,"
       "br=64,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=direct",
        true, 0, 0, 150, 200, 0, 0 },
    { "wgmma_high", HIGH, "bf16,d=64" CAUSAL,
      WGMMA("br=128,schedule=pingpong,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma"),
      true, 0, 0, 150, 150, 60, 2e-3 },
    { "wgmma_negative", NEGATIVE, "bf16,d=64" CAUSAL,
      WGMMA("br=64,schedule=plain,bc=64,q_bufs=1,grid=static,ahead=0,cluster=2,rescale=lazy_scaled,convert=early,o_path=direct"),
      true, 0, 0, 150, 200, 2, 0 },
    { "wgmma_lengths", ALL, "bf16,d=64,features=lengths" CAUSAL,
      WGMMA("br=128,schedule=pingpong,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma_q"),
      true, 0, 0, 200, 200, 0, 0 },
    { "wgmma_pages", SINK_ROWS, "bf16,d=64,features=lengths+pages,page=64" CAUSAL,
      WGMMA("br=64,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=direct"),
      true, 0, 0, 100, 600, 0, 0 },
    { "wgmma_rows", ROWS, "bf16,d=64" CAUSAL,
      WGMMA("br=64,schedule=plain,bc=64,q_bufs=2,grid=persistent,ahead=1,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma"), true,
      0, 0, 150, 200, 1e7, 0 },
    { "wgmma_rows_near", ROWS, "bf16,d=64" CAUSAL,
      WGMMA("br=64,schedule=plain,bc=64,q_bufs=2,grid=persistent,ahead=1,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma"), true,
      0, 0, 150, 200, 0, 0 },
    { "wgmma_never", NEVER, "bf16,d=64" CAUSAL,
      WGMMA("br=64,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=direct"),
      true, 0, 0, 150, 200, 0, 0 },
    { "dots", ALL, "fp32,d=64" CAUSAL, "decode_ffma:" DECODE("br=4,bk=8,row_warps=1,dot_lanes=8,combine=last_block"), true, 0, 0, 3, 500,
      0, 0 },
    { "dots_alibi", ALIBI, "bf16,d=64,mask=none", "decode_ffma:" DECODE("br=2,bk=16,row_warps=1,dot_lanes=8,combine=last_block"), true, 0,
      0, 2, 500, 0, 0 },
    { "decode", ALL, "bf16,d=64,features=lengths+pages,page=16" CAUSAL,
      "decode_mma:" DECODE("br=16,bk=16,row_warps=1,combine=last_block"), true, 8, 2, 3, 700, 0, 0 },
    { "decode_cap", CAP_SINK, "bf16,d=64" CAUSAL, "decode_mma:" DECODE("br=32,bk=16,row_warps=2,combine=second_kernel"), true, 8, 1, 4,
      700, 4, 2e-2 },
    { "decode_invariant", SINK_ROWS, "bf16,d=64,features=lengths+batch-invariant" CAUSAL,
      "decode_mma:" DECODE("br=16,bk=16,row_warps=1,combine=last_block"), true, 8, 2, 2, 900, 0, 0 },
    { "decode_heads", HEADS, "bf16,d=64,features=lengths+batch-invariant" CAUSAL,
      "decode_mma:" DECODE("br=16,bk=16,row_warps=1,combine=second_kernel"), true, 8, 2, 2, 900, 1e7, 0 },
    { "decode_wgmma", ALL, "bf16,d=64" CAUSAL, "decode_wgmma:" DECODE("br=64,bk=32,row_warps=4,combine=second_kernel"), true, 16, 1, 4,
      500, 0, 0 },
    { "decode_keys", KEYS, "bf16,d=64,mask=none", "decode_wgmma:" DECODE("br=64,bk=32,row_warps=4,combine=last_block"), true, 16, 1, 4,
      500, 0, 0 },
    { "mixed_mma", ALL, "bf16,d=64,features=lengths" CAUSAL,
      "mixed_mma:stages_k=1,stages_v=2,q_regs=0,ctas=1," MMA16 "order=v_last,pack=1,lag=8", false, 4, 1, 60, 200, 0, 0 },
    { "mixed_wgmma", CAP_SINK, "bf16,d=64,features=lengths+pages,page=32" CAUSAL,
      "mixed_wgmma:ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,sections=1,exp=0,"
       "br=128,schedule=pingpong,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=direct",
        true, 16, 1, 60, 300, 4, 2e-2 },
    { "split_mma", ALL, "bf16,d=64" CAUSAL,
      "split_mma:stages_k=1,stages_v=2,q_regs=0,ctas=1,br=64,bc=32,warps=4,order=v_last,pack=1,lag=8,parts=4,combine=second_kernel",
      false, 4, 1, 20, 500, 0, 0 },
    { "split_mma_cap", CAP_SINK, "bf16,d=64" WINDOW,
      "split_mma:stages_k=1,stages_v=2,q_regs=0,ctas=1,br=64,bc=32,warps=4,order=v_last,pack=1,lag=8,parts=2,combine=last_warp", false, 4,
      1, 20, 500, 4, 2e-2 },
    { "split_wgmma", ALL, "bf16,d=64" CAUSAL,
      "split_wgmma:ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,sections=1,exp=0,"
       "br=64,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,"
        "rescale=lazy_scaled,convert=early,o_path=direct,parts=4,combine=second_kernel",
        true, 4, 1, 20, 700, 0, 0 },
    { "split_sink", SINK, "bf16,d=64,features=lengths" CAUSAL,
      "split_wgmma:ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,sections=1,exp=0,"
       "br=64,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,"
        "rescale=lazy,convert=early,o_path=direct,parts=4,combine=last_warp",
        true, 4, 1, 20, 700, 0, 0 },
    { "split_boost", BOOST, "bf16,d=64" CAUSAL,
      "split_wgmma:ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,sections=1,exp=0,"
       "br=64,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,"
        "rescale=lazy_scaled,convert=early,o_path=direct,parts=2,combine=last_warp",
        true, 4, 1, 20, 700, 0, 0 },
    { "ffma_chains", CHAINS, "fp32,d=24" CAUSAL, "flash_fwd_ffma:br=32,bc=32,warps=2,pack=0", false, 0, 0, 60, 90, 0, 0 },
    { "wgmma_alibi_steep", STEEP, "fp16,d=64,mask=none",
      WGMMA("br=128,schedule=pingpong,bc=48,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=direct"),
      true, 0, 0, 150, 300, 40, 1e-3 },
    { "wgmma_sums_rise", RISING, "bf16,d=64" CAUSAL,
      WGMMA("br=128,schedule=pingpong,bc=64,q_bufs=2,grid=persistent,ahead=1,cluster=1,rescale=steady,convert=early,o_path=tma_q"),
      true, 0, 0, 150, 330, 0, 0 },
    { "wgmma_joined", RELATIVE, "bf16,d=64" WINDOW,
      WGMMA("br=128,schedule=pingpong,bc=48,q_bufs=2,grid=persistent,ahead=1,cluster=1,rescale=steady,convert=early,o_path=tma_q"),
      true, 0, 0, 90, 700, 0, 0 },
    { "wgmma_sums_beyond", BEYOND, "bf16,d=64,mask=none",
      WGMMA("br=64,schedule=plain,bc=48,q_bufs=1,grid=static,ahead=0,cluster=1,rescale=steady,convert=early,o_path=direct"),
      true, 0, 0, 80, 200, 0, 0 },
    { "wide_wgmma", CAP_SINK, "bf16,d=264,dv=128" CAUSAL,
      "wide_wgmma:br=64,ctas=1,feeder=40,schedule=plain,bc=32,box=64,stages_k=2,stages_v=2,q_bufs=1,q_held=0,grid=persistent,ahead=0,"
       "sections=1,cluster=1,rescale=lazy,exp=0,convert=late,o_path=direct,parts=4,combine=second_kernel",
        true, 4, 1, 20, 400, 4, 2e-2 },
    { "eight_alibi", ALIBI, "e4m3,d=64" CAUSAL, EIGHT("schedule=1,overlap=0,stages_v=1"), true, 0, 0, 200, 250, 0, 0 },
    { "eight_cap_sink", CAP_SINK, "e4m3,d=64,features=lengths" CAUSAL, EIGHT("schedule=0,overlap=1,stages_v=1"), true, 0, 0, 150, 250, 0,
      0 },
    { "wgmma_joined_rise", RISING, "bf16,d=64" CAUSAL,
      WGMMA("br=128,schedule=pingpong,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=steady,convert=early,o_path=direct"),
      true, 0, 0, 150, 330, 0, 0 },
    { "wgmma_cap_small", CAP, "bf16,d=64" WINDOW, /* most blocks have products for which tanh is a polynomial, some have not */
      WGMMA("br=128,schedule=pingpong,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma_q"),
      true, 0, 0, 150, 300, 2, 2e-4 },
    { "wgmma_cap_sink_small", CAP_SINK, "fp16,d=64" CAUSAL, /* the same where maxima are looked for */
      WGMMA("br=128,schedule=pingpong,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma"),
      true, 0, 0, 150, 300, 2, 2e-4 },
    { "wgmma_cap_sink_most", CAP_SINK, "bf16,d=64" CAUSAL, /* and where no score is far above a row's m */
      WGMMA("br=128,schedule=pingpong,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma"),
      true, 0, 0, 150, 300, 2, 2e-4 },
    { "wgmma_far_steady", T5_DECODER, "bf16,d=64" CAUSAL,
      WGMMA("br=64,schedule=plain,bc=64,q_bufs=2,grid=persistent,ahead=1,cluster=1,rescale=steady,convert=early,o_path=direct"),
      true, 0, 0, 120, 600, 0, 0 },
    { "wgmma_far_cut", T5_DECODER, "bf16,d=64" WINDOW,
      WGMMA("br=64,schedule=plain,bc=64,q_bufs=2,grid=persistent,ahead=1,cluster=1,rescale=steady,convert=early,o_path=direct"),
      true, 0, 0, 120, 600, 0, 0 },
    { "wgmma_slopes_steady", STEEP, "bf16,d=128" CAUSAL, /* some blocks fade */
      WGMMA("br=192,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=steady,convert=early,o_path=tma"),
      true, 0, 0, 150, 400, 0, 0 },
    { "naive_slopes", ALIBI, "fp16,d=24" CAUSAL, "naive:tile=64", false, 0, 0, 80, 90, 0, 0 }, /* a slope is one number of the exponent */
    { "wgmma_staged_keys_wide", KEYS, "bf16,d=64,mask=none", /* more than 32 lanes copy at a time */
      WGMMA("br=64,schedule=plain,bc=160,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=direct"),
      true, 0, 0, 100, 400, 0, 0 },
    { "wgmma_one_text", BIAS, "bf16,d=128" CAUSAL, /* rows move, and many are far below what is estimated of them */
      WGMMA("br=128,schedule=pingpong,bc=48,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=steady,convert=early,o_path=direct"),
      true, 0, 0, 150, 300, 40, 1e-3 },
    { "wgmma_one_text_tma", BIAS, "bf16,d=128" CAUSAL,
      WGMMA("br=128,schedule=pingpong,bc=48,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=steady,convert=early,o_path=tma"),
      true, 0, 0, 150, 300, 40, 1e-3 },
    { "wgmma_one_text_anywhere", BIAS, "bf16,d=128" CAUSAL,
      WGMMA("br=128,schedule=pingpong,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=steady,convert=early,o_path=direct"),
      true, 0, 0, 150, 300, 40, 1e-3 },
    { "wgmma_halves_anywhere", BIAS, "bf16,d=64" CAUSAL, /* two boxes to a row */
      WGMMA("br=128,schedule=pingpong,bc=128,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=steady,convert=early,o_path=direct"),
      true, 0, 0, 200, 300, 0, 0 },
    { "wgmma_halves", BIAS, "bf16,d=64" CAUSAL,
      WGMMA("br=128,schedule=pingpong,bc=128,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=steady,convert=early,o_path=direct"),
      true, 0, 0, 200, 300, 0, 0 },
    { "wgmma_staged_words_anywhere", BIAS_F32, "bf16,d=64,mask=none", /* elements of 32 bits, at any word */
      WGMMA("br=128,schedule=pingpong,bc=80,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=steady,convert=early,o_path=direct"),
      true, 0, 0, 250, 200, 0, 0 },
    { "wgmma_cluster_anywhere", BIAS, "bf16,d=64" CAUSAL,
      WGMMA("br=128,schedule=pingpong,bc=128,q_bufs=1,grid=static,ahead=0,cluster=2,rescale=lazy_scaled,convert=early,o_path=direct"),
      true, 0, 0, 400, 300, 0, 0 },
    /* Blocks as wide as a warpgroup has rows: the block before its diagonal ends beside the first row, and its first key is far away. */
    { "wgmma_alibi_near", STEEP, "fp16,d=64" CAUSAL,
      WGMMA("br=128,schedule=pingpong,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=direct"),
      true, 0, 0, 150, 300, 0, 1e-3 },
    { "wgmma_halves_bf16", BIAS_BF16, "bf16,d=64" CAUSAL, /* elements that become fp32 by shifts */
      WGMMA("br=128,schedule=pingpong,bc=128,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=steady,convert=early,o_path=tma"),
      true, 0, 0, 150, 400, 0, 0 },
};
/* clang-format on */
#define SCORE_KERNELS (sizeof score_kernels / sizeof *score_kernels)
#endif
