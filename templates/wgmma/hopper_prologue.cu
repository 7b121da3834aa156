//| needs "l.ahead l.begins? l.cuts? l.grouped? l.interleaved l.masked l.passes_once"
//| needs "l.pingpong_products l.pingpong_softmax l.q_lent l.q_soon?"
//| local pr = include("pairs/pairs.lua").of(p, l)
      // Prologue: S of the tile's first block, and P.
      const u32 q_tile = smem + (q.at * WGS + wg) * Q_TILE;
//| local at = pr.scans and "code" or "block"
//| if pr.scans or l.passes_once then  -- which block it is says its code, or hopper_consumer.cu has found it
//| elseif l.ahead and l.masked then
      int block = begun ? keys.first : keys.loaded_hi;
//| else
      int block = keys.loaded_hi;
//| end
//| if l.masked and not l.passes_once then
#pragma unroll 1
      for (; block > keys.first; block--) skip_k($(l.grouped and "block, keys.loaded_lo" or "")), skip_v();
//| end
//| if not pr.scans then indented(6, pr.reading, "read(block);") end
//| if pr.owns_rows then
      begin_stages(block);
//| end
//| local to = l.ahead and "  " or ""
//| if l.ahead then
      if (!begun) {
//| end
//| if not pr.skips then
      $(to)mbarrier_wait(q_full(smem, q.at, wg), q.parity);
//| end
      $(to)mbarrier_wait(k_full(smem, k.at), k.parity);
//| if pr.scans then
      $(to)code = (int)load_shared(code_at(smem, k.at));
//| end
//| if pr.skips then
#pragma unroll 1
      while (code_is(code, wg, CODE_HIDDEN) && !code_has(code, CODE_LAST)) {
        skip_block(code);
        mbarrier_wait(k_full(smem, k.at), k.parity);
        code = (int)load_shared(code_at(smem, k.at));
      }
      // Q comes later than the first keys: what passes has passed by then, so that the others need not wait for it.
      mbarrier_wait(q_full(smem, q.at, wg), q.parity);
      // From here on once for each run of blocks of which something is seen.
#pragma unroll 1
      for (bool fresh = true;; fresh = false) {
//| end
//| if l.pingpong_products then
      $(to)pingpong_wait(wg);
//| end
      $(to)wgmma_fence();
      $(to)issue_scores(s, q_tile, smem + SMEM_K + k.at * K_TILE);
      $(to)wgmma_commit();
//| if l.pingpong_products then
      $(to)pingpong_pass(wg);
//| end
//| -- While the products are on their way.
//| if pr.brings_mask and not l.ahead then
      $(pr.skips and "if (fresh) " or "")find_rows();
//| end
//| if pr.keeps_ends and not l.ahead then
      $(pr.skips and "if (fresh) " or "")find_ends();
//| end
      $(to)wgmma_wait<0>(s);
      $(to)release_k();
//| if l.q_soon then
      if (lane == 0 && block == keys.last) mbarrier_arrive(q_empty(smem, q.at, wg));
//| end
//| if pr.last_s then
      if (code_has(code, $(pr.last_s))) release(q_empty(smem, q.at, wg));
//| end
//| if l.ahead then
      }
//| end
//| if pr.scans then indented(6, pr.reading, "read(code);") end
//| if not l.cuts then  -- else hopper_cut_loop.cu has it
      mask($(at));
//| if l.begins then
      const bool second = block > keys.last;
      const Beginning next = begin(second, q_tile$(l.grouped and ", block - 1" or ""));
//| end
//| if pr.skips then
      if (fresh)
        first_probabilities(s, a, o, state, keep, p$(l.pingpong_softmax and ", wg" or ""));
      else {
//|   if l.interleaved then
        const bool moved = next_maxima(s, state, keep, $(pr.unit_log2));
//|   else
        const bool moved = next_softmax(s, state, keep, $(pr.unit_log2));
//|   end
        next_probabilities(s, a, o, state, keep, moved, p$(l.pingpong_softmax and ", wg" or ""));
      }
//| else
      first_probabilities(s, a, o, state, keep, p$(l.pingpong_softmax and ", wg" or "")$(l.begins and ", next" or ""));
//| end
//| if l.begins then
      if (second) release_stage($(l.grouped and "block - 1, keys.loaded_lo" or ""));
//| end
//| indented(6, pr.dropping, pr.scans and "drop_block(code >> CODE_BLOCK);" or "drop_block(block);")
//| end
//| if l.q_lent and not l.cuts then
      if (owed) return_q();
//| end
