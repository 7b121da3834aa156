//| needs "l.fences_bare? l.pingpong_products l.q_lent l.q_soon?"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local unit = pr.unit_log2
      // A block that is cut, the first of a tile, and one whose rows may move are whole ones but for what comes first: hidden products, the
      // rows' m, and O. S of the next block and P V of this one are issued side by side.
      u32 held[NS / 2];
      hold_next(held, block);
      for (int gives = 32;; gives = 0) {  // the lane that gives V of the block before back: a first block has none
        if (!(is_whole(block) && all_stay(state))) raise_rows(block, held);
        make_scores(block, true, held);
        early_exponentials(s, state, $(unit));
        wgmma_wait<0>();
        __syncwarp();
        if (lane == gives) mbarrier_arrive(v_empty(smem, (v.at + STAGES_V - 1) % STAGES_V));
        other_exponentials(s, a, state, $(unit));
//| indented(8, pr.dropping, "drop_block(block);")
//| if l.q_lent then
        if (owed) return_q(), owed = false;
//| end
        if (block <= keys.last) break;
        mbarrier_wait(k_full(smem, k.at), k.parity);
//| if l.pingpong_products then
        pingpong_wait(wg);
//| end
        wgmma_fence($(l.fences_bare and "" or "o, a"));
        issue_scores(s, q_tile, smem + SMEM_K + k.at * K_TILE);
        wgmma_commit();
        mbarrier_wait(v_full(smem, v.at), v.parity);
        wgmma_fence();
        issue_output(o, a, smem + SMEM_V + v.at * V_TILE);
        wgmma_commit();
//| if l.pingpong_products then
        pingpong_pass(wg);
//| end
        v.next();
        block--;
//| if pr.owns_rows then
        copy_next();
//| end
        hold_next(held, block);
        wgmma_wait<1>(s);
        release_k();
//| if l.q_soon then
        if (lane == 0 && block == keys.last) mbarrier_arrive(q_empty(smem, q.at, wg));
//| end
      }
