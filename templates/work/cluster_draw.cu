//| needs "l.draw_barriers"
// ---- blocks of a cluster work on the same tiles: the first one draws, and stores the number in the others' shared memory ----
__device__ __forceinline__ u32 draw_full(u32 smem) { return barrier(smem, $(l.draw_barriers)); }
__device__ __forceinline__ u32 draw_empty(u32 smem) { return barrier(smem, $(l.draw_barriers + 1)); }
__device__ __forceinline__ u32 draw_slot(u32 smem) { return barrier(smem, $(l.draw_barriers + 2)); }
__device__ __forceinline__ void store_at(u32 address, int rank, u32 x) {
  asm volatile("{\n.reg .b32 remote;\n"
               "mapa.shared::cluster.u32 remote, %0, %1;\n"
               "st.shared::cluster.u32 [remote], %2;\n}" ::"r"(address), "r"(rank), "r"(x) : "memory");
}
// What the first lane of the first block has drawn, in all blocks. By whole warps, one of each block.
__device__ __forceinline__ u32 cluster_draw(u32 smem, Ring<1> &turn, u32 drawn, int lane) {
  if (cluster_rank() == 0) {
    drawn = __shfl_sync(~0u, drawn, 0);
    if (lane > 0 && lane < CLUSTER) {
      cluster_wait(draw_empty(smem), turn.parity ^ 1);
      store_at(draw_slot(smem), lane, drawn);
      cluster_arrive(draw_full(smem), lane);
    }
  } else {
    cluster_wait(draw_full(smem), turn.parity);
    drawn = load_shared(draw_slot(smem));
    __syncwarp();
    if (lane == 0) cluster_arrive(draw_empty(smem), 0);
  }
  __syncwarp();
  turn.next();
  return drawn;
}
