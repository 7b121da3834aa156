//| -- queue: where blocks stay, one thread or warp finds the tiles of a block, and publishes each in one of two slots of shared memory. The
//| -- first that is no tile ends them. Warps take a tile, look at it again where no register is to hold it, and are done with it. A block
//| -- of one tile has a queue of the same form, so that kernels are written once.
//|
//| return function(wk)
//|   -- The mbarriers and the bytes of a slot. first: number of the first barrier, from TILE_BARRIERS on.
//|   function wk.slots(first, bytes)
//|     local function at(n) return n > 0 and ("TILE_BARRIERS + %d"):format(n) or "TILE_BARRIERS" end
__device__ __forceinline__ u32 tile_full(u32 smem, int slot) { return barrier(smem, $(at(first)) + slot); }
__device__ __forceinline__ u32 tile_empty(u32 smem, int slot) { return barrier(smem, $(at(first + 2)) + slot); }
__device__ __forceinline__ u32 tile_slot(u32 smem, int slot) { return smem + SMEM_SLOTS + slot * $(bytes); }
//|   end
//|   -- takers: warps, or threads alone, that are done with each tile. lanes: a warp does it, else one thread.
//|   function wk.begin_slots(takers, lanes)
//|     if lanes then
    if (lane < 2) mbarrier_init(tile_full(smem, lane), 1), mbarrier_init(tile_empty(smem, lane), $(takers));
//|     else
#pragma unroll
    for (int i = 0; i < 2; i++) mbarrier_init(tile_full(smem, i), 1), mbarrier_init(tile_empty(smem, i), $(takers));
//|     end
//|   end
//|
//|   -- What takes a tile. o.type: of a tile; o.is: the condition that it is one; o.load(): prints what returns the one of the slot, or
//|   -- o.own: the one of the block's number, which o.first gives without a branch where there is one; o.more(): what else there is to ask
//|   -- of a tile.
//|   function wk.queue(o)
//|     if o.own then
struct TileQueue {
  bool first = true;
  __device__ __forceinline__ bool next(const Params &p, u32 smem, $(o.type) &tile) {
//|       if o.first then
    tile = $(o.first);
    const bool here = first;
    first = false;
    return here;
//|       else
    if (!first) return false;
    first = false;
    tile = again(p, smem);
    return true;
//|       end
  }
  __device__ __forceinline__ $(o.type) again(const Params &p, u32) const {
//|       o.own()
  }
//|       if o.more then o.more() end
  __device__ __forceinline__ void done(u32, bool = true) {}
};
//|     else
struct TileQueue {
  Ring<2> slot;
  // False at the end.
  __device__ __forceinline__ bool next(const Params &p, u32 smem, $(o.type) &tile) {
    mbarrier_wait(tile_full(smem, slot.at), slot.parity);
    tile = again(p, smem);
    return $(o.is);
  }
  // The tile at hand, so that no warp must keep it in registers.
  __device__ __forceinline__ $(o.type) again(const Params &, u32 smem) const {
//|       o.load()
  }
//|       if o.more then o.more() end
  // This warp, or this thread alone, no longer needs the tile.
  __device__ __forceinline__ void done(u32 smem, bool whole_warp = true) {
    if (whole_warp) __syncwarp();
    if (!whole_warp || threadIdx.x % 32 == 0) mbarrier_arrive(tile_empty(smem, slot.at));
    slot.next();
  }
};
//|     end
//|   end
//| end
