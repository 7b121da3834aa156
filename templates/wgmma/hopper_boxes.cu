//| needs "c.cluster l.one_text? l.staged"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local boxes = {}
//| for _, tile in ipairs(l.staged.tiles) do if tile.boxed then boxes[#boxes + 1] = tile end end
//| local rows = c.cluster > 1 and "BR / CLUSTER" or "BR"
// ---- arrays of the score program by query and key, which TMA brings in boxes ----
//| -- Of rows that are whole lines nothing is read again: they leave the L2 to K and V.
//| local once = #boxes > 0
//| for _, tile in ipairs(boxes) do once = once and tile.swizzled and not tile.eighths end
//| local hint = once and ".L2::cache_hint" or ""
//| local ranks = {}
//| for _, tile in ipairs(boxes) do
//|   local of, node = tile.of, tile.node
//|   local rank = tile.eighths and 3 or of.rank
//|   if not ranks[rank] then
//|     ranks[rank] = true
//|     local places = ({ [2] = "%3, %4", [3] = "%3, %4, %5", [4] = "%3, %4, %5, %6" })[rank]
//|     local inputs = ({ [2] = "", [3] = ', "r"(at[2])', [4] = ', "r"(at[2]), "r"(at[3])' })[rank]
//|     if tile.eighths then
// A box of an array of the score program, at the first column, the piece of 16 bytes, and the group of eight rows.
//|     else
// A box of an array of the score program, at the first index, the row, and what is left.
//|     end
__device__ __forceinline__ void load_box(u32 to, const TensorMap &map, u32 barrier, const int (&at)[$(rank)]) {
//|     if once then
  u64 policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
//|     end
//|     if once then places = places .. "}], [%2], %" .. rank + 3 else places = places .. "}], [%2]" end
  asm volatile("cp.async.bulk.tensor.$(rank)d.shared::cluster.global.mbarrier::complete_tx::bytes$(hint) [%0], [%1, {$(places);" ::
                   "r"(to), "l"(&map), "r"(barrier), "r"(at[0]), "r"(at[1])$(inputs)$(once and ', "l"(policy)' or "") : "memory");
}
//|   end
//|   if tile.swizzled and not tile.columns and (l.one_text or p.has_score_anywhere) then
//|     local region = tile.eighths and ("i %% 8 * %d + i / 8 * %d"):format(tile.region, tile.pitch) or ("i * %d"):format(tile.pitch)
//|     local turn = tile.eighths and "(i % 8 + i / 8) % 8" or "i % 8"
// Where byte n of row i lies in a stage.
__device__ __forceinline__ u32 tile_place$(node)(int i, int n) {
  return n / $(tile.pitch) * $(tile.box) + $(region) + (n % $(tile.pitch) ^ $(turn) * 16);
}
//|   end
//|   if tile.eighths then
//|     local outer, inner = of.row_index, of.rank - 1
//|     if tile.columns then outer, inner = inner, outer end
//|     local name = "p.score" .. of.operand
// Elements of key to key + BC of array $(of.operand), of rows from `row` on, by lanes 0 to 7: a lane's boxes have every eighth
// $(tile.columns and "key" or "row"). These lie a multiple of 16 bytes apart, and so alike within 16 bytes: runtime/args/array_layout.h.
__device__ __forceinline__ void load_tile$(node)(const Params &p, const TensorMap &map, const ScoreTile &scored, u32 to, u32 full, int row,
                                             int key, int lane) {
  int index[$(of.rank)];
  score_at$(node)(p, scored, row, index);
  const int lines = $(name)_extent[$(outer)], columns = $(name)_extent[$(inner)];
  const long long step = $(name)_stride[$(outer)];
  // Lines of the first group that are none, and the group: the last one ends with the last line.
  const int before = -lines & 7, line = index[$(outer)]$(tile.columns and " + key" or "") + lane, group = (line + before) >> 3;
  // Where the lane's line of the first group ends, in elements from the array's first 16 bytes on.
  const long long at_row = (long long)((size_t)score_ahead$(node)(p, scored, scored.h, row) - ((size_t)$(name) & ~(size_t)15)) / 2;
  const long long end = at_row - index[$(inner)] + (line - 8 * group - index[$(outer)]) * step + columns;
//|     local all = ("(int)(size_t)%s %% 16 / 2 + columns"):format(name)
//|     for i = 0, of.rank - 1 do
//|       if i ~= inner then all = all .. (" + (%s_extent[%d] - 1) * (int)%s_stride[%d]"):format(name, i, name, i) end
//|     end
  // No line's box reads past the end of the last line: its pieces end with it.
  const int left = -($(all)) & 7;
  const long long piece = (end + left + 7) >> 3;
  const int width = (columns + 23) / 8 * 8, ahead = (int)((before * step + 7) / 8) + 4;
  const int column = width - (int)(piece * 8 - end) - columns + index[$(inner)]$(tile.columns and "" or " + key");
#pragma unroll
  for (int box = 0; box < $(tile.bytes // tile.box); box++) {
    const int at[3] = {column + box * $(tile.pitch // 2), (int)piece - width / 8 + ahead, group};
    load_box(to + box * $(tile.box) + lane * $(tile.region), map, full, at);
  }
}
//|   else
//|     local last, order = rank - 1, { rank - 1, of.row_index }
//|     for i = 0, last - 1 do if i ~= of.row_index then order[#order + 1] = i end end
//|     local more = tile.swizzled and "" or (" and %d more"):format(tile.pitch // 2 - c.bc)
// Elements of key to key + BC$(more) of array $(of.operand), of rows from `row` on, by its map: what is outside are zeros.
__device__ __forceinline__ void load_tile$(node)(const Params &p, const TensorMap &map, const ScoreTile &scored, u32 to, u32 full, int row,
                                             int key) {
  int index[$(rank)];
  score_at$(node)(p, scored, row, index);
//|     if tile.swizzled then
#pragma unroll
  for (int box = 0; box < $(tile.bytes // tile.box); box++) {
//|     end
//|     local place = { ("index[%d] + key"):format(order[1]) .. (tile.swizzled and (" + box * %d"):format(tile.pitch // 2) or "") }
//|     for n = 2, #order do place[n] = ("index[%d]"):format(order[n]) end
  const int at[$(rank)] = {$(table.concat(place, ", "))};
  load_box(to$(tile.swizzled and (" + box * %d"):format(tile.box) or ""), map, full, at);
//|     if tile.swizzled then
  }
//|     end
}
//|   end
//|   if p.has_score_anywhere then
//|     local apart, step = ("p.score%d_stride[%d]"):format(of.operand, of.rank - 1), ("p.score%d_stride[%d]"):format(of.operand, of.row_index)
// The same, eight keys at a time, of an array that no map can hold: keys lie apart, or all rows are one.
__device__ __forceinline__ void stage_apart$(node)(const Params &p, const ScoreTile &scored, u32 to, int row, int key, int lane) {
  const int keys = scored.sk - key;  // that there are
  const bool one = $(step) == 0;     // row, which a lane has eight keys of at a time; else a lane has a row
  const int rows = one ? 1 : $(rows);
#pragma unroll 1
  for (int i = one ? 0 : lane; i < rows; i += 32) {
    const u16 *from = (const u16 *)score_ahead$(node)(p, scored, scored.h, row + i) + (long long)key * $(apart);
    u32 x[8];
#pragma unroll 1
    for (int n = one ? lane * 8 : 0; n < BC; n += one ? 256 : 8) {
      if (one || n == 0 || $(apart) != 0)
#pragma unroll
        for (int m = 0; m < 8; m++) x[m] = from[min(n + m, keys - 1) * $(apart)];
      const uint4 eight = {x[0] | x[1] << 16, x[2] | x[3] << 16, x[4] | x[5] << 16, x[6] | x[7] << 16};
      store_shared(to + tile_place$(node)(i, n * 2), eight);
#pragma unroll 1
      for (int k = 1; one && k < $(rows); k++) store_shared(to + tile_place$(node)(k, n * 2), eight);
    }
  }
}
//|   end
//| end
