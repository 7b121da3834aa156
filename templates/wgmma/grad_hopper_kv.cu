//| needs "c.box c.br c.held c.twins l.apart l.by_reach? l.consumer l.dk l.dv l.feeder l.groups l.listed? l.persistent l.spread"
//| needs "l.stored_beside l.sums l.tile_rows? l.turns"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
//| local first = l.spread and "unit.head" or l.sums and "unit.kv_head * p.group" or "first_head(p, unit)"
//| local last = l.spread and "unit.head + unit.heads" or l.sums and "(unit.kv_head + 1) * p.group" or "first_head(p, unit) + p.members"
//| if l.spread then
// ---- what query heads of a group add to dK and dV of a tile of keys: over their queries that see them ----
//| else
// ---- dK and dV of a tile of keys: over the queries that see them, of all heads of the group ----
//|   if not l.sums then
// Some of them each launch.
//|   end
//| end
// Every buffer has two mbarriers: `full`, completed by the copy engine, and `empty`, by the warps that read it.
__device__ __forceinline__ u32 barrier(u32 smem, int index) { return smem + SMEM_BARRIERS + index * 8; }
__device__ __forceinline__ u32 k_full(u32 smem) { return barrier(smem, 0); }
__device__ __forceinline__ u32 v_full(u32 smem) { return barrier(smem, 1); }
__device__ __forceinline__ u32 q_full(u32 smem, int stage) { return barrier(smem, 2 + stage); }
__device__ __forceinline__ u32 q_empty(u32 smem, int stage) { return barrier(smem, 2 + STAGES + stage); }
__device__ __forceinline__ u32 grad_o_full(u32 smem, int stage) { return barrier(smem, 2 + 2 * STAGES + stage); }
__device__ __forceinline__ u32 grad_o_empty(u32 smem, int stage) { return barrier(smem, 2 + 3 * STAGES + stage); }

//| if p.has_lengths then
// Where what has rows of others lands.
__device__ __forceinline__ u32 landed(u32 full) { return full + LANDED * 8; }
__device__ __forceinline__ u32 landing(u32 full, bool own) { return own ? full : landed(full); }

//| end
//| local function tile_of_keys()
// The tile of keys of a number.
struct KeyTile {
  Unit unit;
  int key0;
};
//| end
//| if l.tile_rows then
//|   tile_of_keys()
// And the rows of its sequence, which the thread that copies looks up for all warps.
struct TileRows {
  KeyTile tile;
  Rows q, k;
  __device__ __forceinline__ Sequence sequence(const Params &p) const { return sequence_with(p, tile.unit.batch, q, k); }
};
__device__ __forceinline__ TileRows tile_rows_of(const Params &p, int index);
//| end
//| include "work/grad_hopper_tiles.cu"

//| if not l.tile_rows then
//|   tile_of_keys()
//| end
//| if l.listed then
// A sequence's tiles of the longest heads first, too: sequence after sequence.
__device__ __forceinline__ KeyTile key_tile(const Params &p, int index) {
  const KeyTiles of = key_tiles_at(p, index / p.hkv);
  const HeadTile at = tile_at(index - of.first * p.hkv, of.tiles, p.hkv);
  return {{at.head, of.batch, at.head}, $(l.by_reach and "(of.at + at.tile)" or "at.tile") * KEYS};
}
//|   if l.tile_rows then
__device__ __forceinline__ TileRows tile_rows_of(const Params &p, int index) {
  const KeyTile tile = key_tile(p, index);
  const Sequence sequence = sequence_of(p, tile.unit.batch);
  return {tile, {sequence.first_q, sequence.sq()}, {sequence.first_k, sequence.sk()}};
}
//|   end
// Whether a number is that of a tile.
__device__ __forceinline__ bool has_keys(const Params &p, int index) {
  const KeyTiles of = key_tiles_at(p, index / p.hkv);
  return index < (of.first + of.tiles) * p.hkv;
}
//| else
__device__ __forceinline__ KeyTile key_tile(const Params &p, int index) {
  const HeadTile at = tile_at(index, p.tiles, tiles_of_launch(p) / p.tiles);
  return {unit_of(p, at.head), at.tile * KEYS};
}
//| end
//| if p.has_lengths and not l.listed then
// Whether the tile begins before its sequence's end.
__device__ __forceinline__ bool has_keys(const Params &p, int tile) {
  const KeyTile at = key_tile(p, tile);
  return at.key0 < sequence_of(p, at.unit.batch).sk();
}
//| end

//| if pr.marked then
//|   include "wgmma/grad_hopper_marks.cu"
//| else
//|   pr.query_blocks()
//| end

//| if p.has_lengths then
//|   include "wgmma/grad_hopper_out_of_range.cu"

//| end
// One thread: Q and dO, block by block, head by head; after the first block K and V, for which the tile before may have to end; then LSE
// and D of its rows, which the kernel in front leaves. That kernel has waited for what is in front of it, so that the rest is there before
// it ends.
__device__ __forceinline__ void produce_blocks(const Params &p, const TensorMap &q_map, const TensorMap &k_map, const TensorMap &v_map,
                                               const TensorMap &grad_o_map, u32 smem, const Unit &unit, const Sequence &sequence, int key0,
                                               $(pr.marked and "" or "const QueryBlocks &blocks, ")Ring<STAGES> &ring, int round) {
//| local grad_o_landing, k_landing, v_landing = "grad_o_full(smem, ring.at)", "k_full(smem)", "v_full(smem)"
//| if p.has_lengths then
//|   grad_o_landing = "landing(grad_o_full(smem, ring.at), own)"
//|   k_landing, v_landing = "landing(k_full(smem), own_keys)", "landing(v_full(smem), own_keys)"
  const int batch = sequence.map_batch_q();
  const bool own_keys = has_own_keys(sequence, key0);
//| else
  const int batch = sequence.map_batch();
//| end
  auto load_keys = [&](u32 to, const TensorMap &map, u32 full, int boxes, int tile) {
//| if p.has_lengths then
    const int batch = sequence.map_batch_k();
//| end
    mbarrier_expect(full, KEYS / 64 * tile);
    for (int i = 0; i < KEYS / 64; i++)
      for (int box = 0; box < boxes; box++)
        tma_load(to + i * tile + box * 64 * ROW, map, full, box * BOX, sequence.map_key(key0 + i * 64), unit.kv_head, batch);
  };
//| local begun = ("head > %s || block > blocks.lo"):format(first)
//| if pr.marked then
//|   begun = "before >= 0"
  int before = -1, head = $(first), block = 0, next_head, next;  // before: the head of the block before
  bool more = seek_block(p, sequence, key0, $(last), head, block);
  if (!more) skip_keys(smem, round);
#pragma unroll 1
    for (; more; before = head, head = next_head, block = next) {
      next_head = head, next = block + 1;
      more = seek_block(p, sequence, key0, $(last), next_head, next);
//| else
#pragma unroll 1
  for (int head = $(first); head < $(last); head++)
#pragma unroll 1
    for (int block = blocks.lo; block <= blocks.hi; block++) {
//| end
      mbarrier_wait(q_empty(smem, ring.at), ring.parity ^ 1);
//| if p.has_lengths then
      const bool own = own_queries(sequence, block).all();
      const u32 full = landing(q_full(smem, ring.at), own);
//| else
      const u32 full = q_full(smem, ring.at);
//| end
//| if pr.marked then
      leave_code(smem, ring, marks_of_keys(p, sequence, head, key0, KEYS), head, block, head != before, head != next_head, !more);
//| end
      mbarrier_expect(full, Q_TILE + BR * 8);
#pragma unroll
      for (int box = 0; box < BOXES; box++)
        tma_load(smem + SMEM_Q + ring.at * Q_TILE + box * BR * ROW, q_map, full, box * BOX, sequence.map_query(block * BR), head, batch);
      mbarrier_wait(grad_o_empty(smem, ring.at), ring.parity ^ 1);
      mbarrier_expect($(grad_o_landing), GRAD_O_TILE);
#pragma unroll
      for (int box = 0; box < BOXES_V; box++)
        tma_load(smem + SMEM_GRAD_O + ring.at * GRAD_O_TILE + box * BR * ROW, grad_o_map, $(grad_o_landing), box * BOX,
                 sequence.map_query(block * BR), head, batch);
      if (!($(begun))) {
        wait_for_keys(smem, round);
        load_keys(smem, k_map, $(k_landing), BOXES, K_TILE);
        load_keys(smem + SMEM_V, v_map, $(v_landing), BOXES_V, V_TILE);
      }
      grid_wait();
      const long long rows = sequence.delta(head, block * BR);
      const float *const statistics = (const float *)p.delta + rows + rows / DELTA_PAD * DELTA_PAD;
      bulk_load(smem + SMEM_ROWS + ring.at * BR * 8, statistics, BR * 4, full);
      bulk_load(smem + SMEM_ROWS + ring.at * BR * 8 + BR * 4, statistics + DELTA_PAD, BR * 4, full);
      ring.next();
    }
}

//| if c.twins == 0 and (c.held < 2 or l.apart) then
// A zero that no compiler can prove to be one. Added to the places of K and V it makes their descriptors new ones for each block: those
// that are known to stay the same are all held, in registers that the products need.
__device__ __forceinline__ u32 unknown_zero(const Ring<STAGES> &ring) { return ring.parity >> 1; }
//| end
//| local asm = include("machine/asm_operands.lua")
//| -- Where the sums of dQ take the registers of dP: with one statement for all of a sum 24 to 36 bytes more are spilled and read again.
//| local products = l.sums and not l.apart and asm.products_one_by_one or asm.products
//| -- Of so many columns; held: one operand comes from registers.
//| local function issue_dots(columns, held)
//|   local rows, others = {}, {}
//|   for i = 0, (columns + 15) // 16 - 1 do
//|     local box, in_box = i * 16 // c.box, i * 16 % c.box * 2
//|     local row = ('"l"(descriptor<ROW>(rows + ALONG_ROW + (%d * 64 * ROW + %d) / 16))'):format(box, in_box)
//|     rows[#rows + 1] = held and asm.four("rows", 4 * i) or row
//|     others[#others + 1] = ('"l"(descriptor<ROW>(others + ALONG_ROW + (%d * BR * ROW + %d) / 16))'):format(box, in_box)
//|   end
//|   return products { to = "x", n = c.br // 2, shape = asm.shape(p, c.br), a = rows, b = others, begins = true,
//|     tail = held and "1, 1, 0" or "1, 1, 0, 0" }
//| end
//| local function issue_dots_of_each(held)
//|   if p.d == p.dv then
  $(issue_dots(p.d, held))
//|   else
  if constexpr (COLUMNS == D) {
    $(issue_dots(p.d, held))
  } else {
    $(issue_dots(p.dv, held))
  }
//|   end
//| end
// Issues S^T = K Q^T, or dP^T = V dO^T: 64 rows of one tile with BR of another, both by their places.
template <int COLUMNS>
__device__ __forceinline__ void issue_dots(float (&x)[NS], u32 rows, u32 others) {
//| issue_dots_of_each(false)
}
//| if c.held > 0 then
// The same; rows: 64 that are held in registers.
template <int COLUMNS>
__device__ __forceinline__ void issue_dots(float (&x)[NS], const u32 (&rows)[(COLUMNS + 15) / 16 * 4], u32 others) {
//|   issue_dots_of_each(true)
}
// Takes 64 rows into registers, as an operand: each warp its 16.
template <int N>
__device__ __forceinline__ void hold_rows(u32 (&rows)[N], u32 tile) {
  const int row = threadIdx.x / 32 % 4 * 16 + threadIdx.x % 16, swizzle = ROW == 128 ? row % 8 : ROW == 64 ? row / 2 % 4 : row / 4 % 2;
#pragma unroll
  for (int i = 0; i < N / 4; i++) {
    const int chunk = 2 * i % (BOX / 8) + threadIdx.x % 32 / 16;
    ldmatrix_x4(rows + 4 * i, tile + 16 * i / BOX * 64 * ROW + row * ROW + (chunk ^ swizzle) * 16);
  }
}
//| end
// Issues dV += P^T dO, or dK += dS^T Q.
//| for _, n in ipairs(l.dk == l.dv and { l.dk } or { l.dk, l.dv }) do
//|   local rows, others = {}, {}
//|   for i = 0, c.br // 16 - 1 do
//|     rows[#rows + 1] = asm.four("a", 4 * i)
//|     others[#others + 1] = ('"l"(descriptor<ROW>(others + across_rows(BR * ROW) + %d * 16 * ROW / 16))'):format(i)
//|   end
__device__ __forceinline__ void issue_sums(float (&x)[$(n)], const u32 (&a)[NS / 2], u32 others) {
  $(products { to = "x", n = n, shape = asm.shape(p, n * 2), a = rows, b = others, tail = "1, 1, 1" })
}
//| end
// S^T or dS^T as an operand in registers.
__device__ __forceinline__ void pack_rows(u32 (&a)[NS / 2], const float (&x)[NS]) {
#pragma unroll
  for (int i = 0; i < NS / 2; i++) a[i] = pack2(x[2 * i], x[2 * i + 1]);
}

//| include "wgmma/grad_hopper_scores.cu"
//| if not l.sums then
// dS on its way to memory, out of the registers of an operand, in the order of ds_tile (grad_hopper_common.cu).
struct GradScores {
  char *to;  // where the thread's part of the next tile goes
  // warp: of the warpgroup's four; member: the head's number among those of the launch; block: of BR queries; key_block: of 64.
  __device__ __forceinline__ void begin(const Params &p, int warp, const Unit &unit, int member, int block, int key_block) {
    to = ds_tile(p, unit, member, block * (BR / 64), key_block) + warp * 2048 + threadIdx.x % 32 * 16;
  }
  __device__ __forceinline__ void store(const Params &p, int block, const u32 (&a)[NS / 2]) {
#pragma unroll
    for (int tile = 0; tile < BR / 64; tile++) {
      if (tile > 0 && block * BR + tile * 64 >= p.sq) continue;
#pragma unroll
      for (int i = 16 * tile; i < 16 * tile + 16; i += 4)
        store_global(to + tile * next_tile(p) + i % 16 * 128, a[i], a[i + 1], a[i + 2], a[i + 3]);
    }
    to += BR / 64 * next_tile(p);
  }
};

//| end
//| if l.spread then
//|   include "wgmma/grad_hopper_parts.cu"

//| elseif not l.sums then
//|   include "wgmma/grad_hopper_sums.cu"

//| end
//| if c.twins == 0 then
//|   if l.turns then
// Warpgroups issue dK with S and dP of the next block in turn, so that one multiplies where the other computes P and dS.
__device__ __forceinline__ void turn_wait(int wg) { named_wait(1 + wg, 256); }
__device__ __forceinline__ void turn_pass(int wg) { named_arrive(2 - wg, 256); }
// The first warpgroup begins.
__device__ __forceinline__ void begin_turns(int wg) {
  if (wg == 1) turn_pass(wg);
}
//|   else
__device__ __forceinline__ void turn_wait(int) {}
__device__ __forceinline__ void turn_pass(int) {}
__device__ __forceinline__ void begin_turns(int) {}
//|   end
// What is known of the tile is looked up once more, so that no register holds it beside the products.
//| if l.stored_beside then
// K, V: which of the two.
template <bool K = true, bool V = true>
//| end
__device__ __forceinline__ void store_keys(const Params &p, const float (&dk)[NK], const float (&dv)[NV], const TileQueue &queue, u32 smem,
                                           int wg) {
//| if l.tile_rows then
  const TileRows rows = queue.again(p, smem);
  const KeyTile &tile = rows.tile;
//| else
  const KeyTile tile = key_tile(p, queue.again(p, smem));
//| end
  const Unit &unit = tile.unit;
  const Sequence sequence = $(l.tile_rows and "rows.sequence(p)" or "sequence_of(p, unit.batch)");
  const int key = tile.key0 + wg * 64, keys = sequence.sk() - key;
//| if not (l.sums or l.spread) then
  if (!last_members(p)) {
    leave_sums(p, dk, unit, key, 0);
    leave_sums(p, dv, unit, key, NK);
    return;
  }
//| end
  if (keys <= 0) return;
//| if l.spread then
  leave_part(p, dk, unit, key, 0);
  leave_part(p, dv, unit, key, NK);
//| else
//|   if l.stored_beside then
  if (K)
//|   end
  store_rows<D>(p, dk, $(pr.grad_scale), p.grad_k, sequence.grad_k() + key * p.grad_k_ss + unit.kv_head * p.grad_k_sh, p.grad_k_ss, keys);
//|   if l.stored_beside then
  if (V)
//|   end
  store_rows<DV>(p, dv, $(pr.keep_scale), p.grad_v, sequence.grad_v() + key * p.grad_v_ss + unit.kv_head * p.grad_v_sh, p.grad_v_ss, keys);
//| end
}

//| end
// A warpgroup's products with K and V of a tile are over: those of the next may come.
__device__ __forceinline__ void keys_done(u32 smem, Ring<1> &keys) {
//| if l.persistent then
  // A tile that no query sees has these phases, too: without the waits its arrival and that of the next could both come before the thread
  // that copies waits for the first.
  mbarrier_wait(k_full(smem), keys.parity);
  mbarrier_wait(v_full(smem), keys.parity);
  release(keys_empty(smem));
//| end
  keys.next();
}

//| local blocks = pr.marked and "blocks_of(p, tile.unit, sequence, tile.key0)" or "query_blocks(sequence, tile.key0, KEYS)"
template <typename Consume>
__device__ __forceinline__ void each_tile(const Params &p, u32 smem, const Consume &consume) {
  TileQueue queue;
//| if l.tile_rows then
  TileRows rows;
#pragma unroll 1
  while (queue.next(p, smem, rows)) {
    const KeyTile &tile = rows.tile;
    const Sequence sequence = rows.sequence(p);
//| else
  int index;
#pragma unroll 1
  while (queue.next(p, smem, index)) {
    const KeyTile tile = key_tile(p, index);
    const Sequence sequence = sequence_of(p, tile.unit.batch);
//| end
    consume(queue, tile.unit, sequence, tile.key0, $(blocks));
    queue.done(smem);
  }
}

//| if p.has_lengths then
//|   include "wgmma/grad_hopper_clear.cu"

//| end
//| local single = l.sums and "wgmma/grad_hopper_add.cu" or "wgmma/grad_hopper_single.cu"
//| include(c.twins == 1 and "wgmma/grad_hopper_warpgroup_pair.cu" or single)

extern "C" __global__ void __launch_bounds__(128 * (GROUPS + 1), 1)
    fa_grad_kv(const __grid_constant__ Params p, const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
               const __grid_constant__ TensorMap v_map, const __grid_constant__ TensorMap grad_o_map) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const u32 smem = shared_address(shared);
  const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
//| if p.has_lengths then
  grid_wait();
//|   if not l.persistent then
  if (!has_keys(p, $(wk.block))) return;
//|   end
//| end
  if (threadIdx.x == 0) {
    mbarrier_init(k_full(smem), 1), mbarrier_init(v_full(smem), 1);
//| if l.persistent then
    mbarrier_init(keys_empty(smem), 4 * GROUPS);
//|   wk.begin_slots("4 * GROUPS" .. (p.has_lengths and " + 1" or ""))
//| end
#pragma unroll
    for (int i = 0; i < STAGES; i++) {
      mbarrier_init(q_full(smem, i), 1), mbarrier_init(q_empty(smem, i), 4 * GROUPS);
      mbarrier_init(grad_o_full(smem, i), 1), mbarrier_init(grad_o_empty(smem, i), 4 * GROUPS);
    }
//| if l.sums then
#pragma unroll
    for (int i = 0; i < DS_BUFS; i++)
      mbarrier_init(ds_stored(smem, i), 8), mbarrier_init(ds_full(smem, i), 1), mbarrier_init(ds_empty(smem, i), 8);
    store_shared(smem + SMEM_ENDED, 0u);
//| end
//| if p.has_lengths then
    mbarrier_init(landed(k_full(smem)), 1), mbarrier_init(landed(v_full(smem)), 1);
#pragma unroll
    for (int i = 0; i < STAGES; i++) mbarrier_init(landed(q_full(smem, i)), 1), mbarrier_init(landed(grad_o_full(smem, i)), 1);
//| end
    fence_barrier_init();
  }
  __syncthreads();
  if (warp < 4) {
//| if l.groups > 1 then
    registers_give<$(l.feeder)>();
//| end
//| if l.sums then
    if (warp == 1) {
      if (lane == 0) fence_scores(smem);
      return;
    }
//| end
//| if p.has_lengths then
    if (warp == 2) {
      clear_out_of_range_rows(p, smem, lane);
      return;
    }
//| end
    if (warp == 3) {
      grid_wait();
      if (lane == 0) grid_over();
      return;
    }
    if (warp == 0 && lane == 0) {
      tma_prefetch(q_map), tma_prefetch(k_map), tma_prefetch(v_map), tma_prefetch(grad_o_map);
//| if pr.marked and not p.has_lengths then
      grid_wait();
//| end
      Ring<STAGES> ring;
//| if l.tile_rows then
      give_out_tiles(p, smem, [&](const TileRows &rows, int round) {
        const KeyTile &tile = rows.tile;
        const Sequence sequence = rows.sequence(p);
//| else
      give_out_tiles(p, smem, [&](int index, int round) {
        const KeyTile tile = key_tile(p, index);
        const Sequence sequence = sequence_of(p, tile.unit.batch);
//| end
//| if pr.marked then
        produce_blocks(p, q_map, k_map, v_map, grad_o_map, smem, tile.unit, sequence, tile.key0, ring, round);
//| else
        const QueryBlocks blocks = query_blocks(sequence, tile.key0, KEYS);
        if (blocks.lo <= blocks.hi)
          produce_blocks(p, q_map, k_map, v_map, grad_o_map, smem, tile.unit, sequence, tile.key0, blocks, ring, round);
        else {
          grid_wait();
          skip_keys(smem, round);
        }
//| end
      });
    }
  } else {
//| if l.groups > 1 then
    registers_take<$(l.consumer)>();
//| end
//| if not p.has_lengths then
    grid_wait();
//| end
    consume_tiles(p, smem, warp / 4 - 1, warp % 4);
  }
}
