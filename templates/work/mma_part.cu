//| needs "l.counts"
//| local wk = include("work/work.lua").of(p, l)
// ---- how a warp's rows of one part of a split tile leave ----
constexpr int ROWS_WARP = 16 * MB;

//| include "work/split_tile.cu"

__device__ __forceinline__ void store_part(const Params &p, const Sequence &sequence, const Tile &where, const float (&o)[MB][VB][4],
                                           const RowState (&state)[MB][2], int g, int t) {
  const int warp = threadIdx.x / 32, first = warp * ROWS_WARP, rows = min(ROWS_WARP, row_count(p, sequence) - where.row - first);
  if (rows <= 0) return;
#pragma unroll
  for (int m = 0; m < MB; m++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const float l = quad_sum(state[m][h].l);
      const int row = m * 16 + h * 8 + g;
      if (row >= rows) continue;
//| indented(6, wk.leave_row, "first + row", "state[m][h]", "v", "VB", { "o[m][v][2 * h]", "o[m][v][2 * h + 1]" })
    }
//| if l.counts then
  part_is_left(p, sequence, where, warp, first, rows);
//| end
}
