// fagen $(version), gated attention for tests: O = gate * softmax(scale Q K^T) V, the product of the second kernel.
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

constexpr int D = $(p.d);    // head_dim of Q and K
constexpr int DV = $(p.dv);  // head_dim of V, gate and O
constexpr int ROWS = $(c.rows);        // query rows of a block, a warp each
constexpr int THREADS = $(c.threads);  // of a block that multiplies
constexpr int BC = 1;
constexpr int LANE_D = (D + 31) / 32, LANE_DV = (DV + 31) / 32;  // columns of a lane

//| has_mma = false
//| include "prelude.cu"

//| include "sequence.cu"

//| include "mask.cu"

//| if p.bytes == 4 then
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

// An element of Q or K as the matrix units would take it.
//| if p.dtype == "tf32" then
__device__ __forceinline__ float factor(element x) { return __uint_as_float(to_tf32(x)); }
//| else
__device__ __forceinline__ float factor(element x) { return to_float(x); }
//| end

extern "C" __global__ void __launch_bounds__(32 * ROWS) gated_attend(const __grid_constant__ Params p) {
  const int tiles = (p.sq + ROWS - 1) / ROWS, lane = threadIdx.x % 32;
  const int row = blockIdx.x % tiles * ROWS + threadIdx.x / 32, head = blockIdx.x / tiles % p.hq;
  const long long batch = blockIdx.x / tiles / p.hq;
  const Sequence sequence = sequence_of(p, batch);
  if (row >= sequence.sq()) return;
  const element *const q = (const element *)p.q + sequence.q() + row * p.q_ss + head * p.q_sh;
  const element *const k = (const element *)p.k + sequence.k() + head / p.group * p.k_sh;
  const element *const v = (const element *)p.v + sequence.v() + head / p.group * p.v_sh;
  float mine[LANE_D], sum[LANE_DV] = {}, m = -infinity(), l = 0.f;
  for (int i = 0; i < LANE_D; i++) mine[i] = lane + 32 * i < D ? factor(q[lane + 32 * i]) : 0.f;
  for (int j = first_key(sequence, row); j <= last_key(sequence, row); j++) {
    float s = 0.f;
    for (int i = 0; i < LANE_D; i++)
      if (lane + 32 * i < D) s = fmaf(mine[i], factor(k[j * p.k_ss + lane + 32 * i]), s);
    for (int i = 16; i > 0; i /= 2) s += __shfl_xor_sync(~0u, s, i);
    s *= p.scale;
    const float top = fmaxf(m, s), keep = m == -infinity() ? 0.f : expf(m - top), weight = expf(s - top);
    l = l * keep + weight;
    m = top;
    for (int i = 0; i < LANE_DV; i++)
      if (lane + 32 * i < DV) sum[i] = sum[i] * keep + weight * to_float(v[j * p.v_ss + lane + 32 * i]);
  }
  float *const partial = (float *)p.partial + ((batch * p.sq + row) * p.hq + head) * DV;
  for (int i = 0; i < LANE_DV; i++)
    if (lane + 32 * i < DV) partial[lane + 32 * i] = l == 0.f ? 0.f : sum[i] / l;
  if (lane == 0 && p.lse != nullptr) p.lse[sequence.lse(head, row)] = l == 0.f ? -infinity() : m + logf(l);
}

extern "C" __global__ void __launch_bounds__(THREADS) gated_multiply(const __grid_constant__ Params p) {
  const int row = blockIdx.x % p.sq, head = blockIdx.x / p.sq % p.hq;
  const long long batch = blockIdx.x / p.sq / p.hq;
  const float *const partial = (const float *)p.partial + ((batch * p.sq + row) * p.hq + head) * DV;
  const element *const gate = (const element *)p.gate + batch * p.gate_sb + row * p.gate_ss + head * p.gate_sh;
  for (int i = threadIdx.x; i < DV; i += THREADS) {
    const float x = partial[i] * to_float(gate[i]);
    const long long at = sequence_of(p, batch).o() + row * p.o_ss + head * p.o_sh + i;
//| if p.o == "fp32" then
    ((float *)p.o)[at] = x;
//| else
    ((u16 *)p.o)[at] = (u16)pack2(x, 0.f);
//| end
  }
}
