// ---- dS on its way through memory, in tiles of 16 queries and 16 keys: four matrices of 8 x 8, 16 bytes of each lane ----

// The tile of a lane: query, key: of the tile's; local: the unit, of those that the workspace holds; member: the head's number among those
// of its group that this launch does.
__device__ __forceinline__ uint4 *scores_of(const Params &p, int local, int member, int query, int key) {
  const u32 blocks_q = (u32)(p.sq + 15) / 16, blocks_k = (u32)(p.sk + 15) / 16;
  const u64 tile = (u64)((u32)(local * p.members + member) * blocks_q + (u32)query / 16) * blocks_k + (u32)key / 16;
  return (uint4 *)((char *)p.grad_s + tile * SCORES) + threadIdx.x % 32;
}

// dS^T of the warp from query `row` and key `key` on, each tile as the product with K takes it: dS, queries in the place of rows. Nothing
// reads tiles after the last query or key, and the workspace has none.
__device__ __forceinline__ void spill_scores(const Params &p, const u32 (&a)[NB_ROWS / 2][KB][4], int local, int member, int row, int key,
                                             int sq, int sk) {
  uint4 *to = scores_of(p, local, member, row, key);
  const u32 next = (u32)(p.sk + 15) / 16 * (SCORES / 16);  // 16 queries on
#pragma unroll
  for (int n = 0; n < NB_ROWS / 2; n++, to += next) {
#pragma unroll
    for (int m = 0; m < KB; m++) {
      // Of a the second matrix has the next keys, the third the next queries.
      const uint4 x = make_uint4(transpose(a[n][m][0]), transpose(a[n][m][2]), transpose(a[n][m][1]), transpose(a[n][m][3]));
      if (row + n * 16 < sq && key + m * 16 < sk) to[m * (SCORES / 16)] = x;
    }
  }
}
