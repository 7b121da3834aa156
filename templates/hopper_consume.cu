// ---- a consumer warpgroup: its products, and its walk over tiles and blocks of keys ----
// Issues S = Q K^T.
__device__ __forceinline__ void issue_scores(float (&s)[NS], u32 q, u32 k) {
  const u64 a = descriptor_along_row(q), b = descriptor_along_row(k);
#pragma unroll
  for (int i = 0; i < (D + 15) / 16; i++) {
    const int box = i * 16 / BOX, in_box = i * 16 % BOX * 2;
    const u64 qa = a + (box * 64 * ROW + in_box) / 16, kb = b + (box * BC * ROW + in_box) / 16;
    if (i == 0)
      wgmma_scores_first(s, qa, kb);
    else
      wgmma_scores(s, qa, kb);
  }
}
// Issues O += P V.
__device__ __forceinline__ void issue_output(float (&o)[NO], const u32 (&a)[NS / 2], u32 v) {
  const u64 b = descriptor_across_rows(v, BC * ROW);
#pragma unroll
  for (int i = 0; i < BC / 16; i++) wgmma_output(o, a + 4 * i, b + i * 16 * ROW / 16);
}

//| local turns = issue_turns or exp_turns
//| if turns then
// Consumer warpgroups take turns: one may pass, then the next.
__device__ __forceinline__ void turn_wait(int wg) { named_wait(1 + wg, 256); }
__device__ __forceinline__ void turn_pass(int wg) { named_arrive(wg == WGS - 1 ? 1 : 2 + wg, 256); }
//| end

// How many of the columns 8n and 8n + 1 lie below x, no more than 0 where x is: a thread holds these of a row.
__device__ __forceinline__ int columns_below(int x) { return x / 8 * 2 + min(x % 8, 2); }
// The lowest n bits, all or none where n is beyond.
__device__ __forceinline__ u32 bits_below(int n) { return n >= 32 ? ~0u : n > 0 ? (1u << n) - 1 : 0; }

//| if c.o_path == 0 then
__device__ __forceinline__ void consume(const Params &p, u32 smem, int wg) {
//| else
__device__ __forceinline__ void consume(const Params &p, const TensorMap &o_map, u32 smem, int wg) {
//| end
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int warp_row = threadIdx.x / 32 % 4 * 16;
  Ring<Q_BUFS> q;
  Ring<STAGES_K> k;
  Ring<STAGES_V> v;
  float s[NS], o[NO];
  u32 a[NS / 2];
  auto release = [&](u32 empty) {  // this warp has read the buffer
    __syncwarp();
    if (lane == 0) mbarrier_arrive(empty);
  };
//| if c.cluster > 1 then
  auto release_keys = [&](u32 empty) {  // the copies of every block of the cluster write here
    __syncwarp();
    if (lane < CLUSTER) mbarrier_arrive_at(empty, lane);
  };
//| end
//| local release = c.cluster > 1 and "release_keys" or "release"
  auto release_k = [&] {
    $(release)(k_empty(smem, k.at));
    k.next();
  };
  auto release_v = [&] {
    $(release)(v_empty(smem, v.at));
    v.next();
  };
//| if turns then
  if (wg == WGS - 1) turn_pass(wg);
//| end
  Tiles tiles;
  Place where;
//| if c.o_path == 1 then
  // O leaves from the place of its Q, when q is one further. A second Q lets it take its time: the place is owed until the next tile is under way.
  auto q_before = [&] { return (q.at + Q_BUFS - 1) % Q_BUFS; };
  auto free_place = [&] {
    tma_wait_read();
    release(q_empty(smem, q_before(), wg));
  };
//|   if c.q_bufs == 2 then
  bool owed = false;  // by every tile that saw keys to the next one
//|   end
//| end
  // The end of a tile.
//| if c.o_path == 1 then
  auto store = [&](const float (&o)[NO], const RowState (&state)[2], bool any_keys) {
//| else
  auto store = [&](const float (&o)[NO], const RowState (&state)[2]) {
//| end
    where = tiles.again(p, smem);
    tiles.done(smem, true);
    const int row = where.row + row_in_tile(wg);
//| if c.o_path == 0 then
    store_rows(p, where, o, state, row + warp_row + g, t);
//| elseif c.o_path == 1 then
    if (any_keys) {
      store_tile(p, o_map, where, o, state, smem + (q_before() * WGS + wg) * Q_TILE, row, wg);
//|   if c.q_bufs == 1 then
      free_place();
//|   else
      owed = true;
//|   end
    } else {  // a tile without keys never held a Q
      store_rows(p, where, o, state, row + warp_row + g, t);
    }
//| else
    store_tile(p, o_map, where, o, state, smem + SMEM_O + wg * O_TILE, row, wg);
//| end
  };
//| if ahead then
  bool begun = false;  // the scores of the tile's first block are there
//| end
  while (tiles.next(p, smem, where)) {
    const Work work = tiles.work(p, smem, wg);
    const Sequence sequence = sequence_of(p, where.batch);
    const int wg_row = where.row + row_in_tile(wg);
    RowState state[2] = {{-infinity(), 0.f}, {-infinity(), 0.f}};
    float keep[2];
#pragma unroll
    for (int n = 0; n < NO; n++) o[n] = 0.f;

    // Lets a block of keys pass that only other warpgroups see.
    auto skip_k = [&] {
      mbarrier_wait(k_full(smem, k.at), k.parity);
      release_k();
//| if turns then
      turn_wait(wg);  // before the wait for V: who frees its place may want this turn
      turn_pass(wg);
//| end
    };
    auto skip_v = [&] {
      mbarrier_wait(v_full(smem, v.at), v.parity);
      release_v();
    };
    if (work.idle()) {
      tiles.done(smem, true);
//| if c.o_path == 1 and c.q_bufs == 2 then
      if (owed) free_place();
      owed = false;
//| end
      mbarrier_wait(q_full(smem, q.at, wg), q.parity);
      release(q_empty(smem, q.at, wg));
      q.next();
#pragma unroll 1
      for (int block = work.fed_hi; block >= work.fed_lo; block--) skip_k(), skip_v();
      continue;
    }
//| if early then
    auto first_probabilities = [&] {
      first_maxima(s, state, p.scale_log2);
      const float scale_log2 = p.scale_log2, shift[2] = $(first_shift);
//|   if exp_turns then
      turn_wait(wg);
//|   end
      exponentials<false, false>(s, a, o, state, keep, shift, scale_log2);
//|   if exp_turns then
      turn_pass(wg);
//|   end
    };
    // To be called when the P V before is over.
    auto next_probabilities = [&](bool moved) {
      const float scale_log2 = p.scale_log2, shift[2] = $(next_shift);
//|   if exp_turns then
      turn_wait(wg);
//|   end
      if (moved)
        exponentials<$(relative), true>(s, a, o, state, keep, shift, scale_log2);
      else
        exponentials<$(relative), false>(s, a, o, state, keep, shift, scale_log2);
//|   if exp_turns then
      turn_pass(wg);
//|   end
    };
//| end
    auto mask = [&](float (&s)[NS], int block) {
      if (block < work.full_hi && block > work.full_lo) return;
      const int first = block * BC + 2 * t;
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const int query = query_of(p, wg_row + warp_row + g + 8 * h);
        const int below_hi = columns_below(last_key(sequence, query) + 1 - first);
//| if p.mask == "window" then
        const int below_lo = columns_below(first_key(sequence, query) - first);
//| end
#pragma unroll
        for (int word = 0; word < (NS + 63) / 64; word++) {
//| if p.mask == "window" then
          const u32 seen = bits_below(below_hi - 32 * word) & ~bits_below(below_lo - 32 * word);
//| else
          const u32 seen = bits_below(below_hi - 32 * word);
//| end
#pragma unroll
          for (int bit = 0; bit < 32; bit++) {
            const int i = 2 * (32 * word + bit - bit % 2) + 2 * h + bit % 2;
            if (i < NS && !(seen >> bit & 1)) s[i] = -infinity();
          }
        }
      }
    };

//| local later = p.mask == "window" and not ahead and c.schedule == 0
//| if later then
    int trailing = 0;  // blocks that only others see: O leaves first
//| end
    if (work.fed_hi >= work.fed_lo) {
      const u32 q_tile = smem + (q.at * WGS + wg) * Q_TILE;
//| if p.mask ~= "none" and ahead then
      int block = begun ? work.first : work.fed_hi;
//| else
      int block = work.fed_hi;
//| end
//| if p.mask ~= "none" then
#pragma unroll 1
      for (; block > work.first; block--) skip_k(), skip_v();
//| end
//| if not ahead then
      mbarrier_wait(q_full(smem, q.at, wg), q.parity);
      mbarrier_wait(k_full(smem, k.at), k.parity);
//| end
//|   function first_scores()
//|     if issue_turns then
      turn_wait(wg);
//|     end
      wgmma_fence();
      issue_scores(s, q_tile, smem + SMEM_K + k.at * K_TILE);
      wgmma_commit();
//|     if issue_turns then
      turn_pass(wg);
//|     end
      wgmma_wait<0>(s);
      release_k();
//|   end
//|   if ahead then
      if (!begun) {
        mbarrier_wait(q_full(smem, q.at, wg), q.parity);
        mbarrier_wait(k_full(smem, k.at), k.parity);
//|     first_scores()
      }
//|   else first_scores() end
      mask(s, block);
//| if early then
      first_probabilities();
//| else
      first_softmax(s, state, p.scale_log2);
      to_operand(a, s);
//| end
//| if c.o_path == 1 and c.q_bufs == 2 then
      if (owed) free_place();
//| end

      // S of the next block and P V of this one are issued side by side; the $(early and "maxima are" or "softmax is") found under the second.
      for (; block > work.last; block--) {
        mbarrier_wait(k_full(smem, k.at), k.parity);
//| if issue_turns then
        turn_wait(wg);
//| end
        wgmma_fence(o, a);
        issue_scores(s, q_tile, smem + SMEM_K + k.at * K_TILE);
        wgmma_commit();
        mbarrier_wait(v_full(smem, v.at), v.parity);
        wgmma_fence();
        issue_output(o, a, smem + SMEM_V + v.at * V_TILE);
        wgmma_commit();
//| if issue_turns then
        turn_pass(wg);
//| end
        wgmma_wait<1>(s);
        release_k();
        mask(s, block - 1);
//| if early then
        const bool moved = next_maxima(s, state, keep, p.scale_log2);
        wgmma_wait<0>(o);
        release_v();
        next_probabilities(moved);
//| else
        const bool moved = next_softmax(s, state, keep, p.scale_log2);
        settle(sums(state), v_full(smem, v.at), v.parity);
        wgmma_wait<0>(o);
        release_v();
        if (moved) rescale(o, keep);
        to_operand(a, s);
//| end
      }
//| if c.o_path ~= 1 then
      release(q_empty(smem, q.at, wg));
//| end
      q.next();
      mbarrier_wait(v_full(smem, v.at), v.parity);
//| if ahead then
//|   if p.mask == "none" then
      Work after;
      begun = tiles.peek(p, smem, wg, after);
      if (begun) begun = after.fed_lo <= after.fed_hi && !after.idle();
//|   else
      // Blocks that only others see, at the end of this tile and at the beginning of the next: their K passes now, their V later. V of all
      // that is fed before K of our next block must find a place beside the V that we still hold.
//|     if issue_turns then
      // And one more V: who has the turn before ours may have to let the V of the block before pass first.
//|     end
      Work after;
      int trailing = block - work.fed_lo, leading = 0;
      begun = trailing < STAGES_V;
      if (begun) {
#pragma unroll 1
        for (int i = 0; i < trailing; i++) skip_k();  // the next tile is dealt when the last K is on its way
        begun = tiles.peek(p, smem, wg, after);
        if (begun) {
          leading = after.fed_hi - after.first;
          begun = after.fed_lo <= after.fed_hi && !after.idle() && trailing + $(issue_turns and "leading" or "max(leading - 1, 0)") < STAGES_V;
        }
        block = work.fed_lo;
      }
//|   end
      if (begun) {
//|   if p.mask ~= "none" then
#pragma unroll 1
        for (int i = 0; i < leading; i++) skip_k();
//|   end
        mbarrier_wait(q_full(smem, q.at, wg), q.parity);
        mbarrier_wait(k_full(smem, k.at), k.parity);
//|   if issue_turns then
        turn_wait(wg);
//|   end
        wgmma_fence(o, a);
        issue_output(o, a, smem + SMEM_V + v.at * V_TILE);
        wgmma_commit();
        wgmma_fence();
        issue_scores(s, smem + (q.at * WGS + wg) * Q_TILE, smem + SMEM_K + k.at * K_TILE);
        wgmma_commit();
//|   if issue_turns then
        turn_pass(wg);
//|   end
        wgmma_wait<1>(o);
        release_v();
        store(o, state$(c.o_path == 1 and ", true" or ""));
//|   if p.mask ~= "none" then
#pragma unroll 1
        for (int i = 0; i < trailing + leading; i++) skip_v();
//|   end
        settle(0, q_full(smem, q.at, wg), q.parity);
        wgmma_wait<0>(s);
        release_k();
        continue;
      }
//| end
      wgmma_fence(o, a);
      issue_output(o, a, smem + SMEM_V + v.at * V_TILE);
      wgmma_commit();
      wgmma_wait<0>(o);
      release_v();
//| if p.mask ~= "none" and ahead then
#pragma unroll 1
      for (; trailing > 0; trailing--) {
        if (block > work.fed_lo) skip_k();
        skip_v();
      }
//| elseif later then
      trailing = block - work.fed_lo;
//| elseif p.mask == "window" then
#pragma unroll 1
      for (; block > work.fed_lo; block--) skip_k(), skip_v();
//| end
    }
    store(o, state$(c.o_path == 1 and ", work.fed_hi >= work.fed_lo" or ""));
//| if later then
#pragma unroll 1
    for (; trailing > 0; trailing--) skip_k(), skip_v();
//| end
  }
//| if c.o_path > 0 then
  tma_wait_read();
//| end
}
