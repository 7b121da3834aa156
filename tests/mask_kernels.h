/* mask_kernels: kernels of programs with a mask, in every forward family. */
#ifndef FA_TESTS_MASK_KERNELS_H
#define FA_TESTS_MASK_KERNELS_H
#include "score_launch.h"

#define M_CAUSAL "function mask(b, h, i, j) return j <= i + off end\n"
#define M_WINDOW "w = scalar(20, 'int')\nfunction mask(b, h, i, j) return j <= i + off and i + off - j <= w end\n"
#define M_CHUNKED "c = scalar(40, 'int', 1, 1048576)\nfunction mask(b, h, i, j) return j <= i + off and (i + off) // c == j // c end\n"
/* Of more rows than a tile has. */
#define M_CHUNKS "function mask(b, h, i, j) return j <= i + off and (i + off) // 250 == j // 250 end\n"
#define M_PREFIX "n = i32 'b'\nfunction mask(b, h, i, j) return j <= i + off or j < 3 * max(min(n[b], 999), -9) end\n"
#define M_PADDING "lo = i32 'b'; hi = i32 'b'\nfunction mask(b, h, i, j) return lo[b] <= j and j < 4 * max(min(hi[b], 999), -9) end\n"
#define M_DOCUMENTS "doc = i32 'b sk'\nfunction mask(b, h, i, j) return j <= i + off and doc[b][i + off] == doc[b][j] end\n"
#define M_TREE "anc = bits 'b sq sq'\nfunction mask(b, h, i, j) return j < off or anc[b][i][j - off] end\n"
#define M_BLOCKS "blk = u8 'b hq sq/16 sk/16'\nfunction mask(b, h, i, j) return blk[b][h][i // 16][j // 16] ~= 0 end\n"
#define M_DENSE "m = bits 'b hq sq sk'\nfunction mask(b, h, i, j) return m[b][h][i][j] end\n"
#define M_WIDE "g = i64 'sk'\nfunction mask(b, h, i, j) return abs(i - j) <= 9 or g[i] > 20 or g[j] > 20 end\n"
/* Empty blocks between others, without a table. */
#define M_BANDS \
    "r = scalar(90, 'int', 1, 1000)\nfunction mask(b, h, i, j) return (j + 40 * (b % 4)) // r % 3 == 1 and (i - j) % 2 == 0 end\n"
#define M_HEADS "function mask(b, h, i, j) return j // 16 % 4 == h % 4 end\n"
/* Blocks that one warpgroup sees as a whole, and the other does not. */
#define M_STEPS "function mask(b, h, i, j) return i // 64 % 2 == 0 or (i + j) % 3 == 0 end\n"
/* An array whose ends indices pass at both sides. */
#define M_CLAMPED "t = i32 '?'\nfunction mask(b, h, i, j) return t[j - 5] > 9 or t[i + 3] > 18 end\n"
/* A score that is NaN, and one that is +inf, where the mask hides it. */
#define M_NAN                                                                                                 \
    "function score(s, b, h, i, j) return s + log(j % 3 == 0 and 1 or -1) + (j % 5 == 0 and 0 or huge) end\n" \
    "function mask(b, h, i, j) return j % 15 == 0 and i % 7 ~= 2 end\n"
#define M_ALL                                                                                               \
    "cap = scalar(3); slope = f32 'hq'; z = f32 'hq sq'; doc = i32 'b sk'; n = i32 'b'\n"                   \
    "function score(s, b, h, i, j) return cap * tanh_exact(s / cap) + 0.1 * slope[h] * (j - i - off) end\n" \
    "function mask(b, h, i, j) return doc[b][i] == doc[b][j] or j < n[b] + h end\n"                         \
    "function sink(b, h, i) return z[h][i] end\n"
#define M_BIAS                                                                                                   \
    "bias = f16 'b hq sq sk'; m = u8 'b sq sk'\nfunction score(s, b, h, i, j) return s + bias[b][h][i][j] end\n" \
    "function mask(b, h, i, j) return m[b][i][j] > 1 end\n"
#define M_ALIBI                                                                                              \
    "slope = f32 'hq'; n = i32 'b'\nfunction score(s, b, h, i, j) return s + slope[h] * (j - i - off) end\n" \
    "function mask(b, h, i, j) return (j + i) % 24 > n[b] end\n"

/* An array by pairs beside values by key, and two arrays by pairs. */
#define M_SEEN \
    "m = u8 'b sq sk'; doc = i32 'b sk'\nfunction mask(b, h, i, j) return doc[b][i] == doc[b][j] and (m[b][i][j] ~= 0 or j < 3) end\n"
#define M_TWO "m = u8 'b sq sk'; m2 = bits 'b hq sq sk'\nfunction mask(b, h, i, j) return m[b][i][j] > 1 or not m2[b][h][i][j] end\n"
/* Runs of 64 that are alike; of 128, two lines and two blocks of 64 keys. */
#define M_RUNS "blk = u8 'b hq sq/64 sk/64'\nfunction mask(b, h, i, j) return blk[b][h][i // 64][j // 64] ~= 0 end\n"
#define M_PAIRED "blk = u8 'b hq sq/128 sk/128'\nfunction mask(b, h, i, j) return blk[b][h][i // 128][j // 128] ~= 0 end\n"
/* Blocks of which one warpgroup sees nothing, in front, in the middle and at the end, and others a part. */
#define M_SKIPS \
    "doc = i32 'b sk'\nfunction mask(b, h, i, j) return j <= i + off and (i // 64 + j // 96) % 3 ~= 1 and doc[b][i] ~= doc[b][j] end\n"
/* A warpgroup is done many blocks before its neighbours. */
#define M_APART "doc = i32 'b sk'\nfunction mask(b, h, i, j) return j >= 1700 * (i // 64 % 2) and doc[b][i] ~= doc[b][j] end\n"
/* Runs of 70 keys, of which a query sees its own and every second before: what one run's rows see lies between two ends. */
#define M_FOUND                                                                          \
    "x = i32 'b sk'\nfunction run(x, n) return max(x, 0) // 1000000 + n // 70 % 2 end\n" \
    "function mask(b, h, i, j) return j <= i + off and run(x[b][i], i) == run(x[b][j], j) end\n"
/* Documents so short that tiles begin anywhere, of numbers that rise. */
#define M_MANY                                                                             \
    "x = i32 'b sk'\nfunction run(x, n) return max(x, 0) // 1000000 + (n + 7) // 50 end\n" \
    "function mask(b, h, i, j) return j <= i and run(x[b][i], i) == run(x[b][j], j) end\n"
/* Documents that begin anywhere, of numbers that rise. */
#define M_RISING                                                                                            \
    "x = i32 'b sk'\nfunction run(x, n, b) return max(x, 0) // 1000000 + (n + 40 * min(b, 8)) // 190 end\n" \
    "function mask(b, h, i, j) return j <= i and run(x[b][i], i, b) == run(x[b][j], j, b) end\n"
#define M_ALIKE                                                                                             \
    "x = i32 'b sk'\nfunction run(x, n, b) return max(x, 0) // 1000000 + (n + 40 * min(b, 8)) // 188 end\n" \
    "function mask(b, h, i, j) return run(x[b][i], i, b) == run(x[b][j], j, b) end\n"
/* Values of keys that are no integers. */
#define M_REAL "x = f32 'sk'; g = i64 'sk'\nfunction mask(b, h, i, j) return x[j] * 4 < x[i] or (g[j] > 20 and i % 3 == 0) end\n"

#define MMA(rest) "flash_fwd_mma:stages_k=1,stages_v=2,q_regs=0,ctas=1," rest
#define MMA16 "br=32,bc=32,warps=2,"
#define WGMMA(rest) "flash_fwd_wgmma:ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,sections=1,exp=0," rest
#define DECODE(rest) "key_warps=2,stages=2,ctas=1,kv_lanes=1,sm_shares=1,min_turns=1," rest
#define CAUSAL ",mask=causal"
#define WINDOW ",mask=window"

/* clang-format off */
static const score_kernel mask_kernels[] = {
    { "naive", M_ALL, "fp32,d=24,mask=none", "naive:tile=64", false, 0, 0, 80, 90, 0, 0 },
    { "naive_nan", M_NAN, "bf16,d=24" CAUSAL, "naive:tile=64", false, 0, 0, 80, 90, 0, 0 },
    { "ffma_packed", M_PREFIX, "fp32,d=24" WINDOW, "flash_fwd_ffma:br=32,bc=32,warps=2,pack=1", false, 0, 0, 60, 90, 0, 0 },
    { "ffma", M_TREE, "fp32,d=24,mask=none", "flash_fwd_ffma:br=32,bc=32,warps=2,pack=0", false, 0, 0, 60, 90, 0, 0 },
    { "mma", M_DOCUMENTS, "bf16,d=32,mask=none", MMA(MMA16 "order=v_last,pack=0,lag=8"), false, 0, 0, 90, 90, 0, 0 },
    { "mma_packed", M_ALL, "fp16,d=32,mask=none", MMA(MMA16 "order=v_first,pack=1,lag=0"), false, 0, 0, 60, 90, 0, 0 },
    { "mma_align", M_DENSE, "bf16,d=32,align=2,mask=none", MMA(MMA16 "order=v_first,pack=0,lag=8"), false, 0, 0, 60, 70, 0, 0 },
    { "mma_pages", M_CHUNKED, "bf16,d=32,features=lengths+pages,page=16" CAUSAL, MMA(MMA16 "order=v_last,pack=0,lag=8"), false, 0, 0, 60,
      300, 0, 0 },
    { "mma_nan", M_NAN, "bf16,d=32,features=lengths,mask=none", MMA(MMA16 "order=v_last,pack=1,lag=8"), false, 0, 0, 60, 90, 0, 0 },
    { "wgmma", M_DOCUMENTS, "bf16,d=64,mask=none",
      WGMMA("br=128,schedule=pingpong,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma"),
      true, 0, 0, 260, 200, 0, 0 },
    { "wgmma_blocks", M_BLOCKS, "fp16,d=64" CAUSAL,
      WGMMA("br=64,schedule=plain,bc=48,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=always,convert=late,o_path=direct"), true, 0, 0,
      150, 200, 0, 0 },
    { "wgmma_alibi", M_ALIBI, "bf16,d=64" CAUSAL,
      WGMMA("br=128,schedule=pingpong_exp,bc=64,q_bufs=2,grid=persistent,ahead=1,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma_q"),
       true, 0, 0, 260, 200, 0, 0 },
    { "wgmma_bias", M_BIAS, "bf16,d=64,mask=none",
      WGMMA("br=128,schedule=plain,bc=64,q_bufs=1,grid=static,ahead=0,cluster=1,rescale=moved,convert=late,o_path=direct"), true, 0,
      0, 200, 200, 0, 0 },
    { "wgmma_cluster", M_PADDING, "bf16,d=64" WINDOW,
      WGMMA("br=64,schedule=plain,bc=64,q_bufs=1,grid=static,ahead=0,cluster=2,rescale=lazy_scaled,convert=early,o_path=tma"), true, 0, 0,
      200, 200, 0, 0 },
    { "wgmma_lengths", M_ALL, "bf16,d=64,features=lengths" CAUSAL,
      WGMMA("br=128,schedule=pingpong,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma_q"),
      true, 0, 0, 200, 200, 0, 0 },
    { "wgmma_pages", M_WINDOW, "bf16,d=64,features=lengths+pages,page=64,mask=none",
      WGMMA("br=64,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=direct"),
      true, 0, 0, 100, 600, 0, 0 },
    { "wgmma_ahead", M_CAUSAL, "bf16,d=64,mask=none",
      WGMMA("br=64,schedule=plain,bc=64,q_bufs=2,grid=persistent,ahead=1,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma"), true,
      0, 0, 150, 200, 0, 0 },
    { "wgmma_wide", M_WIDE, "bf16,d=64,mask=none",
      "flash_fwd_wgmma:ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,sections=1,exp=8,"
       "br=64,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=direct",
        true, 0, 0, 150, 200, 0, 0 },
    { "wgmma_seen", M_SEEN, "bf16,d=64" CAUSAL,
      WGMMA("br=128,schedule=pingpong,bc=80,q_bufs=2,grid=persistent,ahead=1,cluster=1,rescale=lazy_scaled,convert=early,"
            "o_path=tma_q"), true,
      0, 0, 260, 300, 0, 0 },
    { "wgmma_seen_anywhere", M_SEEN, "bf16,d=64" CAUSAL,
      WGMMA("br=128,schedule=pingpong,bc=80,q_bufs=2,grid=persistent,ahead=1,cluster=1,rescale=lazy_scaled,convert=early,"
            "o_path=tma_q"), true,
      0, 0, 260, 300, 0, 0 },
    { "wgmma_dense", M_DENSE, "fp16,d=64,mask=none",
      WGMMA("br=128,schedule=plain,bc=112,q_bufs=1,grid=static,ahead=0,cluster=1,rescale=lazy,convert=early,o_path=direct"), true, 0, 0, 260,
      300, 0, 0 },
    { "wgmma_two", M_TWO, "bf16,d=64,mask=none",
      WGMMA("br=64,schedule=plain,bc=48,q_bufs=2,grid=persistent,ahead=1,cluster=1,rescale=moved,convert=late,o_path=tma"), true, 0, 0, 150,
      200, 0, 0 },
    { "wgmma_real", M_REAL, "bf16,d=64" WINDOW,
      WGMMA("br=128,schedule=pingpong_exp,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma"), true,
      0, 0, 260, 300, 0, 0 },
    { "wgmma_runs", M_RUNS, "bf16,d=64" CAUSAL,
      WGMMA("br=192,schedule=pingpong,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,"
            "o_path=tma"),
      true, 0, 0, 300, 400, 0, 0 },
    /* Lines of several words. */
    { "wgmma_words", M_PAIRED, "bf16,d=64,mask=none",
      WGMMA("br=128,schedule=plain,bc=64,q_bufs=1,grid=static,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=direct"), true, 0, 0,
      140, 4000, 0, 0 },
    { "wgmma_skips", M_SKIPS, "bf16,d=64,mask=none",
      WGMMA("br=192,schedule=plain,bc=48,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,"
            "o_path=direct"),
      true, 4, 2, 800, 400, 0, 0 },
    { "dots", M_TREE, "fp32,d=64" CAUSAL, "decode_ffma:" DECODE("br=4,bk=8,row_warps=1,dot_lanes=8,combine=last_block"), true, 0, 0, 3, 500,
      0, 0 },
    { "decode", M_PREFIX, "bf16,d=64,features=lengths+pages,page=16,mask=none",
      "decode_mma:" DECODE("br=16,bk=16,row_warps=1,combine=last_block"), true, 8, 2, 3, 700, 0, 0 },
    { "decode_invariant", M_DENSE, "bf16,d=64,features=lengths+batch-invariant" CAUSAL,
      "decode_mma:" DECODE("br=16,bk=16,row_warps=1,combine=second_kernel"), true, 8, 2, 2, 900, 0, 0 },
    { "decode_bands", M_BANDS, "bf16,d=64,features=lengths+pages,page=16,mask=none",
      "decode_mma:" DECODE("br=16,bk=16,row_warps=1,combine=last_block"), true, 8, 2, 3, 700, 0, 0 },
    { "dots_bands", M_BANDS, "fp16,d=64" CAUSAL, "decode_ffma:" DECODE("br=4,bk=8,row_warps=1,dot_lanes=8,combine=last_block"), true, 0, 0,
      3, 500, 0, 0 },
    { "wgmma_bands", M_BANDS, "bf16,d=64,features=lengths+pages,page=64" CAUSAL,
      WGMMA("br=64,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=direct"),
      true, 0, 0, 100, 600, 0, 0 },
    { "wgmma_steps", M_STEPS, "fp16,d=64,mask=none",
      WGMMA("br=128,schedule=plain,bc=64,q_bufs=1,grid=static,ahead=0,cluster=1,rescale=lazy,convert=early,o_path=tma"), true, 0, 0, 260,
      300, 0, 0 },
    { "wgmma_bands_ahead", M_BANDS, "bf16,d=64,mask=none",
      WGMMA("br=128,schedule=pingpong,bc=64,q_bufs=2,grid=static,ahead=1,cluster=1,rescale=lazy_scaled,convert=early,"
            "o_path=tma_q"), true,
      0, 0, 260, 500, 0, 0 },
    { "mma_bands", M_BANDS, "bf16,d=32,features=lengths+pages,page=16" CAUSAL, MMA(MMA16 "order=v_last,pack=0,lag=8"), false, 0, 0, 60, 600,
      0, 0 },
    { "mma_heads", M_HEADS, "fp16,d=32,mask=none", MMA(MMA16 "order=v_first,pack=1,lag=0"), false, 4, 1, 60, 200, 0, 0 },
    { "mma_clamped", M_CLAMPED, "bf16,d=32" CAUSAL, MMA(MMA16 "order=v_last,pack=0,lag=8"), false, 0, 0, 90, 90, 0, 0 },
    { "mma_far", M_BANDS, "bf16,d=32" CAUSAL, MMA(MMA16 "order=v_last,pack=0,lag=8"), false, 0, 0, 90, 300, 1e7, 0 },
    { "decode_far", M_BANDS, "bf16,d=64,features=lengths" CAUSAL,
      "decode_mma:" DECODE("br=16,bk=16,row_warps=1,combine=last_block"), true, 8, 2, 2, 900, 1e7, 0 },
    { "wgmma_never", "function mask(b, h, i, j) return i < j - sk end\n", "bf16,d=64" CAUSAL,
      WGMMA("br=64,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=moved,convert=late,o_path=tma_q"), true, 0, 0,
      150, 200, 0, 0 },
    { "decode_wgmma", M_ALL, "bf16,d=64" CAUSAL, "decode_wgmma:" DECODE("br=64,bk=32,row_warps=4,combine=second_kernel"), true, 16, 1, 4,
      500, 0, 0 },
    { "mixed_mma", M_CHUNKED, "bf16,d=64,features=lengths" CAUSAL,
      "mixed_mma:stages_k=1,stages_v=2,q_regs=0,ctas=1," MMA16 "order=v_last,pack=1,lag=8", false, 4, 1, 60, 200, 0, 0 },
    { "mixed_wgmma", M_TREE, "bf16,d=64,features=lengths+pages,page=32" CAUSAL,
      "mixed_wgmma:ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,sections=1,exp=0,"
       "br=128,schedule=pingpong,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=direct",
        true, 16, 1, 60, 300, 0, 0 },
    { "split_mma", M_ALL, "bf16,d=64" CAUSAL,
      "split_mma:stages_k=1,stages_v=2,q_regs=0,ctas=1,br=64,bc=32,warps=4,order=v_last,pack=1,lag=8,parts=4,combine=second_kernel",
      false, 4, 1, 20, 500, 0, 0 },
    { "split_wgmma", M_DOCUMENTS, "bf16,d=64,mask=none",
      "split_wgmma:ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,sections=1,exp=0,"
       "br=64,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,"
        "rescale=lazy_scaled,convert=early,o_path=direct,parts=2,combine=last_warp",
        true, 4, 1, 20, 700, 0, 0 },
    { "split_lengths", M_NAN, "bf16,d=64,features=lengths,mask=none",
      "split_wgmma:ctas=1,feeder=40,box=64,stages_k=2,stages_v=2,sections=1,exp=0,"
       "br=64,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,"
        "rescale=lazy,convert=early,o_path=direct,parts=4,combine=last_warp",
        true, 4, 1, 20, 700, 0, 0 },
    { "wgmma_found", M_FOUND, "bf16,d=64,mask=none",
      WGMMA("br=192,schedule=plain,bc=48,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma"), true, 0,
      0, 200, 1000, 0, 0 },
    { "wgmma_tree", M_TREE, "bf16,d=64,mask=none",
      WGMMA("br=192,schedule=plain,bc=80,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma"), true, 0,
      0, 260, 400, 0, 0 },
    /* Rows of which the first blocks hide all, and that keep their maximum from then on. */
    { "wgmma_steady", M_SKIPS, "bf16,d=64,mask=none",
      WGMMA("br=192,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=steady,convert=early,o_path=tma"), true, 0, 0,
      300, 400, 0, 0 },
    { "wgmma_apart", M_APART, "bf16,d=64,mask=none",
      WGMMA("br=192,schedule=plain,bc=48,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=steady,convert=early,o_path=tma"), true, 0, 0,
      150, 2000, 0, 0 },
    /* What is seen lies between two ends; every other tile's rows are turned round. */
    { "wgmma_turned", M_CHUNKS, "bf16,d=96,mask=none",
      WGMMA("br=192,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=steady,convert=early,o_path=tma"), true, 4, 2,
      800, 400, 0, 0 },
    /* Scores of 1e7: rows that are computed again. */
    { "wgmma_far", M_SKIPS, "bf16,d=64,mask=none",
      WGMMA("br=192,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=steady,convert=early,o_path=tma"), true, 0, 0,
      300, 400, 1e7, 0 },
    /* S after P V, in registers that P leaves. */
    { "wgmma_after", M_RUNS, "bf16,d=64,mask=none",
      "flash_fwd_wgmma:br=128,ctas=2,feeder=32,schedule=after,bc=64,box=64,stages_k=2,stages_v=2,q_bufs=1,grid=persistent,ahead=0,sections=1,"
      "cluster=1,rescale=steady,exp=0,convert=early,o_path=tma",
      true, 0, 0, 300, 400, 0, 0 },
    /* Tiles that begin with a document, and whose keys do. */
    { "wgmma_rising", M_RISING, "bf16,d=72,mask=none",
      WGMMA("br=192,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=steady,convert=early,o_path=tma"), true, 0, 0,
      1200, 0, 0, 0 },
    { "wgmma_many", M_MANY, "bf16,d=64,mask=none",
      WGMMA("br=128,schedule=plain,bc=64,q_bufs=1,grid=persistent,ahead=0,cluster=1,rescale=steady,convert=early,o_path=tma"), true, 0, 0,
      400, 0, 0, 0 },
    { "wgmma_alike", M_ALIKE, "fp16,d=64,mask=none",
      WGMMA("br=64,schedule=plain,bc=80,q_bufs=2,grid=persistent,ahead=1,cluster=1,rescale=lazy_scaled,convert=early,o_path=tma"), true, 0,
      0, 500, 0, 0, 0 },
};
/* clang-format on */
#define MASK_KERNELS (sizeof mask_kernels / sizeof *mask_kernels)
#endif
