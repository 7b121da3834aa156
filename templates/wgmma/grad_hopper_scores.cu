//| needs "l.by_eight l.early_d"
//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- S^T of keys and queries becomes P^T, and dP^T becomes dS^T ----
// Where LSE and D of a block of queries lie.
__device__ __forceinline__ u32 rows_at(u32 smem, const Ring<STAGES> &ring) { return smem + SMEM_ROWS + ring.at * BR * 8; }
// LSE in base 2, or D, of the thread's columns: 2 t and 2 t + 1 of each eight queries, which delta.cu keeps in this order.
//| local function sixteen()
    const uint4 four = load_shared_x4(rows + i * 64 + threadIdx.x % 4 * 16);
    x[4 * i] = __uint_as_float(four.x), x[4 * i + 1] = __uint_as_float(four.y);
    x[4 * i + 2] = __uint_as_float(four.z), x[4 * i + 3] = __uint_as_float(four.w);
//| end
__device__ __forceinline__ void load_columns(float (&x)[BR / 4], u32 rows) {
#pragma unroll
  for (int i = 0; i < BR / 16; i++) {
//| sixteen()
  }
}
//| if l.early_d then
// Of the i-th sixteen queries.
__device__ __forceinline__ void load_columns(float (&x)[BR / 4], u32 rows, int i) {
//|   sixteen()
}
//| end

//| if l.by_eight then
//|   local rows = l.early_d and ", u32 rows" or ""
// S^T becomes P^T$(l.early_d and ", and LSE in `columns` becomes D, which lies at `rows`" or "").
// Eight values after eight, each of which wait for one of those before: ptxas would scale all first, and have nothing left to do beside the
// last exponentials. zero: 0, which the compiler cannot prove.
__device__ __forceinline__ void exponentials(float (&s)[NS], float (&columns)[BR / 4], float scale_log2, u32 zero$(rows)) {
#pragma unroll
  for (int begin = 0; begin < NS; begin += 8) {
    const float scale = begin == 0 ? scale_log2 : __uint_as_float(__float_as_uint(scale_log2) | (__float_as_uint(s[begin - 8]) & zero));
#pragma unroll
    for (int i = begin; i < begin + 8; i++) s[i] = $(pr.probability("s[i]", "scale", "columns[i / 4 * 2 + i % 2]"));
//|   if l.early_d then
    load_columns(columns, rows, begin / 8);
//|   end
  }
}
//| elseif not pr.of_pairs or pr.late then
// S^T becomes P^T.
__device__ __forceinline__ void exponentials(float (&s)[NS], const float (&lse)[BR / 4], const Params &p) {
#pragma unroll
  for (int i = 0; i < NS; i++) s[i] = $(pr.probability("s[i]", "p.scale_log2", "lse[i / 4 * 2 + i % 2]"));
}
//| end
// P^T of pairs that the mask hides becomes 0.
__device__ __forceinline__ void hide(float (&s)[NS], const Sequence &sequence, int key, int row) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp_key = threadIdx.x / 32 % 4 * 16;
//| indented(2, pr.hide, "wgmma_keys", "s", "0.f")
}
//| if pr.bends then
// The same of P^T as an operand.
__device__ __forceinline__ void hide(u32 (&a)[NS / 2], const Sequence &sequence, int key, int row) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp_key = threadIdx.x / 32 % 4 * 16;
//|   indented(2, pr.hide_operand, "wgmma_keys", "a")
}
//| end
//| -- Whether arrays have an element for each query and key.
//| local function has_rows(program)
//|   for _, of in ipairs(program.arrays) do
//|     if of.by_row and not of.diagonal then return true end
//|   end
//|   return false
//| end
//| if pr.of_pairs then
//|   local scored = (pr.late and "int head" or "const ScoreTile &scored") .. (pr.marked and ", bool whole" or "")
//|   local becomes = pr.bends and "an operand, and in its place what dP^T - D is multiplied by" or "P^T, and the same as an operand"
// S^T becomes $(becomes): keys from `key` on, queries from `row` on, the warpgroup's first. CUT: some pairs are hidden, or of queries or
// keys past the last, whatever the program makes of those.
template <bool CUT>
__device__ __forceinline__ void score_probabilities(float (&s)[NS], u32 (&a)[NS / 2], const float (&lse)[BR / 4], const Params &p,
                                                    const ScoreTile &scored, const Sequence &sequence, int key, int row) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp_key = threadIdx.x / 32 % 4 * 16;
//|   if pr.bends then
//|     indented(2, pr.bent_operand, "wgmma_keys", "s", "a", "CUT", "CUT")
  if (CUT) hide(s, sequence, key, row), hide(a, sequence, key, row);
//|   else
//|     indented(2, pr.probabilities, "wgmma_keys", "s", nil, "CUT", "CUT")
  if (CUT) hide(s, sequence, key, row);
  pack_rows(a, s);
//|   end
}
//|   if pr.line then
// S^T becomes P^T, of 64 keys and BR queries that are all there and all seen.
__device__ __forceinline__ void line_probabilities(float (&s)[NS], const float (&lse)[BR / 4], const Params &p, const ScoreTile &scored,
                                                   int key, int row) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp_key = threadIdx.x / 32 % 4 * 16;
//|     indented(2, pr.probabilities_by_line, "s")
}
//|   end
//|   local fetches = not pr.marked and not pr.late and not pr.line and has_rows(p.score)
//|   if fetches then
// Elements of the block after the next, into the L2: each warpgroup those of its keys.
__device__ __forceinline__ void fetch_ahead(const Params &p, const ScoreTile &scored, int key, int row) {
  const int thread = threadIdx.x % 128, column = min(key + thread % 2 * 32, scored.sk - 1);
#pragma unroll
  for (int i = 0; i < BR; i += 64) {
    const int ahead = min(row + 2 * BR + i + thread / 2, scored.sq - 1);
//|     for _, of in ipairs(p.score.arrays) do
//|       if of.by_row and not of.diagonal then
    asm volatile("prefetch.global.L2 [%0];" ::
                     "l"(score_ahead$(of.node)(p, scored, scored.h, ahead) + column * p.score$(of.operand)_stride[$(of.rank - 1)]));
//|       end
//|     end
  }
}
//|   end
__device__ __forceinline__ void probabilities(float (&s)[NS], u32 (&a)[NS / 2], const float (&lse)[BR / 4], const Params &p,
                                              const Sequence &sequence, int key, int row, $(scored)) {
//|   if not pr.marked then
//|     pr.whole_block()
//|   end
//|   if pr.late then
  if (whole) {
    exponentials(s, lse, p);
    pack_rows(a, s);
  } else {
    const ScoreTile scored = score_tile(p, sequence, head);
    score_probabilities<true>(s, a, lse, p, scored, sequence, key, row);
  }
//|   elseif pr.line then
  if (whole$(pr.marked and " && row + BR <= scored.sq" or "")$(pr.line_lies())) {
    line_probabilities(s, lse, p, scored, key, row);
    pack_rows(a, s);
  } else
    score_probabilities<true>(s, a, lse, p, scored, sequence, key, row);
//|   else
//|     if fetches then
  fetch_ahead(p, scored, key, row);
//|     end
  if (whole)
    score_probabilities<false>(s, a, lse, p, scored, sequence, key, row);
  else
    score_probabilities<true>(s, a, lse, p, scored, sequence, key, row);
//|   end
}
//| else
// S^T becomes P^T, and the same as an operand: keys from `key` on, queries from `row` on, the warpgroup's first. Rows past the last query
// have LSE = +inf; keys past the last are zeros in shared memory, but their P may be 1. Both branches have the exponentials and the
// packing: a branch between the two would keep them from running beside each other.
//| if l.by_eight then
// A scale that is another one for the compiler keeps it from taking the exponentials out of both.
//|   local with, rows = l.early_d and "zero, rows" or "zero", l.early_d and ", u32 rows" or ""
__device__ __forceinline__ void probabilities(float (&s)[NS], u32 (&a)[NS / 2], float (&columns)[BR / 4], const Params &p,
                                              const Sequence &sequence, int key, int row, u32 zero$(rows)) {
//|   pr.whole_block()
  if (whole) {
    exponentials(s, columns, p.scale_log2, $(with));
    pack_rows(a, s);
  } else {
    float scale_log2;
    asm volatile("mov.b32 %0, %1;" : "=f"(scale_log2) : "f"(p.scale_log2));
    exponentials(s, columns, scale_log2, $(with));
    hide(s, sequence, key, row);
    pack_rows(a, s);
  }
}
//| else
__device__ __forceinline__ void probabilities(float (&s)[NS], u32 (&a)[NS / 2], const float (&lse)[BR / 4], const Params &p,
                                              const Sequence &sequence, int key, int row) {
//|   pr.whole_block()
  if (whole) {
    exponentials(s, lse, p);
    pack_rows(a, s);
  } else {
    exponentials(s, lse, p);
    hide(s, sequence, key, row);
    pack_rows(a, s);
  }
}
//| end
//| end
// dP^T becomes dS^T, which is packed.
__device__ __forceinline__ void grad_scores(float (&dp)[NS], const float (&s)[NS], const float (&delta)[BR / 4]) {
#pragma unroll
  for (int i = 0; i < NS; i++) dp[i] = $(pr.dscore("s[i]", "dp[i]", "delta[i / 4 * 2 + i % 2]"));
}

//| pr.dropping_by("pairs/philox.cu", "wgmma/grad_hopper_dropout.cu")
