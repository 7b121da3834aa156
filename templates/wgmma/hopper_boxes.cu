//| needs "c.bc l.one_text? l.staged"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local boxes = {}
//| for _, tile in ipairs(l.staged.tiles) do if tile.boxed then boxes[#boxes + 1] = tile end end
// ---- arrays of the score program by query and key, which TMA brings in boxes ----
//| -- Of rows that are whole lines nothing is read again: they leave the L2 to K and V.
//| local once = true
//| for _, tile in ipairs(boxes) do once = once and tile.swizzled end
//| local hint = once and ".L2::cache_hint" or ""
//| local ranks = {}
//| for _, tile in ipairs(boxes) do
//|   local of, node = tile.of, tile.node
//|   local rank, last = of.rank, of.rank - 1
//|   if not ranks[rank] then
//|     ranks[rank] = true
//|     local places = ({ [2] = "%3, %4", [3] = "%3, %4, %5", [4] = "%3, %4, %5, %6" })[rank]
//|     local inputs = ({ [2] = "", [3] = ', "r"(at[2])', [4] = ', "r"(at[2]), "r"(at[3])' })[rank]
// A box of an array of the score program, at the first column, the row, and what is left.
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
//|   if tile.swizzled and l.one_text then
// Where byte n of row i lies in a stage.
__device__ __forceinline__ u32 tile_place$(node)(int i, int n) {
  return n / $(tile.pitch) * $(tile.box) + i * $(tile.pitch) + (n % $(tile.pitch) ^ i % 8 * 16);
}
//|   end
//|   local order, more = { last, of.row_index }, tile.swizzled and "" or (" and %d more"):format(tile.pitch // 2 - c.bc)
//|   if tile.columns then order = { of.row_index, last } end
//|   for i = 0, last - 1 do if i ~= of.row_index then order[#order + 1] = i end end
// Elements of key to key + BC$(more) of array $(of.operand), of rows from `row` on, by its map: what is outside are zeros.
__device__ __forceinline__ void load_tile$(node)(const Params &p, const TensorMap &map, const ScoreTile &scored, u32 to, u32 full, int row,
                                             int key) {
  int index[$(rank)];
  score_at$(node)(p, scored, row, index);
//|   if tile.swizzled then
#pragma unroll
  for (int box = 0; box < $(tile.bytes // tile.box); box++) {
//|   end
//|   local place = {}
//|   for n = 1, #order do place[n] = ("index[%d]"):format(order[n]) .. (order[n] == last and " + key" or "") end
//|   if tile.swizzled then place[1] = place[1] .. (" + box * %d"):format(tile.pitch // 2) end
  const int at[$(rank)] = {$(table.concat(place, ", "))};
  load_box(to$(tile.swizzled and (" + box * %d"):format(tile.box) or ""), map, full, at);
//|   if tile.swizzled then
  }
//|   end
}
//| end
