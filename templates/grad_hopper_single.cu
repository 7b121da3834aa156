// A warpgroup alone with 64 keys. dK is issued together with S and dP of the next block; the exponentials run beside dP, dS beside dV.
__device__ __forceinline__ void consume_blocks(const Params &p, u32 smem, const Unit &unit, const Sequence &sequence, int key0,
                                               const QueryBlocks &blocks, int wg) {
  const int key = key0 + wg * 64;
  const u32 k_tile = smem + wg * K_TILE, v_tile = smem + SMEM_V + wg * V_TILE;
  const u32 ds_buffers = smem + SMEM_DS + wg * (DS_BUFS * (BR / 64) * DS_TILE);
  const QueryBlocks own = query_blocks(sequence, key, 64);
  Ring<STAGES> ring;
  GradScores grad_s;
  float dk[NK], dv[NV];
#pragma unroll
  for (int i = 0; i < NK; i++) dk[i] = 0.f;
#pragma unroll
  for (int i = 0; i < NV; i++) dv[i] = 0.f;

  // Blocks of queries that only the other warpgroup's keys are seen by.
  auto skip = [&](int n) {
#pragma unroll 1
    for (; n > 0; n--) {
      mbarrier_wait(q_full(smem, ring.at), ring.parity);
      release(q_empty(smem, ring.at));
      mbarrier_wait(grad_o_full(smem, ring.at), ring.parity);
      release(grad_o_empty(smem, ring.at));
      ring.next();
      turn_wait(wg);
      turn_pass(wg);
    }
  };

//| if l.turns then
  if (wg == 1) turn_pass(wg);  // the first warpgroup begins
//| end
  if (blocks.lo <= blocks.hi) {
    if (own.lo <= own.hi) mbarrier_wait(k_full(smem), 0), mbarrier_wait(v_full(smem), 0);
//| if c.held > 0 then
    u32 k[(D + 15) / 16 * 4];
    if (own.lo <= own.hi) hold_rows(k, k_tile);
//| end
//| if c.held > 1 then
    u32 v[(DV + 15) / 16 * 4];
    if (own.lo <= own.hi) hold_rows(v, v_tile);
//| end
#pragma unroll 1
    for (int member = 0; member < p.group; member++) {
      if (own.lo > own.hi) {
        skip(blocks.hi - blocks.lo + 1);
        continue;
      }
      skip(own.lo - blocks.lo);
      float s[NS], dp[NS];
      u32 a[NS / 2];  // P, then dS
      auto issue_next = [&] {
        mbarrier_wait(q_full(smem, ring.at), ring.parity);
        wgmma_fence();
        issue_dots<D>(s, $(c.held > 0 and "k" or "k_tile"), smem + SMEM_Q + ring.at * Q_TILE);
        wgmma_commit();
        mbarrier_wait(grad_o_full(smem, ring.at), ring.parity);
        wgmma_fence();
        issue_dots<DV>(dp, $(c.held > 1 and "v" or "v_tile"), smem + SMEM_GRAD_O + ring.at * GRAD_O_TILE);
        wgmma_commit();
      };
//| if p.has_dropout then
      const int number = unit.batch * p.hq + unit.kv_head * p.group + member;  // of the head among those of all sequences
      Kept kept = kept_of(p, number, key, own.lo * BR);
//| end
      grad_s.begin(p, unit, member, own.lo, key / 64);
      issue_next();
#pragma unroll 1
      for (int block = own.lo;; block++) {
        const u32 rows = smem + SMEM_ROWS + ring.at * BR * 8, q_tile = smem + SMEM_Q + ring.at * Q_TILE;
        const u32 grad_o_tile = smem + SMEM_GRAD_O + ring.at * GRAD_O_TILE;
        wgmma_wait<1>(s);  // and dK of the block before
        if (block > own.lo) release(q_empty(smem, (ring.at + STAGES - 1) % STAGES));
        probabilities(s, p, sequence, rows, key, block * BR);
        pack_rows(a, s);
//| if p.has_dropout then
        drop(a, kept);
//| end
        wgmma_fence(a);
        issue_sums(dv, a, grad_o_tile);
        wgmma_commit();
        wgmma_wait<1>(dp);
//| if p.has_dropout then
        drop(dp, kept, p.keep_scale);
//| end
        grad_scores(dp, s, rows);
        wgmma_wait<0>(dp);  // dV: P makes room for dS
        pack_rows(a, dp);
        release(grad_o_empty(smem, ring.at));
//| if p.has_dropout then
        kept = kept_of(p, number, key, (block + 1) * BR);  // S and dP are no longer in registers, and the other warpgroup has its turn
//| end
        turn_wait(wg);
        wgmma_fence(a);
        issue_sums(dk, a, q_tile);
        wgmma_commit();
        if (block == own.hi) break;
        ring.next();
        issue_next();
        turn_pass(wg);
        grad_s.store(p, ds_buffers, block, a);
      }
      turn_pass(wg);
      grad_s.store(p, ds_buffers, own.hi, a);
      wgmma_wait<0>(dv);
      wgmma_wait<0>(dk);
      release(q_empty(smem, ring.at));
      ring.next();
      skip(blocks.hi - own.hi);
    }
    if (threadIdx.x % 32 == 0) bulk_wait();
  }
  store_keys(p, dk, dv, wg);
}
