// ---- dropout of P, as a consumer warpgroup holds it for the second product ----
// Of two 16-bit elements the bits of those that are kept.
__device__ __forceinline__ u32 kept_halves(const Dropout &dropout, u32 lo, u32 hi) {
  return (dropout.keeps(lo) ? 0xffff : 0) | (dropout.keeps(hi) ? 0xffff0000 : 0);
}
// What is dropped becomes 0; the scale of what is kept is O's, at the end. number: of the head among those of all sequences; row: this
// thread's first, of the sequence. A thread has keys j and j + 8 of a query, and those of the query eight below.
__device__ __forceinline__ void drop(u32 (&a)[NS / 2], const Params &p, int number, int row, int block, int t) {
  const Dropout dropout = make_dropout(p);
#pragma unroll
  for (int n = 0; n < NS / 4; n += 2) {
    const int key = block * BC + n * 8 + 2 * t;
    const uint4 x = dropout.words(number, row, key), y = dropout.words(number, row, key + 1);
    a[2 * n] &= kept_halves(dropout, x.x, y.x);
    a[2 * n + 1] &= kept_halves(dropout, x.z, y.z);
    a[2 * n + 2] &= kept_halves(dropout, x.y, y.y);
    a[2 * n + 3] &= kept_halves(dropout, x.w, y.w);
  }
}
