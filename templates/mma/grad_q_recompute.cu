//| needs "c.stages l.pass?"
//| local of = l.pass and "PASS" or "CHUNKS"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// ---- dQ of a tile of queries: over the keys that they see ----
extern "C" __global__ void __launch_bounds__(THREADS, 1) fa_grad_q(const __grid_constant__ Params p) {
  extern __shared__ __align__(128) unsigned char shared[];
  const u32 smem = shared_address(shared);
//| wk.tile_of_queries()
  const int row0 = tile * QUERIES, head = head_index % p.hq, kv_head = head / p.group;
  const Sequence sequence = sequence_of(p, head_index / p.hq);
  const int sq = sequence.sq();
  if (row0 >= sq) return;
  const int warp_row = threadIdx.x / 32 * 16 * QB, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const u32 q_rows = smem + warp_row * CHUNKS * 16, grad_rows = smem + SMEM_Q_GRAD_O + warp_row * CHUNKS_V * 16;
  const Fragments<CHUNKS> at = make_fragments<CHUNKS>();
  const Fragments<CHUNKS_V> at_v = make_fragments<CHUNKS_V>();
  const Range range = key_range(p, sequence, row0, min(row0 + QUERIES, sq) - 1);
//| if l.pass then
#pragma unroll 1
  for (int pass = 0; pass < PASSES_Q; pass++) {
  const int first_q = min(pass * PASS, CHUNKS - PASS);
//| end
  float dq[QB][$(of)][4], lse[QB][2], delta[QB][2];
#pragma unroll
  for (int m = 0; m < QB; m++) {
#pragma unroll
    for (int n = 0; n < $(of); n++) dq[m][n][0] = dq[m][n][1] = dq[m][n][2] = dq[m][n][3] = 0.f;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int i = row0 + warp_row + m * 16 + h * 8 + g;
      const float2 pair = i < sq ? ((const float2 *)p.delta)[sequence.delta(head, i)] : make_float2(infinity(), 0.f);
      lse[m][h] = pair.x, delta[m][h] = pair.y;
    }
  }
//| indented(2, pr.begin_dropout, "(int)(sequence.number() * p.hq) + head")
//| indented(2, pr.begin_score, "head")
//| local first, following, more = "range.block_lo", "next++", "next <= range.block_hi"
//| local blocks = "int block = range.block_lo; block <= range.block_hi; block++"
//| if pr.marked then
//|   first, following, more = "marks.next<BC>(0)", "next = marks.next<BC>(next + 1)", "next >= 0"
//|   blocks = "int block = marks.next<BC>(0); block >= 0; block = marks.next<BC>(block + 1)"
  const Marks marks = marks_of_queries(p, sequence, head, row0, QUERIES);
//| end
  int next = $(first), next_stage = 0;
  auto load_next = [&] {
    if ($(more)) {
      const u32 to = smem + SMEM_Q_STAGES + next_stage * Q_STAGE;
      load_rows<BC, CHUNKS, D>(to, p.k, sequence.k() + kv_head * p.k_sh, p.k_ss, next * BC, range.key_lo, range.key_hi);
      load_rows<BC, CHUNKS_V, DV>(to + STAGE_V, p.v, sequence.v() + kv_head * p.v_sh, p.v_ss, next * BC, range.key_lo, range.key_hi);
      $(following);
//| if c.stages == 2 then
      next_stage ^= 1;
//| end
    }
    cp_async_commit();
  };
  if ($(l.pass and "pass == 0 && " or "")$(pr.marked and more or "range.block_lo <= range.block_hi")) {
    load_rows<QUERIES, CHUNKS, D>(smem, p.q, sequence.q() + head * p.q_sh, p.q_ss, row0, 0, sq - 1);
    load_rows<QUERIES, CHUNKS_V, DV>(smem + SMEM_Q_GRAD_O, p.grad_o, sequence.grad_o() + head * p.grad_o_sh, p.grad_o_ss, row0, 0, sq - 1);
  }
  load_next();
  int stage = 0;
#pragma unroll 1
  for ($(blocks)) {
    cp_async_wait<0>();
    __syncthreads();  // K and V have arrived, everyone is through with the block before
//| if c.stages == 2 then
    load_next();
//| end
    const u32 tile = smem + SMEM_Q_STAGES + stage * Q_STAGE;
    float s[QB][NB_KEYS][4], ds[QB][NB_KEYS][4];
    dot_rows(s, {q_rows, 0}, {tile, 0}, at);
    dot_rows(ds, {grad_rows, 0}, {tile, STAGE_V}, at_v);
//| indented(4, pr.dropping, "drop(ds, dropout, number, row0 + warp_row, block * BC, " .. pr.keep_scale .. ");")
    const bool masked = $(pr.is_cut("range"))$(pr.marked and " || !marks.all(block * BC, BC)" or "");
//| local probability = pr.probability("s[m][n][e]", "p.scale_log2", "lse[m][e / 2]")
//| if pr.of_pairs then
//|   probability = pr.bends and "bent(s[m][n][e], bends[m][n][e])" or "s[m][n][e]"
//|   if pr.bends then
    float bends[QB][NB_KEYS][4];
//|   end
//|   if pr.marked then
    if (masked) {
//|     indented(6, pr.probabilities, "mma_queries", "s", "bends", "true", "true")
    } else {
//|     indented(6, pr.probabilities, "mma_queries", "s", "bends", "true", "false")
    }
//|   else
//|     indented(4, pr.probabilities, "mma_queries", "s", "bends", "true")
//|   end
//| end
#pragma unroll
    for (int m = 0; m < QB; m++)
#pragma unroll
      for (int n = 0; n < NB_KEYS; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
          ds[m][n][e] = grad_score($(probability), ds[m][n][e], delta[m][e / 2]);
    if (masked) {
//|   indented(6, pr.hide, "mma_queries", "ds", "0.f")
    }
    add_rows(dq, ds, {tile, $(l.pass and "(u32)first_q * 16" or "0")}, at);
//| if c.stages == 2 then
    stage ^= 1;
//| else
    __syncthreads();
    load_next();
//| end
  }
//| if l.pass then
  __syncthreads();  // the stages are free for what is stored
//| else
  __syncwarp();  // the warp's rows of Q are free for what is stored
//| end
  store_rows<QB, $(of), D>(p, dq, $(pr.grad_scale), $(l.pass and "smem + SMEM_Q_STAGES + warp_row * PASS * 16" or "q_rows"), p.grad_q,
                            sequence.grad_q() + (row0 + warp_row) * p.grad_q_ss + head * p.grad_q_sh,
                            p.grad_q_ss, sq - row0 - warp_row$(l.pass and ", first_q" or ""));
//| if l.pass then
  __syncthreads();
  }
//| end
}
