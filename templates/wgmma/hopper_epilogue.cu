//| needs "l.ahead l.fences_bare? l.masked l.o_in_q l.pingpong_products l.q_soon? l.skip_late l.grouped?"
//| local pr = include("pairs/pairs.lua").of(p, l)
      // Epilogue: the last P V.
//| local over = pr.skips and "if (!hides) " or ""
//| if not l.o_in_q and not pr.last_s and not l.q_soon then
      $(over)release(q_empty(smem, q.at, wg));
//| end
      $(over)q.next();
      mbarrier_wait(v_full(smem, v.at), v.parity);
//| local issued = l.ahead and pr.masks  -- the last P V is under way before the next tile is looked for
//| if issued then
      // Tiles are short: the next one's first keys may come later than this one's last P. Behind it goes S of that tile's first block.
      wgmma_fence($(l.fences_bare and "" or "o, a"));
      issue_output(o, a, smem + SMEM_V + v.at * V_TILE);
      wgmma_commit();
//| end
//| if l.ahead then
//|   if l.masked then
      // Beside it goes S of the next tile's first block, where that can be begun. Blocks that only other warpgroups see lie at the end of
      // this tile (trailing) and at the beginning of the next (leading): their K passes now, their V after O. V of all that is loaded
      // before K of the next tile's block must find a place beside the V that is still held.
//|     if l.pingpong_products then
      // And one more V: the warpgroup whose turn comes before this one's may have to let the V of the block before pass first.
//|     end
//|     local before_k = l.pingpong_products and "leading" or "max(leading - 1, 0)"
      KeyRange after;
      int trailing = block - keys.loaded_lo, leading = 0;
      begun = trailing < STAGES_V;
      if (begun) {
//|   local trails = l.grouped and "block - 1 - i, keys.loaded_lo" or ""
#pragma unroll 1
        for (int i = 0; i < trailing; i++) skip_k($(trails));  // the next tile is scheduled when the last K is on its way
        begun = tiles.peek(p, smem, wg, after);
        if (begun) {
          leading = after.loaded_hi - after.first;
          begun = after.loaded_lo <= after.loaded_hi && !after.idle() && trailing + $(before_k) < STAGES_V;
        }
        block = keys.loaded_lo;
      }
//|   else
//|     if not issued then
      // Beside it goes S of the next tile's first block, where that can be begun.
//|     end
      KeyRange after;
      begun = tiles.peek(p, smem, wg, after);
      if (begun) begun = after.loaded_lo <= after.loaded_hi && !after.idle();
//|   end
      if (begun) {
//|   if l.masked then
#pragma unroll 1
        for (int i = 0; i < leading; i++) skip_k($(l.grouped and "after.loaded_hi - i, after.loaded_lo" or ""));
//|   end
        mbarrier_wait(q_full(smem, q.at, wg), q.parity);
        mbarrier_wait(k_full(smem, k.at), k.parity);
//| if pr.scans then
        code = (int)load_shared(code_at(smem, k.at));
//| end
//|   if l.pingpong_products then
        pingpong_wait(wg);
//|   end
//|   if not issued then
        wgmma_fence($(l.fences_bare and "" or "o, a"));
        issue_output(o, a, smem + SMEM_V + v.at * V_TILE);
        wgmma_commit();
//|   end
        wgmma_fence();
        issue_scores(s, smem + (q.at * WGS + wg) * Q_TILE, smem + SMEM_K + k.at * K_TILE);
        wgmma_commit();
//|   if l.pingpong_products then
        pingpong_pass(wg);
//|   end
        wgmma_wait<1>(o);
        release_v();
        store(o, state$(l.o_in_q and ", true" or ""));
//|   if l.masked then
#pragma unroll 1
        for (int i = 0; i < trailing + leading; i++) skip_v();
//|   end
        hold_order(0, q_full(smem, q.at, wg), q.parity);
        wgmma_wait<0>(s);
        release_k();
        continue;
      }
//| end
//| if not issued then
      wgmma_fence($(l.fences_bare and "" or "o, a"));
      issue_output(o, a, smem + SMEM_V + v.at * V_TILE);
      wgmma_commit();
//| end
      wgmma_wait<0>(o);
      release_v();
//| if pr.skips then
      if (!hides) break;
#pragma unroll 1
      while (true) {
        skip_block(code);
        hides = !code_has(code, CODE_LAST);
        if (!hides) break;
        mbarrier_wait(k_full(smem, k.at), k.parity);
        code = (int)load_shared(code_at(smem, k.at));
        if (!code_is(code, wg, CODE_HIDDEN)) break;
      }
      if (hides) continue;
//|   if not l.o_in_q then
      release(q_empty(smem, q.at, wg));
//|   end
      q.next();
      break;
      }
//| end
//| if l.ahead and l.masked then
#pragma unroll 1
      for (; trailing > 0; trailing--) {
        if (block > keys.loaded_lo) skip_k($(l.grouped and "keys.loaded_lo + trailing - 1, keys.loaded_lo" or ""));
        skip_v();
      }
//| elseif l.skip_late then
      trailing = block - keys.loaded_lo;
//| elseif pr.cuts_left and not pr.scans then
#pragma unroll 1
      for (; block > keys.loaded_lo; block--) skip_k($(l.grouped and "block - 1, keys.loaded_lo" or "")), skip_v();
//| end
