//| needs "l.halves? l.shared? l.tail_barriers? l.v_in_k?"
// ---- what waits for what ----
// Every buffer has two mbarriers: `full`, completed by the copy engine, and `empty`, by the consumers' warps.
__device__ __forceinline__ u32 barrier(u32 smem, int index) { return smem + SMEM_BARRIERS + index * 8; }
__device__ __forceinline__ u32 k_full(u32 smem, int stage) { return barrier(smem, stage); }
__device__ __forceinline__ u32 k_empty(u32 smem, int stage) { return barrier(smem, STAGES_K + stage); }
//| if l.v_in_k then
// V lies in K's rows: both have one buffer. Its first LEFT boxes are empty when the first warpgroup has multiplied by them, the rest when the
// second has, or both; and S $(l.tail_barriers and "goes on" or "begins") with the first when these are there.
//|   if l.tail_barriers then
// Boxes of K beside V, by which S begins, are empty when S is there.
__device__ __forceinline__ u32 tail_full(u32 smem, int stage) { return barrier(smem, $(l.tail_barriers) + stage); }
__device__ __forceinline__ u32 tail_empty(u32 smem, int stage) { return barrier(smem, $(l.tail_barriers) + STAGES_K + stage); }
//|   end
__device__ __forceinline__ u32 rest_full(u32 smem, int stage) { return barrier(smem, 2 * STAGES_K + stage); }
__device__ __forceinline__ u32 rest_empty(u32 smem, int stage) { return barrier(smem, 3 * STAGES_K + stage); }
//| else
__device__ __forceinline__ u32 v_full(u32 smem, int stage) { return barrier(smem, 2 * STAGES_K + stage); }
__device__ __forceinline__ u32 v_empty(u32 smem, int stage) { return barrier(smem, 2 * STAGES_K + STAGES_V + stage); }
//|   if l.shared then
// Of V's boxes: these are for the first LEFT, by which the first warpgroup alone multiplies, and these for the rest.
__device__ __forceinline__ u32 rest_full(u32 smem, int stage) { return barrier(smem, REST_BARRIERS + stage); }
__device__ __forceinline__ u32 rest_empty(u32 smem, int stage) { return barrier(smem, REST_BARRIERS + STAGES_V + stage); }
//|   end
//| end
__device__ __forceinline__ u32 q_full(u32 smem, int buffer, int wg) { return barrier(smem, 2 * (STAGES_K + STAGES_V) + buffer * WGS + wg); }
__device__ __forceinline__ u32 q_empty(u32 smem, int buffer, int wg) { return q_full(smem, Q_BUFS + buffer, wg); }
//| if l.halves then
// Each warpgroup's halves of K and V, in their order: it must not wait for those that the other one reads, whose phases it would not see.
__device__ __forceinline__ u32 half_full(u32 smem, int wg, int stage) {
  return wg == 0 ? k_full(smem, stage) : barrier(smem, HALF_BARRIERS + stage);
}
//| end
