//| needs "c.rescale? l.counts l.even_rows? l.half_parts? l.once? l.shared? l.tma? l.turned? l.walks?"
//| local returns = l.once and "u32" or "void"  -- which rows are computed again
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
//| if l.turned then  -- of 16 columns the even ones come first, as products of V transposed leave them: a thread has four neighbours
//|   holds.count, holds.of = "NO / 8", { "o[8 * n + 2 * h]", "o[8 * n + 4 + 2 * h]", "o[8 * n + 1 + 2 * h]", "o[8 * n + 5 + 2 * h]" }
//| end
//| local log2_scale = (c.rescale or 0) >= 3 and "1.f" or "p.scale_log2"  -- maxima are kept in log2 units
// ---- how a warp's rows of one part of a split tile leave ----
constexpr int ROWS_WARP = $(holds.rows);

//| include "work/split_tile.cu"

// row: $(l.tma and "the warpgroup's first, of the sequence" or "the warp's first, of the tile").
//| if l.once then
// The result is bits of this thread's rows that are computed again, as of rows_again().
//| end
__device__ __forceinline__ $(returns) store_part(const Params &p, const Tile &where, const Sequence &sequence, const float (&o)$(holds.o),
                                           const RowState (&state)$(holds.states), int row$(l.shared and ", int column, int from" or "")) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
//| local rows = "row_count(p, sequence) - where.row"
//| if l.even_rows then rows = "min(rows_of_tile(p), " .. rows .. ")" end
  const int first = $(holds.first), rows = min(ROWS_WARP, $(rows) - first);
  if (rows <= 0) return$(l.once and " 0" or "");
//| if holds.loops then
#pragma unroll
  for ($(holds.loops))
//| end
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const float l = quad_sum($(holds.state).l);
//| if l.walks then
    if (where.is_walked() && where.part > 0) {  // to the sum of the parts before, which the same threads have left
      const bool real = $(holds.row) < rows;
      const long long at = part_row(where, first + $(holds.row));
      float2 sum = make_float2(0.f, 0.f);
      if (real && t == 0) sum = load_part((const float2 *)p.part_state + at);
      const Weights w = weights_of(__shfl_sync(~0u, sum.x, lane - t), $(holds.state).m, $(log2_scale));
      if (!real) continue;
      if (t == 0) ((float2 *)p.part_state)[at] = make_float2(w.m, w.add(sum.y, l));
      float2 *const to = (float2 *)((float *)p.part_o + at * COLS + 2 * t);
      constexpr int BATCH = 16;  // loads under way
#pragma unroll
      for (int n0 = 0; n0 < NO / 4; n0 += BATCH) {
        float2 x[BATCH];
#pragma unroll
        for (int n = n0; n < min(n0 + BATCH, NO / 4); n++) x[n - n0] = load_part(to + n * 4);
#pragma unroll
        for (int n = n0; n < min(n0 + BATCH, NO / 4); n++)
          to[n * 4] = make_float2(w.add(x[n - n0].x, $(holds.of[1])), w.add(x[n - n0].y, $(holds.of[2])));
      }
      continue;
    }
//| end
//| if l.half_parts then
    const float room = room_of(o, h);
//| end
    if ($(holds.row) >= rows) continue;
//| if l.shared then
//|   indented(4, wk.leave_as_held, "first", "column", "from")
//| else
//|   indented(4, wk.leave_row, "first + " .. holds.row, holds.state, holds.v, holds.count, holds.of)
//| end
  }
//| if l.walks then
  if (where.is_walked() && where.part + 1 == where.parts) store_walked(p, sequence, where, first, rows);
//| end
//| if l.counts and not l.shared then
  $(l.once and "return " or "")part_is_left(p, sequence, where, first / ROWS_WARP, first, rows);
//| end
}
