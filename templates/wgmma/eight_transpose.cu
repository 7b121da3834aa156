//| needs "c.feeder l.before l.ones"
//| local turned, of = l.ones and "TURNED" or "COLUMNS", l.ones and { "row_of(", ")" } or { "", "" }
//| if l.ones then
// Rows of ones follow the columns of the first sum.
__device__ __forceinline__ u32 row_of(u32 column) { return column < SUM ? column : column + 8; }

//| end
// V transposed: rows are columns of V, a row has the keys of a block, KEY_BOX in each box. Of 16 keys, 16 bytes, four neighbours are keys
// 2t, 2t + 1, 2t + 8 and 2t + 9, as a thread of a product holds them of S: P needs no exchange. Of 16 columns the even ones come first:
// then rows that are written together lie side by side, and a thread has four neighbours of O.
//| if p.has_lengths then
// Keys out of [first, end) become zeros: whatever lies there, NaN too, has no part in the result, but 0 * NaN in P V is NaN.
__device__ __forceinline__ void transpose(u32 from, u32 to, int first, int end, int warp, int lane) {
//| else
__device__ __forceinline__ void transpose(u32 from, u32 to, int warp, int lane) {
//| end
  // Loads come first: each waits for shared memory, and so would all of them one after the other.
  constexpr int PIECES = $((l.before or c.feeder >= 56) and 8 or 4), TOGETHER = BC / 32 < PIECES ? BC / 32 : PIECES;
  constexpr int CHUNKS = PIECES / TOGETHER > 1 && COLUMNS / 16 % (2 * TRANSPOSERS) == 0 ? 2 : 1;  // of 16 columns, at a time
  const u32 m = lane / 8, r = lane % 8;
#pragma unroll 1
  for (u32 chunk = warp; chunk < COLUMNS / 16; chunk += CHUNKS * TRANSPOSERS) {
#pragma unroll
    for (int block = 0; block < BC / 32; block += TOGETHER) {
      u32 x[CHUNKS][TOGETHER][4];
#pragma unroll
      for (int j = 0; j < CHUNKS; j++) {
        const u32 column = (chunk + j * TRANSPOSERS) * 16, at = column % BOX / 16;
        const u32 source = from + column / BOX * (BC * ROW) + lane * ROW + (at ^ swizzle_of<ROW>(lane)) * 16;
#pragma unroll
        for (int i = 0; i < TOGETHER; i++)
          if (block + i < BC / 32) ldmatrix_x4_trans(x[j][i], source + (block + i) * 32 * ROW);
      }
#pragma unroll
      for (int n = 0; n < CHUNKS * TOGETHER; n++) {
        const int j = n / TOGETHER, of = n % TOGETHER, keys = (block + of) * 32;
        if (keys >= BC) continue;
        const u32 row = $(of[1])(chunk + j * TRANSPOSERS) * 16 + m % 2 * 8 + r$(of[2]), key_chunk = keys % KEY_BOX / 16 + m / 2;
        u32 y[4];
//| if p.has_lengths then
        if (first > 0 || end < BC)
#pragma unroll
          for (int i = 0; i < 4; i++) {
            const int key = keys + 8 * i + lane % 4 * 2;
            x[j][of][i] &= (key >= first && key < end ? 0xffffu : 0) | (key + 1 >= first && key + 1 < end ? 0xffff0000u : 0);
          }
//| end
#pragma unroll
        for (int i = 0; i < 4; i++) y[i] = __byte_perm(x[j][of][i / 2 * 2], x[j][of][i / 2 * 2 + 1], i % 2 ? 0x7531 : 0x6420);
        stmatrix_x4(to + row * KEY_BOX + keys / KEY_BOX * $(turned) * KEY_BOX + (key_chunk ^ swizzle_of<KEY_BOX>(row)) * 16, y);
      }
    }
  }
}
