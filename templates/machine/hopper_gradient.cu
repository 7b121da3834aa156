//| needs "c.br c.held c.twins l.apart l.dk l.dq l.dv l.sums"
// ---- more instructions of sm_90a: plain bulk copies, and the products of gradients ----

//| for n = 2, c.twins == 1 and 1 or l.sums and l.apart and 3 or 2 do
//|   local names, values = {}, {}
//|   for i = 0, n - 1 do
//|     local name = ("abc"):sub(i + 1, i + 1)
//|     names[#names + 1] = ("u32 %s, u32 parity_%s"):format(name, name)
//|     values[#values + 1] = ('"r"(%s), "r"(parity_%s)'):format(name, name)
//|   end
// As mbarrier_wait, for $(n) at a time: their tests overlap, each of which takes some fifty clocks.
__device__ __forceinline__ void mbarrier_wait_all($(table.concat(names, ", "))) {
  asm volatile("{\n"
               ".reg .pred done<$(n)>;\n"
//|   for i = 0, n - 1 do
               "mbarrier.test_wait.parity.shared::cta.b64 done$(i), [%$(2 * i)], %$(2 * i + 1);\n"
//|   end
//|   for i = 0, n - 1 do
               "again$(i):\n"
               "@done$(i) bra.uni over$(i);\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done$(i), [%$(2 * i)], %$(2 * i + 1), 10000000;\n"
               "bra.uni again$(i);\n"
               "over$(i):\n"
//|   end
               "}" ::$(table.concat(values, ", ")) : "memory");
}
//| end
// `bytes` of global memory to shared memory, a multiple of 16.
__device__ __forceinline__ void bulk_load(u32 to, const void *from, int bytes, u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
                   "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

//| if l.sums then
// Adds four floats to neighbours in global memory.
__device__ __forceinline__ void add_global(float *to, float x, float y, float z, float w) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
}

// Four 8 x 8 matrices of 16-bit elements, held as the fragments of a product's result; lane 8m + r gives the address of row r of matrix m.
__device__ __forceinline__ void stmatrix_x4(u32 to, u32 x0, u32 x1, u32 x2, u32 x3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x0), "r"(x1), "r"(x2), "r"(x3) : "memory");
}
//| else
// The compiler keeps its place, so that what is stored is not computed after what follows.
__device__ __forceinline__ void store_global(void *to, u32 x, u32 y, u32 z, u32 w) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}
//| end

// What wgmma reads from shared memory: boxes of rows of `row` bytes, swizzled in patterns of eight rows (PTX ISA, "Asynchronous Warpgroup
// Level Matrix Shared Memory Layout").
template <int ROW_BYTES>
constexpr u64 SWIZZLE_OF = ROW_BYTES == 128 ? 1 : ROW_BYTES == 64 ? 2 : 3;
// A descriptor is its lower word and constants. The lower word has the address in units of 16 bytes, so that `place` moves by adding, and
// above it the bytes between boxes where the reduction runs across the rows.
__device__ __forceinline__ u32 place(u32 address) { return (address & 0x3ffff) >> 4; }
constexpr u32 ALONG_ROW = 1 << 16;
constexpr u32 across_rows(int next) { return (u32)(next / 16) << 16; }
template <int ROW_BYTES>
__device__ __forceinline__ u64 descriptor(u32 low) {
  return SWIZZLE_OF<ROW_BYTES> << 62 | (u64)(8 * ROW_BYTES / 16) << 32 | low;
}

//| local asm = include("machine/asm_operands.lua")
//| local operands = asm.operands
//| local NS, NK, NV, NQ = c.br // 2, l.dk, l.dv, l.dq
//| local sizes = { NS }
//| for _, n in ipairs { NK, NV, NQ } do
//|   local new = true
//|   for _, m in ipairs(sizes) do new = new and m ~= n end
//|   if new then sizes[#sizes + 1] = n end
//| end
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Between ordinary code that touched registers and the products that use them: those that are operands here have their values before it.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
//| for _, n in ipairs(sizes) do
__device__ __forceinline__ void wgmma_fence(float (&x)[$(n)]) {
  asm volatile("wgmma.fence.sync.aligned;"
      : $(operands(n, '"+f"(x[#])'))
      :
      : "memory");
}
// Until at most N groups are under way. The registers are operands so that no use of them moves across.
template <int N>
__device__ __forceinline__ void wgmma_wait(float (&x)[$(n)]) {
  asm volatile("wgmma.wait_group.sync.aligned %$(n);"
      : $(operands(n, '"+f"(x[#])'))
      : "n"(N) : "memory");
}
//| end
template <int N>
__device__ __forceinline__ void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
// An operand out of registers has its value, too.
__device__ __forceinline__ void wgmma_fence(u32 (&a)[NS / 2]) {
  asm volatile("wgmma.fence.sync.aligned;"
      : $(operands(NS // 2, '"+r"(a[#])'))
      :
      : "memory");
}

//| if c.held > 0 then
// Four 8 x 8 matrices of 16-bit elements; lane 8m + r gives the address of row r of matrix m.
__device__ __forceinline__ void ldmatrix_x4(u32 *r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
//| end

// Loads that stay where they stand, before what is computed of others: the assembler would move them down to their use.
__device__ __forceinline__ float load_here(const float *from) {
  float x;
  asm volatile("ld.global.f32 %0, [%1];" : "=f"(x) : "l"(from));
  return x;
}
__device__ __forceinline__ uint4 load_here(const uint4 *from) {
  uint4 x;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(from));
  return x;
}
