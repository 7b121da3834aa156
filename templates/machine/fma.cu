// ---- exact fp32 arithmetic on the FMA units, for every input type ----

//| if p.dtype == "tf32" then
// TF32 inputs are of 10 bits of fraction, whatever else their words hold.
typedef float element;
__device__ __forceinline__ float to_float(element x) { return __uint_as_float(to_tf32(x)); }
//| elseif p.bytes == 4 then
typedef float element;
__device__ __forceinline__ float to_float(element x) { return x; }
//| elseif p.dtype == "bf16" then
typedef unsigned short element;
__device__ __forceinline__ float to_float(element x) { return __uint_as_float((u32)x << 16); }
//| else
typedef unsigned short element;
__device__ __forceinline__ float to_float(element x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
//| end
//| if p.o == "fp32" then
__device__ __forceinline__ void store_element(void *to, long long at, float x) { ((float *)to)[at] = x; }
//| else
__device__ __forceinline__ void store_element(void *to, long long at, float x) { ((u16 *)to)[at] = (u16)pack2(x, 0.f); }
//| end

//| if p.op == "forward" then
// What stands for P of a key that its row does not see: 0 times NaN or infinity would be NaN.
constexpr float UNSEEN = -1.f;
//| end
// 16 x 16 threads, each with RI x CJ elements: sum[i][j] += a(k, RI y + i) b(k, CJ x + j) over k in [from, to), both in shared memory.
template <int RI, int CJ>
__device__ __forceinline__ void multiply(float (&sum)[RI][CJ], const float *a, int a_pitch, const float *b, int b_pitch, int from, int to,
                                         int x, int y) {
#pragma unroll 16
  for (int k = from; k < to; k++)
#pragma unroll
    for (int i = 0; i < RI; i++)
#pragma unroll
      for (int j = 0; j < CJ; j++) sum[i][j] = fmaf(a[k * a_pitch + RI * y + i], b[k * b_pitch + CJ * x + j], sum[i][j]);
}
//| if p.op == "forward" then
// The same without the terms whose a is UNSEEN.
template <int RI, int CJ>
__device__ __forceinline__ void multiply_seen(float (&sum)[RI][CJ], const float *a, int a_pitch, const float *b, int b_pitch, int from,
                                              int to, int x, int y) {
#pragma unroll 16
  for (int k = from; k < to; k++)
#pragma unroll
    for (int i = 0; i < RI; i++)
#pragma unroll
      for (int j = 0; j < CJ; j++)
        if (a[k * a_pitch + RI * y + i] != UNSEEN) sum[i][j] = fmaf(a[k * a_pitch + RI * y + i], b[k * b_pitch + CJ * x + j], sum[i][j]);
}
//| end
