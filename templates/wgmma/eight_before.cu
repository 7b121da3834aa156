//| needs "l.before_t l.ones"
//| local wk = include("work/work.lua").of(p, l)
// ---- V transposed once: a kernel before writes each block of keys to the workspace, byte by byte as products read it ----
// number: of the block and of all heads that have the same keys.
__device__ __forceinline__ unsigned char *turned_block(const Params &p, long long number) { return (unsigned char *)p.turned_v + number * V_TILE; }
__device__ __forceinline__ unsigned char *turned_block(const Params &p, long long batch, int kv_head, int block) {
  return turned_block(p, ((long long)block * p.b + batch) * p.hkv + kv_head);
}
// `bytes` of global memory to shared memory, a multiple of 16.
__device__ __forceinline__ void bulk_load(u32 to, const void *from, int bytes, u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
                   "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

//| include "wgmma/eight_transpose.cu"

// A thread block has one block of keys. Keys that no row sees are zeros, as the map has none of them.
extern "C" __global__ void __launch_bounds__(32 * TRANSPOSERS)
    fa_transpose(const __grid_constant__ Params p, const __grid_constant__ TensorMap v_map) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const u32 smem = shared_address(shared), turned = smem + $(l.before_t), full = turned + V_TILE;
  const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  const int number = (int)$(wk.block), kv_head = number % p.hkv, batch = number / p.hkv % p.b, block = number / p.hkv / p.b;
  const Sequence sequence = sequence_of(p, batch);
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    fence_barrier_init();
  }
  __syncthreads();
  grid_over(), grid_wait();
  if (threadIdx.x == 0) {
    mbarrier_expect(full, BC * BOXES_V * ROW);
#pragma unroll
    for (int box = 0; box < BOXES_V; box++)
      tma_load(smem + box * BC * ROW, v_map, full, box * BOX, sequence.map_key(block * BC), kv_head, sequence.map_batch());
  }
//| if l.ones then
  constexpr u32 ONES = $(p.dtype == "e4m3" and "0x38383838" or "0x3c3c3c3c");  // four in V's type
  for (int i = threadIdx.x; i < BC / 2; i += 32 * TRANSPOSERS)
    store_shared(turned + (i / (KEY_BOX / 2) * TURNED + SUM) * KEY_BOX + i % (KEY_BOX / 2) * 16, make_uint4(ONES, ONES, ONES, ONES));
//| end
  mbarrier_wait(full, 0);
  transpose(smem, turned, warp, lane);
  __syncthreads();
  uint4 *const to = (uint4 *)turned_block(p, number);
#pragma unroll
  for (int i = threadIdx.x; i < V_TILE / 16; i += 32 * TRANSPOSERS) to[i] = load_shared_x4(turned + i * 16);
}
