//| needs "l.counts l.pack?"
//| local wk = include("work/work.lua").of(p, l)
// ---- how a warp's rows of one part of a split tile leave ----
constexpr int ROWS_WARP = 16;

//| include "work/split_tile.cu"

//| local all = l.pack == 1 and "row_count(p, sequence)" or "sequence.sq()"
// row: the warpgroup's first.
__device__ __forceinline__ void store_part(const Params &p, const Tile &where, const Sequence &sequence, const float (&o)[NO],
                                           const RowState (&state)[2], int row) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int first = row - where.row + __shfl_sync(~0u, threadIdx.x / 32 % 4, 0) * 16, rows = min(16, $(all) - where.row - first);
  if (rows <= 0) return;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const float l = quad_sum(state[h].l);
    if (h * 8 + g >= rows) continue;
//| indented(4, wk.leave_row, "first + h * 8 + g", "state[h]", "n", "NO / 4", { "o[4 * n + 2 * h]", "o[4 * n + 2 * h + 1]" })
  }
//| if l.counts then
  part_is_left(p, sequence, where, first / 16, first, rows);
//| end
}
