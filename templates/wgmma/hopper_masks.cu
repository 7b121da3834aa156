//| needs "l.masks l.reverses? l.runs?"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local masks, slot = l.masks, l.reverses and ", tiles.slot.at" or ""
// ---- what the score program's mask reads of a block of keys that may not be whole: a warp of the producer brings it ----
constexpr int STAGES_MASK = $(masks.stages), SMEM_MASK = $(masks.at), MASK_STAGE = $(masks.bytes);
__device__ __forceinline__ u32 mask_full(u32 smem, int stage) { return barrier(smem, $(masks.barriers) + stage); }
__device__ __forceinline__ u32 mask_empty(u32 smem, int stage) { return mask_full(smem, STAGES_MASK + stage); }
// Those who arrive at `full`: a lane for what the warp has stored$(masks.plane and ", and every lane when its copies have landed" or "").
constexpr int MASK_ARRIVALS = $(masks.plane and 33 or 1);
//| if #masks.columns > 0 then
__device__ __forceinline__ uint2 load_shared_x2(u32 from) {
  uint2 x;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(from) : "memory");
  return x;
}
//| end
//| if masks.plane and not masks.words then
//|   local bits = p.has_score_anywhere and 8 or 16
__device__ __forceinline__ u32 load_shared_u$(bits)(u32 from) {
  u16 x;
  asm volatile("ld.shared.u$(bits) %0, [%1];" : "=h"(x) : "r"(from) : "memory");
  return x;
}
//| end
//| if not l.runs then pr.mask_parts() end
//| if masks.plane then
//|   local operand, last = masks.lookup.operand, masks.lookup.rank - 1
//|   local stride, extent = ("p.score%d_stride[%d]"):format(operand, last), ("(int)p.score%d_extent[%d]"):format(operand, last)

//|   local bytes = masks.words and 4 or 16
// Asynchronous copy of $(bytes) bytes to shared memory: of n, and zeros after them.
__device__ __forceinline__ void copy_part(u32 to, const void *from, int n) {
//|   if masks.words then
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(n) : "memory");
//|   else
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(n) : "memory");
//|   end
}
//|   if not masks.words then
__device__ __forceinline__ void copy_whole(u32 to, size_t from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
//|   end
// This thread arrives when all of its copies so far have landed.
__device__ __forceinline__ void mbarrier_arrive_copied(u32 barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
//|   if masks.words then
//|     local first = masks.lookup.shifted and "key + mask_plane_first(p, scored, scored.h)" or "key"
// The words of a warpgroup's 64 rows that hold the bits of BC keys from `key` on, to `to`.
//|     if not masks.lookup.shifted then
// Past the last key they are whatever they are.
//|     end
__device__ __forceinline__ void stage_elements(const Params &p, const ScoreTile &scored, u32 to, int row, int key, int lane) {
  const int last = ($(extent) - 1) >> 5, begin = $(first) >> 5;
//|     if masks.lookup.shifted then
  const bool inside = begin >= 0 && (begin + $(masks.words)) * 32 <= $(extent);
  const int left = $(extent) - last * 32;  // elements of the last word
//|     end
#pragma unroll 1
  for (int r = lane; r < 64; r += 32) {
    const unsigned *const from = mask_plane_row(p, scored, scored.h, min(row + r, scored.sq - 1));
//|     if masks.lookup.shifted then
    if (!inside) {
#pragma unroll 1
      for (int n = 0; n < $(masks.words); n++) {
        const int word = begin + n;
        u32 x = from[min(max(word, 0), last) * $(stride)];
        const u32 after = x >> (left - 1) & 1 ? ~0u : 0u;
        if (word >= last && left < 32) x = (x & ~(~0u << left)) | after << left;
        store_shared(to + r * $(masks.pitch) + n * 4, word < 0 ? ~0u : word > last ? after : x);
      }
      continue;
    }
//|     end
#pragma unroll
    for (int n = 0; n < $(masks.words); n++)
      copy_part(to + r * $(masks.pitch) + n * 4, from + min(begin + n, last) * $(stride), 4);
  }
}
//|   else
//|     local anywhere = p.has_score_anywhere
//|     if anywhere then
// Bytes of a warpgroup's 64 rows and BC keys from `key` on, to `to`. A row that begins in the middle of 16 bytes comes from their begin
// on, and who reads it looks as much further on (pairs/mask_stage.cu). Past the last key they are whatever they are.
//|     else
// Bytes of a warpgroup's 64 rows and BC keys from `key` on, to `to`. Past the last key they are whatever they are.
//|     end
__device__ __forceinline__ void stage_elements(const Params &p, const ScoreTile &scored, u32 to, int row, int key, int lane) {
  const int keys = $(extent);
//|     if anywhere then
  if ($(stride) != 1) {  // keys lie apart
#pragma unroll 2
    for (int at = lane; at < 64 * (BC / 4); at += 32) {
      const int r = at / (BC / 4), n = at % (BC / 4) * 4;
      const unsigned char *const from = mask_plane_row(p, scored, scored.h, min(row + r, scored.sq - 1));
      u32 x = 0;
#pragma unroll
      for (int e = 0; e < 4; e++) x |= (u32)from[min(key + n + e, keys - 1) * $(stride)] << 8 * e;
      store_shared(to + r * $(masks.pitch) + n, x);
    }
    return;
  }
//|     end
  constexpr int CHUNKS = BC / 16$(anywhere and " + 1" or ""), TOGETHER = 32 / CHUNKS;  // of a row; rows
  const int n = lane % CHUNKS * 16;
  if (lane >= TOGETHER * CHUNKS) return;
  if (key + CHUNKS * 16 <= keys) {
#pragma unroll 4
    for (int r = lane / CHUNKS; r < 64; r += TOGETHER) {
      const size_t from = (size_t)(mask_plane_row(p, scored, scored.h, min(row + r, scored.sq - 1)) + key);
      copy_whole(to + r * $(masks.pitch) + n, $(anywhere and "(from & ~(size_t)15)" or "from") + n);
    }
    return;
  }
#pragma unroll 1
  for (int r = lane / CHUNKS; r < 64; r += TOGETHER) {
    const unsigned char *const from = mask_plane_row(p, scored, scored.h, min(row + r, scored.sq - 1)) + key;
//|     if anywhere then
    const int before = (int)((size_t)from & 15);
    copy_part(to + r * $(masks.pitch) + n, from - before + n, min(max(keys - key + before - n, 0), 16));
//|     else
    copy_part(to + r * $(masks.pitch) + n, from + n, min(max(keys - key - n, 0), 16));
//|     end
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
//| if l.runs then
    where.number = tiles.number(smem);
//| end
    TileBlocks blocks(p, sequence, where$(slot), keys.loaded_hi, keys.loaded_lo);
//| if l.runs then
    const int from = tiles.from(smem);
//| end
//| for _, row in ipairs(masks.rows) do
    {  // what the rows' threads read lies in the L1 by then: one element of each sector of 32 bytes
      const int row = min(where.row + 8 * lane, sequence.sq() - 1);
      const $(row.type) value = mask_row$(row.node)(p, score_tile(p, sequence, where.head), where.head, row);
      asm volatile("" ::"r"($(row.type == "float" and "__float_as_int(value)" or "(u32)value")));
    }
//| end
#pragma unroll 1
    while (true) {
      const int code = blocks.next();
      if (code < 0) break;
      if ((code & CODE_STAGED) == 0) continue;
      const ScoreTile scored = score_tile(p, sequence, where.head);
      const int key = $(l.runs and "from + " or "")(code >> CODE_BLOCK) * BC;
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
        if ((code >> wg & CODE_EDGE) == CODE_CUT)
          stage_elements(p, scored, to + $(masks.elements) + wg * $(64 * masks.pitch), where.row + row_in_tile(wg), key, lane);
//| end
//| if masks.plane then
      mbarrier_arrive_copied(mask_full(smem, masks.at));
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
                                            int wg$(pr.rows_type)) {
  const int lane = threadIdx.x % 32, g = lane / 4, tile_row = wg * 64 + threadIdx.x / 32 % 4 * 16;
//| indented(2, pr.hide_staged, "s", "stage", "tile_row")
}
