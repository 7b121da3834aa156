//| needs "l.spread l.sums"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local named = (l.spread or pr.marked) and "unit" or ""
// One warp: zeros over rows of others, in the order in which boxes are loaded. What has no such rows it passes over.
__device__ __forceinline__ void clear_out_of_range_rows(const Params &p, u32 smem, int lane) {
  Ring<STAGES> ring;
  u32 parities = 0, keys_parity = 0;  // of what lands: a bit for each stage of Q and dO, and that of K and V
  each_tile(p, smem, [&](const TileQueue &, const Unit &$(named), const Sequence &sequence, int key0, const QueryBlocks &blocks) {
    bool keys_are_own = has_own_keys(sequence, key0);
//| if pr.marked then
#pragma unroll 1
    for (int member = 0; member < members_of(p, unit); member++) {
      const Marks marks = marks_of_keys(p, sequence, first_of(p, unit) + member, key0, KEYS);
#pragma unroll 1
      for (int block = marks.next<BR>(0); block >= 0; block = marks.next<BR>(block + 1), ring.next()) {
//| else
#pragma unroll 1
    for (int member = 0; member < $(l.spread and "unit.heads" or l.sums and "p.group" or "p.members"); member++)
#pragma unroll 1
      for (int block = blocks.lo; block <= blocks.hi; block++, ring.next()) {
//| end
        const OwnQueries own = own_queries(sequence, block);
        if (!own.all()) {
          const u32 parity = parities >> ring.at & 1;
          parities ^= 1u << ring.at;
          mbarrier_wait(landed(q_full(smem, ring.at)), parity);
          clear_outside<BR, BOXES>(smem + SMEM_Q + ring.at * Q_TILE, own.first, own.end, lane);
          hand_on(q_full(smem, ring.at), lane);
          mbarrier_wait(landed(grad_o_full(smem, ring.at)), parity);
          clear_outside<BR, BOXES_V>(smem + SMEM_GRAD_O + ring.at * GRAD_O_TILE, own.first, own.end, lane);
          hand_on(grad_o_full(smem, ring.at), lane);
        }
        if (keys_are_own) continue;
        keys_are_own = true;  // they come once, after the first block
        mbarrier_wait(landed(k_full(smem)), keys_parity);
#pragma unroll
        for (int i = 0; i < KEYS / 64; i++) {
          const OwnRows own_keys = own_rows(sequence, key0 / 64 + i);
          clear_outside<64, BOXES>(smem + i * K_TILE, own_keys.first, own_keys.end, lane);
        }
        hand_on(k_full(smem), lane);
        mbarrier_wait(landed(v_full(smem)), keys_parity);
#pragma unroll
        for (int i = 0; i < KEYS / 64; i++) {
          const OwnRows own_keys = own_rows(sequence, key0 / 64 + i);
          clear_outside<64, BOXES_V>(smem + SMEM_V + i * V_TILE, own_keys.first, own_keys.end, lane);
        }
        hand_on(v_full(smem), lane);
        keys_parity ^= 1;
      }
//| if pr.marked then
    }
//| end
  });
}
