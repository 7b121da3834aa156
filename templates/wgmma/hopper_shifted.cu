//| needs "c.bc l.staged"
// ---- arrays of the score program by query and key, of 16 bits, whose rows begin anywhere ----
// Each warp of a consumer copies its own sixteen rows, blocks of keys ahead. A row comes from the 16 bytes on in which it begins, and who
// reads it looks as much further on.
constexpr int OWN_ROWS = 16;
//| for _, tile in ipairs(l.staged.tiles) do
//|   if tile.shifted then
//|     local of, node, pieces = tile.of, tile.node, c.bc // 8 + 1  -- of 16 bytes, to a row
//|     local function stride(index) return ("p.score%d_stride[%d]"):format(of.operand, index) end
//|     local apart, step = stride(of.rank - 1), stride(of.row_index)
//|     local rest = pieces % 16
// By how many elements, of a row's first key; blocks of keys are whole multiples of 16 bytes.
__device__ __forceinline__ u32 row_shift$(node)(const Params &p, const ScoreTile &scored, int row) {
  return $(apart) == 1 ? (u32)(size_t)score_ahead$(node)(p, scored, scored.h, row) / 2 % 8 : 0;
}
// Elements of key to key + BC of array $(of.operand), of the warp's rows from `row` on. Past the last key they are zeros, or the last one.
__device__ __forceinline__ void copy_rows$(node)(const Params &p, const ScoreTile &scored, u32 to, int row, int key) {
  const int lane = threadIdx.x % 32, keys = scored.sk - key;  // that there are
  const int own = lane % 16 * 16, r = lane / 16;  // half a warp to a row
  if ($(apart) == 1 && keys >= BC + 8 && row + OWN_ROWS <= scored.sq) {
    size_t from = (size_t)(score_ahead$(node)(p, scored, scored.h, row) + key)$(rest == 1 and (", tail = from + lane %% 16 * (%s * 2)"):format(step) or "");
    from += r * ($(step) * 2);
#pragma unroll 4
    for (int i = 0; i < OWN_ROWS; i += 2, from += $(step) * 4) {
//|     for n = 0, pieces // 16 - 1 do
      cp_async_whole(to + (i + r) * $(tile.pitch) + own + $(n * 256), (const void *)((from & ~(size_t)15) + own + $(n * 256)));
//|     end
//|     if rest > 1 then
      if (own < $(rest * 16)) cp_async_whole(to + (i + r) * $(tile.pitch) + own + $(pieces // 16 * 256), (const void *)((from & ~(size_t)15) + own + $(pieces // 16 * 256)));
//|     end
    }
//|     if rest == 1 then
    if (lane < OWN_ROWS) cp_async_whole(to + lane * $(tile.pitch) + BC * 2, (const void *)((tail & ~(size_t)15) + BC * 2));
//|     end
    return;
  }
#pragma unroll 1
  for (int i = r; i < OWN_ROWS; i += 2) {
    const u16 *from = (const u16 *)score_ahead$(node)(p, scored, scored.h, row + i) + key * $(apart);
    if ($(apart) == 1) {
      const int before = (int)(size_t)from & 15;
#pragma unroll 1
      for (int n = own; n <= BC * 2; n += 256)
        cp_async_part(to + i * $(tile.pitch) + n, (const char *)from - before + n, min(max(keys * 2 + before - n, 0), 16));
      continue;
    }
    // Keys lie apart, or all are one.
#pragma unroll 1
    for (int n = own / 8; n < BC; n += 32) {
      const u32 x = from[min(n, keys - 1) * $(apart)], y = from[min(n + 1, keys - 1) * $(apart)];
      store_shared(to + i * $(tile.pitch) + n * 2, x | y << 16);
    }
  }
}
//|   end
//| end
