//| needs "l.lines? l.mma? l.narrow? l.spill?"
// ---- types and the machine's instructions: all PTX of this kernel is below ----

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// A constant as a type, for lambdas that are compiled once for each value.
template <bool V>
struct Constant {
  static constexpr bool value = V;
};

// The launch's arguments; the host fills the same struct.
struct Params {
//| for i, m in ipairs(params) do
//|   if m.comment ~= "" then
  $(m.type) $(m.name);  // $(m.comment)
//|   else
  $(m.type) $(m.name);
//|   end
//| end
};

__device__ __forceinline__ float infinity() { return __int_as_float(0x7f800000); }

__device__ __forceinline__ u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }

// 2^x on the special-function unit; 2^-inf = 0. Within 2 ulp (PTX ISA, ex2.approx).
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// 1 / x within 1 ulp (PTX ISA, rcp.approx); infinity of 0.
__device__ __forceinline__ float reciprocal_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// log2(x), absolute error about 2^-22 (PTX ISA, lg2.approx).
__device__ __forceinline__ float log2_approx(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Two floats rounded to nearest even, lo in the low half.
//| if p.dtype == "bf16" or p.o == "bf16" then
__device__ __forceinline__ u32 pack2(float lo, float hi) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
//| elseif p.dtype == "fp16" or p.o == "fp16" then
__device__ __forceinline__ u32 pack2(float lo, float hi) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
//| end

//| if p.dtype == "tf32" then
// The nearest TF32 value: 10 bits of fraction, ties away from zero.
__device__ __forceinline__ u32 to_tf32(float x) {
  u32 r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
}
//| end

//| if l.spill then
// An 8 x 8 matrix of 16-bit elements, a row in four lanes.
__device__ __forceinline__ u32 transpose(u32 x) {
  u32 y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}
//| end

//| if l.mma then
// C += A B on one warp, fp32 accumulation. Fragments as in the PTX ISA, "Matrix Fragments for mma"; with g = lane / 4 and
// t = lane % 4, C holds (g, 2t) (g, 2t+1) (g+8, 2t) (g+8, 2t+1).
//| local K, T = l.mma.k, l.mma.type
__device__ __forceinline__ void mma_full(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k$(K).row.col.f32.$(T).$(T).f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
//| if K == 16 then
__device__ __forceinline__ void mma_half(float (&c)[4], u32 a0, u32 a1, u32 b0) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.$(T).$(T).f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(b0));
}
//| end

// Four (two) 8 x 8 matrices of 16-bit elements; lane 8m + r gives the address of row r of matrix m.
__device__ __forceinline__ void ldmatrix_x4(u32 (&r)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
__device__ __forceinline__ void ldmatrix_x2(u32 &r0, u32 &r1, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(r0), "=r"(r1) : "r"(address) : "memory");
}
__device__ __forceinline__ void ldmatrix_x4_trans(u32 (&r)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
__device__ __forceinline__ void ldmatrix_x2_trans(u32 &r0, u32 &r1, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(r0), "=r"(r1) : "r"(address) : "memory");
}
//|   if l.spill then
// 16 bytes of global memory that the SM reads once.
__device__ __forceinline__ uint4 load_streamed(const uint4 *from) {
  uint4 x;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(from));
  return x;
}
//|   end
//| end

//| local lines = l.lines and " LINES: the L2 fetches" or ""
// Asynchronous copy of BYTES to shared memory; where valid is false zeros are written and nothing is read.$(lines)
//| if l.lines then
// all of the line.
template <int BYTES, bool LINES = true>
//| else
template <int BYTES>
//| end
__device__ __forceinline__ void cp_async(u32 to, const void *from, bool valid) {
  const int n = valid ? BYTES : 0;
//| if l.lines then
  if constexpr (BYTES == 16 && !LINES)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(n) : "memory");
  else if constexpr (BYTES == 16)
//| else
  if constexpr (BYTES == 16)
//| end
    asm volatile("cp.async.cg.shared.global$(l.narrow and "" or ".L2::128B") [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(n) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES), "r"(n) : "memory");
}
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most N of this thread's newest groups are still under way.
template <int N>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

__device__ __forceinline__ void store_shared(u32 to, u16 x) { asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"(x) : "memory"); }
__device__ __forceinline__ void store_shared(u32 to, u32 x) { asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(x) : "memory"); }
__device__ __forceinline__ void store_shared(u32 to, uint4 x) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory");
}
__device__ __forceinline__ u32 load_shared(u32 from) {
  u32 x;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(from) : "memory");
  return x;
}
__device__ __forceinline__ uint4 load_shared_x4(u32 from) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(from) : "memory");
  return x;
}

// Over the four lanes that share a row of a fragment.
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}
