//| needs "c.cluster l.apart? l.brief? l.draw_barriers? l.halves? l.near? l.persistent l.pingpong_softmax l.reverses? l.runs? l.shared?"
//| needs "l.split? l.tail_barriers? l.v_in_k?"
//| local from = l.runs and "from + " or ""
//| local pr = include("pairs/pairs.lua").of(p, l)
//| if p.has_lengths then
//|   local q = l.split and "a warp" or "a thread"
// ---- the producer warpgroup: a $(p.has_pages and "warp" or "thread") for K and V, $(q) for Q, two other warps ----
// One schedules tiles, one clears out-of-range rows.
//| else
// ---- the producer warpgroup: a thread for K, V, one $(l.split and "warp " or "")for Q$(l.persistent and ", a warp for tiles" or "") ----
//| end
//| local batch_q, batch_k = "map_batch", "map_batch"
//| local sequence, v_full = "sequence_of(p, where.batch)", "v_full(smem, v.at)"
//| if p.has_lengths then
//|   batch_q, batch_k = "map_batch_q", "map_batch_k"
//|   sequence, v_full = "tiles.sequence(p, smem)", "full"
//| end
//| if p.has_pages then
//| include "wgmma/hopper_pages.cu"
//| else
// One box of K or V; key and batch are the map's.
__device__ __forceinline__ void load_keys(u32 to, const TensorMap &map, u32 full, int column, int key, int head, int batch) {
//| if c.cluster > 1 and not l.near then
  const int part = cluster_rank() * (BC / CLUSTER);
  tma_load_for_all(to + part * ROW, map, full, column, key + part, head, batch);
//| else
  tma_load(to, map, full, column, key, head, batch);
//| end
}
//| if pr.scans then
//|   if not pr.masks then
constexpr int SHORT = 32;  // blocks of a tile: beside fewer all of the search for the next one finds its time
//|   end
__device__ __forceinline__ void produce_keys(const Params &p, const TensorMap &k_map, const TensorMap &v_map, u32 smem, int lane) {
  Ring<STAGES_K> k;
  Ring<STAGES_V> v;
  TileQueue tiles;
  Tile where;
  tma_prefetch(k_map), tma_prefetch(v_map);
  grid_wait();
  while (tiles.next(p, smem, where)) {
    const KeyRange keys = tiles.keys(p, smem, 0);
    const Sequence sequence = $(sequence);
//|   if l.runs then
    where.number = tiles.number(smem);
//|   end
//|   if pr.masks then
    TileBlocks blocks(p, sequence, where$(l.reverses and ", tiles.slot.at" or ""), keys.loaded_hi, keys.loaded_lo);
//|   else
//| indented(4, pr.begin_published, true)
    TileBlocks blocks(keys.loaded_hi, keys.loaded_lo);
//|   end
//|   if l.runs then
    const int from = tiles.from(smem);
//|   end
    // V of a block is needed when K of the next has been. The last block is told beside K: the one after it is found before.
    int before = -1, code = -1, after;
//|   if pr.masks then
    bool first = true, told = false;  // told: the search for the next tile has begun
//|   else
    bool first = true, told = keys.loaded_hi - keys.loaded_lo < SHORT;  // told: the search for the next tile has begun
    if (told && lane == 0) mbarrier_arrive(tile_loaded(smem));
//|   end
#pragma unroll 1
    do {
      after = first || code >= 0 ? blocks.next($(pr.masks and "" or "look, look_of")) : -1;
      if (first && after < 0 && !told && lane == 0) mbarrier_arrive(tile_loaded(smem));
      first = false;
      if (code >= 0) {
        const bool tells = !told && (after < 0 || blocks.are_few());
        told = told || tells;
        if (lane == 0) {
          mbarrier_wait(k_empty(smem, k.at), k.parity ^ 1);
          store_shared(code_at(smem, k.at), (u32)code | (after < 0 ? (u32)CODE_LAST : 0u));
          mbarrier_expect(k_full(smem, k.at), K_TILE);
#pragma unroll
          for (int box = 0; box < BOXES; box++)
            load_keys(smem + SMEM_K + k.at * K_TILE + box * BC * ROW, k_map, k_full(smem, k.at), box * BOX,
                      sequence.map_key($(from)(code >> CODE_BLOCK) * BC), where.kv_head, sequence.$(batch_k)());
          if (tells) mbarrier_arrive(tile_loaded(smem));
        }
        k.next();
      }
      if (before >= 0) {
        if (lane == 0) {
          mbarrier_wait(v_empty(smem, v.at), v.parity ^ 1);
//| if p.has_lengths then
          const u32 full = own_rows(sequence, before >> CODE_BLOCK).all() ? v_full(smem, v.at) : v_landed(smem, v.at);
//| end
          mbarrier_expect($(v_full), V_TILE);
#pragma unroll
          for (int box = 0; box < BOXES_V; box++)
            load_keys(smem + SMEM_V + v.at * V_TILE + box * BC * ROW, v_map, $(v_full), box * BOX, sequence.map_key($(from)(before >> CODE_BLOCK) * BC),
                      where.kv_head, sequence.$(batch_k)());
        }
        v.next();
      }
      before = code;
      code = after;
      __syncwarp();
    } while (code >= 0 || before >= 0);
    tiles.done(smem, true);
  }
}
//| else
//|   -- The first LEFT boxes of a block of keys, and the rest of them; each warpgroup waits for its own.
//|   local function load_left(block, left, rest, to, map, key, batch)
//|     if p.has_lengths then
        const bool all = own_rows(sequence, $(block)).all();
        const u32 landed = v_landed(smem, $(l.v_in_k and "k" or "v").at), left = all ? $(left) : landed, rest = all ? $(rest) : landed;
        if (all) mbarrier_expect(left, LEFT_BYTES);
//|     else
        const u32 left = $(left), rest = $(rest);
        mbarrier_expect(left, LEFT_BYTES);
//|     end
#pragma unroll
        for (int box = 0; box < LEFT; box++)
          load_keys(smem + $(to) + box * BC * ROW, $(map), left, box * BOX, $(key), where.kv_head, sequence.$(batch)());
//|   end
//|   local function load_rest(boxes, bytes, to, map, key, batch)
        mbarrier_expect(rest, $(bytes) - $(p.has_lengths and "(all ? LEFT_BYTES : 0)" or "LEFT_BYTES"));
#pragma unroll
        for (int box = LEFT; box < $(boxes); box++)
          load_keys(smem + $(to) + box * BC * ROW, $(map), rest, box * BOX, $(key), where.kv_head, sequence.$(batch)());
//|   end
//| if l.halves then
// Halves of the columns of K and of V, in turn, in the order in which products read them.
__device__ __forceinline__ void produce_keys(const Params &p, const TensorMap &k_map, const TensorMap &v_map, u32 smem) {
  Ring<STAGES_K> ring, full[2];
  TileQueue tiles;
  Tile where;
  tma_prefetch(k_map), tma_prefetch(v_map);
  grid_wait();
  while (tiles.next(p, smem, where)) {
    const KeyRange keys = tiles.keys(p, smem, 0);
    const Sequence sequence = sequence_of(p, where.batch);
    tiles.done(smem, false);
    if (keys.loaded_hi < keys.loaded_lo) mbarrier_arrive(tile_loaded(smem));
    auto load = [&](const TensorMap &map, int half, int key, int wg) {
      const u32 there = half_full(smem, wg, wg == 0 ? full[0].at : full[1].at);
      mbarrier_wait(k_empty(smem, ring.at), ring.parity ^ 1);
      mbarrier_expect(there, HALF_TILE);
#pragma unroll
      for (int box = 0; box < BOXES / 2; box++)
        load_keys(smem + SMEM_K + ring.at * HALF_TILE + box * BC * ROW, map, there, (half * (BOXES / 2) + box) * BOX, key, where.kv_head,
                  sequence.map_batch());
      ring.next();
      if (wg == 0) full[0].next();
      else full[1].next();
    };
    // V of a block is needed when K of the next has been.
    for (int block = keys.loaded_hi; block >= keys.loaded_lo - 1 && keys.loaded_lo <= keys.loaded_hi; block--) {
      const int key = sequence.map_key(block * BC);
      if (block >= keys.loaded_lo)
        for (int half = 0; half < 2; half++) load(k_map, half, key, (keys.loaded_hi - block) % 2);
      if (block == $(l.draw_barriers and "search_block(keys)" or "keys.loaded_lo")) mbarrier_arrive(tile_loaded(smem));
      if (block < keys.loaded_hi)
        for (int half = 0; half < 2; half++) load(v_map, half, key + BC, half);
    }
  }
}
//| else
//|   if l.apart then
// VALUES: V, by a thread of its own, which K does not wait for.
template <bool VALUES>
//|   end
__device__ __forceinline__ void produce_keys(const Params &p, const TensorMap &k_map, const TensorMap &v_map, u32 smem) {
  Ring<STAGES_K> k;
//| if not l.v_in_k then
  Ring<STAGES_V> v;
//| end
  TileQueue tiles;
  Tile where;
  tma_prefetch(k_map), tma_prefetch(v_map);
  grid_wait();
//| if l.near then
  for (int number = 0; tiles.next(p, smem, where); number++) {
//| else
  while (tiles.next(p, smem, where)) {
//| end
    const KeyRange keys = tiles.keys(p, smem, 0);
    const Sequence sequence = $(sequence);
    tiles.done(smem, false);
//| if l.near then
    producer_at_tile(smem, number);
//| end
//| if l.persistent then
    if ($(l.apart and "!VALUES && " or "")keys.loaded_hi < keys.loaded_lo) mbarrier_arrive(tile_loaded(smem));
//| end
    // V of a block is needed when K of the next has been.
    for (int block = keys.loaded_hi; block >= keys.loaded_lo - 1 && keys.loaded_lo <= keys.loaded_hi; block--) {
      const int key = sequence.map_key(block * BC);
      if ($(l.apart and "!VALUES && " or "")block >= keys.loaded_lo) {
//| if l.tail_barriers then
        mbarrier_wait(tail_empty(smem, k.at), k.parity ^ 1);
        mbarrier_expect(tail_full(smem, k.at), K_TILE - OF_V_BYTES);
#pragma unroll
        for (int box = OF_V; box < BOXES; box++)
          load_keys(smem + SMEM_K + k.at * K_TILE + box * BC * ROW, k_map, tail_full(smem, k.at), box * BOX, key, where.kv_head,
                    sequence.$(batch_k)());
//| end
        mbarrier_wait(k_empty(smem, k.at), k.parity ^ 1);
//| if l.v_in_k then
//|   load_left("block", "k_full(smem, k.at)", "rest_full(smem, k.at)", "SMEM_K + k.at * K_TILE", "k_map", "key", batch_k)
        mbarrier_wait(rest_empty(smem, k.at), k.parity ^ 1);
//|   load_rest("OF_V", "OF_V_BYTES", "SMEM_K + k.at * K_TILE", "k_map", "key", batch_k)
//| else
        mbarrier_expect(k_full(smem, k.at), K_TILE);
#pragma unroll
        for (int box = 0; box < BOXES; box++)
          load_keys(smem + SMEM_K + k.at * K_TILE + box * BC * ROW, k_map, k_full(smem, k.at), box * BOX, key,
                    where.kv_head, sequence.$(batch_k)());
//| end
        k.next();
//| if l.persistent and (p.has_lengths or pr.walks) then
        if (block == search_block(keys)) mbarrier_arrive(tile_loaded(smem));
//| elseif l.persistent then
        if (block == keys.loaded_lo) mbarrier_arrive(tile_loaded(smem));
//| end
      }
//| if not l.v_in_k then
      if ($(l.apart and "VALUES && " or "")block < keys.loaded_hi) {
        mbarrier_wait(v_empty(smem, v.at), v.parity ^ 1);
//| if l.shared then
//|   load_left("block + 1", "v_full(smem, v.at)", "rest_full(smem, v.at)", "SMEM_V + v.at * V_TILE", "v_map", "key + BC", batch_k)
        mbarrier_wait(rest_empty(smem, v.at), v.parity ^ 1);
//|   load_rest("BOXES_V", "V_TILE", "SMEM_V + v.at * V_TILE", "v_map", "key + BC", batch_k)
//| else
//|   if p.has_lengths then
        const u32 full = own_rows(sequence, block + 1).all() ? v_full(smem, v.at) : v_landed(smem, v.at);
//|   end
        mbarrier_expect($(v_full), V_TILE);
#pragma unroll
        for (int box = 0; box < BOXES_V; box++)
          load_keys(smem + SMEM_V + v.at * V_TILE + box * BC * ROW, v_map, $(v_full), box * BOX, key + BC,
                    where.kv_head, sequence.$(batch_k)());
//| end
        v.next();
      }
//| end
    }
  }
}
//| end
//| end
//| end

//| if l.split then
//|   include "wgmma/hopper_packed_queries.cu"
//| else
__device__ __forceinline__ void produce_queries(const Params &p, const TensorMap &q_map, u32 smem) {
  Ring<Q_BUFS> q;
  TileQueue tiles;
  Tile where;
  tma_prefetch(q_map);
  grid_wait();
  while (tiles.next(p, smem, where)) {
    const KeyRange keys = tiles.keys(p, smem, 0);
    const Sequence sequence = $(sequence);
//| local slot = ""
//| if l.reverses then
//|   slot = ", slot"
    const int slot = tiles.slot.at;
//| end
    tiles.done(smem, false);
    if (keys.loaded_hi < keys.loaded_lo) continue;
//| if l.persistent and pr.walks then
    // Tiles are short under the program's mask: rows of the next are on their way to the L2 before there is a place for them.
    for (int wg = WGS - 1; wg >= 0; wg--)
#pragma unroll
      for (int box = 0; box < BOXES; box++)
        tma_load_l2(q_map, box * BOX, sequence.map_query(where.row + row_in_tile(wg$(slot))), where.head, sequence.$(batch_q)());
//| end
//| local q_full = p.has_lengths and "full" or "q_full(smem, q.at, wg)"
//| if not pr.cuts_right or l.pingpong_softmax then
//|   if l.brief then
#pragma unroll 1
//|   end
    for (int wg = 0; wg < WGS; wg++) {
//| else
    // Who has the last rows is the first to see keys, and in a window the first to be done with the tile before. But turns at the
    // exponentials begin with the first rows.
//|   if l.brief then
#pragma unroll 1
//|   end
//|   if l.reverses then
    for (int n = WGS - 1; n >= 0; n--) {
      const int wg = slot == 0 ? n : WGS - 1 - n;
//|   else
    for (int wg = WGS - 1; wg >= 0; wg--) {
//|   end
//| end
      mbarrier_wait(q_empty(smem, q.at, wg), q.parity ^ 1);
//| if p.has_lengths then
      if (where.row + row_in_tile(wg$(slot)) >= sequence.sq()) {  // no row of the sequence
        mbarrier_arrive(q_full(smem, q.at, wg));
        continue;
      }
      const u32 full = wg == partial_warpgroup(sequence, where.row) ? q_landed(smem, q.at, wg) : q_full(smem, q.at, wg);
//| end
      mbarrier_expect($(q_full), Q_TILE);
#pragma unroll
      for (int box = 0; box < BOXES; box++)
        tma_load(smem + (q.at * WGS + wg) * Q_TILE + box * 64 * ROW, q_map, $(q_full), box * BOX,
                 sequence.map_query(where.row + row_in_tile(wg$(slot))), where.head, sequence.$(batch_q)());
    }
    q.next();
  }
}
//| end
