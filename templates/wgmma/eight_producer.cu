//| needs "l.before l.key_scales l.transposes l.turned l.wide"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local batch_q, batch_k = "map_batch", "map_batch"
//| local sequence = "sequence_of(p, where.batch)"
//| if p.has_lengths then
//|   batch_q, batch_k = "map_batch_q", "map_batch_k"
//|   sequence = "tiles.sequence(p, smem)"
//| end
//| local loader, transposers = p.has_pages and "warp" or "thread", l.transposes and "two warps that transpose V, " or ""
// ---- the producer warpgroup: a $(loader) for K and V, one for Q, $(transposers)a warp for tiles ----
//| if p.has_pages then
//| include "wgmma/hopper_pages.cu"
//| else
__device__ __forceinline__ void produce_keys(const Params &p, const TensorMap &k_map, $(l.before and "" or "const TensorMap &v_map, ")u32 smem) {
  Ring<STAGES_K> k;
  Ring<STAGES_V> v;
  TileQueue tiles;
  Tile where;
//| if l.before then
  tma_prefetch(k_map);
//| else
  tma_prefetch(k_map), tma_prefetch(v_map);
//| end
  grid_wait();
  while (tiles.next(p, smem, where)) {
    const KeyRange keys = tiles.keys(p, smem, 0);
    const Sequence sequence = $(sequence);
    tiles.done(smem, false);
    if (keys.loaded_hi < keys.loaded_lo) mbarrier_arrive(tile_loaded(smem));
    // V of a block is needed when K of the next has been.
    for (int block = keys.loaded_hi; block >= keys.loaded_lo - 1 && keys.loaded_lo <= keys.loaded_hi; block--) {
      const int key = sequence.map_key(block * BC);
      if (block >= keys.loaded_lo) {
        mbarrier_wait(k_empty(smem, k.at), k.parity ^ 1);
        mbarrier_expect(k_full(smem, k.at), K_TILE);
#pragma unroll
        for (int box = 0; box < BOXES; box++)
          tma_load(smem + SMEM_K + k.at * K_TILE + box * BC * ROW, k_map, k_full(smem, k.at), box * BOX, key, where.kv_head,
                   sequence.$(batch_k)());
        k.next();
//| if p.has_lengths then
        if (block == search_block(keys)) mbarrier_arrive(tile_loaded(smem));
//| else
        if (block == keys.loaded_lo) mbarrier_arrive(tile_loaded(smem));
//| end
      }
      if (block < keys.loaded_hi) {
        mbarrier_wait(v_empty(smem, v.at), v.parity ^ 1);
        mbarrier_expect(v_full(smem, v.at), V_TILE);
//| if l.before then
        bulk_load(smem + SMEM_V + v.at * V_TILE, turned_block(p, sequence.batch, where.kv_head, block + 1), V_TILE, v_full(smem, v.at));
//| else
#pragma unroll
        for (int box = 0; box < BOXES_V; box++)
//|   if l.wide then
          tma_load(smem + SMEM_V + v.at * V_TILE + box * BC * VALUE_ROW, v_map, v_full(smem, v.at), box * VALUE_BOX, key + BC,
                   where.kv_head, sequence.$(batch_k)());
//|   elseif l.turned then
          tma_load(smem + SMEM_V + v.at * V_TILE + box * BC * ROW, v_map, v_full(smem, v.at), box * BOX, key + BC, where.kv_head,
                   sequence.$(batch_k)());
//|   else
          tma_load(smem + SMEM_V + v.at * V_TILE + box * COLUMNS * KEY_BOX, v_map, v_full(smem, v.at), (block + 1) * BC + box * KEY_BOX, 0,
                   where.kv_head, sequence.$(batch_k)());
//|   end
//| end
        v.next();
      }
    }
  }
}
//| end

//| if l.key_scales then
// A warp that brings the scales of K's tokens, beside K: they may lie apart, so that no copy of a block is theirs.
__device__ __forceinline__ void produce_scales(const Params &p, u32 smem, int lane) {
  Ring<STAGES_K> k;
  TileQueue tiles;
  Tile where;
  grid_wait();
  while (tiles.next(p, smem, where)) {
    const KeyRange keys = tiles.keys(p, smem, 0);
    const Sequence sequence = $(sequence);
    tiles.done(smem, true);
    const float *const scales = k_scales_of(p, sequence, where.kv_head);
#pragma unroll 1
    for (int block = keys.loaded_hi; block >= keys.loaded_lo; block--) {
      float x[BC / 32];
#pragma unroll
      for (int i = 0; i < BC / 32; i++) {
        const int key = block * BC + i * 32 + lane;
        x[i] = key < sequence.sk() ? scales[key * p.k_scale_ss] : 0.f;  // keys past the last are zeros
      }
      mbarrier_wait(k_empty(smem, k.at), k.parity ^ 1);
#pragma unroll
      for (int i = 0; i < BC / 32; i++) store_shared(smem + SMEM_SCALES + (k.at * BC + i * 32 + lane) * 4, __float_as_uint(x[i]));
      __syncwarp();
      if (lane == 0) mbarrier_arrive(k_full(smem, k.at));
      k.next();
    }
  }
}

//| end
// Q of a tile, where it has keys.
struct Queries {
  Ring<Q_BUFS> q;
  __device__ __forceinline__ void load(const TensorMap &q_map, u32 smem, const Tile &where, const Sequence &sequence) {
//| if pr.cuts_right then
    // The warpgroup of the last rows sees the first blocks: keys come from the last one down.
    for (int wg = WGS - 1; wg >= 0; wg--) {
//| else
    for (int wg = 0; wg < WGS; wg++) {
//| end
      mbarrier_wait(q_empty(smem, q.at, wg), q.parity ^ 1);
//| if p.has_lengths then
      if (where.row + row_in_tile(wg) >= sequence.sq()) {  // no row of the sequence
        mbarrier_arrive(q_full(smem, q.at, wg));
        continue;
      }
//| end
      mbarrier_expect(q_full(smem, q.at, wg), Q_TILE);
#pragma unroll
      for (int box = 0; box < BOXES; box++)
        tma_load(smem + (q.at * WGS + wg) * Q_TILE + box * 64 * ROW, q_map, q_full(smem, q.at, wg), box * BOX,
                 sequence.map_query(where.row + row_in_tile(wg)), where.head, sequence.$(batch_q)());
    }
    q.next();
  }
};
//| if l.transposes then

//| include "wgmma/eight_transpose.cu"

// One of the warps that transpose V; the first of them has Q loaded, too.
__device__ __forceinline__ void produce_transposed(const Params &p, const TensorMap &q_map, u32 smem, int warp, int lane) {
  Ring<STAGES_V> v;
  Ring<STAGES_T> turned;
  TileQueue tiles;
  Tile where;
  Queries queries;
  if (warp == 0) tma_prefetch(q_map);
  grid_wait();
  while (tiles.next(p, smem, where)) {
    const KeyRange keys = tiles.keys(p, smem, 0);
    const Sequence sequence = $(sequence);
    tiles.done(smem, true);
    if (keys.loaded_hi < keys.loaded_lo) continue;
    if (warp == 0 && lane == 0) queries.load(q_map, smem, where, sequence);
    __syncwarp();
#pragma unroll 1
    for (int block = keys.loaded_hi; block >= keys.loaded_lo; block--) {
      mbarrier_wait(v_full(smem, v.at), v.parity);
      mbarrier_wait(turned_empty(smem, turned.at), turned.parity ^ 1);
//| if p.has_lengths then
      const OwnRows own = own_rows(sequence, block);
      transpose(smem + SMEM_V + v.at * V_TILE, smem + SMEM_T + turned.at * T_TILE, own.first, own.end, warp, lane);
//| else
      transpose(smem + SMEM_V + v.at * V_TILE, smem + SMEM_T + turned.at * T_TILE, warp, lane);
//| end
      fence_async();
      __syncwarp();
      if (lane == 0) mbarrier_arrive(v_empty(smem, v.at)), mbarrier_arrive(turned_full(smem, turned.at));
      v.next();
      turned.next();
    }
  }
}
//| else

__device__ __forceinline__ void produce_queries(const Params &p, const TensorMap &q_map, u32 smem) {
  TileQueue tiles;
  Tile where;
  Queries queries;
  tma_prefetch(q_map);
  grid_wait();
  while (tiles.next(p, smem, where)) {
    const KeyRange keys = tiles.keys(p, smem, 0);
    const Sequence sequence = $(sequence);
    tiles.done(smem, false);
    if (keys.loaded_hi >= keys.loaded_lo) queries.load(q_map, smem, where, sequence);
  }
}
//| end
