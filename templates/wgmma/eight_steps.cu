//| needs "c.bc c.exp c.schedule l.first_keys l.scaled"
//| -- eight_steps: a warpgroup's walk over blocks of keys in small steps: S in two products, P V of the later keys by 32.
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local unit = l.scaled and "unit_log2" or pr.unit_log2
//| local of_operand, of_exponentials = c.exp > 0 and ", one" or ", adds", c.exp > 0 and ", sum, adds" or ""
//| local steps = {}
//| for from = l.first_keys, c.bc - 32, 32 do steps[#steps + 1] = { from, from + 32 } end
      if (block >= last) mbarrier_wait(k_full(smem, k.at), k.parity);
#pragma unroll 1
      for (; block >= last; block--) {
        float s[NS], keep[2], top[2] = {state[0].m, state[1].m};
//| if c.schedule == 1 then
        pingpong_wait(wg);
//| end
        wgmma_fence();
        issue_head(s, q_tile, smem + SMEM_K + k.at * K_TILE);
        wgmma_commit();
        issue_rest(s, q_tile, smem + SMEM_K + k.at * K_TILE);
        wgmma_commit();
        // Maxima of the first keys are found beside S of the others.
        const bool whole = $(pr.is_whole("keys")), below = are_below(top);
        wgmma_wait_head<1>(s);
        if (whole) raise_tops<0, HEAD_KEYS>(s, top, below);
        wgmma_wait_rest<0>(s);
        if (!whole) {
          apply_mask(s, p, sequence, wg_row + warp_row + g, block, t);
          raise_tops<0, HEAD_KEYS>(s, top, below);
        }
        raise_tops<HEAD_KEYS, BC>(s, top, below);
        release(k_empty(smem, k.at));
        k.next();
        if (block == last) release(q_empty(smem, q.at, wg));
//| if c.schedule == 2 then
        pingpong_wait(wg);
//| end
        raise_rows(state, top, keep, $(unit));
//| if c.schedule == 1 then
        // The other's S comes no sooner, so that it finds exponentials when these are over.
        pingpong_pass(wg);
//| end
        const float shift[2] = {shift_of(state[0].m, $(unit)) - RAISED, shift_of(state[1].m, $(unit)) - RAISED};
        u32 a[NS / 4];  // P
        float sums[NT + 4], sum[2] = {0.f, 0.f};
        exponentials<0, FIRST>(s, shift, $(unit)$(of_exponentials));
        to_operand<0, FIRST>(a, s, state$(of_operand));
        mbarrier_wait(v_full(smem, v.at), v.parity);
        wgmma_fence_of<0, FIRST>(a);
        issue_sums<0, FIRST>(sums, a, smem + SMEM_V + v.at * V_TILE);
        wgmma_commit();
        // Over already. The assembler moves products down between exponentials, but past no branch.
        mbarrier_wait(v_full(smem, v.at), v.parity);
//| for _, step in ipairs(steps) do
//|   local keys = ("%d, %d"):format(step[1], step[2])
        exponentials<$(keys)>(s, shift, $(unit)$(of_exponentials));
        to_operand<$(keys)>(a, s, state$(of_operand));
        wgmma_fence_of<$(keys)>(a);
        issue_sums<$(keys)>(sums, a, smem + SMEM_V + v.at * V_TILE);
        wgmma_commit();
//| end
//| if c.schedule == 2 then
        pingpong_pass(wg);
//| end
        if (adds) state[0].l += sum[0], state[1].l += sum[1];
        if (block > last) mbarrier_wait(k_full(smem, k.at), k.parity);
        wgmma_wait<0>(sums);
        add_sums(o, sums, keep, 0);
        add_weights(weights, sums, keep);
        release(v_empty(smem, v.at));
        v.next();
      }
