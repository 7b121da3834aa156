//| needs "c.cluster c.grid l.ahead l.merges? l.near? l.parts? l.persistent l.pieces? l.published l.ranges l.shared? l.slot l.slots"
//| needs "l.placed? l.draw_barriers? l.in_chunks? l.ordered? l.runs? l.reverses? l.split? l.walks?"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
//| if l.persistent then
constexpr int TILE_BARRIERS = 2 * (STAGES_K + STAGES_V + Q_BUFS * WGS), SMEM_SLOTS = $(l.slots);
//| end

//| local blocks, block = wk.blocks, wk.block
//| if c.cluster > 1 then
//|   blocks, block = wk.blocks .. " / CLUSTER", wk.block .. " / CLUSTER"
//| end
//| local of_tile = c.cluster > 1 and not l.near and "((int)cluster_rank() * WGS + wg)" or "wg"
// First row of a warpgroup's 64 in the tile.
//| if l.reverses then
// Tiles take slots in turn, and in every other one warpgroups have their rows from the last to the first: who sees keys first, and most,
// is the one that was soonest through with the tile before.
__device__ __forceinline__ int row_in_tile(int wg, int slot) { return (slot == 0 ? wg : WGS - 1 - wg) * 64; }
//| else
__device__ __forceinline__ int row_in_tile(int wg) { return $(of_tile) * 64; }
//| end

//| include "tiles/ring.cu"

// ---- which tiles this block does, in order, and what of each ----
//| pr.key_range_of()

//| if not l.persistent then
//|   local function own()
    return tile_of(p, $(block));
//|   end
//|   local function more()
  __device__ __forceinline__ KeyRange keys(const Params &p, u32 smem, int wg) { return key_range_of(p, again(p, smem), wg); }
//|   end
//|   wk.queue { type = "Tile", own = own, more = more }
//| else
// One warp is the tile scheduler. When K of a tile's last block is on its way it finds the next tile, no sooner, so that no block sits on
// tiles that others could begin, and publishes it in one of two slots$(l.published and ", a lane for each warpgroup" or "").
// A row of -1 ends it.
//| if p.has_lengths then
// Lengths and first rows of the tile's sequence are published with it: no other warp reads them in global memory.
//| end
//| if p.has_lengths or l.draw_barriers or pr.walks and not pr.scans then
//|   local few = l.walks and ", and a score program's mask may leave few" or l.draw_barriers and ", as the draw of a cluster does" or ""
// The search takes as long as some blocks of keys$(few): it begins when K of this one is on its way.
__device__ __forceinline__ int search_block(const KeyRange &keys) { return min(keys.loaded_lo + $(l.reverses and 5 or 2), keys.loaded_hi); }
//| end
//| wk.slots(0, l.slot)
__device__ __forceinline__ u32 tile_loaded(u32 smem) { return barrier(smem, TILE_BARRIERS + 4); }
//|   if p.has_lengths then
//|     if l.split then
// Boxes with rows out of the sequence's range land here, and `full` is completed when those rows are zeros.
//|     else
// Boxes with rows out of the sequence's range land here, and `full` is completed when those rows are zeros. Q of a tile may
// land for one warpgroup while another one's of the tile before is still on its way: a warpgroup without rows waits for nothing.
//|     end
__device__ __forceinline__ u32 v_landed(u32 smem, int stage) { return barrier(smem, TILE_BARRIERS + 5 + stage); }
//|     if not l.split then
__device__ __forceinline__ u32 q_landed(u32 smem, int buffer, int wg) {
  return barrier(smem, TILE_BARRIERS + 5 + STAGES_V + buffer * WGS + wg);
}
//|     end
//|   end

//|   local function load()
    const uint4 published = load_shared_x4(tile_slot(smem, slot.at));
//|     if l.parts then
    const uint4 part = load_shared_x4(tile_slot(smem, slot.at) + $(l.ranges - 16));
//|       if l.placed then
    return {(int)published.x, (int)published.y, (int)published.z, (int)published.w, (int)part.x, (int)part.y, (int)part.z, (int)part.w};
//|       else
    return {(int)published.x, (int)published.y, (int)published.z, (int)published.w, (int)part.x, (int)part.y, (int)part.z};
//|       end
//|     else
//|       if l.runs then
    return {(int)published.x, (int)published.y, (int)published.z, (int)published.w, 0, 0};
//|       elseif l.in_chunks then
    return {(int)published.x, (int)published.y, (int)published.z, (int)published.w, 0};
//|       elseif l.pieces then
    return {(int)published.x & ~63, (int)published.y, (int)published.z, (int)published.w, (int)published.x & 63};
//|       else
    return {(int)published.x, (int)published.y, (int)published.z, (int)published.w};
//|       end
//|     end
//|   end
//|   local function more()
//|     if l.ahead then
  // The tile after the one at hand.
  __device__ __forceinline__ bool peek(const Params &p, u32 smem, int wg, KeyRange &keys) {
    TileQueue after = *this;
    Tile where;
    after.slot.next();
    const bool there = after.next(p, smem, where);
    if (there) keys = after.keys(p, smem, wg);
    return there;
  }
//|     end
//|     if l.runs then
  // Where the tile's rows end; the first key of its block 0; its number among those of a sequence.
  __device__ __forceinline__ int upto(u32 smem) const { return (int)load_shared(tile_slot(smem, slot.at) + $(l.slot - 16)); }
  __device__ __forceinline__ int from(u32 smem) const { return (int)load_shared(tile_slot(smem, slot.at) + $(l.slot - 12)); }
  __device__ __forceinline__ int number(u32 smem) const { return (int)load_shared(tile_slot(smem, slot.at) + $(l.slot - 8)); }
//|     end
//|     if p.has_lengths then
  // And its sequence.
  __device__ __forceinline__ Sequence sequence(const Params &p, u32 smem) {
    const u32 slot = tile_slot(smem, this->slot.at);
    const uint4 rows = load_shared_x4(slot + 16);
    const int index = load_shared(slot + 12);
//|       if pr.right then
    const uint4 diagonals = load_shared_x4(slot + 32);
    return {p, index, (int)rows.x, (int)rows.y, (int)rows.z, (int)rows.w, (int)diagonals.x, (int)diagonals.y};
//|       else
    return {p, index, (int)rows.x, (int)rows.y, (int)rows.z, (int)rows.w};
//|       end
  }
//|     end
//|     if l.published then
  __device__ __forceinline__ KeyRange keys(const Params &, u32 smem, int wg) {
    const u32 slot = tile_slot(smem, this->slot.at);
//|       if pr.masks then
    const uint4 loaded = load_shared_x4(slot + $(l.ranges));
    return {(int)loaded.x, (int)loaded.y, 0, 0, 0, 0};  // what each warpgroup sees is told beside each block
//|       else
    const uint4 loaded = load_shared_x4(slot + $(l.ranges)), own = load_shared_x4(slot + $(l.ranges + 16) + wg * 16);
    return {(int)loaded.x, (int)loaded.y, (int)own.x, (int)own.y, (int)own.z, (int)own.w};
//|       end
  }
//|     else
  __device__ __forceinline__ KeyRange keys(const Params &p, u32 smem, int wg) { return key_range_of(p, again(p, smem), wg); }
//|     end
//|   end
//|   wk.queue { type = "Tile", is = "tile.row >= 0", load = load, more = more }

//|   if l.draw_barriers then
//|     include "work/cluster_draw.cu"

//|   end
__device__ __forceinline__ void schedule_tiles(const Params &p, u32 smem, int lane) {
  Ring<2> slot;
//|   local function publish_tile()
//|     local row = l.pieces and "where.row | where.warpgroups" or "where.row"
      store_shared(to, make_uint4($(row), where.kv_head, where.head, (u32)where.batch));
//|     if l.parts then
//|       if l.placed then
      store_shared(to + $(l.ranges - 16), make_uint4(where.number, where.part, where.parts, where.place));
//|       else
      store_shared(to + $(l.ranges - 16), make_uint4(where.number, where.part, where.parts, 0));
//|       end
//|     end
//|   end
//|   local function publish_sequence()
        store_shared(to + 16, make_uint4(sequence.first_q, sequence.first_k, sequence.length_q, sequence.length_k));
//|     if pr.right then
        store_shared(to + 32, make_uint4(sequence.diagonal_lo, sequence.diagonal_hi, 0, 0));
//|     end
//|   end
//|   -- The ends of what is loaded: the first block that the program's mask leaves, or none, and one before which it leaves none. Then all
//|   -- blocks are looked at beside the tile before, and those who load find few that hide all.
//|   local function find_ends(waits)
//|     if not pr.scans then return end
      const int end = min(where.row + BR, row_count(p, sequence)) - 1;
      const BlockEnds ends = ends_of_blocks(
          keys.loaded_lo, keys.loaded_hi,
          [&](int block, int blocks) { return class_of_rows(p, sequence, where.head, where.row, end, block, blocks); },
          [&](int hi, int lo) {
            const int code = MaskBlocks(hi, lo).next(
                [&](int block) { return class_of_rows(p, sequence, where.head, where.row, end, block); });
            return code < 0 ? -1 : code >> 1;
          });
//|     if waits then
      $(waits)
//|     end
//|   end
//|   local loaded_hi = pr.scans and "ends.hi" or "keys.loaded_hi"
//|   local loaded_lo = pr.scans and "ends.lo" or "keys.loaded_lo"
//|   local first = pr.scans and "ends.hi < ends.lo ? 0 : keys.first" or "keys.first"  -- nothing passes where nothing is loaded
//|   -- With a scan all lanes are needed.
//|   local some, own, wg = " && lane < WGS", "", "lane"
//|   if pr.scans then some, own, wg = "", "if (lane < WGS) ", "min(lane, WGS - 1)" end
//|   if l.near then
  auto publish = [&](Tile where) {
    where.part = (int)cluster_rank(), where.parts = CLUSTER;
//|   else
  auto publish = [&](const Tile &where$(l.runs and ", int from" or "")) {
//|   end
    const u32 to = tile_slot(smem, slot.at);
//|   local early = l.split and p.has_lengths or l.walks  -- registers are few where ranges are found
//|   local late = pr.scans and not early  -- blocks are looked at before the wait
//|   local wait = "mbarrier_wait(tile_empty(smem, slot.at), slot.parity ^ 1);"
    $(late and "if (where.row < 0) " or "")$(wait)
//|   if early then
    if (lane == 0) {
//|     publish_tile()
//|     if l.merges and not l.shared then
      leave_place(p, where);
//|     end
    }
//|   end
//|   if p.has_lengths then
    if (where.row >= 0$(some)) {
      const Sequence sequence = sequence_of(p, where.batch);
//|     if early then
      if (lane == 0) {
//|       publish_sequence()
//|       if l.merges and l.shared then
        leave_place(p, where, row_count(p, sequence) - where.row);
//|       end
      }
//|     end
      const KeyRange keys = key_range_of(p, sequence, where, $(wg));
//|     find_ends(late and wait)
      if (lane == 0) {
//|     if not early then publish_sequence() end
        store_shared(to + $(l.ranges), make_uint4($(loaded_hi), $(loaded_lo), 0, 0));
      }
      $(own)store_shared(to + $(l.ranges + 16) + lane * 16, make_uint4($(first), keys.last, keys.full_lo, keys.full_hi));
    }
    __syncwarp();
//|   elseif pr.masks then
    if (where.row >= 0) {
      const BlockEnds ends = ends_of_lines(p, sequence_of(p, where.batch), where);
      $(wait)
      if (lane == 0) {
        store_shared(to + $(l.ranges), make_uint4(ends.hi, ends.lo, 0, 0));
//|     if l.runs then
        store_shared(to + $(l.slot - 16), make_uint4(where.upto, from, where.number, 0));
//|     end
      }
    }
//|   elseif l.published then
    if (where.row >= 0$(some)) {
      const KeyRange keys = key_range_of(p, where, $(wg)$(l.reverses and ", slot.at" or ""));
//|     if pr.scans then
      const Sequence sequence = sequence_of(p, where.batch);
//|     end
//|     find_ends(late and wait)
      if (lane == 0) store_shared(to + $(l.ranges), make_uint4($(loaded_hi), $(loaded_lo), 0, 0));
      $(own)store_shared(to + $(l.ranges + 16) + lane * 16, make_uint4($(first), keys.last, keys.full_lo, keys.full_hi));
    }
    __syncwarp();
//|   end
    if (lane == 0) {
//|   if not early then publish_tile() end
      mbarrier_arrive(tile_full(smem, slot.at));
    }
    slot.next();
  };
  Ring<1> loaded;
  auto wait_loaded = [&] {
    mbarrier_wait(tile_loaded(smem), loaded.parity);
    loaded.next();
  };
//|   if p.has_lengths then
//|     if l.shared then
  // What the search reads, and the pages of first blocks: keys of a launch before have driven out what it had read. A prefetch reads no
  // byte: earlier work in the CUDA stream may still write them.
  keep_lengths_in_l2(p);
//|       if p.has_pages then
  const int lines = ((p.sk + p.page_size - 1) / p.page_size + 31) / 32;  // of a row of the table
  for ($(wk.steps("int", "i", "p.b * lines", "32", "lane")))
    keep_in_l2(p.page_table + (long long)(i / lines) * p.page_table_stride + i % lines * 32);
//|       end
//|     end
  grid_wait();
  TileOrder order(p, smem);
//|   elseif pr.has_mask and not l.split then
  grid_wait();  // ranges are found of what the program reads
//|   end
//|   local total, tile = "p.total", l.ordered and "tile_of(p, ordered_tile(p, tile))" or "tile_of(p, tile)"
//|   if l.pieces then
//|     total, tile = "pieces.total(p)", "pieces.tile(p, tile)"
  const Pieces pieces = pieces_of_launch(p);
//|   end
//|   if l.split and not p.has_lengths then
//|     total, tile = "parts.total()", "tile_of(p, parts, tile)"
  grid_wait();
  const Parts parts = parts_of_launch(p);
//|   end
//|   if l.in_chunks then
//|     total, tile = "chunks.total(p)", "chunks.tile(p, tile)"
  const ChunkTiles chunks = chunk_tiles_of(p);
//|   end
//|   if l.runs then
//|     total = "total"
  // What finds the first tile's blocks of keys is fetched beside the numbers of tiles: it waits for no other.
  int from_of_first = 0;
  const Tile first = tile_of(p, (int)$(block), from_of_first);
  const u32 seen_first = mask_line(p, sequence_of(p, first.batch), first.number)[min(lane, WGS * line_words(p) - 1)].x;
  // As many for each head as the sequence with the most tiles has.
  int most = 0;
  for (int i = lane; i < $(p.score.marks_by_b and "p.b" or "1"); i += 32) most = max(most, run_tiles(p, i));
  asm volatile("" ::"r"(first.row), "r"(seen_first));
  const int total = (int)__reduce_max_sync(~0u, most) * $(wk.heads(false)) * p.b;
//|   end
//|   local way = wk.ways[c.grid]
//|   if p.has_lengths and way == "rounds" then
  // The next is found while the keys of the one before are loaded.
//|     local of_clusters = c.cluster > 1 and { cast = "(int)", block = "(" .. block .. ")", blocks = "(" .. blocks .. ")" }
//|     wk.each(way, of_clusters or { cast = "(int)" }, function(number)
    const Tile where = order.tile($(number));
    if (round > 0) wait_loaded();
    if (where.row < 0) break;
    publish(where);
//|     end)
//|   else
//|     if p.has_lengths then total, tile = "order.total()", "order.tile(tile)" end
//|     local wait = not p.has_lengths and not l.split and "grid_wait()"
//|     wk.each(way, { number = "tile", total = total, block = block, blocks = blocks, wait = wait, cluster = l.draw_barriers }, function()
//|       if l.walks then
    // Of a tile that is walked every part is one. The tile is read where it was published: no register holds it.
#pragma unroll 1
    for (int done = 0, all = 1; done < all; done++) {
      TileQueue published;
      published.slot.at = slot.at ^ 1;
      Tile where = done == 0 ? $(tile) : published.again(p, smem);
      where.part += done > 0;
      all = where.is_walked() ? where.parts : 1;
      publish(where);
      __syncwarp();
      wait_loaded();
    }
//|       else
//|         if l.runs then
    int from = 0;
    const Tile next = tile_of(p, tile, from);
    if (next.row >= 0) {
      publish(next, from);
      wait_loaded();
    }
//|         else
    publish($(tile));
    wait_loaded();
//|         end
//|       end
//|     end)
//|   end
  grid_over();
  publish({-1, 0, 0, 0$(l.pieces and ", 0" or l.in_chunks and ", 0" or l.runs and ", 0, 0" or "")}$(l.runs and ", 0" or ""));
}
//| end
