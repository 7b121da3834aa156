//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// fagen $(version), attention of Q, K$(l.wide and " of 8 bits and V of 16" or " and V of 8 bits") on wgmma and TMA: O = softmax(scale Q K^T, masked) V and LSE.
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

// ---- the problem ----
constexpr int D = $(p.d);    // head_dim of Q and K
constexpr int DV = $(p.dv);  // head_dim of V and O
typedef $(l.integer and "signed" or "unsigned") char element;  // $(p.dtype)
//| if l.wide then
typedef unsigned short value;  // $(p.wide_values), of V
//| end
//| if p.o == "e4m3" then
typedef unsigned char output;
//| elseif p.o == "fp32" then
typedef float output;
//| else
typedef unsigned short output;  // $(p.o)
//| end

// ---- the config ----
constexpr int BR = $(c.br);   // rows of Q per block
constexpr int BC = $(c.bc);   // keys per iteration
constexpr int WGS = BR / 64;  // consumer warpgroups, 64 rows each
constexpr int THREADS = 128 * (WGS + 1);
constexpr int STAGES_K = $(c.stages_k);  // buffers of K
constexpr int STAGES_V = $(c.stages_v);  // buffers of V
//| if l.transposes then
constexpr int STAGES_T = $(c.stages_t);  // buffers of V transposed
//| end
//| if l.turned then
constexpr int TRANSPOSERS = $(l.before and 8 or 2);  // warps
//| end
constexpr int Q_BUFS = $(c.q_bufs);    // buffers of Q
//| if l.first_keys then
constexpr int FIRST = $(l.first_keys);  // keys whose P V is issued before the exponentials of the others
//| end
//| if c.exp > 0 then
constexpr int EXP_SHARE = $(c.exp);  // one exponential in so many is found by multiply-adds
//| end
//| if l.consumer > l.regs then
constexpr int PRODUCER_REGISTERS = $(c.feeder), CONSUMER_REGISTERS = $(l.consumer);  // per thread, of $(l.regs) at the launch
//| end

// ---- what follows from them ----
constexpr int BOX = $(c.box), ROW = BOX;                // columns of a box in shared memory, bytes of its rows
//| if l.wide then
constexpr int VALUE_BOX = $(l.value_box), VALUE_ROW = 2 * VALUE_BOX;  // of V
//| else
constexpr int KEY_BOX = $(l.key_box);                   // keys of a box of V transposed, bytes of its rows
//| end
constexpr int BOXES = $(l.boxes), BOXES_V = $(l.boxes_v);          // of Q and K, of V
constexpr int COLUMNS = $(l.columns);                   // of O, rounded up
constexpr int SUM = $(l.sum_columns);                   // of O, that are summed up at a time
constexpr int Q_TILE = 64 * BOXES * ROW;                // of one warpgroup
constexpr int K_TILE = BC * BOXES * ROW, V_TILE = $(l.wide and "BC * BOXES_V * VALUE_ROW" or l.transposes and "BC * BOXES_V * ROW" or l.before and l.ones and "(COLUMNS + 8) * BC" or "COLUMNS * BC");
// Offsets in dynamic shared memory, Q at 0, $(l.bytes) bytes in all.
constexpr int SMEM_K = $(l.k), SMEM_V = $(l.v), SMEM_BARRIERS = $(l.barriers);
//| if l.key_scales then
constexpr int SMEM_SCALES = $(l.key_scales);  // of K's tokens, for each buffer of K
//| end
//| if l.turned and l.ones then
constexpr int TURNED = COLUMNS + 8;  // rows of V transposed: eight of ones follow the first SUM columns
//| end
//| if l.transposes then
constexpr int SMEM_T = $(l.t), T_TILE = $(l.ones and "TURNED" or "COLUMNS") * BC;
//| end
constexpr int NS = BC / 2, NO = COLUMNS / 2, NT = SUM / 2;  // registers of S, of O and of what a block adds to it, per thread
//| if l.parts then
constexpr int COLS = COLUMNS;
constexpr int PART_TILES = $(l.part_tiles);  // parts of tiles that a thread block has room for in the workspace
//| end

//| include "machine/prelude.cu"

//| include "machine/hopper.cu"
//| include "machine/hopper_eight.cu"

//| include "pairs/sequence.cu"

//| include "tiles/eight_scales.cu"

//| include "pairs/mask.cu"

//| include "work/tile_order.cu"

//| include "tiles/softmax.cu"

//| include "wgmma/eight_barriers.cu"

//| include "work/hopper_scheduler.cu"

//| if p.has_lengths then
//|   pr.own_rows()

//|   include "tiles/clear_rows.cu"

//| end
//| if l.before then
//| include "wgmma/eight_before.cu"

//| end
//| include "wgmma/eight_producer.cu"

//| include "wgmma/hopper_mask.cu"

//| include "pairs/exact_rows.cu"

//| include "wgmma/eight_store.cu"
//| if l.parts then

//|   include "work/part_rows.cu"
//| end

//| include "wgmma/eight_consumer.cu"

extern "C" __global__ void __launch_bounds__(THREADS, $(c.ctas))
//| if l.before then
    fa_fwd(const __grid_constant__ Params p, const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map) {
//| else
    fa_fwd(const __grid_constant__ Params p, const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
           const __grid_constant__ TensorMap v_map) {
//| end
  extern __shared__ __align__(1024) unsigned char shared[];
  const u32 smem = shared_address(shared);
  const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
#pragma unroll
    for (int i = 0; i < STAGES_K; i++) mbarrier_init(k_full(smem, i), $(l.key_scales and 2 or 1)), mbarrier_init(k_empty(smem, i), 4 * WGS);
#pragma unroll
    for (int i = 0; i < STAGES_V; i++)
      mbarrier_init(v_full(smem, i), 1), mbarrier_init(v_empty(smem, i), $(l.transposes and "TRANSPOSERS" or "4 * WGS"));
//| if l.transposes then
#pragma unroll
    for (int i = 0; i < STAGES_T; i++) mbarrier_init(turned_full(smem, i), TRANSPOSERS), mbarrier_init(turned_empty(smem, i), 4 * WGS);
//| end
#pragma unroll
    for (int i = 0; i < Q_BUFS * WGS; i++) mbarrier_init(q_full(smem, 0, i), 1), mbarrier_init(q_empty(smem, 0, i), 4);
//| wk.begin_slots("4 * WGS + " .. (l.transposes and "1 + TRANSPOSERS" or l.key_scales and "3" or "2"))
    mbarrier_init(tile_loaded(smem), 1);
//| if l.idle_barrier then
    mbarrier_init(idle_barrier(smem), 1);
//| end
    fence_barrier_init();
  }
//| if l.ones and not l.before then
  constexpr u32 ONES = $(p.dtype == "e4m3" and "0x38383838" or "0x3c3c3c3c");  // four in V's type
#pragma unroll 1
  for (int i = threadIdx.x; i < STAGES_T * BC / 2; i += THREADS) {
    const int stage = i / (BC / 2), box = i % (BC / 2) / (KEY_BOX / 2), at = i % (KEY_BOX / 2);
    store_shared(smem + SMEM_T + stage * T_TILE + (box * TURNED + SUM) * KEY_BOX + at * 16,
                 make_uint4(ONES, ONES, ONES, ONES));
  }
  fence_async();
//| end
  __syncthreads();
  if (warp < 4) {
//| if l.consumer > l.regs then
    registers_give<PRODUCER_REGISTERS>();
//| end
//| if p.has_pages then
    if (warp == 0) produce_keys(p, k_map, v_map, smem, lane);
//| else
    if (warp == 0 && lane == 0) produce_keys(p, k_map, $(l.before and "" or "v_map, ")smem);
//| end
//| if l.transposes then
    if (warp % 2 == 1) produce_transposed(p, q_map, smem, warp / 2, lane);
//| else
    if (warp == 1 && lane == 0) produce_queries(p, q_map, smem);
//| end
    if (warp == 2) schedule_tiles(p, smem, lane);
//| if l.key_scales then
    if (warp == 3) produce_scales(p, smem, lane);
//| end
  } else {
//| if l.consumer > l.regs then
    registers_take<CONSUMER_REGISTERS>();
//| end
    grid_wait();
    consume(p, smem, warp / 4 - 1);
  }
}
