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
//| if pr.own_tables then
// Registers of those who load are few: what is found where it is needed stays in none.
__device__ __forceinline__ int found_here(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
//| end
__device__ __forceinline__ int line_words(const Params &p) { return (p.sk + 32 * BC - 1) / (32 * BC); }
__device__ __forceinline__ int line_count(const Params &p) { return (p.sq + 63) / 64; }
// That of the rows from `row` on.
__device__ __forceinline__ const uint4 *mask_line(const Params &p, const Sequence &sequence, int head, int row) {
  const long long place = (long long)$(of_sequence) * $(heads) + $(of_head);
//| local count = pr.own_tables and "(found_here(p.sq) + 63) / 64" or "line_count(p)"
  return (const uint4 *)p.mask_lines + (place * ($(count)) + row / 64) * line_words(p);
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
// ---- lines are made by the thread blocks that read them, before their first tile: a kernel before would end between two launches ----
// A word of as many lines as a block has warps is a job, with the entries of tables that they read: of its keys for all, and of 64 rows for
// each warp. Blocks claim jobs, so that who waits for lines waits for blocks that run. A block draws until there is none left, and counts
// the jobs that it has done; one that has seen them all done counts that too, and the last of these leaves the count at 0.
constexpr int LINE_WARPS = THREADS / 32, LINE_KEYS = BC / 2;  // entries of 64 keys, of 32 blocks
constexpr int LINE_DRAWN = 0, LINE_DONE = 1;                  // words of the workspace
struct LineJobs {
  int lines, words;
  u32 groups, all;
  __device__ __forceinline__ explicit LineJobs(const Params &p) {
    const int sq = found_here(p.sq), sk = found_here(p.sk);
    lines = (sq + 63) / 64, words = (sk + 32 * BC - 1) / (32 * BC);
    groups = (u32)((lines + LINE_WARPS - 1) / LINE_WARPS);
    all = (u32)$(program.marks_by_b and "p.b" or "1") * (u32)($(heads)) * groups * (u32)words;
  }
};
// Counts on, and returns what it was; the last of all leaves 0. Who counts next sees all writes that this thread has made or seen.
__device__ __forceinline__ u32 count_line(const Params &p, int word, u32 jobs) {
  u32 was;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(was)
               : "l"((u32 *)p.workspace + found_here(word)), "r"(jobs + (u32)$(wk.blocks) - 1) : "memory");
  return was;
}
// By all threads, before anything else is in shared memory. What follows begins with a barrier of all.
__device__ __forceinline__ void make_lines(const Params &p, unsigned char *shared) {
  static_assert((LINE_KEYS * $(of_keys) + LINE_WARPS * $(of_rows)) * 4 <= SMEM_BARRIERS, "no room for entries");
  int *const job_here = (int *)(shared + SMEM_CODES), *const keys = (int *)shared;  // no copy comes to a code's place
  const LineJobs of(p);
  const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
  int *const rows = keys + LINE_KEYS * $(of_keys) + warp * $(of_rows);
  grid_wait();
  if (threadIdx.x == 0) *job_here = (int)count_line(p, LINE_DRAWN, of.all);
  __syncthreads();
#pragma unroll 1
  for (u32 job = (u32)*job_here; job < of.all; job = (u32)*job_here) {
    u32 next = 0;
    if (threadIdx.x == 0) next = count_line(p, LINE_DRAWN, of.all);  // under way meanwhile
    const int word = (int)(job % (u32)of.words), line = (int)(job / (u32)of.words % of.groups) * LINE_WARPS + warp;
    const int place = (int)(job / (u32)of.words / of.groups);
    const Sequence sequence = sequence_of(p, place / $(heads));
    const int head = place % $(heads), row = line * 64, end = min(row + 64, row_count(p, sequence)) - 1, first = word * LINE_KEYS;
    const ScoreTile t = score_tile(p, sequence, head);
//|   if of_keys > 0 then
#pragma unroll 2
    for (int n = warp; n < LINE_KEYS; n += LINE_WARPS)
      if (first + n < score_steps(t.sk)) score_fill_keys(p, t, head, first + n, lane, keys + n * $(of_keys));
//|   end
//|   if of_rows > 0 then
    if (line < of.lines) score_fill_queries(p, t, head, line, lane, rows);
//|   end
    __syncthreads();
    if (line < of.lines) {
      const Range range = key_range(p, sequence, head, row, end);
      const BlockOfLine is = block_of_line(p, sequence, head, row, end, range, word * 32 + lane, rows, keys, first);
      const u32 seen = __ballot_sync(~0u, is.seen), maybe = __ballot_sync(~0u, is.maybe), edges = __ballot_sync(~0u, is.edges);
      if (lane == 0) ((uint4 *)p.mask_lines)[((long long)place * of.lines + line) * of.words + word] = make_uint4(seen, maybe, edges, 0);
    }
    fence_async();  // Q comes to where entries were
    __syncthreads();
    if (threadIdx.x == 0) count_line(p, LINE_DONE, of.all), *job_here = (int)next;
    __syncthreads();
  }
}
// By a lane: all lines are there.
__device__ __forceinline__ void wait_for_lines(const Params &p) {
  const u32 jobs = LineJobs(p).all;
  u32 done;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(done) : "l"((u32 *)p.workspace + found_here(LINE_DONE)) : "memory");
  } while (done < jobs);
}
// By one that has waited, once.
__device__ __forceinline__ void leave_lines(const Params &p) { count_line(p, LINE_DONE, LineJobs(p).all); }
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
