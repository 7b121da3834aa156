//| needs "l.half? l.heads? l.limbs? l.low l.shifts_k l.standing? l.widened?"
//| local K = l.low.k
// ---- Q, straight from global memory, in the order of K's codes ----

// The element of a row, and the one after it in the upper half; zeros where there is none.
__device__ __forceinline__ u32 query_half(const element *row, int i, bool real) { return real && i >= 0 && i < D ? row[i] : 0; }
__device__ __forceinline__ u32 query_pair(const element *row, int i, bool real) {
//| if p.align >= 4 then
  return real && i < D ? *(const u32 *)(row + i) : 0;
//| else
  return query_half(row, i + 1, real) << 16 | query_half(row, i, real);
//| end
}
//| local wide, by_columns = p.q == "fp32", p.k_scale == 4
//| local S = l.standing
//| if S then
// The element that code number `code` of byte `byte` of a lane's joined word is.
__device__ __forceinline__ int element_of_joined(int word, int byte, int code, const Lane &at) {
  const int block = word / $(S.chunks), from = at.t * 4 + byte - block * $(K.block_bytes % 16) - 2$(l.shifts_k and " - at.k_shift" or "");
  return block * $(K.block) + word % $(S.chunks) * 16 + (from & 15) + code * 16;
}
//| end
//| if l.limbs then
//| elseif p.dtype == "bf16" or wide or by_columns then

// Rows become fp16 times a power of two that leaves their largest number where fp16 has room, above 2^14: what is 2^-28 of it loses bits.
// top: the bits of the largest |x| that this thread has, of a row of four threads; NaN and infinities have powers of their own, and stay.
struct RowPower {
  float down, up;  // up undoes down
};
__device__ __forceinline__ RowPower row_power(u32 top) {
  top = max(top, __shfl_xor_sync(~0u, top, 1));
  top = max(top, __shfl_xor_sync(~0u, top, 2));
  const u32 exponent = top >> 23 == 255 ? 141 : max(top >> 23, 15);
  return {__uint_as_float(268 - exponent << 23), __uint_as_float(exponent - 14 << 23)};
}
//| end
//| if p.dtype == "bf16" and not by_columns and not wide and not l.limbs then

// Rows of bf16, so. *up undoes it.
//|   local steps, word = "K_STEPS", "full[ks][half + 2 * x]"
//|   if l.half then steps, word = "Q_PAIRS * 2", "full[ks / 2][ks % 2 + 2 * x]" end
__device__ __forceinline__ void narrow(u32 (&full)[$(l.half and "Q_PAIRS" or "K_STEPS")][4]$(l.half and "" or ", int half"), float *up) {
  u32 top = 0;
#pragma unroll
  for (int ks = 0; ks < $(steps); ks++)
#pragma unroll
    for (int x = 0; x < 2; x++) {
      const u32 word = $(word);
      top = max(top, max(word & 0x7fff0000, word << 16 & 0x7fff0000));
    }
  const RowPower by = row_power(top);
  *up = by.up;
#pragma unroll
  for (int ks = 0; ks < $(steps); ks++)
#pragma unroll
    for (int x = 0; x < 2; x++) {
      u32 &word = $(word);
      word = pack_f16x2(__uint_as_float(word << 16) * by.down, __uint_as_float(word & 0xffff0000) * by.down);
    }
}
//| end

//| if (wide or by_columns) and not l.limbs then

//|   local rows = by_columns and "Rows times the scales of K's columns, `apart` from one to the next" or "Rows"
// $(rows), so. *up undoes it.
//|   local own = (l.half and "" or ", int half") .. (wide and ", const float *from, bool real" or "")
//|   if by_columns then own = own .. ", const float *scales, long long apart" end
//|   local steps, word = "K_STEPS", "full[ks][half + 2 * x]"
//|   if l.half then steps, word = "Q_PAIRS * 2", "full[ks / 2][ks % 2 + 2 * x]" end
//|   local first, second = "__uint_as_float(word << 16)", "__uint_as_float(word & 0xffff0000)"
//|   if p.dtype == "fp16" then first, second = "widened_f16(word & 0xffff)", "widened_f16(word >> 16)" end
__device__ __forceinline__ void narrow_wide(u32 (&full)[$(l.half and "Q_PAIRS" or "K_STEPS")][4]$(own), const Lane &at, int t, float *up) {
//|   local function element(half)  -- of half 0, 1 of register r of a word that begins at `byte`
//|     if S then
//|       local byte, code = "2 * r + " .. half, "0"
//|       if K.bits < 8 then byte, code = "r / 2 + " .. 2 * half, "r % 2" end
//|       return ("element_of_joined(ks / (K_WORD / 2), %s, %s, at)"):format(byte, code)
//|     end
//|     if K.block == 1 then return ("byte + 2 * r + %d"):format(half) end
//|     if K.bits < 8 then return ("k_element_at(byte + r / 2 + %d, r %% 2)"):format(2 * half) end
//|     return ("k_element_at(byte + 2 * r + %d, 0)"):format(half)
//|   end
  auto both = [&](u32 word, int ks, int x) {
//|   if l.widened then
    const int i = ks * 16 + x * 8 + t * 2, j = i + 1;
//|   else
    const int r = ks % (K_WORD / 2) * 2 + x, byte = ks / (K_WORD / 2) * 16 + t * 4$(l.shifts_k and " - at.k_shift" or "");
    const int i = $(element(0)), j = $(element(1));
//|   end
    float2 y;
//|   if wide then
    y.x = real && i >= 0 && i < D ? from[i] : 0.f;
    y.y = real && j >= 0 && j < D ? from[j] : 0.f;
//|   else
    y = make_float2($(first), $(second));
//|   end
//|   if by_columns then
    y.x = i >= 0 && i < D ? y.x * scales[i * apart] : 0.f;
    y.y = j >= 0 && j < D ? y.y * scales[j * apart] : 0.f;
//|   end
    return y;
  };
  u32 top = 0;
#pragma unroll
  for (int ks = 0; ks < $(steps); ks++)
#pragma unroll
    for (int x = 0; x < 2; x++) {
      const float2 y = both($(word), ks, x);
      top = max(top, max(__float_as_uint(y.x) & 0x7fffffff, __float_as_uint(y.y) & 0x7fffffff));
    }
  const RowPower by = row_power(top);
  *up = by.up;
#pragma unroll
  for (int ks = 0; ks < $(steps); ks++)
#pragma unroll
    for (int x = 0; x < 2; x++) {
      u32 &to = $(word);
      const float2 y = both(to, ks, x);
      to = pack_f16x2(y.x * by.down, y.y * by.down);
    }
}
//| end

//| local from_where = (wide and ", from, real" or "") .. (by_columns and ", k_scales_of(p, sequence, tile.kv_head), p.k_scale_ss" or "")
//| local function register_of(byte, r, real)
//|   real = real or "real"
//|   if S and K.bits == 8 then return ("query_pair(from, element_of_joined(ks / (K_WORD / 2), 2 * %s, 0, at), %s)"):format(r, real) end
//|   if S then
//|     local function half(x) return ("query_half(from, element_of_joined(ks / (K_WORD / 2), %s / 2 + %d, %s %% 2, at), %s)"):format(r, x, r, real) end
//|     return half(2) .. " << 16 | " .. half(0)
//|   end
//|   if K.block == 1 then return ("query_pair(from, %s + 2 * %s, %s)"):format(byte, r, real) end
//|   local first, second, code = byte .. " + 2 * " .. r, byte .. " + 2 * " .. r .. " + 1", "0"
//|   if K.bits < 8 then first, second, code = byte .. " + " .. r .. " / 2", byte .. " + " .. r .. " / 2 + 2", r .. " % 2" end
//|   local text = "query_half(from, k_element_at(%s, %s), %s) << 16 | query_half(from, k_element_at(%s, %s), %s)"
//|   return text:format(second, code, real, first, code, real)
//| end
//| local threads, thread = "THREADS", "(int)threadIdx.x"
//| if l.heads then threads, thread = "HEAD_THREADS", "(int)threadIdx.x % HEAD_THREADS" end
//| local staged, straight = l.half and not wide, not l.half and not wide  -- Q comes by way of shared memory; or not
//| -- What a thread asks for of a tile. all: words of Q, of row `row` by their number i; rows: how many a thread's are of; place: prints
//| -- which element there is; word: it.
//| local function asked(all, row, rows, place, word)
//|   local scales, batch = {}, p.has_lengths and "sequence.index" or "sequence.batch"
//|   for _, x in ipairs { "k", "v" } do
//|     if p[x .. "_scale"] == 1 then scales[#scales + 1] = x end
//|   end

//|   local what = staged and "words of Q that it leaves for all warps" or straight and "its words of Q" or "nothing of Q"
// What a thread asks for where a tile begins: $(what)
// and scales of the head's K and V. Before the tile's first keys, so that all are under way together. find() finds where they lie and reads
// nothing, read() reads them.
struct Asked {
//|   for _, x in ipairs(scales) do
  const float *$(x)_from;
  float $(x)_scale;
//|   end
//|   if staged then
  static constexpr int WORDS = $(all), OWN = (WORDS + $(threads) - 1) / $(threads);
  static constexpr int ROWS = $(rows);  // its words are of these rows in turn
  const element *rows[ROWS];            // nullptr: there is none
  u32 words[OWN];
  static __device__ __forceinline__ int number(int n) { return n * $(threads) + $(thread); }
//|   elseif straight then
  const element *rows[MB][2];
//|   end
//|   local of_warp = straight and ", int warp_row, const Lane &at" or ""
  __device__ __forceinline__ void find(const Params &p, const Sequence &sequence, const Tile &tile$(of_warp)) {
//|   for _, x in ipairs(scales) do
    $(x)_from = p.$(x)_scale + $(batch) * p.$(x)_scale_sb + tile.kv_head * p.$(x)_scale_sh;
//|   end
//|   if staged then
#pragma unroll
    for (int n = 0; n < ROWS; n++) {
      const int i = number(n), row = tile.row + $(row), query = query_of(p, row), head = tile.head + row - query * p.group;
      const element *const from = (const element *)p.q + sequence.q() + query * p.q_ss + head * p.q_sh;
      rows[n] = row < tile.rows ? from : nullptr;
    }
//|   elseif straight then
#pragma unroll
    for (int m = 0; m < MB; m++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const int row = tile.row + warp_row + m * 16 + h * 8 + at.g, query = query_of(p, row), head = tile.head + row - query * p.group;
        const element *const from = (const element *)p.q + sequence.q() + query * p.q_ss + head * p.q_sh;
        rows[m][h] = row < tile.rows ? from : nullptr;
      }
//|   end
  }
  __device__ __forceinline__ void read(const Params &p, const Lane &at$(straight and ", QFragments &q" or "")) {
//|   for _, x in ipairs(scales) do
    $(x)_scale = *$(x)_from;
//|   end
//|   if staged then
#pragma unroll
    for (int n = 0; n < OWN; n++) {
      const int i = number(n);
      const element *const from = rows[n % ROWS];
      const bool real = from != nullptr && (WORDS % $(threads) == 0 || i < WORDS);
//|     indented(6, place)
      words[n] = $(word);
    }
//|   elseif straight then
    const int t = opaque(at.t);
#pragma unroll
    for (int m = 0; m < MB; m++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const element *const from = rows[m][h];
        const bool real = from != nullptr;
#pragma unroll
        for (int ks = 0; ks < K_STEPS; ks++)
#pragma unroll
          for (int x = 0; x < 2; x++) {
//|     if l.widened then
            q.full[m][ks][h + 2 * x] = query_pair(from, ks * 16 + x * 8 + t * 2, real);
//|     else
            // Register r of the words of chunk ks / (K_WORD / 2).
            const int r = ks % (K_WORD / 2) * 2 + x, byte = ks / (K_WORD / 2) * 16 + t * 4$(l.shifts_k and " - at.k_shift" or "");
            q.full[m][ks][h + 2 * x] = $(register_of("byte", "r"));
//|     end
          }
      }
//|   end
  }
//|   if staged then
  __device__ __forceinline__ void leave(u32 stage) const {
#pragma unroll
    for (int n = 0; n < OWN; n++)
      if (WORDS % $(threads) == 0 || number(n) < WORDS) store_shared(stage + number(n) * 4, words[n]);
  }
//|   end
};
//| end
//| if l.limbs then
//|   local m = l.limbs
// The first of the two elements that bytes 2 x and 2 x + 1 of column t of register `word` of a row of Q meet; -1: what they meet is none of
// the block's codes.
__device__ __forceinline__ int element_of_word(int word, int t, int x, const Lane &at) {
  const int block = word / BLOCK_WORDS, number = word % BLOCK_WORDS;
//|   if K.block == 1 then
  return number * 16 + t * 4 + 2 * x;
//|   elseif m.joined then
  const int byte = t * 4 + 2 * x - block * $(K.block_bytes % 16) - 2$(l.shifts_k and " - at.k_shift" or "");
  return block * $(K.block) + number / $(m.codes) * 16 + (byte & 15)$(m.codes == 2 and " + number % 2 * 16" or "");
//|   else
  const int first = block * $(K.block_bytes) + $(K.codes_at);
  const int byte = (first / 16 + number / $(m.codes)) * 16 + t * 4 + 2 * x$(l.shifts_k and " - at.k_shift" or "") - first;
  return byte < 0 || byte >= $(m.bytes) ? -1 : block * $(K.block) + byte$(m.codes == 2 and " + number % 2 * 16" or "");
//|   end
}
//|   local two = m.tiles == 2
//|   local row = "i / 8 % 4" .. (two and " + i / (Q_WORDS * 32) * 4" or "")
//|   asked(two and "2 * Q_WORDS * 32" or "Q_WORDS * 32", row, two and "OWN" or "1", function()
const int first = element_of_word(i / 32$(two and " % Q_WORDS" or ""), i / 2 % 4, i % 2, at);
//|   end, "query_pair(from, first, real && first >= 0)")

// The limbs of the tile's rows, for all warps: query row / group of head row % group. Rows after the last are zeros. factor: of the lane's
// sums of products, and of those of the other limbs of its row. By all threads.
__device__ __forceinline__ void load_q(QFragments &q, float (&factor)[MB][2], const Params &p, const Sequence &sequence, const Tile &tile,
                                       u32 stage, const Lane &at, const Asked &asked) {
//|   if not wide then
  asked.leave(stage);
  __syncthreads();
//|   end
//|   if by_columns then
  const float *const scales = k_scales_of(p, sequence, tile.kv_head);
//|   end
//|   if two then
#pragma unroll
  for (int m = 0; m < 2; m++) {
//|   end
//|   if wide then
  const int row = tile.row + at.g % 4$(two and " + m * 4" or ""), query = query_of(p, row), head = tile.head + row - query * p.group;
  const float *const from = (const float *)p.q + sequence.q() + query * p.q_ss + head * p.q_sh;
  const bool real = row < tile.rows;
//|   end
  auto pair = [&](int word, int x) {
//|   if wide or by_columns then
    const int i = element_of_word(word, at.t, x, at);
//|   end
    float2 y;
//|   if wide then
    y.x = real && i >= 0 && i < D ? from[i] : 0.f;
    y.y = real && i >= 0 && i + 1 < D ? from[i + 1] : 0.f;
//|   else
    u32 bits;
    const int at_word = ($(two and "(m * Q_WORDS + word)" or "word") * 32 + at.g % 4 * 8 + at.t * 2 + x) * 4;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(bits) : "r"(stage + at_word) : "memory");
//|     if p.dtype == "fp16" then
    y = make_float2(widened_f16(bits & 0xffff), widened_f16(bits >> 16));
//|     else
    y = make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000));
//|     end
//|   end
//|   if by_columns then
    y.x = i >= 0 && i < D ? y.x * scales[i * p.k_scale_ss] : 0.f;
    y.y = i >= 0 && i + 1 < D ? y.y * scales[(i + 1) * p.k_scale_ss] : 0.f;
//|   end
    return y;
  };
  // The bits of the largest |x| of the row.
  u32 top = 0;
#pragma unroll
  for (int word = 0; word < Q_WORDS; word++)
#pragma unroll
    for (int x = 0; x < 2; x++) {
      const float2 y = pair(word, x);
      top = max(top, max(__float_as_uint(y.x) & 0x7fffffff, __float_as_uint(y.y) & 0x7fffffff));
    }
  top = max(top, __shfl_xor_sync(~0u, top, 1));
  top = max(top, __shfl_xor_sync(~0u, top, 2));
  // It becomes 32600 2^16, whose first limb is 127; a row with infinities or NaN has a factor that is none.
  constexpr float MOST = 32600.f * 65536.f;
  const float largest = __uint_as_float(max(top, 0x0d800000u)), down = top >= 0x7f800000 ? 0.f : MOST / largest;  // at least 2^-100
//|   local owed = (m.codes == 2 and 1 / 16 or 1) * 2.0 ^ K.owed
  float last = top >= 0x7f800000 ? __int_as_float(0x7fffffff) : largest * (1 / MOST) * $(f32(owed));
//|   if p.k_scale == 1 then
  last *= asked.k_scale;
//|   end
  const bool upper = at.g < 4;
//|   if two then
  if (upper == (m == 0)) {  // the lane's row is one of these
    factor[0][0] = upper ? last * 65536.f : last;
    factor[0][1] = upper ? last : last * 65536.f;
  }
//|   else
  factor[0][0] = upper ? last * 65536.f : last;
  factor[0][1] = upper ? last : last * 65536.f;
//|   end
  const u32 first_byte = upper ? 0x0073 : 0x0051, second_byte = upper ? 0x0062 : 0x0040, sign = upper ? 0 : 0x80808080;
#pragma unroll
  for (int word = 0; word < Q_WORDS; word++) {
    // Bytes of the integer, the lower three 128 too large: integers of 8 bits that carry to each other what they cannot hold.
    u32 first[2], second[2];
#pragma unroll
    for (int x = 0; x < 2; x++) {
      const float2 y = pair(word, x);
      const u32 even = __float2int_rn(y.x * down) + 0x808080u, odd = __float2int_rn(y.y * down) + 0x808080u;
      first[x] = __byte_perm(even, odd, first_byte);
      second[x] = __byte_perm(even, odd, second_byte);
    }
    q.limbs[$(two and "m * Q_WORDS + " or "")word][0] = __byte_perm(first[0], first[1], 0x5410) ^ sign;
    q.limbs[$(two and "m * Q_WORDS + " or "")word][1] = __byte_perm(second[0], second[1], 0x5410) ^ 0x80808080;
  }
//|   if two then
  }
//|   end
}
//| elseif l.half then
//|   local rows = ("%s < 128 && 128 / %s < OWN ? 128 / %s : %s < 128 ? OWN : 1"):format(threads, threads, threads, threads)
//|   asked("Q_PAIRS * 128", "i / 16 % 8", rows, function()
// Word x of the two of a step, of the lane's row and column.
const int x = i / 2 % 2, ks = i / 128 * 2 + i % 2;
const int r = ks % (K_WORD / 2) * 2 + x, byte = ks / (K_WORD / 2) * 16 + i / 4 % 4 * 4$(l.shifts_k and " - at.k_shift" or "");
const bool there = real && (K_STEPS % 2 == 0 || ks < K_STEPS);
//|   end, ("(u32)(%s)"):format(register_of("byte", "r", "there")))

// The rows of the tile, as A fragments for all warps, by way of shared memory: lanes would find every element for themselves. Query row /
// group of head row % group. Rows after the last are zeros. factor: of their products. By all threads.
__device__ __forceinline__ void load_q(QFragments &q, float (&factor)[MB][2], const Params &p, const Sequence &sequence, const Tile &tile,
                                       u32 stage, const Lane &at, const Asked &asked) {
//|   if not wide then
  asked.leave(stage);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < Q_PAIRS; i++) {
    const uint4 words = load_shared_x4(stage + (i * 32 + (int)threadIdx.x % 32) * 16);
    q.full[0][i][0] = words.x, q.full[0][i][1] = words.y, q.full[0][i][2] = words.z, q.full[0][i][3] = words.w;
  }
//|   end
  factor[0][0] = $(f32(2.0 ^ K.owed))$(p.k_scale == 1 and " * asked.k_scale" or "");
//|   if wide or by_columns then
  float up;
//|     if wide then
  const int row = tile.row + at.g, query = query_of(p, row), head = tile.head + row - query * p.group;
  const float *const from = (const float *)p.q + sequence.q() + query * p.q_ss + head * p.q_sh;
  const bool real = row < tile.rows;
//|     end
  narrow_wide(q.full[0]$(from_where), at, at.t, &up);
  factor[0][0] *= up;
//|   elseif p.dtype == "bf16" then
  float up;
  narrow(q.full[0], &up);
  factor[0][0] *= up;
//|   end
}
//| else
//|   asked()

// Rows of the warp, as A fragments: query row / group of head row % group. Rows after the last are zeros. factor: of their products.
__device__ __forceinline__ void load_q(QFragments &q, float (&factor)[MB][2], const Params &p, const Sequence &sequence, const Tile &tile,
                                       int warp_row, const Lane &at, const Asked &asked) {
  const float scale = $(f32(2.0 ^ K.owed))$(p.k_scale == 1 and " * asked.k_scale" or "");
//| if wide or by_columns then
  const int t = opaque(at.t);
//| end
#pragma unroll
  for (int m = 0; m < MB; m++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
//| if wide then
      const int row = tile.row + warp_row + m * 16 + h * 8 + at.g;
      const bool real = row < tile.rows;
      const int query = query_of(p, row), head = tile.head + row - query * p.group;
      const float *const from = (const float *)p.q + sequence.q() + query * p.q_ss + head * p.q_sh;
//| end
      factor[m][h] = scale;
//| if wide or by_columns then
      float up;
      narrow_wide(q.full[m], h$(from_where), at, t, &up);
      factor[m][h] *= up;
//| elseif p.dtype == "bf16" then
      float up;
      narrow(q.full[m], h, &up);
      factor[m][h] *= up;
//| end
    }
}
//| end
