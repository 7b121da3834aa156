//| function transforms(of_v) return of_v and p.has_hadamard_v or not of_v and p.has_hadamard_k end
//| if p.has_hadamard_k or p.has_hadamard_v then
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
    } else if (step < VEC * LANES) {
#pragma unroll
      for (int s = 0; s < SHARE; s++)
#pragma unroll
        for (int i = 0; i < VEC; i++) {
          const float other = __shfl_xor_sync(~0u, x[s][i], step / VEC % 32);
          x[s][i] = lane & (step / VEC) ? __fadd_rn(other, -x[s][i]) : __fadd_rn(x[s][i], other);
        }
    } else {
#pragma unroll
      for (int s = 0; s < SHARE; s++)
#pragma unroll
        for (int i = 0; i < VEC; i++) {
          const int far = (s | step / (VEC * LANES)) % SHARE;
          if (s & (step / (VEC * LANES)) || s * (VEC * LANES) >= WIDTH) continue;
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
