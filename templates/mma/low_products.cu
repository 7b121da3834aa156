//| needs "l.chunks l.chunks_v l.half? l.integers_v? l.limbs? l.low l.most_k l.most_v l.shifts_k l.shifts_v l.standing? l.tokens?"
//| local place = include "tiles/codes.lua"
//| local K, V = l.low.k, l.low.v
//| local nk, nv = place.registers(K), place.registers(V)
//| local whole = l.limbs or l.standing  -- K's codes are multiplied as they come
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
//|   for chunk = 0, of.n and of.shifts and not (whole and of.x == "k") and of.chunks - 1 or -1 do
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
//| local joined_k, joined_v = whole and whole.joined, l.integers_v and l.integers_v.joined
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
//| if joined_k then
  u32 k_joins[$((whole.blocks + 1) // 2)];  // of two blocks each: which bytes of a word come from a chunk, and which from the next
//| end
//| if joined_v then
  int v_row;  // row g less what a head's rows are shifted by, in pairs of bytes
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
//| if joined_k then
  // Codes follow the two bytes of a scale; what has no room in its chunk begins the next.
  __device__ __forceinline__ void join_k(int shift) {
    auto bytes = [=](int first) { return (first <= 0 ? 0x10 : 0x54) | (first <= 2 ? 0x3200 : 0x7600); };
//|   for b = 0, whole.blocks - 1, 2 do
//|     local function of_block(b) return ("bytes(%d + shift - t * 4)"):format(b * K.block_bytes % 16 + 2) end
    k_joins[$(b // 2)] = in_register($(of_block(b))$(b + 1 < whole.blocks and " | " .. of_block(b + 1) .. " << 16" or ""));
//|   end
  }
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
//|   if l.shifts_k and joined_k then
    join_k(k_shift);
//|   end
//|   if l.shifts_v and joined_v then
    v_row = g - v_shift / 2;
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
//| if joined_k and not l.shifts_k then
  at.join_k(0);
//| end
//| if joined_v and not l.shifts_v then
  at.v_row = at.g;
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
//| if l.standing then
constexpr int K_STEPS = $(l.standing.blocks * l.standing.chunks) * K_WORD / 2;  // of k = 16
//| else
constexpr int K_STEPS = CHUNKS * K_WORD / 2;  // of k = 16
//| end
//| if l.limbs then
// A row of Q times a number as an integer of four limbs, 256 times each more than the next: row g of a fragment has the first or, from g = 4
// on, the third limb of row g % 4, and row g + 8 the limb below. A word meets 4 bytes of a key's row for a lane, of a block; it has zeros where
// none of the block's codes are.
constexpr int BLOCK_WORDS = $(l.limbs.chunks * l.limbs.codes), Q_WORDS = $(l.limbs.words);
struct QFragments {
  u32 limbs[$(l.limbs.tiles > 1 and "2 * " or "")Q_WORDS][2];$(l.limbs.tiles > 1 and "  // of rows 0 to 3, of rows 4 to 7" or "")
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
//|   if not whole then
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
//| local integers = (include "mma/low_integers.cu")(l, {
//|   sides = sides, load_row = load_row, k_pitch = k_pitch, v_pitch = v_pitch, shuffled = shuffled,
//| })
//| local standing = l.standing and (include "mma/low_standing.cu")(l, integers, { k_pitch = k_pitch, v_pitch = v_pitch })
//| if standing then
//|   standing.scores()
//| elseif l.limbs then
//|   integers.scores()
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
//|   integers.columns()
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
//| if I and standing then
//|   standing.accumulate()
//| elseif I then
//|   integers.accumulate()
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
