//| needs "l.pack?"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| -- The statement that takes the elements of two keys, of row h, to where they belong.
//| local function take(of, n, h, first, next)
//|   local at = ("ahead.v%d[%d * %s + "):format(of.node, of.wide and 4 or 2, n)
//|   if of.wide then return ("%s2 * %s] = %s, %s2 * %s + 1] = %s;"):format(at, h, first, at, h, next) end
//|   return ("%s%s] = (u32)%s | (u32)%s << 16;"):format(at, h, first, next)
//| end
// ---- arrays of the score program that go with the key, on their way before the products are there ----
//| if l.pack ~= 1 and p.score.of_distance then
constexpr int DISTANCES = (BC + 15 + 31) / 32;  // of a lane: a warp's sixteen rows and a block's keys have BC + 15 of them
//| end
struct ScoreAhead {
//| for _, of in ipairs(p.score.arrays) do
//|   if of.wide then
  float v$(of.node)[NS];  // in the order of S
//|   else
  u32 v$(of.node)[NS / 2];  // two keys to a word
//|   end
//| end
//| local distance = l.pack ~= 1 and p.score.of_distance
//| if distance then
  float v$(distance)[DISTANCES];  // of distance 32 i + lane from that of the warp's last row and the block's first key on
//| end
};
//| if distance then
// Of a pair: from the lane that has its distance. at: that of lane 0's pair; lanes differ by -7 to 6.
__device__ __forceinline__ float of_distance(const float (&x)[DISTANCES], int at, int t) {
  const int first = (at + 15 - 7) / 32, last = (at + 15 + 6) / 32, own = at + 15 + 2 * t - (int)threadIdx.x % 32 / 4;
  const float low = __shfl_sync(~0u, x[first], own & 31);
  if (first == last) return low;
  const float high = __shfl_sync(~0u, x[last], own & 31);
  return own / 32 == first ? low : high;
}
//| end
// Those of a block. row: this thread's first. whole: no key is past the last.
__device__ __forceinline__ void read_ahead(ScoreAhead &ahead, const Params &p, const ScoreTile &scored, int row, int block, int t,
                                           bool whole) {
  const int first = block * BC + 2 * t;
//| for _, of in ipairs(p.score.arrays) do
//|   local stride, to = ("p.score%d_stride[%d]"):format(of.operand, of.rank - 1), "ahead.v" .. of.node
//|   local diagonal, two = of.diagonal and l.pack ~= 1, of.wide and "float2" or "u32"
//|   if diagonal then
  // The row eight below has with a key what this row has with the key eight before.
  if (whole && $(stride) == 1) {
    const auto *const at = score_ahead$(of.node)(p, scored, scored.h, row) + first;
    const auto *const below = score_ahead$(of.node)(p, scored, scored.h, row + 8) + first;
    $(take(of, "0", "1", "below[0]", "below[1]"))
#pragma unroll
    for (int n = 0; n < NS / 4; n++) {
      $(take(of, "n", "0", "at[8 * n]", "at[8 * n + 1]"))
//|     if of.wide then
      if (n > 0) $(to)[4 * n + 2] = $(to)[4 * n - 4], $(to)[4 * n + 3] = $(to)[4 * n - 3];
//|     else
      if (n > 0) $(to)[2 * n + 1] = $(to)[2 * n - 2];
//|     end
    }
  } else {
//|   else
  {
//|   end
#pragma unroll
    for (int h = 0; h < 2; h++) {
//|   indented(6, pr.own_row, "row + 8 * h")
      const auto *const from = score_ahead$(of.node)(p, scored, head, query);
//|   if not diagonal then
      // Two keys lie side by side, from an even place on.
      if (__all_sync(~0u, whole && $(stride) == 1 && (size_t)(from + first) % sizeof($(two)) == 0)) {
        const $(two) *const pairs = (const $(two) *)(from + first);
#pragma unroll
        for (int n = 0; n < NS / 4; n++) {
//|     if of.wide then
          const float2 x = pairs[4 * n];
          $(take(of, "n", "h", "x.x", "x.y"))
//|     else
          $(to)[2 * n + h] = pairs[4 * n];
//|     end
        }
        continue;
      }
      // Or from an odd one on, or some rows' do.
      if (whole && $(stride) == 1) {
#pragma unroll
        for (int n = 0; n < NS / 4; n++) {
          $(take(of, "n", "h", "from[first + 8 * n]", "from[first + 8 * n + 1]"))
        }
        continue;
      }
//|   end
#pragma unroll
      for (int n = 0; n < NS / 4; n++) {
        const int key = min(first + 8 * n, scored.sk - 1), next = min(first + 8 * n + 1, scored.sk - 1);
        $(take(of, "n", "h", ("from[key * %s]"):format(stride), ("from[next * %s]"):format(stride)))
      }
    }
  }
//| end
//| if distance then
  const int from = block * BC - (row - (int)threadIdx.x % 32 / 4) - 15 + (int)threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < DISTANCES; i++) ahead.v$(distance)[i] = score_distance(p, scored, from + 32 * i);
//| end
}
