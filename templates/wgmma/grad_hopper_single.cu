//| needs "c.held l.spread"
//| local pr = include("pairs/pairs.lua").of(p, l)
// A warpgroup alone with 64 keys. dK is issued together with S and dP of the next block; the exponentials run beside dP, dS beside dV.
__device__ __forceinline__ void consume_tile(const Params &p, u32 smem, const Unit &unit, const Sequence &sequence, int key0,
                                             const QueryBlocks &blocks, const TileQueue &queue, Ring<STAGES> &ring, Ring<1> &keys, int wg,
                                             int warp) {
  const int key = key0 + wg * 64;
  const u32 base = place(smem), q = base + SMEM_Q / 16, grad_o = base + SMEM_GRAD_O / 16;
//| if c.held < 2 then
  const u32 v = base + (SMEM_V + wg * V_TILE) / 16;
//| end
//| if c.held < 1 then
  const u32 k = base + wg * K_TILE / 16;
//| end
//| if not pr.marked then
  const QueryBlocks own = query_blocks(sequence, key, 64);
//| end
  GradScores grad_s;
  float dk[NK], dv[NV];
//| if l.spread then
  clear(dk), clear(dv);
//| else
  begin_sums(p, dk, unit, key, 0);
  begin_sums(p, dv, unit, key, NK);
//| end

//| if not pr.marked then
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

//| end
//| -- Under a score program's mask both warpgroups take all blocks of the tile.
//| local is_own = pr.marked and "" or "if (own.lo <= own.hi) "
  if (blocks.lo <= blocks.hi) {
    $(is_own)mbarrier_wait(k_full(smem), keys.parity), mbarrier_wait(v_full(smem), keys.parity);
//| if c.held > 0 then
    u32 k[(D + 15) / 16 * 4];
    $(is_own)hold_rows(k, smem + wg * K_TILE);
//| end
//| if c.held > 1 then
    u32 v[(DV + 15) / 16 * 4];
    $(is_own)hold_rows(v, smem + SMEM_V + wg * V_TILE);
//| end
#pragma unroll 1
    for (int member = 0; member < $(l.spread and "unit.heads" or "p.members"); member++) {
//| if pr.marked then
      if (!meets_head(p, sequence, first_head(p, unit) + member, key0)) continue;
//| else
      if (own.lo > own.hi) {
        skip(blocks.hi - blocks.lo + 1);
        continue;
      }
      skip(own.lo - blocks.lo);
//| end
      float s[NS], dp[NS];
      u32 a[NS / 2], ds[NS / 2];  // P and dS as operands
      auto wait_for = [&](const Ring<STAGES> &next) {
        mbarrier_wait_all(q_full(smem, next.at), next.parity, grad_o_full(smem, next.at), next.parity);
      };
      auto issue_next = [&] {
        issue_dots<D>(s, k$(c.held > 0 and "" or " + unknown_zero(ring)"), q + ring.at * (Q_TILE / 16));
        wgmma_commit();
        issue_dots<DV>(dp, v$(c.held > 1 and "" or " + unknown_zero(ring)"), grad_o + ring.at * (GRAD_O_TILE / 16));
        wgmma_commit();
      };
//| indented(6, pr.dropping,
//|   "const int number = unit.batch * p.hq + first_head(p, unit) + member;  // of the head among those of all sequences",
//|   not pr.marked and "Kept kept = kept_of(p, number, key, own.lo * BR);" or nil)
//| if not pr.late then
//|   indented(6, pr.begin_score, "first_head(p, unit) + member")
//| end
//| if not pr.marked then
      grad_s.begin(p, warp, unit, member, own.lo, key / 64);
//| end
      wait_for(ring);
//| if pr.marked then
//|   indented(6, pr.dropping, "Kept kept = kept_of(p, number, key, load_code(smem, ring).block() * BR);")
//| end
      wgmma_fence();
      issue_next();
      float columns[BR / 4];  // LSE, then D
      load_columns(columns, rows_at(smem, ring));
//| local begun = pr.marked and "!code.first()" or "block > own.lo"
#pragma unroll 1
//| if pr.marked then
      for (;;) {
        const Code code = load_code(smem, ring);
        const int block = code.block();
        const bool last = code.last_of_head();
//| else
      for (int block = own.lo;; block++) {
//| end
        const u32 rows = rows_at(smem, ring);
//| if not pr.marked then
        const bool last = block == own.hi;
//| end
        wgmma_wait<1>(s);  // and dK of the block before
        if ($(begun)) release(q_empty(smem, (ring.at + STAGES - 1) % STAGES));
//| local scored = (pr.late and ", first_head(p, unit) + member" or pr.scored) .. (pr.marked and ", code.sees_all(wg)" or "")
        probabilities(s, a, columns, p, sequence, key, block * BR$(scored));
//| indented(8, pr.dropping, "drop(a, kept);")
        load_columns(columns, rows + BR * 4);
        wgmma_fence(a);
        issue_sums(dv, a, grad_o + ring.at * (GRAD_O_TILE / 16));
        wgmma_commit();
        wgmma_wait<1>(dp);
//| indented(8, pr.dropping, "drop(dp, kept, " .. pr.keep_scale .. ");")
        grad_scores(dp, s, columns);
        pack_rows(ds, dp);
//| if pr.marked then
        if (key < p.sk) {  // else there is no such tile
          grad_s.begin(p, warp, unit, member, block, key / 64);
          grad_s.store(p, block, ds);
        }
//| else
        grad_s.store(p, block, ds);
//| end
        Ring<STAGES> next = ring;
        next.next();
        if (!last) {
          wait_for(next);
          load_columns(columns, rows_at(smem, next));
//| if pr.marked then
//|   indented(10, pr.dropping, "kept = kept_of(p, number, key, load_code(smem, next).block() * BR);")
//| end
        }
//| if not pr.marked then
//|   indented(8, pr.dropping,
//|     "kept = kept_of(p, number, key, (block + 1) * BR);  // S and dP are no longer in registers, and the other warpgroup has its turn")
//| end
        turn_wait(wg);
        wgmma_fence(ds);
        issue_sums(dk, ds, q + ring.at * (Q_TILE / 16));
        wgmma_commit();
        if (last) break;
        wgmma_wait<1>();  // dV
        release(grad_o_empty(smem, ring.at));
        ring = next;
        wgmma_fence();
        issue_next();
        turn_pass(wg);
      }
      turn_pass(wg);
      wgmma_wait<0>(dv);
      wgmma_wait<0>(dk);
      release(q_empty(smem, ring.at));
      release(grad_o_empty(smem, ring.at));
      ring.next();
//| if not pr.marked then
      skip(blocks.hi - own.hi);
//| end
    }
  }
  keys_done(smem, keys);
  store_keys(p, dk, dv, queue, smem, wg);
}

__device__ __forceinline__ void consume_tiles(const Params &p, u32 smem, int wg, int warp) {
  Ring<STAGES> ring;
  Ring<1> keys;
  begin_turns(wg);
  each_tile(p, smem, [&](const TileQueue &queue, const Unit &unit, const Sequence &sequence, int key0, const QueryBlocks &blocks) {
    consume_tile(p, smem, unit, sequence, key0, blocks, queue, ring, keys, wg, warp);
  });
}
