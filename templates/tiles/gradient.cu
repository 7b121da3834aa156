// ---- gradients to memory, in their type ----
//| if p.grad == "fp32" then
__device__ __forceinline__ void store_gradient(const Params &p, void *to, long long at, float x) {
  float *const y = (float *)to + at;
  *y = p.accumulate ? *y + x : x;
}
//| else
__device__ __forceinline__ void store_gradient(const Params &, void *to, long long at, float x) { ((u16 *)to)[at] = (u16)pack2(x, 0.f); }
//| end
