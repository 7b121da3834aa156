//| needs "c.bc l.masks"
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
//|   local padded = (c.bc + 31) // 32 * 32
//|   local arguments = ""
//|   for n, of in ipairs(columns) do
//|     local word = ("values[k][%d][column]"):format(n - 1)
//|     local as = { int = "(int)" .. word, float = ("__int_as_float((int)%s)"):format(word), bool = word .. " != 0" }
//|     arguments = arguments .. ", " .. as[of.type]
//|   end
//|   for _, of in ipairs(rows) do arguments = arguments .. (", r%d"):format(of.node) end
// A thread block makes a line, 32 words at a time, a warp for each; then two warps look at a block that is not whole, a lane for a row, 32
// keys as the bits of a word. A row's ends are its first and its last key there that is seen: a block in which each row sees all keys
// between them needs no more than these.
constexpr int LOOKED_AT = $(math.max(1, math.min(16, 8192 // (math.max(#columns, 1) * padded))));  // blocks of a line; more are left in doubt
extern "C" __global__ void __launch_bounds__(256) fa_mask_lines(const __grid_constant__ Params p) {
  __shared__ uint3 found[32];
  __shared__ int los[64], his[64];      // the ends of rows
  __shared__ int looked[LOOKED_AT];     // which blocks
  __shared__ u16 counts[LOOKED_AT][64]; // pairs that a row sees
//|   if #columns > 0 then
  __shared__ u32 values[LOOKED_AT][$(#columns)][$(padded)];  // what the mask reads of keys
//|   end
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, lines = line_count(p), words = line_words(p);
  const int at = warp % 2 * 32 + lane;  // the thread's row of a line
  grid_over(), grid_wait();
  for (long long job = (long long)$(wk.block); job < (long long)$(all); job += $(wk.blocks)) {
    const int row = (int)(job % lines) * 64, place = (int)(job / lines);
    const Sequence sequence = sequence_of(p, place / $(heads));
    const int head = place % $(heads), end = min(row + 64, row_count(p, sequence)) - 1, own = min(row + at, end);
    const Range range = key_range(p, sequence, head, row, end);
    const ScoreTile t = score_tile(p, sequence, head);
    uint4 *const line = (uint4 *)p.mask_lines + job * words;
    int first = first_key(sequence, own), last = last_key(sequence, own);
//|   if pr.ends_in_part then
    const MaskEnds solved = mask_ends(p, t, head, own);
    first = max(first, solved.lo), last = min(last, solved.hi);
//|   end
//|   for _, of in ipairs(rows) do
    const $(of.type) r$(of.node) = mask_row$(of.node)(p, t, t.h, own);
//|   end
    int n = 0, past_lo = p.sk, past_hi = -1;  // blocks that are looked at, and the keys of those that are not
#pragma unroll 1
    for (int from = 0; from < words; from += 32) {
      const int upto = min(from + 32, words);
#pragma unroll 1
      for (int word = from + warp; word < upto; word += 8) {
        const BlockOfLine of = block_of_line(p, sequence, head, row, end, range, word * 32 + lane);
        const u32 seen = __ballot_sync(~0u, of.seen), maybe = __ballot_sync(~0u, of.maybe), edges = __ballot_sync(~0u, of.edges);
        if (lane == 0) found[word - from] = make_uint3(seen, maybe, edges);
      }
      __syncthreads();
      // A lane has a word; all warps count, one writes.
      u32 left = from + lane < upto ? found[lane].y | found[lane].z : 0;
      int before = __popc(left);
      for (int m = 1; m < 32; m *= 2) {
        const int x = __shfl_up_sync(~0u, before, m);
        before += lane >= m ? x : 0;
      }
      const int all = n + __shfl_sync(~0u, before, 31);
      before += n - __popc(left);
      int lo = p.sk, hi = -1;
#pragma unroll 1
      for (; left != 0; left &= left - 1, before++) {
        const int block = (from + lane) * 32 + __ffs((int)left) - 1;
        if (before >= LOOKED_AT)
          lo = min(lo, block * BC), hi = block * BC + BC - 1;
        else if (warp == 0)
          looked[before] = block;
      }
      if (all > LOOKED_AT) past_lo = min(past_lo, __reduce_min_sync(~0u, lo)), past_hi = max(past_hi, __reduce_max_sync(~0u, hi));
      n = min(all, LOOKED_AT);
      if (upto < words) {
        if (from + (int)threadIdx.x < upto) {
          const uint3 of = found[threadIdx.x];
          line[from + threadIdx.x] = make_uint4(of.x, of.y, of.z, 0);
        }
        __syncthreads();
      }
    }
    if (warp < 2) los[at] = max(past_lo, first), his[at] = min(past_hi, last);
    __syncthreads();
//|   if #columns > 0 then
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < n * $(padded); i += 256) {
      const int k = i / $(padded), column = i % $(padded), key = looked[k] * BC + column;
//|     for k, of in ipairs(columns) do
      const $(of.type) v$(of.node) = mask_column$(of.node)(p, t, key);
      values[k][$(k - 1)][column] = (u32)$(of.type == "float" and "__float_as_int(v" .. of.node .. ")" or "v" .. of.node);
//|     end
    }
    __syncthreads();
//|   end
#pragma unroll 1
    for (int k = warp / 2; k < n; k += 4) {
      const int key = looked[k] * BC;
      int count = 0, lo = p.sk, hi = -1;
#pragma unroll 1
      for (int of = 0; of < BC; of += 32) {
        u32 bits = 0;
#pragma unroll
        for (int e = 0; e < 32; e++) {
          const int column = of + e;
          bits |= mask_sees(p, t, t.h, own, key, column$(arguments)) ? 1u << e : 0u;
        }
        // Those of the block, between what both masks leave of the row.
        const int left = max(first - key - of, 0), right = min(min(last - key, BC - 1) - of, 31);
        bits = right < left ? 0u : bits & ~0u << left & ~0u >> (31 - right);
        count += __popc(bits);
        if (bits != 0) lo = min(lo, key + of + __ffs((int)bits) - 1), hi = key + of + 31 - __clz((int)bits);
      }
      counts[k][at] = (u16)count;
      atomicMin(&los[at], lo), atomicMax(&his[at], hi);
    }
    __syncthreads();
    if (warp < 2 && row + at <= end) ((int2 *)p.mask_ends)[(long long)place * p.sq + row + at] = make_int2(los[at], his[at]);
#pragma unroll 1
    for (int k = warp; k < n; k += 8) {
      const int block = looked[k], key = block * BC;
      bool some = false, every = true, between = true;
#pragma unroll
      for (int i = lane; i < 64; i += 32) {
        const int count = counts[k][i], most = max(min(his[i], key + BC - 1) - max(los[i], key) + 1, 0);
        some = some || count != 0, every = every && count == BC, between = between && count == most;
      }
      some = __any_sync(~0u, some), every = __all_sync(~0u, every), between = __all_sync(~0u, between);
      // Words of the last 32 have not been written yet.
      const int word = block / 32;
      const bool later = word / 32 == (words - 1) / 32;
      u32 *const of = later ? (u32 *)&found[word % 32] : (u32 *)&line[word];
      const u32 bit = 1u << block % 32;
      if (lane == 0 && !some) atomicAnd(of, ~bit);
      if (lane == 1 && (!some || every || between)) atomicAnd(of + 1, ~bit);
      if (lane == 2 && (!some || every)) atomicAnd(of + 2, ~bit);
      if (lane == 3 && some && !every && between) atomicOr(of + 2, bit);
    }
    __syncthreads();
    const int from = (words - 1) / 32 * 32 + (int)threadIdx.x;
    if (from < words) {
      const uint3 of = found[threadIdx.x];
      line[from] = make_uint4(of.x, of.y, of.z, 0);
    }
    __syncthreads();
  }
}
//| end
