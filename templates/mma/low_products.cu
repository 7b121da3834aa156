//| needs "l.chunks l.chunks_v l.half? l.low l.shifts_k l.shifts_v"
//| local place = include "tiles/codes.lua"
//| local K, V = l.low.k, l.low.v
//| local nk, nv = place.registers(K), place.registers(V)
// ---- the two products on mma.sync, of fp16, with K and V of few bits: S = Q K^T and O += P V ----
// A lane unpacks the codes where ldmatrix leaves them. Elements then lie in another order along d: Q is loaded in that order, and O stored
// out of it. K and V are never moved.

//| local kd, vd = K.has_scale and p.d // K.block, V.has_scale and p.dv // V.block  -- blocks of a row
//| -- Words of a row's chunk: at its byte `step` * `lane`, lane < lanes. A word that has a block's scale and something of the block before is
//| -- that one's, or only its scale is in question, which nothing is multiplied by. blocks_of(): the first and the last block that lanes may
//| -- have, rows shifted by up to `most` bytes.
//| local most = 16 - p.align
//| local sides = {
//|   k = { x = "k", f = K, n = kd, step = 4, lanes = 4, lane = "t", shifts = l.shifts_k, chunks = l.chunks },
//|   v = { x = "v", f = V, n = vd, step = 2, lanes = 8, lane = "g", shifts = l.shifts_v, chunks = l.chunks_v },
//| }
//| local function blocks_of(of, chunk)
//|   local function block(byte) return math.max(0, math.min(byte // of.f.block_bytes, of.n - 1)) end
//|   return block(chunk * 16 - (of.shifts and most or 0)), block(chunk * 16 + of.step * (of.lanes - 1))
//| end
//| -- A bit of each chunk whose word is of a later block than the first, of a later one than that, ...: how many such masks a side has.
//| for _, of in ipairs { sides.k, sides.v } do
//|   of.masks = 0
//|   for chunk = 0, of.n and of.shifts and of.chunks - 1 or -1 do
//|     local first, last = blocks_of(of, chunk)
//|     of.masks = math.max(of.masks, last - first)
//|   end
//| end
//| -- Which of the registers `name`[0 .. n - 1] has the scale of a lane's word.
//| local function of_block(of, name, chunk)
//|   local first, last = blocks_of(of, chunk)
//|   local text = ("%s[%d]"):format(name, first)
//|   for b = first + 1, last do
//|     local later
//|     if of.shifts then
//|       later = ("at.%s_later[%d] & %d"):format(of.x, b - first - 1, 1 << chunk)
//|     else
//|       later = ("at.%s >= %d"):format(of.lane, (b * of.f.block_bytes - chunk * 16 + of.step - 1) // of.step)
//|     end
//|     text = ("(%s ? %s[%d] : %s)"):format(later, name, b, text)
//|   end
//|   return text
//| end
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
//| for _, x in ipairs { "k", "v" } do
//|   local of = sides[x]
//|   if of.shifts then
  int $(x)_shift;  // of a head's rows: how far behind the beginning of their first chunk they begin
//|     if of.masks > 0 then
  u32 $(x)_later[$(of.masks)];  // a bit of each chunk: its word is of a later block than the first that it may be of, than the next one
//|     end
//|   end
//| end
//| if l.shifts_k or l.shifts_v then
  __device__ __forceinline__ void shift(const Params &p, int kv_head) {
//|   for _, x in ipairs { "k", "v" } do
//|     local of = sides[x]
//|     if of.shifts then
    $(x)_shift = $(x)_shift_of(p, kv_head);
//|       for mask = 1, of.masks do
//|         local text = {}
//|         for chunk = 0, of.chunks - 1 do
//|           local first, last = blocks_of(of, chunk)
//|           if last - first >= mask then
//|             local least = (first + mask) * of.f.block_bytes
//|             text[#text + 1] = ("(%d + %s * %d - %s_shift >= %d ? %d : 0)"):format(chunk * 16, of.lane, of.step, x, least, 1 << chunk)
//|           end
//|         end
    $(x)_later[$(mask - 1)] = $(table.concat(text, " | "));
//|       end
//|     end
//|   end
  }
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
  if (byte < 0) return -1;
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
//| if l.half then
// Steps 2 i and 2 i + 1 share registers: the first has rows g, the second rows g + 8, where Q has none. So is of each sum of products one half
// for nothing, and no register is zero.
constexpr int Q_PAIRS = (K_STEPS + 1) / 2;
struct QFragments {
  u32 full[MB][Q_PAIRS][4];
};
//| else
struct QFragments {
  u32 full[MB][K_STEPS][4];
};
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
      times_scale(h, scale[$(half)], $(chunk), at);
//|   end
//|   if l.half then
#pragma unroll
      for (int j = 0; j < K_WORD / 2; j++) {
        const int step = ($(chunk)) * (K_WORD / 2) + j;
        mma_full(part[step % 2][$(half)], q.full[0][step / 2], h[2 * j], h[2 * j + 1]);
      }
//|   else
#pragma unroll
      for (int m = 0; m < MB; m++)
#pragma unroll
        for (int j = 0; j < K_WORD / 2; j++) mma_full(s[m][$(n)], q.full[m][($(chunk)) * (K_WORD / 2) + j], h[2 * j], h[2 * j + 1]);
//|   end
//| end
//| if kd then
constexpr int K_SCALES_OF_ROW = $(kd);
// Scales of the blocks of a key's row, each twice.
__device__ __forceinline__ void load_scales(u32 (&scale)[K_SCALES_OF_ROW], u32 k_tile, int row, const Lane &at) {
//|   if l.shifts_k then
  const u32 from = k_tile + row * (CHUNKS * 16) + at.k_shift;
//|   end
#pragma unroll
  for (int b = 0; b < K_SCALES_OF_ROW; b++) {
    const int byte = b * $(K.block_bytes) + $(K.scale_at);
//|   if l.shifts_k then
    scale[b] = load_shared_u16(from + byte) * 0x10001;
//|   else
    scale[b] = load_shared_u16(k_tile + tile_offset<CHUNKS>(row, byte / 16) + byte % 16) * 0x10001;
//|   end
  }
}
// The numbers of a lane's word of a chunk, times the scale of their block.
__device__ __forceinline__ void times_scale(u32 (&h)[K_WORD], const u32 (&scale)[K_SCALES_OF_ROW], int chunk, const Lane &at) {
  u32 by = 0;
//|   for chunk = 0, l.chunks - 1 do
  if (chunk == $(chunk)) by = $(of_block(sides.k, "scale", chunk));
//|   end
#pragma unroll
  for (int i = 0; i < K_WORD; i++) h[i] = mul_f16x2(h[i], by);
}
//| end
// S = Q K^T for the warp's rows and the BC keys of one tile.
__device__ __forceinline__ void scores(float (&s)[MB][NB][4], const QFragments &q, u32 k_tile, const Lane &at) {
//| local by_keys = kd or l.half  -- keys outside, chunks inside
//| if not l.half then
#pragma unroll
  for (int m = 0; m < MB; m++)
#pragma unroll
    for (int n = 0; n < NB; n++) s[m][n][0] = s[m][n][1] = s[m][n][2] = s[m][n][3] = 0.f;
//| end
//| if by_keys then
#pragma unroll
  for (int n = 0; n < NB; n += 2) {
//|   if l.half then
    float part[2][2][4] = {};  // of even and of odd steps
//|   end
//|   if kd then
    u32 scale[2][K_SCALES_OF_ROW];
    load_scales(scale[0], k_tile, n * 8 + at.g, at);
    load_scales(scale[1], k_tile, n * 8 + 8 + at.g, at);
//|   end
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
//|   if by_keys then
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
//| if l.half then
#pragma unroll
    for (int i = 0; i < 2; i++) {
      s[0][n + i][0] = part[0][i][0] + part[1][i][2];
      s[0][n + i][1] = part[0][i][1] + part[1][i][3];
      s[0][n + i][2] = s[0][n + i][3] = 0.f;  // of rows that are not there
    }
//| end
//| if by_keys then
  }
//| end
}

// P as $(l.half and "B" or "A") fragments, straight from the accumulators of S.
//| if l.half then
typedef u32 Probabilities[P_STEPS][2];
__device__ __forceinline__ void to_fragments(Probabilities &b, const float (&s)[MB][NB][4]) {
#pragma unroll
  for (int n = 0; n < NB; n++) b[n / 2][n % 2] = pack_f16x2(s[0][n][0], s[0][n][1]);
}
//| else
typedef u32 Probabilities[MB][P_STEPS][4];
__device__ __forceinline__ void to_fragments(Probabilities &a, const float (&s)[MB][NB][4]) {
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
//| end

//| -- Columns of 16 keys out of two words: of keys 2t, 2t + 1, and of keys 8 further.
//| local function add(first, second, chunk)
      unpack_columns_$(V.name)(lo, $(first));
      unpack_columns_$(V.name)(hi, $(second));
//|   if vd then
      times_scales(lo, scale[0], $(chunk), at);
      times_scales(hi, scale[1], $(chunk), at);
//|   end
//|   if l.half then
#pragma unroll
      for (int r = 0; r < V_WORD; r += 2) {
        const u32 of_v[4] = {lo[r], lo[r + 1], hi[r], hi[r + 1]};
        mma_full(o[0][(($(chunk)) * V_WORD + r) / 2], of_v, a[kk][0], a[kk][1]);
      }
//|   else
#pragma unroll
      for (int m = 0; m < MB; m++)
#pragma unroll
        for (int r = 0; r < V_WORD; r++) mma_full(o[m][($(chunk)) * V_WORD + r], a[m][kk], lo[r], hi[r]);
//|   end
//| end
//| if vd then
constexpr int V_SCALES_OF_ROW = $(vd);
// Scales of the blocks of two keys' rows, from `row` on.
__device__ __forceinline__ void load_scales_of_two(u32 (&scale)[V_SCALES_OF_ROW], u32 v_tile, int row, const Lane &at) {
//|   if l.shifts_v then
  const u32 from = v_tile + row * (CHUNKS_V * 16) + at.v_shift;
//|   end
#pragma unroll
  for (int b = 0; b < V_SCALES_OF_ROW; b++) {
    const int byte = b * $(V.block_bytes) + $(V.scale_at);
//|   if l.shifts_v then
    scale[b] = load_shared_u16(from + byte) | load_shared_u16(from + CHUNKS_V * 16 + byte) << 16;
//|   else
    scale[b] = load_shared_u16(v_tile + tile_offset<CHUNKS_V>(row, byte / 16) + byte % 16) |
               load_shared_u16(v_tile + tile_offset<CHUNKS_V>(row + 1, byte / 16) + byte % 16) << 16;
//|   end
  }
}
// The numbers of a lane's word of a chunk, 2 bytes of two keys, times the scales of their blocks.
__device__ __forceinline__ void times_scales(u32 (&h)[V_WORD], const u32 (&scale)[V_SCALES_OF_ROW], int chunk, const Lane &at) {
  u32 by = 0;
//|   for chunk = 0, l.chunks_v - 1 do
  if (chunk == $(chunk)) by = $(of_block(sides.v, "scale", chunk));
//|   end
#pragma unroll
  for (int i = 0; i < V_WORD; i++) h[i] = mul_f16x2(h[i], by);
}
//| end
//| if l.half then
// O^T += V^T P^T. Block (chunk * V_WORD + r) / 2 of O has registers r and r + 1 of its words, for even r, as rows g and g + 8.
//| else
// O += P V. Block chunk * V_WORD + r of O has register r of its words.
//| end
__device__ __forceinline__ void accumulate(float (&o)[MB][OB][4], const Probabilities &a, u32 v_tile, const Lane &at) {
#pragma unroll
  for (int kk = 0; kk < NB / 2; kk++) {
//| if vd then
    u32 scale[2][V_SCALES_OF_ROW];
    load_scales_of_two(scale[0], v_tile, kk * 16 + at.t * 2, at);
    load_scales_of_two(scale[1], v_tile, kk * 16 + 8 + at.t * 2, at);
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
