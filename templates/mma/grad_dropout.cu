//| needs "c.dq"
// ---- dropout in the backward pass: of dP, whose kept elements are scaled, and of P as an operand of dV, which is scaled at its end ----

// Which pairs of a warp of dK and dV are kept: a bit for each element of S^T as dot_rows() leaves it. A thread has queries i and i + 8
// of a key, and those of the key eight below.
struct Kept {
  u32 bits[KB][(NB_ROWS + 7) / 8];
};
// number: of the head among those of all sequences; row, key: the warp's first.
__device__ __forceinline__ Kept kept_of(const Dropout &dropout, int number, int row, int key) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  Kept kept;
#pragma unroll
  for (int m = 0; m < KB; m++) {
#pragma unroll
    for (int i = 0; i < (NB_ROWS + 7) / 8; i++) kept.bits[m][i] = 0;
#pragma unroll
    for (int n = 0; n < NB_ROWS; n += 2)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const uint4 w = dropout.words(number, row + n * 8 + 2 * t + e, key + m * 16 + g);
        const int at = n % 8 * 4 + e;
        if (dropout.keeps(w.x)) kept.bits[m][n / 8] |= 1u << at;
        if (dropout.keeps(w.y)) kept.bits[m][n / 8] |= 1u << (at + 2);
        if (dropout.keeps(w.z)) kept.bits[m][n / 8] |= 1u << (at + 4);
        if (dropout.keeps(w.w)) kept.bits[m][n / 8] |= 1u << (at + 6);
      }
  }
  return kept;
}
// What is not kept becomes 0, the rest is multiplied by scale.
__device__ __forceinline__ void drop(float (&x)[KB][NB_ROWS][4], const Kept &kept, float scale) {
#pragma unroll
  for (int m = 0; m < KB; m++)
#pragma unroll
    for (int n = 0; n < NB_ROWS; n++)
#pragma unroll
      for (int e = 0; e < 4; e++) x[m][n][e] = kept.bits[m][n / 8] >> (n % 8 * 4 + e) & 1 ? x[m][n][e] * scale : 0.f;
}
//| if c.dq == 0 then
// dP of a warp of dQ, queries in the place of rows. row: the warp's first; key: the block's.
__device__ __forceinline__ void drop(float (&dp)[QB][NB_KEYS][4], const Dropout &dropout, int number, int row, int key, float scale) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int m = 0; m < QB; m++)
#pragma unroll
    for (int n = 0; n < NB_KEYS; n += 2)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const uint4 w = dropout.words(number, row + m * 16 + g, key + n * 8 + 2 * t + e);
        dp[m][n][e] = dropout.keeps(w.x) ? dp[m][n][e] * scale : 0.f;
        dp[m][n + 1][e] = dropout.keeps(w.y) ? dp[m][n + 1][e] * scale : 0.f;
        dp[m][n][2 + e] = dropout.keeps(w.z) ? dp[m][n][2 + e] * scale : 0.f;
        dp[m][n + 1][2 + e] = dropout.keeps(w.w) ? dp[m][n + 1][2 + e] * scale : 0.f;
      }
}
//| end
