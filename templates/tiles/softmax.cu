//| needs "c.exp? l.eight? l.relative? l.sums?"
//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- online softmax (Milakov and Gimelshein 2018; FlashAttention-2, Dao 2023) ----
// Per row: m, the maximum of the scores so far; l, this lane's share of the sum of exp(scale * (s - m)). Scores stay unscaled:
// the scale is folded into the one multiply-add before exp2.
struct RowState {
  float m, l;
};

// Exponents are relative to r, scale * m rounded up: the multiply-add rounds their difference once, what r gained weighs all keys of a row
// alike, and no P is above 1. Beyond FAR in log2 units r gains a bit or more: a row whose largest score is there is computed again
// (exact_rows.cu). Where a larger score follows that is not there, r follows it, and what came before keeps the weight that it has.
constexpr float FAR = 16777216.f;
// r. Of a row that has not seen a key yet, m = -inf, it is 0: exp2(-inf - 0) = 0.
__device__ __forceinline__ float shift_of(float m, float scale_log2) {
  const float r = __fmul_ru(m, scale_log2);
  return m == -infinity() ? 0.f : r;
}
//| if l.relative then
// Where m is r already, and what later blocks bring is added to it: beyond FAR those sums would lose it.
__device__ __forceinline__ float near_shift(float m) { return fabsf(m) > FAR ? 0.f : m; }
//| end
// Whether the exponents of a row with this maximum may have been wrong, or it saw no key.
__device__ __forceinline__ bool is_far(float m, float scale_log2) { return fabsf(m * scale_log2) > FAR; }
__device__ __forceinline__ float probability(float score, float scale_log2, float shift) {
  return exp2_approx($(pr.exponent("score", "scale_log2", "shift")));
}

//| if (c.exp or 0) > 0 then
//|   if not l.eight then
// The same without the special-function unit: 2^x = 2^n 2^f with n the nearest integer, and for 2^f on [-1/2, 1/2] the quartic through
// (0, 1) whose largest relative error is least, 2.8e-6. A cubic's, 1.01e-4, would do for 16-bit P but not for LSE, where a row sees few
//|     if l.relative and l.sums then
// keys. x <= -127 gives 0; 128 and more, and NaN, give infinity: such a row is computed again.
//|     else
// keys. x <= -127 gives 0, and so does NaN: a row that has seen NaN, or +inf, has m = NaN instead, of which all exponents are NaN.
//|     end
__device__ __forceinline__ float exp2_by_fma(float x) {
  x = fmaxf($(l.relative and l.sums and "fminf(x, 128.f)" or "x"), -127.f);
  const float t = x + 12582912.f;  // 1.5 2^23: the nearest integer ends up in the low bits
  const float f = x - (t - 12582912.f);
  const float y = fmaf(fmaf(fmaf(fmaf(0.009582853f, f, 0.055906425f), f, 0.24024099f), f, 0.69312419f), f, 1.f);
  return __int_as_float(__float_as_int(y) + (__float_as_int(t) << 23));
}
//|   end
// The larger of two; NaN where one of them is.
__device__ __forceinline__ float max_or_nan(float x, float y) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
  return r;
}
// Of a quad's, where +inf counts as NaN.
__device__ __forceinline__ float quad_max_or_nan(float x) {
  x = max_or_nan(x, __shfl_xor_sync(~0u, x, 1));
  x = max_or_nan(x, __shfl_xor_sync(~0u, x, 2));
  return x == infinity() ? __int_as_float(0x7fffffff) : x;
}
//| end

// What sums relative to r of m weigh beside those relative to `shift`.
__device__ __forceinline__ float weight_of(float m, float scale_log2, float shift) {
  return $(pr.exp_log2("m", "scale_log2", "shift"));
}

// Takes a new maximum; returns the factor for what was accumulated under the old one.
__device__ __forceinline__ float raise(RowState &row, float m, float scale_log2) {
  const float keep = weight_of(row.m, scale_log2, shift_of(m, scale_log2));
  row.m = m;
  row.l *= keep;
  return keep;
}
// 1 / l to the nearest for 2^-126 <= l <= 2^126, by one step of Newton's as in a division, but without that one's branches; 0 of 0.
__device__ __forceinline__ float reciprocal(float l) {
  const float r = reciprocal_approx(l);
  return l == 0.f ? 0.f : fmaf(r, fmaf(-l, r, 1.f), r);
}
__device__ __forceinline__ float log_sum_exp(const RowState &row, float l, float scale) {
  return l == 0.f ? -infinity() : $(pr.lse_log2("row.m", "l", "scale"));
}
//| pr.sink_functions()
