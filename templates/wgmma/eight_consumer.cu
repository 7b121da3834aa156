//| needs "c.exp c.overlap c.schedule l.before l.beside l.converts l.first_keys l.integer l.key_scales l.ones l.parts l.raised l.row_scaled"
//| needs "l.scaled l.transposes l.wide"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local v_full, v_empty = "v_full(smem, v.at)", "v_empty(smem, v.at)"
//| if l.transposes then v_full, v_empty = "turned_full(smem, v.at)", "turned_empty(smem, v.at)" end
//| local values = l.transposes and "smem + SMEM_T + v.at * T_TILE" or "smem + SMEM_V + v.at * V_TILE"
//| local np = l.wide and "NS / 2" or "NS / 4" -- registers of P
//| local turns, pingpong, exps = c.schedule > 0, c.schedule == 1, c.schedule == 2
//| local ahead = c.overlap == 2
//| local fma = c.exp > 0 -- some exponentials without the special-function unit
//| local two_walks = l.ones and l.before and not l.beside
//| local sum, raw = "float", "s" -- what products of Q and K are summed up in
//| if l.integer then sum, raw = "int", "raw" end
//| local nt = l.ones and "NT + 4" or "NT" -- registers of a sum
//| local sums = l.ones and ahead and "*t" or "(&t)[" .. nt .. "]"
//| if two_walks then
template <bool B>
struct Choice {
  static constexpr bool value = B;
};

//| end
// ---- the products of a warpgroup ----
// Issues S = Q K^T.
__device__ __forceinline__ void issue_scores($(sum) (&s)[NS], u32 q, u32 k) {
  const u64 a = descriptor<ROW>(q), b = descriptor<ROW>(k);
#pragma unroll
  for (int i = 0; i < (D + 31) / 32; i++) {
    const int box = i * 32 / BOX, in_box = i * 32 % BOX;
    const u64 qa = a + (box * 64 * ROW + in_box) / 16, kb = b + (box * BC * ROW + in_box) / 16;
    if (i == 0)
      wgmma_scores_first(s, qa, kb);
    else
      wgmma_scores(s, qa, kb);
  }
}
//| if l.first_keys then
// Issues T = P V of the keys [from, to), or T += P V of later ones.
template <int FROM, int TO>
__device__ __forceinline__ void issue_sums(float (&t)[$(nt)], const u32 (&a)[$(np)], u32 v) {
  const u64 b = descriptor<KEY_BOX>(v);
#pragma unroll
  for (int i = FROM / 32; i < TO / 32; i++) {
    const u64 vb = b + (i * 32 / KEY_BOX * $(l.ones and "TURNED" or "COLUMNS") * KEY_BOX + i * 32 % KEY_BOX) / 16;
    if (i == 0)
      wgmma_sums_first(t, a, vb);
    else
      wgmma_sums(t, a + 4 * i, vb);
  }
}
//| else
// Issues T = P V of the `part`th SUM columns.
//| if l.ones and ahead then
template <int R>  // with the eight columns that follow, or without: those of the first sum are ones
__device__ __forceinline__ void issue_sums(float (&t)[R], const u32 (&a)[$(np)], u32 v, int part, bool first) {
//| else
__device__ __forceinline__ void issue_sums(float (&t)[$(nt)], const u32 (&a)[$(np)], u32 v, int part$(ahead and ", bool first" or "")) {
//| end
//| if l.wide then
  const u64 b = descriptor_across_rows(v + part * SUM * 2 * BC, BC * VALUE_ROW);
//| else
//|   if l.ones then
  const u64 b = descriptor<KEY_BOX>(v + (part * SUM + (part > 0 ? 8 : 0)) * KEY_BOX);
//|   else
  const u64 b = descriptor<KEY_BOX>(v + part * SUM * KEY_BOX);
//|   end
//| end
#pragma unroll
  for (int i = 0; i < BC / $(l.wide and 16 or 32); i++) {
//| if l.wide then
    const u64 vb = b + i * 16 * VALUE_ROW / 16;
//| else
    const u64 vb = b + (i * 32 / KEY_BOX * $(l.ones and "TURNED" or "COLUMNS") * KEY_BOX + i * 32 % KEY_BOX) / 16;
//| end
    if (i == 0 && $(ahead and "first" or "part == 0"))
      wgmma_sums_first(t, a, vb);
    else if (i == 0)
      wgmma_sums_next(t, a, vb);
    else
      wgmma_sums(t, a + 4 * i, vb);
  }
}
//| end
//| if l.ones then
// The rows' sums of P as it is rounded, which all threads of a row have: product with ones.
__device__ __forceinline__ void add_weights(float (&weights)[2], const float (&t)[NT + 4], const float (&keep)[2]) {
#pragma unroll
  for (int h = 0; h < 2; h++) weights[h] = fmaf(weights[h], keep[h], t[NT + 2 * h]);
}
//| end
// O = keep O + T: the rescaling of O is the addition of what a block brings, so that a product never adds to sums of many keys.
__device__ __forceinline__ void add_sums(float (&o)[NO], const float $(sums), const float (&keep)[2], int part) {
#pragma unroll
  for (int i = 0; i < NT; i++) o[part * NT + i] = fmaf(o[part * NT + i], keep[i / 2 % 2], t[i]);
}
//| if turns then
// Consumer warpgroups alternate: one may pass, then the next.
__device__ __forceinline__ void pingpong_wait(int wg) { named_wait(1 + wg, 256); }
__device__ __forceinline__ void pingpong_pass(int wg) { named_arrive(wg == WGS - 1 ? 1 : 2 + wg, 256); }
//| end

//| if l.integer then
// Sums of integers as floats, exact$(l.key_scales and "; times the scales of keys, which lie at `scales`" or "").
__device__ __forceinline__ void to_products(float (&s)[NS], const int (&raw)[NS]$(l.key_scales and ", u32 scales, int t" or "")) {
#pragma unroll
  for (int n = 0; n < NS / 4; n++) {
//|   if l.key_scales then
    const float even = __uint_as_float(load_shared(scales + (n * 8 + 2 * t) * 4));
    const float odd = __uint_as_float(load_shared(scales + (n * 8 + 2 * t + 1) * 4));
#pragma unroll
    for (int i = 0; i < 4; i++) s[4 * n + i] = (float)raw[4 * n + i] * (i % 2 ? odd : even);
//|   else
#pragma unroll
    for (int i = 0; i < 4; i++) s[4 * n + i] = (float)raw[4 * n + i];
//|   end
  }
}

//| end
//| include "wgmma/eight_probabilities.cu"

// ---- a consumer warpgroup: 64 rows of Q, and its walk over tiles and blocks of keys, from right to left ----
__device__ __forceinline__ void consume(const Params &p, u32 smem, int wg) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int warp_row = threadIdx.x / 32 % 4 * 16;
  Ring<Q_BUFS> q;
  Ring<STAGES_K> k;
  Ring<$(l.transposes and "STAGES_T" or "STAGES_V")> v;
  float o[NO];
//| if fma then
  // Two ones of fp16, in a register: of two constants each would be an instruction. No compiler knows that the lower bits are zeros.
  const u32 one = 0x3c003c00 | (u32)wg >> 8;
//| end

  // This warp has read a buffer.
  auto release = [&](u32 empty) {
    __syncwarp();
    if (lane == 0) mbarrier_arrive(empty);
  };
//| if turns then
  if (wg == WGS - 1) pingpong_pass(wg);  // the first warpgroup begins
//| end
  TileQueue tiles;
  Tile where;
  while (tiles.next(p, smem, where)) {
    const KeyRange keys = tiles.keys(p, smem, wg);
    const Sequence sequence = $(p.has_lengths and "tiles.sequence(p, smem)" or "sequence_of(p, where.batch)");
    const int wg_row = where.row + row_in_tile(wg);
//| local unit = pr.unit_log2
//| if l.row_scaled then
    // Rows past the last are zeros.
    float scaled[2]$(not pr.has_score and ", unit_log2[2]" or "");
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int query = wg_row + warp_row + g + 8 * h;
      scaled[h] = query < sequence.sq() ? score_scale_of(p, sequence, where.head, query, where.kv_head) : 1.f;
//|   if not pr.has_score then
      unit_log2[h] = scaled[h] * $(unit);
//|     unit = "unit_log2"
//|   end
    }
//| elseif l.scaled then
    const float scaled = score_scale_of(p, sequence, where.head, $(l.integer and "0, " or "")where.kv_head);
//|   if not pr.has_score then
    const float unit_log2 = scaled * $(unit);
//|     unit = "unit_log2"
//|   end
//| end
//| indented(4, pr.begin_score, "where.head")
    RowState state[2] = {{-infinity(), 0.f}, {-infinity(), 0.f}};
#pragma unroll
    for (int n = 0; n < NO; n++) o[n] = 0.f;
//| if l.ones then
    float weights[2] = {0.f, 0.f};
//|   if not two_walks then
    const bool adds = p.lse != nullptr;
//|   end
//| end

    // A block of keys that only other warpgroups see.
    auto skip = [&] {
      mbarrier_wait(k_full(smem, k.at), k.parity);
      release(k_empty(smem, k.at));
      k.next();
//| if turns then
      pingpong_wait(wg);
      pingpong_pass(wg);
//| end
      mbarrier_wait($(v_full), v.parity);
      release($(v_empty));
      v.next();
    };
    if (keys.loaded_hi >= keys.loaded_lo) {
      int block = keys.loaded_hi;
      const int first = keys.idle() ? keys.loaded_lo - 1 : keys.first, last = keys.idle() ? keys.loaded_lo : keys.last;
#pragma unroll 1
      for (; block > first; block--) skip();
      mbarrier_wait(q_full(smem, q.at, wg), q.parity);
      const u32 q_tile = smem + (q.at * WGS + wg) * Q_TILE;
//| if p.has_lengths then
      // Rows past the sequence's last belong to the next one, or to none: zeros, so that no vote of the warp depends on them.
      const int rows = sequence.sq() - wg_row;
      if (rows > 0 && rows < 64) {
        clear_rows<64, BOXES>(q_tile, max(rows, warp_row), max(rows, warp_row + 16), lane);
        fence_async();
        named_wait(8 + wg, 128);
      }
//| end
      // S of a block is under way.
      auto begin_scores = [&]($(sum) (&s)[NS]) {
        mbarrier_wait(k_full(smem, k.at), k.parity);
//| if pingpong then
        pingpong_wait(wg);
//| end
        wgmma_fence();
        issue_scores(s, q_tile, smem + SMEM_K + k.at * K_TILE);
        wgmma_commit();
      };
//| if ahead then
      // What the P at hand brings to O: one sum is under way while the one before joins it.
      auto add_values = [&](u32 (&a)[$(np)], const float (&keep)[2]) {
        constexpr int PARTS = COLUMNS / SUM;
//|   if not l.ones then
        float sums[2][NT];
        wgmma_fence(a);
        issue_sums(sums[0], a, $(values), 0, true);
        wgmma_commit();
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
          if (part + 1 < PARTS) {
            wgmma_fence(a);
            issue_sums(sums[(part + 1) % 2], a, $(values), part + 1, part == 0);
            wgmma_commit();
            wgmma_wait<1>(sums[part % 2]);
          } else {
            wgmma_wait<0>(sums[part % 2]);
          }
          add_sums(o, sums[part % 2], keep, part);
        }
//|   else
        float even[NT + 4], odd[NT];
        wgmma_fence(a);
        issue_sums(even, a, $(values), 0, true);
        wgmma_commit();
#pragma unroll
        for (int part = 0; part < PARTS; part += 2) {
          wgmma_fence(a);
          issue_sums(odd, a, $(values), part + 1, part == 0);
          wgmma_commit();
          wgmma_wait<1>(even);
          add_sums(o, even, keep, part);
          if (part == 0) add_weights(weights, even, keep);
          if (part + 2 < PARTS) {
            wgmma_fence(a);
            issue_sums(even, a, $(values), part + 2, false);
            wgmma_commit();
            wgmma_wait_columns<1>(odd);
          } else {
            wgmma_wait_columns<0>(odd);
          }
          add_sums(o, odd, keep, part + 1);
        }
//|   end
        release($(v_empty));
        v.next();
      };
//| else
      // What the P at hand brings to O. begun: the first sum is under way.
      auto add_values = [&](u32 (&a)[$(np)], const float (&keep)[2], float (&sums)[$(nt)], bool begun) {
#pragma unroll
        for (int part = 0; part < COLUMNS / SUM; part++) {
//|   if not l.first_keys then
          if (part > 0 || !begun) {
            wgmma_fence(a);
            issue_sums(sums, a, $(values), part);
            wgmma_commit();
          }
//|   end
          wgmma_wait<0>(sums);
          add_sums(o, sums, keep, part);
//|   if l.ones then
          add_weights(weights, sums, keep);
//|   end
        }
        release($(v_empty));
        v.next();
      };
//| end
      // The scores of S, and what O is multiplied by; the last has read Q.
      auto weigh = [&](float (&s)[NS], int block, float (&keep)[2]) {
        release(k_empty(smem, k.at));
        k.next();
        if (block == last) release(q_empty(smem, q.at, wg));
//| if l.scaled and pr.has_score then
#pragma unroll
        for (int n = 0; n < NS; n++) s[n] *= scaled$(l.row_scaled and "[n / 2 % 2]" or "");
//| end
//| indented(8, pr.scoring_by, pr.is_whole("keys"), "s, p, scored, wg_row + warp_row + g, block, t")
        if (!($(pr.is_whole("keys")))) apply_mask(s, p, sequence, wg_row + warp_row + g, block, t);
        maxima(s, state, keep, $(unit));
//| if exps then
        pingpong_wait(wg);
//| end
      };
//| if l.first_keys then
      // P of the first keys, whose P V is under way while that of the others is found.
      auto weights_and_sums = [&](float (&s)[NS], u32 (&a)[$(np)], float (&sums)[$(nt)], bool adds) {
        const float shift[2] = {shift_of(state[0].m, $(unit)) - RAISED, shift_of(state[1].m, $(unit)) - RAISED};
        float sum[2] = {0.f, 0.f};
        exponentials<0, FIRST>(s, shift, $(unit)$(fma and ", sum, adds" or ""));
//| if fma and exps then
        other_exponentials<0, FIRST>(s, shift, $(unit), sum, adds);
//| end
        to_operand<0, FIRST>(a, s, state$(fma and ", one" or l.ones and ", adds" or ""));
        mbarrier_wait($(v_full), v.parity);
        wgmma_fence(a);
        issue_sums<0, FIRST>(sums, a, $(values));
        wgmma_commit();
        exponentials<FIRST, BC>(s, shift, $(unit)$(fma and ", sum, adds" or ""));
//| if exps then
        hold_scores(s, idle_barrier(smem));
        pingpong_pass(wg);
//|   if fma then
        other_exponentials<FIRST, BC>(s, shift, $(unit), sum, adds);
//|   end
//| end
        to_operand<FIRST, BC>(a, s, state$(fma and ", one" or l.ones and ", adds" or ""));
        wgmma_fence(a);
        issue_sums<FIRST, BC>(sums, a, $(values));
        wgmma_commit();
        if (adds) state[0].l += sum[0], state[1].l += sum[1];
      };
//| else
      auto probabilities = [&](float (&s)[NS]$(fma and ", bool adds" or "")) {
        const float shift[2] = {shift_of(state[0].m, $(unit)$(l.row_scaled and "[0]" or "")) - RAISED, shift_of(state[1].m, $(unit)$(l.row_scaled and "[1]" or "")) - RAISED};
//| if fma then
        float sum[2] = {0.f, 0.f};
        exponentials(s, shift, $(unit), sum, adds);
//| else
        exponentials(s, shift, $(unit));
//| end
//| if l.beside or exps and not l.converts then
        hold_scores(s, idle_barrier(smem));
//| end
//| if exps and not l.converts then
        pingpong_pass(wg);
//|   if fma then
        other_exponentials(s, shift, $(unit), sum, adds);
//|   end
//| end
//| if fma then
        if (adds) state[0].l += sum[0], state[1].l += sum[1];
//| end
      };
//| end
//| if not l.beside then
//|   if two_walks then
      // With sums of P for LSE, or without: a branch between exponentials and packing would part them.
      auto walk = [&](auto of_lse) {
      constexpr bool adds = decltype(of_lse)::value;
//|   end
#pragma unroll 1
      for (; block >= last; block--) {
        u32 a[$(np)];  // P
        float keep[2];
//|   if l.first_keys then
        float sums[$(nt)];
//|   end
        {
          $(sum) $(raw)[NS];
          begin_scores($(raw));
//|   if pingpong then
          pingpong_pass(wg);
//|   end
          wgmma_wait<0>($(raw));
//| if l.integer then
          float s[NS];
          to_products(s, raw$(l.key_scales and ", smem + SMEM_SCALES + k.at * BC * 4, t" or ""));
//| end
          weigh(s, block, keep);
//|   if l.first_keys then
          weights_and_sums(s, a, sums, adds);
        }
        add_values(a, keep, sums, true);
//|   else
          probabilities(s$(fma and ", adds" or ""));
          to_operand(a, s, state$(fma and ", one" or l.ones and ", adds" or ""));
//|     if l.converts then
          hold_operand(a, idle_barrier(smem));
          pingpong_pass(wg);
//|     end
        }
//|   end
//|   if l.first_keys then
//|   elseif ahead then
        mbarrier_wait($(v_full), v.parity);
        add_values(a, keep);
//|   else
        float sums[$(nt)];
        mbarrier_wait($(v_full), v.parity);
        add_values(a, keep, sums, false);
//|   end
      }
//|   if two_walks then
      };
      if (p.lse != nullptr)
        walk(Choice<true>());
      else
        walk(Choice<false>());
//|   end
//| else
      if (block >= last) {
        u32 a[$(np)];   // P
        float weight[2];  // and what O is multiplied by before P V is added
        {
          $(sum) $(raw)[NS];
          begin_scores($(raw));
//|   if pingpong then
          pingpong_pass(wg);
//|   end
          wgmma_wait<0>($(raw));
//| if l.integer then
          float s[NS];
          to_products(s, raw$(l.key_scales and ", smem + SMEM_SCALES + k.at * BC * 4, t" or ""));
//| end
          weigh(s, block, weight);
          probabilities(s$(fma and ", adds" or ""));
          to_operand(a, s, state$(fma and ", one" or l.ones and ", adds" or ""));
        }
        // S of the next block and P V of this one are issued side by side; the softmax is found while the second is under way.
#pragma unroll 1
        for (; block > last; block--) {
//| if l.integer then
          int raw[NS];
          float sums[NT], keep[2];
//| else
          float s[NS], sums[$(nt)], keep[2];
//| end
          begin_scores($(raw));
          mbarrier_wait($(v_full), v.parity);
          wgmma_fence(a);
          issue_sums(sums, a, $(values), 0);
          wgmma_commit();
//|   if pingpong then
          pingpong_pass(wg);
//|   end
          wgmma_wait<1>($(raw));
//| if l.integer then
          float s[NS];
          to_products(s, raw$(l.key_scales and ", smem + SMEM_SCALES + k.at * BC * 4, t" or ""));
//| end
          weigh(s, block - 1, keep);
          probabilities(s$(fma and ", adds" or ""));
          add_values(a, weight, sums, true);
          to_operand(a, s, state$(fma and ", one" or l.ones and ", adds" or ""));
          weight[0] = keep[0], weight[1] = keep[1];
        }
        float sums[$(nt)];
        mbarrier_wait($(v_full), v.parity);
        add_values(a, weight, sums, false);
        block--;
      }
//| end
      if (first < last) release(q_empty(smem, q.at, wg));
      q.next();
#pragma unroll 1
      for (; block >= keys.loaded_lo; block--) skip();
    }
    where = tiles.again(p, smem);
    tiles.done(smem, true);
    if (keys.idle()) continue;
    // O, l and m of P and scores as they are.
    constexpr float lowered = $(("%.9gf"):format(2.0 ^ -l.raised));
//| if p.v_scale == 1 then
    const float of_o = lowered * v_scale_of(p, sequence, where.kv_head);
//| end
//| local of_o = p.v_scale == 1 and "of_o" or "lowered"
#pragma unroll
    for (int n = 0; n < NO; n++) o[n] *= $(of_o);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      state[h].l *= lowered;
//| if l.ones then
      weights[h] *= lowered;
//| end
//| if l.scaled and not pr.has_score then
      state[h].m = state[h].m == -infinity() ? state[h].m : state[h].m * scaled$(l.row_scaled and "[h]" or "");
//| end
    }
//| if l.parts then
    if (where.parts > 1)
      store_part(p, where, sequence, o, state, wg_row);
    else
      store_rows(p, where, sequence, o, state, wg_row + warp_row + g, t);
//| else
    store_rows(p, where, $(p.has_lengths and "sequence, " or "")o, state, $(l.ones and "weights, " or "")wg_row + warp_row + g, t);
//| end
  }
}
