// ---- two warpgroups with 64 keys each, which add up dQ of a block of queries together ----
// dQ of a block is a product over the keys of both, so it waits for dS of both: it is issued with dK of the next block, when dS has long
// been there. Each warpgroup computes half of the columns, and adds them in global memory in fp32.
constexpr int COLUMNS = $(l.columns);  // of dQ that a warpgroup computes; those of the second past D are dropped
constexpr int NQ = COLUMNS / 2;    // registers of them per thread
constexpr int SMEM_SUMS = $(l.sums_at);  // dQ on its way to memory: 16 rows for each warp

// dS of a block of queries lies in one of two buffers. full: all warps have written theirs; empty: all have multiplied.
__device__ __forceinline__ u32 ds_full(u32 smem, int buffer) { return barrier(smem, 2 + 4 * STAGES + buffer); }
__device__ __forceinline__ u32 ds_empty(u32 smem, int buffer) { return barrier(smem, 2 + 4 * STAGES + 2 + buffer); }
__device__ __forceinline__ u32 ds_buffer(u32 smem, int buffer) { return smem + SMEM_DS + buffer * (2 * DS_TILE); }

// Issues the warpgroup's columns of dS K.
__device__ __forceinline__ void issue_grad_q(float (&x)[NQ], u32 ds, u32 keys) {
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const u64 a = descriptor_across_rows<128>(ds + i / 4 * DS_TILE + i % 4 * 2048, DS_TILE);
    const u64 b = descriptor_across_rows<ROW>(keys + i / 4 * K_TILE + i % 4 * 16 * ROW, 64 * ROW);
    if (i == 0)
      wgmma_transposed_first(x, a, b);
    else
      wgmma_transposed(x, a, b);
  }
}

// Where the warp's part of dQ of a block is added, block by block, head by head.
struct GradQueries {
  float *to;
  int block;
  __device__ __forceinline__ void begin(const Params &p, const Unit &unit, const QueryBlocks &blocks, int wg) {
    const long long head = (long long)unit.batch * p.hq + unit.kv_head * p.group;
    to = (float *)p.sums + (head * ((p.sq + 63) / 64) + blocks.lo) * (64 * D) + wg * 64 * COLUMNS + threadIdx.x / 32 % 4 * 16 * columns(wg);
    block = blocks.lo;
  }
  static __device__ __forceinline__ int columns(int wg) { return wg == 0 ? COLUMNS : D - COLUMNS; }
  // real: else nothing is added.
  __device__ __forceinline__ void add(const Params &p, const QueryBlocks &blocks, u32 smem, int wg, const float (&x)[NQ], bool real) {
    const int lane = threadIdx.x % 32;
    const u32 from = smem + SMEM_SUMS + (threadIdx.x / 32 - 4) * (16 * COLUMNS * 4);
    if (lane == 0) bulk_wait_read<0>();
    __syncwarp();
#pragma unroll
    for (int n = 0; n < NQ / 4; n++)
      store_shared(from + n * 512 + lane * 16, make_uint4(__float_as_uint(x[4 * n]), __float_as_uint(x[4 * n + 1]),
                                                          __float_as_uint(x[4 * n + 2]), __float_as_uint(x[4 * n + 3])));
    fence_async();
    __syncwarp();
    if (!real) return;
    if (lane == 0) {
      bulk_add(to, from, 16 * columns(wg) * 4);
      bulk_commit();
    }
    to += 64 * D;
    if (block++ == blocks.hi) block = blocks.lo, to += ((long long)((p.sq + 63) / 64) - (blocks.hi - blocks.lo + 1)) * (64 * D);
  }
};

__device__ __forceinline__ void consume_blocks(const Params &p, u32 smem, const Unit &unit, const Sequence &sequence, int key0,
                                               const QueryBlocks &blocks, int wg) {
  const int lane = threadIdx.x % 32, key = key0 + wg * 64;
  const u32 k_tile = smem + wg * K_TILE, v_tile = smem + SMEM_V + wg * V_TILE;
  const u32 columns = smem + wg * (BOXES > 1 ? COLUMNS / BOX * 64 * ROW : COLUMNS * 2);  // of K, for dQ
  // The warp's rows of keys of a tile; matrices of a store: keys 0..7, 8..15 of the warp for eight queries, and for the next eight.
  const u32 ds_row = wg * DS_TILE + threadIdx.x / 32 % 4 * 2048 + lane % 16 * 128;
  const int items = blocks.lo <= blocks.hi ? (blocks.hi - blocks.lo + 1) * p.group : 0;
  Ring<STAGES> ring;
  float dk[NK], dv[NV];
#pragma unroll
  for (int i = 0; i < NK; i++) dk[i] = 0.f;
#pragma unroll
  for (int i = 0; i < NV; i++) dv[i] = 0.f;
  if (items > 0) {
    GradQueries grad_q;
    grad_q.begin(p, unit, blocks, wg);
    // Before the first block: dS of zeros, whose product is dropped.
#pragma unroll
    for (int n = lane / 16; n < 8; n += 2) store_shared(ds_buffer(smem, 1) + ds_row + n * 16, make_uint4(0, 0, 0, 0));
    fence_async();
    release(ds_full(smem, 1));
    float s[NS], dp[NS], dq[NQ];
    u32 a[NS / 2];  // P, then dS
    mbarrier_wait(k_full(smem), 0);
//| if c.held > 0 then
    u32 k[(D + 15) / 16 * 4];
    hold_rows(k, k_tile);
//| end
//| if c.held > 1 then
    u32 v[(DV + 15) / 16 * 4];
    mbarrier_wait(v_full(smem), 0);
    hold_rows(v, v_tile);
//| end
    mbarrier_wait(q_full(smem, 0), 0);
//| if p.has_dropout then
    int number = unit.batch * p.hq + unit.kv_head * p.group;  // of the head at hand among those of all sequences
    Kept kept = kept_of(p, number, key, blocks.lo * BR);
//| end
    if (wg == 1) turn_pass(wg);  // the first warpgroup begins
    wgmma_fence();
    issue_dots<D>(s, $(c.held > 0 and "k" or "k_tile"), smem + SMEM_Q);
    wgmma_commit();
    mbarrier_wait(v_full(smem), 0);
    mbarrier_wait(grad_o_full(smem, 0), 0);
    wgmma_fence();
    issue_dots<DV>(dp, $(c.held > 1 and "v" or "v_tile"), smem + SMEM_GRAD_O);
    wgmma_commit();
    int block = blocks.lo;
#pragma unroll 1
    for (int item = 0;; item++) {
      const u32 rows = smem + SMEM_ROWS + ring.at * BR * 8;
      const int buffer = item & 1, phase = item >> 1 & 1;
      wgmma_wait<1>(s);
      probabilities(s, p, sequence, rows, key, block * BR);
      pack_rows(a, s);
//| if p.has_dropout then
      drop(a, kept);
//| end
      wgmma_fence(a);
      issue_sums(dv, a, smem + SMEM_GRAD_O + ring.at * GRAD_O_TILE);
      wgmma_commit();
      wgmma_wait<1>(dp);
//| if p.has_dropout then
      drop(dp, kept, p.keep_scale);
//| end
      grad_scores(dp, s, rows);
      wgmma_wait<0>(dp);  // dV: P makes room for dS
      pack_rows(a, dp);
      release(grad_o_empty(smem, ring.at));
      mbarrier_wait(ds_empty(smem, buffer), phase ^ buffer ^ 1);
#pragma unroll
      for (int n = 0; n < BR / 8; n += 2)
        stmatrix_x4(ds_buffer(smem, buffer) + ds_row + ((n + lane / 16) ^ lane % 8) * 16, a[2 * n], a[2 * n + 1], a[2 * n + 2],
                    a[2 * n + 3]);
      fence_async();
      release(ds_full(smem, buffer));
//| if p.has_dropout then
      number += block == blocks.hi;
//| end
      if (block++ == blocks.hi) block = blocks.lo;
//| if p.has_dropout then
      kept = kept_of(p, number, key, block * BR);  // S and dP are no longer in registers, and the other warpgroup has its turn
//| end
      if (item == items - 1) break;
      turn_wait(wg);
      mbarrier_wait(ds_full(smem, buffer ^ 1), phase);
      wgmma_fence(a);
      issue_sums(dk, a, smem + SMEM_Q + ring.at * Q_TILE);
      wgmma_commit();
      issue_grad_q(dq, ds_buffer(smem, buffer ^ 1), columns);
      wgmma_commit();
      const u32 used = q_empty(smem, ring.at);
      ring.next();
      mbarrier_wait(q_full(smem, ring.at), ring.parity);
      wgmma_fence();
      issue_dots<D>(s, $(c.held > 0 and "k" or "k_tile"), smem + SMEM_Q + ring.at * Q_TILE);
      wgmma_commit();
      turn_pass(wg);
      wgmma_wait<1>(dq);  // and dK
      release(used);
      release(ds_empty(smem, buffer ^ 1));
      grad_q.add(p, blocks, smem, wg, dq, item > 0);
      mbarrier_wait(grad_o_full(smem, ring.at), ring.parity);
      wgmma_fence();
      issue_dots<DV>(dp, $(c.held > 1 and "v" or "v_tile"), smem + SMEM_GRAD_O + ring.at * GRAD_O_TILE);
      wgmma_commit();
    }
    // The last block's dK, and dQ of the last two.
    const int buffer = (items - 1) & 1, phase = (items - 1) >> 1 & 1;
    float last[NQ];
    turn_wait(wg);
    mbarrier_wait(ds_full(smem, buffer ^ 1), phase);
    wgmma_fence(a);
    issue_sums(dk, a, smem + SMEM_Q + ring.at * Q_TILE);
    wgmma_commit();
    issue_grad_q(last, ds_buffer(smem, buffer ^ 1), columns);
    wgmma_commit();
    turn_pass(wg);
    wgmma_wait<0>(last);
    grad_q.add(p, blocks, smem, wg, last, items > 1);
    mbarrier_wait(ds_full(smem, buffer), phase ^ buffer);
    wgmma_fence();
    issue_grad_q(last, ds_buffer(smem, buffer), columns);
    wgmma_commit();
    wgmma_wait<0>(last);
    grad_q.add(p, blocks, smem, wg, last, true);
    wgmma_wait<0>(dk);
    wgmma_wait<0>(dv);
    if (lane == 0) bulk_wait();
  }
  store_keys(p, dk, dv, wg);
}
