//| needs "l.dealt?"
//| function transforms(of_v) return of_v and p.has_hadamard_v or not of_v and p.has_hadamard_k end
//| if p.has_hadamard_k or p.has_hadamard_v then
// Two columns so many pieces apart lie in lanes whose numbers differ by this bit; 0: in one lane, in pieces whose numbers differ by the bit
// of apart_in_lane().
//|   if l.dealt then
constexpr __device__ int apart_in_team(int pieces) { return pieces == 1 ? 1 : pieces >= 4 && pieces < 2 * LANES ? pieces / 2 : 0; }
constexpr __device__ int apart_in_lane(int pieces) { return pieces == 2 ? 1 : 2; }
//|   else
constexpr __device__ int apart_in_team(int pieces) { return pieces < LANES ? pieces : 0; }
constexpr __device__ int apart_in_lane(int pieces) { return pieces / LANES; }
//|   end
// The Hadamard transform of a row, in the order of Sylvester: sums and differences of columns 1, 2, 4, ... apart, each rounded, and at last
// the factor.
template <int WIDTH>
__device__ __forceinline__ void transform(float (&x)[SHARE][VEC], int lane, float factor) {
#pragma unroll
  for (int step = 1; step < WIDTH; step *= 2) {
    if (step < VEC) {
#pragma unroll
      for (int s = 0; s < SHARE; s++)
#pragma unroll
        for (int i = 0; i < VEC; i++) {
          if (i & step) continue;
          const float a = x[s][i], b = x[s][(i | step) % VEC];
          x[s][i] = __fadd_rn(a, b);
          x[s][(i | step) % VEC] = __fadd_rn(a, -b);
        }
    } else if (apart_in_team(step / VEC)) {
      const int other_lane = apart_in_team(step / VEC) % 32;
#pragma unroll
      for (int s = 0; s < SHARE; s++)
#pragma unroll
        for (int i = 0; i < VEC; i++) {
          const float other = __shfl_xor_sync(~0u, x[s][i], other_lane);
          x[s][i] = lane & other_lane ? __fadd_rn(other, -x[s][i]) : __fadd_rn(x[s][i], other);
        }
    } else {
      const int apart = apart_in_lane(step / VEC);
#pragma unroll
      for (int s = 0; s < SHARE; s++)
#pragma unroll
        for (int i = 0; i < VEC; i++) {
          const int far = (s | apart) % SHARE;
          if (s & apart || step_of(s) * VEC >= WIDTH) continue;
          const float a = x[s][i], b = x[far][i];
          x[s][i] = __fadd_rn(a, b);
          x[far][i] = __fadd_rn(a, -b);
        }
    }
  }
#pragma unroll
  for (int s = 0; s < SHARE; s++)
#pragma unroll
    for (int i = 0; i < VEC; i++) x[s][i] = __fmul_rn(x[s][i], factor);
}
//| end
