//| needs "l.pass?"
//| local of = l.pass and "PASS" or "CHUNKS"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// ---- dQ of a tile of queries: dS, as the kernel of dK and dV left it, times the keys that they see ----

//| pr.tiles_of()

extern "C" __global__ void __launch_bounds__(THREADS, 1) fa_grad_q(const __grid_constant__ Params p) {
  extern __shared__ __align__(128) unsigned char shared[];
  const u32 smem = shared_address(shared);
//| wk.tile_of_queries()
  const int row0 = tile * QUERIES, member = head_index % p.members, local = head_index / p.members;
  const int unit = p.unit + local, kv_head = unit % p.hkv;
  const Sequence sequence = sequence_of(p, unit / p.hkv);
  const int sq = sequence.sq();
  if (row0 >= sq) return;
  const int warp_row = threadIdx.x / 32 * 16 * QB;
  const Fragments<CHUNKS> at = make_fragments<CHUNKS>();
  const Range range = key_range(p, sequence, row0, min(row0 + QUERIES, sq) - 1);
  Tiles tiles[QB];
//| if l.pass then
#pragma unroll 1
  for (int pass = 0; pass < PASSES_Q; pass++) {
  const int first_q = min(pass * PASS, CHUNKS - PASS);
//| end
  float dq[QB][$(of)][4];
#pragma unroll
  for (int m = 0; m < QB; m++) {
    tiles[m] = tiles_of(sequence, row0 + warp_row + m * 16);
#pragma unroll
    for (int n = 0; n < $(of); n++) dq[m][n][0] = dq[m][n][1] = dq[m][n][2] = dq[m][n][3] = 0.f;
  }
//| local first, following, more = "range.block_lo", "next++", "next <= range.block_hi"
//| local blocks, after = "int block = range.block_lo; block <= range.block_hi; block++", "block + 1"
//| local key = pr.marked and "0" or "range.block_lo * BC"
//| local has, holds, place = "", "tiles[m].holds((block + 1) * (BC / 16), BC / 16)", "i"
//| if pr.marked then
//|   first, following, more = "first", "next = marks.next<BC>(next + 1)", "next >= 0"
//|   blocks, after, place = "int block = first, after = -1; block >= 0; block = after", "after", "(block * (BC / 16) + i)"
//|   has = " && own[m].some((block * (BC / 16) + i) * 16, 16)"
//|   holds = "tiles[m].holds(after * (BC / 16), BC / 16) && own[m].some(after * BC, 1) && own[m].some(after * BC + BC - 1, 1)"
  const int head = kv_head * p.group + p.member + member;
  const Marks marks = marks_of_queries(p, sequence, head, row0, QUERIES);
  const int first = marks.next<BC>(0);
  Marks own[QB];  // of dS of other tiles nothing was left
#pragma unroll
  for (int m = 0; m < QB; m++) own[m] = marks_of_queries(p, sequence, head, row0 + warp_row + m * 16, 16);
//| end
  int next = $(first), next_stage = 0;
  auto load_next = [&] {
    if ($(more)) {
      load_rows<BC, CHUNKS, D>(smem + next_stage * Q_STAGE, p.k, sequence.k() + kv_head * p.k_sh, p.k_ss, next * BC, range.key_lo,
                               range.key_hi);
      $(following);
      next_stage ^= 1;
    }
    cp_async_commit();
  };
  load_next();
  // dS of 16 keys for every 16 rows of the warp. A block's tiles replace those of the block before as soon as these are used.
  const uint4 *from[QB];  // of the tiles that are loaded next
#pragma unroll
  for (int m = 0; m < QB; m++) from[m] = scores_of(p, local, member, row0 + warp_row + m * 16, $(key));
  u32 a[BC / 16][QB][4];
  // `all` is false where some tiles may be missing: zeros stand for them.
  auto load_scores = [&](auto all, int i, int block) {
#pragma unroll
    for (int m = 0; m < QB; m++) {
      uint4 x = make_uint4(0, 0, 0, 0);
      if (all.value || tiles[m].has(block * (BC / 16) + i)$(has)) x = load_streamed(from[m] + $(place) * (SCORES / 16));
      a[i][m][0] = x.x, a[i][m][1] = x.y, a[i][m][2] = x.z, a[i][m][3] = x.w;
    }
  };
//| if not pr.marked then
  auto advance = [&] {
#pragma unroll
    for (int m = 0; m < QB; m++) from[m] += BC / 16 * (SCORES / 16);
  };
//| end
#pragma unroll
  for (int i = 0; i < BC / 16; i++) load_scores(Constant<false>(), i, $(first));
//| if not pr.marked then
  advance();
//| end
  int stage = 0;
#pragma unroll 1
  for ($(blocks)) {
//| if pr.marked then
    after = marks.next<BC>(block + 1);
//| end
    cp_async_wait<0>();
    __syncthreads();  // K has arrived, everyone is through with the block before
    load_next();
    bool sees = false, next_all = true;
#pragma unroll
    for (int m = 0; m < QB; m++) {
      sees = sees || tiles[m].meets(block * (BC / 16), BC / 16);
      next_all = next_all && $(holds);
    }
    auto add = [&](auto all) {
#pragma unroll
      for (int i = 0; i < BC / 16; i++) {
        add_block(dq, a[i], {smem + stage * Q_STAGE, $(l.pass and "(u32)first_q * 16" or "0")}, i * 16, at);
        load_scores(all, i, $(after));
      }
    };
    if (sees && next_all) {
      add(Constant<true>());
    } else if (sees) {
      add(Constant<false>());
    } else {
#pragma unroll
      for (int i = 0; i < BC / 16; i++) load_scores(Constant<false>(), i, $(after));
    }
//| if not pr.marked then
    advance();
//| end
    stage ^= 1;
  }
  __syncthreads();  // the blocks of K are free for what is stored
  store_rows<QB, $(of), D>(p, dq, $(pr.grad_scale), smem + warp_row * $(of) * 16, p.grad_q,
                            sequence.grad_q() + (row0 + warp_row) * p.grad_q_ss + (kv_head * p.group + p.member + member) * p.grad_q_sh,
                            p.grad_q_ss,
                            sq - row0 - warp_row$(l.pass and ", first_q" or ""));
//| if l.pass then
  __syncthreads();  // what was stored has been read
  }
//| end
}
