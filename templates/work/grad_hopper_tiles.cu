//| needs "l.persistent l.tile_rows?"
//| local wk = include("work/work.lua").of(p, l)
//| if l.persistent then
// ---- which tiles of keys this block does: it stays, and draws the next ----
// The thread that copies draws a tile when all of the one before is on its way, and publishes it in one of two slots; -1 ends them. So the
// first Q and dO of a tile come while the one before ends, and K and V while its gradients are stored.
__device__ __forceinline__ u32 keys_empty(u32 smem) { return barrier(smem, TILE_BARRIERS); }
//| wk.slots(1, l.tile_rows and 32 or 4)

__device__ __forceinline__ int tiles_of_launch(const Params &p) { return p.total; }

//| if p.has_lengths then
__device__ __forceinline__ bool has_keys(const Params &p, int tile);
//| end
// There is one draw for each tile: the last of all puts the counter back to 0 for the next launch.
template <typename Produce>
__device__ __forceinline__ void give_out_tiles(const Params &p, u32 smem, const Produce &produce) {
//| local number = l.tile_rows and "const TileRows &rows" or "int tile"
  auto publish = [&]($(number), int round) {
    mbarrier_wait(tile_empty(smem, round % 2), ~round >> 1 & 1);
//| if l.tile_rows then
    const u32 to = tile_slot(smem, round % 2);
    store_shared(to, make_uint4((u32)rows.tile.unit.batch, (u32)rows.tile.unit.kv_head, (u32)rows.tile.key0, 0));
    store_shared(to + 16, make_uint4((u32)rows.q.first, (u32)rows.q.length, (u32)rows.k.first, (u32)rows.k.length));
//| else
    store_shared(tile_slot(smem, round % 2), (u32)tile);
//| end
    mbarrier_arrive(tile_full(smem, round % 2));
  };
  int round = 0;
#pragma unroll 1
//| wk.each("drawn", { thread = true, number = "tile", total = "p.total", step = p.has_lengths and "" or ", round++" }, function()
//|   if p.has_lengths then
    if (!has_keys(p, tile)) continue;  // past the sequence's last: no warp hears of it
//|   end
//|   if l.tile_rows then
    const TileRows rows = tile_rows_of(p, tile);
    publish(rows, round);
    produce(rows, round++);
//|   else
    publish(tile, round);
    produce(tile, round$(p.has_lengths and "++" or ""));
//|   end
//| end)
  publish($(l.tile_rows and "TileRows{{{0, 0, 0}, -1}, {0, 0}, {0, 0}}" or "-1"), round);
}
// Until K and V of the tile before are read. Both barriers have a phase for each tile: where nothing is loaded, an arrival alone ends it.
__device__ __forceinline__ void wait_for_keys(u32 smem, int round) { mbarrier_wait(keys_empty(smem), ~round & 1); }
__device__ __forceinline__ void skip_keys(u32 smem, int round) {
  wait_for_keys(smem, round);
  mbarrier_arrive(k_full(smem)), mbarrier_arrive(v_full(smem));
}

//| if l.tile_rows then
//|   wk.queue { type = "TileRows", is = "tile.tile.key0 >= 0", load = function()
    const u32 from = tile_slot(smem, slot.at);
    const uint4 x = load_shared_x4(from), y = load_shared_x4(from + 16);
    return {{{(int)x.y, (int)x.x, (int)x.y}, (int)x.z}, {(int)y.x, (int)y.y}, {(int)y.z, (int)y.w}};
//|   end }
//| else
//|   wk.queue { type = "int", is = "tile >= 0", load = function()
    return (int)load_shared(tile_slot(smem, slot.at));
//|   end }
//| end
//| else
// ---- which tile of keys this block does: the one of its number ----
__device__ __forceinline__ int tiles_of_launch(const Params &) { return $(wk.blocks); }

template <typename Produce>
__device__ __forceinline__ void give_out_tiles(const Params &, u32, const Produce &produce) { produce($(wk.block), 0); }
__device__ __forceinline__ void wait_for_keys(u32, int) {}
__device__ __forceinline__ void skip_keys(u32, int) {}

//| wk.queue { type = "int", first = wk.block, own = function()
    int block;  // read again, so that no register holds it
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    return block;
//| end }
//| end
