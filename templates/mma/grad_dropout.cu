//| needs "c.dq"
//| local pr = include("pairs/pairs.lua").of(p, l)
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
    for (int word = 0; word < (NB_ROWS + 7) / 8; word++) {
//| indented(6, pr.keep, "mma_keys")
      kept.bits[m][word] = bits;
    }
  }
  return kept;
}
// What is not kept becomes 0, the rest is multiplied by scale.
__device__ __forceinline__ void drop(float (&x)[KB][NB_ROWS][4], const Kept &kept, float scale) {
//| indented(2, pr.drop, "mma_keys", "x", "scale")
}
//| if c.dq == 0 then
// dP of a warp of dQ, queries in the place of rows. row: the warp's first; key: the block's.
__device__ __forceinline__ void drop(float (&dp)[QB][NB_KEYS][4], const Dropout &dropout, int number, int row, int key, float scale) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
//| indented(2, pr.drop, "mma_queries", "dp", "scale")
}
//| end
