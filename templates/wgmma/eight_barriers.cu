//| needs "l.transposes l.turned_barriers? l.idle_barrier?"
// ---- what waits for what ----
// Every buffer has two mbarriers: `full`, completed by the copy engine, and `empty`, by the warps that read it.
__device__ __forceinline__ u32 barrier(u32 smem, int index) { return smem + SMEM_BARRIERS + index * 8; }
__device__ __forceinline__ u32 k_full(u32 smem, int stage) { return barrier(smem, stage); }
__device__ __forceinline__ u32 k_empty(u32 smem, int stage) { return barrier(smem, STAGES_K + stage); }
__device__ __forceinline__ u32 v_full(u32 smem, int stage) { return barrier(smem, 2 * STAGES_K + stage); }
__device__ __forceinline__ u32 v_empty(u32 smem, int stage) { return barrier(smem, 2 * STAGES_K + STAGES_V + stage); }
__device__ __forceinline__ u32 q_full(u32 smem, int buffer, int wg) { return barrier(smem, 2 * (STAGES_K + STAGES_V) + buffer * WGS + wg); }
__device__ __forceinline__ u32 q_empty(u32 smem, int buffer, int wg) { return q_full(smem, Q_BUFS + buffer, wg); }
//| if l.idle_barrier then
// No thread arrives at it: the phase before its first is over, and stays so.
__device__ __forceinline__ u32 idle_barrier(u32 smem) { return barrier(smem, $(l.idle_barrier)); }
//| end
//| if l.transposes then
// Of V transposed, which warps write.
__device__ __forceinline__ u32 turned_full(u32 smem, int stage) { return barrier(smem, $(l.turned_barriers) + stage); }
__device__ __forceinline__ u32 turned_empty(u32 smem, int stage) { return barrier(smem, $(l.turned_barriers) + STAGES_T + stage); }
//| end
