//| needs "l.told_barriers"
// ---- blocks of a cluster do the same tiles: the first one draws, and tells the others ----
__device__ __forceinline__ u32 told_full(u32 smem) { return barrier(smem, $(l.told_barriers)); }
__device__ __forceinline__ u32 told_empty(u32 smem) { return barrier(smem, $(l.told_barriers + 1)); }
__device__ __forceinline__ u32 told_number(u32 smem) { return barrier(smem, $(l.told_barriers + 2)); }
// Arrives at the barrier of block `rank`, which sees what this thread wrote before.
__device__ __forceinline__ void arrive_and_show(u32 barrier, int rank) {
  asm volatile("{\n.reg .b32 remote;\n"
               "mapa.shared::cluster.u32 remote, %0, %1;\n"
               "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier), "r"(rank) : "memory");
}
__device__ __forceinline__ void wait_and_see(u32 barrier, u32 parity) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1, 10000000;\n"
               "@done bra.uni over;\n"
               "bra.uni again;\n"
               "over:\n"
               "}" ::"r"(barrier), "r"(parity) : "memory");
}
__device__ __forceinline__ void store_at(u32 address, int rank, u32 x) {
  asm volatile("{\n.reg .b32 remote;\n"
               "mapa.shared::cluster.u32 remote, %0, %1;\n"
               "st.shared::cluster.u32 [remote], %2;\n}" ::"r"(address), "r"(rank), "r"(x) : "memory");
}
// What the first block's first lane has drawn. By whole warps, one of each block.
__device__ __forceinline__ u32 told(u32 smem, Ring<1> &turn, u32 drawn, int lane) {
  if (cluster_rank() == 0) {
    drawn = __shfl_sync(~0u, drawn, 0);
    if (lane > 0 && lane < CLUSTER) {
      wait_and_see(told_empty(smem), turn.parity ^ 1);
      store_at(told_number(smem), lane, drawn);
      arrive_and_show(told_full(smem), lane);
    }
  } else {
    wait_and_see(told_full(smem), turn.parity);
    drawn = load_shared(told_number(smem));
    __syncwarp();
    if (lane == 0) arrive_and_show(told_empty(smem), 0);
  }
  __syncwarp();
  turn.next();
  return drawn;
}
