//| needs "l.chunks l.dots?"
// ---- Q, straight from global memory ----

// The word at `byte` of a row; zeros past the end of the row.
__device__ __forceinline__ u32 query_word(const char *row, int byte, bool real) {
  constexpr int BYTES = D * (int)sizeof(element);
//| if p.align >= 4 then
  return real && byte < BYTES ? *(const u32 *)(row + byte) : 0;
//| else
  const u32 lo = real && byte < BYTES ? *(const u16 *)(row + byte) : 0, hi = real && byte + 2 < BYTES ? *(const u16 *)(row + byte + 2) : 0;
  return hi << 16 | lo;
//| end
}
//| if not l.dots then

// Rows of the warp, as A fragments: query row / group of head row % group. Rows after the last are zeros, though they are not stored: ptxas
// 13.0 gives registers that a load alone writes, and that wgmma reads for each block of keys, to P, too.
__device__ __forceinline__ void load_q(QFragments &q, const Params &p, const Sequence &sequence, const Tile &tile, int warp_row,
                                       const Lane &at) {
#pragma unroll
  for (int m = 0; m < MB; m++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int row = tile.row + warp_row + m * 16 + h * 8 + at.g;
      const bool real = row < tile.rows;
      const int query = query_of(p, row), head = tile.head + row - query * p.group;
      const char *const from = (const char *)((const element *)p.q + sequence.q() + query * p.q_ss + head * p.q_sh);
#pragma unroll
      for (int ks = 0; ks < K_STEPS; ks++)
#pragma unroll
        for (int x = 0; x < 2; x++) {
          const u32 word = query_word(from, ks * 32 + x * 16 + at.t * 4, real);
          q.full[m][ks][h + 2 * x] = $(p.dtype == "tf32" and "to_tf32(__uint_as_float(word))" or "word");
        }
//|   if l.chunks % 2 == 1 then
      q.half[m][h] = query_word(from, (CHUNKS - 1) * 16 + at.t * 4, real);
//|   end
    }
}
//| end
