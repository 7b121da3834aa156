//| needs "l.cuts? l.q_soon?"
//| local pr = include("pairs/pairs.lua").of(p, l)
      // Main loop: S of a block, and P, behind each sixteen keys of which goes P V. What has to be asked of a block, or of rows that may move, is
      // asked of each warp before: products are issued where all four are.
//| local unit = pr.unit_log2
//| local function weigh(indent)
//|   local to = (" "):rep(indent)
//|   if l.cuts then
$(to)if (!(is_whole(block) && all_stay(state))) {
$(to)  cut_scores(block);
$(to)  move_rows(s, o, state, $(unit));
$(to)}
//|   else
$(to)mask(code);
$(to)if (!all_stay(state)) move_rows(s, o, state, $(unit));
//|   end
$(to)mbarrier_wait(v_full(smem, v.at), v.parity);
$(to)probabilities_along(s, a, o, state, $(unit), smem + SMEM_V + v.at * V_TILE);
$(to)release_v();
//| end
//| weigh(6)
//| if pr.skips then
      bool hides = false;  // the block after these is there, and nothing of it is seen
//| end
//| if pr.scans then
      while (!$(pr.overs and "code_has(code, CODE_OVER << wg)" or "code_has(code, CODE_LAST)")) {
        mbarrier_wait(k_full(smem, k.at), k.parity);
        code = (int)load_shared(code_at(smem, k.at));
//| else
      for (; block > keys.last;) {
        mbarrier_wait(k_full(smem, k.at), k.parity);
//| end
//| if pr.skips then
        hides = code_is(code, wg, CODE_HIDDEN);
        if (hides) break;
//| end
        wgmma_fence();
        issue_scores(s, q_tile, smem + SMEM_K + k.at * K_TILE);
        wgmma_commit();
//| if not pr.scans then
        block--;
//| end
        wgmma_wait<0>(s);
        release_k();
//| if l.q_soon then
        if (lane == 0 && block == keys.last) mbarrier_arrive(q_empty(smem, q.at, wg));
//| end
//| if pr.last_s then
        if (code_has(code, $(pr.last_s))) release(q_empty(smem, q.at, wg));  // for the next tile's, beside what follows
//| end
//| weigh(8)
      }
