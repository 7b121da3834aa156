// ---- the instructions of sm_90a: mbarriers, the tensor copy engine (TMA), the asynchronous matrix product (wgmma) ----

// A tensor map, made by the host (cuTensorMapEncodeTiled): opaque here.
struct __align__(64) TensorMap {
  u64 opaque[16];
};

// An mbarrier's phase ends when `count` threads have arrived and all bytes that were expected have landed. A waiter names the
// parity of the phase that must have ended; of a fresh barrier, the phase before the first counts as ended.
__device__ __forceinline__ void mbarrier_init(u32 barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ __forceinline__ void mbarrier_arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void mbarrier_expect(u32 barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
// The loop is inside the asm: around a loop of C++ the compiler would put instructions that make the lanes meet again.
__device__ __forceinline__ void mbarrier_wait(u32 barrier, u32 parity) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1, 10000000;\n"
               "@done bra.uni over;\n"
               "bra.uni again;\n"
               "over:\n"
               "}" ::"r"(barrier), "r"(parity) : "memory");
}
// Makes the initialised barriers visible to the copy engine.
__device__ __forceinline__ void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
// Orders this thread's stores to shared memory before later reads by the copy engine and the matrix unit.
__device__ __forceinline__ void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// A subset of the block's warps meets at barrier `id`: `threads` in all arrive or wait.
__device__ __forceinline__ void named_wait(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
__device__ __forceinline__ void named_arrive(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

// The warpgroup gives registers back to the block's pool, or takes them from it.
template <int N>
__device__ __forceinline__ void registers_give() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N>
__device__ __forceinline__ void registers_take() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }

// The launch may begin before what precedes it in the stream has ended: no thread touches global memory before it has waited for
// that (CUDA C++ Programming Guide, "Programmatic Dependent Launch"). And the next launch may begin once every block has said so, or
// ended.
__device__ __forceinline__ void grid_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ __forceinline__ void grid_over() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// Brings the map itself near.
__device__ __forceinline__ void tma_prefetch(const TensorMap &map) { asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory"); }
// One box of a tensor of dimensions (column, sequence, head, batch); what lies outside the tensor arrives as zeros and is not stored.
__device__ __forceinline__ void tma_load(u32 to, const TensorMap &map, u32 barrier, int column, int sequence, int head, int batch) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::
                   "r"(to), "l"(&map), "r"(barrier), "r"(column), "r"(sequence), "r"(head), "r"(batch) : "memory");
}
