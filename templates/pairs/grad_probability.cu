// ---- P of the backward pass: at most 1 ----
// A score less its LSE is above 0 by roundings alone, which are more than one unit where LSE is large. NaN stays NaN.
__device__ __forceinline__ float at_most_zero(float x) {
  float y;
  asm("min.NaN.f32 %0, %1, 0f00000000;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float probability_exp2(float x) { return exp2_approx(at_most_zero(x)); }

// An LSE that is no number of fp32 makes P NaN.
__device__ __forceinline__ float finite_lse(float lse) { return fabsf(lse) < infinity() ? lse : __int_as_float(0x7fffffff); }
