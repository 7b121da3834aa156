//| needs "l.all_in_loop? l.fences_bare? l.pingpong_products l.q_lent l.q_soon?"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local unit = pr.unit_log2
      // A block that is cut, the first of a tile, and one whose rows may move are whole ones but for what comes first: hidden products, the
      // rows' m, and O. S of the next block and P V of this one are issued side by side.
//| if l.all_in_loop then
      // All products have this text: those of a block and of the one before. The first block has none before it, and behind the last there is
      // none. What is issued in their place is not read, of K in the place of V, and of V in the place of K: a branch around them would have
      // each product waited for.
      const u32 q_tile = smem + (q.at * WGS + wg) * Q_TILE;
      mbarrier_wait(q_full(smem, q.at, wg), q.parity);
      for (bool first = true;; first = false) {
        const bool more = block >= keys.last;
        const u32 k_tile = smem + SMEM_K + k.at * K_TILE, v_tile = smem + SMEM_V + v.at * V_TILE;
        if (more) {
          mbarrier_wait(k_full(smem, k.at), k.parity);
//|   if l.pingpong_products then
          pingpong_wait(wg);
//|   end
        } else
          mbarrier_wait(v_full(smem, v.at), v.parity);
        wgmma_fence($(l.fences_bare and "" or "o, a"));
        issue_scores(s, q_tile, more ? k_tile : v_tile);
        wgmma_commit();
        mbarrier_wait(first ? k_full(smem, k.at) : v_full(smem, v.at), first ? k.parity : v.parity);
        wgmma_fence();
        issue_output(o, a, first ? k_tile : v_tile);
        wgmma_commit();
        bool raises = false;
        u32 most[2];
        if (more) {
//|   if l.pingpong_products then
          pingpong_pass(wg);
//|   end
          // While products are on their way.
          const bool whole = is_whole(block);
          const u32 stage = smem + SMEM_SCORE + stages.at * SCORE_STAGE;
          mbarrier_wait(score_full(smem, stages.at), stages.parity);
          raises = !(whole && all_stay(state));
          if (raises) {
            if (!whole) hide_in_stage(p, sequence, wg_row + warp_row + g, block, stage, wg);
            find_largest(most, stage, wg);
          }
        }
        wgmma_wait<1>(s);
        if (!more) break;
        __syncwarp();
        if (lane == (first ? 32 : 0)) mbarrier_arrive(k_empty(smem, k.at));
//|   if l.q_soon then
        if (lane == 0 && block == keys.last) mbarrier_arrive(q_empty(smem, q.at, wg));
//|   end
        if (raises) raise_rows(block, most, first);
        wgmma_wait<0>();
        __syncwarp();
        if (lane == 0) mbarrier_arrive(first ? k_empty(smem, k.at) : v_empty(smem, v.at));
        k.next();
        if (!first) v.next();
        make_scores(block, true);
        early_exponentials(s, state, $(unit));
        other_exponentials(s, a, state, $(unit));
//|   indented(8, pr.dropping, "drop_block(block);")
//|   if l.q_lent then
        if (owed) return_q(), owed = false;
//|   end
        block--;
      }
//| else
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
//|   indented(8, pr.dropping, "drop_block(block);")
//|   if l.q_lent then
        if (owed) return_q(), owed = false;
//|   end
        if (block <= keys.last) break;
        mbarrier_wait(k_full(smem, k.at), k.parity);
//|   if l.pingpong_products then
        pingpong_wait(wg);
//|   end
        wgmma_fence($(l.fences_bare and "" or "o, a"));
        issue_scores(s, q_tile, smem + SMEM_K + k.at * K_TILE);
        wgmma_commit();
        mbarrier_wait(v_full(smem, v.at), v.parity);
        wgmma_fence();
        issue_output(o, a, smem + SMEM_V + v.at * V_TILE);
        wgmma_commit();
//|   if l.pingpong_products then
        pingpong_pass(wg);
//|   end
        v.next();
        block--;
        hold_next(held, block);
        wgmma_wait<1>(s);
        release_k();
//|   if l.q_soon then
        if (lane == 0 && block == keys.last) mbarrier_arrive(q_empty(smem, q.at, wg));
//|   end
      }
//| end
