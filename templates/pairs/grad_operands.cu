//| needs "l.delta_pad? l.pairs?"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
//| local reads = p.score.reads
//| local function print_lines(lines)
//|   for _, line in ipairs(lines) do
$(line)
//|   end
//| end
//| -- Of those who read so: the planes of a sum, a number for each.
//| local function planes(by) return reads.planes[by] end
// ---- gradients of the score program's operands ----
// Each is a sum over pairs of what the score's gradient, P (dP - D), is multiplied by where the program reads the operand. S and dP are
// computed once more. Sums over the keys of a query, the queries of a key, or the pairs of one distance are left in memory, each by one
// block; a last kernel adds up those of each element in one order. So every launch has the same bits.
//| include "machine/pair_products.cu"

// S and dP of queries from row0 and keys from key0 on, which may be before the first; keys but from first to last are not read.
__device__ __forceinline__ void pair_tile(const Params &p, const Sequence &sequence, int head, int row0, int key0, int first, int last,
                                          float *shared, float (&s)[4][4], float (&dp)[4][4]) {
  const int sq = sequence.sq(), kv_head = head / p.group;
  const long long q = sequence.q() + head * p.q_sh, k = sequence.k() + kv_head * p.k_sh, v = sequence.v() + kv_head * p.v_sh;
  const long long grad_o = sequence.grad_o() + head * p.grad_o_sh;
  auto seen = [&](int key) { return key0 + key >= first && key0 + key <= last; };
//| if p.bytes == 2 and p.o == p.dtype then
  auto rows = [&](const void *x, long long at, long long stride) {
    return [=](int row) { return row0 + row < sq ? pair_row(x, at + (row0 + row) * stride) : nullptr; };
  };
  auto keys = [&](const void *x, long long at, long long stride) {
    return [=](int key) { return seen(key) ? pair_row(x, at + (key0 + key) * stride) : nullptr; };
  };
  pair_product<D>(s, shared, rows(p.q, q, p.q_ss), keys(p.k, k, p.k_ss));
  pair_product<DV>(dp, shared, rows(p.grad_o, grad_o, p.grad_o_ss), keys(p.v, v, p.v_ss));
//| else
  pair_product<D>(s, shared, [&](int row, int i) { return row0 + row < sq ? number_of(p.q, q + (row0 + row) * p.q_ss + i) : 0.f; },
                  [&](int key, int i) { return seen(key) ? number_of(p.k, k + (key0 + key) * p.k_ss + i) : 0.f; });
  pair_product<DV>(dp, shared,
                   [&](int row, int i) {
                     return row0 + row < sq ? load_o((const char *)p.grad_o, grad_o + (row0 + row) * p.grad_o_ss + i) : 0.f;
                   },
                   [&](int key, int i) { return seen(key) ? number_of(p.v, v + (key0 + key) * p.v_ss + i) : 0.f; });
//| end
}

// A row's D.
__device__ __forceinline__ float delta_of(const Params &p, const Sequence &sequence, int head, int row) {
//| if l.delta_pad then
  const int place = row % $(l.delta_pad) / 16 * 16 + row % 8 / 2 * 4 + row / 8 % 2 * 2 + row % 2;
  return ((const float *)p.delta)[2 * sequence.delta(head, row - row % $(l.delta_pad)) + $(l.delta_pad) + place];
//| elseif l.pairs then
  return ((const float2 *)p.delta)[sequence.delta(head, row)].y;
//| else
  return ((const float *)p.delta)[sequence.delta(head, row)];
//| end
}

//| -- What a tile's pairs add, by what reads depend on: by[n] of plane n.
//| local function pairs_of(by, body)
const ScoreTile scored = score_tile(p, sequence, head);
#pragma unroll 1
for (int i = 0; i < 4; i++) {
  const int row = row0 + 4 * y + i, in_row = min(row, sequence.sq() - 1);
  const float lse = p.lse[sequence.lse(head, in_row)], delta = delta_of(p, sequence, head, in_row);
  const int lo = $(pr.first_key("in_row")), hi = row < sequence.sq() && lse != -infinity() ? $(pr.last_key("in_row")) : -1;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    const int key = key0 + 4 * x + j, in_key = min(max(key, 0), sequence.sk() - 1);
    const bool visible = $(pr.seen("key", "lo", "hi"))$(pr.and_sees("head", "in_row", "in_key"));
    float by[$(planes(by))];
    const float score = score_reads_$(by)(p, scored, head, in_row, in_key, 0, s[i][j], by);
//|   indented(4, pr.dropping, "const bool kept = " .. pr.keeps("(int)(batch * p.hq + head)", "row", "key") .. ";")
    const float e = visible ? $(pr.probability_e("score * " .. pr.unit, "finite_lse(lse)")) : 0.f;
    const float g = e != 0.f ? $(pr.dscore("e", pr.kept("dp[i][j]"), "delta")) : 0.f;
//|   indented(4, body)
  }
}
//| end

//| for _, by in ipairs({ "row", "key", "band", "pair" }) do
//|   if planes(by) > 0 then
//|     local of = ({ row = "for the query", key = "for the key", band = "for their distance", pair = "for the pair" })[by]
// The score of a pair in its unit, and its derivatives by what is read $(of).
__device__ __forceinline__ float score_reads_$(by)(const Params &p, const ScoreTile &t, int head, int row, int key, int column, float x,
                                            float (&by)[$(planes(by))]) {
  constexpr bool CUT = true;
//|     print_lines(reads.lines("by", by))
}
//|   end
//| end

//| if planes("row") > 0 then
// Sums over the keys of a query.
extern "C" __global__ void __launch_bounds__(256) fa_operand_rows(const __grid_constant__ Params p) {
  extern __shared__ __align__(16) float pair_shared[];
  float *const shared = pair_shared;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16, tiles = (p.sq + PAIRS - 1) / PAIRS;
  for (int work = $(wk.block); work < tiles * p.hq * p.b; work += $(wk.blocks)) {
    const int row0 = work % tiles * PAIRS, head = work / tiles % p.hq;
    const long long batch = work / tiles / p.hq;
    const Sequence sequence = sequence_of(p, batch);
    if (row0 >= sequence.sq()) continue;
    const Range range = key_range(p, sequence, row0, min(row0 + PAIRS, sequence.sq()) - 1);
    float sum[4][$(planes("row"))] = {};
    for (int key0 = range.key_lo / PAIRS * PAIRS; key0 <= range.key_hi; key0 += PAIRS) {
//| if pr.marked then
      if (!marks_of_queries(p, sequence, head, row0, PAIRS).some(key0, PAIRS)) continue;
//| end
      float s[4][4], dp[4][4];
      pair_tile(p, sequence, head, row0, key0, range.key_lo, range.key_hi, shared, s, dp);
//|   indented(6, pairs_of, "row", function()
#pragma unroll
for (int n = 0; n < $(planes("row")); n++) sum[i][n] += e != 0.f ? g * by[n] : 0.f;
//|   end)
    }
    for (int i = 0; i < 4; i++)
      for (int n = 0; n < $(planes("row")); n++) {
        float all = sum[i][n];
        for (int lane = 8; lane > 0; lane /= 2) all += __shfl_xor_sync(~0u, all, lane);
        const int row = row0 + 4 * y + i;
        if (x == 0 && row < sequence.sq()) ((float *)p.sums_row)[((n * p.b + batch) * p.hq + head) * p.sq + row] = all;
      }
  }
}
//| end
//| if planes("key") > 0 then
// Sums over the queries of a key.
extern "C" __global__ void __launch_bounds__(256) fa_operand_keys(const __grid_constant__ Params p) {
  extern __shared__ __align__(16) float pair_shared[];
  float *const shared = pair_shared;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16, tiles = (p.sk + PAIRS - 1) / PAIRS;
  for (int work = $(wk.block); work < tiles * p.hq * p.b; work += $(wk.blocks)) {
    const int key0 = work % tiles * PAIRS, head = work / tiles % p.hq;
    const long long batch = work / tiles / p.hq;
    const Sequence sequence = sequence_of(p, batch);
    if (key0 >= sequence.sk()) continue;
    float sum[4][$(planes("key"))] = {};
    for (int row0 = 0; row0 < sequence.sq(); row0 += PAIRS) {
      const Range range = key_range(p, sequence, row0, min(row0 + PAIRS, sequence.sq()) - 1);
      if (key0 > range.key_hi || key0 + PAIRS <= range.key_lo) continue;
//| if pr.marked then
      if (!marks_of_keys(p, sequence, head, key0, PAIRS).some(row0, PAIRS)) continue;
//| end
      float s[4][4], dp[4][4];
      pair_tile(p, sequence, head, row0, key0, range.key_lo, range.key_hi, shared, s, dp);
//|   indented(6, pairs_of, "key", function()
#pragma unroll
for (int n = 0; n < $(planes("key")); n++) sum[j][n] += e != 0.f ? g * by[n] : 0.f;
//|   end)
    }
    for (int n = 0; n < $(planes("key")); n++) {
      for (int j = 0; j < 4; j++) shared[y * PAIRS + 4 * x + j] = sum[j][n];
      __syncthreads();
      const int key = key0 + (int)threadIdx.x;
      if (threadIdx.x < PAIRS && key < sequence.sk()) {
        float all = 0.f;
        for (int i = 0; i < 16; i++) all += shared[i * PAIRS + threadIdx.x];
        ((float *)p.sums_key)[((n * p.b + batch) * p.hq + head) * p.sk + key] = all;
      }
      __syncthreads();
    }
  }
}
//| end
//| if planes("band") > 0 then
// Sums over the pairs of a distance, key - query: a block has 64 distances, of which a tile of queries meets 127 keys.
extern "C" __global__ void __launch_bounds__(256) fa_operand_bands(const __grid_constant__ Params p) {
  extern __shared__ __align__(16) float pair_shared[];
  float *const shared = pair_shared;
  float *const tile = shared + PAIRS_SHARED;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16, own = threadIdx.x / 4, bands = (p.sq + p.sk - 1 + PAIRS - 1) / PAIRS;
  for (int work = $(wk.block); work < bands * p.hq * p.b; work += $(wk.blocks)) {
    const int first = work % bands * PAIRS - (p.sq - 1), head = work / bands % p.hq;  // the lowest distance
    const long long batch = work / bands / p.hq;
    const Sequence sequence = sequence_of(p, batch);
    float sum[$(planes("band"))] = {};
    for (int row0 = 0; row0 < sequence.sq(); row0 += PAIRS) {
      const Range range = key_range(p, sequence, row0, min(row0 + PAIRS, sequence.sq()) - 1);
      for (int half = 0; half < 2; half++) {
        const int key0 = row0 + first + half * PAIRS;
        if (key0 > range.key_hi || key0 + PAIRS <= range.key_lo) continue;
//|   if pr.marked then
        if (marks_of_queries(p, sequence, head, row0, PAIRS).between(max(key0, 0), key0 + PAIRS - 1).x == 0) continue;
//|   end
        float s[4][4], dp[4][4];
        pair_tile(p, sequence, head, row0, key0, range.key_lo, range.key_hi, shared, s, dp);
//|   for n = 0, planes("band") - 1 do
        {
//|   indented(10, pairs_of, "band", function()
tile[(4 * y + i) * (PAIRS + 1) + 4 * x + j] = e != 0.f ? g * by[$(n)] : 0.f;
//|   end)
          __syncthreads();
          for (int row = threadIdx.x % 4; row < PAIRS; row += 4) {
            const int key = own + row - half * PAIRS;
            if (key >= 0 && key < PAIRS) sum[$(n)] += tile[row * (PAIRS + 1) + key];
          }
          __syncthreads();
        }
//|   end
      }
    }
    const int distance = first + own;
    for (int n = 0; n < $(planes("band")); n++) {
      float all = sum[n] + __shfl_xor_sync(~0u, sum[n], 1);
      all += __shfl_xor_sync(~0u, all, 2);
      const long long plane = (n * p.b + batch) * p.hq + head;
      if (threadIdx.x % 4 == 0 && distance < p.sk)
        (distance < 0 ? (float *)p.sums_behind + plane * p.sq - distance : (float *)p.sums_ahead + plane * p.sk + distance)[0] = all;
    }
  }
}
//| end

//| local function address(read, index)
//|   local text = ("p.score%d_grad"):format(read.operand)
//|   for k = 1, read.rank do text = text .. (" + %s * p.score%d_grad_stride[%d]"):format(index(k), read.operand, k - 1) end
//|   return text
//| end
//| for _, read in ipairs(reads.list) do
//|   if read.by == "pair" then
//|     local over = read.over
// An element for each pair of operand $(read.operand)$((over.b < 0 or over.h < 0) and ": summed over what it has no index of" or "").
extern "C" __global__ void __launch_bounds__(256) fa_operand_pairs$(read.operand)(const __grid_constant__ Params p) {
  extern __shared__ __align__(16) float pair_shared[];
  float *const shared = pair_shared;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16, columns = (p.sk + PAIRS - 1) / PAIRS, tiles = (p.sq + PAIRS - 1) / PAIRS * columns;
  const int heads = $(over.h < 0 and "1" or "p.hq"), batches = $(over.b < 0 and "1" or "p.b");
  for (int work = $(wk.block); work < tiles * heads * batches; work += $(wk.blocks)) {
    const int key0 = work % columns * PAIRS, row0 = work % tiles / columns * PAIRS;
    const int h0 = work / tiles % heads, b0 = work / tiles / heads;
    float sum[4][4] = {};
    for (long long batch = b0; batch < $(over.b < 0 and "p.b" or "b0 + 1"); batch++) {
      const Sequence sequence = sequence_of(p, batch);
      if (row0 >= sequence.sq()) continue;
      const Range range = key_range(p, sequence, row0, min(row0 + PAIRS, sequence.sq()) - 1);
      if (key0 > range.key_hi || key0 + PAIRS <= range.key_lo) continue;
      for (int head = h0; head < $(over.h < 0 and "p.hq" or "h0 + 1"); head++) {
//|     if pr.marked then
        if (!marks_of_keys(p, sequence, head, key0, PAIRS).some(row0, PAIRS)) continue;
//|     end
        float s[4][4], dp[4][4];
        pair_tile(p, sequence, head, row0, key0, range.key_lo, range.key_hi, shared, s, dp);
//|   indented(8, pairs_of, "pair", function()
sum[i][j] += e != 0.f ? g * by[$(read.plane)] : 0.f;
//|   end)
      }
    }
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 4; j++) {
        const int row = row0 + 4 * y + i, key = key0 + 4 * x + j;
        if (row >= p.sq || key >= p.sk) continue;
//|     local names = {}
//|     if over.b >= 0 then names[over.b + 1] = "b0" end
//|     if over.h >= 0 then names[over.h + 1] = "h0" end
//|     names[over.i + 1], names[over.j + 1] = "row", "key"
        float *const to = $(address(read, function(k) return names[k] end));
        *to = p.accumulate ? *to + sum[i][j] : sum[i][j];
      }
  }
}
//|   end
//| end

//| if reads.folds then
//|   for n, read in ipairs(reads.list) do
//|     if read.by ~= "pair" then
//|       local of = read.by == "band" and "distance" or read.by == "key" and "key" or "query"
// Whether the read of operand $(read.operand) for this sequence, head and $(of) is of the element.
__device__ __forceinline__ bool read_matches$(n)(const Params &p, int b, int h, int x, int off, int sq, int sk, int x0, int x1, int x2,
                                                 int x3) {
//|       print_lines(reads.lines("match", n))
}
//|       if read.root == "sink" then
__device__ __forceinline__ float sink_by$(n)(const Params &p, int b, int h, int row, int off, int sq, int sk) {
//|         print_lines(reads.lines("sink", n))
}
//|       end
//|     end
//|   end
//|   if pr.has_sink then
// The gradient of a row's sink, whose value is 0.
__device__ __forceinline__ float sink_gradient(const Params &p, const Sequence &sequence, int head, int row) {
  const float lse = p.lse[sequence.lse(head, row)];
  if (lse == -infinity()) return 0.f;
  const float e = $(pr.probability_e("sink_of(p, sequence, head, row)", "finite_lse(lse)"));
  return e != 0.f ? $(pr.dscore("e", "0.f", "delta_of(p, sequence, head, row)")) : 0.f;
}
//|   end
//|   local off = p.score.off and "p.relative ? sk - sq : p.off" or "0"

// Elements of all operands but those that have one for each pair: a warp for each, whose lanes add up every 32nd of its sums.
extern "C" __global__ void __launch_bounds__(256) fa_operand_fold(const __grid_constant__ Params p) {
  const int lane = threadIdx.x % 32, warps = $(wk.blocks) * 8;
//|   for _, operand in ipairs(reads.operands) do
  {
//|     local n = {}
//|     for k = 1, 4 do n[k] = k <= operand.rank and ("p.score%d_extent[%d]"):format(operand.number, k - 1) or "1" end
    // None where the array has none.
    const long long elements = p.score$(operand.number)_grad == nullptr ? 0 : (long long)$(n[1]) * $(n[2]) * $(n[3]) * $(n[4]);
    for (long long element = $(wk.block) * 8 + threadIdx.x / 32; element < elements; element += warps) {
      const int x3 = (int)(element % $(n[4])), x2 = (int)(element / $(n[4]) % $(n[3]));
      const int x1 = (int)(element / $(n[4]) / $(n[3]) % $(n[2])), x0 = (int)(element / $(n[4]) / $(n[3]) / $(n[2]));
      float sum = 0.f;
//|     for number_of_read, read in ipairs(reads.list) do
//|       if read.operand == operand.number and read.by ~= "pair" then
//|         local fixed = read.fixed
      for (int b = $(fixed.b or "0"); b < $(fixed.b and fixed.b .. " + 1" or "p.b"); b++) {
        const Sequence sequence = sequence_of(p, b);
        const int sq = sequence.sq(), sk = sequence.sk(), off = $(off);
        for (int h = $(fixed.h or "0"); h < $(fixed.h and fixed.h .. " + 1" or "p.hq"); h++) {
//|         local lo, hi = "0", "sq"
//|         if read.by == "key" then hi = "sk" end
//|         if read.by == "band" then lo, hi = "1 - sq", "sk" end
          int x = $(lo), end = $(hi);
//|         if fixed.x then
          x = max(x, $(fixed.x)), end = min(end, $(fixed.x) + 1);
//|         end
          for (x += lane; x < end; x += 32) {
            if (!read_matches$(number_of_read)(p, b, h, x, off, sq, sk, x0, x1, x2, x3)) continue;
//|         if read.root == "sink" then
            const float g = sink_gradient(p, sequence, h, x);
            sum += g != 0.f ? g * sink_by$(number_of_read)(p, b, h, x, off, sq, sk) : 0.f;
//|         else
            const long long plane = ($(read.plane) * (long long)p.b + b) * p.hq + h;
//|           if read.by == "row" then
            sum += ((const float *)p.sums_row)[plane * p.sq + x];
//|           elseif read.by == "key" then
            sum += ((const float *)p.sums_key)[plane * p.sk + x];
//|           else
            sum += (x < 0 ? (const float *)p.sums_behind + plane * p.sq - x : (const float *)p.sums_ahead + plane * p.sk + x)[0];
//|           end
//|         end
          }
        }
      }
//|       end
//|     end
#pragma unroll
      for (int i = 16; i > 0; i /= 2) sum += __shfl_xor_sync(~0u, sum, i);
      float *const to = $(address({ operand = operand.number, rank = operand.rank }, function(k) return "x" .. (k - 1) end));
      if (lane == 0) *to = p.accumulate ? *to + sum : sum;
    }
  }
//|   end
}
//| end
