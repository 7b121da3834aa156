//| needs "l.sums"
// ---- what heads of a group add to dK and dV, on its way to grad_hopper_fold.cu ----
// In fp32. For 64 keys each thread of a warpgroup has its registers there, four by four, those of dV after those of dK.
constexpr int KEY_SUMS = 128 * (NK + NV);
// part: the number of those that the workspace holds. before: registers that come before those wanted.
__device__ __forceinline__ long long part_of(const Params &p, int part, int key, int before) {
  return (part * (long long)((p.sk + 63) / 64) + key / 64) * KEY_SUMS + before * 128 + threadIdx.x % 128 * 4;
}
template <int N>
__device__ __forceinline__ void leave_part(const Params &p, const float (&sum)[N], const Unit &unit, int key, int before) {
  const int part = SPREAD == 1 ? unit.local : unit.local / p.members * spreads(p) + unit.local % p.members / SPREAD;
  float4 *const to = (float4 *)((float *)p.parts_kv + part_of(p, part, key, before));
#pragma unroll
  for (int i = 0; i < N / 4; i++) to[i * 128] = make_float4(sum[4 * i], sum[4 * i + 1], sum[4 * i + 2], sum[4 * i + 3]);
}
//| if not l.sums then

// Zeros that the compiler does not see through: where it knew what the sums begin with, ptxas would put wgmma one after the other.
template <int N>
__device__ __forceinline__ void clear(float (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) asm volatile("mov.b32 %0, 0;" : "=f"(x[i]));
}
//| end
