//| needs "l.by_eight l.spread"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local items = "(blocks.hi - blocks.lo + 1) * " .. (l.spread and "unit.heads" or "p.members")
//| local is_last = pr.marked and "code.last()" or "item == items - 1"
// Two warpgroups with the same 64 keys: the first computes S, P and dV, and hands P to the second, which computes dP, dS and dK.
constexpr int P_FULL = 1, P_EMPTY = 2;  // named barriers of both

// P^T through shared memory, as the threads hold it: thread i of one warpgroup has what thread i of the other needs.
__device__ __forceinline__ u32 place_of_p(u32 smem) { return smem + SMEM_P + threadIdx.x % 128 * 16; }
__device__ __forceinline__ void hand_over(u32 smem, const float (&s)[NS]) {
#pragma unroll
  for (int n = 0; n < NS / 4; n++)
    store_shared(place_of_p(smem) + n * 2048, make_uint4(__float_as_uint(s[4 * n]), __float_as_uint(s[4 * n + 1]),
                                                         __float_as_uint(s[4 * n + 2]), __float_as_uint(s[4 * n + 3])));
}
__device__ __forceinline__ void take_over(u32 smem, float (&s)[NS]) {
#pragma unroll
  for (int n = 0; n < NS / 4; n++) {
    const uint4 x = load_shared_x4(place_of_p(smem) + n * 2048);
    s[4 * n] = __uint_as_float(x.x), s[4 * n + 1] = __uint_as_float(x.y);
    s[4 * n + 2] = __uint_as_float(x.z), s[4 * n + 3] = __uint_as_float(x.w);
  }
}

// S of the next block is issued after dV.
__device__ __forceinline__ void consume_values(const Params &p, u32 smem, const Unit &unit, const Sequence &sequence, int key0,
                                               const QueryBlocks &blocks, Ring<STAGES> &ring, Ring<1> &keys_ring, bool &handed) {
  const u32 k = place(smem), q = k + SMEM_Q / 16, grad_o = k + SMEM_GRAD_O / 16;
  float dv[NV];
//| if l.spread then
  clear(dv);
//| else
  begin_sums(p, dv, unit, key0, NK);
//| end
//| if not pr.marked then
  const int items = blocks.lo <= blocks.hi ? $(items) : 0;
//| end
  if ($(pr.marked and "blocks.lo <= blocks.hi" or "items > 0")) {
    float s[NS];
    u32 a[NS / 2];
    mbarrier_wait(k_full(smem), keys_ring.parity);
    mbarrier_wait(q_full(smem, ring.at), ring.parity);
    wgmma_fence(dv);
    issue_dots<D>(s, k, q + ring.at * (Q_TILE / 16));
    wgmma_commit();
//| if pr.marked then
//|   if not pr.late then
//|     indented(4, pr.begin_scores, "load_head(smem, ring)")
//|   end
//| else
    int block = blocks.lo;
//|   indented(4, pr.begin_scores, "first_head(p, unit)")
//|   indented(4, pr.dropping, "int number = unit.batch * p.hq + first_head(p, unit);  // of the head at hand among those of all sequences")
//| end
#pragma unroll 1
    for ($(pr.marked and "" or "int item = 0");;$(pr.marked and "" or " item++")) {
      const u32 grad_o_used = grad_o_empty(smem, ring.at);
//| if pr.marked then
      const Code code = load_code(smem, ring);
      const int block = code.block();
//|   indented(6, pr.dropping, "const int number = unit.batch * p.hq + load_head(smem, ring);  // of the head among those of all sequences")
//| end
//| indented(6, pr.dropping, "const Kept kept = kept_of(p, number, key0, block * BR);")
      float lse[BR / 4];
      load_columns(lse, rows_at(smem, ring));
      wgmma_wait<0>(s);
//| local beside = l.by_eight and ", ring.parity >> 1" or pr.scored
//| local scored = (pr.late and ", load_head(smem, ring)" or beside) .. (pr.marked and ", code.sees_all(0)" or "")
      probabilities(s, a, lse, p, sequence, key0, block * BR$(scored));
      release(q_empty(smem, ring.at));
      if (handed) named_wait(P_EMPTY, 256);
      handed = true;
      hand_over(smem, s);
      named_arrive(P_FULL, 256);
//| indented(6, pr.dropping, "drop(a, kept);")
      mbarrier_wait(grad_o_full(smem, ring.at), ring.parity);
      wgmma_fence(a);
      wgmma_fence(dv);
      issue_sums(dv, a, grad_o + ring.at * (GRAD_O_TILE / 16));
      wgmma_commit();
      ring.next();
//| if not pr.marked then
//|   indented(6, pr.dropping, "number += block == blocks.hi;")
      block = block == blocks.hi ? blocks.lo : block + 1;
//| end
      if ($(is_last)) {
        wgmma_wait<0>(dv);
        release(grad_o_used);
        break;
      }
//| if not pr.marked then
//|   indented(6, pr.next_scores, "block == blocks.lo")
//| end
      mbarrier_wait(q_full(smem, ring.at), ring.parity);
//| if pr.marked and not pr.late then
//|   indented(6, pr.next_scores, "load_code(smem, ring).first()", "load_head(smem, ring)")
//| end
      wgmma_fence();
      issue_dots<D>(s, k, q + ring.at * (Q_TILE / 16));
      wgmma_commit();
      wgmma_wait<1>();  // dV
      release(grad_o_used);
    }
  }
  keys_done(smem, keys_ring);
//| if l.spread then
  leave_part(p, dv, unit, key0, NK);
//| else
  if (!last_members(p)) return leave_sums(p, dv, unit, key0, NK);
  const int keys = sequence.sk() - key0;
  store_rows<DV>(p, dv, $(pr.keep_scale), p.grad_v, sequence.grad_v() + key0 * p.grad_v_ss + unit.kv_head * p.grad_v_sh, p.grad_v_ss, keys);
//| end
}

// dP of the next block is issued after dK.
__device__ __forceinline__ void consume_keys(const Params &p, u32 smem, const Unit &unit, const Sequence &sequence, int key0,
                                             const QueryBlocks &blocks, Ring<STAGES> &ring, Ring<1> &keys_ring, int warp) {
  const u32 base = place(smem), v = base + SMEM_V / 16, grad_o = base + SMEM_GRAD_O / 16, q = base + SMEM_Q / 16;
  GradScores grad_s;
  float dk[NK];
//| if l.spread then
  clear(dk);
//| else
  begin_sums(p, dk, unit, key0, 0);
//| end
//| if not pr.marked then
  const int items = blocks.lo <= blocks.hi ? $(items) : 0;
//| end
  if ($(pr.marked and "blocks.lo <= blocks.hi" or "items > 0")) {
    float dp[NS], s[NS];
    u32 b[NS / 2];
    mbarrier_wait(v_full(smem), keys_ring.parity);
    mbarrier_wait(grad_o_full(smem, ring.at), ring.parity);
    wgmma_fence(dk);
    issue_dots<DV>(dp, v, grad_o + ring.at * (GRAD_O_TILE / 16));
    wgmma_commit();
//| if not pr.marked then
    int block = blocks.lo, member = 0;
//| end
#pragma unroll 1
    for ($(pr.marked and "" or "int item = 0");;$(pr.marked and "" or " item++")) {
      const u32 q_used = q_empty(smem, ring.at);
      float delta[BR / 4];
      mbarrier_wait(q_full(smem, ring.at), ring.parity);
      load_columns(delta, rows_at(smem, ring) + BR * 4);
//| if pr.marked then
      const Code code = load_code(smem, ring);
      const int block = code.block(), member = load_head(smem, ring) - first_head(p, unit);
//| end
//| indented(6, pr.dropping, "const Kept kept = kept_of(p, unit.batch * p.hq + first_head(p, unit) + member, key0, block * BR);")
      named_wait(P_FULL, 256);
      take_over(smem, s);
      wgmma_wait<0>(dp);
      release(grad_o_empty(smem, ring.at));
      named_arrive(P_EMPTY, 256);
//| indented(6, pr.dropping, "drop(dp, kept, " .. pr.keep_scale .. ");")
      grad_scores(dp, s, delta);
      pack_rows(b, dp);
      wgmma_fence(b);
      wgmma_fence(dk);
      issue_sums(dk, b, q + ring.at * (Q_TILE / 16));
      wgmma_commit();
      $(pr.marked and "" or "if (block == blocks.lo) ")grad_s.begin(p, warp, unit, member, block, key0 / 64);
      grad_s.store(p, block, b);
      ring.next();
//| if not pr.marked then
      if (block++ == blocks.hi) block = blocks.lo, member++;
//| end
      if ($(is_last)) {
        wgmma_wait<0>(dk);
        release(q_used);
        break;
      }
      mbarrier_wait(grad_o_full(smem, ring.at), ring.parity);
      wgmma_fence();
      issue_dots<DV>(dp, v, grad_o + ring.at * (GRAD_O_TILE / 16));
      wgmma_commit();
      wgmma_wait<1>();  // dK
      release(q_used);
    }
  }
  keys_done(smem, keys_ring);
//| if l.spread then
  leave_part(p, dk, unit, key0, 0);
//| else
  if (!last_members(p)) return leave_sums(p, dk, unit, key0, 0);
  const int keys = sequence.sk() - key0;
  store_rows<D>(p, dk, $(pr.grad_scale), p.grad_k, sequence.grad_k() + key0 * p.grad_k_ss + unit.kv_head * p.grad_k_sh, p.grad_k_ss, keys);
//| end
}

__device__ __forceinline__ void consume_tiles(const Params &p, u32 smem, int wg, int warp) {
  Ring<STAGES> ring;
  Ring<1> keys;
  bool handed = false;  // P to the other warpgroup
  each_tile(p, smem, [&](const TileQueue &, const Unit &unit, const Sequence &sequence, int key0, const QueryBlocks &blocks) {
    if (wg == 0)
      consume_values(p, smem, unit, sequence, key0, blocks, ring, keys, handed);
    else
      consume_keys(p, smem, unit, sequence, key0, blocks, ring, keys, warp);
  });
}
