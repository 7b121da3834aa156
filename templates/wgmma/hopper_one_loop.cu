//| needs "l.held? l.pingpong_products l.q_soon?"
//| local pr = include("pairs/pairs.lua").of(p, l)
      // Every block has one text, as hidden pairs have -inf in what is added to products: cut ones, a tile's first and whole ones. Where a
      // row's maximum may move it is found in between. S of the next block and P V of this one are issued side by side.
//| if l.held then
      u32 held[NS / 2];
      hold_next(block, held);
//| end
      float shift[2] = {0.f, 0.f};
      bool begun = false, stay = false;
      for (;; begun = true) {
        make_scores(block$(l.held and ", held" or ""));
        if (!stay) {
          wgmma_wait<0>(o);
          cut_maxima(s, state, keep, shift, $(pr.unit_log2));
#pragma unroll
          for (int i = 0; i < NO; i++) o[i] *= keep[i / 2 % 2];
        }
        early_exponentials(s, state, shift, $(pr.unit_log2));
        wgmma_wait<0>();
        if (begun) release_v();
        other_exponentials(s, a, state, shift, $(pr.unit_log2));
//| indented(8, pr.dropping, "drop_block(block);")
        if (block <= keys.last) break;
        mbarrier_wait(k_full(smem, k.at), k.parity);
//| if l.pingpong_products then
        pingpong_wait(wg);
//| end
        wgmma_fence(o, a);
        issue_scores(s, q_tile, smem + SMEM_K + k.at * K_TILE);
        wgmma_commit();
        mbarrier_wait(v_full(smem, v.at), v.parity);
        wgmma_fence();
        issue_output(o, a, smem + SMEM_V + v.at * V_TILE);
        wgmma_commit();
//| if l.pingpong_products then
        pingpong_pass(wg);
//| end
        block--;
//| if l.held then
        hold_next(block, held);
//| end
        stay = all_stay(state);
        wgmma_wait<1>(s);
        release_k();
//| if l.q_soon then
        if (lane == 0 && block == keys.last) mbarrier_arrive(q_empty(smem, q.at, wg));
//| end
      }
