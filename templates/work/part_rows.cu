//| needs "l.counts l.tma?"
//| local wk = include("work/work.lua").of(p, l)
//| -- How threads hold a tile of O: a warp's rows, the arrays, the warp's first row of the tile out of what `row` is, loops over a thread's
//| -- rows but for the two eight apart, their number, the state of a row, and its columns in blocks of eight.
//| local holds = l.tma and {
//|   rows = "16", o = "[NO]", states = "[2]", first = "row - where.row + __shfl_sync(~0u, threadIdx.x / 32 % 4, 0) * 16",
//|   row = "h * 8 + g", state = "state[h]", v = "n", count = "NO / 4", of = { "o[4 * n + 2 * h]", "o[4 * n + 2 * h + 1]" },
//| } or {
//|   rows = "16 * MB", o = "[MB][VB][4]", states = "[MB][2]", first = "row", loops = "int m = 0; m < MB; m++",
//|   row = "(m * 16 + h * 8 + g)", state = "state[m][h]", v = "v", count = "VB", of = { "o[m][v][2 * h]", "o[m][v][2 * h + 1]" },
//| }
// ---- how a warp's rows of one part of a split tile leave ----
constexpr int ROWS_WARP = $(holds.rows);

//| include "work/split_tile.cu"

// row: $(l.tma and "the warpgroup's first, of the sequence" or "the warp's first, of the tile").
__device__ __forceinline__ void store_part(const Params &p, const Tile &where, const Sequence &sequence, const float (&o)$(holds.o),
                                           const RowState (&state)$(holds.states), int row) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int first = $(holds.first), rows = min(ROWS_WARP, row_count(p, sequence) - where.row - first);
  if (rows <= 0) return;
//| if holds.loops then
#pragma unroll
  for ($(holds.loops))
//| end
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const float l = quad_sum($(holds.state).l);
    if ($(holds.row) >= rows) continue;
//| indented(4, wk.leave_row, "first + " .. holds.row, holds.state, holds.v, holds.count, holds.of)
  }
//| if l.counts then
  part_is_left(p, sequence, where, first / ROWS_WARP, first, rows);
//| end
}
