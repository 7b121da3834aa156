//| needs "l.masks"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local masks = l.masks
// ---- what the score program's mask reads of a block of keys that may not be whole: a warp of the producer brings it ----
constexpr int STAGES_MASK = $(masks.stages), SMEM_MASK = $(masks.at), MASK_STAGE = $(masks.bytes);
__device__ __forceinline__ u32 mask_full(u32 smem, int stage) { return barrier(smem, $(masks.barriers) + stage); }
__device__ __forceinline__ u32 mask_empty(u32 smem, int stage) { return mask_full(smem, STAGES_MASK + stage); }
//| if #masks.columns > 0 then
__device__ __forceinline__ uint2 load_shared_x2(u32 from) {
  uint2 x;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(from) : "memory");
  return x;
}
//| end
//| pr.mask_parts()
//| if masks.plane then

// The bits of a warpgroup's 64 rows and BC keys from `key` on, to `to`. Past the last key they are whatever they are.
//|   local lookup = masks.lookup
//|   if lookup then
//|     local stride, columns = ("p.score%d_stride[%d]"):format(lookup.operand, lookup.rank - 1), ("(int)p.score%d_extent[%d]"):format(lookup.operand, lookup.rank - 1)
//|     if not lookup.bits then
// Whether each of 16 bytes is not 0.
__device__ __forceinline__ u32 bits_of_bytes(uint4 v) {
  const u32 x[4] = {v.x, v.y, v.z, v.w};
  u32 bits = 0;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const u32 high = (((x[k] & 0x7f7f7f7fu) + 0x7f7f7f7fu) | x[k]) & 0x80808080u;
    bits |= (high >> 7) * 0x10204080u >> 28 << 4 * k;  // bits 0, 8, 16, 24 of the factor come to lie side by side, at the top
  }
  return bits;
}
// Of 16 keys from `key` on. from: key 0 of the row.
__device__ __forceinline__ u32 bits_of_keys(const unsigned char *from, long long stride, int key, int keys) {
  if (stride == 1 && (size_t)(from + key) % 16 == 0 && key + 16 <= keys) return bits_of_bytes(*(const uint4 *)(from + key));
  u32 bits = 0;
#pragma unroll 4
  for (int i = 0; i < 16; i++) bits |= (from[min(key + i, keys - 1) * stride] != 0 ? 1u : 0u) << i;
  return bits;
}
//|     end
__device__ __forceinline__ void stage_bits(const Params &p, const ScoreTile &scored, u32 to, int row, int key, int lane) {
#pragma unroll 4
  for (int at = lane; at < 64 * $(masks.words); at += 32) {
    const int r = at / $(masks.words), word = at % $(masks.words), first = key + 32 * word;
    const auto *const from = mask_plane_row(p, scored, scored.h, min(row + r, scored.sq - 1));
//|     if lookup.bits then
    const int last = ($(columns) - 1) >> 5, n = first >> 5;
    const u32 seen = __funnelshift_r(from[min(n, last) * $(stride)], from[min(n + 1, last) * $(stride)], first & 31);
//|     else
    u32 seen = bits_of_keys(from, $(stride), first, $(columns));
    if (32 * word + 16 < BC) seen |= bits_of_keys(from, $(stride), first + 16, $(columns)) << 16;
//|     end
    store_shared(to + r * $(masks.pitch) + word * 4, $(masks.contrary and "~seen" or "seen"));
  }
}
//|   else
__device__ __forceinline__ void stage_bits(const Params &p, const ScoreTile &scored, u32 to, int row, int key, int lane) {
#pragma unroll 1
  for (int r = 0; r < 64; r++, to += $(masks.pitch))
#pragma unroll 2
    for (int word = 0; word < $(masks.words); word++) {
      const u32 seen = __ballot_sync(~0u, mask_plane(p, scored, scored.h, row + r, key + 32 * word + lane));
      if (lane == 0) store_shared(to + word * 4, seen);
    }
}
//|   end
//| end

__device__ __forceinline__ void produce_masks(const Params &p, u32 smem, int lane) {
  Ring<STAGES_MASK> masks;
  TileQueue tiles;
  Tile where;
  grid_wait();
  while (tiles.next(p, smem, where)) {
    const KeyRange keys = tiles.keys(p, smem, 0);
    const Sequence sequence = sequence_of(p, where.batch);
//| indented(4, pr.begin_published, true)
    TileBlocks blocks(keys.loaded_hi, keys.loaded_lo);
#pragma unroll 1
    for (int code = blocks.next(look, look_of, edge_of); code >= 0; code = blocks.next(look, look_of, edge_of)) {
      if ((code & CODE_CUT) == 0) continue;
      const ScoreTile scored = score_tile(p, sequence, where.head);
      const int key = (code >> CODE_BLOCK) * BC;
//| for _, column in ipairs(masks.columns) do
      $(column.type) v$(column.node)[(BC + 31) / 32];
#pragma unroll
      for (int i = 0; i < (BC + 31) / 32; i++) v$(column.node)[i] = mask_column$(column.node)(p, scored, key + 32 * i + lane);
//| end
      mbarrier_wait(mask_empty(smem, masks.at), masks.parity ^ 1);
      const u32 to = smem + SMEM_MASK + masks.at * MASK_STAGE;
//| for _, column in ipairs(masks.columns) do
//|   local value = ("v%d[i]"):format(column.node)
#pragma unroll
      for (int i = 0; i < (BC + 31) / 32; i++)
        if (32 * i + lane < BC) store_shared(to + $(column.at) + (32 * i + lane) * 4, (u32)$(column.type == "float" and "__float_as_int(" .. value .. ")" or value));
//| end
//| if masks.plane then
#pragma unroll 1
      for (int wg = 0; wg < WGS; wg++)
        if (code >> wg & 1) stage_bits(p, scored, to + $(masks.bits) + wg * $(64 * masks.pitch), where.row + row_in_tile(wg), key, lane);
//| end
      __syncwarp();
      if (lane == 0) mbarrier_arrive(mask_full(smem, masks.at));
      masks.next();
    }
    tiles.done(smem, true);
  }
}

// Scores of pairs that the mask hides become -inf. row: this thread's first; stage: what was brought of the block.
__device__ __forceinline__ void hide_staged(float (&s)[NS], const Params &p, const ScoreTile &scored, int row, int block, int t, u32 stage,
                                            int wg) {
  const int lane = threadIdx.x % 32, g = lane / 4, tile_row = wg * 64 + threadIdx.x / 32 % 4 * 16;
//| indented(2, pr.hide_staged, "s", "stage", "tile_row")
}
