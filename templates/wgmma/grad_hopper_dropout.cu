//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- dropout in the backward pass: of dP, whose kept elements are scaled, and of P as an operand of dV, which is scaled at its end ----
// Which pairs of S^T are kept: a bit for each of a thread's elements, those of even number in the lower half of a word.
struct Kept {
  u32 bits[NS / 32];
};
// number: of the head among those of all sequences; key: the warpgroup's first; row: the block's first query. A thread has queries i and
// i + 8 of a key, and those of the key eight below.
__device__ __forceinline__ Kept kept_of(const Params &p, int number, int key, int row) {
  const int lane = threadIdx.x % 32, j = key + threadIdx.x / 32 % 4 * 16 + lane / 4, i = row + lane % 4 * 2;
//| indented(2, pr.begin_dropout)
  Kept kept;
#pragma unroll
  for (int word = 0; word < NS / 32; word++) {
//| indented(4, pr.keep, "wgmma_keys")
    kept.bits[word] = bits;
  }
  return kept;
}
// Of dP^T.
__device__ __forceinline__ void drop(float (&dp)[NS], const Kept &kept, float scale) {
//| indented(2, pr.drop, "wgmma_keys", "dp", "scale")
}
// Of P^T as an operand.
__device__ __forceinline__ void drop(u32 (&a)[NS / 2], const Kept &kept) {
//| indented(2, pr.drop_operand, "wgmma_keys", "a")
}
