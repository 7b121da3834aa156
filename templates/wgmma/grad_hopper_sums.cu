// ---- sums of dK and dV on their way from launch to launch ----

//| include "tiles/load_sums.cu"

// Where a group is done in several launches, sums of dK and dV go from one to the next in fp32, and the last stores gradients: their bits
// are those of one launch. For 64 keys each thread of a warpgroup has its registers there, four by four, those of dV after those of dK.
constexpr int KEY_SUMS = 128 * (NK + NV);
__device__ __forceinline__ float4 *sums_of(const Params &p, const Unit &unit, int key, int before) {
  const long long tile = (long long)unit.local * p.tiles + key / KEYS;
  return (float4 *)((float *)p.sums_kv + (tile * (KEYS / 64) + key % KEYS / 64) * KEY_SUMS + before * 128) + threadIdx.x % 128;
}
__device__ __forceinline__ bool last_members(const Params &p) { return p.member + p.members == p.group; }

// What the launches before have left of 64 keys from `key` on, or zeros. before: registers in front.
template <int N>
__device__ __forceinline__ void begin_sums(const Params &p, float (&sum)[N], const Unit &unit, int key, int before) {
  const float4 *const from = sums_of(p, unit, key, before);
#pragma unroll
  for (int i = 0; i < N / 4; i++) load_sums(sum + 4 * i, from + i * 128, p.member > 0);
}
template <int N>
__device__ __forceinline__ void leave_sums(const Params &p, const float (&sum)[N], const Unit &unit, int key, int before) {
  float4 *const to = sums_of(p, unit, key, before);
#pragma unroll
  for (int i = 0; i < N / 4; i++) to[i * 128] = make_float4(sum[4 * i], sum[4 * i + 1], sum[4 * i + 2], sum[4 * i + 3]);
}
