//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- arrays of the score program that are read by the key, on their way before the products are there ----
// Of a thread's rows, two keys to a word.
struct ScoreAhead {
//| for _, of in ipairs(p.score.arrays) do
  u32 v$(of.node)[NS / 2];
//| end
};
// The words of a block. row: this thread's first. whole: no key is past the last. Where a row's elements lie side by side, from an even
// address on, a load takes two of them.
__device__ __forceinline__ void read_ahead(ScoreAhead &ahead, const Params &p, const ScoreTile &scored, int row, int block, int t,
                                           bool whole) {
  const int first = block * BC + 2 * t;
#pragma unroll
  for (int h = 0; h < 2; h++) {
//| indented(4, pr.own_row, "row + 8 * h")
//| for _, of in ipairs(p.score.arrays) do
//|   local words, array = "ahead.v" .. of.node, "p.score" .. of.operand
//|   local even = { ("(size_t)%s %% 4 == 0 && %s_stride[%d] == 1"):format(array, array, of.rank - 1) }
//|   for i = 0, of.rank - 2 do even[#even + 1] = ("%s_stride[%d] %% 2 == 0"):format(array, i) end
    const unsigned short *const from$(of.node) = score_ahead$(of.node)(p, scored, head, query);
    if (whole && $(table.concat(even, " && "))) {
      const u32 *const two = (const u32 *)(from$(of.node) + first);
#pragma unroll
      for (int n = 0; n < NS / 4; n++) $(words)[2 * n + h] = two[4 * n];
    } else {
#pragma unroll
      for (int n = 0; n < NS / 4; n++) {
        const int key = min(first + 8 * n, scored.sk - 1), next = min(first + 8 * n + 1, scored.sk - 1);
        $(words)[2 * n + h] =
            (u32)from$(of.node)[key * $(array)_stride[$(of.rank - 1)]] | (u32)from$(of.node)[next * $(array)_stride[$(of.rank - 1)]] << 16;
      }
    }
//| end
  }
}
