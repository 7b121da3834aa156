// ---- dropout in the backward pass: of dP, whose kept elements are scaled, and of P as an operand of dV, which is scaled at its end ----
// Which pairs of S^T are kept: a bit for each of a thread's elements, in order.
struct Kept {
  u32 bits[NS / 32];
};
// number: of the head among those of all sequences; key: the warpgroup's first; row: the block's first query. A thread has queries i and
// i + 8 of a key, and those of the key eight below.
__device__ __forceinline__ Kept kept_of(const Params &p, int number, int key, int row) {
  const int lane = threadIdx.x % 32, j = key + threadIdx.x / 32 % 4 * 16 + lane / 4, i = row + lane % 4 * 2;
  const Dropout dropout = make_dropout(p);
  Kept kept;
#pragma unroll
  for (int word = 0; word < NS / 32; word++) {
    u32 bits = 0;
#pragma unroll
    for (int n = 0; n < 8; n += 2)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const uint4 w = dropout.words(number, i + word * 64 + n * 8 + e, j);
        if (dropout.keeps(w.x)) bits |= 1u << (4 * n + e);
        if (dropout.keeps(w.y)) bits |= 1u << (4 * n + 2 + e);
        if (dropout.keeps(w.z)) bits |= 1u << (4 * n + 4 + e);
        if (dropout.keeps(w.w)) bits |= 1u << (4 * n + 6 + e);
      }
    kept.bits[word] = bits;
  }
  return kept;
}
// Of dP^T.
__device__ __forceinline__ void drop(float (&dp)[NS], const Kept &kept, float scale) {
#pragma unroll
  for (int x = 0; x < NS; x++) dp[x] = kept.bits[x / 32] >> x % 32 & 1 ? dp[x] * scale : 0.f;
}
// Of P^T as an operand.
__device__ __forceinline__ void drop(u32 (&a)[NS / 2], const Kept &kept) {
#pragma unroll
  for (int x = 0; x < NS / 2; x++) {
    const u32 two = kept.bits[x / 16] >> x % 16 * 2;
    a[x] &= (two & 1 ? 0xffff : 0) | (two & 2 ? 0xffff0000 : 0);
  }
}
