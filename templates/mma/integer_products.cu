//| needs "l.chunks l.key_scales?"
// Two weights in V's type, the first in the lower half.
__device__ __forceinline__ u32 to_values(float x, float y) {
  u32 r;
  asm("cvt.rn.$(p.wide_values == "fp16" and "f16" or "bf16")x2.f32 %0, %1, %2;" : "=r"(r) : "f"(y), "f"(x));
  return r;
}

// C += A B of integers of 8 bits: in registers a fragment of 32 of them lies as one of 16 numbers of 16 bits. Sums are exact.
__device__ __forceinline__ void mma_full(int (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
//| if l.chunks % 2 == 1 then
__device__ __forceinline__ void mma_half(int (&c)[4], u32 a0, u32 a1, u32 b0) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a0), "r"(a1), "r"(b0));
}
//| end

// Sums begin with the bits of 1.5 2^23: below 2^22 in magnitude, as those of 256 products are, they are then the lowest bits of a float,
// and one exact subtraction makes floats of them.
constexpr int BIAS = 0x4b400000;
static_assert(D <= 256, "sums of at most 256 products");
//| local more = l.key_scales and ", const Lane &at, u32 scales" or ""
__device__ __forceinline__ void to_floats(float (&s)[MB][NB][4], const int (&sum)[MB][NB][4]$(more)) {
#pragma unroll
  for (int n = 0; n < NB; n++) {
//| if l.key_scales then
    const float even = __uint_as_float(load_shared(scales + (n * 8 + 2 * at.t) * 4));
    const float odd = __uint_as_float(load_shared(scales + (n * 8 + 2 * at.t + 1) * 4));
//| end
#pragma unroll
    for (int m = 0; m < MB; m++)
#pragma unroll
      for (int i = 0; i < 4; i++)
        s[m][n][i] = (__int_as_float(sum[m][n][i]) - __int_as_float(BIAS))$(l.key_scales and " * (i % 2 ? odd : even)" or "");
  }
}
