//| needs "c.bc c.ctas l.masks l.ordered"
//| -- The kernel before that of a family whose consumers find what they see of each block of keys in lines, and the order in which it
//| -- leaves tiles. After pairs/mask_lines.cu and work/tile_order.cu.
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
//| local program = p.score
//| local heads = program.marks_by_h and "p.hq" or "1"
//| if l.ordered then
// ---- the last tiles of a launch, those with most blocks of keys first, so that all thread blocks end together ----
// Tiles before them keep their order, by which heads at work share the L2. Which of two with as many blocks comes first changes no result.
constexpr int ORDERED = $(l.ordered);
// A short launch is over before that pays. some: four thread blocks for each SM, where there are as many tiles.
__device__ __forceinline__ bool orders(const Params &p, int some) { return sequence_of(p, 0).sk() >= 4096 && p.total > some; }
__device__ __forceinline__ int ordered_from(const Params &p) { return max(p.total - ORDERED, 0); }
// The tile that is drawn as number `index`.
__device__ __forceinline__ int ordered_tile(const Params &p, int index) {
  const int from = ordered_from(p);
  return index < from || !orders(p, (int)$(wk.blocks) * $(4 // c.ctas)) ? index : ((const int *)p.mask_order)[index - from];
}
// Blocks of keys that some rows of a tile see.
__device__ __forceinline__ int seen_blocks(const Params &p, const Tile &where) {
  const int words = line_words(p), lines = min(line_count(p) - where.row / 64, WGS);
  const uint4 *const line = mask_line(p, sequence_of(p, where.batch), where.head, where.row);
  int count = 0;
#pragma unroll 4
  for (int word = 0; word < words; word++) {
    u32 some = 0;
#pragma unroll
    for (int i = 0; i < WGS; i++)
      if (i < lines) some |= __ldcg(&line[i * words + word].x);
    count += __popc(some);
  }
  return count;
}
// Counts a thread block that has left its lines. The last one of `blocks` sees those of all, and puts the counter back to 0.
__device__ __forceinline__ u32 count_lines(u32 *counter, u32 blocks) {
  u32 was;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(was) : "l"(counter), "r"(blocks - 1) : "memory");
  return was;
}
// By a whole thread block. Tiles are counted by classes, the one with most blocks first.
__device__ __forceinline__ void order_tiles(const Params &p) {
  constexpr int CLASSES = 256, EACH = ORDERED / 256;
  __shared__ int first[CLASSES];
  const int from = ordered_from(p), blocks = line_words(p) * 32;
  first[threadIdx.x] = 0;
  __syncthreads();
  int of_class[EACH], number[EACH];
#pragma unroll
  for (int n = 0; n < EACH; n++) {
    const int tile = from + n * 256 + (int)threadIdx.x;
    of_class[n] = tile < p.total ? CLASSES - 1 - (int)((long long)seen_blocks(p, tile_of(p, tile)) * (CLASSES - 1) / blocks) : 0;
    number[n] = tile < p.total ? atomicAdd(&first[of_class[n]], 1) : 0;
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    constexpr int OWN = CLASSES / 32;
    int *const mine = first + threadIdx.x * OWN;
    int all = 0;
#pragma unroll
    for (int i = 0; i < OWN; i++) all += mine[i];
    int before = all;
#pragma unroll
    for (int n = 1; n < 32; n *= 2) {
      const int x = __shfl_up_sync(~0u, before, n);
      before += (int)threadIdx.x >= n ? x : 0;
    }
    before -= all;
#pragma unroll
    for (int i = 0; i < OWN; i++) {
      const int x = mine[i];
      mine[i] = before, before += x;
    }
  }
  __syncthreads();
#pragma unroll
  for (int n = 0; n < EACH; n++) {
    const int tile = from + n * 256 + (int)threadIdx.x;
    if (tile < p.total) ((int *)p.mask_order)[first[of_class[n]] + number[n]] = tile;
  }
}
//| end

//| local places = (program.marks_by_b and "p.b" or "1") .. " * " .. heads
//| -- Rows, and blocks of keys, that are alike are asked for once.
//| local alike = not l.masks.brings and p.mask == "none" and not pr.ends_in_part
//| local function share_of(grain, size) return alike and (grain % (4 * size) == 0 and 4 or grain % (2 * size) == 0 and 2) or 1 end
//| local lines, blocks = share_of(program.row_grain, 64), share_of(program.grain, c.bc)
//| if alike then
// A lane has a block for all of LINES lines and BLOCKS blocks, which the mask does not tell apart, and a warp makes so many words of each.
constexpr u32 LINES = $(lines), BLOCKS = $(blocks);
//| else
// A warp makes a word.
constexpr u32 LINES = 1, BLOCKS = 1;
//| end
extern "C" __global__ void __launch_bounds__(256) fa_mask_lines(const __grid_constant__ Params p) {
  const int lane = (int)threadIdx.x % 32;
  const u32 own_lines = (u32)line_count(p), own_words = (u32)line_words(p);
  const u32 lines = (own_lines + LINES - 1) / LINES, words = (own_words + BLOCKS - 1) / BLOCKS, all = (u32)$(places) * lines;
  // No division of long integers for each: the next word of a warp is so many lines and words further.
  const u32 first = $(wk.block) * 8 + threadIdx.x / 32, warps = $(wk.blocks) * 8;
  grid_over(), grid_wait();
  u32 line = first / words, word = first % words;
#pragma unroll 1
  while (line < all) {
    const u32 place = line / lines, own_line = (line - place * lines) * LINES;
    const int row = (int)own_line * 64, block = (int)((word * 32 + lane) * BLOCKS), head = (int)(place % (u32)$(heads));
    const Sequence sequence = sequence_of(p, (int)(place / (u32)$(heads)));
    const int end = min(row + 64, row_count(p, sequence)) - 1;
    const Range range = key_range(p, sequence, head, row, end);
//| if alike then
    const bool met = block <= range.block_hi && block + (int)BLOCKS > range.block_lo;
    const int is = met ? class_of_rows(p, sequence, head, row, end, max(block, range.block_lo)) : 0;
#pragma unroll
    for (u32 i = 0; i < BLOCKS; i++) {
      const BlockOfLine of =
          as_seen(range, (int)((word * BLOCKS + i) * 32) + lane, __shfl_sync(~0u, is, (int)(i * (32 / BLOCKS)) + lane / (int)BLOCKS), 2);
      const u32 seen = __ballot_sync(~0u, of.seen), maybe = __ballot_sync(~0u, of.maybe), edges = __ballot_sync(~0u, of.edges);
      if (lane < (int)LINES && own_line + lane < own_lines && word * BLOCKS + i < own_words)
        ((uint4 *)p.mask_lines)[((long long)place * own_lines + own_line + lane) * own_words + word * BLOCKS + i] =
            make_uint4(seen, maybe, edges, 0);
    }
//| else
    const BlockOfLine of = block_of_line(p, sequence, head, row, end, range, block);
    const u32 seen = __ballot_sync(~0u, of.seen), maybe = __ballot_sync(~0u, of.maybe), edges = __ballot_sync(~0u, of.edges);
    if (lane == 0) ((uint4 *)p.mask_lines)[(long long)line * words + word] = make_uint4(seen, maybe, edges, 0);
//| end
    line += warps / words, word += warps % words;
    if (word >= words) line++, word -= words;
  }
//| if l.ordered then
  if (!orders(p, (int)$(wk.blocks))) return;
  __shared__ bool is_last;
  __syncthreads();
  if (threadIdx.x == 0) is_last = count_lines((u32 *)p.workspace, $(wk.blocks)) == $(wk.blocks) - 1;
  __syncthreads();
  if (is_last) order_tiles(p);
//| end
}
