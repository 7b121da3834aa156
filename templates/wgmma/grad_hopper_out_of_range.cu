//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- out-of-range rows: those of other sequences, and those that no pair uses ----
// The last box of a sequence may reach rows that are not its own, and with a mask boxes reach queries that see no key, and keys that no
// query sees: whatever lies there, NaN too, has no part in the result. P and dS of such pairs become 0, but 0 * NaN in a product is NaN.
// So such boxes land at a barrier of their own, and one warp writes zeros over those rows before their buffer counts as full.

//| pr.own_rows()

//| include "tiles/clear_rows.cu"

//| pr.own_queries()
//| pr.has_own_keys()

// Zeros to rows of ROWS before `first` and from `end` on, which may lie outside of them.
template <int ROWS, int N>
__device__ __forceinline__ void clear_outside(u32 tile, int first, int end, int lane) {
  clear_rows<ROWS, N>(tile, 0, min(first, ROWS), lane);
  clear_rows<ROWS, N>(tile, max(end, 0), ROWS, lane);
}
// The products see the zeros of the warp: the buffer counts as full.
__device__ __forceinline__ void hand_on(u32 full, int lane) {
  fence_async();
  __syncwarp();
  if (lane == 0) mbarrier_arrive(full);
}
