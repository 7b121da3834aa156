//| needs "c.spread l.listed? l.spread l.sums"
//| local wk = include("work/work.lua").of(p, l)
// ---- what both kernels of gradients share ----

//| include "tiles/ring.cu"

//| if not l.listed then
// The sequence of a pair of a sequence and a key/value head.
//|   if p.has_lengths then
// Those of the most queries come first, by what fa_delta has left: their tiles take longest. One by itself has no order.
__device__ __forceinline__ int batch_of(const Params &p, int unit) { return p.b > 1 ? ((const int *)p.order)[unit / p.hkv] : 0; }
//|   else
__device__ __forceinline__ int batch_of(const Params &p, int unit) { return unit / p.hkv; }
//|   end

//| end
//| if l.spread then
constexpr int SPREAD = $(c.spread);  // query heads of a block of dK and dV, or as many as are left
// Blocks that a group is spread over, of the heads of this launch.
__device__ __forceinline__ int spreads(const Params &p) { return (p.members + SPREAD - 1) / SPREAD; }
// Query heads of a sequence and a key/value head, of the launch's: those of a group side by side.
struct Unit {
  int local;  // the first head's number among those that the workspace holds
  int batch, kv_head, head;
//|   if c.spread == 1 then
  static constexpr int heads = 1;
//|   else
  int heads;
//|   end
};
__device__ __forceinline__ Unit unit_of(const Params &p, int part) {
  const int local = part / spreads(p), first = part % spreads(p) * SPREAD, unit = p.unit + local, kv_head = unit % p.hkv;
//|   local heads = c.spread > 1 and ", min(SPREAD, p.members - first)" or ""
  return {local * p.members + first, batch_of(p, unit), kv_head, kv_head * p.group + p.member + first$(heads)};
}
//| else
// A pair of a sequence and a key/value head, of the launch's.
struct Unit {
  int local;  // of those that the workspace holds
  int batch, kv_head;
};
//|   if not l.listed then
__device__ __forceinline__ Unit unit_of(const Params &p, int local) {
  const int unit = p.unit + local;
  return {local, batch_of(p, unit), unit % p.hkv};
}
//|   end
//| end

// ---- the order of tiles ----
//| wk.head_tiles()

//| if not l.sums then
//|   if l.spread then
__device__ __forceinline__ int first_head(const Params &, const Unit &unit) { return unit.head; }
//|   else
// The first query head of the group that this launch does: p.members of it.
__device__ __forceinline__ int first_head(const Params &p, const Unit &unit) { return unit.kv_head * p.group + p.member; }
//|   end

// The tile of dS of 64 queries and 64 keys, as the accumulators of dS^T hold it: for each 16 keys 2048 bytes, in them for each 16 queries
// 512, in them 16 of each lane: 8 x 8 matrices of keys 0..7 and 8..15 with queries 0..7, and with queries 8..15. Tiles of a block of
// queries lie side by side. member: the head's number among those of the $(l.spread and "unit" or "launch").
__device__ __forceinline__ char *ds_tile(const Params &p, const Unit &unit, int member, int query_block, int key_block) {
  const long long blocks_q = (p.sq + 63) / 64, blocks_k = (p.sk + 63) / 64;
  return (char *)p.grad_s + ((((long long)unit.local$(l.spread and "" or " * p.members") + member) * blocks_q + query_block) * blocks_k + key_block) * DS_TILE;
}

// From a tile to that of the next 64 queries.
__device__ __forceinline__ long long next_tile(const Params &p) { return (long long)((p.sk + 63) / 64) * DS_TILE; }

//| end
// This warp has read a buffer.
__device__ __forceinline__ void release(u32 empty) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) mbarrier_arrive(empty);
}

//| if p.grad_bytes == 2 then
//| include "tiles/gather_block.cu"
//| end

// scale * sum to the rows of `to` below `rows`: 64 rows of a warpgroup, WIDTH columns.
template <int WIDTH, int N>
__device__ __forceinline__ void store_rows(const Params &p, const float (&sum)[N], float scale, void *to, long long at, long long stride,
                                           int rows) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp_row = threadIdx.x / 32 % 4 * 16;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int row = warp_row + 8 * h + g;
    const bool real = row < rows;
//| if p.grad_bytes == 2 then
    u32 x[N / 4];
#pragma unroll
    for (int n = 0; n < N / 4; n++) x[n] = pack2(sum[4 * n + 2 * h] * scale, sum[4 * n + 2 * h + 1] * scale);
    u16 *const line = (u16 *)to + at + row * stride;
#pragma unroll
    for (int n = 0; n + 4 <= N / 4; n += 4) {
      const uint4 block = gather_block(x[n], x[n + 1], x[n + 2], x[n + 3], t);
      if (real) *(uint4 *)(line + (n + t) * 8) = block;
    }
#pragma unroll
    for (int n = N / 16 * 4; n < N / 4; n++)
      if (real) *(u32 *)(line + n * 8 + 2 * t) = x[n];
//| else
#pragma unroll
    for (int n = 0; n < N / 4; n++)
#pragma unroll
      for (int e = 0; e < 2; e++)
        if (real) store_gradient(p, to, at + row * stride + n * 8 + 2 * t + e, sum[4 * n + 2 * h + e] * scale);
//| end
  }
}
