//| needs "l.counts"
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
      const long long at = part_row(where, first + row);
      if (t == 0) ((float2 *)p.part_state)[at] = make_float2(state[m][h].m, l);
      float *const to = (float *)p.part_o + at * COLS;
#pragma unroll
      for (int v = 0; v < VB; v++) *(float2 *)(to + v * 8 + 2 * t) = make_float2(o[m][v][2 * h], o[m][v][2 * h + 1]);
    }
//| if l.counts then
  part_is_left(p, sequence, where, warp, first, rows);
//| end
}
