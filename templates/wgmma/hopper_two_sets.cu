//| local pr = include("pairs/pairs.lua").of(p, l)
      // Main loop with two sets of scores: S of the next block but one is issued behind P V of this one, and is under way while S of the next
      // becomes P. So no exponential waits for its product.
      float s_odd[NS];
      auto issue_next = [&](float (&next)[NS]) {
        mbarrier_wait(k_full(smem, k.at), k.parity);
        wgmma_fence();
        issue_scores(next, q_tile, smem + SMEM_K + k.at * K_TILE);
        wgmma_commit();
      };
      auto hide = [&](float (&s)[NS], int block) {
        if (!($(pr.is_whole("keys")))) apply_mask(s, p, sequence, wg_row + warp_row + g, block, t);
      };
      // P V of this block, S of the next but one, and P of the next, whose S is `now`.
      auto step = [&](float (&now)[NS], float (&next)[NS], auto more) {
        wgmma_wait<0>(now);
        release_k();
        mbarrier_wait(v_full(smem, v.at), v.parity);
        wgmma_fence(o, a);
        issue_output(o, a, smem + SMEM_V + v.at * V_TILE);
        wgmma_commit();
        if constexpr (more()) issue_next(next);
        hide(now, block - 1);
        const bool stay = all_stay(state);
        bool moved = false;
        if (__builtin_expect(stay, 1))
          early_exponentials(now, state, $(pr.unit_log2));
        else
          moved = next_maxima(now, state, keep, $(pr.unit_log2));
        wgmma_wait<more() ? 1 : 0>(o);
        release_v();
        next_probabilities(now, a, o, state, keep, moved, p, stay);
        block--;
      };
      struct Yes {
        __device__ constexpr bool operator()() const { return true; }
      };
      struct No {
        __device__ constexpr bool operator()() const { return false; }
      };
      if (block > keys.last) {
        issue_next(s);
#pragma unroll 1
        while (block > keys.last + 2) {
          step(s, s_odd, Yes());
          step(s_odd, s, Yes());
        }
        if (block > keys.last + 1) {
          step(s, s_odd, Yes());
          step(s_odd, s, No());
        } else {
          step(s, s_odd, No());
        }
      }
