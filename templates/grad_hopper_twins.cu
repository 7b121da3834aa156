// Two warpgroups with the same 64 keys: the first computes S, P and dV, and hands P to the second, which computes dP, dS and dK.
constexpr int P_FULL = 1, P_EMPTY = 2;  // named barriers of both

// P^T through shared memory, as the threads hold it: thread i of one warpgroup has what thread i of the other needs.
__device__ __forceinline__ u32 place_of_p(u32 smem) { return smem + SMEM_P + threadIdx.x % 128 * 16; }
__device__ __forceinline__ void hand_over(u32 smem, const float (&s)[NS]) {
#pragma unroll
  for (int n = 0; n < NS / 4; n++)
    store_shared(place_of_p(smem) + n * 2048, make_uint4(__float_as_uint(s[4 * n]), __float_as_uint(s[4 * n + 1]),
                                                         __float_as_uint(s[4 * n + 2]), __float_as_uint(s[4 * n + 3])));
}
__device__ __forceinline__ void take_over(u32 smem, float (&s)[NS]) {
#pragma unroll
  for (int n = 0; n < NS / 4; n++) {
    const uint4 x = load_shared_x4(place_of_p(smem) + n * 2048);
    s[4 * n] = __uint_as_float(x.x), s[4 * n + 1] = __uint_as_float(x.y);
    s[4 * n + 2] = __uint_as_float(x.z), s[4 * n + 3] = __uint_as_float(x.w);
  }
}

// S of the next block is issued behind dV.
__device__ __forceinline__ void consume_values(const Params &p, u32 smem, const Unit &unit, const Sequence &sequence, int key0,
                                               const QueryBlocks &blocks) {
  Ring<STAGES> ring;
  float dv[NV];
#pragma unroll
  for (int i = 0; i < NV; i++) dv[i] = 0.f;
  const int items = blocks.lo <= blocks.hi ? (blocks.hi - blocks.lo + 1) * p.group : 0;
  if (items > 0) {
    float s[NS];
    u32 a[NS / 2];
    mbarrier_wait(k_full(smem), 0);
    mbarrier_wait(q_full(smem, 0), 0);
    wgmma_fence(dv);
    issue_dots<D>(s, smem, smem + SMEM_Q);
    wgmma_commit();
    int block = blocks.lo;
//| if p.has_dropout then
    int number = unit.batch * p.hq + unit.kv_head * p.group;  // of the head at hand among those of all sequences
//| end
#pragma unroll 1
    for (int item = 0;; item++) {
      const u32 rows = smem + SMEM_ROWS + ring.at * BR * 8, grad_o_used = grad_o_empty(smem, ring.at);
//| if p.has_dropout then
      const Kept kept = kept_of(p, number, key0, block * BR);
//| end
      wgmma_wait<0>(s);
      probabilities(s, p, sequence, rows, key0, block * BR);
      release(q_empty(smem, ring.at));
      if (item > 0) named_wait(P_EMPTY, 256);
      hand_over(smem, s);
      named_arrive(P_FULL, 256);
      pack_rows(a, s);
//| if p.has_dropout then
      drop(a, kept);
//| end
      mbarrier_wait(grad_o_full(smem, ring.at), ring.parity);
      wgmma_fence(a);
      wgmma_fence(dv);
      issue_sums(dv, a, smem + SMEM_GRAD_O + ring.at * GRAD_O_TILE);
      wgmma_commit();
      ring.next();
//| if p.has_dropout then
      number += block == blocks.hi;
//| end
      block = block == blocks.hi ? blocks.lo : block + 1;
      if (item == items - 1) {
        wgmma_wait<0>(dv);
        release(grad_o_used);
        break;
      }
      mbarrier_wait(q_full(smem, ring.at), ring.parity);
      wgmma_fence();
      issue_dots<D>(s, smem, smem + SMEM_Q + ring.at * Q_TILE);
      wgmma_commit();
      wgmma_wait<1>();  // dV
      release(grad_o_used);
    }
  }
  const int keys = sequence.sk() - key0;
//| local keep_scale = p.has_dropout and "p.keep_scale" or "1.f"
  store_rows<DV>(p, dv, $(keep_scale), p.grad_v, sequence.grad_v() + key0 * p.grad_v_ss + unit.kv_head * p.grad_v_sh, p.grad_v_ss, keys);
}

// dP of the next block is issued behind dK.
__device__ __forceinline__ void consume_keys(const Params &p, u32 smem, const Unit &unit, const Sequence &sequence, int key0,
                                             const QueryBlocks &blocks) {
  Ring<STAGES> ring;
  GradScores grad_s;
  float dk[NK];
#pragma unroll
  for (int i = 0; i < NK; i++) dk[i] = 0.f;
  const int items = blocks.lo <= blocks.hi ? (blocks.hi - blocks.lo + 1) * p.group : 0;
  if (items > 0) {
    float dp[NS], s[NS];
    u32 b[NS / 2];
    mbarrier_wait(v_full(smem), 0);
    mbarrier_wait(grad_o_full(smem, 0), 0);
    wgmma_fence(dk);
    issue_dots<DV>(dp, smem + SMEM_V, smem + SMEM_GRAD_O);
    wgmma_commit();
    int block = blocks.lo, member = 0;
#pragma unroll 1
    for (int item = 0;; item++) {
      const u32 rows = smem + SMEM_ROWS + ring.at * BR * 8, q_used = q_empty(smem, ring.at);
      mbarrier_wait(q_full(smem, ring.at), ring.parity);
//| if p.has_dropout then
      const Kept kept = kept_of(p, unit.batch * p.hq + unit.kv_head * p.group + member, key0, block * BR);
//| end
      named_wait(P_FULL, 256);
      take_over(smem, s);
      wgmma_wait<0>(dp);
      release(grad_o_empty(smem, ring.at));
      if (item < items - 1) named_arrive(P_EMPTY, 256);
//| if p.has_dropout then
      drop(dp, kept, p.keep_scale);
//| end
      grad_scores(dp, s, rows);
      pack_rows(b, dp);
      wgmma_fence(b);
      wgmma_fence(dk);
      issue_sums(dk, b, smem + SMEM_Q + ring.at * Q_TILE);
      wgmma_commit();
      if (block == blocks.lo) grad_s.begin(p, unit, member, block, key0 / 64);
      grad_s.store(p, smem + SMEM_DS, block, b);
      ring.next();
      if (block++ == blocks.hi) block = blocks.lo, member++;
      if (item == items - 1) {
        wgmma_wait<0>(dk);
        release(q_used);
        break;
      }
      mbarrier_wait(grad_o_full(smem, ring.at), ring.parity);
      wgmma_fence();
      issue_dots<DV>(dp, smem + SMEM_V, smem + SMEM_GRAD_O + ring.at * GRAD_O_TILE);
      wgmma_commit();
      wgmma_wait<1>();  // dK
      release(q_used);
    }
    if (threadIdx.x % 32 == 0) bulk_wait();
  }
  const int keys = sequence.sk() - key0;
  store_rows<D>(p, dk, p.scale, p.grad_k, sequence.grad_k() + key0 * p.grad_k_ss + unit.kv_head * p.grad_k_sh, p.grad_k_ss, keys);
}

__device__ __forceinline__ void consume_blocks(const Params &p, u32 smem, const Unit &unit, const Sequence &sequence, int key0,
                                               const QueryBlocks &blocks, int wg) {
  if (wg == 0)
    consume_values(p, smem, unit, sequence, key0, blocks);
  else
    consume_keys(p, smem, unit, sequence, key0, blocks);
}
