//| needs "c.held l.apart l.by_eight l.columns l.dq l.early l.early_d l.spread l.stored_beside"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local dO = l.apart and ", grad_o_full(smem, next.at), next.parity" or ""
//| local first = l.spread and "unit.head" or "unit.kv_head * p.group"
//| -- A branch keeps all additions before the wait for dK: the assembler would put half of them behind it.
//| local first_is_zeros = not l.apart and not pr.marked and "if (item > 0) " or ""
//| local next_v = c.held > 1 and "v" or "v + unknown_zero(next)"
//| local beside = l.by_eight and ", ring.parity >> 1" .. (l.early_d and ", rows + BR * 4" or "") or pr.scored
// ---- two warpgroups with 64 keys each, which add up dQ of a block of queries together ----
// dQ of a block is a product over the keys of both, so it waits for dS of both: it is issued with dK of the next block, when dS has long
// been there. Each warpgroup computes half of the columns, and adds them in global memory in fp32.
//| if l.early then
// S and dP of the next block are issued before dK and dQ: the exponentials begin when S is there, beside the other three.
//| end
constexpr int COLUMNS = $(l.columns);  // of dQ that a warpgroup computes; those of the second past D are dropped
constexpr int NQ = COLUMNS / 2;    // registers of them per thread

// stored: all warps have stored their dS of a block of queries; full: wgmma may read it; empty: all have multiplied it.
__device__ __forceinline__ u32 ds_stored(u32 smem, int buffer) { return barrier(smem, 2 + 4 * STAGES + buffer); }
__device__ __forceinline__ u32 ds_full(u32 smem, int buffer) { return barrier(smem, 2 + 4 * STAGES + DS_BUFS + buffer); }
__device__ __forceinline__ u32 ds_empty(u32 smem, int buffer) { return barrier(smem, 2 + 4 * STAGES + 2 * DS_BUFS + buffer); }
__device__ __forceinline__ u32 ds_buffer(u32 smem, int buffer) { return smem + SMEM_DS + buffer * (2 * DS_TILE); }

// One thread beside the warpgroups that multiply: fences dS from the products that read it. A fence lasts 220 clocks of its thread after
// stores, and no product waits for dS of the block at hand. A phase with nothing in it, after SMEM_ENDED, ends this.
__device__ __forceinline__ void fence_scores(u32 smem) {
  Ring<DS_BUFS> ds;
#pragma unroll 1
  for (;; ds.next()) {
    mbarrier_wait(ds_stored(smem, ds.at), ds.parity);
    if (load_shared(smem + SMEM_ENDED)) break;
    fence_async();
    mbarrier_arrive(ds_full(smem, ds.at));
  }
}

// Issues the warpgroup's columns of dS K, both by their places. zero: where no compiler can prove it to be 0, x is an operand, and the
// additions of the block before have its registers until then. They are slow to read them.
__device__ __forceinline__ void issue_grad_q(float (&x)[NQ], u32 ds, u32 keys, u32 zero) {
//| local asm = include("machine/asm_operands.lua")
//| local rows, others = {}, {}
//| for i = 0, 7 do
//|   rows[#rows + 1] = ('"l"(descriptor<128>(ds + across_rows(DS_TILE) + (%d * DS_TILE + %d * 2048) / 16))'):format(i // 4, i % 4)
//|   local key = '"l"(descriptor<ROW>(keys + across_rows(64 * ROW) + (%d * K_TILE + %d * 16 * ROW) / 16))'
//|   others[#others + 1] = key:format(i // 4, i % 4)
//| end
  $(asm.products { to = "x", n = l.dq, shape = asm.shape(p, l.dq * 2), a = rows, b = others, tail = "1, 1, 1, 1", begins = '"r"(zero)' })
}

//| if l.by_eight then
// Whether all three have ended by now.
__device__ __forceinline__ bool mbarrier_test_all(u32 a, u32 parity_a, u32 b, u32 parity_b, u32 c, u32 parity_c) {
  u32 done;
  asm volatile("{\n"
               ".reg .pred done<3>;\n"
               "mbarrier.test_wait.parity.shared::cta.b64 done0, [%1], %2;\n"
               "mbarrier.test_wait.parity.shared::cta.b64 done1, [%3], %4;\n"
               "mbarrier.test_wait.parity.shared::cta.b64 done2, [%5], %6;\n"
               "and.pred done0, done0, done1;\n"
               "and.pred done0, done0, done2;\n"
               "selp.u32 %0, 1, 0, done0;\n"
               "}" : "=r"(done) : "r"(a), "r"(parity_a), "r"(b), "r"(parity_b), "r"(c), "r"(parity_c) : "memory");
  return done != 0;
}

//| end
// Where the thread's part of dQ of a block is added, block by block, head by head: 16 bytes of each lane side by side.
struct GradQueries {
  float *to;
//| if not pr.marked then
  int block;
  __device__ __forceinline__ void begin(const Params &p, const Unit &unit, const QueryBlocks &blocks, int wg, int warp) {
    const long long head = (long long)unit.batch * p.hq + $(first);
    to = (float *)p.sums + (head * ((p.sq + 63) / 64) + blocks.lo) * (64 * D) + wg * 64 * COLUMNS + warp * 16 * columns(wg) +
         threadIdx.x % 32 * 4;
    block = blocks.lo;
  }
//| else
  __device__ __forceinline__ void begin(const Params &p, const Unit &unit, int wg, int warp) {
    to = (float *)p.sums + (long long)unit.batch * p.hq * ((p.sq + 63) / 64) * (64 * D) + wg * 64 * COLUMNS + warp * 16 * columns(wg) +
         threadIdx.x % 32 * 4;
  }
  // The number of a block among those of all heads.
  static __device__ __forceinline__ int number(const Params &p, u32 smem, const Ring<STAGES> &ring) {
    return load_head(smem, ring) * ((p.sq + 63) / 64) + load_code(smem, ring).block();
  }
//| end
  static __device__ __forceinline__ int columns(int wg) { return wg == 0 ? COLUMNS : D - COLUMNS; }
//| if not pr.marked then
  // Before all but the first that are real: the additions before read their address for long.
  __device__ __forceinline__ void next(const Params &p, const QueryBlocks &blocks) {
//|   if l.by_eight then
    const bool last = block == blocks.hi;
    to += (long long)(last ? (p.sq + 63) / 64 - (blocks.hi - blocks.lo) : 1) * (64 * D);
    block = last ? blocks.lo : block + 1;
//|   else
    to += 64 * D;
    if (block++ == blocks.hi) block = blocks.lo, to += ((long long)((p.sq + 63) / 64) - (blocks.hi - blocks.lo + 1)) * (64 * D);
//|   end
  }
//| end
//| local place = pr.marked and "(long long)number * (64 * D) + n" or "n"
  __device__ __forceinline__ void add(int wg, const float (&x)[NQ]$(pr.marked and ", int number" or "")) {
#pragma unroll
    for (int n = 0; n < NQ / 4; n++)
      if (n < columns(wg) / 8) add_global(to + $(place) * 128, x[4 * n], x[4 * n + 1], x[4 * n + 2], x[4 * n + 3]);
  }
};

template <int N>
__device__ __forceinline__ void clear(float (&x)[N]) {
#pragma unroll
//| if l.early then
  // Where the compiler moved zeros between products, ptxas would put wgmma one after the other.
  for (int i = 0; i < N; i++) asm volatile("mov.b32 %0, 0;" : "=f"(x[i]));
//| else
  for (int i = 0; i < N; i++) x[i] = 0.f;
//| end
}

__device__ __forceinline__ void consume_tile(const Params &p, u32 smem, const Unit &unit, const Sequence &sequence, int key0,
                                             const QueryBlocks &blocks, const TileQueue &queue, Ring<STAGES> &ring, Ring<1> &keys_ring,
                                             Ring<DS_BUFS> &ds, int wg, int warp) {
  const int lane = threadIdx.x % 32, key = key0 + wg * 64;
  const u32 base = place(smem), q = base + SMEM_Q / 16, grad_o = base + SMEM_GRAD_O / 16;
//| if c.held < 2 then
  const u32 v = base + (SMEM_V + wg * V_TILE) / 16;
//| end
//| if c.held < 1 then
  const u32 k = base + wg * K_TILE / 16;
//| end
  const u32 keys = base + wg * (BOXES > 1 ? COLUMNS / BOX * 64 * ROW : COLUMNS * 2) / 16, ds_first = base + SMEM_DS / 16;  // for dQ
  // The warp's rows of keys of a tile; matrices of a store: keys 0..7, 8..15 of the warp for eight queries, and for the next eight.
  const u32 ds_row = wg * DS_TILE + warp * 2048 + lane % 16 * 128$(l.by_eight and " + (lane / 16 ^ lane % 8) * 16" or "");
//| if not pr.marked then
  const int items = blocks.lo <= blocks.hi ? (blocks.hi - blocks.lo + 1) * $(l.spread and "unit.heads" or "p.group") : 0;
//| end
  float dk[NK], dv[NV];
  clear(dk), clear(dv);
  if ($(pr.marked and "blocks.lo <= blocks.hi" or "items > 0")) {
    GradQueries grad_q;
    grad_q.begin(p, unit, $(pr.marked and "" or "blocks, ")wg, warp);
    // Before the first block: dS of zeros, so that every iteration of the loop has a product and adds it.
    Ring<DS_BUFS> before = ds;
    mbarrier_wait(ds_empty(smem, ds.at), ds.parity ^ 1);
    ds.next();
#pragma unroll
    for (int n = 0; n < DS_TILE; n += 2048)
      store_shared(ds_buffer(smem, before.at) + wg * DS_TILE + threadIdx.x % 128 * 16 + n, make_uint4(0, 0, 0, 0));
    release(ds_stored(smem, before.at));
    float s[NS], dp[NS], dq[NQ];
    clear(dq);
    u32 a[NS / 2], b[NS / 2];  // P and dS as operands
    mbarrier_wait(k_full(smem), keys_ring.parity);
    mbarrier_wait(v_full(smem), keys_ring.parity);
//| if c.held > 0 then
    u32 k[(D + 15) / 16 * 4];
    hold_rows(k, smem + wg * K_TILE);
//| end
//| if c.held > 1 then
    u32 v[(DV + 15) / 16 * 4];
    hold_rows(v, smem + SMEM_V + wg * V_TILE);
//| end
//| if not pr.marked then
//|   indented(4, pr.dropping,
//|     "int number = unit.batch * p.hq + " .. first .. ";  // of the head at hand among those of all sequences",
//|     "Kept kept = kept_of(p, number, key, blocks.lo * BR);")
//|   indented(4, pr.begin_scores, first)
//| end
    mbarrier_wait_all(q_full(smem, ring.at), ring.parity, grad_o_full(smem, ring.at), ring.parity);
    wgmma_fence();
    issue_dots<D>(s, k, q + ring.at * (Q_TILE / 16));
    wgmma_commit();
    issue_dots<DV>(dp, v, grad_o + ring.at * (GRAD_O_TILE / 16));
    wgmma_commit();
//| if l.early then
    wgmma_commit(), wgmma_commit();  // groups of nothing in the place of dK and dQ
//| end
//| if pr.marked then
    int at_hand = GradQueries::number(p, smem, ring), at_before = at_hand;  // that of `before`
//|   if not pr.late then
//|     indented(4, pr.begin_scores, "load_head(smem, ring)")
//|   end
//|   indented(4, pr.dropping,
//|     "Kept kept = kept_of(p, unit.batch * p.hq + load_head(smem, ring), key, load_code(smem, ring).block() * BR);")
//| else
    int block = blocks.lo;
//| end
    float columns[BR / 4];  // LSE, then D
    load_columns(columns, rows_at(smem, ring));
#pragma unroll 1
    for ($(pr.marked and "" or "int item = 0");;$(pr.marked and "" or " item++")) {
      const u32 rows = rows_at(smem, ring);
      wgmma_wait<$(l.early and 3 or 1)>(s);
//| if pr.marked then
//|   local scored = pr.late and ", load_head(smem, ring)" or pr.scored
      const Code code = load_code(smem, ring);
      probabilities(s, a, columns, p, sequence, key, code.block() * BR$(scored), code.sees_all(wg));
//| else
      probabilities(s, a, columns, p, sequence, key, block * BR$(beside));
//| end
//| indented(6, pr.dropping, "drop(a, kept);")
//| if not l.early_d then
      load_columns(columns, rows + BR * 4);
//| end
      wgmma_fence(a);
      issue_sums(dv, a, grad_o + ring.at * (GRAD_O_TILE / 16));
      wgmma_commit();
//| if l.by_eight then
      mbarrier_wait(ds_empty(smem, ds.at), ds.parity ^ 1);
      Ring<STAGES> next = ring;
      next.next();
      // Asked before dS is computed, beside which the answer comes.
      const bool ready = mbarrier_test_all(q_full(smem, next.at), next.parity, ds_full(smem, before.at), before.parity$(dO));
//| end
      wgmma_wait<1>(dp);
//| if l.early then
      wgmma_wait<1>(dq);  // of the block before the last, and dK of the last
      if (item > 0) {
        release(q_empty(smem, (ring.at + STAGES - 1) % STAGES));
        release(ds_empty(smem, (ds.at + DS_BUFS - 2) % DS_BUFS));
      }
      if (item > 1) {  // before are zeros
        if (item > 2) grad_q.next(p, blocks);
        grad_q.add(wg, dq);
      }
//| end
//| indented(6, pr.dropping, "drop(dp, kept, " .. pr.keep_scale .. ");")
//| if l.by_eight then
      // Eight after eight, as the exponentials.
#pragma unroll
      for (int n = 0; n < BR / 8; n += 2) {
        const float one = n == 0 ? 1.f : __uint_as_float(0x3f800000u | (__float_as_uint(dp[4 * n - 8]) & ring.parity >> 1));
#pragma unroll
        for (int i = 4 * n; i < 4 * n + 8; i++) dp[i] = $(pr.dscore("s[i]", "dp[i] * one", "columns[i / 4 * 2 + i % 2]"));
#pragma unroll
        for (int i = 2 * n; i < 2 * n + 4; i++) b[i] = pack2(dp[2 * i], dp[2 * i + 1]);
        stmatrix_x4((ds_buffer(smem, ds.at) + ds_row) ^ n * 16, b[2 * n], b[2 * n + 1], b[2 * n + 2], b[2 * n + 3]);
      }
//| else
      grad_scores(dp, s, columns);
      pack_rows(b, dp);
      mbarrier_wait(ds_empty(smem, ds.at), ds.parity ^ 1);
#pragma unroll
      for (int n = 0; n < BR / 8; n += 2)
        stmatrix_x4(ds_buffer(smem, ds.at) + ds_row + ((n + lane / 16) ^ lane % 8) * 16, b[2 * n], b[2 * n + 1], b[2 * n + 2],
                    b[2 * n + 3]);
//| end
      release(ds_stored(smem, ds.at));
//| if not pr.marked then
//|   indented(6, pr.dropping, "number += block == blocks.hi;")
      if (block++ == blocks.hi) block = blocks.lo;
//|   indented(6, pr.dropping,
//|     "kept = kept_of(p, number, key, block * BR);  // S and dP are no longer in registers, and the other warpgroup has its turn")
//| end
      if ($(pr.marked and "code.last()" or "item == items - 1")) break;
//| if not pr.marked then
//|   indented(6, pr.next_scores, "block == blocks.lo")
//|   if not l.early then
      if (item > 1) grad_q.next(p, blocks);
//|   end
//| end
//| if not l.by_eight then
      Ring<STAGES> next = ring;
      next.next();
//| end
//| if l.by_eight then
      if (!ready)
//| end
      mbarrier_wait_all(q_full(smem, next.at), next.parity, ds_full(smem, before.at), before.parity$(dO));
      load_columns(columns, rows_at(smem, next));
//| if pr.marked then
//|   if not pr.late then
//|     indented(6, pr.next_scores, "load_code(smem, next).first()", "load_head(smem, next)")
//|   end
//|   indented(6, pr.dropping, "kept = kept_of(p, unit.batch * p.hq + load_head(smem, next), key, load_code(smem, next).block() * BR);")
//| end
      turn_wait(wg);
      wgmma_fence(b);
//| if l.early then
      issue_dots<D>(s, k$(c.held > 0 and "" or " + unknown_zero(next)"), q + next.at * (Q_TILE / 16));
      wgmma_commit();
      issue_dots<DV>(dp, $(next_v), grad_o + next.at * (GRAD_O_TILE / 16));
      wgmma_commit();
      issue_sums(dk, b, q + ring.at * (Q_TILE / 16));
      wgmma_commit();
      issue_grad_q(dq, ds_first + before.at * (2 * DS_TILE / 16), keys, unknown_zero(ring));
      wgmma_commit();
      turn_pass(wg);
      wgmma_wait<4>();  // dV
      release(grad_o_empty(smem, ring.at));
//| else
//|   if l.apart then
      issue_sums(dk, b, q + ring.at * (Q_TILE / 16));
      wgmma_commit();
//|   end
      issue_grad_q(dq, ds_first + before.at * (2 * DS_TILE / 16), keys, $(l.apart and "unknown_zero(ring)" or "0"));
      wgmma_commit();
//|   if not l.apart then
      issue_sums(dk, b, q + ring.at * (Q_TILE / 16));  // after dQ, whose additions come beside it
      wgmma_commit();
//|   end
      wgmma_wait<2>();  // dV
      release(grad_o_empty(smem, ring.at));
      wgmma_fence();
      issue_dots<D>(s, k$(c.held > 0 and "" or " + unknown_zero(next)"), q + next.at * (Q_TILE / 16));
      wgmma_commit();
      turn_pass(wg);
//|   if l.apart then
      issue_dots<DV>(dp, $(next_v), grad_o + next.at * (GRAD_O_TILE / 16));
      wgmma_commit();
      wgmma_wait<2>(dq);  // and dK
      release(q_empty(smem, ring.at));
//|   else
      wgmma_wait<2>(dq);
//|   end
      release(ds_empty(smem, before.at));
      $(first_is_zeros)grad_q.add(wg, dq$(pr.marked and ", at_before" or ""));
//|   if not l.apart then
      wgmma_wait<1>();  // dK
      release(q_empty(smem, ring.at));
      // dP takes the registers of dQ: the wait parts the two for the assembler, too.
      mbarrier_wait(grad_o_full(smem, next.at), next.parity);
      wgmma_fence();
      issue_dots<DV>(dp, $(next_v), grad_o + next.at * (GRAD_O_TILE / 16));
      wgmma_commit();
//|   end
//| end
      ring = next, before = ds, ds.next();
//| if pr.marked then
      at_before = at_hand, at_hand = GradQueries::number(p, smem, ring);
//| end
    }
    // The last block's dK, and dQ of the last two.
    float last[NQ];
    clear(last);
    turn_wait(wg);
    mbarrier_wait(ds_full(smem, before.at), before.parity);
    wgmma_fence(b);
    issue_sums(dk, b, q + ring.at * (Q_TILE / 16));
    wgmma_commit();
    issue_grad_q(last, ds_first + before.at * (2 * DS_TILE / 16), keys, 0);
    wgmma_commit();
    turn_pass(wg);
//| if l.stored_beside then
    // dV is stored beside these products, and dK beside that of the last block.
    wgmma_wait<2>(dv);
    release(grad_o_empty(smem, ring.at));
    store_keys<false, true>(p, dk, dv, queue, smem, wg);
//| end
    wgmma_wait<0>(last);
//| if l.stored_beside then
    wgmma_wait<0>(dk);
    release(q_empty(smem, ring.at));
    release(ds_empty(smem, before.at));
//| end
//| if not pr.marked then
    if (items > 2) grad_q.next(p, blocks);
//| end
    grad_q.add(wg, last$(pr.marked and ", at_before" or ""));
    mbarrier_wait(ds_full(smem, ds.at), ds.parity);
    wgmma_fence();
    issue_grad_q(last, ds_first + ds.at * (2 * DS_TILE / 16), keys, 0);
    wgmma_commit();
//| if l.stored_beside then
    store_keys<true, false>(p, dk, dv, queue, smem, wg);
//| end
    wgmma_wait<0>(last);
//| if not pr.marked then
    if (items > 1) grad_q.next(p, blocks);
//| end
    grad_q.add(wg, last$(pr.marked and ", at_hand" or ""));
//| if not l.stored_beside then
    wgmma_wait<0>(dk);
    wgmma_wait<0>(dv);
    release(q_empty(smem, ring.at));
    release(grad_o_empty(smem, ring.at));
//| end
    ring.next();
//| if not l.stored_beside then
    release(ds_empty(smem, before.at));
//| end
    release(ds_empty(smem, ds.at));
    ds.next();
//| if l.stored_beside then
    keys_done(smem, keys_ring);
    return;
//| end
  }
  keys_done(smem, keys_ring);
  store_keys(p, dk, dv, queue, smem, wg);
}

__device__ __forceinline__ void consume_tiles(const Params &p, u32 smem, int wg, int warp) {
  Ring<STAGES> ring;
  Ring<1> keys;
  Ring<DS_BUFS> ds;
  begin_turns(wg);
  each_tile(p, smem, [&](const TileQueue &queue, const Unit &unit, const Sequence &sequence, int key0, const QueryBlocks &blocks) {
    consume_tile(p, smem, unit, sequence, key0, blocks, queue, ring, keys, ds, wg, warp);
  });
  // Each warp has waited for all that it stored, so nothing is left to fence.
  if (threadIdx.x % 32 == 0) store_shared(smem + SMEM_ENDED, 1u);
  release(ds_stored(smem, ds.at));
}
