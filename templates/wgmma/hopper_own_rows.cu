//| needs "c.bc l.staged"
// ---- arrays of the score program by query and key that no box brings: each warp of a consumer copies its own sixteen rows ----
//| local shifts = false
//| for _, tile in ipairs(l.staged.tiles) do shifts = shifts or tile.shifted end
//| if shifts then
// A row that begins anywhere comes from the 16 bytes on in which it begins, and who reads it looks as much further on.
//| end
constexpr int OWN_ROWS = 16;
//| for _, tile in ipairs(l.staged.tiles) do
//|   if tile.owned then
//|     local of, node = tile.of, tile.node
//|     local size, type = of.wide and 4 or 2, of.wide and "float" or "u16"
//|     local pieces, more = c.bc * size // 16 + (tile.shifted and 1 or 0), tile.shifted and 16 // size or 0  -- of 16 bytes, to a row
//|     local function stride(index) return ("p.score%d_stride[%d]"):format(of.operand, index) end
//|     local apart, step = stride(of.rank - 1), of.row_index and stride(of.row_index)
//|     local full, rest = pieces // 16, pieces % 16
//|     local base = tile.shifted and "(%s & ~(size_t)15)" or "%s"
//|     if tile.shifted then
// By how many elements, of a row's first key; blocks of keys are whole multiples of 16 bytes.
__device__ __forceinline__ u32 row_shift$(node)(const Params &p, const ScoreTile &scored, int row) {
  return $(apart) == 1 ? (u32)(size_t)score_ahead$(node)(p, scored, scored.h, row) / $(size) % $(16 // size) : 0;
}
//|     end
//|     if step then
// Where this thread's first piece of key 0 lies, of the warp's rows from `row` on. Half a warp copies a row.
__device__ __forceinline__ size_t own_rows$(node)(const Params &p, const ScoreTile &scored, int row) {
  const int lane = threadIdx.x % 32;
  return (size_t)score_ahead$(node)(p, scored, scored.h, row + lane / 16) + lane % 16 * 16;
}
//|     end
// Elements of key to key + BC of array $(of.operand), of the warp's rows from `row` on. Past the last key they are zeros, or the last one.
__device__ __forceinline__ void copy_rows$(node)(const Params &p, const ScoreTile &scored, u32 to, int row,
                                                 int key$(step and ", size_t from" or "")) {
  const int lane = threadIdx.x % 32, keys = scored.sk - key;  // that there are
  const int own = lane % 16 * 16, r = lane / 16;
  if ($(tile.shifted and apart .. " == 1 && " or "")keys >= BC$(more > 0 and " + " .. more or "") && row + OWN_ROWS <= scored.sq) {
    const u32 at = to + r * $(tile.pitch) + own;
//|     if step then
    from += (u32)key * $(size);
//|       if rest == 1 then
    const size_t tail = from - own + (long long)(lane % 16 - r) * ($(step) * $(size));
//|       end
//|     end
#pragma unroll
    for (int i = 0; i < OWN_ROWS; i += 2) {
//|     if not step then
      const size_t from = (size_t)(score_ahead$(node)(p, scored, scored.h, row + i + r) + key) + own;
//|     end
//|     for n = 0, full - 1 do
      cp_async_whole(at + i * $(tile.pitch) + $(n * 256), (const void *)($(base:format("from")) + $(n * 256)));
//|     end
//|     if rest > 1 then
      if (own < $(rest * 16))
        cp_async_whole(at + i * $(tile.pitch) + $(full * 256), (const void *)($(base:format("from")) + $(full * 256)));
//|     end
//|     if step then
      from += $(step) * $(2 * size);
//|     end
    }
//|     if rest == 1 then
//|       if not step then
    const size_t tail = (size_t)(score_ahead$(node)(p, scored, scored.h, row + lane % 16) + key);
//|       end
    if (lane < OWN_ROWS) cp_async_whole(to + lane * $(tile.pitch) + $(full * 256), (const void *)($(base:format("tail")) + $(full * 256)));
//|     end
    return;
  }
#pragma unroll 1
  for (int i = r; i < OWN_ROWS; i += 2) {
    const $(type) *from = (const $(type) *)score_ahead$(node)(p, scored, scored.h, row + i) + key * $(apart);
//|     if tile.shifted then
    if ($(apart) == 1) {
      const int before = (int)(size_t)from & 15;
#pragma unroll 1
      for (int n = own; n < $(pieces * 16); n += 256)
        cp_async_part(to + i * $(tile.pitch) + n, (const char *)from - before + n, min(max(keys * $(size) + before - n, 0), 16));
      continue;
    }
    // Keys lie apart, or all are one.
#pragma unroll 1
    for (int n = own / $(4 * size); n < BC; n += $(64 // size)) {
//|       if of.wide then
      store_shared(to + i * $(tile.pitch) + n * 4, (u32)__float_as_int(from[min(n, keys - 1) * $(apart)]));
//|       else
      const u32 x = from[min(n, keys - 1) * $(apart)], y = from[min(n + 1, keys - 1) * $(apart)];
      store_shared(to + i * $(tile.pitch) + n * 2, x | y << 16);
//|       end
    }
//|     else
#pragma unroll 1
    for (int n = own; n < $(pieces * 16); n += 256)
      cp_async_part(to + i * $(tile.pitch) + n, (const char *)from + n, min(max(keys * $(size) - n, 0), 16));
//|     end
  }
}
//|   end
//| end
