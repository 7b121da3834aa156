// ---- tiles of the rows of all sequences side by side ----
// Sequence i begins at tile (first + i (ROWS - 1)) / ROWS, where `first` counts the rows before it: a sequence has room for all its tiles,
// and there are but few that are of none.
struct RowTile {
  int sequence, tile;
};
template <int ROWS>
__device__ __forceinline__ int first_row_tile(const Params &p, int index) {
  const long long first = p.cu_seqlens_q != nullptr ? min(max(p.cu_seqlens_q[index], 0), p.total_q) : (long long)index * p.sq;
  return (int)((first + (long long)index * (ROWS - 1)) / ROWS);
}
// To be called by whole warps. One of no sequence lies before or behind all rows of one.
template <int ROWS>
__device__ __forceinline__ RowTile row_tile(const Params &p, int number) {
  const int lane = threadIdx.x % 32;
  int before = 0, begin = 0;  // of the last sequence that begins up to here
  for (int base = 0; base < p.b; base += 32) {
    const int first = base + lane < p.b ? first_row_tile<ROWS>(p, base + lane) : 0x7fffffff;
    const int count = __popc(__ballot_sync(~0u, first <= number));
    if (count > 0) before = base + count - 1, begin = __shfl_sync(~0u, first, count - 1);
    if (count < 32) break;
  }
  return {before, number - begin};
}
