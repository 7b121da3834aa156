//| -- The kernel before that of a family whose consumers find what they see of each block of keys in lines. After pairs/scan.cu.
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
//| local program = p.score
//| local heads, of_head = program.marks_by_h and "p.hq" or "1", program.marks_by_h and "head" or "0"
//| local near = pr.own_tables and ", near_queries, near_keys, first" or ""
//| local near_type = pr.own_tables and ", const int *near_queries, const int *near_keys, int first" or ""
//| local of_sequence = program.marks_by_b and "(int)sequence.batch" or "0"
// ---- which blocks of keys each 64 rows see: found by a kernel before, so that nothing is asked where products are made ----
// A line is that of 64 rows. Of its word n, bit b is of block 32 n + b. x: both masks leave some pair; y: conditions that are not solved may
// hide some of them; z: what is solved of the program's mask may, or the launch's mask.
__device__ __forceinline__ int line_words(const Params &p) { return (p.sk + 32 * BC - 1) / (32 * BC); }
__device__ __forceinline__ int line_count(const Params &p) { return (p.sq + 63) / 64; }
// That of the rows from `row` on.
__device__ __forceinline__ const uint4 *mask_line(const Params &p, const Sequence &sequence, int head, int row) {
  const long long place = (long long)$(of_sequence) * $(heads) + $(of_head);
  return (const uint4 *)p.mask_lines + (place * line_count(p) + row / 64) * line_words(p);
}
// A lane's block: of the rows of a line. seen, maybe, edges: as of a word.
struct BlockOfLine {
  bool seen, maybe, edges;
};
__device__ __forceinline__ BlockOfLine block_of_line(const Params &p, const Sequence &sequence, int head, int row, int end,
                                                     const Range &range, int block$(near_type)) {
  if (block < range.block_lo || block > range.block_hi) return {false, false, false};
//| if pr.ends_in_part then
  const int both = classes_of_rows(p, sequence, head, row, end, block$(near)), is = both & 3, solved = both >> 2;
//| else
  const int is = class_of_rows(p, sequence, head, row, end, block$(near)), solved = 2;
//| end
  const bool sees = is != 0 && solved != 0;
  return {sees, sees && is == 1, sees && (solved == 1 || block <= range.full_lo || block >= range.full_hi)};
}

//| if pr.own_tables then
//|   local edges = include "pairs/edges.lua"
//|   local of_rows, of_keys = edges.entry(p, "queries"), edges.entry(p, "keys")
// A thread block makes a word of eight lines, and before it the entries of tables that these read: of its keys for all, and of 64 rows for
// each warp.
extern "C" __global__ void __launch_bounds__(256) fa_mask_lines(const __grid_constant__ Params p) {
  constexpr int ENTRIES = BC / 2;  // of 64 keys, of 32 blocks
  __shared__ __align__(16) int of_rows[8][$(math.max(of_rows, 1))], of_keys[ENTRIES][$(math.max(of_keys, 1))];
  const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, lines = line_count(p), words = line_words(p);
  const int groups = (lines + 7) / 8;
  const int *const rows = of_rows[warp], *const keys = of_keys[0];
  const long long all = (long long)$(program.marks_by_b and "p.b" or "1") * $(heads) * groups * words;
  grid_over(), grid_wait();
  for (long long job = (long long)$(wk.block); job < all; job += $(wk.blocks)) {
    const int word = (int)(job % words), line = (int)(job / words % groups) * 8 + warp, place = (int)(job / words / groups);
    const Sequence sequence = sequence_of(p, place / $(heads));
    const int head = place % $(heads), row = line * 64, end = min(row + 64, row_count(p, sequence)) - 1, first = word * ENTRIES;
    const ScoreTile t = score_tile(p, sequence, head);
//|   if of_keys > 0 then
#pragma unroll 4
    for (int n = warp; n < ENTRIES; n += 8)
      if (first + n < score_steps(t.sk)) score_fill_keys(p, t, head, first + n, lane, of_keys[n]);
//|   end
//|   if of_rows > 0 then
    if (line < lines) score_fill_queries(p, t, head, line, lane, of_rows[warp]);
//|   end
    __syncthreads();
    if (line < lines) {
      const Range range = key_range(p, sequence, head, row, end);
      const BlockOfLine of = block_of_line(p, sequence, head, row, end, range, word * 32 + lane, rows, keys, first);
      const u32 seen = __ballot_sync(~0u, of.seen), maybe = __ballot_sync(~0u, of.maybe), edges = __ballot_sync(~0u, of.edges);
      if (lane == 0) ((uint4 *)p.mask_lines)[((long long)place * lines + line) * words + word] = make_uint4(seen, maybe, edges, 0);
    }
    __syncthreads();  // all have read the entries
  }
}
//| else
//| local all = (program.marks_by_b and "p.b" or "1") .. " * " .. heads .. " * lines"
// A warp makes a word.
extern "C" __global__ void __launch_bounds__(256) fa_mask_lines(const __grid_constant__ Params p) {
  const int lane = (int)threadIdx.x % 32, lines = line_count(p), words = line_words(p);
  const long long all = (long long)$(all) * words;
  grid_over(), grid_wait();
  for (long long job = (long long)$(wk.block) * 8 + (int)threadIdx.x / 32; job < all; job += $(wk.blocks) * 8) {
    const int block = (int)(job % words) * 32 + lane, row = (int)(job / words % lines) * 64, place = (int)(job / words / lines);
    const Sequence sequence = sequence_of(p, place / $(heads));
    const int head = place % $(heads), end = min(row + 64, row_count(p, sequence)) - 1;
    const BlockOfLine of = block_of_line(p, sequence, head, row, end, key_range(p, sequence, head, row, end), block);
    const u32 seen = __ballot_sync(~0u, of.seen), maybe = __ballot_sync(~0u, of.maybe), edges = __ballot_sync(~0u, of.edges);
    if (lane == 0) ((uint4 *)p.mask_lines)[job] = make_uint4(seen, maybe, edges, 0);
  }
}
//| end
