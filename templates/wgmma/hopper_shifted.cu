//| needs "c.bc c.cluster l.staged"
//| local rows = c.cluster > 1 and "BR / CLUSTER" or "BR"
// ---- arrays of the score program by query and key, of 16 bits, whose rows begin anywhere ----
// A row comes from the 16 bytes on in which it begins, and who reads it looks as much further on.
//| for _, tile in ipairs(l.staged.tiles) do
//|   if tile.shifted then
//|     local of, node, chunks = tile.of, tile.node, c.bc // 8
//|     local function stride(index) return ("p.score%d_stride[%d]"):format(of.operand, index) end
//|     local apart, step = stride(of.rank - 1), stride(of.row_index)
//|     local abreast = math.min(chunks & -chunks, 32)  -- lanes to a row
//|     local together = 32 // abreast  -- rows
// By how many elements, of a row's first key; blocks of keys are whole multiples of 16 bytes.
__device__ __forceinline__ u32 row_shift$(node)(const Params &p, const ScoreTile &scored, int row) {
  return $(apart) == 1 ? (u32)(size_t)score_ahead$(node)(p, scored, scored.h, row) / 2 % 8 : 0;
}
// Elements of key to key + BC of array $(of.operand), of rows from `row` on. Past the last key they are zeros.
__device__ __forceinline__ void stage_shifted$(node)(const Params &p, const ScoreTile &scored, u32 to, int row, int key, int lane) {
  const int keys = scored.sk - key;  // that there are
  const int own = lane % $(abreast) * 16, r = lane / $(abreast);
  if ($(apart) == 1 && keys >= BC + 8 && row + $(rows) <= scored.sq) {
    size_t from = (size_t)(score_ahead$(node)(p, scored, scored.h, row) + key), tail = from + lane * ($(step) * 2);
    from += r * ($(step) * 2);
#pragma unroll 4
    for (int i = 0; i < $(rows); i += $(together), from += $(step) * $(2 * together))
#pragma unroll
      for (int n = 0; n < $(chunks // abreast); n++)
        cp_async_whole(to + (i + r) * $(tile.pitch) + own + n * $(abreast * 16),
                       (const void *)((from & ~(size_t)15) + own + n * $(abreast * 16)));
#pragma unroll 1
    for (int i = lane; i < $(rows); i += 32, tail += $(step) * 64)
      cp_async_whole(to + i * $(tile.pitch) + BC * 2, (const void *)((tail & ~(size_t)15) + BC * 2));
    return;
  }
#pragma unroll 1
  for (int i = lane; i < $(rows); i += 32) {
    const u16 *from = (const u16 *)score_ahead$(node)(p, scored, scored.h, row + i) + (long long)key * $(apart);
    if ($(apart) == 1) {
      const int before = (int)(size_t)from & 15;
#pragma unroll 1
      for (int n = 0; n <= BC * 2; n += 16)
        cp_async_part(to + i * $(tile.pitch) + n, (const char *)from - before + n, min(max(keys * 2 + before - n, 0), 16));
      continue;
    }
    // Keys lie apart, or all are one: eight at a time.
    u32 x[8];
#pragma unroll 1
    for (int n = 0; n < BC; n += 8) {
      if (n == 0 || $(apart) != 0)
#pragma unroll
        for (int m = 0; m < 8; m++) x[m] = from[min(n + m, keys - 1) * $(apart)];
      store_shared(to + i * $(tile.pitch) + n * 2, uint4{x[0] | x[1] << 16, x[2] | x[3] << 16, x[4] | x[5] << 16, x[6] | x[7] << 16});
    }
  }
}
//|   end
//| end
