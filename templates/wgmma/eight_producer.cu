//| needs "c.feeder l.key_scales l.ones l.turned l.wide"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local batch_q, batch_k = "map_batch", "map_batch"
//| local sequence = "sequence_of(p, where.batch)"
//| if p.has_lengths then
//|   batch_q, batch_k = "map_batch_q", "map_batch_k"
//|   sequence = "tiles.sequence(p, smem)"
//| end
//| local loader, transposers = p.has_pages and "warp" or "thread", l.turned and "two warps that transpose V, " or ""
// ---- the producer warpgroup: a $(loader) for K and V, one for Q, $(transposers)a warp for tiles ----
//| if p.has_pages then
//| include "wgmma/hopper_pages.cu"
//| else
__device__ __forceinline__ void produce_keys(const Params &p, const TensorMap &k_map, const TensorMap &v_map, u32 smem) {
  Ring<STAGES_K> k;
  Ring<STAGES_V> v;
  TileQueue tiles;
  Tile where;
  tma_prefetch(k_map), tma_prefetch(v_map);
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
#pragma unroll
        for (int box = 0; box < BOXES_V; box++)
//| if l.wide then
          tma_load(smem + SMEM_V + v.at * V_TILE + box * BC * VALUE_ROW, v_map, v_full(smem, v.at), box * VALUE_BOX, key + BC,
                   where.kv_head, sequence.$(batch_k)());
//| elseif l.turned then
          tma_load(smem + SMEM_V + v.at * V_TILE + box * BC * ROW, v_map, v_full(smem, v.at), box * BOX, key + BC, where.kv_head,
                   sequence.$(batch_k)());
//| else
          tma_load(smem + SMEM_V + v.at * V_TILE + box * COLUMNS * KEY_BOX, v_map, v_full(smem, v.at), (block + 1) * BC + box * KEY_BOX, 0,
                   where.kv_head, sequence.$(batch_k)());
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
//| if l.turned then

//| local turned, of = l.ones and "TURNED" or "COLUMNS", l.ones and { "row_of(", ")" } or { "", "" }
//| if l.ones then
// Rows of ones follow the columns of the first sum.
__device__ __forceinline__ u32 row_of(u32 column) { return column < SUM ? column : column + 8; }

//| end
// V transposed: rows are columns of V, a row has the keys of a block, KEY_BOX in each box. Of 16 keys, 16 bytes, four neighbours are keys
// 2t, 2t + 1, 2t + 8 and 2t + 9, as a thread of a product holds them of S: P needs no exchange. Of 16 columns the even ones come first:
// then rows that are written together lie side by side, and a thread has four neighbours of O.
//| if p.has_lengths then
// Keys out of [first, end) become zeros: whatever lies there, NaN too, has no part in the result, but 0 * NaN in P V is NaN.
__device__ __forceinline__ void transpose(u32 from, u32 to, int first, int end, int warp, int lane) {
//| else
__device__ __forceinline__ void transpose(u32 from, u32 to, int warp, int lane) {
//| end
  // Loads come first: each waits for shared memory, and so would all of them one after the other.
  constexpr int PIECES = $(c.feeder >= 56 and 8 or 4), TOGETHER = BC / 32 < PIECES ? BC / 32 : PIECES;
  constexpr int CHUNKS = PIECES / TOGETHER > 1 && COLUMNS / 16 % (2 * TRANSPOSERS) == 0 ? 2 : 1;  // of 16 columns, at a time
  const u32 m = lane / 8, r = lane % 8;
#pragma unroll 1
  for (u32 chunk = warp; chunk < COLUMNS / 16; chunk += CHUNKS * TRANSPOSERS) {
#pragma unroll
    for (int block = 0; block < BC / 32; block += TOGETHER) {
      u32 x[CHUNKS][TOGETHER][4];
#pragma unroll
      for (int j = 0; j < CHUNKS; j++) {
        const u32 column = (chunk + j * TRANSPOSERS) * 16, at = column % BOX / 16;
        const u32 source = from + column / BOX * (BC * ROW) + lane * ROW + (at ^ swizzle_of<ROW>(lane)) * 16;
#pragma unroll
        for (int i = 0; i < TOGETHER; i++)
          if (block + i < BC / 32) ldmatrix_x4_trans(x[j][i], source + (block + i) * 32 * ROW);
      }
#pragma unroll
      for (int n = 0; n < CHUNKS * TOGETHER; n++) {
        const int j = n / TOGETHER, of = n % TOGETHER, keys = (block + of) * 32;
        if (keys >= BC) continue;
        const u32 row = $(of[1])(chunk + j * TRANSPOSERS) * 16 + m % 2 * 8 + r$(of[2]), key_chunk = keys % KEY_BOX / 16 + m / 2;
        u32 y[4];
//| if p.has_lengths then
        if (first > 0 || end < BC)
#pragma unroll
          for (int i = 0; i < 4; i++) {
            const int key = keys + 8 * i + lane % 4 * 2;
            x[j][of][i] &= (key >= first && key < end ? 0xffffu : 0) | (key + 1 >= first && key + 1 < end ? 0xffff0000u : 0);
          }
//| end
#pragma unroll
        for (int i = 0; i < 4; i++) y[i] = __byte_perm(x[j][of][i / 2 * 2], x[j][of][i / 2 * 2 + 1], i % 2 ? 0x7531 : 0x6420);
        stmatrix_x4(to + row * KEY_BOX + keys / KEY_BOX * $(turned) * KEY_BOX + (key_chunk ^ swizzle_of<KEY_BOX>(row)) * 16, y);
      }
    }
  }
}

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
