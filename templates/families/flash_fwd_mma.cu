//| local ve = l.integer and "value" or "element"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
//| if not l.few_layout and not l.split and not l.passes and not l.integer then
// fagen $(version), flash attention forward on mma.sync: O = softmax(scale Q K^T, masked) V and LSE.
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

//| end
// ---- the problem ----
constexpr int D = $(p.d);    // head_dim of Q and K
//| if l.passes then
constexpr int COLUMNS = $(p.dv);     // head_dim of V and O
constexpr int PASSES = $(l.passes);  // over a tile's keys, each for as many columns of V and O
constexpr int DV = $(l.width);         // of a pass: the last one has some of the columns before it, too, where all are no multiple
//| else
constexpr int DV = $(p.dv);  // head_dim of V and O
//| end
//| if p.bytes == 2 then
typedef unsigned short element;  // $(p.dtype)
//| elseif l.integer then
typedef signed char element;  // $(p.dtype)
typedef unsigned short value;  // $(p.wide_values), of V
//| else
typedef float element;  // multiplied as TF32
//| end
//| if p.o == "fp32" then
typedef float output;
//| else
typedef unsigned short output;  // $(p.o)
//| end

// ---- the config ----
constexpr int BR = $(c.br);        // rows of Q per block
constexpr int BC = $(c.bc);        // keys per iteration
constexpr int WARPS = $(c.warps);  // each owns BR / WARPS rows
constexpr int THREADS = WARPS * 32;
constexpr int STAGES_K = $(c.stages_k);  // buffers of K
constexpr int STAGES_V = $(c.stages_v);  // buffers of V
//| if c.lag > 0 then
// Lazy rescaling: a row's m may be below the true maximum by LAG in log2 units. Probabilities then reach 2^LAG, and O and l, which share
// m, need no rescaling until some row of the warp exceeds it. The result is the same softmax.
constexpr float LAG = $(c.lag);
//| end

// ---- what follows from them ----
constexpr int MB = BR / WARPS / 16;  // blocks of 16 rows per warp
constexpr int NB = BC / 8;           // blocks of 8 keys
constexpr int P_STEPS = $(p.dtype == "tf32" and "NB" or "NB / 2");  // fragments of P along the keys of a block
constexpr int CHUNKS = $(l.chunks);     // 16-byte chunks of a row of Q and K
constexpr int CHUNKS_V = $(l.chunks_v);   // 16-byte chunks of a row of V
constexpr int VB = $(l.vb);         // blocks of 8 columns of O
//| if l.parts then
constexpr int COLS = VB * 8;                          // of O, rounded up
constexpr int PART_TILES = $(l.part_tiles);     // parts of tiles that a thread block has room for in the workspace
//| end
constexpr int K_TILE = BC * CHUNKS * 16, V_TILE = BC * CHUNKS_V * 16;
constexpr int SMEM_Q = $(l.q), SMEM_K = $(l.k), SMEM_V = $(l.v);  // offsets in dynamic shared memory, $(l.bytes) bytes in all
//| if l.key_scales then
constexpr int SMEM_SCALES = $(l.key_scales);  // of K's tokens, for each buffer of K
//| end

//| include "machine/prelude.cu"

//| include "tiles/tile.cu"

//| include "pairs/sequence.cu"

//| if l.integer then
//|   include "tiles/eight_scales.cu"

//| end
//| include "pairs/mask.cu"

//| include "work/tile_order.cu"

//| include "tiles/softmax.cu"

//| include "pairs/philox.cu"

//| include "pairs/exact_rows.cu"

//| include "tiles/epilogue.cu"

//| include "mma/products.cu"

//| include "mma/mma_softmax.cu"
//| if p.has_dropout then

//|   include "mma/mma_dropout.cu"
//| end
//| if l.parts then

//|   include "work/part_rows.cu"
//| end
//| if p.has_pages then

//|   include "tiles/paged_tile.cu"
//| end

//| if p.has_lengths or l.split or l.passes then
__device__ __forceinline__ void attend(const Params &p, const Tile &where, unsigned char *smem) {
//| else
extern "C" __global__ void __launch_bounds__(THREADS, $(c.ctas)) fa_fwd(const __grid_constant__ Params p) {
  extern __shared__ __align__(128) unsigned char smem[];
//| end
  const u32 q_tile = shared_address(smem) + SMEM_Q, k_tiles = shared_address(smem) + SMEM_K, v_tiles = shared_address(smem) + SMEM_V;
  const Lane at = make_lane();
//| if not p.has_lengths and not l.split and not l.passes then
  const Tile where = tile_of(p, $(wk.block));
//| end
  const Sequence sequence = sequence_of(p, where.batch);
  const int warp_row = threadIdx.x / 32 * (16 * MB);  // of the tile
  const u32 q_rows = q_tile + warp_row * CHUNKS * 16;
//| if l.parts then
  const Range range = part_of($(pr.range_of("where.head", "where.row", "min(where.row + BR, row_count(p, sequence)) - 1")), where);
//| else
  const Range range = $(pr.range_of("where.head", "where.row", "min(where.row + BR, row_count(p, sequence)) - 1"));
//| end

//| local far = math.max(c.stages_k, c.stages_v - 1) + (p.has_pages and 1 or 0)
//| if pr.scans then
//|   indented(2, pr.begin_score, "where.head")
//|   indented(2, pr.begin_walk, "range", "where.head", "where.row", "min(where.row + BR, row_count(p, sequence)) - 1", far)
//| end
  const element *const q = (const element *)p.q + sequence.q();
//| if p.has_pages then
  const char *const k = (const char *)((const element *)p.k + where.kv_head * p.k_sh);
  const char *const v = (const char *)((const $(ve) *)p.v + where.kv_head * p.v_sh);
  const long long k_page = sequence.k_page() * (long long)sizeof(element), v_page = sequence.v_page() * (long long)sizeof($(ve));
  const int *const table = p.page_table + sequence.index * p.page_table_stride;
//| else
  const char *const k = (const char *)((const element *)p.k + sequence.k() + where.kv_head * p.k_sh);
  const char *const v = (const char *)((const $(ve) *)p.v + sequence.v() + where.kv_head * p.v_sh);
//| end
  const long long k_stride = p.k_ss * (long long)sizeof(element), v_stride = p.v_ss * (long long)sizeof($(ve));

//| if p.has_pages then
  // The pages of the blocks that are loaded next, found while the ones before are.
  BlockPages k_pages = look_up(p, table, $(pr.later(0, "range.block_hi")), range.key_lo, range.key_hi), v_pages = k_pages;

//| end
//| local next = p.has_pages and pr.scans and ", int next" or ""
//| if l.key_scales then
  const float *const key_scales = k_scales_of(p, sequence, where.kv_head);
  const u32 scales_at = shared_address(smem) + SMEM_SCALES;
//| end
  auto load_k = [&](int block, int stage$(next)) {
    if (block < range.block_lo) return;
    const int key = block * BC;
//| if l.key_scales then
    // Those of keys that are not read are 0, as the keys are.
#pragma unroll
    for (int i = (int)threadIdx.x; i < (BC + THREADS - 1) / THREADS * THREADS; i += THREADS) {
      const bool read = i < BC && key + i >= range.key_lo && key + i <= range.key_hi;
//|   if p.has_pages then
      const int source = min(i, BC - 1) / RUN;
      const int page = __shfl_sync(~0u, k_pages.page, source), token = __shfl_sync(~0u, k_pages.token, source);
      if (i < BC)
        cp_async<4>(scales_at + (stage * BC + i) * 4, key_scales + page * p.k_scale_sb + (token + i % RUN) * p.k_scale_ss,
                    read && (u32)page < (u32)p.pages);
//|   else
      if (i < BC) cp_async<4>(scales_at + (stage * BC + i) * 4, key_scales + (key + i) * p.k_scale_ss, read);
//|   end
    }
//| end
//| if p.has_pages then
    load_pages<CHUNKS, false, D * (int)sizeof(element)>(k_tiles + stage * K_TILE, k_pages, k, k_page, k_stride, p.pages,
                                                        range.key_lo - key, range.key_hi - key);
    k_pages = look_up(p, table, $(pr.scans and "next" or "block - 1"), range.key_lo, range.key_hi);
//| else
    load_tile<BC, CHUNKS, false, D * (int)sizeof(element)>(k_tiles + stage * K_TILE, k + key * k_stride, k_stride,
                                                           range.key_lo - key, range.key_hi - key);
//| end
  };
  auto load_v = [&](int block, int stage$(next)) {
    if (block < range.block_lo) return;
    const int key = block * BC;
//| if p.has_pages then
    load_pages<CHUNKS_V, PAIRS_V, DV * (int)sizeof($(ve))>(v_tiles + stage * V_TILE, v_pages, v, v_page, v_stride, p.pages,
                                                             range.key_lo - key, range.key_hi - key);
    v_pages = look_up(p, table, $(pr.scans and "next" or "block - 1"), range.key_lo, range.key_hi);
//| else
    load_tile<BC, CHUNKS_V, PAIRS_V, DV * (int)sizeof($(ve))>(v_tiles + stage * V_TILE, v + key * v_stride, v_stride,
                                                                range.key_lo - key, range.key_hi - key);
//| end
  };

  float o[MB][VB][4];
  RowState state[MB][2];
#pragma unroll
  for (int m = 0; m < MB; m++) {
    state[m][0] = state[m][1] = {-infinity(), 0.f};
#pragma unroll
    for (int n = 0; n < VB; n++) o[m][n][0] = o[m][n][1] = o[m][n][2] = o[m][n][3] = 0.f;
  }

//| local unit = pr.unit_log2
//| if l.row_scaled then
  // What products of a row are multiplied by. Rows past the last are zeros.
  float scaled[MB][2]$(not pr.has_score and ", unit_log2[MB][2]" or "");
#pragma unroll
  for (int m = 0; m < MB; m++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int row = where.row + warp_row + m * 16 + h * 8 + at.g;
      const Row of = row_of(p, where, row);
      scaled[m][h] = row < row_count(p, sequence) ? score_scale_of(p, sequence, (int)of.head, (int)of.query, where.kv_head) : 1.f;
//|   if not pr.has_score then
      unit_log2[m][h] = scaled[m][h] * $(unit);
//|     unit = "unit_log2"
//|   end
    }
//| elseif l.scaled then
  const float scaled = score_scale_of(p, sequence, where.head, 0, where.kv_head);
//|   if not pr.has_score then
  const float unit_log2 = scaled * $(unit);
//|     unit = "unit_log2"
//|   end
//| end
//| indented(2, pr.begin_dropout)
//| if not pr.scans then
//|   indented(2, pr.begin_score, "where.head")
//|   indented(2, pr.begin_walk, "range")
//| end
  if (block >= range.block_lo) {
//| if c.pack == 1 then
    if (Share<CHUNKS>::row() < Share<CHUNKS>::STEP)
      for (int r = Share<CHUNKS>::row(); r < BR; r += Share<CHUNKS>::STEP) {
        const Row at = row_of(p, where, where.row + r);
        load_row<CHUNKS, false, D * (int)sizeof(element)>(q_tile, r, (const char *)(q + at.query * p.q_ss + at.head * p.q_sh),
                                                          where.row + r < row_count(p, sequence));
      }
//| else
    load_tile<BR, CHUNKS, false, D * (int)sizeof(element)>(
        q_tile, (const char *)(q + where.head * p.q_sh + where.row * p.q_ss), p.q_ss * (long long)sizeof(element), 0,
        row_count(p, sequence) - 1 - where.row);
//| end

    // Copies go in groups, in the order in which they are waited for; the constants below count the newer groups that may
    // still be under way.
//| local SK, SV = c.stages_k, c.stages_v
//| local wait_k, wait_v
//| local function before(i) return pr.later(i, i == 0 and "block" or "block - " .. i) end
//| local function after(i) return p.has_pages and pr.scans and ", " .. pr.later(i + 1) or "" end
//| if c.order == 2 then
//|   wait_k = SK - 2
//|   for i = 0, SK - 2 do
    load_k($(before(i)), $(i)$(after(i)));
    load_v($(before(i)), $(i)$(after(i)));
    cp_async_commit();
//|   end
//| else
//|   wait_k, wait_v = 2 * (SK - 1), 2 * (SV - 1)
//|   for i = -math.max(SK, SV - 1), -1 do
//|     if i + SV - 1 >= 0 then
    load_v($(before(i + SV - 1)), $(i + SV - 1)$(after(i + SV - 1)));
//|     end
//|     if i > -math.max(SK, SV - 1) then
    cp_async_commit();
//|     end
//|     if i + SK >= 0 then
    load_k($(before(i + SK)), $(i + SK)$(after(i + SK)));
    cp_async_commit();
//|     end
//|   end
//| end

    int stage_k = 0, stage_v = 0;  // of the block at hand
//| if c.q_regs == 1 then
    QFragments q_fragments;
    cp_async_wait<$(wait_k)>();
    __syncthreads();
    load_q(q_fragments, q_rows, at);
//| end

    // One block of keys. The barrier at its head tells that K has arrived for everyone and that everyone is through with the
    // buffers of the block before.
//| if p.align >= 4 then
    auto step = [&](auto masked) {
      constexpr bool MASKED = decltype(masked)::value;
//| else
    // Loads element by element are long: the masked blocks share the code of the others.
    auto step = [&](bool masked) {
      constexpr bool MASKED = true;  // some row may not have seen a key yet
//| end
      cp_async_wait<$(wait_k)>();
      __syncthreads();
//| if c.order == 2 then
      load_k($(pr.later(SK - 1, "block - (STAGES_K - 1)")), stage_k == 0 ? STAGES_K - 1 : stage_k - 1$(after(SK - 1)));
      load_v($(pr.later(SV - 1, "block - (STAGES_V - 1)")), stage_v == 0 ? STAGES_V - 1 : stage_v - 1$(after(SV - 1)));
      cp_async_commit();
//| else
      load_v($(pr.later(SV - 1, "block - (STAGES_V - 1)")), stage_v == 0 ? STAGES_V - 1 : stage_v - 1$(after(SV - 1)));
      cp_async_commit();
//| end
      float s[MB][NB][4];
//| local of_keys = l.key_scales and ", scales_at + stage_k * BC * 4" or ""
      scores(s, $(c.q_regs == 1 and "q_fragments" or "q_rows"), k_tiles + stage_k * K_TILE, at$(of_keys));
//| if l.scaled and pr.has_score then
#pragma unroll
      for (int m = 0; m < MB; m++)
#pragma unroll
        for (int n = 0; n < NB; n++)
#pragma unroll
          for (int i = 0; i < 4; i++) s[m][n][i] *= scaled$(l.row_scaled and "[m][i / 2]" or "");
//| end
//| if c.order == 0 then
      cp_async_wait<$(wait_v)>();
      __syncthreads();  // V has arrived, K is free
      load_k($(pr.later(SK, "block - STAGES_K")), stage_k$(after(SK)));
      cp_async_commit();
//| end
//| indented(6, pr.scoring, "apply_score<MASKED>(s, p, scored, where.row + warp_row, block, at);")
//| if p.align >= 4 then
      if constexpr (MASKED) apply_mask(s, p, sequence$(pr.ends_argument), where.row + warp_row, block, at);
//| else
      if (masked) apply_mask(s, p, sequence$(pr.ends_argument), where.row + warp_row, block, at);
//| end
      softmax(s, o, state, $(unit));
//| indented(6, pr.dropping, "drop(s, p, dropout, where, where.row + warp_row, block, at);")
      u32 probabilities[MB][P_STEPS][4];
      to_fragments(probabilities, s);
//| if c.order == 1 then
      cp_async_wait<$(wait_v)>();
      __syncthreads();  // V has arrived, K is free
      load_k($(pr.later(SK, "block - STAGES_K")), stage_k$(after(SK)));
      cp_async_commit();
//| end
      accumulate(o, probabilities, v_tiles + stage_v * V_TILE, at);
//| if SK > 1 then
      stage_k = stage_k == STAGES_K - 1 ? 0 : stage_k + 1;
//| end
//| if SV > 1 then
      stage_v = stage_v == STAGES_V - 1 ? 0 : stage_v + 1;
//| end
    };
//| if p.align >= 4 then
//|   pr.walk("range", "step")
//| else
//|   if pr.scans then
//|     pr.scan("step(code & 1);")
//|   else
    for (; block >= range.block_lo; block--) step($(pr.is_cut("range")));
//|   end
//| end
    cp_async_wait<0>();
  }
//| if l.scaled and not pr.has_score then
  // Maxima of products, not of sums of numbers.
#pragma unroll
  for (int m = 0; m < MB; m++)
#pragma unroll
    for (int h = 0; h < 2; h++)
      if (state[m][h].m != -infinity()) state[m][h].m *= scaled$(l.row_scaled and "[m][h]" or "");
//| end
//| if l.integer and p.v_scale == 1 then
  const float v_scale = v_scale_of(p, sequence, where.kv_head);
#pragma unroll
  for (int m = 0; m < MB; m++)
#pragma unroll
    for (int n = 0; n < VB; n++)
#pragma unroll
      for (int i = 0; i < 4; i++) o[m][n][i] *= v_scale;
//| end
//| if l.parts then
  if (where.parts > 1) {
    store_part(p, where, sequence, o, state, warp_row);
    return;
  }
//| end
  store_output(p, sequence, where, o, state, shared_address(smem), at.g, at.t);
}
//| if l.passes then

// All columns of a tile's O, in passes: to each, V and O begin at its own first column.
__device__ __forceinline__ void attend_in_passes(const Params &p, const Tile &where, unsigned char *smem) {
#pragma unroll 1
  for (int pass = 0; pass < PASSES; pass++) {
    const int column = min(pass * DV, COLUMNS - DV);
    Params at = p;
    at.v = (element *)p.v + column;
    at.o = (output *)p.o + column;
    if (pass > 0) __syncthreads();  // everyone is through with the pass before
//| if l.parts then
    Tile own = where;
    own.number = where.number * PASSES + pass;  // columns of a pass are a tile of their own, where parts lie
    attend(at, own, smem);
//| else
    attend(at, where, smem);
//| end
  }
}
//| end
//| if l.passes and not p.has_lengths then

extern "C" __global__ void __launch_bounds__(THREADS, $(c.ctas)) fa_fwd(const __grid_constant__ Params p) {
  extern __shared__ __align__(128) unsigned char smem[];
  attend_in_passes(p, tile_of(p, $(wk.block)), smem);
}
//| end
//| if p.has_lengths then

// The grid stays the same whatever the lengths. Its blocks take tiles back and forth, so that one with a long tile gets a short one next.
extern "C" __global__ void __launch_bounds__(THREADS, $(c.ctas)) fa_fwd(const __grid_constant__ Params p) {
  extern __shared__ __align__(128) unsigned char smem[];
#pragma unroll 1
//| wk.each("rounds", { cast = "(int)" }, function(number)
    TileOrder order(p);  // made again: its registers are needed between
    const Tile where = order.tile($(number));
    if (where.row < 0) break;
    if (round > 0) __syncthreads();  // everyone is through with the tile before
    $(l.passes and "attend_in_passes" or "attend")(p, where, smem);
//| end)
}
//| end
//| if l.split then

// Blocks take parts of tiles back and forth, so that one with a long part gets a short one next.
extern "C" __global__ void __launch_bounds__(THREADS, $(c.ctas)) fa_fwd(const __grid_constant__ Params p) {
  extern __shared__ __align__(128) unsigned char smem[];
  const Parts parts = parts_of_launch(p);
#pragma unroll 1
//| wk.each("rounds", { number = "at", total = "parts.total()", cast = "(int)" }, function()
    if (round > 0) __syncthreads();  // everyone is through with the part before
    attend(p, tile_of(p, parts, at), smem);
//| end)
}
//|   if l.merges then

//|     include "work/split_merge.cu"
//|   end
//| end
