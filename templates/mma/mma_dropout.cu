//| needs "c.pack"
// ---- dropout of a block of probabilities, as the warps of the forward kernels hold them ----

// What is dropped becomes 0; the scale of what is kept is O's, at the end. row: the warp's first. A thread has keys j and j + 8 of a
// query, and those of the query eight below.
__device__ __forceinline__ void drop(float (&s)[MB][NB][4], const Params &p, const Dropout &dropout, const Tile &where, int row, int block,
                                     const Lane &at) {
#pragma unroll
  for (int m = 0; m < MB; m++)
#pragma unroll
    for (int n = 0; n < NB; n += 2)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const int key = block * BC + n * 8 + key_of_column(2 * at.t + e);
//| if c.pack == 1 then
        // Rows are of several heads: the two have no words in common.
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const Row own = row_of(p, where, row + m * 16 + h * 8 + at.g);
          const int query = (int)own.query;
          const uint4 w = dropout.words((int)(where.batch * p.hq + own.head), query, key);
          const bool below = query % 16 >= 8;
          if (!dropout.keeps(below ? w.z : w.x)) s[m][n][2 * h + e] = 0.f;
          if (!dropout.keeps(below ? w.w : w.y)) s[m][n + 1][2 * h + e] = 0.f;
        }
//| else
        const uint4 w = dropout.words((int)(where.batch * p.hq + where.head), row + m * 16 + at.g, key);
        if (!dropout.keeps(w.x)) s[m][n][e] = 0.f;
        if (!dropout.keeps(w.y)) s[m][n + 1][e] = 0.f;
        if (!dropout.keeps(w.z)) s[m][n][2 + e] = 0.f;
        if (!dropout.keeps(w.w)) s[m][n + 1][2 + e] = 0.f;
//| end
      }
}
