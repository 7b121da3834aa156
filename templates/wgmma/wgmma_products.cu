//| needs "c.bk l.chunks l.vb"
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

__device__ __forceinline__ int key_of_column(int x) { return x; }
constexpr bool PAIRS_V = false;
constexpr int K_STEPS = CHUNKS / 2;  // of sixteen columns

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

__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// S = Q K^T for the warpgroup's rows and the BC keys of one buffer.
__device__ __forceinline__ void scores(float (&s)[MB][NB][4], QFragments &q, u32 k_tile, const Lane &) {
  const u64 k = descriptor_along_row(k_tile);
  asm volatile("wgmma.fence.sync.aligned;"
      : $(operands(0, l.chunks // 2 * 4, '"+r"(q.full[0][#4][#1])'))
      :
      : "memory");
//| local rows, keys = {}, {}
//| for ks = 0, l.chunks // 2 - 1 do
//|   rows[#rows + 1] = asm.four(("q.full[0][%d]"):format(ks))
//|   keys[#keys + 1] = ('"l"(k + (%d * BOX + %d) / 16)'):format(ks // 4, ks % 4 * 32)
//| end
//| local function s(i) return ("s[0][%d][%d]"):format(i // 4, i % 4) end
  $(asm.products { to = s, n = NS, shape = asm.shape(p, c.bk), a = rows, b = keys, tail = "1, 1, 0", begins = true })
  wgmma_commit();
  asm volatile("wgmma.wait_group.sync.aligned 0;"
      : $(operands(0, NS, '"+f"(s[0][#4][#1])'))
      :
      : "memory");
}

// P as A fragments, straight from the accumulators of S.
__device__ __forceinline__ void to_fragments(u32 (&a)[MB][P_STEPS][4], const float (&s)[MB][NB][4]) {
#pragma unroll
  for (int n = 0; n < NB; n += 2) {
    a[0][n / 2][0] = pack2(s[0][n][0], s[0][n][1]);
    a[0][n / 2][1] = pack2(s[0][n][2], s[0][n][3]);
    a[0][n / 2][2] = pack2(s[0][n + 1][0], s[0][n + 1][1]);
    a[0][n / 2][3] = pack2(s[0][n + 1][2], s[0][n + 1][3]);
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
  $(asm.products { to = o, n = NO, shape = asm.shape(p, NO * 2), a = rows, b = keys, tail = "1, 1, 1" })
  wgmma_commit();
  asm volatile("wgmma.wait_group.sync.aligned 0;"
      : $(operands(0, NO, '"+f"(o[0][#4][#1])'))
      :
      : "memory");
}
