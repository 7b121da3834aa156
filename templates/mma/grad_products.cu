//| needs "c.dq l.pass?"
//| local cols, more = l.pass and "COLS" or "CHUNKS", l.pass and ", int COLS" or ""  -- a pass adds up some columns of a tile
// ---- products of 16-bit tiles in shared memory on mma.sync ----

// A tile, `on` bytes after `base`. Tiles with a base in common have addresses in common, where `on` is a constant.
struct Place {
  u32 base, on;
};

// A value that stays in its register: without a shuffle the compiler would rather compute it again in every iteration.
__device__ __forceinline__ u32 kept(u32 x) { return __shfl_xor_sync(~0u, x, 0); }

// Where a lane finds its parts of fragments in a tile with rows of CHUNKS chunks. Bases of tiles are multiples of 128 bytes, so that
// further() takes base and lane in one: addresses of other chunks are then the first with other bits, one instruction each.
template <int CHUNKS>
struct Fragments {
  u32 rows;     // of A: rows 0..15, two chunks; of B, transposed: 16 rows, two chunks
  u32 columns;  // of B: rows 0..15, two chunks
  u32 last;     // where CHUNKS is odd: its row's last chunk, of 16 rows
};
template <int CHUNKS>
__device__ __forceinline__ Fragments<CHUNKS> make_fragments() {
  const int lane = threadIdx.x % 32;
  return {kept(tile_offset<CHUNKS>(lane % 16, lane / 16)), kept(tile_offset<CHUNKS>(lane % 8 + lane / 16 * 8, lane / 8 % 2)),
          (u32)(lane % 16 * CHUNKS + CHUNKS - 1) * 16};
}

// s = the dot products of 16 M rows of one tile with 8 N rows of another.
template <int M, int N, int CHUNKS>
__device__ __forceinline__ void dot_rows(float (&s)[M][N][4], Place rows, Place others, const Fragments<CHUNKS> &at) {
#pragma unroll
  for (int m = 0; m < M; m++)
#pragma unroll
    for (int n = 0; n < N; n++) s[m][n][0] = s[m][n][1] = s[m][n][2] = s[m][n][3] = 0.f;
#pragma unroll
  for (int k = 0; k + 1 < CHUNKS; k += 2) {
    u32 a[M][4];
#pragma unroll
    for (int m = 0; m < M; m++) ldmatrix_x4(a[m], rows.on + further<CHUNKS>(rows.base + at.rows, m * 16, k));
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      u32 b[4];
      ldmatrix_x4(b, others.on + further<CHUNKS>(others.base + at.columns, n * 8, k));
#pragma unroll
      for (int m = 0; m < M; m++) {
        mma_full(s[m][n], a[m], b[0], b[1]);
        mma_full(s[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
  if constexpr (CHUNKS % 2 == 1) {
    u32 a[M][2];
#pragma unroll
    for (int m = 0; m < M; m++) ldmatrix_x2(a[m][0], a[m][1], rows.base + rows.on + at.last + m * 16 * CHUNKS * 16);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      u32 b0, b1;
      ldmatrix_x2(b0, b1, others.base + others.on + at.last + n * 8 * CHUNKS * 16);
#pragma unroll
      for (int m = 0; m < M; m++) {
        mma_half(s[m][n], a[m][0], a[m][1], b0);
        mma_half(s[m][n + 1], a[m][0], a[m][1], b1);
      }
    }
  }
}

// sum += 16 columns of weights times the 16 rows of a tile from `row` on.
template <int M$(more), int CHUNKS>
__device__ __forceinline__ void add_block(float (&sum)[M][$(cols)][4], const u32 (&a)[M][4], Place tile, int row,
                                          const Fragments<CHUNKS> &at) {
#pragma unroll
  for (int v = 0; v + 1 < $(cols); v += 2) {
    u32 b[4];
    ldmatrix_x4_trans(b, tile.on + further<CHUNKS>(tile.base + at.rows, row, v));
#pragma unroll
    for (int m = 0; m < M; m++) {
      mma_full(sum[m][v], a[m], b[0], b[1]);
      mma_full(sum[m][v + 1], a[m], b[2], b[3]);
    }
  }
//| if not l.pass then
  if constexpr (CHUNKS % 2 == 1) {
    u32 b0, b1;
    ldmatrix_x2_trans(b0, b1, tile.base + tile.on + at.last + row * CHUNKS * 16);
#pragma unroll
    for (int m = 0; m < M; m++) mma_full(sum[m][CHUNKS - 1], a[m], b0, b1);
  }
//| end
}

// Two blocks of 8 columns as an operand: four matrices, rows 0..7 and 8..15 of the first, then of the second.
__device__ __forceinline__ void pack_block(u32 (&a)[4], const float (&x)[4], const float (&y)[4]) {
  a[0] = pack2(x[0], x[1]);
  a[1] = pack2(x[2], x[3]);
  a[2] = pack2(y[0], y[1]);
  a[3] = pack2(y[2], y[3]);
}

// sum += w times the 8 N rows of a tile; w as dot_rows() left it.
template <int M, int N$(more), int CHUNKS>
__device__ __forceinline__ void add_rows(float (&sum)[M][$(cols)][4], const float (&w)[M][N][4], Place tile, const Fragments<CHUNKS> &at) {
#pragma unroll
  for (int n = 0; n < N; n += 2) {
    u32 a[M][4];
#pragma unroll
    for (int m = 0; m < M; m++) pack_block(a[m], w[m][n], w[m][n + 1]);
    add_block(sum, a, tile, n * 8, at);
  }
}
//| if c.dq == 1 then

// dot_rows()' as an operand, and what add_rows() does with it.
template <int M, int N>
__device__ __forceinline__ void pack_scores(u32 (&a)[N / 2][M][4], const float (&w)[M][N][4]) {
#pragma unroll
  for (int n = 0; n < N; n += 2)
#pragma unroll
    for (int m = 0; m < M; m++) pack_block(a[n / 2][m], w[m][n], w[m][n + 1]);
}
template <int M, int N$(more), int CHUNKS>
__device__ __forceinline__ void add_packed(float (&sum)[M][$(cols)][4], const u32 (&a)[N][M][4], Place tile, const Fragments<CHUNKS> &at) {
#pragma unroll
  for (int n = 0; n < N; n++) add_block(sum, a[n], tile, n * 16, at);
}
//| end
