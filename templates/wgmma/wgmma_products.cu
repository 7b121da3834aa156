//| needs "c.bk l.chunks l.low? l.vb"
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
//| local steps = l.low and l.chunks or l.chunks // 2  -- of sixteen columns
//| local of = l.low and { dtype = "fp16" } or p

__device__ __forceinline__ int key_of_column(int x) { return x; }
constexpr bool PAIRS_V = false;
constexpr int K_STEPS = $(l.low and "CHUNKS" or "CHUNKS / 2");  // of sixteen columns

// The row and the column of the accumulators that a lane begins with.
struct Lane {
  int g, t;
};
__device__ __forceinline__ Lane make_lane() { return {(int)threadIdx.x % 32 / 4, (int)threadIdx.x % 4}; }

struct QFragments {
  u32 full[MB][K_STEPS][4];
};

// Orders this thread's copies to shared memory before later reads by the matrix unit.
__device__ __forceinline__ void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

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
// K and V of a buffer, for wgmma: `wide` is free, and all codes have arrived.
__device__ __forceinline__ void widen(u32 wide, u32 codes, int thread) {
  widen_rows<CHUNKS>(wide, codes, thread, [](u32(&h)[2], u32 word) { unpack_rows_$(l.low.k.name)(h, word); });
  widen_rows<CHUNKS_V>(wide + WIDE_K, codes + K_TILE, thread, [](u32(&h)[2], u32 word) { unpack_rows_$(l.low.v.name)(h, word); });
}
//| end
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// S = Q K^T for the warpgroup's rows and the BC keys of one buffer.
__device__ __forceinline__ void scores(float (&s)[MB][NB][4], QFragments &q, u32 k_tile, const Lane &) {
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

// O += P V.
__device__ __forceinline__ void accumulate(float (&o)[MB][VB][4], u32 (&a)[MB][P_STEPS][4], u32 v_tile, const Lane &) {
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
  asm volatile("wgmma.wait_group.sync.aligned 0;"
      : $(operands(0, NO, '"+f"(o[0][#4][#1])'))
      :
      : "memory");
}
