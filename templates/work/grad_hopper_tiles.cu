//| needs "l.persistent"
//| local wk = include("work/work.lua").of(p, l)
//| if l.persistent then
// ---- which tiles of keys this block does: it stays, and draws the next ----
// The thread that copies draws a tile when all of the one before is on its way, and publishes it in one of two slots; -1 ends them. So the
// first Q and dO of a tile come while the one before ends, and K and V while its gradients are stored.
__device__ __forceinline__ u32 keys_empty(u32 smem) { return barrier(smem, TILE_BARRIERS); }
__device__ __forceinline__ u32 tile_full(u32 smem, int slot) { return barrier(smem, TILE_BARRIERS + 1 + slot); }
__device__ __forceinline__ u32 tile_empty(u32 smem, int slot) { return barrier(smem, TILE_BARRIERS + 3 + slot); }
__device__ __forceinline__ u32 tile_slot(u32 smem, int slot) { return smem + SMEM_SLOTS + slot * 4; }

__device__ __forceinline__ int tiles_of_launch(const Params &p) { return p.total; }

//| if p.has_lengths then
__device__ __forceinline__ bool has_keys(const Params &p, int tile);
//| end
// There is one draw for each tile: the last of all puts the counter back to 0 for the next launch.
template <typename Produce>
__device__ __forceinline__ void give_out_tiles(const Params &p, u32 smem, const Produce &produce) {
  auto publish = [&](int tile, int round) {
    mbarrier_wait(tile_empty(smem, round % 2), ~round >> 1 & 1);
    store_shared(tile_slot(smem, round % 2), (u32)tile);
    mbarrier_arrive(tile_full(smem, round % 2));
  };
  int round = 0;
#pragma unroll 1
//| local next_round = p.has_lengths and "" or ", round++"
  for (int tile = blockIdx.x; tile < p.total; tile = gridDim.x + $(wk.drawn("p.total"))$(next_round)) {
//| if p.has_lengths then
    if (!has_keys(p, tile)) continue;  // past the sequence's last: no warp hears of it
//| end
    publish(tile, round);
    produce(tile, round$(p.has_lengths and "++" or ""));
  }
  publish(-1, round);
}
// Until K and V of the tile before are read. Both barriers have a phase for each tile: where nothing is loaded, an arrival alone ends it.
__device__ __forceinline__ void wait_for_keys(u32 smem, int round) { mbarrier_wait(keys_empty(smem), ~round & 1); }
__device__ __forceinline__ void skip_keys(u32 smem, int round) {
  wait_for_keys(smem, round);
  mbarrier_arrive(k_full(smem)), mbarrier_arrive(v_full(smem));
}

struct TileQueue {
  Ring<2> slot;
  // False at the end.
  __device__ __forceinline__ bool next(u32 smem, int &tile) {
    mbarrier_wait(tile_full(smem, slot.at), slot.parity);
    tile = again(smem);
    return tile >= 0;
  }
  // The tile at hand.
  __device__ __forceinline__ int again(u32 smem) const { return (int)load_shared(tile_slot(smem, slot.at)); }
  // This warp needs it no more.
  __device__ __forceinline__ void done(u32 smem) {
    release(tile_empty(smem, slot.at));
    slot.next();
  }
};
//| else
// ---- which tile of keys this block does: the one of its number ----
__device__ __forceinline__ int tiles_of_launch(const Params &) { return gridDim.x; }

template <typename Produce>
__device__ __forceinline__ void give_out_tiles(const Params &, u32, const Produce &produce) { produce(blockIdx.x, 0); }
__device__ __forceinline__ void wait_for_keys(u32, int) {}
__device__ __forceinline__ void skip_keys(u32, int) {}

struct TileQueue {
  bool first = true;
  __device__ __forceinline__ bool next(u32, int &tile) {
    tile = blockIdx.x;
    const bool here = first;
    first = false;
    return here;
  }
  __device__ __forceinline__ int again(u32) const {
    int block;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    return block;
  }
  __device__ __forceinline__ void done(u32) {}
};
//| end
