//| needs "l.low"
//| local K = l.low.k
// ---- Q, straight from global memory, in the order of K's codes ----

// The element of a row, and the one after it in the upper half; zeros where there is none.
__device__ __forceinline__ u32 query_half(const element *row, int i, bool real) { return real && i >= 0 && i < D ? row[i] : 0; }
__device__ __forceinline__ u32 query_pair(const element *row, int i, bool real) {
//| if p.align >= 4 then
  return real && i < D ? *(const u32 *)(row + i) : 0;
//| else
  return query_half(row, i + 1, real) << 16 | query_half(row, i, real);
//| end
}
//| if p.dtype == "bf16" then

// Rows of bf16 as fp16, times a power of two that leaves their largest number where fp16 has room, above 2^14: what is 2^-28 of it loses
// bits. *up undoes it. A row with NaN or an infinity stays as it is.
__device__ __forceinline__ void narrow(u32 (&full)[K_STEPS][4], int half, float *up) {
  u32 top = 0;
#pragma unroll
  for (int ks = 0; ks < K_STEPS; ks++)
#pragma unroll
    for (int x = 0; x < 2; x++) {
      const u32 word = full[ks][half + 2 * x];
      top = max(top, max(word & 0x7fff0000, word << 16 & 0x7fff0000));
    }
  top = max(top, __shfl_xor_sync(~0u, top, 1));
  top = max(top, __shfl_xor_sync(~0u, top, 2));
  const u32 exponent = top >> 23 == 255 ? 141 : max(top >> 23, 15);
  const float down = __uint_as_float(268 - exponent << 23);
  *up = __uint_as_float(exponent - 14 << 23);
#pragma unroll
  for (int ks = 0; ks < K_STEPS; ks++)
#pragma unroll
    for (int x = 0; x < 2; x++) {
      u32 &word = full[ks][half + 2 * x];
      word = pack_f16x2(__uint_as_float(word << 16) * down, __uint_as_float(word & 0xffff0000) * down);
    }
}
//| end

// Rows of the warp, as A fragments: query row / group of head row % group. Rows after the last are zeros. factor: of their products.
__device__ __forceinline__ void load_q(QFragments &q, float (&factor)[MB][2], const Params &p, const Sequence &sequence, const Tile &tile,
                                       int warp_row, const Lane &at) {
//| if p.k_scale == 1 then
  const float scale = $(f32(2.0 ^ K.owed)) * k_scale_of(p, sequence, tile.kv_head);
//| else
  const float scale = $(f32(2.0 ^ K.owed));
//| end
  const int t = opaque(at.t);
#pragma unroll
  for (int m = 0; m < MB; m++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int row = tile.row + warp_row + m * 16 + h * 8 + at.g;
      const bool real = row < tile.rows;
      const int query = query_of(p, row), head = tile.head + row - query * p.group;
      const element *const from = (const element *)p.q + sequence.q() + query * p.q_ss + head * p.q_sh;
#pragma unroll
      for (int ks = 0; ks < K_STEPS; ks++)
#pragma unroll
        for (int x = 0; x < 2; x++) {
          // Register r of the words of chunk ks / (K_WORD / 2).
          const int r = ks % (K_WORD / 2) * 2 + x, byte = ks / (K_WORD / 2) * 16 + t * 4;
//| if K.block == 1 then
          q.full[m][ks][h + 2 * x] = query_pair(from, byte + 2 * r, real);
//| elseif K.bits == 8 then
          q.full[m][ks][h + 2 * x] =
              query_half(from, k_element_at(byte + 2 * r + 1, 0), real) << 16 | query_half(from, k_element_at(byte + 2 * r, 0), real);
//| else
          q.full[m][ks][h + 2 * x] = query_half(from, k_element_at(byte + r / 2 + 2, r % 2), real) << 16 |
                                     query_half(from, k_element_at(byte + r / 2, r % 2), real);
//| end
        }
      factor[m][h] = scale;
//| if p.dtype == "bf16" then
      float up;
      narrow(q.full[m], h, &up);
      factor[m][h] *= up;
//| end
    }
}
