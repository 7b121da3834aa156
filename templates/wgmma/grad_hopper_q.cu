//| needs "c.spread l.dk l.q_consumer l.q_feeder l.spread"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// ---- dQ of a tile of queries: dS, as the kernel of dK and dV left it, times the keys that they see ----
__device__ __forceinline__ u32 q_barrier(u32 smem, int index) { return smem + SMEM_Q_BARRIERS + index * 8; }
__device__ __forceinline__ u32 stage_full(u32 smem, int stage) { return q_barrier(smem, stage); }
//| if p.has_lengths then
__device__ __forceinline__ u32 stage_landed(u32 smem, int stage) { return q_barrier(smem, 2 * Q_STAGES + stage); }  // has rows of others
//| end
__device__ __forceinline__ u32 stage_empty(u32 smem, int stage) { return q_barrier(smem, Q_STAGES + stage); }

//| local each = "int block = blocks.lo; block <= blocks.hi; block++"
//| local blocks_type = pr.marked and "Marks" or "KeyBlocks"
//| local of_group = pr.marked and "(own >> i & 1) != 0" or "own[i].has(block)"
//| if pr.marked then
//|   each = "int block = walk.next(blocks.words, read); block >= 0; block = walk.next(blocks.words, read)"
//| else
//|   pr.key_blocks()
//| end

//| if p.has_lengths then
// One warp: zeros over keys of others.
__device__ __forceinline__ void clear_foreign_keys(u32 smem, const Sequence &sequence, const $(blocks_type) &blocks, int lane) {
  Ring<Q_STAGES> ring;
  u32 parities = 0;  // of what lands: a bit for each stage
//| if pr.marked then
  MarkWalk walk;
  auto read = [&](int n) { return by_vote(blocks.tiles_of<Q_GROUPS>(n)); };
//| end
#pragma unroll 1
  for ($(each), ring.next()) {
    const OwnRows own = own_rows(sequence, block);
    if (own.all()) continue;
    mbarrier_wait(stage_landed(smem, ring.at), parities >> ring.at & 1);
    parities ^= 1u << ring.at;
    clear_outside<64, BOXES>(smem + ring.at * Q_STAGE, own.first, own.end, lane);
    hand_on(stage_full(smem, ring.at), lane);
  }
}

//| end
extern "C" __global__ void __launch_bounds__(128 * (Q_GROUPS + 1), 1)
    fa_grad_q(const __grid_constant__ Params p, const __grid_constant__ TensorMap k_map) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const u32 smem = shared_address(shared);
  const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
//| local tile = pr.right and "(p.tiles - 1 - at.tile)" or "at.tile"
  const HeadTile at = $(wk.own_head_tile());
  const int row0 = $(tile) * QUERIES, member = at.head % p.members;
//| if p.has_lengths then
  grid_wait();
  if (threadIdx.x == 0) grid_over();
//| end
//| if l.spread then
  const int local = at.head / p.members, kv_head = (p.unit + local) % p.hkv;
//|   local heads = c.spread > 1 and ", p.members" or ""
  const Unit unit = {local * p.members, batch_of(p, p.unit + local), kv_head, kv_head * p.group + p.member$(heads)};
//| else
  const Unit unit = unit_of(p, at.head / p.members);
//| end
  const Sequence sequence = sequence_of(p, unit.batch);
//| if p.has_lengths then
  if (row0 >= sequence.sq()) return;
//| end
//| if pr.marked then
  const int head = first_head(p, unit) + member;
  const Marks blocks = marks_of_queries(p, sequence, head, row0, QUERIES);
//| else
  const KeyBlocks blocks = key_blocks(p, sequence, row0, QUERIES);
//| end
  if (threadIdx.x == 0) {
#pragma unroll
    for (int i = 0; i < Q_STAGES; i++) mbarrier_init(stage_full(smem, i), 1), mbarrier_init(stage_empty(smem, i), 4 * Q_GROUPS);
//| if p.has_lengths then
#pragma unroll
    for (int i = 0; i < Q_STAGES; i++) mbarrier_init(stage_landed(smem, i), 1);
//| end
    fence_barrier_init();
  }
  __syncthreads();
  if (warp < 4) {
    registers_give<$(l.q_feeder)>();
//| if p.has_lengths then
    if (warp == 1) clear_foreign_keys(smem, sequence, blocks, lane);
//| end
    if (warp != 0 || lane != 0) return;
//| if not pr.marked then
    KeyBlocks own[Q_GROUPS];
#pragma unroll
    for (int i = 0; i < Q_GROUPS; i++) own[i] = key_blocks(p, sequence, row0 + i * 64, 64);
//| end
    Ring<Q_STAGES> ring;
//| if pr.marked then
    MarkWalk walk;
    auto read = [&](int n) { return blocks.tiles_of<Q_GROUPS>(n); };
//| end
//| local landing, batch = "stage_full(smem, ring.at)", "map_batch"
//| if p.has_lengths then
//|   landing, batch = "own_rows(sequence, block).all() ? stage_full(smem, ring.at) : stage_landed(smem, ring.at)", "map_batch_k"
//| else
    grid_wait();
    grid_over();
//| end
#pragma unroll 1
    for ($(each)) {
      const u32 stage = smem + ring.at * Q_STAGE, full = $(landing);
//| if pr.marked then
      const u32 own = blocks.lines_of<Q_GROUPS>(walk.word, walk.bit);
      const int tiles = __popc(own);
//| else
      int tiles = 0;
#pragma unroll
      for (int i = 0; i < Q_GROUPS; i++) tiles += $(of_group);
//| end
      mbarrier_wait(stage_empty(smem, ring.at), ring.parity ^ 1);
      mbarrier_expect(full, K_TILE + tiles * DS_TILE);
#pragma unroll
      for (int box = 0; box < BOXES; box++)
        tma_load(stage + box * 64 * ROW, k_map, full, box * BOX, sequence.map_key(block * 64), unit.kv_head, sequence.$(batch)());
#pragma unroll
      for (int i = 0; i < Q_GROUPS; i++)
        if ($(of_group))
          bulk_load(stage + K_TILE + i * DS_TILE, ds_tile(p, unit, member, row0 / 64 + i, block), DS_TILE, full);
      ring.next();
    }
  } else {
    registers_take<$(l.q_consumer)>();
    const int wg = warp / 4 - 1, row = row0 + wg * 64;
//| if pr.marked then
    const Marks own = blocks.line(wg);
    MarkWalk walk;
    u32 own_tiles = 0;  // of the word at hand
    auto read = [&](int n) {
      own_tiles = by_vote(own.tiles_of<1>(n));
      return by_vote(blocks.tiles_of<Q_GROUPS>(n));
    };
//| else
    const KeyBlocks own = key_blocks(p, sequence, row, 64);
//| end
    Ring<Q_STAGES> ring;
    u32 before = 0;  // the buffer of the product that is under way
    float dq[NK];
#pragma unroll
    for (int i = 0; i < NK; i++) dq[i] = 0.f;
//| if not p.has_lengths then
    grid_wait();
//| end
#pragma unroll 1
    for ($(each)) {
      const u32 stage = smem + ring.at * Q_STAGE;
      mbarrier_wait(stage_full(smem, ring.at), ring.parity);
      if ($(pr.marked and "(own_tiles >> walk.bit & 1) != 0" or "own.has(block)")) {
        const u32 ds = stage + K_TILE + wg * DS_TILE + warp % 4 * 512 + lane * 16;
        uint4 x[4];
#pragma unroll
        for (int i = 0; i < 4; i++) x[i] = load_shared_x4(ds + i * 2048);
        wgmma_wait<0>(dq);
        if (before != 0) release(before);
        u32 a[16];  // dS, 16 keys after 16
#pragma unroll
        for (int i = 0; i < 4; i++) {
          a[4 * i] = transpose(x[i].x), a[4 * i + 1] = transpose(x[i].z);
          a[4 * i + 2] = transpose(x[i].y), a[4 * i + 3] = transpose(x[i].w);
        }
        wgmma_fence(dq);
//| local asm = include("machine/asm_operands.lua")
//| local rows, keys = {}, {}
//| for i = 0, 3 do
//|   rows[#rows + 1] = asm.four("a", 4 * i)
//|   keys[#keys + 1] = ('"l"(descriptor<ROW>(place(stage) + across_rows(64 * ROW) + %d * 16 * ROW / 16))'):format(i)
//| end
        $(asm.products { to = "dq", n = l.dk, shape = asm.shape(p, l.dk * 2), a = rows, b = keys, tail = "1, 1, 1" })
        wgmma_commit();
        before = stage_empty(smem, ring.at);
      } else {
        // Its last buffer may be the one that the copies wait for: rows of another warpgroup see blocks further on.
        if (before != 0) {
          wgmma_wait<0>();
          release(before);
          before = 0;
        }
        release(stage_empty(smem, ring.at));
      }
      ring.next();
    }
    wgmma_wait<0>(dq);
    store_rows<D>(p, dq, $(pr.grad_scale), p.grad_q, sequence.grad_q() + row * p.grad_q_ss + (first_head(p, unit) + member) * p.grad_q_sh,
                  p.grad_q_ss, sequence.sq() - row);
  }
}
