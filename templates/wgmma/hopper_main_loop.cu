//| needs "l.begins? l.besides? l.early? l.fades? l.fades_soon? l.grouped? l.held? l.interleaved"
//| needs "l.after? l.pingpong_products l.pingpong_softmax l.q_soon? l.relative l.tanh_by_fma?"
//| local pr = include("pairs/pairs.lua").of(p, l)
      // Main loop: S of the next block and P V of this one are issued $(l.after and "one after the other" or "side by side").
      // $(l.interleaved and "Maxima are" or "The softmax is") found while the second is under way.
//| local unit = l.besides and "unit_log2, beside" or l.begins and "p.scale_log2" or pr.unit_log2
//| local next = pr.scans and "code" or "block - 1"
//| if pr.skips then
      bool hides = false;  // the block after these is there, and nothing of it is seen
//| end
//| if pr.scans then
      while ($(pr.overs and "!code_has(code, CODE_OVER << wg)" or pr.masks and "!code_has(code, CODE_LAST)" or "(code & CODE_LAST) == 0")) {
//| else
      for (; block > keys.last; block--) {
//| end
        mbarrier_wait(k_full(smem, k.at), k.parity);
//| if pr.scans then
        code = (int)load_shared(code_at(smem, k.at));
//| end
//| if pr.skips then
        hides = code_is(code, wg, CODE_HIDDEN);
        if (hides) break;
//| end
//| if l.pingpong_products then
        pingpong_wait(wg);
//| end
//| if l.after then
//|   include "wgmma/hopper_after.cu"
//| else
//| if l.begins then
        wgmma_fence(s, o, a);
        issue_scores_onto(s, q_tile, smem + SMEM_K + k.at * K_TILE);
//| else
        wgmma_fence(o, a);
        issue_scores(s, q_tile, smem + SMEM_K + k.at * K_TILE);
//| end
        wgmma_commit();
        mbarrier_wait(v_full(smem, v.at), v.parity);
        wgmma_fence();
        issue_output(o, a, smem + SMEM_V + v.at * V_TILE);
        wgmma_commit();
//| end
//| if l.pingpong_products then
        pingpong_pass(wg);
//| end
//| if pr.owns_rows then
        copy_next();
//| end
//| indented(8, pr.reading, "read(" .. next .. ");")
//| if l.besides then
        const float2 far = far_of_next();
//| elseif l.held then
        u32 held[NS / 2];
        hold_next(held);
//| elseif l.begins then
        const bool more = block - 1 > keys.last;
        const Beginning next = begin(more, q_tile$(l.grouped and ", block - 2" or ""));
//| end
//| if l.fades_soon then
        float most;
        const bool may = may_be_none($(next), most);  // while the products are on their way
//| end
//| if l.after then
        wgmma_wait<0>(s);
//| else
        wgmma_wait<1>(s);
//| end
        release_k();
//| if l.q_soon then
        if (lane == 0 && block - 1 == keys.last) mbarrier_arrive(q_empty(smem, q.at, wg));
//| end
//| if pr.last_s then
        if (code_has(code, $(pr.last_s))) release(q_empty(smem, q.at, wg));  // for the next tile's, beside what follows
//| end
//| if l.besides then
        float unit_log2, beside;
//| end
//| if l.fades then
//|   if not l.fades_soon then
        float most;
        const bool may = may_be_none($(next), most);
//|   end
        if (may && all_fade(s, p, most)) {
          wgmma_wait<0>(o);
          release_v();
//|   if l.pingpong_softmax then
          pingpong_wait(wg);
          pingpong_pass(wg);
//|   end
          clear_operand(a);
          continue;
        }
//| end
//| local score = l.besides and "mask_beside" or l.held and "mask_held" or l.begins and "mask_begun"
//| score = score or (l.relative and pr.slopes or l.tanh_by_fma) and "exponents" or "mask"
//| local with = l.besides and ", far, unit_log2, beside" or l.held and ", held" or l.tanh_by_fma and ", all_small(s, by_fma)" or ""
        $(score)($(next)$(with));
//| if l.early then
        // Of rows that stay all up to the next block is one piece, of which instructions are fetched in a row.
        if (all_stay(state)) {
          early_exponentials(s, state, $(unit));
//|   if not l.after then
          wgmma_wait<0>(o);
          release_v();
//|   end
          other_exponentials(s, a, state, $(unit));
          lower_sums(a, o, state);
//|   indented(10, pr.dropping, "drop_block(code >> CODE_BLOCK);")
          continue;
        }
//| end
//| if l.interleaved then
        const bool moved = next_maxima(s, state, keep, $(unit));
//| else
        const bool moved = next_softmax(s, state, keep, $(unit));
        hold_order(sums(state), v_full(smem, v.at), v.parity);
//| end
//| local more = (l.pingpong_softmax and ", wg" or "") .. (l.begins and ", next" or "")
//| if not l.after then
        wgmma_wait<0>(o);
        release_v();
//| end
        next_probabilities(s, a, o, state, keep, moved, p$(more));
//| if l.begins then
        if (more) release_stage($(l.grouped and "block - 2, keys.loaded_lo" or ""));
//| end
//| indented(8, pr.dropping, pr.scans and "drop_block(code >> CODE_BLOCK);" or "drop_block(block - 1);")
      }
