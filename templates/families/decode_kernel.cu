//| needs "c.bk c.br c.combine c.ctas c.key_warps c.kv_lanes c.min_turns c.named c.row_warps c.stages"
//| needs "l.asks_early? l.barriers? l.boxed? l.boxes? l.bytes"
//| needs "l.chunks l.chunks_v l.dots? l.ends l.exchange l.exchange_stride l.found? l.group l.held? l.merge_threads l.next l.overlay"
//| needs "l.parts_early? l.pdl l.floats? l.half? l.heads? l.integers_v? l.q? l.k_scales? l.low? l.ob? l.stage l.tokens? l.v_scales?"
//| needs "l.section? l.segment_digits? l.segments_digits? l.slices l.slots? l.states l.sums? l.vb l.walk l.widened? l.words"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// ---- the problem ----
constexpr int D = $(p.d);    // head_dim of Q and K
constexpr int DV = $(p.dv);  // head_dim of V and O
//| if p.bytes == 2 then
typedef unsigned short element;  // $(p.dtype)
//| else
typedef float element;  // $(p.dtype)
//| end
//| if p.o == "fp32" then
typedef float output;
//| else
typedef unsigned short output;  // $(p.o)
//| end

// ---- the config ----
constexpr int BR = $(c.br);         // query rows of a tile: queries x heads of a group
constexpr int BC = $(c.bk);         // keys of a block of keys, which a group of warps takes at a time
constexpr int ROW_WARPS = $(c.row_warps);  // warps of a group, each with BR / ROW_WARPS rows
constexpr int GROUPS = $(c.key_warps);     // groups of a thread block: side by side they take GROUPS * BC keys in an iteration
constexpr int STAGES = $(c.stages);     // buffers of a group
constexpr int ENDS = $(l.ends);       // iterations that take as long as the beginning and the end of a tile
constexpr int MIN_TURNS = $(c.min_turns);  // least iterations of a thread block
//| if p.has_batch_invariant then
constexpr int SEGMENTS_DIGITS = $(l.segments_digits), SEGMENTS = 1 << SEGMENTS_DIGITS;  // of a tile at most
constexpr int SEGMENT_DIGITS = $(l.segment_digits);                // iterations of each at least: 1 << SEGMENT_DIGITS
constexpr int SECTION = $(l.section);      // segments that are added up first
//| end
//| if c.kv_lanes > 1 then
constexpr int LANES = $(c.kv_lanes);      // most streams of heads: neighbouring key/value heads that are walked side by side
//| end

//| if l.heads then
constexpr int HEADS = $(l.heads);      // key/value heads that a block walks side by side, each with GROUPS groups
//| end

// ---- what follows from them ----
//| if l.heads then
constexpr int GROUP_THREADS = ROW_WARPS * 32, HEAD_THREADS = GROUPS * GROUP_THREADS, THREADS = HEADS * HEAD_THREADS;
//| else
constexpr int GROUP_THREADS = ROW_WARPS * 32, THREADS = GROUPS * GROUP_THREADS;
//| end
//| if not l.dots then
//|   if l.half then
constexpr int MB = 1;  // block of 16 rows per warp, of which 8 are there
//|   else
constexpr int MB = BR / ROW_WARPS / 16;  // blocks of 16 rows per warp
//|   end
constexpr int NB = BC / 8;               // blocks of 8 keys
constexpr int P_STEPS = $(p.dtype == "tf32" and "NB" or "NB / 2");  // fragments of P along the keys of a block
//| end
//| if l.low then
constexpr int CHUNKS = $(l.chunks);    // 16-byte chunks of a row of K
//| else
constexpr int CHUNKS = $(l.chunks);    // 16-byte chunks of a row of Q and K
//| end
constexpr int CHUNKS_V = $(l.chunks_v);  // 16-byte chunks of a row of V
constexpr int VB = $(l.vb);        // blocks of 8 columns of O
constexpr int COLS = VB * 8;     // of O, rounded up
//| if l.low then
constexpr int OB = $(l.ob);        // blocks of $(l.half and 16 or 8) columns of O as they are summed up, in the order of V's codes
//|   if l.integers_v then
constexpr int EXCESS = OB - $(l.integers_v.excess);  // those after it are what codes that are too large add to two blocks of a row each
//|   end
//| end
//| if c.combine == c.named.combine.second_kernel then
constexpr int MERGE_THREADS = $(l.merge_threads), SLICES = $(l.slices);  // of the second step: thread blocks that share a tile
//| end
//| if l.tokens then
constexpr int K_PITCH = $(l.tokens.k.pitch), V_PITCH = $(l.tokens.v.pitch);  // chunks from a token's rows to the next token's
constexpr int K_TILE = BC * K_PITCH * 16, STAGE = $(l.stage);   // bytes: K, V, scales of tokens
//|   if p.k_scale == 2 or p.v_scale == 2 then
constexpr int K_SCALES = $(l.k_scales), V_SCALES = $(l.v_scales);  // where they are, a token's side by side
//|   end
//| elseif p.k_scale == 2 or p.v_scale == 2 then
constexpr int K_TILE = BC * CHUNKS * 16, STAGE = $(l.stage);  // bytes: K, V, scales of tokens
constexpr int K_SCALES = $(l.k_scales), V_SCALES = $(l.v_scales);
//| else
constexpr int K_TILE = BC * CHUNKS * 16, STAGE = K_TILE + BC * CHUNKS_V * 16;  // bytes
//| end
// Offsets in dynamic shared memory, $(l.bytes) bytes in all: the buffers of the groups; where each leaves its O; (m, l) of their rows;
// words that the block shares.
constexpr int SMEM_GROUP = $(l.group), SMEM_O = $(l.exchange), SMEM_O_GROUP = $(l.exchange_stride);
constexpr int SMEM_STATES = $(l.states), SMEM_WORDS = $(l.words);
//| if l.widened then
constexpr int WIDE = $(l.widened), WIDE_K = BC * D * 2;  // where a group's K and V lie in fp16; bytes of K
//| end
//| if l.half then
constexpr int SMEM_Q = $(l.q);         // Q of the tile, as lanes take it
//| end
//| if l.boxes then
constexpr int SMEM_BARRIERS = $(l.barriers);    // of each group: an mbarrier for a buffer
//| end
//| if l.floats then
constexpr int SMEM_FLOATS = $(l.floats);    // of each group: scales of the blocks of its keys, in fp32
//| end
//| if p.has_batch_invariant then
constexpr int SMEM_FOUND = $(l.found);     // where the parts of a tile's segments lie
constexpr int SMEM_SUMS = $(l.sums);       // two sums of segments, of (m, l) two buffers each
constexpr int HELD = $(l.held);           // segments whose parts groups leave before they meet
constexpr int SLOTS = $(l.slots);          // sums that a thread block may leave in the workspace
//| end

//| include "machine/prelude.cu"

//| if l.boxes then
//|   include "machine/hopper.cu"

//| end
//| if l.low then
//|   include "machine/unpack.cu"
//|   unpack(l.low.k)
//|   unpack(l.low.v)

//| end
//| include "tiles/tile.cu"

//| include "pairs/sequence.cu"

//| if l.low then
//|   include "tiles/low_rows.cu"

//| end
//| include "pairs/mask.cu"

//| include "tiles/softmax.cu"

//| include "work/decode_split.cu"

//| if l.boxed then
//|   include "wgmma/wgmma_products.cu"
//| elseif l.dots then
constexpr bool PAIRS_V = false;
//| elseif l.low then
//|   include "mma/low_products.cu"
//| else
//|   include "mma/products.cu"
//| end

//| pr.mask_iterations()
//| include "tiles/decode_loader.cu"
//| include "tiles/decode_early.cu"

//| include "work/decode_merge.cu"

//| include(l.low and "tiles/low_query.cu" or "tiles/decode_query.cu")

//| if l.dots then
//|   include "machine/decode_dots.cu"
//| else
//|   include "mma/mma_softmax.cu"

//|   include "mma/decode_fragments.cu"
//| end

//| local pieces = l.tokens and l.boxes  -- a token's rows of all heads by boxes
//| if l.boxes and not pieces then
// Waits until the group's copies have arrived; those of the next iterations are under way. barrier: the buffer's.
__device__ __forceinline__ void group_arrived(u32 barrier, u32 parity) {
//|   if p.k_scale == 2 or p.v_scale == 2 then
  cp_async_wait<STAGES - 1>();
//|   end
  mbarrier_wait(barrier, parity);
  __syncwarp();
}
//| else
//| if l.tokens then
// Waits until the copies of all heads' groups of the same keys have arrived, which are then through with the buffer of the iteration
// before.
//| else
// Waits until the group's copies have arrived for all its warps, which are then through with the buffer of the iteration before.
//| end
__device__ __forceinline__ void group_arrived(int group) {
  cp_async_wait<STAGES - 2>();
//| if l.boxed and not l.low then
  fence_async();
//| end
//| if l.tokens then
  asm volatile("bar.sync %0, %1;" ::"r"(group % GROUPS + 1), "n"(HEADS * GROUP_THREADS) : "memory");
//| elseif c.row_warps == 1 then
  __syncwarp();
//| else
  asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(GROUP_THREADS) : "memory");
//| end
}
//| end

//| local clears = l.boxes and not l.widened and (p.has_lengths or p.mask ~= "none")
//| if clears and pieces then
// A box brings rows of V that no query of the tile sees, and their NaN times a probability of 0 would be NaN: all but rows lo to hi are
// cleared, by each head's warp its own. Chunks have two heads' bytes: all wait for each other.
__device__ __forceinline__ void clear_unseen(u32 v_tile, int lo, int hi) {
  constexpr int WORDS = V_BYTES / 4;
  const int side = (int)threadIdx.x / HEAD_THREADS, key_group = (int)threadIdx.x % HEAD_THREADS / GROUP_THREADS;
  const u32 own = v_tile + side * V_BYTES;
  for (int i = (int)threadIdx.x % 32; i < BC * WORDS; i += 32)
    if (i / WORDS < lo || i / WORDS > hi)
      asm volatile("st.shared.u32 [%0], %1;" ::"r"(own + i / WORDS * (V_PITCH * 16) + i % WORDS * 4), "r"(0) : "memory");
  fence_async();  // the buffer is the copy engine's again
  asm volatile("bar.sync %0, %1;" ::"r"(key_group + 1), "n"(HEADS * GROUP_THREADS) : "memory");
}

//| elseif clears then
// A box brings rows of V that no query of the tile sees, and their NaN times a probability of 0 would be NaN: all but rows lo to hi are
// cleared. By all lanes of the group's warp.
__device__ __forceinline__ void clear_unseen(u32 v_tile, int lo, int hi) {
  for (int byte = (int)threadIdx.x % 32 * 16; byte < BC * V_BYTES; byte += 512)
    if (byte / V_BYTES < lo || byte / V_BYTES > hi)
      asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(v_tile + byte), "r"(0) : "memory");
  fence_async();  // the buffer is the copy engine's again
  __syncwarp();
}

//| end
//| local maps = l.boxes and ", const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map" or ""
extern "C" __global__ void __launch_bounds__(THREADS, $(c.ctas)) fa_decode(const __grid_constant__ Params p$(maps)) {
  extern __shared__ __align__($((l.boxed or l.boxes) and 1024 or 128)) unsigned char smem[];
//| -- Before the launch before has ended, where nothing is read for it: where a block's keys are, Q, and scales.
//| local early = l.asks_early and l.pdl and not p.has_lengths and not pr.has_mask and not p.has_batch_invariant
//| local key_group = (l.tokens or l.heads) and "key_group" or "group"
//| local function find()
//|   if l.low then
const int group = in_register((int)threadIdx.x / GROUP_THREADS);
//|   else
const int group = threadIdx.x / GROUP_THREADS;
//|   end
//|   if l.tokens then
const int key_group = group % GROUPS, side = group / GROUPS;
const u32 buffers = shared_address(smem) + key_group * SMEM_GROUP;
//|     if l.tokens.k.after > 0 or l.tokens.v.after > 0 then
// Chunks after a token's rows are read with those of its last head, and are nothing to it. No copy by warps writes there.
//|       if pieces then
if (!p.boxed)
//|       end
for (int s = 0; s < STAGES; s++)
for (int row = side * GROUP_THREADS + (int)threadIdx.x % GROUP_THREADS; row < BC; row += HEADS * GROUP_THREADS) {
  const u32 k_row = buffers + s * STAGE + row * (K_PITCH * 16), v_row = buffers + s * STAGE + K_TILE + row * (V_PITCH * 16);
//|       for _, x in ipairs({ "k", "v" }) do
//|         for chunk = l.tokens[x].whole, l.tokens[x].whole + l.tokens[x].after - 1 do
  asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"($(x)_row + $(16 * chunk)), "r"(0) : "memory");
//|         end
//|       end
}
//|     end
//|   else
const u32 buffers = shared_address(smem) + group * SMEM_GROUP;
//|     if l.heads then
const int key_group = group % GROUPS;
//|     end
//|   end
//|   if pieces then
// Of each buffer of the heads' groups: one that tells when it has arrived, and STAGES after it one that tells when all have read it.
const u32 barriers = shared_address(smem) + SMEM_BARRIERS + key_group * (2 * STAGES * 8);
if (side == 0 && threadIdx.x % GROUP_THREADS == 0) {
#pragma unroll
  for (int s = 0; s < STAGES; s++) {
    mbarrier_init(barriers + s * 8, 1);
    mbarrier_init(barriers + (STAGES + s) * 8, HEADS);
  }
  fence_barrier_init();
  fence_async();
}
__syncthreads();
Loader loader(p, split.walk, $(key_group), k_map, v_map);
//|   elseif l.boxes then
const u32 barriers = shared_address(smem) + SMEM_BARRIERS + group * (STAGES * 8);
if (threadIdx.x % GROUP_THREADS == 0) {
#pragma unroll
  for (int s = 0; s < STAGES; s++) mbarrier_init(barriers + s * 8, 1);
  fence_barrier_init();
  fence_async();
}
$(l.widened and "__syncthreads" or "__syncwarp")();
Loader loader(p, split.walk, $(key_group), k_map, v_map);
//|   else
Loader loader(p, split.walk, $(key_group));
//|   end
//|   if l.low then
WarpRows rows(smem);
//|   end
//|   if l.asks_early then
if (split.walk.left > 0) {
  const Sequence sequence = sequence_of(p, split.walk.batch);
  rows.find(p, sequence, tile_of(p, sequence, split.walk));
}
//|   end
//| end
//| if l.boxes then
  if (threadIdx.x == 0$(pieces and " && p.boxed" or "")) {
    tma_prefetch(k_map);
    tma_prefetch(v_map);
  }
//| end
//| if not p.has_lengths then
  const Split split = split_of(p);
//| end
//| if l.pdl then
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
//| end
//| if p.has_pages then
  prefetch_table(p);
//| end
//| if l.pdl then
//|   if not p.has_lengths then
//|     if not pr.has_mask then
  prefetch(p, split);
//|     end
//|     if early then
//|       indented(2, find)
//|     end
  asm volatile("griddepcontrol.wait;" ::: "memory");
//|   end
//| end
//| if p.has_lengths then
  const Split split = split_of_launch(p, [&](const Split &seeming) {
//|   if l.pdl and not p.has_batch_invariant and not pr.has_mask then
    prefetch(p, seeming);
//|   end
  });
//| end
//| if not early then
//|   indented(2, find)
//| end
//| if l.asks_early then
  // Asked for before the keys, so that what a tile begins with is there when they are.
  bool asked = split.walk.left > 0;
  if (asked) rows.read(p);
//| end
//| local commits = not l.boxes or p.k_scale == 2 or p.v_scale == 2
#pragma unroll 1
  for (int s = 0; s < STAGES - 1; s++) {
//| if pieces then
    if (side == 0 || !p.boxed) loader.load(buffers + s * STAGE, barriers + s * 8);
    cp_async_commit();
//| elseif l.boxes then
    loader.load(buffers + s * STAGE, barriers + s * 8);
//| else
    loader.load(buffers + s * STAGE);
//| end
//| if commits then
    cp_async_commit();
//| end
  }
//| if not l.low then
  WarpRows rows(smem);
//| end
  int stage = 0, free_stage = STAGES - 1;
//| if l.boxes then
  u32 parity = 0;  // of the buffers' phases, from the first on
//| end
//| if c.combine == c.named.combine.second_kernel then
  bool goes_on = false;  // a tile that began here ends elsewhere
//| end
#pragma unroll 1
  for ($(wk.of_share(l.walk, l.next))) {
    const Sequence sequence = sequence_of(p, walk.batch);
    const Tile tile = tile_of(p, sequence, walk);
//| if l.asks_early then
    if (!asked) {
      rows.find(p, sequence, tile);
      rows.read(p);
    }
    asked = false;
//| elseif l.low then
    rows.find(p, sequence, tile);
    rows.read(p);
//| end
    rows.begin(p, sequence, tile);
//| if l.parts_early then
    const int first_part = split.first_of(walk), parts = split.parts_of(walk);  // divisions, while keys are under way
//| end
//| if pr.scans then
    MaskIterations classes;
    auto look = [&](int iteration) { return class_of(p, sequence, tile, tile.first_block + iteration * GROUPS + $(key_group)); };
//| end
//| if p.has_batch_invariant then
//|   if c.combine == c.named.combine.last_block then
    const int home = walk.whole_tile() ? 0 : split.home_of(walk);
//|   end
    int iteration = walk.iteration, held = 0;  // held: segments whose parts lie in shared memory
#pragma unroll 1
    for (int segment = walk.first; segment < walk.upto; segment++) {
    rows.fresh();
//| end
    int last = 0;  // the buffer of the $(p.has_batch_invariant and "segment" or "tile")'s last iteration
#pragma unroll 1
//| local begin, condition = "int iteration = walk.iteration", "iteration < walk.end"
//| if p.has_batch_invariant then begin, condition = "const int end = walk.cuts.begin_of(segment + 1)", "iteration < end" end
    for ($(begin); $(condition); iteration++) {
//| if pieces then
      if (p.boxed) {
        __syncwarp();  // all lanes are through with the buffer of the iteration before, and the warps meet at its barrier
        if (threadIdx.x % 32 == 0) mbarrier_arrive(barriers + (STAGES + free_stage) * 8);
        if (side == 0) {
          mbarrier_wait(barriers + (STAGES + free_stage) * 8, parity);
          loader.load(buffers + free_stage * STAGE, barriers + free_stage * 8);
        }
        mbarrier_wait(barriers + stage * 8, parity);
        __syncwarp();
      } else {
        group_arrived(group);
        loader.load(buffers + free_stage * STAGE, barriers + free_stage * 8);
        cp_async_commit();
      }
//| elseif l.boxes then
//|   if l.widened then
      // The warps of the group have met since all of them read the buffer of the iteration before.
//|   else
      __syncwarp();  // the warp is through with the buffer of the iteration before
//|   end
      loader.load(buffers + free_stage * STAGE, barriers + free_stage * 8);
//| else
      group_arrived(group);
      loader.load(buffers + free_stage * STAGE);
//| end
//| if commits then
      cp_async_commit();
//| end
//| if l.boxes and not pieces then
      group_arrived(barriers + stage * 8, parity);
//| end
//| if l.tokens then
      // The first chunks of the head's rows.
      const u32 k_tile = buffers + stage * STAGE + (side * K_BYTES & -16);
      const u32 v_tile = buffers + stage * STAGE + K_TILE + (side * V_BYTES & -16);
//| elseif l.widened then
      const u32 codes = buffers + stage * STAGE, wide = buffers + WIDE;
//| else
      const u32 k_tile = buffers + stage * STAGE, v_tile = k_tile + K_TILE;
//| end
      const int block = tile.first_block + iteration * GROUPS + $(key_group);
//| local tiles = l.widened and "codes, wide" or "k_tile, v_tile"
//| if pr.scans then
      const int is = classes.at(iteration, look);
      if (is != 0) rows.attend(p, sequence, tile, block, is == 1, $(tiles));
//| elseif clears then
      if (block >= tile.range.block_lo && block <= tile.range.block_hi) {
        const bool cut = $(pr.is_cut("tile.range"));
//|   local rows = pieces and "buffers + stage * STAGE + K_TILE" or "v_tile"
        if (cut) clear_unseen($(rows), tile.range.key_lo - block * BC, tile.range.key_hi - block * BC);
        rows.attend(p, sequence, tile, block, cut, $(tiles));
      }
//| else
      if (block >= tile.range.block_lo && block <= tile.range.block_hi)
        rows.attend(p, sequence, tile, block, $(pr.is_cut("tile.range")), $(tiles));
//| end
      last = free_stage = stage;
//| if l.boxes then
      parity ^= stage == STAGES - 1;
//| end
      stage = stage == STAGES - 1 ? 0 : stage + 1;
    }
//| if c.combine == c.named.combine.second_kernel then
//|   local begins = "(walk.iteration == 0 && walk.end < walk.iterations)"
//|   if p.has_batch_invariant then begins = "(walk.first == 0 && !walk.whole_tile())" end
    goes_on = goes_on || $(begins);
//| end
//| if l.widened then
    accumulate_wait(rows.o);
//| end
//| if l.overlay and l.tokens then
    asm volatile("bar.sync %0, %1;" ::"r"(key_group + 1), "n"(HEADS * GROUP_THREADS) : "memory");  // K and V are read
//| elseif l.overlay and c.row_warps > 1 then
    asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(GROUP_THREADS) : "memory");  // K and V are read
//| elseif l.overlay then
    __syncwarp();  // K and V are read
//| end
//| if p.has_batch_invariant then
    rows.leave(part_of_group(smem, last, held * GROUPS + group), states_of_group(smem, held * GROUPS + group), rows_in(tile));
    held++;
    if (held == HELD || segment + 1 == walk.upto) {
      store_segments(p, sequence, tile, walk, segment + 1 - held, held, smem, last);
      held = 0;
    }
    }  // of segments
//|   if c.combine == c.named.combine.last_block then
    if (!walk.whole_tile()) finish_tile(p, sequence, tile, walk, split, home, smem);
//|   else
    if (threadIdx.x == 0 && walk.first == 0 && !walk.whole_tile()) open_tile(p, walk, split);
//|   end
//| else
    rows.leave(part_of_group(smem, last, group), states_of_group(smem, group), rows_in(tile));
//|   if l.boxes and l.overlay then
    fence_async();  // the buffer is the copy engine's again
//|   end
    store_tile(p, sequence, tile, walk, split, $(l.parts_early and "first_part, parts, " or "")smem, last);
//| end
  }
  store_keyless(p);
//| if p.has_lengths then
  if ($(wk.block) == 0 && threadIdx.x < 32) keep_lengths_in_l2(p);
//| end
//| if c.combine == c.named.combine.second_kernel then
  if (threadIdx.x == 0 && !goes_on) $(wk.leave_none_open(p.has_batch_invariant and 2 or 1))
//| end
}
//| if c.combine == c.named.combine.second_kernel then

//|   include "work/decode_step.cu"
//| end
