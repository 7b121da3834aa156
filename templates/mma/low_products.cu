//| needs "l.chunks l.chunks_v l.low"
//| local place = include "tiles/codes.lua"
//| local K, V = l.low.k, l.low.v
//| local nk, nv = place.registers(K), place.registers(V)
// ---- the two products on mma.sync, of fp16, with K and V of few bits: S = Q K^T and O += P V ----
// A lane unpacks the codes where ldmatrix leaves them. Elements then lie in another order along d: Q is loaded in that order, and O stored
// out of it. K and V are never moved.

constexpr bool PAIRS_V = false;
__device__ __forceinline__ int key_of_column(int x) { return x; }

// What a lane needs to find its part of a fragment: its row g and column t of the accumulators, and its offsets in the tiles.
struct Lane {
  int g, t;
  u32 k, v;
//| if l.chunks % 2 == 1 then
  u32 last;  // the row of K whose last chunk it reads
//| end
//| if l.chunks_v % 2 == 1 then
  u32 last_v;  // the row of V whose last chunk it reads
//| end
};
__device__ __forceinline__ Lane make_lane() {
  const int lane = threadIdx.x % 32, matrix = lane / 8, row = lane % 8;
  Lane at;
  at.g = lane / 4;
  at.t = lane % 4;
  at.k = tile_offset<CHUNKS>(row + matrix / 2 * 8, matrix % 2);  // two chunks of keys 0..15
  at.v = tile_offset<CHUNKS_V>(lane % 16, lane / 16);            // keys 0..15, two chunks, transposed
//| if l.chunks % 2 == 1 then
  at.last = lane % 16 * CHUNKS * 16 + (CHUNKS - 1) * 16;
//| end
//| if l.chunks_v % 2 == 1 then
  at.last_v = lane % 16 * CHUNKS_V * 16 + (CHUNKS_V - 1) * 16;
//| end
  return at;
}

// The element of a row whose code number `code` of byte `byte` is; -1: a scale lies there.
//| local function element_at(name, f)
__device__ __forceinline__ int $(name)(int byte, int code) {
//|   if f.block == 1 then
  return byte;
//|   else
  const int block = byte / $(f.block_bytes), at = byte % $(f.block_bytes) - $(f.codes_at);
//|     if f.halves then
  return at < 0 ? -1 : block * $(f.block) + at + code * $(f.block // 2);
//|     else
  return at < 0 ? -1 : block * $(f.block) + at;
//|     end
//|   end
}
//| end
//| element_at("k_element_at", K)
//| element_at("v_element_at", V)

constexpr int K_WORD = $(nk), V_WORD = $(nv);    // registers that 4 bytes of K, of V become
constexpr int K_STEPS = CHUNKS * K_WORD / 2;  // of k = 16
struct QFragments {
  u32 full[MB][K_STEPS][4];
};

//| local kd, vd = K.has_scale and p.d // K.block, V.has_scale and p.dv // V.block  -- blocks of a row
//| -- Which of the registers `name`[0 .. n - 1] has the scale of a word at byte `first` + `step` * `lane` of a row, lane < lanes: a word that
//| -- has a block's scale and something of the block before is that one's, or only its scale is in question, which nothing is multiplied by.
//| local function of_block(f, n, name, first, step, lanes, lane)
//|   local function block(byte) return math.min(byte // f.block_bytes, n - 1) end
//|   local text, last = ("%s[%d]"):format(name, block(first)), block(first)
//|   for i = 1, lanes - 1 do
//|     local b = block(first + step * i)
//|     if b > last then text, last = ("(%s >= %d ? %s[%d] : %s)"):format(lane, i, name, b, text), b end
//|   end
//|   return text
//| end
//| if kd or vd then
// fp16 out of a row in shared memory: of one row twice, of two rows.
__device__ __forceinline__ u32 load_shared_u16(u32 from) {
  u16 x;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(x) : "r"(from) : "memory");
  return x;
}
//| end
//| -- s[m][n] of 8 keys, out of a word of their chunk number `chunk`.
//| local function dot(word, chunk, n, half)
      unpack_rows_$(K.name)(h, $(word));
//|   if kd then
      times_scale(h, scale[$(half)], $(chunk), at.t);
//|   end
#pragma unroll
      for (int m = 0; m < MB; m++)
#pragma unroll
        for (int j = 0; j < K_WORD / 2; j++) mma_full(s[m][$(n)], q.full[m][($(chunk)) * (K_WORD / 2) + j], h[2 * j], h[2 * j + 1]);
//| end
//| if kd then
constexpr int K_SCALES_OF_ROW = $(kd);
// Scales of the blocks of a key's row, each twice.
__device__ __forceinline__ void load_scales(u32 (&scale)[K_SCALES_OF_ROW], u32 k_tile, int row) {
#pragma unroll
  for (int b = 0; b < K_SCALES_OF_ROW; b++) {
    const int byte = b * $(K.block_bytes) + $(K.scale_at);
    scale[b] = load_shared_u16(k_tile + tile_offset<CHUNKS>(row, byte / 16) + byte % 16) * 0x10001;
  }
}
// The numbers of a lane's word of a chunk, times the scale of their block.
__device__ __forceinline__ void times_scale(u32 (&h)[K_WORD], const u32 (&scale)[K_SCALES_OF_ROW], int chunk, int t) {
  u32 by = 0;
//|   for chunk = 0, l.chunks - 1 do
  if (chunk == $(chunk)) by = $(of_block(K, kd, "scale", chunk * 16, 4, 4, "t"));
//|   end
#pragma unroll
  for (int i = 0; i < K_WORD; i++) h[i] = mul_f16x2(h[i], by);
}
//| end
// S = Q K^T for the warp's rows and the BC keys of one tile.
__device__ __forceinline__ void scores(float (&s)[MB][NB][4], const QFragments &q, u32 k_tile, const Lane &at) {
#pragma unroll
  for (int m = 0; m < MB; m++)
#pragma unroll
    for (int n = 0; n < NB; n++) s[m][n][0] = s[m][n][1] = s[m][n][2] = s[m][n][3] = 0.f;
//| if kd then
#pragma unroll
  for (int n = 0; n < NB; n += 2) {
    u32 scale[2][K_SCALES_OF_ROW];
    load_scales(scale[0], k_tile, n * 8 + at.g);
    load_scales(scale[1], k_tile, n * 8 + 8 + at.g);
#pragma unroll
    for (int chunk = 0; chunk + 1 < CHUNKS; chunk += 2) {
//| else
#pragma unroll
  for (int chunk = 0; chunk + 1 < CHUNKS; chunk += 2)
#pragma unroll
    for (int n = 0; n < NB; n += 2) {
//| end
      u32 b[4], h[K_WORD];
      ldmatrix_x4(b, k_tile + further<CHUNKS>(at.k, n * 8, chunk));
//| for i = 0, 3 do
//|   dot("b[" .. i .. "]", i % 2 == 0 and "chunk" or "chunk + 1", i < 2 and "n" or "n + 1", i // 2)
//| end
    }
//| if l.chunks % 2 == 1 then
//|   if kd then
    {
//|   else
#pragma unroll
  for (int n = 0; n < NB; n += 2) {
//|   end
    u32 b[2], h[K_WORD];
    ldmatrix_x2(b[0], b[1], k_tile + at.last + n * 8 * CHUNKS * 16);
//|   for i = 0, 1 do
//|     dot("b[" .. i .. "]", "CHUNKS - 1", i == 0 and "n" or "n + 1", i)
//|   end
  }
//| end
//| if kd then
  }
//| end
}

// P as A fragments, straight from the accumulators of S.
__device__ __forceinline__ void to_fragments(u32 (&a)[MB][P_STEPS][4], const float (&s)[MB][NB][4]) {
#pragma unroll
  for (int m = 0; m < MB; m++)
#pragma unroll
    for (int n = 0; n < NB; n += 2) {
      a[m][n / 2][0] = pack_f16x2(s[m][n][0], s[m][n][1]);
      a[m][n / 2][1] = pack_f16x2(s[m][n][2], s[m][n][3]);
      a[m][n / 2][2] = pack_f16x2(s[m][n + 1][0], s[m][n + 1][1]);
      a[m][n / 2][3] = pack_f16x2(s[m][n + 1][2], s[m][n + 1][3]);
    }
}

//| -- Columns of 16 keys out of two words: of keys 2t, 2t + 1, and of keys 8 further.
//| local function add(first, second, chunk)
      unpack_columns_$(V.name)(lo, $(first));
      unpack_columns_$(V.name)(hi, $(second));
//|   if vd then
      times_scales(lo, scale[0], $(chunk), at.g);
      times_scales(hi, scale[1], $(chunk), at.g);
//|   end
#pragma unroll
      for (int m = 0; m < MB; m++)
#pragma unroll
        for (int r = 0; r < V_WORD; r++) mma_full(o[m][($(chunk)) * V_WORD + r], a[m][kk], lo[r], hi[r]);
//| end
//| if vd then
constexpr int V_SCALES_OF_ROW = $(vd);
// Scales of the blocks of two keys' rows, from `row` on.
__device__ __forceinline__ void load_scales_of_two(u32 (&scale)[V_SCALES_OF_ROW], u32 v_tile, int row) {
#pragma unroll
  for (int b = 0; b < V_SCALES_OF_ROW; b++) {
    const int byte = b * $(V.block_bytes) + $(V.scale_at);
    scale[b] = load_shared_u16(v_tile + tile_offset<CHUNKS_V>(row, byte / 16) + byte % 16) |
               load_shared_u16(v_tile + tile_offset<CHUNKS_V>(row + 1, byte / 16) + byte % 16) << 16;
  }
}
// The numbers of a lane's word of a chunk, 2 bytes of two keys, times the scales of their blocks.
__device__ __forceinline__ void times_scales(u32 (&h)[V_WORD], const u32 (&scale)[V_SCALES_OF_ROW], int chunk, int g) {
  u32 by = 0;
//|   for chunk = 0, l.chunks_v - 1 do
  if (chunk == $(chunk)) by = $(of_block(V, vd, "scale", chunk * 16, 2, 8, "g"));
//|   end
#pragma unroll
  for (int i = 0; i < V_WORD; i++) h[i] = mul_f16x2(h[i], by);
}
//| end
// O += P V. Block chunk * V_WORD + r of O has register r of its words.
__device__ __forceinline__ void accumulate(float (&o)[MB][OB][4], const u32 (&a)[MB][P_STEPS][4], u32 v_tile, const Lane &at) {
#pragma unroll
  for (int kk = 0; kk < NB / 2; kk++) {
//| if vd then
    u32 scale[2][V_SCALES_OF_ROW];
    load_scales_of_two(scale[0], v_tile, kk * 16 + at.t * 2);
    load_scales_of_two(scale[1], v_tile, kk * 16 + 8 + at.t * 2);
//| end
#pragma unroll
    for (int chunk = 0; chunk + 1 < CHUNKS_V; chunk += 2) {
      u32 b[4], lo[V_WORD], hi[V_WORD];
      ldmatrix_x4_trans(b, v_tile + further<CHUNKS_V>(at.v, kk * 16, chunk));
//| add("b[0]", "b[1]", "chunk")
//| add("b[2]", "b[3]", "chunk + 1")
    }
//| if l.chunks_v % 2 == 1 then
    {
      u32 b[2], lo[V_WORD], hi[V_WORD];
      ldmatrix_x2_trans(b[0], b[1], v_tile + at.last_v + kk * 16 * CHUNKS_V * 16);
//|   add("b[0]", "b[1]", "CHUNKS_V - 1")
    }
//| end
  }
}
