//| needs "c.bc c.cluster l.begins? l.cuts? l.held? l.persistent l.reads_twice? l.staged"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local program = p.score
//| local copied = {}  -- what no box brings
//| for _, tile in ipairs(l.staged.tiles) do if not tile.boxed and not tile.owned then copied[#copied + 1] = tile end end
//| local shared = c.cluster > 1  -- blocks of a cluster have rows of their own
//| local rows, first_row = shared and "BR / CLUSTER" or "BR", shared and "where.row + row_in_tile(0)" or "where.row"
// ---- arrays of the score program that go with the key: a warp of the producer brings those of a block of keys, beside K and V ----
// A stage has tiles, rows of BC elements, and lines, a number for each distance of a key and a query of the block: from that of the last
// row and the first key on, and once more one place further, so that two that lie side by side are aligned in one of both.
constexpr int STAGES_SCORE = $(l.staged.stages), SMEM_SCORE = $(l.staged.at), SCORE_STAGE = $(l.staged.bytes);
//| if #l.staged.lines > 0 then
constexpr int LINE = $(l.staged.copy);  // bytes of a copy
//| end
//| local grouped = l.staged.group > 1
//| local span = grouped and "SPAN" or "BC"
//| if grouped then
constexpr int GROUP = $(l.staged.group), SPAN = GROUP * BC;  // blocks of keys of a stage, the first a multiple of GROUP; and their keys
//| end
__device__ __forceinline__ u32 score_full(u32 smem, int stage) { return barrier(smem, $(l.staged.barriers) + stage); }
__device__ __forceinline__ u32 score_empty(u32 smem, int stage) { return score_full(smem, STAGES_SCORE + stage); }
// Those who arrive at `full`: a lane for what the warp has stored$(#copied > 0 and ", and every lane when its copies have landed" or "").
constexpr int SCORE_ARRIVALS = $(#copied > 0 and 33 or 1);

__device__ __forceinline__ float2 load_shared_float2(u32 from) {
  float2 x;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(from) : "memory");
  return x;
}
//| if l.staged.far then
__device__ __forceinline__ float load_shared_float(u32 from) {
  float x;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from) : "memory");
  return x;
}
//| end
//| local turned = false
//| for _, tile in ipairs(l.staged.tiles) do turned = turned or tile.columns end
//| if #l.staged.tiles > 0 then
//|   local transposed = turned and ", transposed" or ""
// Four 8 x 8 matrices of 16-bit elements$(transposed); lane 8m + r gives the address of row r of matrix m.
__device__ __forceinline__ void ldmatrix_x4(u32 (&r)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4$(turned and ".trans" or "").shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
//| end
//| if #copied > 0 or l.staged.owned then
// 16 bytes, of which `bytes` are read and the others are zeros.
__device__ __forceinline__ void cp_async_part(u32 to, const void *from, int bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
//| end
//| if l.staged.owned then
__device__ __forceinline__ void cp_async_whole(u32 to, const void *from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
//| end
//| if #copied > 0 then
// This thread arrives when all of its copies so far have landed.
__device__ __forceinline__ void mbarrier_arrive_copied(u32 barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
//| end

//| if l.held then
//|   local tile = l.staged.tiles[1]
// What a thread adds to its products of a block, two keys to a word.
__device__ __forceinline__ void hold_tile(u32 (&held)[NS / 2], u32 stage, int wg$(tile.shifted and ", const u32 (&shift)[2]" or "")) {
  const int lane = threadIdx.x % 32, tile_row = wg * 64 + threadIdx.x / 32 % 4 * 16;
//|   indented(2, pr.tile_from, tile, "stage", "tile_row", "")
#pragma unroll
  for (int m = 0; m < NS / 8; m++) {
    u32 v[4];
//|   indented(4, pr.tile_read, tile, "")
#pragma unroll
    for (int i = 0; i < 4; i++) held[4 * m + i] = v[i];
  }
}
//| end
//| if l.cuts == "joins" or l.cuts == "besides" then
// Where this thread reads what is added to the exponents of a block.
__device__ __forceinline__ u32 join_at(u32 stage, int wg) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, tile_row = wg * 64 + threadIdx.x / 32 % 4 * 16;
//|   indented(2, pr.join_at, "stage", "tile_row")
}
//| end
//| if l.begins then
// A number in units of the product. Rows whose maximum is none there, or far, are computed again: all where there are no such units.
__device__ __forceinline__ float in_products(const Params &p, float x) {
  return p.scale < 0x1p125f ? x * reciprocal(p.scale) : __int_as_float(0x7fffffff);
}
// Where this thread reads what the scores of a block begin with, and the four at 4n.
struct Beginning {
  u32 above;  // of the thread's second row; of its first the same but for 32 bytes
//|   if l.reads_twice then
  u32 here;  // which is not known to be so: else the assembler reads once, and moves what it has read
//|   end
};
__device__ __forceinline__ Beginning begin_at(const Params &p, u32 stage, int wg) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, tile_row = wg * 64 + threadIdx.x / 32 % 4 * 16;
//|   indented(2, pr.begin_at, "stage", "tile_row")
}
__device__ __forceinline__ void begin_scores(float (&s)[NS], int n, const Beginning &from) {
//|   indented(2, pr.begin_four, "s", "n", "from")
}
//| end

// Registers are few where these run: what is opaque is not computed before the loop around it.
template <class T>
__device__ __forceinline__ T opaque(T x) {
  if constexpr (sizeof(T) == 8)
    asm volatile("" : "+l"(x));
  else
    asm volatile("" : "+r"(x));
  return x;
}
//| if l.staged.owned then
//|   include "wgmma/hopper_own_rows.cu"
//| end
//| for _, tile in ipairs(copied) do
//|   local of = tile.of
//|   local size, type = of.wide and 4 or 2, of.wide and "float" or "u16"
//|   local chunks = c.bc * size // 16
//|   local stride = ("p.score%d_stride[%d]"):format(of.operand, of.rank - 1)
// The elements of key to key + BC of array $(of.operand).
__device__ __forceinline__ void stage_tile$(of.node)(const Params &p, const ScoreTile &scored, u32 to, int row, int key, int lane) {
  // 16 bytes by 16 bytes where elements lie side by side, aligned.
  const $(type) *const first = (const $(type) *)score_ahead$(of.node)(p, scored, scored.h, row) + key;
  if ($(stride) == 1 && (size_t)first % 16 == 0) {
//|   if chunks <= 32 then
    if (lane < $(chunks))
      cp_async_part(to + lane * 16, first + lane * $(16 // size), min(max(scored.sk - key - lane * $(16 // size), 0) * $(size), 16));
//|   else
#pragma unroll 1
    for (int i = lane; i < $(chunks); i += 32)
      cp_async_part(to + i * 16, first + i * $(16 // size), min(max(scored.sk - key - i * $(16 // size), 0) * $(size), 16));
//|   end
    return;
  }
  ScoreTile here = scored;
  here.b = opaque(here.b), here.h = opaque(here.h), here.sq = opaque(p.sq), here.sk = opaque(p.sk);
  const $(type) *const from = (const $(type) *)score_ahead$(of.node)(p, here, here.h, row);
  $(type) x[(BC + 31) / 32];
#pragma unroll
  for (int i = 0; i < (BC + 31) / 32; i++) x[i] = from[min(key + 32 * i + lane, here.sk - 1) * opaque($(stride))];
#pragma unroll
  for (int i = 0; i < (BC + 31) / 32; i++)
    if (32 * i + lane < BC) store_shared(to + (32 * i + lane) * $(size), $(of.wide and "(u32)__float_as_int(x[i])" or "x[i]"));
}
//| end
//| for _, line in ipairs(l.staged.lines) do
//|   local of = line.of
// Of a distance.
__device__ __forceinline__ float line$(line.node)(const Params &p, const ScoreTile &scored, int distance) {
//|   if of then
//|     local stride = ("p.score%d_stride[%d]"):format(of.operand, of.rank - 1)
  const auto *const from = score_ahead$(of.node)(p, scored, scored.h, 0);
  const auto x = from[min(max(distance, 1 - scored.sq), scored.sk - 1) * $(stride)];
//|     if of.wide then
  return x;
//|     elseif of.bf16 then
  return __uint_as_float((u32)x << 16);
//|     else
  return score_half(x);
//|     end
//|   else
  return score_distance(p, scored, distance);
//|   end
}
//| end

//| local far = l.staged.far
//| local function in_units(x)
//|   if l.cuts == "joins" or l.cuts == "besides" then return x .. " * 1.44269504088896341f" end
//|   return l.begins and ("in_products(p, %s)"):format(x) or x
//| end
//| if far then
// Whether all pairs of a tile's block have one number of key - query: -1, 1: as those far below, above; 0: they have not.
__device__ __forceinline__ int far_side(const Params &p, const ScoreTile &scored, int row, int key) {
//|   if far.below then
  if (key + BC - 1 - row <= score_far_below(p, scored)) return -1;
//|   end
//|   if far.above then
  if (key - (row + BR - 1) >= score_far_above(p, scored)) return 1;
//|   end
  return 0;
}
//| end

//| local boxes = {}
//| for _, tile in ipairs(l.staged.tiles) do if tile.boxed then boxes[#boxes + 1] = tile end end
//| if #boxes > 0 then
//|   include "wgmma/hopper_boxes.cu"
//| end
//| local function load_boxes(full)
//|   local bytes = 0
//|   for _, tile in ipairs(boxes) do bytes = bytes + tile.bytes end
mbarrier_expect($(full), $(bytes));
//|   for _, tile in ipairs(boxes) do
load_tile$(tile.node)(p, map$(tile.node), scored, stage + $(tile.at), $(full), $(first_row), block * BC);
//|   end
//| end
//| if l.staged.by_thread then
// All that comes are boxes: by one thread.
__device__ __forceinline__ void produce_scores(const Params &p, u32 smem$(pr.box_types())) {
  Ring<STAGES_SCORE> stages;
  TileQueue tiles;
  Tile where;
  grid_wait();
  while (tiles.next(p, smem, where)) {
    const KeyRange keys = tiles.keys(p, smem, 0);
    const Sequence sequence = sequence_of(p, where.batch);
    const ScoreTile scored = score_tile(p, sequence, where.head);
    tiles.done(smem, false);
#pragma unroll 1
    for (int block = keys.loaded_hi; block >= keys.loaded_lo; block--) {
      const u32 stage = smem + SMEM_SCORE + stages.at * SCORE_STAGE, full = score_full(smem, stages.at);
      mbarrier_wait(score_empty(smem, stages.at), stages.parity ^ 1);
//|   indented(6, load_boxes, "full")
      stages.next();
    }
  }
}
//| elseif l.staged.produced then
// Where a block's tile is is looked up each time, so that no register holds it: they are few here.
__device__ __forceinline__ void produce_scores(const Params &p, u32 smem$(pr.box_types())) {
//| if l.persistent then
  u32 walked = 0;  // tiles, every other one in the same slot, and, in the lowest three bits, blocks up to twice the stages
  auto tiles = [&] {
    TileQueue queue;
    const u32 n = opaque(walked) / 8;
    queue.slot.at = n % 2, queue.slot.parity = n / 2 % 2;
    return queue;
  };
//| else
  u32 walked = 0;  // blocks, up to twice the stages
  TileQueue queue;
  auto tiles = [&]() -> TileQueue & { return queue; };
//| end
  Tile tile;
  grid_wait();
  while (tiles().next(p, smem, tile)) {
#pragma unroll 1
//| if grouped then
    for (int block = tiles().keys(p, smem, 0).loaded_hi < tiles().keys(p, smem, 0).loaded_lo ? -1
                                                                                              : tiles().keys(p, smem, 0).loaded_hi / GROUP;
         block >= tiles().keys(p, smem, 0).loaded_lo / GROUP; block--) {
//| else
    for (int block = tiles().keys(p, smem, 0).loaded_hi; block >= tiles().keys(p, smem, 0).loaded_lo; block--) {
//| end
      const u32 turn = opaque(walked) % 8, at = turn % STAGES_SCORE;
      const Tile where = tiles().again(p, smem);
      const Sequence sequence = sequence_of(p, where.batch);
      const ScoreTile scored = score_tile(p, sequence, where.head);
//| if #l.staged.lines > 0 then
//|   if grouped then
      // Blocks that share a stage have SPAN distances that those before them, in the stage before, had not.
//|   else
      // A block has BC distances that the one before, which lies in the stage before, had not.
//|   end
      const int lane = opaque((int)threadIdx.x) % 32, distance = block * $(span) - (where.row + BR - 1) + lane;
//|   for _, line in ipairs((grouped or far) and {} or l.staged.lines) do
      float x$(line.node)[(BC + 31) / 32];
#pragma unroll
      for (int i = 0; i < (BC + 31) / 32; i++) x$(line.node)[i] = line$(line.node)(p, scored, distance + 32 * i);
//|   end
//| end
      mbarrier_wait(score_empty(smem, at), turn / STAGES_SCORE ^ 1);
      const u32 stage = smem + SMEM_SCORE + at * SCORE_STAGE;
//| for _, tile in ipairs(copied) do
      stage_tile$(tile.node)(p, scored, stage + $(tile.at), $(first_row), block * BC, opaque((int)threadIdx.x) % 32);
//| end
//| -- What a line has of the rows of a tile beyond its own `keys`, from the stage before.
//| local function take_over(line, keys)
          const u32 before = smem + SMEM_SCORE + (at + STAGES_SCORE - 1) % STAGES_SCORE * SCORE_STAGE + $(line.at);
#pragma unroll 1
          for (int i = lane * 16; i < BR * 4; i += 512) {
            store_shared(to + $(keys) * 4 + i, load_shared_x4(before + i));
            store_shared(to + LINE + $(keys) * 4 + i, load_shared_x4(before + LINE + i));
          }
          __syncwarp();
//| end
//| for _, line in ipairs(grouped and l.staged.lines or {}) do
      {
        const bool first = block == tiles().keys(p, smem, 0).loaded_hi / GROUP;
        const u32 to = stage + $(line.at);
        if (!first) {
//|   take_over(line, "SPAN")
        }
        // Four at a time, so that one wait serves them.
        const int fill = first ? SPAN + BR : SPAN;
#pragma unroll 1
        for (int from = 0; from < fill; from += 128) {
          float x[4];
#pragma unroll
          for (int i = 0; i < 4; i++) x[i] = line$(line.node)(p, scored, distance + from + 32 * i);
#pragma unroll
          for (int i = 0; i < 4; i++) {
            const u32 value = __float_as_int($(in_units("x[i]"))), place = to + (from + 32 * i + lane) * 4;
            if (from + 32 * i + lane < fill) store_shared(place, value), store_shared(place + LINE + 4, value);
          }
        }
      }
//| end
//| if far then
//|   local line = l.staged.lines[1]
//|   local below, above = far.below and "score_far_below(p, scored)", far.above and "score_far_above(p, scored)"
//|   local far_away = below and above and "side < 0 ? " .. below .. " : " .. above or below or above
//|   local number = "line" .. line.node
      {
        // The number of a far block, or those of a block's distances, which the one before has but for BC: they have one text.
        const int side = far_side(p, scored, where.row, block * BC);
//|   local or_far_before = far.above and " || far_side(p, scored, where.row, block * BC + BC) != 0" or ""
        const bool first = block == tiles().keys(p, smem, 0).loaded_hi$(or_far_before);
        const int fill = side != 0 ? 1 : first ? BC + BR : BC, to = stage + $(line.at);
        if (side == 0 && !first) {
//|   take_over(line, "BC")
        }
#pragma unroll 1
        for (int i = 0; i < fill; i += 32) {
          const float x = $(number)(p, scored, side == 0 ? distance + i : $(far_away));
          const u32 value = __float_as_int($(in_units("x"))), place = to + (i + lane) * 4;
          if (i == 0 && lane == 0) store_shared(stage + $(far.at), uint4{(u32)side, (u32)__float_as_int(x), value, value});
          if (side == 0 && i + lane < fill) store_shared(place, value), store_shared(place + LINE + 4, value);
        }
      }
//| end
//| for _, line in ipairs((grouped or far) and {} or l.staged.lines) do
      {
        const u32 to = stage + $(line.at);
        if (block == tiles().keys(p, smem, 0).loaded_hi) {
#pragma unroll 1
          for (int i = lane; i < BR; i += 32) {
            const u32 x = __float_as_int($(in_units(("line%d(p, scored, distance - lane + BC + i)"):format(line.node))));
            store_shared(to + (BC + i) * 4, x), store_shared(to + LINE + (BC + i + 1) * 4, x);
          }
        } else {
//|   take_over(line, "BC")
        }
#pragma unroll
        for (int i = 0; i < (BC + 31) / 32; i++)
          if (32 * i + lane < BC) {
            const u32 x = __float_as_int($(in_units(("x%d[i]"):format(line.node))));
            store_shared(to + (32 * i + lane) * 4, x), store_shared(to + LINE + (32 * i + lane + 1) * 4, x);
          }
      }
//| end
//| if #copied > 0 then
      mbarrier_arrive_copied(score_full(smem, at));
//| end
      __syncwarp();
//| if #boxes > 0 then
      if (threadIdx.x % 32 == 0) {
//|   indented(8, load_boxes, "score_full(smem, at)")
      }
//| end
//| if #boxes == 0 then
      if (threadIdx.x % 32 == 0) mbarrier_arrive(score_full(smem, at));
//| end
      walked = walked / 8 * 8 + (turn + 1) % (2 * STAGES_SCORE);
    }
//| if l.persistent then
    tiles().done(smem, true);
    walked += 8;
//| end
  }
}
//| end
