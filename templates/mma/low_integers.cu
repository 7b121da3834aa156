//| needs "l.chunks l.chunks_v l.floats? l.integers_v? l.limbs? l.low"
//| -- low_integers: the two products of few rows over codes that are integers, which are multiplied as they come: K's by rows of Q that are
//| -- integers of 8 bits, limbs, and V's as fp16 below its normal numbers. What 16 rows have of it, too: low_standing.cu.
//|
//| -- of: what low_products.cu has of rows of K and V: sides, load_row(); k_pitch, v_pitch: chunks from a row to the next; shuffled: scales
//| -- of V that a lane of ldmatrix has already.
//| return function(l, of)
//|   local place = include "tiles/codes.lua"
//|   local V, kd, vd, I = l.low.v, of.sides.k.n, of.sides.v.n, l.integers_v
//|   local sides, load_row, k_pitch, v_pitch, shuffled = of.sides, of.load_row, of.k_pitch, of.v_pitch, of.shuffled
//|   local to = {}
//|
//|   -- Scales of K's blocks, in fp32 for all lanes.
//|   function to.scales()
//|     if l.floats then
__device__ __forceinline__ void load_floats(float (&to)[2][K_SCALES_OF_ROW], u32 from) {
//|       if kd % 2 == 0 then
#pragma unroll
  for (int i = 0; i < 2 * K_SCALES_OF_ROW; i += 4) {
    const uint4 x = load_shared_x4(from + i * 4);
    const u32 words[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int j = 0; j < 4; j++) to[(i + j) / K_SCALES_OF_ROW][(i + j) % K_SCALES_OF_ROW] = __uint_as_float(words[j]);
  }
//|       else
#pragma unroll
  for (int i = 0; i < 2 * K_SCALES_OF_ROW; i++) {
    float x;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from + i * 4) : "memory");
    to[i / K_SCALES_OF_ROW][i % K_SCALES_OF_ROW] = x;
  }
//|       end
}
// Scales of the blocks of the tile's keys to `floats`, those of a key side by side.
__device__ __forceinline__ void leave_scales(u32 floats, u32 k_tile, const Lane &at) {
  const int lane = at.g * 4 + at.t;
#pragma unroll
  for (int first = 0; first < BC; first += 32) {
    const int key = first + lane;
    if (BC < 32 && lane >= BC) break;
    KBlocks of;
//|         load_row(sides.k, "K_SCALES_OF_ROW", k_pitch, "of", "k_tile", "key")
#pragma unroll
    for (int b = 0; b < K_SCALES_OF_ROW; b++) {
      float x;
      asm("{ .reg .b16 half; cvt.u16.u32 half, %1; cvt.f32.f16 %0, half; }" : "=f"(x) : "r"(of.scale[b]));
      of.scale[b] = __float_as_uint(x);
    }
    const u32 to = floats + key * (K_SCALES_OF_ROW * 4);
//|         if kd % 4 == 0 then
#pragma unroll
    for (int b = 0; b < K_SCALES_OF_ROW; b += 4)
      store_shared(to + b * 4, make_uint4(of.scale[b], of.scale[b + 1], of.scale[b + 2], of.scale[b + 3]));
//|         else
#pragma unroll
    for (int b = 0; b < K_SCALES_OF_ROW; b++) store_shared(to + b * 4, of.scale[b]);
//|         end
  }
  __syncwarp();
}
//|     end
//|   end
//|
//|   -- S = Q K^T by limbs.
//|   function to.scores()
//|     if l.limbs.codes == 2 then
// Codes of 4 bits, 8 too large: 16 times the numbers as integers of 8 bits, of the lower halves and of the upper ones.
__device__ __forceinline__ void integers_of(u32 *to, u32 word) {
  const u32 more = word << 4;
  // x & mask ^ sign in one instruction, which holds one constant.
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(to[0]) : "r"(more), "n"(0xf0f0f0f0), "r"(0x80808080));
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(to[1]) : "r"(word), "n"(0xf0f0f0f0), "r"(0x80808080));
}
//|     end
//|     to.scales()
// Sums begin with the bits of 1.5 2^31 for the upper ones, of 1.5 2^23 for the lower ones: as floats they are 256 times the sum, and the
// sum, more than these.
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
//|     if l.limbs.chunks * l.limbs.codes % 2 == 1 then
  const u32 *const last = q.limbs[block * BLOCK_WORDS + BLOCK_WORDS - 1];
  int to[4];
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
      : "r"(last[0]), "r"(last[1]), "r"(word[BLOCK_WORDS - 1]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
#pragma unroll
  for (int i = 0; i < 4; i++) c[i] = to[i];
//|     end
  const float both = __int_as_float(UPPER) + __int_as_float(LOWER);  // exact, and so is the difference
#pragma unroll
  for (int i = 0; i < 2; i++) sum[i] = (__int_as_float(c[i]) - both) + __int_as_float(c[2 + i]);
}
// S = Q K^T for the rows and the BC keys of one tile.
__device__ __forceinline__ void scores(float (&s)[MB][NB][4], const QFragments &q, const float (&factor)[2], u32 k_tile,
                                       $(kd and "u32 floats, " or "")const Lane &at) {
//|     if kd then
  leave_scales(floats, k_tile, at);
//|     end
#pragma unroll
  for (int n = 0; n < NB; n += 2) {
//|     local joined, two = l.limbs.joined, l.limbs.tiles == 2
//|     local raw = joined and 1 or l.limbs.codes  -- registers of a word that may hold codes of two blocks
    u32 words[2][CHUNKS * $(raw)];
#pragma unroll
    for (int chunk = 0; chunk + 1 < CHUNKS; chunk += 2) {
      u32 b[4];
      ldmatrix_x4(b, k_tile + further<$(k_pitch)>(at.k, n * 8, chunk));
#pragma unroll
      for (int i = 0; i < 4; i++)
//|     if raw == 1 then
        words[i / 2][chunk + i % 2] = b[i];
//|     else
        integers_of(words[i / 2] + (chunk + i % 2) * 2, b[i]);
//|     end
    }
//|     if l.chunks % 2 == 1 then
    {
      u32 b[2];
      ldmatrix_x2(b[0], b[1], k_tile + at.last + n * 8 * $(k_pitch) * 16);
#pragma unroll
      for (int i = 0; i < 2; i++)
//|       if raw == 1 then
        words[i][CHUNKS - 1] = b[i];
//|       else
        integers_of(words[i] + (CHUNKS - 1) * 2, b[i]);
//|       end
    }
//|     end
#pragma unroll
    for (int i = 0; i < 2; i++) {
//|     if kd then
      float scale[2][K_SCALES_OF_ROW];
      load_floats(scale, floats + ((n + i) * 8 + at.t * 2) * (K_SCALES_OF_ROW * 4));
//|     end
//|     if two then
      float lower[2];  // sums of rows 4 to 7
//|     end
//|     for b = 0, l.limbs.blocks - 1 do
//|       local first = l.limbs.first[b] * l.limbs.codes
//|       local scaled = b == 0 and "sum[x] * scale[x][0]" or ("fmaf(sum[x], scale[x][%d], s[0][n + i][x])"):format(b)
      {
        u32 word[BLOCK_WORDS];
//|       if joined then
#pragma unroll
        for (int r = 0; r < $(l.limbs.chunks); r++) {
//|         local which = ("at.k_joins[%d]%s"):format(b // 2, b % 2 == 1 and " >> 16" or "")
          const u32 both = __byte_perm(words[i][$(l.limbs.first[b]) + r], words[i][$(l.limbs.first[b] + 1) + r], $(which));
//|         if l.limbs.codes == 1 then
          word[r] = both;
//|         else
          integers_of(word + r * 2, both);
//|         end
        }
//|       else
#pragma unroll
        for (int r = 0; r < BLOCK_WORDS; r++)
          word[r] = $(first) + r < CHUNKS * $(l.limbs.codes) ? words[i][$(first) + r] : 0;
//|       end
        float sum[2];
        multiply_limbs(sum, q, $(b), word);
#pragma unroll
        for (int x = 0; x < 2; x++)
          s[0][n + i][x] = $(kd and scaled or "sum[x]");
//|       if two then
        multiply_limbs(sum, q, $(l.limbs.blocks + b), word);
#pragma unroll
        for (int x = 0; x < 2; x++)
          lower[x] = $((scaled:gsub("s%[0%]%[n %+ i%]", "lower")));
//|       end
      }
//|     end
//|     if two then
      // Lanes of rows 0 to 3 have the upper limbs of rows 0 to 3 and of rows 4 to 7, the others the lower ones: each keeps its own row's.
#pragma unroll
      for (int x = 0; x < 2; x++) {
        const float upper = s[0][n + i][x], others = __shfl_xor_sync(~0u, at.g < 4 ? lower[x] : upper, 16);
        s[0][n + i][x] = fmaf(at.g < 4 ? upper : lower[x], factor[0], factor[1] * others);
      }
//|     else
#pragma unroll
      for (int x = 0; x < 2; x++) {
        const float others = __shfl_xor_sync(~0u, s[0][n + i][x], 16);
        s[0][n + i][x] = fmaf(s[0][n + i][x], factor[0], others * factor[1]);
      }
//|     end
      s[0][n + i][2] = s[0][n + i][3] = 0.f;  // of rows that are not there
    }
  }
}
//|   end
//|
//|   -- Registers of V's codes.
//|   function to.columns()
//|     local off = V.bits == 8 and "128 too large" or "8 too large, of the upper halves 16 times that"
// Codes of V as fp16 as they stand, below its normal numbers: 2^-24 times the code, $(off). Registers as
// unpack_columns_$(V.name)() has them.
__device__ __forceinline__ void integers_of_columns(u32 (&h)[V_WORD], u32 word) {
//|     if V.bits == 8 then
  word ^= 0x80808080;
  h[0] = __byte_perm(word, 0, 0x4240);
  h[1] = __byte_perm(word, 0, 0x4341);
//|     else
#pragma unroll
  for (int i = 0; i < 2; i++) {
    h[2 * i] = word >> 8 * i & 0x000f000f;
    h[2 * i + 1] = word >> 8 * i & 0x00f000f0;
  }
//|     end
}
//|   end
//|
//|   -- What P is multiplied by where V's blocks have scales.
//|   function to.power()
//|     if vd then
// Of pairs: the larger magnitudes.
__device__ __forceinline__ u32 larger_f16x2(u32 a, u32 b) {
  u32 r;
  asm("{ .reg .b32 x; abs.f16x2 x, %2; max.f16x2 %0, %1, x; }" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
// What P is multiplied by, beside a block's scale: fp16 holds the product as long as no scale is above `limit`, a power of two in fp16,
// twice.
struct PowerOfP {
  u32 limit;
  float up;
};
__device__ __forceinline__ PowerOfP first_power() { return {0x3c00, 32768.f}; }
__device__ __forceinline__ float undo(const PowerOfP &power) { return __uint_as_float((97 + (power.limit >> 10)) << 23); }
// Some lane has a scale above the limit, `top` its largest: O becomes relative to a larger one.
__device__ __forceinline__ void raise_limit(PowerOfP &power, float (&o)[MB][OB][4], u32 top) {
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
// Looks at V's scales of the tile: none is above the limit from here on. A lane has those of a key.
__device__ __forceinline__ void watch_limit(PowerOfP &power, float (&o)[MB][OB][4], u32 v_tile, const Lane &at) {
  u32 top = 0;
#pragma unroll
  for (int first = 0; first < BC; first += 32) {
    const int key = min(first + at.g * 4 + at.t, BC - 1);
    VBlocks of;
//|       load_row(sides.v, "V_SCALES_OF_ROW", v_pitch, "of", "v_tile", "key")
#pragma unroll
    for (int b = 0; b < V_SCALES_OF_ROW; b++) top = larger_f16x2(top, of.scale[b]);
  }
  if (__any_sync(~0u, top > power.limit)) raise_limit(power, o, top);
}
//|     end
//|   end
//|
//|   -- Of 16 keys, beside their words.
//|   function to.scales_of_keys()
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
//|   end
//|
//|   -- What a lane has of 16 keys of V as they lie.
//|   function to.words_of_v()
    u32 words[CHUNKS_V][2];
#pragma unroll
    for (int chunk = 0; chunk + 1 < CHUNKS_V; chunk += 2) {
      u32 b[4];
      ldmatrix_x4_trans(b, v_tile + further<$(v_pitch)>(at.v, kk * 16, chunk));
#pragma unroll
      for (int i = 0; i < 4; i++) words[chunk + i / 2][i % 2] = b[i];
    }
//|     if l.chunks_v % 2 == 1 then
    ldmatrix_x2_trans(words[CHUNKS_V - 1][0], words[CHUNKS_V - 1][1], v_tile + at.last_v + kk * 16 * $(v_pitch) * 16);
//|     end
//|   end
//|
//|   -- O += P V, of V that columns() takes.
//|   function to.accumulate()
//|     to.power()
// O^T += V^T P^T, and what codes that are too large add to a row of it. Block (b * $(I.chunks) + i) * V_WORD / 2 + r / 2
// of O has registers r and r + 1 of words of the i-th chunk of V's block b, for even r, as rows g and g + 8. P is that of the keys times
//|     local of_block = vd and I.excess < I.blocks and " / 2, columns of odd ones 4 further" or ""
// the scale of their block. What is too large of block b has block EXCESS + b$(of_block).
//|     if I.joined then
// Each row's word comes from the chunk where its codes lie, of two neighbours.
//|     elseif vd then
// What of a chunk is another block's is not asked for.
//|     end
//|     local power = vd and "PowerOfP &power, " or ""
__device__ __forceinline__ void accumulate(float (&o)[MB][OB][4], const float (&s)[MB][NB][4], $(power)u32 v_tile, const Lane &at) {
#pragma unroll
  for (int kk = 0; kk < NB / 2; kk++) {
//|     to.words_of_v()
    u32 of_keys[2];
//|     if vd then
//|       to.scales_of_keys()
#pragma unroll
    for (int i = 0; i < 2; i++) of_keys[i] = pack_f16x2(s[0][2 * kk + i][0] * power.up, s[0][2 * kk + i][1] * power.up);
//|     else
#pragma unroll
    for (int i = 0; i < 2; i++) of_keys[i] = pack_f16x2(s[0][2 * kk + i][0], s[0][2 * kk + i][1]);
//|     end
//|     local pairs = vd and I.excess < I.blocks
//|     if pairs then
    u32 of_two[2];  // lanes of rows 4 to 7, where P is that of rows 0 to 3 again, have the second of two blocks
//|     end
//|     for b = 0, I.blocks - 1 do
    {
//|       if vd then
      const u32 of_block[2] = {mul_f16x2(of_keys[0], scale[0][$(b)]), mul_f16x2(of_keys[1], scale[1][$(b)])};
//|       else
      const u32(&of_block)[2] = of_keys;
//|       end
#pragma unroll
      for (int i = 0; i < $(I.chunks); i++) {
        const int chunk = $(I.first[b]) + i;
        if (chunk >= CHUNKS_V) break;
        u32 lo[V_WORD], hi[V_WORD];
//|       if I.joined then
        const bool later = at.v_row <= $(b * V.block_bytes % 16 // 2);  // the row's codes are those of the next chunk
        integers_of_columns(lo, later ? words[chunk + 1][0] : words[chunk][0]);
        integers_of_columns(hi, later ? words[chunk + 1][1] : words[chunk][1]);
//|       else
        integers_of_columns(lo, words[chunk][0]);
        integers_of_columns(hi, words[chunk][1]);
//|       end
#pragma unroll
        for (int r = 0; r < V_WORD; r += 2) {
          const u32 of_v[4] = {lo[r], lo[r + 1], hi[r], hi[r + 1]};
          mma_full(o[0][$(b * I.rows) + i * (V_WORD / 2) + r / 2], of_v, of_block[0], of_block[1]);
        }
      }
//|     if pairs then
#pragma unroll
      for (int i = 0; i < 2; i++) of_two[i] = $(b % 2 == 0 and "of_block[i]" or "at.g < 4 ? of_two[i] : of_block[i]");
//|     end
//|     if not pairs or b % 2 == 1 or b == I.blocks - 1 then
//|       local lower, by = V.bits == 8 and "0x00800080" or "0x00080008", pairs and "of_two" or "of_block"
      const u32 more[4] = {$(lower), 0x00800080, $(lower), 0x00800080};
      mma_full(o[0][EXCESS + $(pairs and b // 2 or b)], more, $(by)[0], $(by)[1]);
//|     end
    }
//|     end
  }
}
//|   end
//|
//|   return to
//| end
