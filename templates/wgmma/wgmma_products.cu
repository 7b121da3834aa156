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
//| local function registers(n)  -- %0 to %n-1 inside the asm's string
//|   local out = {}
//|   for i = 0, n - 1 do out[#out + 1] = "%" .. i .. (i == n - 1 and "" or i % 16 == 15 and ", \"\n      \"" or ", ") end
//|   return table.concat(out)
//| end
//| local T = p.dtype == "fp16" and "f16" or "bf16"
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
//| for ks = 0, l.chunks // 2 - 1 do
//|   local first = ks == 0
//|   if first then
  asm volatile("wgmma.fence.sync.aligned;"
      : $(operands(0, l.chunks // 2 * 4, '"+r"(q.full[0][#4][#1])'))
      :
      : "memory");
//|   end
  asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, $(first and 0 or 1), 0;\n"
      "wgmma.mma_async.sync.aligned.m64n$(c.bk)k16.f32.$(T).$(T) {$(registers(NS))}, "
      "{%$(NS), %$(NS + 1), %$(NS + 2), %$(NS + 3)}, %$(NS + 4), more, 1, 1, 0;\n}"
      : $(operands(0, NS, (first and '"=f"' or '"+f"') .. "(s[0][#4][#1])"))
      : "r"(q.full[0][$(ks)][0]), "r"(q.full[0][$(ks)][1]), "r"(q.full[0][$(ks)][2]), "r"(q.full[0][$(ks)][3]),
        "l"(k + ($(ks // 4) * BOX + $(ks % 4 * 32)) / 16));
//| end
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
//| for kk = 0, c.bk // 16 - 1 do
  asm volatile("{\n.reg .pred more;\nsetp.eq.b32 more, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n$(NO * 2)k16.f32.$(T).$(T) {$(registers(NO))}, "
      "{%$(NO), %$(NO + 1), %$(NO + 2), %$(NO + 3)}, %$(NO + 4), more, 1, 1, 1;\n}"
      : $(operands(0, NO, '"+f"(o[0][#4][#1])'))
      : "r"(a[0][$(kk)][0]), "r"(a[0][$(kk)][1]), "r"(a[0][$(kk)][2]), "r"(a[0][$(kk)][3]), "l"(v + $(kk) * 16 * BOX_ROW / 16));
//| end
  wgmma_commit();
  asm volatile("wgmma.wait_group.sync.aligned 0;"
      : $(operands(0, NO, '"+f"(o[0][#4][#1])'))
      :
      : "memory");
}
