//| needs "c.exp l.scaled"
//| -- eight_ahead: a warpgroup's walk over blocks of keys where S of the next block is begun before P V of this one is over.
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local unit = l.scaled and "unit_log2" or pr.unit_log2
//| local more_of_operand = c.exp > 0 and ", one" or ", adds"
//| local more_of_exponentials = c.exp > 0 and ", sum, adds" or ""
      // In one block: S of its first keys, behind P V of the block before; S of the others, when O has taken up that P V, while maxima of the
      // first are found; P of the keys [0, FIRST), their P V, and beside it P of the others.
      if (block < last) return;
      float s[NS];
      mbarrier_wait(k_full(smem, k.at), k.parity);
      wgmma_fence();
      issue_head(s, q_tile, smem + SMEM_K + k.at * K_TILE);
      wgmma_commit();
#pragma unroll 1
      for (; block >= last; block--) {
        wgmma_fence();
        issue_rest(s, q_tile, smem + SMEM_K + k.at * K_TILE);
        wgmma_commit();
        const bool whole = $(pr.is_whole("keys")), more = block > last;
        float keep[2], top[2] = {state[0].m, state[1].m};
        wgmma_wait_head<1>(s);
        if (whole) raise_tops<0, HEAD_KEYS>(s, top);
        wgmma_wait_rest<0>(s);
        release(k_empty(smem, k.at));
        k.next();
        if (!more) release(q_empty(smem, q.at, wg));
        if (!whole) {
          apply_mask(s, p, sequence, wg_row + warp_row + g, block, t);
          raise_tops<0, HEAD_KEYS>(s, top);
        }
        raise_tops<HEAD_KEYS, BC>(s, top);
        // This wait, a branch, comes before the exchange of maxima, which the assembler moves up across no branch: exponentials stay behind it, and
        // lie between conversions.
        mbarrier_wait(v_full(smem, v.at), v.parity);
        raise_rows(state, top, keep, $(unit));
        float shift[2] = {shift_of(state[0].m, $(unit)) - RAISED, shift_of(state[1].m, $(unit)) - RAISED};
        u32 a[NS / 4];  // P
        float sums[NT + 4], sum[2] = {0.f, 0.f};
        exponentials<0, FIRST>(s, shift, $(unit)$(more_of_exponentials));
        to_operand<0, FIRST>(a, s, state$(more_of_operand));
        wgmma_fence(a);
        issue_sums<0, FIRST>(sums, a, smem + SMEM_V + v.at * V_TILE);
        wgmma_commit();
        // A branch again, and an exchange that changes nothing: the exponentials of the other keys stay behind the products.
        if (more) mbarrier_wait(k_full(smem, k.at), k.parity);
#pragma unroll
        for (int h = 0; h < 2; h++) shift[h] = __shfl_sync(~0u, shift[h], lane);
        exponentials<FIRST, BC>(s, shift, $(unit)$(more_of_exponentials));
        to_operand<FIRST, BC>(a, s, state$(more_of_operand));
        wgmma_fence(a);
        issue_sums<FIRST, BC>(sums, a, smem + SMEM_V + v.at * V_TILE);
        wgmma_commit();
        if (adds) state[0].l += sum[0], state[1].l += sum[1];
        if (more) issue_head(s, q_tile, smem + SMEM_K + k.at * K_TILE);
        wgmma_commit();  // of nothing, where no block follows
        wgmma_wait<1>(sums);
        add_sums(o, sums, keep, 0);
        add_weights(weights, sums, keep);
        release(v_empty(smem, v.at));
        v.next();
      }
