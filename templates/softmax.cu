// ---- online softmax (Milakov and Gimelshein 2018; FlashAttention-2, Dao 2023) ----
// Per row: m, the maximum of the scores so far; l, this lane's share of the sum of exp(scale * (s - m)). Scores stay unscaled:
// the scale is folded into the one multiply-add in front of exp2.
struct RowState {
  float m, l;
};

// scale * m as exp2 subtracts it. MASKED: the row may not have seen a key yet, m = -inf; then 0, so that exp2(-inf - 0) = 0.
template <bool MASKED>
__device__ __forceinline__ float shift_of(float m, float scale_log2) {
  return MASKED && m == -infinity() ? 0.f : m * scale_log2;
}
__device__ __forceinline__ float probability(float score, float scale_log2, float shift) {
  return exp2_approx(fmaf(score, scale_log2, -shift));
}

// Takes a new maximum; returns the factor for what was accumulated under the old one.
template <bool MASKED>
__device__ __forceinline__ float raise(RowState &row, float m, float scale_log2) {
  const float keep = probability(row.m, scale_log2, shift_of<MASKED>(m, scale_log2));
  row.m = m;
  row.l *= keep;
  return keep;
}
__device__ __forceinline__ float reciprocal(float l) { return l == 0.f ? 0.f : 1.f / l; }
__device__ __forceinline__ float log_sum_exp(const RowState &row, float l, float scale) {
  return l == 0.f ? -infinity() : fmaf(row.m, scale, log2_approx(l) * 0.693147180559945309f);
}
