//| needs "l.delta_lanes l.delta_pad? l.delta_pieces l.delta_rows l.delta_vec l.pairs?"
//| local wk = include("work/work.lua").of(p, l)
//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- D = rowsum(dO O) - dLSE, the step before the backward pass ----
//| local piece = ({ [16] = "uint4", [8] = "uint2", [4] = "u32", [2] = "u16" })[l.delta_vec * p.o_bytes]
//| local words = math.max(1, l.delta_vec * p.o_bytes // 4)
constexpr int DELTA_LANES = $(l.delta_lanes);    // that share a row
constexpr int DELTA_PIECES = $(l.delta_pieces);  // of a row: $(l.delta_vec) elements, which one instruction loads
constexpr int DELTA_ROWS = $(l.delta_rows);      // of a block
typedef $(piece) DeltaPiece;

//| if p.o ~= "fp32" then
__device__ __forceinline__ float o_to_float(u16 x) {
//|   if p.o == "bf16" then
  return __uint_as_float((u32)x << 16);
//|   else
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
//|   end
}
//| end
// Element i of a tensor of the type of O.
__device__ __forceinline__ float load_o(const char *from, long long i) {
//| if p.o == "fp32" then
  return ((const float *)from)[i];
//| else
  return o_to_float(((const u16 *)from)[i]);
//| end
}
__device__ __forceinline__ float dot_words(u32 a, u32 b) {
//| if p.o == "fp32" then
  return __uint_as_float(a) * __uint_as_float(b);
//| elseif l.delta_vec == 1 then
  return o_to_float((u16)a) * o_to_float((u16)b);
//| else
  return fmaf(o_to_float((u16)(a >> 16)), o_to_float((u16)(b >> 16)), o_to_float((u16)a) * o_to_float((u16)b));
//| end
}
__device__ __forceinline__ float dot_pieces(const DeltaPiece &a, const DeltaPiece &b) {
//| if words == 4 then
  return dot_words(a.x, b.x) + dot_words(a.y, b.y) + (dot_words(a.z, b.z) + dot_words(a.w, b.w));
//| elseif words == 2 then
  return dot_words(a.x, b.x) + dot_words(a.y, b.y);
//| else
  return dot_words(a, b);
//| end
}

//| if l.delta_pad or l.pairs then
//|   if pr.unit == "p.scale" then
// LSE in base 2, rounded once: its product with scale_log2 / scale, which is log2(e) but for the rounding of scale_log2. With plain log2(e)
// a large score and its LSE would end up further apart. Of scales that have no reciprocal scores are small.
__device__ __forceinline__ float lse_log2(const Params &p, float lse) {
  const float rest = fmaf(-LOG2E, p.scale, p.scale_log2) * reciprocal_approx(p.scale);  // of LOG2E
  return finite_lse(fmaf(lse, LOG2E, p.scale > 1e-30f && p.scale < 1e30f ? lse * rest : 0.f));
}
//|   else
// LSE in base 2, rounded once, as the score that it is taken away from.
__device__ __forceinline__ float lse_log2(const Params &p, float lse) {
//|     if pr.unit == "1.f" then
  // Where it passes fp32 P is 0 or 1.
  return fabsf(lse) < infinity() ? fminf(fmaxf(lse * LOG2E, -3.40282347e38f), 3.40282347e38f) : __int_as_float(0x7fffffff);
//|     else
  const float unit = $(pr.unit), rest = fmaf(-LOG2E, unit, $(pr.unit_log2)) * reciprocal_approx(unit);  // of LOG2E
  return finite_lse(fmaf(lse, LOG2E, unit > 1e-30f && unit < 1e30f ? lse * rest : 0.f));
//|     end
}
//|   end
//| end

//| if l.delta_pad then
//|   include "tiles/delta_block.cu"
//| else
__device__ __forceinline__ void delta_of_row(const Params &p, const Sequence &sequence, int head, int row) {
  const int lane = threadIdx.x % DELTA_LANES;
  const bool real = row < sequence.sq();
  float sum = 0.f;
  if (real) {
    const char *const o = (const char *)p.o + (sequence.o() + row * p.o_ss + head * p.o_sh) * $(p.o_bytes);
    const char *const grad = (const char *)p.grad_o + (sequence.grad_o() + row * p.grad_o_ss + head * p.grad_o_sh) * $(p.o_bytes);
#pragma unroll
    for (int i = lane; i < DELTA_PIECES; i += DELTA_LANES) sum += dot_pieces(((const DeltaPiece *)o)[i], ((const DeltaPiece *)grad)[i]);
  }
#pragma unroll
  for (int i = DELTA_LANES / 2; i > 0; i /= 2) sum += __shfl_xor_sync(~0u, sum, i);
  if (!real || lane != 0) return;
  const float extra = p.grad_lse != nullptr ? p.grad_lse[sequence.lse(head, row)] : 0.f;
//|   if l.pairs then
  // LSE in base 2 comes with it. Of a row that sees no key it is +inf, so that P = 0, and D is 0 whatever its dO is.
  const float lse = p.lse[sequence.lse(head, row)];
  const bool sees = lse != -infinity();
  ((float2 *)p.delta)[sequence.delta(head, row)] = make_float2(sees ? lse_log2(p, lse) : infinity(), sees ? sum - extra : 0.f);
//|   else
  ((float *)p.delta)[sequence.delta(head, row)] = sum - extra;
//|   end
}

extern "C" __global__ void __launch_bounds__(256) fa_delta(const __grid_constant__ Params p) {
  const int tile = $(wk.tile()), head = $(wk.head("p.hq"));
  const Sequence sequence = sequence_of(p, $(wk.batch("p.hq")));
  delta_of_row(p, sequence, head, tile * DELTA_ROWS + threadIdx.x / DELTA_LANES);
}
//| end
