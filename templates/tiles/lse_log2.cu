//| local pr = include("pairs/pairs.lua").of(p, l)
//| if pr.unit == "p.scale" then
// LSE in base 2, rounded once: its product with scale_log2 / scale, which is log2(e) but for the rounding of scale_log2. With plain log2(e)
// a large score and its LSE would end up further apart. Of scales that have no reciprocal scores are small.
__device__ __forceinline__ float lse_log2(const Params &p, float lse) {
  const float rest = fmaf(-LOG2E, p.scale, p.scale_log2) * reciprocal_approx(p.scale);  // of LOG2E
  return finite_lse(fmaf(lse, LOG2E, p.scale > 1e-30f && p.scale < 1e30f ? lse * rest : 0.f));
}
//| else
// LSE in base 2, rounded once, as the score that it is taken away from.
__device__ __forceinline__ float lse_log2(const Params &p, float lse) {
//|   if pr.unit == "1.f" then
  // Where it passes fp32 P is 0 or 1.
  return fabsf(lse) < infinity() ? fminf(fmaxf(lse * LOG2E, -3.40282347e38f), 3.40282347e38f) : __int_as_float(0x7fffffff);
//|   else
  const float unit = $(pr.unit), rest = fmaf(-LOG2E, unit, $(pr.unit_log2)) * reciprocal_approx(unit);  // of LOG2E
  return finite_lse(fmaf(lse, LOG2E, unit > 1e-30f && unit < 1e30f ? lse * rest : 0.f));
//|   end
}
//| end
