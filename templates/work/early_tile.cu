//| needs "c.cluster c.grid l.merges? l.near? l.run?"
//| local wk = include("work/work.lua").of(p, l)
//| local block = c.cluster > 1 and "(int)(" .. wk.block .. " / CLUSTER)" or "(int)" .. wk.block
// ---- a block's first tile, found while the launch before ends ----
//| if p.has_pages then
// The first keys of a tile are asked for in the L2, where later writes find them; wrong ones cost their transfer alone.
__device__ __forceinline__ void fetch_first_keys(const Params &p, const TensorMap &map, const Tile &where, int lane) {
  constexpr int RUN = $(l.run), RUNS = BC / RUN;  // keys that certainly lie in one page
  if (where.row < 0) return;
  const Sequence sequence = sequence_of<true>(p, where.batch);
  const KeyRange keys = key_range_of(p, sequence, where, 0);
#pragma unroll 1
  for (int i = lane; i < STAGES_K * RUNS; i += 32) {
    const int block = keys.loaded_hi - i / RUNS, key = block * BC + i % RUNS * RUN;
    if (block < keys.loaded_lo || key >= sequence.sk()) continue;
    const int entry = key / p.page_size;
    const u32 page = word<true>(p.page_table + where.batch * p.page_table_stride + entry);
    if (page >= (u32)p.pages) continue;
#pragma unroll 1
    for (int box = 0; box < BOXES; box++) tma_load_l2(map, box * BOX, key - entry * p.page_size, where.kv_head, (int)page);
  }
}

//| end
// Waits for what precedes it in the CUDA stream, and finds the first tile. Most often lengths were written long before: it is found from what
// they seem to be$(p.has_pages and ", its keys by what entries of the page table seem to be," or "") while the launch before ends, and again where they have changed.
__device__ __forceinline__ Tile first_tile(const Params &p, TileOrder &order$(p.has_pages and ", const TensorMap &map" or ""), int lane) {
  bool waited = p.b > 32;
  if (waited) grid_wait();
  Levels held = waited ? Levels{0, 0} : order.levels_of<true>(lane);
  Tile first;
#pragma unroll 1
  while (true) {
    order.count(held);
    first = order.tile($(block));
//| if l.near then
    first.part = (int)cluster_rank(), first.parts = CLUSTER;
//| end
    if (waited) break;
//| if p.has_pages then
    fetch_first_keys(p, map, first, lane);
    __syncwarp();
//| end
    grid_wait();
    waited = true;
    held = order.levels_of(lane);
    const Levels seen = order.own().levels;
    if (__all_sync(~0u, held.lowest == seen.lowest && held.tiles == seen.tiles)) break;
  }
  return first;
}
