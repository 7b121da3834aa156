//| needs "c.bc c.box c.cluster c.o_path l.begins? l.cuts? l.fades? l.fences_bare? l.joined?"
//| needs "l.o_regs l.persistent? l.q_held? l.shared? l.v_in_k?"
//| if l.persistent and include("pairs/edges.lua").walks(p) then
// Brings a box into the L2.
__device__ __forceinline__ void tma_load_l2(const TensorMap &map, int column, int sequence, int head, int batch) {
  asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%0, {%1, %2, %3, %4}];" ::"l"(&map), "r"(column), "r"(sequence), "r"(head),
               "r"(batch) : "memory");
}
//| end
//| if l.joined then
// The same of a map of rank 5.
__device__ __forceinline__ void tma_load(u32 to, const TensorMap &map, u32 barrier, int column, int c1, int c2, int c3, int c4) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::
                   "r"(to), "l"(&map), "r"(barrier), "r"(column), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
}
//| end
//| if c.cluster > 1 then
// The same for all blocks of the cluster: the box lands at the same offset in each, and counts at each one's own barrier.
__device__ __forceinline__ void tma_load_for_all(u32 to, const TensorMap &map, u32 barrier, int column, int sequence, int head, int batch) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
               "[%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::
                   "r"(to), "l"(&map), "r"(barrier), "r"(column), "r"(sequence), "r"(head), "r"(batch),
                   "h"((u16)((1 << CLUSTER) - 1)) : "memory");
}
__device__ __forceinline__ u32 cluster_rank() {
  u32 r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
// All threads of all blocks of the cluster that have not exited meet.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
// Arrives at the barrier that block `rank` of the cluster has at this address of its own.
__device__ __forceinline__ void mbarrier_arrive_at(u32 barrier, u32 rank) {
  asm volatile("{\n.reg .b32 remote;\n"
               "mapa.shared::cluster.u32 remote, %0, %1;\n"
               "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier), "r"(rank) : "memory");
}

//| end
//| if c.o_path > 0 then
__device__ __forceinline__ void tma_store(const TensorMap &map, u32 from, int column, int sequence, int head, int batch) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::
                   "l"(&map), "r"(from), "r"(column), "r"(sequence), "r"(head), "r"(batch) : "memory");
}
__device__ __forceinline__ void tma_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until the stores of this thread have read their source.
__device__ __forceinline__ void tma_wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
//|   if c.o_path == 2 then
// Until memory has them.
__device__ __forceinline__ void tma_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
// named_wait() that tells each thread whether any came with true.
__device__ __forceinline__ bool named_any(int id, int threads, bool mine) {
  u32 any;
  asm volatile(
      "{\n.reg .pred mine, any;\n"
      "setp.ne.b32 mine, %3, 0;\n"
      "bar.red.or.pred any, %1, %2, mine;\n"
      "selp.b32 %0, 1, 0, any;\n}"
      : "=r"(any)
      : "r"(id), "r"(threads), "r"((u32)mine)
      : "memory");
  return any != 0;
}
//|   end
//| end

//| if c.o_path > 0 then
// Four (two) 8 x 8 matrices of 16-bit elements, held as the fragments of a product's result; lane 8m + r gives the address of row r
// of matrix m.
__device__ __forceinline__ void stmatrix_x4(u32 to, const u32 (&x)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
               : "memory");
}
__device__ __forceinline__ void stmatrix_x2(u32 to, u32 x0, u32 x1) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(to), "r"(x0), "r"(x1) : "memory");
}

//| end
// What wgmma reads from shared memory: boxes of BOX columns, rows of ROW = 2 BOX bytes, swizzled in patterns of eight rows
// (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout").
constexpr u64 SWIZZLE = $(({ [64] = 1, [32] = 2, [16] = 3 })[c.box]);  // $(c.box * 2) bytes
//| if l.joined then
// The reduction runs along a row (Q and K): `group` bytes between groups of eight rows.
__device__ __forceinline__ u64 descriptor_along_row(u32 address, int group) {
  return SWIZZLE << 62 | (u64)(group / 16) << 32 | 1ull << 16 | (address & 0x3ffff) >> 4;
}
// The reduction runs across the rows (V): `next` bytes between boxes, too.
__device__ __forceinline__ u64 descriptor_across_rows(u32 address, int next, int group) {
  return SWIZZLE << 62 | (u64)(group / 16) << 32 | (u64)(next / 16) << 16 | (address & 0x3ffff) >> 4;
}
//| else
// The reduction runs along a row (Q and K): 8 ROW bytes between groups of eight rows.
__device__ __forceinline__ u64 descriptor_along_row(u32 address) {
  return SWIZZLE << 62 | (u64)(8 * ROW / 16) << 32 | 1ull << 16 | (address & 0x3ffff) >> 4;
}
// The reduction runs across the rows (V): `next` bytes between boxes.
__device__ __forceinline__ u64 descriptor_across_rows(u32 address, int next) {
  return SWIZZLE << 62 | (u64)(8 * ROW / 16) << 32 | (u64)(next / 16) << 16 | (address & 0x3ffff) >> 4;
}
//| end

//| local asm = include("machine/asm_operands.lua")
//| local operands, registers = asm.operands, asm.registers
//| local T = p.dtype == "fp16" and "f16" or "bf16"
//| local NS, NO = c.bc // 2, l.o_regs
// Between ordinary code that touched registers and the products that use them: those that are operands here have their values before it.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
//| if not l.fences_bare then
__device__ __forceinline__ void wgmma_fence(float (&o)[$(NO)], u32 (&a)[$(NS // 2)]) {
  asm volatile("wgmma.fence.sync.aligned;"
      : $(operands(NO, '"+f"(o[#])')),
        $(operands(NS // 2, '"+r"(a[#])'))
      :
      : "memory");
}
//| end
//| if l.begins then
__device__ __forceinline__ void wgmma_fence(float (&s)[$(NS)], float (&o)[$(NO)], u32 (&a)[$(NS // 2)]) {
  asm volatile("wgmma.fence.sync.aligned;"
      : $(operands(NS, '"+f"(s[#])')),
        $(operands(NO, '"+f"(o[#])')),
        $(operands(NS // 2, '"+r"(a[#])'))
      :
      : "memory");
}
//| end
//| if l.fades then
// Opaque: else the compiler would write the zeros where products are being issued, which it then waits for one by one.
__device__ __forceinline__ void clear_operand(u32 (&a)[NS / 2]) {
#pragma unroll
  for (int i = 0; i < NS / 2; i++) asm volatile("mov.u32 %0, 0;" : "=r"(a[i]));
}
//| end
//| wait_sizes, wait_operands = { NS, NO }, operands
//| include "machine/wgmma_wait.cu"
//| if l.cuts and not l.shared then
// The same of registers that nothing but products reads and writes until the next wait for them.
template <int N>
__device__ __forceinline__ void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
//| end
//| include "machine/hold_order.cu"
//| if l.v_in_k or (l.q_held or 0) > 0 then
// s = Q K^T or s += Q K^T for sixteen columns of Q and K, $(c.bc) keys; both from shared memory.
__device__ __forceinline__ void wgmma_scores_first(float (&s)[$(NS)], u64 q, u64 k) {
  asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n$(c.bc)k16.f32.$(T).$(T) {$(registers(NS))}, "
      "%$(NS), %$(NS + 1), more, 1, 1, 0, 0;\n}"
      : $(operands(NS, '"=f"(s[#])'))
      : "l"(q), "l"(k));
}
__device__ __forceinline__ void wgmma_scores(float (&s)[$(NS)], u64 q, u64 k) {
  asm volatile("{\n.reg .pred more;\nsetp.eq.b32 more, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n$(c.bc)k16.f32.$(T).$(T) {$(registers(NS))}, "
      "%$(NS), %$(NS + 1), more, 1, 1, 0, 0;\n}"
      : $(operands(NS, '"+f"(s[#])'))
      : "l"(q), "l"(k));
}
//| if (l.q_held or 0) > 0 then
// Four 8 x 8 matrices of 16-bit elements, as a product takes them of registers; lane 8m + r gives the address of row r of matrix m.
__device__ __forceinline__ void ldmatrix_x4(u32 (&r)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
// s += Q K^T as above with Q from registers.
__device__ __forceinline__ void wgmma_scores_held(float (&s)[$(NS)], const u32 (&q)[4], u64 k) {
  asm volatile("{\n.reg .pred more;\nsetp.eq.b32 more, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n$(c.bc)k16.f32.$(T).$(T) {$(registers(NS))}, "
      "{%$(NS), %$(NS + 1), %$(NS + 2), %$(NS + 3)}, %$(NS + 4), more, 1, 1, 0;\n}"
      : $(operands(NS, '"+f"(s[#])'))
      : "r"(q[0]), "r"(q[1]), "r"(q[2]), "r"(q[3]), "l"(k));
}
//| end
//| end
//| if NO > 128 then
//| -- One product has 256 columns at most. Of more the first takes 192, whole boxes, and a second one the rest.
//| local function output(name, of, from)
__device__ __forceinline__ void $(name)(float (&o)[$(NO)], const u32 *a, u64 v) {
  asm volatile("{\n.reg .pred more;\nsetp.eq.b32 more, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n$(of * 2)k16.f32.$(T).$(T) {$(registers(of))}, "
      "{%$(of), %$(of + 1), %$(of + 2), %$(of + 3)}, %$(of + 4), more, 1, 1, 1;\n}"
      : $(operands(of, '"+f"(o[' .. from .. '#])'))
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(v));
}
//| end
// o += P V for sixteen keys, the first 192 columns, and the $(NO * 2 - 192) after them; P from registers.
//|   output("wgmma_output_left", 96, "")
//|   output("wgmma_output_right", NO - 96, "96 + ")
//| end
