//| needs "c.rescale? l.counts l.once? l.parts_batch? l.rows_show? l.shared? l.walks?"
//| local returns = l.once and "u32" or "void"  -- which rows are computed again
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// ---- tiles whose keys several blocks share ----
//| if l.walks then
// Few tiles leave SMs idle, as those of a short chunk after a long cache. Then each is cut into parts, as many as its sequence says. Of a
// tile that blocks share, every part lies in the workspace, by its place, and the second step adds them up, in their order. Of a tile whose
// parts one block walks the block adds up each as it comes, at a place of its own, by the same operations.
//| elseif l.counts then
//|   local same = l.shared and "rows and columns" or "rows"
// Few tiles leave SMs idle, as those of a short chunk after a long cache. Then each is cut into as many parts as fill the chip best. The
// last of the warps that have the same $(same) of a tile adds up the parts, in their order. Parts lie in the workspace by their number.
//| else
// Few tiles leave SMs idle, as those of a short chunk after a long cache. Then each is cut into as many parts as fill the chip best, which
// the second step adds up, in their order. Parts lie in the workspace by their number.
//| end

//| include "work/tile_parts.cu"

//| if not l.once then
//|   include "pairs/exact_columns.cu"

//| end
//| local log2_scale, scale = pr.unit_log2, pr.unit
//| if (c.rescale or 0) >= 3 then  -- maxima are kept in log2 units
//|   log2_scale, scale = "1.f", "0.693147180559945309f"
//| end
// Row `tile_row` of the tile, four columns from 4 * four on, out of all parts.
//| if l.once then
//|   if l.rows_show then
// Returns whether it has to be computed again.
//|   else
// Returns whether it may have to be computed again: 1, where it is far, and 1 << 16, where O is not finite.
//|   end
//| end
__device__ __forceinline__ $(returns) add_parts(const Params &p, const Sequence &sequence, const Tile &where, int tile_row, int four) {
//| local from = "((long long)where.number * where.parts + min(j + k, where.parts - 1)) * BR + tile_row"
//| if l.walks then from = "((long long)where.number + min(j + k, where.parts - 1)) * BR + tile_row" end
//| indented(2, wk.sum_of_parts, "where.parts", l.parts_batch or 4, from, log2_scale)
  const Row at = row_of(p, where, where.row + tile_row);
//| if not l.once then
  sum = checked(p, sequence, (int)at.head, (int)at.query, four * 4, sum);
//| end
//| indented(2, wk.store_sum, "sum", { "at.head", "at.query" }, "four * 4", "four == 0", log2_scale, scale, pr.out_scale)
//| if l.once then
//|   local far = "is_far(sum.m, " .. log2_scale .. ")" .. pr.and_seen("sum.m")
//|   if (c.rescale or 0) > 3 then  -- sums that are infinite, or no number, may be so for P far above 1
  const bool finite = four * 4 >= DV || fabsf(sum.o.x) + fabsf(sum.o.y) + fabsf(sum.o.z) + fabsf(sum.o.w) < infinity();
  return $(far) || !finite || !(sum.l < infinity());
//|   elseif pr.cuts_right then
  const bool finite = four * 4 >= DV || fabsf(sum.o.x) + fabsf(sum.o.y) + fabsf(sum.o.z) + fabsf(sum.o.w) < infinity();
//|     if pr.has_mask then
  return $(far) || !finite;
//|     else
  return $(far) ? 1 : finite ? 0 : 1 << 16;
//|     end
//|   else
  return $(far);
//|   end
//| end
}

//| if l.walks then
// The place of the tile whose parts this block walks, after those of all tiles that are shared.
__device__ __forceinline__ int walked_place() { return (int)($(wk.blocks) * (PART_TILES - 1) + $(wk.block)); }
// Where row `tile_row` of a part lies in the workspace, or of the sum of the parts that were walked.
__device__ __forceinline__ long long part_row(const Tile &where, int tile_row) {
  return (long long)(where.is_walked() ? walked_place() : where.number + where.part) * BR + tile_row;
}

// This warp has added up all parts of rows [first, first + rows) of a tile that its block walks: their sum is what there is to store.
__device__ __forceinline__ void store_walked(const Params &p, const Sequence &sequence, Tile where, int first, int rows) {
  const int lane = threadIdx.x % 32;
  where.number = walked_place();
  where.parts = 1;
  __syncwarp();
  for (int i = 0; i < rows * (COLS / 4); i += 32)  // the last once more, for lanes without a row
    add_parts(p, sequence, where, first + min((i + lane) / (COLS / 4), rows - 1), (i + lane) % (COLS / 4));
}
//| else
// Where row `tile_row` of a part lies in the workspace.
__device__ __forceinline__ long long part_row(const Tile &where, int tile_row) {
  return ((long long)where.number * where.parts + where.part) * BR + tile_row;
}
//| end
//| if l.counts and not l.shared then

// This warp, number `warp` of all that have rows of a tile, has left its part of rows [first, first + rows).
//| if l.once then
// The result is bits of this thread's rows that are computed again, as of rows_again().
//| end
//| local of_tile = "const Params &p, const Sequence &sequence, const Tile &where"
__device__ __forceinline__ $(returns) part_is_left($(of_tile), int warp, int first, int rows) {
  const int lane = threadIdx.x % 32;
  u32 last = 0;
  __syncwarp();
  if (lane == 0) last = $(wk.is_last("where.number * (BR / ROWS_WARP) + warp", "where.parts"));
  if (__shfl_sync(~0u, last, 0) == 0) return$(l.once and " 0" or "");
  __syncwarp();
  // Lanes without a row add up the last one once more. A lane that left the loop early would take the rings of the walk around the buffers
  // out of uniform registers, which wgmma's descriptors are made of.
//|   if l.once then
  u32 again = 0;  // of row i bit$(l.rows_show and " i" or "s i and 16 + i")
  for (int i = 0; i < rows * (COLS / 4); i += 32) {
    const int row = min((i + lane) / (COLS / 4), rows - 1);
    again |= add_parts(p, sequence, where, first + row, (i + lane) % (COLS / 4)) << row;
  }
  again = __reduce_or_sync(~0u, again) >> lane / 4;
  return again & 1 | again >> 7 & 2$(l.rows_show and "" or " | again >> 14 & 4 | again >> 21 & 8");
//|   else
  for (int i = 0; i < rows * (COLS / 4); i += 32)
    add_parts(p, sequence, where, first + min((i + lane) / (COLS / 4), rows - 1), (i + lane) % (COLS / 4));
//|   end
}
//| end
