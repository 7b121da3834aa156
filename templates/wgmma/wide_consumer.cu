//| needs "c.cluster l.counts l.halves? l.near? l.q_held l.tail_barriers? l.v_in_k? l.joined?"
//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- two consumer warpgroups that share 64 rows of Q: each has half of O's columns, and makes P of every second block of keys ----
// The blocks of a tile go from right to left. Who owns a block computes S and, with the maxima that the owner of the block before has left,
// P, and hands P, m and l to the other warpgroup, whose threads hold the same rows and columns of S. Both multiply each P, in the order of
// the blocks, by their own columns of V. A warp has written the last P, or has read it: one buffer is enough.
constexpr int P_BYTES = 128 * (NS / 2) * 4;
// S of a warpgroup's next block is issued beside P V of its last: its K must not be waiting for that.
constexpr bool EARLY = $(not l.v_in_k and "true" or "STAGES_K > 2");
constexpr int OVERLAP = 2 * NO * CONSUMERS - COLUMNS;  // columns that both warpgroups sum up, and the first stores

//| if l.halves then
constexpr int FIRST_SCORED = 10, ALL_SCORED = 11;  // barriers of a tile: S of the first block is there, and S of all

template <int N>
struct Count {
  static constexpr int value = N;
};
// Until at most N groups are under way, of which no register is read yet.
template <int N>
__device__ __forceinline__ void wgmma_wait_groups() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
//| end
__device__ __forceinline__ void consume(const Params &p, u32 smem, int wg) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp = threadIdx.x / 32 % 4;
  const int warp_row = warp * 16;
  const int column = wg * (COLUMNS - 2 * NO);  // the first of this warpgroup's
  const u32 exchange = smem + SMEM_EXCHANGE + threadIdx.x % 128 * 16;
//| if l.halves then
  int at = 0, last = 0;  // of a tile the block whose P is next to be multiplied, and the last one
  u32 begin_at = 0;      // halves that came before the tile's first
//| else
  Ring<STAGES_K> k;  // of the block whose P is next to be multiplied
//|   if not l.v_in_k then
  Ring<STAGES_V> v;
//|   end
//| end
  float s[NS], o[NO];
  u32 a[NS / 2];  // P

//| if l.halves then
  // Halves come in this order: K of the first block; K of the next and V of the one before it, and so on; V of the last.
  auto place_of_k = [&](int block, int half) { return (begin_at + (block == 0 ? 0 : 4 * block - 2) + half) % STAGES_K; };
  auto place_of_v = [&](int block) { return (begin_at + min(4 * block + 4, 4 * last + 2) + wg) % STAGES_K; };
  Ring<STAGES_K> full;  // of this warpgroup's, in the order in which it reads them
  auto wait_half = [&] {
    mbarrier_wait(half_full(smem, wg, full.at), full.parity);
    full.next();
  };
//| end
  // This warp has read a buffer.
  auto release = [&](u32 empty) {
    __syncwarp();
//| if c.cluster > 1 and not l.near then
    if (lane < CLUSTER) mbarrier_arrive_at(empty, lane);  // copies of every block of the cluster write it
//| else
    if (lane == 0) mbarrier_arrive(empty);
//| end
  };
  TileQueue tiles;
  Tile where;
  bool fresh = true;  // $(l.halves and "Q of the tile at hand has not been asked for" or "no tile yet has read Q")
//| if l.halves then
  // Rows of Q of a tile are on their way, so many from `first` on. All warps have read those before, and the last P, which has the place of
  // the last box.
  auto ask_queries = [&](Tile of, int first, int rows) {
//|   if c.cluster > 1 then
    of.row += row_in_tile(0);
//|   end
    const Sequence sequence = sequence_of(p, of.batch);
#pragma unroll 1
    for (int r = 0; r < rows; r += 8) copy_queries(p, sequence, of, smem, first + r, lane);
    cp_async_commit();
  };
//| end
//| if l.near then
  for (int number = 0; tiles.next(p, smem, where); number++) {
//| else
  while (tiles.next(p, smem, where)) {
//| end
    const KeyRange keys = tiles.keys(p, smem, 0);
    const Sequence sequence = $(p.has_lengths and "tiles.sequence(p, smem)" or "sequence_of(p, where.batch)");
    const int first_row = where.row + row_in_tile(0);  // of the block
//| indented(4, pr.begin_score, "where.head")
    RowState state[2] = {{-infinity(), 0.f}, {-infinity(), 0.f}};
    float others[2] = {0.f, 0.f};  // l of the other warpgroup's blocks
    float keep[2];
#pragma unroll
    for (int n = 0; n < NO; n++) o[n] = 0.f;

//| if l.halves then
    at = 0, last = keys.loaded_hi - keys.loaded_lo;
    // O += P V of the block at hand is under way.
    auto multiply = [&] {
      wait_half();
      wgmma_fence(o, a);
      issue_output(o, a, smem + SMEM_K + place_of_v(at) * HALF_TILE);
      wgmma_commit();
    };
    // It is done: to the next block.
    auto next_block = [&] {
      release(k_empty(smem, place_of_v(at)));
      at++;
    };
//| else
//|   if l.v_in_k then
    auto values = [&] { return smem + SMEM_K + k.at * K_TILE + column / BOX * BC * ROW; };
//|   else
    auto values = [&] { return smem + SMEM_V + v.at * V_TILE + column / BOX * $(l.joined and "V_BOX" or "BC * ROW"); };
//|   end
    // O += P V of the block at hand is under way.
    auto multiply = [&] {
//|   if not l.v_in_k then
      if (wg == 0) mbarrier_wait(v_full(smem, v.at), v.parity);
      if (wg == 1 || OVERLAP > 0) mbarrier_wait(rest_full(smem, v.at), v.parity);
//|   end
      wgmma_fence(o, a);
      issue_output(o, a, values());
      wgmma_commit();
    };
    // It is done: to the next block.
    auto next_block = [&] {
//|   if l.v_in_k then
      if (wg == 1 || OVERLAP > 0) release(rest_empty(smem, k.at));
      if (wg == 0) release(k_empty(smem, k.at));
//|   else
      if (wg == 1 || OVERLAP > 0) release(rest_empty(smem, v.at));
      if (wg == 0) release(v_empty(smem, v.at));
      v.next();
//|   end
      k.next();
    };
//| end
    // P of a block of the other warpgroup's, and its rows' state. The wait is for the warp with the same rows.
    auto take = [&] {
      named_wait(1 + (wg ^ 1) * 4 + warp, 64);
      const uint4 rows = load_shared_x4(exchange + P_BYTES);
#pragma unroll
      for (int i = 0; i < NS / 8; i++) {
        const uint4 x = load_shared_x4(exchange + i * 2048);
        a[4 * i] = x.x, a[4 * i + 1] = x.y, a[4 * i + 2] = x.z, a[4 * i + 3] = x.w;
      }
      const float m[2] = {__uint_as_float(rows.x), __uint_as_float(rows.y)};
      if (__any_sync(~0u, m[0] != state[0].m || m[1] != state[1].m)) {
#pragma unroll
        for (int h = 0; h < 2; h++) keep[h] = raise(state[h], m[h], $(pr.unit_log2));
        rescale(o, keep);
      }
      others[0] = __uint_as_float(rows.z), others[1] = __uint_as_float(rows.w);
    };
    auto hand_over = [&] {
#pragma unroll
      for (int i = 0; i < NS / 8; i++)
        store_shared(exchange + i * 2048, make_uint4(pack2(s[8 * i], s[8 * i + 1]), pack2(s[8 * i + 2], s[8 * i + 3]),
                                                     pack2(s[8 * i + 4], s[8 * i + 5]), pack2(s[8 * i + 6], s[8 * i + 7])));
      store_shared(exchange + P_BYTES, make_uint4(__float_as_uint(state[0].m), __float_as_uint(state[1].m), __float_as_uint(state[0].l),
                                                  __float_as_uint(state[1].l)));
      named_arrive(1 + wg * 4 + warp, 64);
    };
    auto mask = [&](int block) {
//| indented(6, pr.scoring_by, pr.is_whole("keys"), "s, p, scored, first_row + warp_row + g, block, t")
      if ($(pr.is_whole("keys"))) return;
      apply_mask(s, p, sequence$(pr.ends_argument), first_row + warp_row + g, block, t);
    };

    if (keys.loaded_hi >= keys.loaded_lo) {
      const u32 q_tile = smem;
      int block = keys.loaded_hi;
//| if l.halves then
      if (fresh) {
        named_wait(9, 128 * CONSUMERS);
        ask_queries(where, (wg * 4 + warp) * 8, 8);
      }
//| else
      // The Q before is read by all warps: those of other rows may be as many blocks behind as there are buffers of K.
      if (!fresh) named_wait(9, 128 * CONSUMERS);
      fresh = false;
//|   if c.cluster > 1 and not l.near then
      where.row = first_row;
//|   end
      copy_queries(p, sequence, where, q_tile, (wg * 4 + warp) * 8, lane);
      cp_async_commit();
//| end
      cp_async_wait<0>();
      fence_async();
      named_wait(9, 128 * CONSUMERS);
//| if l.q_held > 0 then
      u32 q_held[HELD * BOX / 16][4];
#pragma unroll
      for (int i = 0; i < HELD * BOX / 16; i++) {
        const int box = BOXES - HELD + i * 16 / BOX, chunk = i * 16 % BOX / 8 + lane / 16, r = warp_row + lane % 16;
        ldmatrix_x4(q_held[i], q_tile + box * 64 * ROW + r * ROW + (chunk ^ (ROW == 128 ? r % 8 : r / 2 % 4)) * 16);
      }
//| end
//| if l.halves then
      named_wait(9, 128 * CONSUMERS);  // both hold it: P may take its place
      // S of a block of this warpgroup's, so many after the one at hand, is under way, in two groups.
      auto begin = [&](int after) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
          const u32 k = smem + SMEM_K + place_of_k(at + after, half) * HALF_TILE;
          wait_half();
          wgmma_fence();
          if (half == 0)
            issue_scores<0, BOXES / 2>(s, q_tile, k, q_held);
          else
            issue_scores<BOXES / 2, BOXES>(s, q_tile, k - BOXES / 2 * BC * ROW, q_held);
          wgmma_commit();
        }
      };
      // Its first half is read when that many groups are under way, and the second when one fewer is.
      auto release_k = [&](int after, int half) { release(k_empty(smem, place_of_k(at + after, half))); };
      auto end_scores = [&](int after, auto behind) {
        wgmma_wait_groups<decltype(behind)::value + 1>();
        release_k(after, 0);
        wgmma_wait<decltype(behind)::value>(s);
        release_k(after, 1);
      };
//| else
      // S of a block of this warpgroup's, so many after the one at hand, is under way.
      auto begin = [&](int after) {
        Ring<STAGES_K> own = k;
        for (int i = 0; i < after; i++) own.next();
//|   if l.tail_barriers then
        mbarrier_wait(tail_full(smem, own.at), own.parity);
        wgmma_fence();
        issue_scores<OF_V, BOXES>(s, q_tile, smem + SMEM_K + own.at * K_TILE);
        mbarrier_wait(k_full(smem, own.at), own.parity);
//|   else
        mbarrier_wait(k_full(smem, own.at), own.parity);
        wgmma_fence();
//|   end
//|   if l.v_in_k then
        issue_scores<0, LEFT>(s, q_tile, smem + SMEM_K + own.at * K_TILE);
        mbarrier_wait(rest_full(smem, own.at), own.parity);
        issue_scores<LEFT, OF_V>(s, q_tile, smem + SMEM_K + own.at * K_TILE);
//|   else
        issue_scores(s, q_tile, smem + SMEM_K + own.at * K_TILE$(l.q_held > 0 and ", q_held" or ""));
//|   end
        wgmma_commit();
      };
//|   if l.tail_barriers or not l.v_in_k then
//|     if l.tail_barriers then
      // Its boxes beside V are read.
//|     end
      auto release_k = [&](int after) {
        Ring<STAGES_K> own = k;
        for (int i = 0; i < after; i++) own.next();
        release($(l.v_in_k and "tail_empty" or "k_empty")(smem, own.at));
      };
//|   end
//| end
      // P of the other's block at hand is multiplied beside S of this warpgroup's next one, of which P is made.
      auto pass = [&] {
        take();
        multiply();
//| if l.halves then
        end_scores(1, Count<1>());
//| else
        wgmma_wait<1>(s);
//|   if l.tail_barriers or not l.v_in_k then
        release_k(1);
//|   end
//| end
        mask(block - 1);
        const bool moved = next_softmax(s, state, keep, $(pr.unit_log2));
        if (moved) others[0] *= keep[0], others[1] *= keep[1];
        hand_over();
        wgmma_wait<0>(o);
        next_block();
        if (moved) rescale(o, keep);
        block--;
      };
      if (wg == 0) {  // the first block: there is no P before. The other has read the last tile's by now
        begin(0);
//| if l.halves then
        end_scores(0, Count<0>());
        if (block > keys.loaded_lo) named_arrive(FIRST_SCORED, 128 * CONSUMERS);
//| else
        wgmma_wait<0>(s);
//|   if l.tail_barriers or not l.v_in_k then
        release_k(0);
//|   end
//| end
        mask(block);
        first_softmax(s, state, $(pr.unit_log2));
        hand_over();
      } else if (block > keys.loaded_lo) {
//| if l.halves then
        named_wait(FIRST_SCORED, 128 * CONSUMERS);  // the first S has the tensor cores alone: P is made of it beside this one
//| end
        begin(1);
        pass();
      }
      if (wg == 0 || block < keys.loaded_hi) {  // P of this warpgroup's block at hand is there
#pragma unroll 1
        while (block - 2 >= keys.loaded_lo) {
          to_operand(a, s);
          multiply();
//| if l.v_in_k then
          if (!EARLY && wg == 0) {  // the buffer is loaded beside the other's P V
            wgmma_wait<0>(o);
            next_block();
            take();
            multiply();
            wgmma_wait<0>(o);
            next_block();
            block -= 2;
            begin(0);
            wgmma_wait<0>(s);
//|   if l.tail_barriers then
            release_k(0);
//|   end
            mask(block);
            const bool moved = next_softmax(s, state, keep, $(pr.unit_log2));
            if (moved) others[0] *= keep[0], others[1] *= keep[1];
            hand_over();
            if (moved) rescale(o, keep);
            continue;
          }
//| end
          if constexpr (EARLY) {
            begin(2);
            wgmma_wait<$(l.halves and 2 or 1)>(o);
            next_block();
          } else {
            wgmma_wait<0>(o);
            next_block();
            begin(1);
          }
          block--;
          pass();
        }
        to_operand(a, s);
        multiply();
//| if l.halves then
        if (block == keys.loaded_lo) named_arrive(ALL_SCORED, 128 * CONSUMERS);  // the last block is this warpgroup's
//| end
        wgmma_wait<0>(o);
        next_block();
        block--;
      }
      if (block == keys.loaded_lo) {
        take();
        multiply();
//| if l.halves then
        // All S are there, and these warps have the last P: Q of the next tile comes beside the last P V.
        named_wait(ALL_SCORED, 128 * CONSUMERS);
        TileQueue after = tiles;
        Tile next;
        after.slot.next();
        if (after.next(p, smem, next)) {
          const KeyRange of_next = after.keys(p, smem, 0);
          if (of_next.loaded_hi >= of_next.loaded_lo) ask_queries(next, warp_row, 16);
        }
//| end
        wgmma_wait<0>(o);
        next_block();
      }
    }
    state[0].l += others[0], state[1].l += others[1];
//| if l.halves then
    begin_at += 4 * (last + 1);
    fresh = last < 0;
//| end
    where = tiles.again(p, smem);
    tiles.done(smem, true);
//| local sequence = p.has_lengths and " sequence," or ""
//| if not p.has_lengths then
    const Sequence stored = sequence_of(p, where.batch);
//| end
//| if l.near then
    float sum[NO_OWN];
    RowState all[2];
    add_near_parts(smem, number, wg, o, state, sum, all, $(pr.unit_log2));
    store_rows<true>(p, where,$(sequence) sum, all, where.row + warp_row + g, t, column + (int)cluster_rank() * 2 * NO_OWN, 0);
//| elseif l.counts then
    if (where.parts > 1) {
      const Sequence &of = $(p.has_lengths and "sequence" or "stored");
      store_part(p, where, of, o, state, where.row + row_in_tile(0), column, wg * OVERLAP);
      add_held_parts(p, where, of, warp_row, column, wg * OVERLAP);
    } else {
      store_rows<true>(p, where,$(sequence) o, state, where.row + row_in_tile(0) + warp_row + g, t, column, wg * OVERLAP);
    }
//| else
    if (where.parts > 1)
      store_part(p, where, $(p.has_lengths and "sequence" or "stored"), o, state, where.row + row_in_tile(0), column, wg * OVERLAP);
    else
      store_rows<true>(p, where,$(sequence) o, state, where.row + row_in_tile(0) + warp_row + g, t, column, wg * OVERLAP);
//| end
  }
}
