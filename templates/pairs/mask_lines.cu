//| needs "l.runs?"
//| -- The kernel before that of a family whose consumers find what they see of each block of keys in lines. After pairs/scan.cu.
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
//| local program = p.score
//| local heads, of_head = program.marks_by_h and "p.hq" or "1", program.marks_by_h and "head" or "0"
//| local of_runs = l.runs and ", const RunTile &tile, const RunsOfRows &runs" or ""
//| local of_sequence = program.marks_by_b and "(int)sequence.batch" or "0"
//| if l.runs then
//|   include "pairs/mask_runs.cu"

//| end
// ---- which blocks of keys each 64 rows see: found by a kernel before, so that nothing is asked where products are made ----
// A line is that of 64 rows. Of its word n, bit b is of block 32 n + b. x: both masks leave some pair; y: conditions that are not solved may
// hide some of them; z: what is solved of the program's mask may, or the launch's mask.
__device__ __forceinline__ int line_words(const Params &p) { return (p.sk + 32 * BC - 1) / (32 * BC); }
__device__ __forceinline__ int line_count(const Params &p) { return (p.sq + 63) / 64; }
//| if l.runs then
// A tile has WGS lines, which lie side by side.
__device__ __forceinline__ const uint4 *mask_line(const Params &p, const Sequence &sequence, int tile) {
  return (const uint4 *)p.mask_lines + ($(of_sequence) * (2ll * head_tiles(p)) + tile) * WGS * line_words(p);
}
//| else
// That of the rows from `row` on.
__device__ __forceinline__ const uint4 *mask_line(const Params &p, const Sequence &sequence, int head, int row) {
  const long long place = (long long)$(of_sequence) * $(heads) + $(of_head);
  return (const uint4 *)p.mask_lines + (place * line_count(p) + row / 64) * line_words(p);
}
//| end
// A lane's block: of the rows of a line. seen, maybe, edges: as of a word.
struct BlockOfLine {
  bool seen, maybe, edges;
};
// is: its class; solved: whether what is solved of the mask hides all (0), some (1) or none (2) of it.
__device__ __forceinline__ BlockOfLine as_seen(const Range &range, int block, int is, int solved) {
  if (block < range.block_lo || block > range.block_hi) return {false, false, false};
  const bool sees = is != 0 && solved != 0;
  return {sees, sees && is == 1, sees && (solved == 1 || block <= range.full_lo || block >= range.full_hi)};
}
__device__ __forceinline__ BlockOfLine block_of_line(const Params &p, const Sequence &sequence, int head, int row, int end,
                                                     const Range &range, int block$(of_runs)) {
  if (block < range.block_lo || block > range.block_hi) return {false, false, false};
//| if pr.ends_in_part and l.runs then
  int is, solved;
  const int key = tile.from + block * BC;
  if (tile.of_run() || runs.known) {
    is = tile.of_run() ? tile.class_of(block, range.key_hi) : runs.class_of(row, end, key, min(key + BC, sequence.sk()) - 1);
    solved = solved_of_rows(p, sequence, head, row, end, key);
  } else {
    const int both = classes_of_rows(p, sequence, head, row, end, block);
    is = both & 3, solved = both >> 2;
  }
//| elseif pr.ends_in_part then
  const int both = classes_of_rows(p, sequence, head, row, end, block), solved = both >> 2;
  const int is = both & 3;
//| elseif l.runs then
  const int key = block * BC, solved = 2;
  const int is = tile.of_run() ? tile.class_of(block, range.key_hi)
    : runs.known ? runs.class_of(row, end, key, min(key + BC, sequence.sk()) - 1) : class_of_rows(p, sequence, head, row, end, block);
//| else
  const int is = class_of_rows(p, sequence, head, row, end, block), solved = 2;
//| end
  return as_seen(range, block, is, solved);
}

//| if l.runs then
//|   include "pairs/mask_run_lines.cu"
//| end
