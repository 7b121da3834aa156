// ---- how one part of a split tile leaves ----

// The warps leave their rows; the block that counts last adds up all parts. word: in shared memory, which no other step uses any more.
__device__ __forceinline__ void store_part(const Params &p, const Sequence &sequence, const Tile &where, const float (&o)[MB][VB][4],
                                           const RowState (&state)[MB][2], int *word, int g, int t) {
  const int warp_row = threadIdx.x / 32 * (16 * MB), rows = min(BR, row_count(p, sequence) - where.row);
  const long long first = ((long long)where.number * where.parts + where.part) * BR;
#pragma unroll
  for (int m = 0; m < MB; m++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const float l = quad_sum(state[m][h].l);
      const int tile_row = warp_row + m * 16 + h * 8 + g;
      if (tile_row >= rows) continue;
      if (t == 0) ((float2 *)p.part_state)[first + tile_row] = make_float2(state[m][h].m, l);
      float *const to = (float *)p.part_o + (first + tile_row) * COLS;
#pragma unroll
      for (int v = 0; v < VB; v++) *(float2 *)(to + v * 8 + 2 * t) = make_float2(o[m][v][2 * h], o[m][v][2 * h + 1]);
    }
  __syncthreads();  // the rows are written, shared memory is read
  if (threadIdx.x == 0) *word = count((u32 *)p.workspace + where.number, (u32)where.parts - 1) == (u32)where.parts - 1;
  __syncthreads();
  if (*word != 0)
    for (int i = threadIdx.x; i < rows * (COLS / 4); i += THREADS) add_parts(p, sequence, where, i / (COLS / 4), i % (COLS / 4));
}
