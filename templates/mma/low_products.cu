//| needs "l.chunks l.chunks_v l.floats? l.half? l.integers_v? l.limbs? l.low l.most_k l.most_v l.shifts_k l.shifts_v l.tokens?"
//| local place = include "tiles/codes.lua"
//| local K, V = l.low.k, l.low.v
//| local nk, nv = place.registers(K), place.registers(V)
// ---- the two products on mma.sync, of fp16, with K and V of few bits: S = Q K^T and O += P V ----
// A lane unpacks the codes where ldmatrix leaves them. Elements then lie in another order along d: Q is loaded in that order, and O stored
// out of it. K and V are never moved.

//| local kd, vd = place.scales(K, p.d), place.scales(V, p.dv)  -- scales of a row
//| -- Words of a row's chunk: at its byte `step` * `lane`, lane < lanes. A word that has a block's scale and something of the block before is
//| -- that one's, or only its scale is in question, which nothing is multiplied by. blocks_of(): the first and the last block that lanes may
//| -- have, rows shifted by up to `most` bytes.
//| local sides = {
//|   k = { x = "k", f = K, n = kd, step = 4, lanes = 4, lane = "t", shifts = l.shifts_k, most = l.most_k, chunks = l.chunks },
//|   v = { x = "v", f = V, n = vd, step = 2, lanes = 8, lane = "g", shifts = l.shifts_v, most = l.most_v, chunks = l.chunks_v },
//| }
//| -- Chunks from a row to the next.
//| local k_pitch, v_pitch = l.tokens and "K_PITCH" or "CHUNKS", l.tokens and "V_PITCH" or "CHUNKS_V"
//| local function blocks_of(of, chunk)
//|   local function block(byte) return math.max(0, math.min(place.scale_of(of.f, byte), of.n - 1)) end
//|   return block(chunk * 16 - (of.shifts and of.most or 0)), block(chunk * 16 + of.step * (of.lanes - 1))
//| end
//| -- A bit of each chunk whose word is of a later block than the first, of a later one than that, ...: how many such masks a side has.
//| for _, of in ipairs { sides.k, sides.v } do
//|   of.masks = 0
//|   for chunk = 0, of.n and of.shifts and not (l.limbs and of.x == "k") and of.chunks - 1 or -1 do
//|     local first, last = blocks_of(of, chunk)
//|     of.masks = math.max(of.masks, last - first)
//|   end
//| end
//| -- Which of the registers `name`[0 .. n - 1] has the scale of a lane's word. named: another text than the register's, by its number.
//| local function of_block(of, name, chunk, named)
//|   local first, last = blocks_of(of, chunk)
//|   named = named or function(b) return ("%s[%d]"):format(name, b) end
//|   local text = named(first)
//|   if of.shifts then
//|     for b = first + 1, last do
//|       text = ("(at.%s_later[%d] & %d ? %s : %s)"):format(of.x, b - first - 1, 1 << chunk, named(b), text)
//|     end
//|     return text
//|   end
//|   local before = first
//|   for i = 1, of.lanes - 1 do
//|     local b = math.max(0, math.min(place.scale_of(of.f, chunk * 16 + of.step * i), of.n - 1))
//|     if b > before then text, before = ("(at.%s >= %d ? %s : %s)"):format(of.lane, i, named(b), text), b end
//|   end
//|   return text
//| end
//| -- How far the highest bits of the block's codes are moved for a word there: what it has less than `less`.
//| local function moved(of, chunk, less)
//|   local function by(b) return tostring(chunk * 16 - place.block_at(of.f, b) - of.f.codes_at + less) end
//|   return ("%d * at.%s + %s"):format(of.step, of.lane, of_block(of, "", chunk, by))
//| end
//| -- Scales of V's rows that a lane of ldmatrix has already: those of keys 2t and 2t + 1, side by side, where columns lie in that lane. They need
//| -- to be in the same chunk wherever a row begins.
//| local shuffled = vd and V.scales == 1 and V.least_at == 0 and V.high_at == 0
//| for i = 0, shuffled and vd - 1 or -1 do
//|   local byte = place.scale_at(V, i)
//|   shuffled = shuffled and (not l.shifts_v or byte // 16 == (byte + l.most_v) // 16)
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
//| if shuffled then
  int v_scales;  // the lane that has the scales of keys 2t and 2t + 1 where a row begins with them
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
//|       if l.tokens then
    $(x)_shift = in_register((int)threadIdx.x / HEAD_THREADS * $(x:upper())_BYTES & 15);
//|       else
    $(x)_shift = in_register($(x)_shift_of(p, kv_head));  // else it is computed again for each block of keys
//|       end
//|       if x == "v" and shuffled then
    v_scales = t + 2 * v_shift;
//|       end
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
  const int lane = in_register(threadIdx.x % 32), matrix = lane / 8, row = lane % 8;
  Lane at;
  at.g = lane / 4;
  at.t = lane % 4;
//| if l.tokens then
  at.k = tile_offset<K_PITCH>(row + matrix / 2 * 8, matrix % 2);
  at.v = tile_offset<V_PITCH>(lane % 16, lane / 16);
//| else
  at.k = tile_offset<CHUNKS>(row + matrix / 2 * 8, matrix % 2);  // two chunks of keys 0..15
  at.v = tile_offset<CHUNKS_V>(lane % 16, lane / 16);            // keys 0..15, two chunks, transposed
//| end
//| if l.chunks % 2 == 1 then
  at.last = lane % 16 * $(k_pitch) * 16 + (CHUNKS - 1) * 16;
//| end
//| if l.chunks_v % 2 == 1 then
  at.last_v = lane % 16 * $(v_pitch) * 16 + (CHUNKS_V - 1) * 16;
//| end
//| if shuffled then
  at.v_scales = at.t;
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
//|     if f.scales > 1 then
  return at < 0 ? -1 : block * $(f.block) + at / $(f.shared // 2) * $(f.shared) + at % $(f.shared // 2) + code * $(f.shared // 2);
//|     elseif f.halves then
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
//| if l.limbs then
// A row of Q times a number as an integer of four limbs, 256 times each more than the next: row g of a fragment has the first or, from g = 4
// on, the third limb of row g % 4, and row g + 8 the limb below. A word meets 4 bytes of a key's row for a lane, of a block; it has zeros where
// none of the block's codes are.
constexpr int BLOCK_WORDS = $(l.limbs.chunks * l.limbs.codes), Q_WORDS = $(l.limbs.words);
struct QFragments {
  u32 limbs[Q_WORDS][2];
};
//| elseif l.half then
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
//|   if K.has_scale and K.block_bytes % 4 == 0 or V.has_scale and V.block_bytes % 4 == 0 then
__device__ __forceinline__ u32 load_shared_u32(u32 from) {
  u32 x;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(from) : "memory");
  return x;
}
//|   end
//|   if K.scale_is_e4m3 or V.scale_is_e4m3 then unpack_scales(a.cc) end
//| end
//| -- What is beside the codes of a row's blocks: a struct, and what loads it. A scale, and a number that is added, become two fp16: that of
//| -- one row twice, or those of two rows.
//| local function beside(f, n, N, X)
// What is beside the codes of $(X)'s blocks, for a word of a lane.
struct $(X)Blocks {
  u32 scale[$(N)];
//|   if f.least_at > 0 then
  u32 least[$(N)];
//|   end
//|   if f.high_at > 0 then
  u32 high[$(N)];
//|   end
};
//| end
//| -- `to`.scale and others of row `row` of tile `tile`: each number in the lower half of its register.
//| local function load_row(of, N, chunks, to, tile, row)
//|   local f = of.f
//|   local function address(byte)
//|     if of.shifts then return "from + " .. byte end
//|     return ("%s + tile_offset<%s>(%s, (%s) / 16) + (%s) %% 16"):format(tile, chunks, row, byte, byte)
//|   end
//|   if of.shifts then
  const u32 from = $(tile) + $(row) * ($(chunks) * 16) + at.$(of.x)_shift;
//|   end
//|   if f.scale_is_e4m3 then
#pragma unroll
  for (int b = 0; b < $(N); b += 4) {
    const int byte = b / 4 * $(f.block_bytes) + $(f.scale_at);
    u32 two[2];
    scales_of_e4m3(two, load_shared_u32($(address("byte"))));
#pragma unroll
    for (int i = 0; i < 4; i++) $(to).scale[b + i] = two[i / 2] >> i % 2 * 16 & 0xffff;
  }
//|   else
#pragma unroll
  for (int b = 0; b < $(N); b++) {
    const int byte = b * $(f.block_bytes) + $(f.scale_at);
//|     if f.least_at == f.scale_at + 2 and f.block_bytes % 4 == 0 then
    const u32 both = load_shared_u32($(address("byte")));
    $(to).scale[b] = both & 0xffff;
    $(to).least[b] = both >> 16;
//|     else
    $(to).scale[b] = load_shared_u16($(address("byte")));
//|     end
//|     if f.high_at > 0 then
    const int bits = b * $(f.block_bytes) + $(f.high_at);
//|       if f.block_bytes % 4 == 0 then
    $(to).high[b] = load_shared_u32($(address("bits")));
//|       else
    $(to).high[b] = load_shared_u16($(address("bits"))) | load_shared_u16($(address("bits + 2"))) << 16;
//|       end
//|     end
  }
//|   end
//| end
//| -- s[m][n] of 8 keys, out of a word of their chunk number `chunk`.
//| local function dot(word, chunk, n, half)
//|   if K.high_at > 0 then
      unpack_rows_$(K.name)(h, $(word), high_bits(scale[$(half)], $(chunk), at));
//|   else
      unpack_rows_$(K.name)(h, $(word));
//|   end
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
//|   beside(K, kd, "K_SCALES_OF_ROW", "K")
//|   if not l.limbs then
// Scales of the blocks of a key's row, each twice.
__device__ __forceinline__ void load_scales(KBlocks &to, u32 k_tile, int row, const Lane &at) {
//|   load_row(sides.k, "K_SCALES_OF_ROW", k_pitch, "to", "k_tile", "row")
#pragma unroll
  for (int b = 0; b < K_SCALES_OF_ROW; b++) {
    to.scale[b] *= 0x10001;
//|   if K.least_at > 0 then
    to.least[b] *= 0x10001;
//|   end
  }
}
//|   if K.high_at > 0 then
// The highest bits of a lane's word of a chunk: bits i and 16 + i of byte i.
__device__ __forceinline__ u32 high_bits(const KBlocks &of, int chunk, const Lane &at) {
  u32 bits = 0;
  int by = 0;
//|     for chunk = 0, l.chunks - 1 do
  if (chunk == $(chunk)) bits = $(of_block(sides.k, "of.high", chunk)), by = $(moved(sides.k, chunk, 8));
//|     end
  return __funnelshift_r(bits << 8, bits >> 24, by);  // words begin up to 8 bytes before the codes
}
//|   end
// The numbers of a lane's word of a chunk, times the scale of their block.
__device__ __forceinline__ void times_scale(u32 (&h)[K_WORD], const KBlocks &scale, int chunk, const Lane &at) {
  u32 by = 0;
//|   for chunk = 0, l.chunks - 1 do
  if (chunk == $(chunk)) by = $(of_block(sides.k, "scale.scale", chunk));
//|   end
//|   if K.least_at > 0 then
  u32 least = 0;
//|     for chunk = 0, l.chunks - 1 do
  if (chunk == $(chunk)) least = $(of_block(sides.k, "scale.least", chunk));
//|     end
#pragma unroll
  for (int i = 0; i < K_WORD; i++) h[i] = fma_f16x2(h[i], by, least);
//|   else
#pragma unroll
  for (int i = 0; i < K_WORD; i++) h[i] = mul_f16x2(h[i], by);
//|   end
}
//|   end
//| end
//| if l.limbs and l.limbs.codes == 2 then
// Codes of 4 bits, 8 too large: 16 times the numbers as integers of 8 bits, of the lower halves and of the upper ones.
__device__ __forceinline__ void integers_of(u32 *to, u32 word) {
  to[0] = (word << 4 & 0xf0f0f0f0) ^ 0x80808080;
  to[1] = (word & 0xf0f0f0f0) ^ 0x80808080;
}
//| end
//| if l.floats then
__device__ __forceinline__ void load_floats(float (&to)[2][K_SCALES_OF_ROW], u32 from) {
//|   if kd % 2 == 0 then
#pragma unroll
  for (int i = 0; i < 2 * K_SCALES_OF_ROW; i += 4) {
    const uint4 x = load_shared_x4(from + i * 4);
    const u32 words[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int j = 0; j < 4; j++) to[(i + j) / K_SCALES_OF_ROW][(i + j) % K_SCALES_OF_ROW] = __uint_as_float(words[j]);
  }
//|   else
#pragma unroll
  for (int i = 0; i < 2 * K_SCALES_OF_ROW; i++) {
    float x;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from + i * 4) : "memory");
    to[i / K_SCALES_OF_ROW][i % K_SCALES_OF_ROW] = x;
  }
//|   end
}
//| end
//| if l.floats then
// Scales of the blocks of the tile's keys to `floats`, those of a key side by side.
__device__ __forceinline__ void leave_scales(u32 floats, u32 k_tile, const Lane &at) {
  const int lane = at.g * 4 + at.t;
#pragma unroll
  for (int first = 0; first < BC; first += 32) {
    const int key = first + lane;
    if (BC < 32 && lane >= BC) break;
    KBlocks of;
//|     load_row(sides.k, "K_SCALES_OF_ROW", k_pitch, "of", "k_tile", "key")
#pragma unroll
    for (int b = 0; b < K_SCALES_OF_ROW; b++) {
      float x;
      asm("{ .reg .b16 half; cvt.u16.u32 half, %1; cvt.f32.f16 %0, half; }" : "=f"(x) : "r"(of.scale[b]));
      of.scale[b] = __float_as_uint(x);
    }
    const u32 to = floats + key * (K_SCALES_OF_ROW * 4);
//|     if kd % 4 == 0 then
#pragma unroll
    for (int b = 0; b < K_SCALES_OF_ROW; b += 4)
      store_shared(to + b * 4, make_uint4(of.scale[b], of.scale[b + 1], of.scale[b + 2], of.scale[b + 3]));
//|     else
#pragma unroll
    for (int b = 0; b < K_SCALES_OF_ROW; b++) store_shared(to + b * 4, of.scale[b]);
//|     end
  }
  __syncwarp();
}
//| end
//| if l.limbs then
// Sums begin with the bits of 1.5 2^31 for the upper ones, of 1.5 2^23 for the lower ones: as floats they are 256 times the sum, and the sum,
// more than these.
__device__ __forceinline__ void multiply_limbs(float (&sum)[2], const QFragments &q, int block, const u32 (&word)[BLOCK_WORDS]) {
  constexpr int UPPER = 0x4f400000, LOWER = 0x4b400000;
  int c[4] = {UPPER, UPPER, LOWER, LOWER};
#pragma unroll
  for (int r = 0; r + 1 < BLOCK_WORDS; r += 2) {
    const u32 *const a = q.limbs[block * BLOCK_WORDS + r];
    const u32 *const next = q.limbs[block * BLOCK_WORDS + r + 1];
    int to[4];
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "r"(a[0]), "r"(a[1]), "r"(next[0]), "r"(next[1]), "r"(word[r]), "r"(word[r + 1]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
#pragma unroll
    for (int i = 0; i < 4; i++) c[i] = to[i];
  }
//|   if l.limbs.chunks * l.limbs.codes % 2 == 1 then
  const u32 *const last = q.limbs[block * BLOCK_WORDS + BLOCK_WORDS - 1];
  int to[4];
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
      : "r"(last[0]), "r"(last[1]), "r"(word[BLOCK_WORDS - 1]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
#pragma unroll
  for (int i = 0; i < 4; i++) c[i] = to[i];
//|   end
  const float both = __int_as_float(UPPER) + __int_as_float(LOWER);  // exact, and so is the difference
#pragma unroll
  for (int i = 0; i < 2; i++) sum[i] = (__int_as_float(c[i]) - both) + __int_as_float(c[2 + i]);
}
// S = Q K^T for the rows and the BC keys of one tile.
__device__ __forceinline__ void scores(float (&s)[MB][NB][4], const QFragments &q, const float (&factor)[2], u32 k_tile,
                                       $(kd and "u32 floats, " or "")const Lane &at) {
//|   if kd then
  leave_scales(floats, k_tile, at);
//|   end
#pragma unroll
  for (int n = 0; n < NB; n += 2) {
    u32 words[2][CHUNKS * $(l.limbs.codes)];
#pragma unroll
    for (int chunk = 0; chunk + 1 < CHUNKS; chunk += 2) {
      u32 b[4];
      ldmatrix_x4(b, k_tile + further<$(k_pitch)>(at.k, n * 8, chunk));
#pragma unroll
      for (int i = 0; i < 4; i++)
//|   if l.limbs.codes == 1 then
        words[i / 2][chunk + i % 2] = b[i];
//|   else
        integers_of(words[i / 2] + (chunk + i % 2) * 2, b[i]);
//|   end
    }
//|   if l.chunks % 2 == 1 then
    {
      u32 b[2];
      ldmatrix_x2(b[0], b[1], k_tile + at.last + n * 8 * $(k_pitch) * 16);
#pragma unroll
      for (int i = 0; i < 2; i++)
//|     if l.limbs.codes == 1 then
        words[i][CHUNKS - 1] = b[i];
//|     else
        integers_of(words[i] + (CHUNKS - 1) * 2, b[i]);
//|     end
    }
//|   end
#pragma unroll
    for (int i = 0; i < 2; i++) {
//|   if kd then
      float scale[2][K_SCALES_OF_ROW];
      load_floats(scale, floats + ((n + i) * 8 + at.t * 2) * (K_SCALES_OF_ROW * 4));
//|   end
//|   for b = 0, l.limbs.blocks - 1 do
      {
        u32 word[BLOCK_WORDS];
#pragma unroll
        for (int r = 0; r < BLOCK_WORDS; r++)
          word[r] = $(l.limbs.first[b] * l.limbs.codes) + r < CHUNKS * $(l.limbs.codes) ? words[i][$(l.limbs.first[b] * l.limbs.codes) + r] : 0;
        float sum[2];
        multiply_limbs(sum, q, $(b), word);
#pragma unroll
        for (int x = 0; x < 2; x++)
          s[0][n + i][x] = $(not kd and "sum[x]" or b == 0 and "sum[x] * scale[x][0]" or ("fmaf(sum[x], scale[x][%d], s[0][n + i][x])"):format(b));
      }
//|   end
#pragma unroll
      for (int x = 0; x < 2; x++) {
        const float others = __shfl_xor_sync(~0u, s[0][n + i][x], 16);
        s[0][n + i][x] = fmaf(s[0][n + i][x], factor[0], others * factor[1]);
      }
      s[0][n + i][2] = s[0][n + i][3] = 0.f;  // of rows that are not there
    }
  }
}
//| else
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
    KBlocks scale[2];
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
      ldmatrix_x4(b, k_tile + further<$(k_pitch)>(at.k, n * 8, chunk));
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
    ldmatrix_x2(b[0], b[1], k_tile + at.last + n * 8 * $(k_pitch) * 16);
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
//| end

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

//| local I = l.integers_v
//| if I then
//|   local off = V.bits == 8 and "128 too large" or "8 too large, of the upper halves 16 times that"
// Codes of V as fp16 as they stand, below its normal numbers: 2^-24 times the code, $(off). Registers as unpack_columns_$(V.name)() has them.
__device__ __forceinline__ void integers_of_columns(u32 (&h)[V_WORD], u32 word) {
//|   if V.bits == 8 then
  word ^= 0x80808080;
  h[0] = __byte_perm(word, 0, 0x4240);
  h[1] = __byte_perm(word, 0, 0x4341);
//|   else
#pragma unroll
  for (int i = 0; i < 2; i++) {
    h[2 * i] = word >> 8 * i & 0x000f000f;
    h[2 * i + 1] = word >> 8 * i & 0x00f000f0;
  }
//|   end
}
//| end
//| -- Columns of 16 keys out of two words: of keys 2t, 2t + 1, and of keys 8 further.
//| local function add(first, second, chunk)
//|   if V.high_at > 0 then
      unpack_columns_$(V.name)(lo, $(first), high_bits_of_two(scale[0], $(chunk), at));
      unpack_columns_$(V.name)(hi, $(second), high_bits_of_two(scale[1], $(chunk), at));
//|   else
      unpack_columns_$(V.name)(lo, $(first));
      unpack_columns_$(V.name)(hi, $(second));
//|   end
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
//|   beside(V, vd, "V_SCALES_OF_ROW", "V")
//|   if V.high_at > 0 then
struct VBlocksOfTwo {  // of two rows: their scales side by side
  VBlocks of;
  u32 high[V_SCALES_OF_ROW];  // of the second row
};
//|   else
struct VBlocksOfTwo {
  VBlocks of;
};
//|   end
__device__ __forceinline__ void load_blocks_of_v(VBlocks &to, u32 v_tile, int row, const Lane &at) {
//|   load_row(sides.v, "V_SCALES_OF_ROW", v_pitch, "to", "v_tile", "row")
}
// Scales of the blocks of two keys' rows, from `row` on.
__device__ __forceinline__ void load_scales_of_two(VBlocksOfTwo &to, u32 v_tile, int row, const Lane &at) {
  VBlocks next;
  load_blocks_of_v(to.of, v_tile, row, at);
  load_blocks_of_v(next, v_tile, row + 1, at);
#pragma unroll
  for (int b = 0; b < V_SCALES_OF_ROW; b++) {
    to.of.scale[b] |= next.scale[b] << 16;
//|   if V.least_at > 0 then
    to.of.least[b] |= next.least[b] << 16;
//|   end
//|   if V.high_at > 0 then
    to.high[b] = next.high[b];
//|   end
  }
}
//|   if V.high_at > 0 then
// The highest bits of a lane's word of a chunk, 2 bytes of two keys: bits i and 16 + i of byte i.
__device__ __forceinline__ u32 high_bits_of_two(const VBlocksOfTwo &blocks, int chunk, const Lane &at) {
  u32 first = 0, second = 0;
  int by = 0;
//|     for chunk = 0, l.chunks_v - 1 do
  if (chunk == $(chunk)) {
    first = $(of_block(sides.v, "blocks.of.high", chunk));
    second = $(of_block(sides.v, "blocks.high", chunk));
    by = $(moved(sides.v, chunk, 0));
  }
//|     end
  return (__funnelshift_r(first, 0u, by) & 0x00030003) | (__funnelshift_r(second, 0u, by) & 0x00030003) << 2;
}
//|   end
// The numbers of a lane's word of a chunk, 2 bytes of two keys, times the scales of their blocks.
__device__ __forceinline__ void times_scales(u32 (&h)[V_WORD], const VBlocksOfTwo &scale, int chunk, const Lane &at) {
  u32 by = 0;
//|   for chunk = 0, l.chunks_v - 1 do
  if (chunk == $(chunk)) by = $(of_block(sides.v, "scale.of.scale", chunk));
//|   end
//|   if V.least_at > 0 then
  u32 least = 0;
//|     for chunk = 0, l.chunks_v - 1 do
  if (chunk == $(chunk)) least = $(of_block(sides.v, "scale.of.least", chunk));
//|     end
#pragma unroll
  for (int i = 0; i < V_WORD; i++) h[i] = fma_f16x2(h[i], by, least);
//|   else
#pragma unroll
  for (int i = 0; i < V_WORD; i++) h[i] = mul_f16x2(h[i], by);
//|   end
}
//| end
//| -- Scales that lie in a chunk, out of the words of it.
//| local function found(first, second, chunk)
//|   for b = 0, shuffled and vd - 1 or -1 do
//|     local byte = place.scale_at(V, b)
      if ($(chunk) == $(byte // 16)) {
        const int lane = $(byte % 16 * 2) + at.v_scales;
        scale[0].of.scale[$(b)] = __shfl_sync(~0u, $(first), lane);
        scale[1].of.scale[$(b)] = __shfl_sync(~0u, $(second), lane);
      }
//|   end
//| end
//| if I then
//|   if vd then
// Of pairs: the larger magnitudes.
__device__ __forceinline__ u32 larger_f16x2(u32 a, u32 b) {
  u32 r;
  asm("{ .reg .b32 x; abs.f16x2 x, %2; max.f16x2 %0, %1, x; }" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
// What P is multiplied by, beside a block's scale: fp16 holds the product as long as no scale is above `limit`, a power of two in fp16, twice.
struct PowerOfP {
  u32 limit;
  float up;
};
__device__ __forceinline__ PowerOfP first_power() { return {0x3c00, 32768.f}; }
__device__ __forceinline__ float undo(const PowerOfP &power) { return __uint_as_float((97 + (power.limit >> 10)) << 23); }
// Some lane has scales above the limit, `top` its largest: O becomes relative to a larger one.
__device__ __forceinline__ void raise_limit(PowerOfP &power, float (&o)[MB][OB][4], u32 top) {
  top = max(top & 0xffff, top >> 16);
#pragma unroll
  for (int i = 1; i < 32; i *= 2) top = max(top, __shfl_xor_sync(~0u, top, i));
  const u32 limit = (min(top, 0x7c00u) + 0x3ff) & 0x7c00, steps = (limit - power.limit) >> 10;
  const float keep = __uint_as_float((127 - steps) << 23);
  power.limit = limit;
  power.up *= keep;
#pragma unroll
  for (int v = 0; v < OB; v++)
#pragma unroll
    for (int i = 0; i < 4; i++) o[0][v][i] *= keep;
}
//|   end
// O^T += V^T P^T, and what codes that are too large add to a row of it. Block (b * $(I.chunks) + i) * V_WORD / 2 + r / 2
// of O has registers r and r + 1 of words of the i-th chunk of V's block b, for even r, as rows g and g + 8: what of it is another block's is
// not asked for. P is that of the keys times the scale of their block.
//|   local power = vd and "PowerOfP &power, " or ""
__device__ __forceinline__ void accumulate(float (&o)[MB][OB][4], const float (&s)[MB][NB][4], $(power)u32 v_tile, const Lane &at) {
#pragma unroll
  for (int kk = 0; kk < NB / 2; kk++) {
    u32 words[CHUNKS_V][2];
#pragma unroll
    for (int chunk = 0; chunk + 1 < CHUNKS_V; chunk += 2) {
      u32 b[4];
      ldmatrix_x4_trans(b, v_tile + further<$(v_pitch)>(at.v, kk * 16, chunk));
#pragma unroll
      for (int i = 0; i < 4; i++) words[chunk + i / 2][i % 2] = b[i];
    }
//|   if l.chunks_v % 2 == 1 then
    ldmatrix_x2_trans(words[CHUNKS_V - 1][0], words[CHUNKS_V - 1][1], v_tile + at.last_v + kk * 16 * $(v_pitch) * 16);
//|   end
    u32 of_keys[2];
//|   if vd then
    u32 scale[2][V_SCALES_OF_ROW];  // of keys 2t and 2t + 1, and of those 8 further
//|     if shuffled then
//|       for b = 0, vd - 1 do
//|         local byte = place.scale_at(V, b)
#pragma unroll
    for (int i = 0; i < 2; i++) scale[i][$(b)] = __shfl_sync(~0u, words[$(byte // 16)][i], $(byte % 16 * 2) + at.v_scales);
//|       end
//|     else
#pragma unroll
    for (int i = 0; i < 2; i++) {
      VBlocksOfTwo of;
      load_scales_of_two(of, v_tile, kk * 16 + i * 8 + at.t * 2, at);
#pragma unroll
      for (int b = 0; b < V_SCALES_OF_ROW; b++) scale[i][b] = of.of.scale[b];
    }
//|     end
    u32 top = 0;
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int b = 0; b < V_SCALES_OF_ROW; b++) top = larger_f16x2(top, scale[i][b]);
    if (__any_sync(~0u, (top & 0xffff) > power.limit || top >> 16 > power.limit)) raise_limit(power, o, top);
#pragma unroll
    for (int i = 0; i < 2; i++) of_keys[i] = pack_f16x2(s[0][2 * kk + i][0] * power.up, s[0][2 * kk + i][1] * power.up);
//|   else
#pragma unroll
    for (int i = 0; i < 2; i++) of_keys[i] = pack_f16x2(s[0][2 * kk + i][0], s[0][2 * kk + i][1]);
//|   end
//|   for b = 0, I.blocks - 1 do
    {
//|     if vd then
      const u32 of_block[2] = {mul_f16x2(of_keys[0], scale[0][$(b)]), mul_f16x2(of_keys[1], scale[1][$(b)])};
//|     else
      const u32(&of_block)[2] = of_keys;
//|     end
#pragma unroll
      for (int i = 0; i < $(I.chunks); i++) {
        const int chunk = $(I.first[b]) + i;
        if (chunk >= CHUNKS_V) break;
        u32 lo[V_WORD], hi[V_WORD];
        integers_of_columns(lo, words[chunk][0]);
        integers_of_columns(hi, words[chunk][1]);
#pragma unroll
        for (int r = 0; r < V_WORD; r += 2) {
          const u32 of_v[4] = {lo[r], lo[r + 1], hi[r], hi[r + 1]};
          mma_full(o[0][$(b * I.rows) + i * (V_WORD / 2) + r / 2], of_v, of_block[0], of_block[1]);
        }
      }
//|   local lower = V.bits == 8 and "0x00800080" or "0x00080008"
      const u32 more[4] = {$(lower), 0x00800080, $(lower), 0x00800080};
      mma_full(o[0][EXCESS + $(b)], more, of_block[0], of_block[1]);
    }
//|   end
  }
}
//| else
//| if l.half then
// O^T += V^T P^T. Block (chunk * V_WORD + r) / 2 of O has registers r and r + 1 of its words, for even r, as rows g and g + 8.
//| else
// O += P V. Block chunk * V_WORD + r of O has register r of its words.
//| end
__device__ __forceinline__ void accumulate(float (&o)[MB][OB][4], const Probabilities &a, u32 v_tile, const Lane &at) {
#pragma unroll
  for (int kk = 0; kk < NB / 2; kk++) {
//| if shuffled then
    VBlocksOfTwo scale[2];
//| elseif vd then
    VBlocksOfTwo scale[2];
    load_scales_of_two(scale[0], v_tile, kk * 16 + at.t * 2, at);
    load_scales_of_two(scale[1], v_tile, kk * 16 + 8 + at.t * 2, at);
//| end
#pragma unroll
    for (int chunk = 0; chunk + 1 < CHUNKS_V; chunk += 2) {
      u32 b[4], lo[V_WORD], hi[V_WORD];
      ldmatrix_x4_trans(b, v_tile + further<$(v_pitch)>(at.v, kk * 16, chunk));
//| found("b[0]", "b[1]", "chunk")
//| found("b[2]", "b[3]", "chunk + 1")
//| add("b[0]", "b[1]", "chunk")
//| add("b[2]", "b[3]", "chunk + 1")
    }
//| if l.chunks_v % 2 == 1 then
    {
      u32 b[2], lo[V_WORD], hi[V_WORD];
      ldmatrix_x2_trans(b[0], b[1], v_tile + at.last_v + kk * 16 * $(v_pitch) * 16);
//|   found("b[0]", "b[1]", "CHUNKS_V - 1")
//|   add("b[0]", "b[1]", "CHUNKS_V - 1")
    }
//| end
  }
}
//| end
