// ---- mbarriers between thread blocks of a cluster: what is written before an arrival is seen after the wait ----
// Arrives at the barrier that block `rank` has at this address.
__device__ __forceinline__ void cluster_arrive(u32 barrier, int rank) {
  asm volatile("{\n.reg .b32 remote;\n"
               "mapa.shared::cluster.u32 remote, %0, %1;\n"
               "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier), "r"(rank) : "memory");
}
__device__ __forceinline__ void cluster_wait(u32 barrier, u32 parity) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1, 10000000;\n"
               "@done bra.uni over;\n"
               "bra.uni again;\n"
               "over:\n"
               "}" ::"r"(barrier), "r"(parity) : "memory");
}
