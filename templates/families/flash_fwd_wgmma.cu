//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
//| if not l.few_layout and not l.split then
// fagen $(version), flash attention forward on wgmma and TMA: O = softmax(scale Q K^T, masked) V and LSE.
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

//| end
// ---- the problem ----
constexpr int D = $(p.d);    // head_dim of Q and K
constexpr int DV = $(p.dv);  // head_dim of V and O
typedef unsigned short element;  // $(p.dtype)
//| if p.o == "fp32" then
typedef float output;
//| else
typedef unsigned short output;  // $(p.o)
//| end

// ---- the config ----
//| local sharing = c.cluster > 1 and not l.near  -- blocks of a cluster share K and V, or are parts of one tile
//| if not sharing then
constexpr int BR = $(c.br);   // rows of Q per block
//|   if l.near then
constexpr int CLUSTER = $(c.cluster);  // blocks that are the parts of a tile
//|   end
constexpr int BC = $(c.bc);   // keys per iteration
//|   if l.shared then
constexpr int WGS = 1, CONSUMERS = 2;  // 64 rows, and the consumer warpgroups that share them
//|   else
constexpr int WGS = BR / 64;  // consumer warpgroups, 64 rows each
//|   end
//| else
constexpr int CLUSTER = $(c.cluster);           // blocks that share K and V: each loads a part and sends it to all
constexpr int BR = $(c.br) * CLUSTER;     // rows of Q per cluster
constexpr int BC = $(c.bc);               // keys per iteration
//|   if l.shared then
constexpr int WGS = 1, CONSUMERS = 2;  // 64 rows of a block, and the consumer warpgroups that share them
//|   else
constexpr int WGS = BR / 64 / CLUSTER;  // consumer warpgroups of a block, 64 rows each
//|   end
//| end
constexpr int THREADS = 128 * ($(l.shared and "CONSUMERS" or "WGS") + 1);
constexpr int STAGES_K = $(c.stages_k);  // buffers of K
constexpr int STAGES_V = $(c.stages_v);  // buffers of V
constexpr int Q_BUFS = $(c.q_bufs);    // buffers of Q
//| if l.consumer > l.regs then
constexpr int PRODUCER_REGISTERS = $(l.feeder), CONSUMER_REGISTERS = $(l.consumer);  // per thread, of $(l.regs) at the launch
//| end
//| if c.rescale > 0 then
// Lazy rescaling: a row's m may be below the true maximum by LAG in log2 units. Probabilities then reach 2^LAG, and O and l, which share
// m, need no rescaling until some row of the warp exceeds it. The result is the same softmax.
constexpr float LAG = $(c.rescale >= 2 and 8 or 0);
//| end
//| if c.exp > 0 then
constexpr int EXP_SHARE = $(c.exp);  // one exponential in so many is a polynomial on the FMA units
//| end

// ---- what follows from them ----
constexpr int BOX = $(c.box), ROW = BOX * 2;              // columns of a box in shared memory, bytes of its rows
constexpr int BOXES = $(l.boxes), BOXES_V = $(l.boxes_v);          // of a row of Q and K, of V
constexpr int Q_TILE = 64 * BOXES * ROW;                // of one warpgroup
//| if l.halves then
constexpr int HALF_TILE = BC * BOXES / 2 * ROW;  // of K or of V: the ring has STAGES_K of them
constexpr int HALF_BARRIERS = $(l.half_barriers);  // the first of those for the second warpgroup's
//| elseif l.v_in_k then
constexpr int K_TILE = BC * BOXES * ROW, V_TILE = K_TILE;  // V is the first boxes of K's rows
//| else
constexpr int K_TILE = BC * BOXES * ROW, V_TILE = BC * BOXES_V * ROW;
//| end
// Offsets in dynamic shared memory, Q at 0, $(l.bytes) bytes in all.
constexpr int SMEM_K = $(l.k), SMEM_V = $(l.v_in_k and "SMEM_K" or l.v), SMEM_BARRIERS = $(l.barriers);
//| if l.shared then
constexpr int SMEM_EXCHANGE = $(l.exchange);
//| end
//| if pr.keeps_ends then
constexpr int SMEM_ENDS = $(l.row_ends);
//| end
//| if pr.scans then
constexpr int SMEM_CODES = $(l.codes);
//| end
//| if l.joined then
// Buffers of K and V hold groups of eight rows, whose boxes of columns lie side by side or, where there is no such map, rows of box after
// box: bytes from a group to the next, and from a box to the next.
constexpr int GROUP = 8 * ROW;
constexpr int K_GROUP = $(l.joined_k and "BOXES * GROUP" or "GROUP"), K_BOX = $(l.joined_k and "GROUP" or "BC * ROW");
constexpr int V_GROUP = $(l.joined_v and "BOXES_V * GROUP" or "GROUP"), V_BOX = $(l.joined_v and "GROUP" or "BC * ROW");
//| end
//| if c.o_path > 0 then
constexpr int O_TILE = 64 * BOXES_V * ROW;  // of one warpgroup
//| end
//| if c.o_path == 2 then
constexpr int SMEM_O = $(l.o);
//| end
//| if (l.q_held or 0) > 0 then
constexpr int HELD = $(l.q_held);  // boxes of Q, the last of a row, that registers hold: products read the others in shared memory
//| end
constexpr int NS = BC / 2, NO = $(l.o_regs);  // registers of S and of O per thread
//| if l.parts then
//|   if l.shared then
constexpr int COLUMNS = BOXES_V * BOX, COLS = COLUMNS;  // of O: a warpgroup has 2 NO of them
constexpr int LEFT = (COLUMNS - 2 * NO) / BOX;  // boxes of V that the first warpgroup alone multiplies by
constexpr int LEFT_BYTES = LEFT * BC * ROW;
//|     if l.v_in_k then
constexpr int OF_V = $(l.tail_barriers and "BOXES_V" or "BOXES"), OF_V_BYTES = OF_V * BC * ROW;  // boxes that S and P V have in common
//|     end
//|     if not l.v_in_k then
constexpr int REST_BARRIERS = $(l.rest_barriers);  // the first of those for the others
//|     end
//|   else
constexpr int COLS = NO * 2;                      // of O, rounded up
//|   end
constexpr int PART_TILES = $(l.part_tiles);  // parts of tiles that a thread block has room for in the workspace
//| end

//| include "machine/prelude.cu"

//| include "machine/hopper.cu"
//| include "machine/hopper_forward.cu"

//| include "pairs/sequence.cu"

//| include "pairs/mask.cu"

//| if pr.masks then
//|   include "pairs/mask_lines.cu"

//| end
//| include "work/tile_order.cu"

//| if pr.masks and not l.runs then
//|   include "pairs/mask_line_words.cu"
//| end

//| include "tiles/softmax.cu"

//| include "wgmma/hopper_barriers.cu"
//| if l.near or l.draw_barriers then

//|   include "machine/cluster_barrier.cu"
//| end
//| if l.near then

//|   include "work/near_parts.cu"
//| end
//| pr.codes()
//| include "work/hopper_scheduler.cu"

//| if p.has_lengths then
//| include "wgmma/hopper_out_of_range.cu"

//| end
//| include "wgmma/hopper_producer.cu"

//| include "wgmma/hopper_products.cu"

//| if pr.staged then
//|   include "wgmma/hopper_staged.cu"

//| elseif pr.reads_ahead then
//|   include "wgmma/hopper_ahead.cu"

//| end
//| if pr.brings_mask then
//|   include "wgmma/hopper_masks.cu"

//| end
//| include "wgmma/hopper_mask.cu"

//| include "wgmma/hopper_softmax.cu"

//| pr.dropping_by("pairs/philox.cu", "wgmma/hopper_dropout.cu")
//| include "pairs/exact_rows.cu"

//| include "wgmma/hopper_store.cu"
//| if l.parts and not l.near then

//|   include "work/part_rows.cu"
//|   if l.shared and l.counts then

//|     include "work/held_parts.cu"
//|   end
//| end

//| include(l.shared and "wgmma/wide_consumer.cu" or "wgmma/hopper_consumer.cu")
//| if l.merges then

//|   include(l.shared and "work/split_merge_tiles.cu" or "work/split_merge.cu")
//| end

extern "C" __global__ void __launch_bounds__(THREADS, $(c.ctas))
    fa_fwd(const __grid_constant__ Params p$(l.split and "" or ", const __grid_constant__ TensorMap q_map"),
           const __grid_constant__ TensorMap k_map,
           const __grid_constant__ TensorMap v_map$(c.o_path > 0 and ", const __grid_constant__ TensorMap o_map" or "")$(pr.box_maps())) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const u32 smem = shared_address(shared);
  const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
//| local all = sharing and " * CLUSTER" or ""
  if (warp == 0) {  // a lane for each $(l.brief and "barrier" or "buffer")
//| if l.brief then
//|   -- Barriers that arrive as often, in their order; of the last kind are all that are left.
//|   local stages = l.staged and pr.produces_scores and l.staged.stages or 0
//|   local kinds = {
//|     { c.stages_k, "1" }, { c.stages_k, "4 * WGS" }, { c.stages_v, "1" }, { c.stages_v, "4 * WGS" },
//|     { c.q_bufs * l.wgs, "1" }, { c.q_bufs * l.wgs, "4" },
//|     { 2, "1" }, { 2, "4 * WGS + " .. (stages > 0 and 3 or 2) }, { 1, "1" },
//|   }
//|   if stages > 0 then kinds[#kinds + 1], kinds[#kinds + 2] = { stages, "SCORE_ARRIVALS" }, { stages, "4 * WGS" } end
//|   local all, count = 0, ""
//|   for i, kind in ipairs(kinds) do
//|     all = all + kind[1]
//|     count = count .. (i < #kinds and ("i < %d ? %s : "):format(all, kind[2]) or kind[2])
//|   end
#pragma unroll 1
    for (int i = lane; i < $(all); i += 32)
      mbarrier_init(barrier(smem, i), $(count));
//| else
//| local consumers = l.shared and "CONSUMERS" or "WGS"
//| local of_k = l.shared and "4" or "4 * WGS"
//| local of_rest = sharing and "(LEFT * CONSUMERS == BOXES_V ? 4 : 8) * CLUSTER" or "LEFT * CONSUMERS == BOXES_V ? 4 : 8"
    if (lane < STAGES_K) mbarrier_init(k_full(smem, lane), 1), mbarrier_init(k_empty(smem, lane), $(of_k)$(all));
//| if l.v_in_k then
    if (lane < STAGES_K)
      mbarrier_init(rest_full(smem, lane), 1), mbarrier_init(rest_empty(smem, lane), $(of_rest));
//|   if l.tail_barriers then
    if (lane < STAGES_K) mbarrier_init(tail_full(smem, lane), 1), mbarrier_init(tail_empty(smem, lane), $(of_k)$(all));
//|   end
//| else
//|   local of_v = l.shared and "4" or "4 * " .. consumers
    if (lane < STAGES_V) mbarrier_init(v_full(smem, lane), 1), mbarrier_init(v_empty(smem, lane), $(of_v)$(all));
//|   if l.shared then
    if (lane < STAGES_V)
      mbarrier_init(rest_full(smem, lane), 1), mbarrier_init(rest_empty(smem, lane), $(of_rest));
//|   end
//| end
    if (lane < Q_BUFS * WGS) mbarrier_init(q_full(smem, 0, lane), $(l.q_warps_rows or 1)), mbarrier_init(q_empty(smem, 0, lane), 4);
//| if l.persistent then
//|   local others = (p.has_lengths or pr.produces_scores or pr.brings_mask or (l.q_warps or 1) > 1) and 3 or 2
//|   if l.shared and not l.apart then others = others - 1 end
//|   wk.begin_slots("4 * " .. consumers .. " + " .. others, true)
    if (lane == 0) mbarrier_init(tile_loaded(smem), 1);
//|   if p.has_lengths then
    if (lane < STAGES_V) mbarrier_init(v_landed(smem, lane), 1);
//|     if not l.split then
    if (lane < Q_BUFS * WGS) mbarrier_init(q_landed(smem, 0, lane), 1);
//|     end
//|   end
//| end
//| if l.halves then
    if (lane < STAGES_K) mbarrier_init(half_full(smem, 1, lane), 1);
//| end
//| if l.draw_barriers then
    if (lane == 0) mbarrier_init(draw_full(smem), 1), mbarrier_init(draw_empty(smem), CLUSTER - 1);
//| end
//| if l.near then
    if (lane == 0)
      mbarrier_init(parts_there(smem), 4 * CONSUMERS * CLUSTER),
          mbarrier_init(parts_read(smem), 4 * CONSUMERS * CLUSTER + $(l.apart and 2 or 1));
//| end
//| if pr.produces_scores then
    if (lane < STAGES_SCORE) mbarrier_init(score_full(smem, lane), SCORE_ARRIVALS), mbarrier_init(score_empty(smem, lane), 4 * WGS);
//| end
//| if pr.brings_mask then
    if (lane < STAGES_MASK) mbarrier_init(mask_full(smem, lane), MASK_ARRIVALS), mbarrier_init(mask_empty(smem, lane), 4 * WGS);
//| end
//| end
    fence_barrier_init();
  }
//| if c.cluster > 1 then
  cluster_sync();
//| else
  __syncthreads();
//| end
  if (warp < 4) {
//| if l.consumer > l.regs then
    registers_give<PRODUCER_REGISTERS>();
//| end
//| if p.has_pages or pr.scans then
    if (warp == 0) produce_keys(p, k_map, v_map, smem, lane);
//| else
    if (warp == 0 && lane == 0) produce_keys$(l.apart and "<false>" or "")(p, k_map, v_map, smem);
//| end
//| if l.apart then
    if (warp == 1 && lane == 0) produce_keys<true>(p, k_map, v_map, smem);
//| elseif l.shared then
//| elseif (l.q_warps or 1) > 1 then
    if (warp % 2 == 1) produce_queries(p, smem, lane, warp / 2);
//| elseif l.split then
    if (warp == 1) produce_queries(p, smem, lane);
//| else
    if (warp == 1 && lane == 0) produce_queries(p, q_map, smem);
//| end
//| if l.persistent then
    if (warp == 2) schedule_tiles(p, smem, lane);
//|   if p.has_lengths then
    if (warp == 3) clear_out_of_range_rows(p, smem, lane);
//|   end
//| else
    if (warp == 2) grid_over();
//| end
//| if pr.produces_scores then
    if (warp == 3$(l.staged.by_thread and " && lane == 0" or "")) produce_scores(p, smem$(pr.box_arguments()));
//| end
//| if pr.brings_mask then
    if (warp == 3) produce_masks(p, smem, lane);
//| end
  } else {
//| if l.consumer > l.regs then
    registers_take<CONSUMER_REGISTERS>();
//| end
    grid_wait();
    consume(p, $(c.o_path > 0 and "o_map, " or "")smem, warp / 4 - 1);
  }
//| if c.cluster > 1 then
  cluster_sync();  // no block leaves while another may still write or arrive here
//| end
}
