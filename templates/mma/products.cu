//| needs "c.q_regs? l.chunks l.integer? l.key_scales? l.vb"
// ---- the two products on mma.sync: S = Q K^T and O += P V ----

//| if p.dtype == "tf32" then
// The key of column x of an 8-column block of scores. Columns 2t and 2t + 1 hold keys t and t + 4, so that the accumulators of
// S are at once the A fragment of P.
__device__ __forceinline__ int key_of_column(int x) { return (x >> 1) + (x & 1) * 4; }
constexpr bool PAIRS_V = true;
//| else
__device__ __forceinline__ int key_of_column(int x) { return x; }
constexpr bool PAIRS_V = false;
//| end

// What a lane needs to find its part of a fragment: its row g and column t of the accumulators, and its offsets in the tiles.
struct Lane {
  int g, t;
  u32 q, k, v;
//| if l.chunks % 2 == 1 then
  u32 last;  // the row of Q or K whose last chunk it reads for the step of k = 8
//| end
//| if l.vb % 2 == 1 then
  u32 last_v;  // the row of V whose last chunk it reads
//| end
};
__device__ __forceinline__ Lane make_lane() {
  const int lane = threadIdx.x % 32, matrix = lane / 8, row = lane % 8;
  Lane at;
  at.g = lane / 4;
  at.t = lane % 4;
  at.q = tile_offset<CHUNKS>(lane % 16, lane / 16);                                          // A: rows 0..15, two chunks
  at.k = tile_offset<CHUNKS>(key_of_column(row) + matrix / 2 * 8, matrix % 2);               // B: two chunks, keys 0..15
//| if p.dtype == "tf32" then
  at.v = tile_offset<CHUNKS_V, true>(at.t, at.g / 4) + at.g % 4 * 4;                         // B: word g of key t
//| else
  at.v = tile_offset<CHUNKS_V>(lane % 16, lane / 16);                                        // B: keys 0..15, two chunks, transposed
//| end
//| if l.chunks % 2 == 1 then
  at.last = lane % 16 * CHUNKS * 16 + (CHUNKS - 1) * 16;
//| end
//| if l.vb % 2 == 1 then
  at.last_v = lane % 16 * CHUNKS_V * 16 + (CHUNKS_V - 1) * 16;
//| end
  return at;
}

// Fragment of Q for 16 rows from `row` and k-step ks.
__device__ __forceinline__ void load_q(u32 (&a)[4], u32 q_tile, const Lane &at, int row, int ks) {
  ldmatrix_x4(a, q_tile + further<CHUNKS>(at.q, row, 2 * ks));
//| if p.dtype == "tf32" then
#pragma unroll
  for (int i = 0; i < 4; i++) a[i] = to_tf32(__uint_as_float(a[i]));
//| end
}

constexpr int K_STEPS = CHUNKS / 2;  // of two chunks each
//| if l.chunks % 2 == 1 then
// D is an odd multiple of 8: the last chunk is one step of k = 8.
//| end
//| if (c.q_regs or 1) == 1 then
struct QFragments {
  u32 full[MB][K_STEPS > 0 ? K_STEPS : 1][4];
//|   if l.chunks % 2 == 1 then
  u32 half[MB][2];
//|   end
};
__device__ __forceinline__ void load_q(QFragments &q, u32 q_rows, const Lane &at) {
#pragma unroll
  for (int m = 0; m < MB; m++) {
#pragma unroll
    for (int ks = 0; ks < K_STEPS; ks++) load_q(q.full[m][ks], q_rows, at, m * 16, ks);
//|   if l.chunks % 2 == 1 then
    ldmatrix_x2(q.half[m][0], q.half[m][1], q_rows + at.last + m * 16 * CHUNKS * 16);
//|   end
  }
}
//| end

//| local sum, begins = "s", "0.f" -- what products are summed up in
//| if l.integer then
//|   include "mma/integer_products.cu"
//|   sum, begins = "sum", "BIAS"
//| end
//| local of_keys = l.key_scales and ", times the scales of keys, which lie at `scales`" or ""
// S = Q K^T for the warp's rows and the BC keys of one tile$(of_keys).
//| local q_type = (c.q_regs or 1) == 1 and "const QFragments &q" or "u32 q_rows"
//| local scales = l.key_scales and ", u32 scales" or ""
__device__ __forceinline__ void scores(float (&s)[MB][NB][4], $(q_type), u32 k_tile, const Lane &at$(scales)) {
//| if l.integer then
  int sum[MB][NB][4];
//| end
#pragma unroll
  for (int m = 0; m < MB; m++)
#pragma unroll
    for (int n = 0; n < NB; n++) $(sum)[m][n][0] = $(sum)[m][n][1] = $(sum)[m][n][2] = $(sum)[m][n][3] = $(begins);
#pragma unroll
  for (int ks = 0; ks < K_STEPS; ks++) {
//| if c.q_regs == 0 then
    u32 a[MB][4];
#pragma unroll
    for (int m = 0; m < MB; m++) load_q(a[m], q_rows, at, m * 16, ks);
//| end
#pragma unroll
    for (int n = 0; n < NB; n += 2) {
      u32 b[4];
      ldmatrix_x4(b, k_tile + further<CHUNKS>(at.k, n * 8, 2 * ks));
//| if p.dtype == "tf32" then
#pragma unroll
      for (int i = 0; i < 4; i++) b[i] = to_tf32(__uint_as_float(b[i]));
//| end
//| local a = (c.q_regs or 1) == 1 and "q.full[m][ks]" or "a[m]"
#pragma unroll
      for (int m = 0; m < MB; m++) {
        mma_full($(sum)[m][n], $(a), b[0], b[1]);
        mma_full($(sum)[m][n + 1], $(a), b[2], b[3]);
      }
    }
  }
//| if l.chunks % 2 == 1 then
//|   if c.q_regs == 0 then
  u32 a[MB][2];
#pragma unroll
  for (int m = 0; m < MB; m++)
    ldmatrix_x2(a[m][0], a[m][1], q_rows + at.last + m * 16 * CHUNKS * 16);
//|   end
#pragma unroll
  for (int n = 0; n < NB; n += 2) {
    u32 b0, b1;
    ldmatrix_x2(b0, b1, k_tile + at.last + n * 8 * CHUNKS * 16);
//|   local a = (c.q_regs or 1) == 1 and "q.half[m]" or "a[m]"
#pragma unroll
    for (int m = 0; m < MB; m++) {
      mma_half($(sum)[m][n], $(a)[0], $(a)[1], b0);
      mma_half($(sum)[m][n + 1], $(a)[0], $(a)[1], b1);
    }
  }
//| end
//| if l.integer then
  to_floats(s, sum$(l.key_scales and ", at, scales" or ""));
//| end
}

//| local pack = l.integer and "to_values" or "pack2"
// P as A fragments, straight from the accumulators of S.
__device__ __forceinline__ void to_fragments(u32 (&a)[MB][P_STEPS][4], const float (&s)[MB][NB][4]) {
#pragma unroll
  for (int m = 0; m < MB; m++)
#pragma unroll
//| if p.dtype == "tf32" then
    for (int n = 0; n < NB; n++) {
      a[m][n][0] = to_tf32(s[m][n][0]);
      a[m][n][1] = to_tf32(s[m][n][2]);
      a[m][n][2] = to_tf32(s[m][n][1]);
      a[m][n][3] = to_tf32(s[m][n][3]);
    }
//| else
    for (int n = 0; n < NB; n += 2) {
      a[m][n / 2][0] = $(pack)(s[m][n][0], s[m][n][1]);
      a[m][n / 2][1] = $(pack)(s[m][n][2], s[m][n][3]);
      a[m][n / 2][2] = $(pack)(s[m][n + 1][0], s[m][n + 1][1]);
      a[m][n / 2][3] = $(pack)(s[m][n + 1][2], s[m][n + 1][3]);
    }
//| end
}

// O += P V.
__device__ __forceinline__ void accumulate(float (&o)[MB][VB][4], const u32 (&a)[MB][P_STEPS][4], u32 v_tile, const Lane &at) {
//| if p.dtype == "tf32" then
#pragma unroll
  for (int n = 0; n < NB; n++) {
#pragma unroll
    for (int v = 0; v < VB; v++) {
      u32 b[2];
#pragma unroll
      for (int i = 0; i < 2; i++)
        b[i] = to_tf32(__uint_as_float(load_shared(v_tile + further<CHUNKS_V>(at.v, n * 8 + 4 * i, 2 * v))));
#pragma unroll
      for (int m = 0; m < MB; m++) mma_full(o[m][v], a[m][n], b[0], b[1]);
    }
  }
//| else
#pragma unroll
  for (int kk = 0; kk < NB / 2; kk++) {
#pragma unroll
    for (int v = 0; v + 1 < VB; v += 2) {
      u32 b[4];
      ldmatrix_x4_trans(b, v_tile + further<CHUNKS_V>(at.v, kk * 16, v));
#pragma unroll
      for (int m = 0; m < MB; m++) {
        mma_full(o[m][v], a[m][kk], b[0], b[1]);
        mma_full(o[m][v + 1], a[m][kk], b[2], b[3]);
      }
    }
//|   if l.vb % 2 == 1 then
    u32 b0, b1;
    ldmatrix_x2_trans(b0, b1, v_tile + at.last_v + kk * 16 * CHUNKS_V * 16);
#pragma unroll
    for (int m = 0; m < MB; m++) mma_full(o[m][VB - 1], a[m][kk], b0, b1);
//|   end
  }
//| end
}
