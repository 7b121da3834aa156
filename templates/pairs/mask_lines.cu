//| needs "l.masks"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
//| local program = p.score
//| local heads, of_head = program.marks_by_h and "p.hq" or "1", program.marks_by_h and "head" or "0"
//| local of_sequence = program.marks_by_b and "(int)sequence.batch" or "0"
// ---- which blocks of keys each 64 rows see: found by a kernel before, so that nothing is asked where products are made ----
// A line is that of 64 rows. Of its word n, bit b is of block 32 n + b. x: both masks leave some pair; y: conditions that are not solved may
//| local beside = pr.found_ends and ", and not by the ends of rows" or ""
//| local ends = pr.found_ends and "the ends of rows" or "what is solved of the program's mask"
// hide some of them$(beside); z: $(ends) may, or the launch's mask.
__device__ __forceinline__ int line_words(const Params &p) { return (p.sk + 32 * BC - 1) / (32 * BC); }
__device__ __forceinline__ int line_count(const Params &p) { return (p.sq + 63) / 64; }
// That of the rows from `row` on.
__device__ __forceinline__ const uint4 *mask_line(const Params &p, const Sequence &sequence, int head, int row) {
  const long long place = (long long)$(of_sequence) * $(heads) + $(of_head);
  return (const uint4 *)p.mask_lines + (place * line_count(p) + row / 64) * line_words(p);
}
//| if pr.found_ends then
// Of each row the first and the last key that it sees, of blocks that are not seen whole.
__device__ __forceinline__ const int2 *row_ends(const Params &p, const Sequence &sequence, int head) {
  return (const int2 *)p.mask_ends + ((long long)$(of_sequence) * $(heads) + $(of_head)) * p.sq;
}
// Those of a thread's two rows.
struct RowEnds {
  int2 rows[2];
};
//| end

// A lane's block: of the rows of a line. seen, maybe, edges: as of a word.
struct BlockOfLine {
  bool seen, maybe, edges;
};
__device__ __forceinline__ BlockOfLine block_of_line(const Params &p, const Sequence &sequence, int head, int row, int end,
                                                     const Range &range, int block) {
  if (block < range.block_lo || block > range.block_hi) return {false, false, false};
//| if pr.ends_in_part then
  const int both = classes_of_rows(p, sequence, head, row, end, block), is = both & 3, solved = both >> 2;
//| else
  const int is = class_of_rows(p, sequence, head, row, end, block), solved = 2;
//| end
  const bool sees = is != 0 && solved != 0;
  return {sees, sees && is == 1, sees && (solved == 1 || block <= range.full_lo || block >= range.full_hi)};
}

//| local all = (program.marks_by_b and "p.b" or "1") .. " * " .. heads .. " * lines"
//| if not pr.found_ends then
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
//| else
//|   pr.mask_parts()
//|   local columns, rows = l.masks.columns, l.masks.rows
//|   local arguments = ""
//|   for n, of in ipairs(columns) do
//|     local word = ("values[warp][%d][column]"):format(n - 1)
//|     local as = { int = "(int)" .. word, float = ("__int_as_float((int)%s)"):format(word), bool = word .. " != 0" }
//|     arguments = arguments .. ", " .. as[of.type]
//|   end
//|   for _, of in ipairs(rows) do arguments = arguments .. (", r%d[h]"):format(of.node) end
// A thread block makes a line, 32 words at a time, a warp for each; then a warp looks at all pairs of a block that is not whole, two rows
// to a lane. A row's ends are its first and its last key there that is seen: a block in which each row sees all keys between them needs no
// more than these.
constexpr int LOOKED_AT = 16;  // blocks of a line; more are left in doubt
extern "C" __global__ void __launch_bounds__(256) fa_mask_lines(const __grid_constant__ Params p) {
  __shared__ uint3 found[32];
  __shared__ int los[64], his[64];                       // the ends of rows
  __shared__ int looked[LOOKED_AT], classes[LOOKED_AT];  // which blocks; what is known of them
  __shared__ u16 counts[LOOKED_AT][64];                  // pairs that a row sees
//|   if #columns > 0 then
  __shared__ u32 values[8][$(#columns)][BC];             // what the mask reads of keys, of a warp's block
//|   end
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, lines = line_count(p), words = line_words(p);
  grid_over(), grid_wait();
  for (long long job = (long long)$(wk.block); job < (long long)$(all); job += $(wk.blocks)) {
    const int row = (int)(job % lines) * 64, place = (int)(job / lines);
    const Sequence sequence = sequence_of(p, place / $(heads));
    const int head = place % $(heads), end = min(row + 64, row_count(p, sequence)) - 1;
    const Range range = key_range(p, sequence, head, row, end);
    const ScoreTile t = score_tile(p, sequence, head);
    uint4 *const line = (uint4 *)p.mask_lines + job * words;
    const int own[2] = {min(row + lane, end), min(row + lane + 32, end)};
    int first[2], last[2], lo[2] = {p.sk, p.sk}, hi[2] = {-1, -1}, n = 0;  // n: blocks that were looked at
#pragma unroll
    for (int h = 0; h < 2; h++) {
      first[h] = first_key(sequence, own[h]), last[h] = last_key(sequence, own[h]);
//|   if pr.ends_in_part then
      const MaskEnds solved = mask_ends(p, t, head, own[h]);
      first[h] = max(first[h], solved.lo), last[h] = min(last[h], solved.hi);
//|   end
    }
//|   for _, of in ipairs(rows) do
//|     local function value(of_row) return ("mask_row%d(p, t, t.h, %s)"):format(of.node, of_row) end
    const $(of.type) r$(of.node)[2] = {$(value("own[0]")), $(value("own[1]"))};
//|   end
    if (threadIdx.x < 64) los[threadIdx.x] = p.sk, his[threadIdx.x] = -1;
#pragma unroll 1
    for (int from = 0; from < words; from += 32) {
#pragma unroll 1
      for (int word = from + warp; word < min(from + 32, words); word += 8) {
        const BlockOfLine of = block_of_line(p, sequence, head, row, end, range, word * 32 + lane);
        const u32 seen = __ballot_sync(~0u, of.seen), maybe = __ballot_sync(~0u, of.maybe), edges = __ballot_sync(~0u, of.edges);
        if (lane == 0) line[word] = make_uint4(seen, maybe, edges, 0), found[word - from] = make_uint3(seen, maybe, edges);
      }
      __syncthreads();
#pragma unroll 1
      for (int word = from; word < min(from + 32, words); word++) {
#pragma unroll 1
        for (u32 left = found[word - from].y | found[word - from].z; left != 0; left &= left - 1) {
          const int block = word * 32 + __ffs((int)left) - 1, key = block * BC;
          if (n >= LOOKED_AT) {
            lo[0] = min(lo[0], key), lo[1] = min(lo[1], key), hi[0] = hi[1] = key + BC - 1;
            continue;
          }
          if (n++ % 8 != warp) continue;
//|   if #columns > 0 then
          __syncwarp();
#pragma unroll
          for (int i = lane; i < (BC + 31) / 32 * 32; i += 32) {
//|     for k, of in ipairs(columns) do
            const $(of.type) v$(of.node) = mask_column$(of.node)(p, t, key + i);
//|     end
            if (i < BC) {
//|     for k, of in ipairs(columns) do
              values[warp][$(k - 1)][i] = (u32)$(of.type == "float" and "__float_as_int(v" .. of.node .. ")" or "v" .. of.node);
//|     end
            }
          }
          __syncwarp();
//|   end
          int count[2] = {0, 0};
#pragma unroll 4
          for (int column = 0; column < BC; column++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
              const int at = key + column;
              const bool sees = mask_sees(p, t, t.h, own[h], key, column$(arguments)) & (at >= first[h]) & (at <= last[h]);
              lo[h] = sees ? min(lo[h], at) : lo[h], hi[h] = sees ? at : hi[h], count[h] += sees;
            }
          }
          counts[n - 1][lane] = (u16)count[0], counts[n - 1][lane + 32] = (u16)count[1];
          if (lane == 0) looked[n - 1] = block;
        }
      }
      __syncthreads();
    }
    // A warp's blocks come from left to right.
    atomicMin(&los[lane], lo[0]), atomicMin(&los[lane + 32], lo[1]);
    atomicMax(&his[lane], hi[0]), atomicMax(&his[lane + 32], hi[1]);
    __syncthreads();
    if (warp < 2) {
      const int at = warp * 32 + lane;
      los[at] = max(los[at], warp == 0 ? first[0] : first[1]), his[at] = min(his[at], warp == 0 ? last[0] : last[1]);
      if (row + at <= end) ((int2 *)p.mask_ends)[(long long)place * p.sq + row + at] = make_int2(los[at], his[at]);
    }
    __syncthreads();
#pragma unroll 1
    for (int k = warp; k < n; k += 8) {
      const int key = looked[k] * BC;
      bool some = false, every = true, between = true;
#pragma unroll
      for (int i = lane; i < 64; i += 32) {
        const int count = counts[k][i], most = max(min(his[i], key + BC - 1) - max(los[i], key) + 1, 0);
        some = some || count != 0, every = every && count == BC, between = between && count == most;
      }
      some = __any_sync(~0u, some), every = __all_sync(~0u, every), between = __all_sync(~0u, between);
      if (lane == 0) classes[k] = some | every << 1 | between << 2;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
#pragma unroll 1
      for (int k = 0; k < n; k++) {
        const u32 bit = 1u << looked[k] % 32;
        const int word = looked[k] / 32;
        uint3 of = found[word % 32];  // of the last 32
        if (word / 32 != (words - 1) / 32) of = make_uint3(line[word].x, line[word].y, line[word].z);
        if (!(classes[k] & 1)) of.x &= ~bit;
        if (classes[k] != 1) of.y &= ~bit;
        if (!(classes[k] & 1) || classes[k] & 2) of.z &= ~bit;
        else if (classes[k] & 4) of.z |= bit;
        found[word % 32] = word / 32 == (words - 1) / 32 ? of : found[word % 32];
        line[word] = make_uint4(of.x, of.y, of.z, 0);
      }
    }
    __syncthreads();
  }
}
//| end
