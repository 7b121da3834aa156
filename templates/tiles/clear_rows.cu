// Zeros to rows [first, end) of boxes of ROWS rows, by a warp. The swizzle leaves each row in its place.
template <int ROWS, int N>
__device__ __forceinline__ void clear_rows(u32 tile, int first, int end, int lane) {
#pragma unroll 1
  for (int box = 0; box < N; box++)
#pragma unroll 1
    for (int at = first * ROW + lane * 16; at < end * ROW; at += 32 * 16)
      store_shared(tile + box * ROWS * ROW + at, make_uint4(0, 0, 0, 0));
}
