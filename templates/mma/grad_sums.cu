//| needs "l.pass?"
// ---- sums of dK and dV on their way from launch to launch ----

//| include "tiles/load_sums.cu"

// Where a group is done in several launches they go on in fp32, and the last launch stores gradients: their bits are those of one launch.
// The threads that hold a sum have their registers of a tile of keys there, four by four. local: the unit, of those that the workspace
// holds.
__device__ __forceinline__ bool last_members(const Params &p) { return p.member + p.members == p.group; }
//| if l.pass then
// Of each pass dK, then dV.
__device__ __forceinline__ float4 *sums_of(const Params &p, int local, int tile, int pass) {
  return (float4 *)p.sums_kv + (((u64)(u32)local * (u32)p.tiles + (u32)tile) * PASSES + pass) * (KEYS * 4 * PASS);
}
//| else
__device__ __forceinline__ float4 *sums_of(const Params &p, int local, int tile) {
  return (float4 *)p.sums_kv + (u64)((u32)local * (u32)p.tiles + (u32)tile) * (KEYS * 2 * (CHUNKS + CHUNKS_V));
}
//| end

// What the launches before have left, or zeros. HOLDERS: threads that hold such a sum.
template <int HOLDERS, int CHUNKS_OF>
__device__ __forceinline__ void begin_sums(const Params &p, float (&sum)[KB][CHUNKS_OF][4], const float4 *from) {
  from += threadIdx.x % HOLDERS;
#pragma unroll
  for (int m = 0; m < KB; m++)
#pragma unroll
    for (int n = 0; n < CHUNKS_OF; n++) load_sums(sum[m][n], from + (m * CHUNKS_OF + n) * HOLDERS, p.member > 0);
}
template <int HOLDERS, int CHUNKS_OF>
__device__ __forceinline__ void leave_sums(const float (&sum)[KB][CHUNKS_OF][4], float4 *to) {
  to += threadIdx.x % HOLDERS;
#pragma unroll
  for (int m = 0; m < KB; m++)
#pragma unroll
    for (int n = 0; n < CHUNKS_OF; n++)
      to[(m * CHUNKS_OF + n) * HOLDERS] = make_float4(sum[m][n][0], sum[m][n][1], sum[m][n][2], sum[m][n][3]);
}
