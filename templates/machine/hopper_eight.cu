//| needs "c.bc c.exp c.overlap c.schedule l.beside l.converts l.integer l.ones l.sum_columns l.weights l.wide"
// ---- products of numbers of 8 bits: both operands lie with the reduction along a row ----

// What wgmma reads from shared memory: rows of BYTES bytes, swizzled in patterns of eight rows (PTX ISA, "Asynchronous Warpgroup Level
// Matrix Shared Memory Layout").
template <int BYTES>
__device__ __forceinline__ u64 descriptor(u32 address) {
  static_assert(BYTES == 128 || BYTES == 64 || BYTES == 32, "a swizzle");
  constexpr u64 SWIZZLE = BYTES == 128 ? 1 : BYTES == 64 ? 2 : 3;
  return SWIZZLE << 62 | (u64)(8 * BYTES / 16) << 32 | 1ull << 16 | (address & 0x3ffff) >> 4;
}
//| if l.wide then
// V of 16 bits: the reduction runs across its rows, `next` bytes are between boxes.
__device__ __forceinline__ u64 descriptor_across_rows(u32 address, int next) {
  constexpr u64 SWIZZLE = VALUE_ROW == 128 ? 1 : VALUE_ROW == 64 ? 2 : 3;
  return SWIZZLE << 62 | (u64)(8 * VALUE_ROW / 16) << 32 | (u64)(next / 16) << 16 | (address & 0x3ffff) >> 4;
}
// Two weights, the first in the lower half.
__device__ __forceinline__ u32 to_values(float x, float y) {
  u32 r;
  asm("cvt.rn.$(p.wide_values == "fp16" and "f16" or "bf16")x2.f32 %0, %1, %2;" : "=r"(r) : "f"(y), "f"(x));
  return r;
}
//| end
// Which chunk of 16 bytes of a row holds the first.
template <int BYTES>
__device__ __forceinline__ u32 swizzle_of(u32 row) {
  return BYTES == 128 ? row % 8 : BYTES == 64 ? row / 2 % 4 : row / 4 % 2;
}

// Four 8 x 8 matrices of 16-bit units; lane 8m + r gives the address of row r of matrix m.
__device__ __forceinline__ void ldmatrix_x4_trans(u32 (&r)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
__device__ __forceinline__ void stmatrix_x4(u32 to, const u32 (&x)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
               : "memory");
}
// Four floats to e4m3, the first in the lowest byte; what is beyond its range to the largest number.
__device__ __forceinline__ u32 to_e4m3(float x0, float x1, float x2, float x3) {
  u32 r;
  asm("{\n.reg .b16 lo, hi;\n"
      "cvt.rn.satfinite.e4m3x2.f32 lo, %2, %1;\n"
      "cvt.rn.satfinite.e4m3x2.f32 hi, %4, %3;\n"
      "mov.b32 %0, {lo, hi};\n}" : "=r"(r) : "f"(x0), "f"(x1), "f"(x2), "f"(x3));
  return r;
}
//| if c.exp > 0 then
// The last two, or all, are pairs in fp16.
__device__ __forceinline__ u32 to_e4m3(float x0, float x1, u32 x2) {
  u32 r;
  asm("{\n.reg .b16 lo, hi;\n"
      "cvt.rn.satfinite.e4m3x2.f32 lo, %2, %1;\n"
      "cvt.rn.satfinite.e4m3x2.f16x2 hi, %3;\n"
      "mov.b32 %0, {lo, hi};\n}" : "=r"(r) : "f"(x0), "f"(x1), "r"(x2));
  return r;
}
__device__ __forceinline__ u32 to_e4m3(u32 x0, u32 x2) {
  u32 r;
  asm("{\n.reg .b16 lo, hi;\n"
      "cvt.rn.satfinite.e4m3x2.f16x2 lo, %1;\n"
      "cvt.rn.satfinite.e4m3x2.f16x2 hi, %2;\n"
      "mov.b32 %0, {lo, hi};\n}" : "=r"(r) : "r"(x0), "r"(x2));
  return r;
}
//| end

//| local asm = include("machine/asm_operands.lua")
//| local operands, registers = asm.operands, asm.registers
//| local T = p.dtype
//| local NS, NT, NP = c.bc // 2, l.sum_columns // 2, l.weights
// Between ordinary code that touched registers and the products that use them: those that are operands here have their values before it.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_fence(u32 (&a)[$(NP)]) {
  asm volatile("wgmma.fence.sync.aligned;"
      : $(operands(NP, '"+r"(a[#])'))
      :
      : "memory");
}
//| local ones = l.ones and 4 or 0 -- registers of the sums of P
//| wait_sizes, wait_operands = { NS, NT + ones }, operands
//| include "machine/wgmma_wait.cu"
//| if l.ones and c.overlap == 2 then
// Of a sum without ones.
template <int N>
__device__ __forceinline__ void wgmma_wait_columns(float (&x)[$(NT)]) {
  asm volatile("wgmma.wait_group.sync.aligned %$(NT);"
      : $(operands(NT, '"+f"(x[#])'))
      : "n"(N) : "memory");
}
//| end
//| if l.integer then
template <int N>
__device__ __forceinline__ void wgmma_wait(int (&x)[$(NS)]) {
  asm volatile("wgmma.wait_group.sync.aligned %$(NS);"
      : $(operands(NS, '"+r"(x[#])'))
      : "n"(N) : "memory");
}
//| end
//| local sum, register, tail = "float", "f", ", 1, 1"
//| local shape = ("k32.f32.%s.%s"):format(T, T)
//| if l.integer then sum, register, tail, shape = "int", "r", "", "k32.s32.s8.s8" end
//| if l.beside or c.schedule == 2 then
// Nothing, but what computes scores stays before it, and what reads them after it: the compiler moves nothing across the branches of a
// loop, here a wait for a phase that is over. over: an mbarrier at which no thread arrives.
__device__ __forceinline__ void hold_scores(float (&s)[$(NS)], u32 over) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%$(NS)], 1, 10000000;\n"
               "@done bra.uni over;\n"
               "bra.uni again;\n"
               "over:\n"
               "}" : $(operands(NS, '"+f"(s[#])')) : "r"(over) : "memory");
}
//| end
//| for _, way in ipairs({ { "_first", "ne", "=" }, { "", "eq", "+" } }) do
// $(way[1] == "" and "s += Q K^T" or "s = Q K^T") for 32 columns of Q and K, $(c.bc) keys; both from shared memory.
__device__ __forceinline__ void wgmma_scores$(way[1])($(sum) (&s)[$(NS)], u64 q, u64 k) {
  asm volatile("{\n.reg .pred more;\nsetp.$(way[2]).b32 more, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n$(c.bc)$(shape) {$(registers(NS))}, "
      "%$(NS), %$(NS + 1), more$(tail);\n}"
      : $(operands(NS, '"' .. way[3] .. register .. '"(s[#])'))
      : "l"(q), "l"(k));
}
//| end
//| -- _next: an operand that is read and written stays in the registers in which the sum before was, which O has taken up: the compiler
//| -- would give it others, and spill.
//| local ways = {}
//| for _, registers in ipairs(not l.ones and { NT } or c.overlap == 2 and { NT, NT + ones } or { NT + ones }) do
//|   for _, way in ipairs({ { "_first", "ne", "=" }, { "_next", "ne", "+" }, { "", "eq", "+" } }) do
//|     ways[#ways + 1] = { way[1], way[2], way[3], registers }
//|   end
//| end
//| for _, way in ipairs(ways) do
//|   local NT = way[4]
//|   local text = way[2] == "eq" and "t += P V" or way[3] == "+" and "t = P V, in t's registers," or "t = P V"
//|   local keys, PT = l.wide and 16 or 32, l.wide and (p.wide_values == "fp16" and "f16" or "bf16")
// $(text) for $(keys) keys, $(NT * 2) columns; P from registers.
__device__ __forceinline__ void wgmma_sums$(way[1])(float (&t)[$(NT)], const u32 *a, u64 v) {
  asm volatile("{\n.reg .pred more;\nsetp.$(way[2]).b32 more, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n$(NT * 2)k$(keys).f32.$(PT and PT .. "." .. PT or "e4m3." .. T) {$(registers(NT))}, "
      "{%$(NT), %$(NT + 1), %$(NT + 2), %$(NT + 3)}, %$(NT + 4), more, 1, 1$(PT and ", 1" or "");\n}"
      : $(operands(NT, '"' .. way[3] .. 'f"(t[#])'))
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(v));
}
//| end
//| if l.converts then

// The same of P in 8 bits: conversions lie between exponentials, which take longer.
__device__ __forceinline__ void hold_operand(u32 (&a)[$(NS // 4)], u32 over) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%$(NS // 4)], 1, 10000000;\n"
               "@done bra.uni over;\n"
               "bra.uni again;\n"
               "over:\n"
               "}" : $(operands(NS // 4, '"+r"(a[#])')) : "r"(over) : "memory");
}
//| end
