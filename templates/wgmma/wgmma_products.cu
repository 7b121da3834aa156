//| needs "c.bk l.boxes? l.low? l.shifts_k? l.shifts_v? l.vb"
// ---- the two products of a warpgroup on wgmma: S = Q K^T and O += P V, both with A in registers ----
// K and V lie in shared memory as boxes of 64 columns: rows of 128 bytes, swizzled in patterns of eight rows (PTX ISA, "Asynchronous
// Warpgroup Level Matrix Shared Memory Layout"). The accumulators of a warp are those of mma.sync for its 16 rows.
//| -- The numbers from..from + n - 1 of an asm's operands, each as `format` with # for the number, eight in a line.
//| local function operands(from, n, format)
//|   local out = {}
//|   for i = 0, n - 1 do
//|     local x = string.gsub(format, "#(%d?)", function(divisor)
//|       return divisor == "" and from + i or divisor == "4" and i // 4 or i % 4
//|     end)
//|     out[#out + 1] = x .. (i == n - 1 and "" or i % 8 == 7 and ",\n        " or ", ")
//|   end
//|   return table.concat(out)
//| end
//| local asm = include("machine/asm_operands.lua")
//| local NS, NO = c.bk // 2, l.vb * 4
//| local steps = p.d // 16  -- of sixteen columns
//| local of = l.low and { dtype = "fp16" } or p

__device__ __forceinline__ int key_of_column(int x) { return x; }
constexpr bool PAIRS_V = false;
constexpr int K_STEPS = $(l.low and "D / 16" or "CHUNKS / 2");  // of sixteen columns

// The row and the column of the accumulators that a lane begins with.
struct Lane {
  int g, t;
//| local shifts = l.shifts_k or l.shifts_v
//| if shifts then
  int k_shift, v_shift;  // of a head's rows: how far behind the beginning of its first chunk a block's first row begins
  int k_turn, v_turn;    // how much further each next one
  __device__ __forceinline__ void shift(const Params &p, const Sequence &sequence, int kv_head) {
//|   for _, x in ipairs({ { "k", l.shifts_k }, { "v", l.shifts_v } }) do
    $(x[1])_shift = $(x[2] and ("in_register(%s_first_of(p, sequence, kv_head))"):format(x[1]) or "0");
    $(x[1])_turn = $(x[2] and ("in_register(%s_turn_of(p))"):format(x[1]) or "0");
//|   end
  }
//| end
};
//| local none = shifts and ", 0, 0, 0, 0" or ""
__device__ __forceinline__ Lane make_lane() { return {(int)threadIdx.x % 32 / 4, (int)threadIdx.x % 4$(none)}; }

struct QFragments {
  u32 full[MB][K_STEPS][4];
};

//| if not l.boxes then
// Orders this thread's copies to shared memory before later reads by the matrix unit.
__device__ __forceinline__ void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
//| end

constexpr u64 SWIZZLE_128 = 1;
constexpr int BOX_ROW = 128, BOX = BC * BOX_ROW;  // bytes
// The reduction runs along a row (K): 8 rows between groups of eight rows.
__device__ __forceinline__ u64 descriptor_along_row(u32 address) {
  return SWIZZLE_128 << 62 | (u64)(8 * BOX_ROW / 16) << 32 | 1ull << 16 | (address & 0x3ffff) >> 4;
}
// The reduction runs across the rows (V): a box between groups of 64 columns.
__device__ __forceinline__ u64 descriptor_across_rows(u32 address) {
  return SWIZZLE_128 << 62 | (u64)(8 * BOX_ROW / 16) << 32 | (u64)(BOX / 16) << 16 | (address & 0x3ffff) >> 4;
}

//| if l.low then
//| local K, V = l.low.k, l.low.v
//|   if l.boxes then
// Codes of all rows of a buffer but lo to hi become those of 0, by all threads of its group.
template <int ROW_BYTES>
__device__ __forceinline__ void clear_rows(u32 codes, int lo, int hi, int thread) {
  for (int byte = thread * 16; byte < BC * ROW_BYTES; byte += GROUP_THREADS * 16)
    if (byte / ROW_BYTES < lo || byte / ROW_BYTES > hi) store_shared(codes + byte, make_uint4(0, 0, 0, 0));
}
//|   end
//|   if K.block == 1 or V.block == 1 then
// Codes of a group's buffer become fp16 in boxes, by all its threads. Of eight threads side by side four have chunks of one row and four of
// the next: what they write lies in different banks.
// Several chunks of a thread are loaded before the first one is stored, which nothing is moved across.
template <int N, class Unpack>
__device__ __forceinline__ void widen_rows(u32 to, u32 codes, int thread, Unpack unpack) {
  constexpr int ALL = BC * N / GROUP_THREADS, BATCH = ALL % 4 == 0 ? 4 : ALL % 2 == 0 ? 2 : 1;
  auto place = [&](int n, int &row, int &chunk) {
    const int i = n * GROUP_THREADS + thread, x = i % (2 * N);
    row = i / (2 * N) * 2 + x / 4 % 2;
    chunk = x / 8 * 4 + x % 4;
  };
#pragma unroll
  for (int first = 0; first < ALL; first += BATCH) {
    uint4 words[BATCH];
    int row, chunk;
#pragma unroll
    for (int n = 0; n < BATCH; n++) {
      place(first + n, row, chunk);
      words[n] = load_shared_x4(codes + tile_offset<N>(row, chunk));
    }
#pragma unroll
    for (int n = 0; n < BATCH; n++) {
      place(first + n, row, chunk);
      const u32 of[4] = {words[n].x, words[n].y, words[n].z, words[n].w};
#pragma unroll
      for (int j = 0; j < 2; j++) {
        u32 x[2], y[2];
        unpack(x, of[2 * j]);
        unpack(y, of[2 * j + 1]);
        store_shared(to + (chunk / 4 * BC + row) * BOX_ROW + ((chunk * 2 + j) ^ row) % 8 * 16, make_uint4(x[0], x[1], y[0], y[1]));
      }
    }
  }
}
//|   end
//|   -- Blocks of 32, a scale in front. Prints how those of a thread become words of codes, the first of which begins `off` bytes after a
//|   -- chunk does, each next one `apart` bytes further.
//|   local function at_offset(f, off, blocks, apart)
        case $(off):
//|     for n = 0, blocks - 1 do
//|       local off = (off + n * apart) % 16
//|       local at = off + f.codes_at
          scale[$(n)] = __byte_perm(words[$(n)][$(off // 4)], 0, $(off % 4 == 0 and "0x1010" or "0x3232"));
//|       for j = 0, (f.block_bytes - f.codes_at) // 4 - 1 do
//|         local first, straddles = (at + 4 * j) // 4, at % 4 > 0
//|         local second = straddles and ("words[%d][%d]"):format(n, first + 1) or "0"
//|         local order = f.halves and (straddles and "0x5342" or "0x3120") or "0x5432"
//|         local word = ("words[%d][%d]"):format(n, first)
//|         if straddles or f.halves then word = ("__byte_perm(%s, %s, %s)"):format(word, second, order) end
          codes[$(n)][$(j)] = $(word);
//|       end
//|     end
          break;
//|   end
//|   -- The bytes of a chunk before a block that rows, shifted by whole `unit`s, may have.
//|   local function offsets(f, n, shifted)
//|     local unit, seen, list = shifted and p.kv_align or 16, {}, {}
//|     for b = 0, n // f.block - 1 do
//|       for shift = 0, 15, unit do seen[(b * f.block_bytes + shift) % 16] = true end
//|     end
//|     for off = 0, 15 do if seen[off] then list[#list + 1] = off end end
//|     return list
//|   end
//|   for _, x in ipairs({ { "k", K, p.d, l.shifts_k }, { "v", V, p.dv, l.shifts_v } }) do
//|     local side, f, n, shifted = x[1], x[2], x[3], x[4]
//|     if f.block > 1 then
//|       local words, chunks = (f.block_bytes - f.codes_at) // 4, (f.block_bytes + 14 + 15) // 16
// Blocks of $(side:upper()) of a group's buffer, whose rows begin `shift` bytes after a chunk does, each next one `turn` bytes further,
// become fp16 in boxes, by all its threads: a thread has a block of a row, the threads of a warp the same block of neighbouring rows.
template <int N>
__device__ __forceinline__ void widen_$(side)(u32 to, u32 tile, int thread, int shift, int turn) {
//|       local all, warpgroup = c.bk * (n // f.block), 128
//|       local turn = 0
//|       while turn * warpgroup < all do
//|         -- Blocks of a thread that are loaded before the first one is stored, which nothing is moved across: of one row, `apart` bytes
//|         -- apart.
//|         local blocks, apart = (turn + 2) * warpgroup <= all and p.d + p.dv <= 256 and 2 or 1, warpgroup // c.bk * f.block_bytes
//|         local whole = (turn + 1) * warpgroup <= all
  $(whole and "" or ("if (thread < %d) "):format(all - turn * warpgroup)){
    const int row = thread % BC, block = thread / BC + $(turn * (warpgroup // c.bk));
    const int begin = block * $(f.block_bytes) + $(shifted and "(shift + row * turn & 15)" or "shift");
    u32 words[$(blocks)][$(4 * chunks)], codes[$(blocks)][$(words)], scale[$(blocks)];
#pragma unroll
    for (int n = 0; n < $(blocks); n++)
#pragma unroll
      for (int c = 0; c < $(chunks); c++) {
        const uint4 x = load_shared_x4(tile + tile_offset<N>(row, (begin + n * $(apart)) / 16 + c));
        words[n][4 * c] = x.x, words[n][4 * c + 1] = x.y, words[n][4 * c + 2] = x.z, words[n][4 * c + 3] = x.w;
      }
    switch (begin % 16) {  // one of a warp, but where rows turn
      default:
//|         for _, off in ipairs(offsets(f, n, shifted)) do at_offset(f, off, blocks, apart) end
    }
#pragma unroll
    for (int n = 0; n < $(blocks); n++) {
      u32 numbers[16];
#pragma unroll
      for (int j = 0; j < $(words); j++) {
//|         if f.halves then
        u32 h[4];  // two of the first half, two of the second, and so on
        unpack_rows_$(f.name)(h, codes[n][j]);
        numbers[2 * j] = mul_f16x2(h[0], scale[n]), numbers[2 * j + 1] = mul_f16x2(h[2], scale[n]);
        numbers[8 + 2 * j] = mul_f16x2(h[1], scale[n]), numbers[8 + 2 * j + 1] = mul_f16x2(h[3], scale[n]);
//|         else
        u32 h[2];
        unpack_rows_$(f.name)(h, codes[n][j]);
        numbers[2 * j] = mul_f16x2(h[0], scale[n]), numbers[2 * j + 1] = mul_f16x2(h[1], scale[n]);
//|         end
      }
      const int box = (block + n * $(warpgroup // c.bk)) / 2, chunk = (block + n * $(warpgroup // c.bk)) % 2 * 4;
#pragma unroll
      for (int j = 0; j < 4; j++)
        store_shared(to + (box * BC + row) * BOX_ROW + ((chunk + j) ^ row) % 8 * 16,
                     make_uint4(numbers[4 * j], numbers[4 * j + 1], numbers[4 * j + 2], numbers[4 * j + 3]));
    }
  }
//|         turn = turn + blocks
//|       end
}
//|     else
template <int N>
__device__ __forceinline__ void widen_$(side)(u32 to, u32 tile, int thread, int, int) {
  widen_rows<N>(to, tile, thread, [](u32(&h)[2], u32 word) { unpack_rows_$(f.name)(h, word); });
}
//|     end
//|   end
//| end
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

//| if l.low then
// S = Q K^T for the warpgroup's rows and the BC keys of one buffer: is under way, until scores_wait().
__device__ __forceinline__ void scores_begin(float (&s)[MB][NB][4], QFragments &q, u32 k_tile) {
//| else
// S = Q K^T for the warpgroup's rows and the BC keys of one buffer.
__device__ __forceinline__ void scores(float (&s)[MB][NB][4], QFragments &q, u32 k_tile, const Lane &) {
//| end
  const u64 k = descriptor_along_row(k_tile);
  asm volatile("wgmma.fence.sync.aligned;"
      : $(operands(0, steps * 4, '"+r"(q.full[0][#4][#1])'))
      :
      : "memory");
//| local rows, keys = {}, {}
//| for ks = 0, steps - 1 do
//|   rows[#rows + 1] = asm.four(("q.full[0][%d]"):format(ks))
//|   keys[#keys + 1] = ('"l"(k + (%d * BOX + %d) / 16)'):format(ks // 4, ks % 4 * 32)
//| end
//| local function s(i) return ("s[0][%d][%d]"):format(i // 4, i % 4) end
  $(asm.products { to = s, n = NS, shape = asm.shape(of, c.bk), a = rows, b = keys, tail = "1, 1, 0", begins = true })
  wgmma_commit();
//| if l.low then
}
__device__ __forceinline__ void scores_wait(float (&s)[MB][NB][4]) {
//| end
  asm volatile("wgmma.wait_group.sync.aligned 0;"
      : $(operands(0, NS, '"+f"(s[0][#4][#1])'))
      :
      : "memory");
}

//| local pack = l.low and "pack_f16x2" or "pack2"
// P as A fragments, straight from the accumulators of S.
__device__ __forceinline__ void to_fragments(u32 (&a)[MB][P_STEPS][4], const float (&s)[MB][NB][4]) {
#pragma unroll
  for (int n = 0; n < NB; n += 2) {
    a[0][n / 2][0] = $(pack)(s[0][n][0], s[0][n][1]);
    a[0][n / 2][1] = $(pack)(s[0][n][2], s[0][n][3]);
    a[0][n / 2][2] = $(pack)(s[0][n + 1][0], s[0][n + 1][1]);
    a[0][n / 2][3] = $(pack)(s[0][n + 1][2], s[0][n + 1][3]);
  }
}

//| if l.low then
// O += P V: is under way, until accumulate_wait().
__device__ __forceinline__ void accumulate_begin(float (&o)[MB][VB][4], u32 (&a)[MB][P_STEPS][4], u32 v_tile) {
//| else
// O += P V.
__device__ __forceinline__ void accumulate(float (&o)[MB][VB][4], u32 (&a)[MB][P_STEPS][4], u32 v_tile, const Lane &) {
//| end
  const u64 v = descriptor_across_rows(v_tile);
  asm volatile("wgmma.fence.sync.aligned;"
      : $(operands(0, NO, '"+f"(o[0][#4][#1])')),
        $(operands(0, NS // 2, '"+r"(a[0][#4][#1])'))
      :
      : "memory");
//| rows, keys = {}, {}
//| for kk = 0, c.bk // 16 - 1 do
//|   rows[#rows + 1] = asm.four(("a[0][%d]"):format(kk))
//|   keys[#keys + 1] = ('"l"(v + %d * 16 * BOX_ROW / 16)'):format(kk)
//| end
//| local function o(i) return ("o[0][%d][%d]"):format(i // 4, i % 4) end
  $(asm.products { to = o, n = NO, shape = asm.shape(of, NO * 2), a = rows, b = keys, tail = "1, 1, 1" })
  wgmma_commit();
//| if l.low then
}
__device__ __forceinline__ void accumulate_wait(float (&o)[MB][VB][4]) {
//| end
  asm volatile("wgmma.wait_group.sync.aligned 0;"
      : $(operands(0, NO, '"+f"(o[0][#4][#1])'))
      :
      : "memory");
}
