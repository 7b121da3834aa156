//| if p.has_dropout then
// ---- dropout: which probabilities are dropped ----
// Philox4x32-7 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011). What becomes of a pair follows
// from the seed, the offset, the head and the pair's place in its sequence alone, so that every pass and every tiling drops the same ones.
// One call gives the words of eight pairs: query i or i + 8 and key j or j + 8, where i % 16 and j % 16 are below 8, j even with j + 1: the
// lower half of a word is that of the even key.
// All bits of a half are its highest.
__device__ __forceinline__ u32 signs_of_halves(u32 x) {
  u32 out;
  asm("prmt.b32 %0, %1, 0, 0xbb99;" : "=r"(out) : "r"(x));
  return out;
}
struct Dropout {
  static __device__ __forceinline__ u32 block(u32 place) { return place / 16 * 8 + place % 8; }  // that of place + 8, too
  u32 key0, key1, offset;
  u32 above;  // in both halves: added to the lower 15 bits of a pair's, it sets the bit above them where the pair is kept
  // number: of the head among those of all sequences. The words of (i, j) (i, j + 8) (i + 8, j) (i + 8, j + 8) for N places, all of them
  // round by round: each round's keys are computed once.
  template <int N>
  __device__ __forceinline__ void words_of_all(uint4 (&w)[N], int number, const int (&i)[N], int j) const {
    u32 k0 = key0, k1 = key1;
#pragma unroll
    for (int n = 0; n < N; n++) w[n] = make_uint4(offset, (u32)number, block((u32)i[n]), block((u32)j) / 2);
#pragma unroll
    for (int round = 0; round < 7; round++) {
#pragma unroll
      for (int n = 0; n < N; n++) {
        const u64 a = (u64)0xd2511f53 * w[n].x, b = (u64)0xcd9e8d57 * w[n].z;
        w[n] = make_uint4((u32)(b >> 32) ^ w[n].y ^ k0, (u32)b, (u32)(a >> 32) ^ w[n].w ^ k1, (u32)a);
      }
      k0 += 0x9e3779b9, k1 += 0xbb67ae85;
    }
  }
  // Of one place.
  __device__ __forceinline__ uint4 words(int number, int i, int j) const {
    uint4 w[1];
    const int at[1] = {i};
    words_of_all(w, number, at, j);
    return w[0];
  }
  // Bits 15 and 31 of a word say which of its two pairs are kept.
  __device__ __forceinline__ u32 kept(u32 word) const { return (word & 0x7fff7fffu) + above; }
  // odd: of the odd key.
  __device__ __forceinline__ bool keeps(u32 word, int odd) const { return (kept(word) >> odd * 16 & 0x8000u) != 0; }
  // Of both the bits of a 16-bit element that is kept: a sign for each.
  __device__ __forceinline__ u32 kept_halves(u32 word) const { return signs_of_halves(kept(word)); }
  // One pair at any place.
  __device__ __forceinline__ bool keeps(int number, int i, int j) const {
    const uint4 w = words(number, i, j);
    return keeps(i / 8 % 2 ? j / 8 % 2 ? w.w : w.z : j / 8 % 2 ? w.y : w.x, j % 2);
  }
};
__device__ __forceinline__ Dropout make_dropout(const Params &p) {
  const u64 seed = p.rng[0], offset = p.rng[1];
  return {(u32)seed, (u32)(seed >> 32) ^ (u32)(offset >> 32), (u32)offset, (0x8000u - p.drop_bits) * 0x10001u};
}
//| end
