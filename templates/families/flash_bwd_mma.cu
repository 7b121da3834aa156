//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// fagen $(version), gradients of attention on mma.sync: P = exp(scale Q K^T - LSE), dS = P (dO V^T - D), dQ = scale dS K,
// dK = scale dS^T Q, dV = P^T dO.
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

// ---- the problem ----
constexpr int D = $(p.d);    // head_dim of Q and K
constexpr int DV = $(p.dv);  // head_dim of V and O
typedef unsigned short element;  // $(p.dtype)

// ---- the config ----
constexpr int WARPS = $(c.warps);
constexpr int THREADS = WARPS * 32;
constexpr int STAGES = $(c.stages);  // buffers of what an iteration reads
constexpr int KEYS = $(c.bc);        // that a block of dK and dV owns
constexpr int BR = $(c.br);          // queries per iteration of it
constexpr int PART = $(c.br_part);        // of them that a warp has at a time
constexpr int QUERIES = $(c.q_br);   // that a block of dQ owns
constexpr int BC = $(c.q_bc);        // keys per iteration of it

// ---- what follows from them ----
constexpr int KB = $(l.kb);  // blocks of 16 keys of a warp
constexpr int QB = $(l.qb);  // blocks of 16 queries of a warp
constexpr int NB_ROWS = PART / 8;  // blocks of 8 queries that a warp has at a time
//| if c.dq == 0 then
constexpr int NB_KEYS = BC / 8;  // blocks of 8 keys of an iteration of dQ
//| end
constexpr int CHUNKS = $(l.chunks);    // 16-byte chunks of a row of Q and K
constexpr int CHUNKS_V = $(l.chunks_v);  // 16-byte chunks of a row of V and dO
//| if l.pass then
// Gradients find no room in registers: a tile walks its queries, or keys, once for every PASS chunks of their columns.
constexpr int PASS = $(l.pass), PASSES = $(l.passes), PASSES_Q = (CHUNKS + PASS - 1) / PASS;
//| end
constexpr float LOG2E = 1.44269504088896341f;
// Offsets in shared memory of the kernel of dK and dV. A stage is Q, dO, and pairs of LSE in base 2 and D.
constexpr int SMEM_V = $(l.v), SMEM_STAGES = $(l.q), STAGE = $(l.stage);
constexpr int STAGE_GRAD_O = BR * CHUNKS * 16, STAGE_PAIRS = STAGE_GRAD_O + BR * CHUNKS_V * 16;
//| if c.twins == 1 then
constexpr int SMEM_P = $(l.p);  // P in fp32, from a warp to the other one of its keys
//| end
//| if c.dq == 1 then
constexpr int Q_STAGE = BC * CHUNKS * 16;  // of dQ: K
constexpr int SCORES = 512;                // bytes of a tile of dS: 16 queries, 16 keys
//| else
// The same of dQ. A stage is K and V.
constexpr int SMEM_Q_GRAD_O = $(l.q_grad_o), SMEM_Q_STAGES = $(l.q_k), Q_STAGE = $(l.q_stage), STAGE_V = BC * CHUNKS * 16;
//| end

//| include "machine/prelude.cu"

//| include "tiles/tile.cu"

//| include "pairs/sequence.cu"

//| include "pairs/mask.cu"

//| include "pairs/query_range.cu"

//| include "tiles/gradient.cu"

//| include "pairs/grad_probability.cu"

//| include "tiles/delta.cu"

//| include "mma/grad_products.cu"

//| include "mma/grad_store.cu"

//| pr.dropping_by("pairs/philox.cu", "mma/grad_dropout.cu")
//| if c.dq == 1 then
//|   include "mma/grad_spill.cu"

//| end

// ROWS rows of a 16-bit tensor from `row` on, which begins at `from`; those before `first` and after `last` become zeros.
template <int ROWS, int CHUNKS_OF, int WIDTH>
__device__ __forceinline__ void load_rows(u32 tile, const void *from, long long at, long long stride, int row, int first, int last) {
  load_tile<ROWS, CHUNKS_OF, false, WIDTH * 2>(tile, (const char *)((const element *)from + at + row * stride), stride * 2, first - row,
                                               last - row);
}

//| local walks = p.align >= 16 and l.chunks % 8 == 0 and l.chunks_v % 8 == 0 and c.br % (c.warps * 4) == 0
//| if walks then
// A thread's way through the rows of a tensor, ROWS at a time: where it reads next, and the place of its first piece in a tile. Rows of
// 8 n chunks are shared so that its other pieces lie at constant distances.
template <int ROWS, int CHUNKS_OF, int WIDTH>
struct Walk {
  using S = Share<CHUNKS_OF>;
  const char *from;
  __device__ __forceinline__ void begin(const void *tensor, long long at, long long stride, int row) {
    from = (const char *)((const element *)tensor + at + (row + S::row()) * stride) + S::col() * 16;
  }
  static __device__ __forceinline__ u32 place() { return kept(tile_offset<CHUNKS_OF>(S::row(), S::col())); }
  // Rows from `row` on; those before `first` and after `last` become zeros.
  __device__ __forceinline__ void load(u32 to, long long stride, int row, int first, int last) {
#pragma unroll
    for (int r = 0; r < ROWS; r += S::STEP, from += S::STEP * 2 * stride)
#pragma unroll
      for (int c = 0; c < CHUNKS_OF; c += S::WIDTH)
        cp_async<16>(to + (r * CHUNKS_OF + c) * 16, from + c * 16,
                     (u32)(row + S::row() + r - first) <= (u32)(last - first) &&
                         (WIDTH == CHUNKS_OF * 8 || (S::col() + c) * 8 < WIDTH));
  }
};
//| end

// dS out of P and dP.
__device__ __forceinline__ float grad_score(float probability, float grad, float delta) {
  return $(pr.dscore("probability", "grad", "delta"));
}

// ---- dK and dV of a tile of keys: over the queries that see them, of all heads of the group$(l.spill and ", some each launch" or "") ----

// LSE in base 2 and D of queries 2 t and 2 t + 1 of a block of eight.
struct Pairs {
  float lse[2], delta[2];
};
__device__ __forceinline__ void load_pairs(Pairs (&pairs)[NB_ROWS], u32 from) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < NB_ROWS; n++) {
    const uint4 x = load_shared_x4(from + (n * 8 + 2 * t) * 8);
    pairs[n] = {{__uint_as_float(x.x), __uint_as_float(x.z)}, {__uint_as_float(x.y), __uint_as_float(x.w)}};
  }
}

//| local hides = pr.right or c.dq == 1 or pr.has_score
//| local cuts = hides or pr.marked
//| if cuts then
//| pr.whole()

//| end
//| if hides then
//|   if pr.has_score then
// Pairs that the mask hides, and those of $(c.dq == 1 and "keys and " or "")queries after the last, become 0. key, row: the warp's first.
//|   elseif c.dq == 1 then
// Pairs that the mask hides, and keys after the last, become 0. key, row: the warp's first.
//|   else
// Pairs that the mask hides become 0. key, row: the warp's first.
//|   end
__device__ __forceinline__ void hide(float (&x)[KB][NB_ROWS][4], const Sequence &sequence, int key, int row) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
//|   indented(2, pr.hide, "mma_keys", "x", "0.f", c.dq == 1)
}
//| end

//| pr.meet()

//| local bends = pr.bends and ", float (&bends)[KB][NB_ROWS][4]" or ""
//| if pr.of_pairs then
// S^T becomes P^T; key, row: the warp's first. What becomes of keys after the last key is not stored.
//|   if pr.marked then
template <bool CUT>
//|   end
__device__ __forceinline__ void probabilities(float (&s)[KB][NB_ROWS][4]$(bends), const Params &p, const Pairs (&pairs)[NB_ROWS],
                                              const ScoreTile &scored, int key, int row) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
//|   indented(2, pr.probabilities, "mma_keys", "s", "bends", "true", "CUT")
}
//|   if pr.bends then
// P^T becomes what dP^T - D is multiplied by, in the place of the derivatives.
__device__ __forceinline__ void bend(float (&bends)[KB][NB_ROWS][4], const float (&s)[KB][NB_ROWS][4]) {
#pragma unroll
  for (int m = 0; m < KB; m++)
#pragma unroll
    for (int n = 0; n < NB_ROWS; n++)
#pragma unroll
      for (int e = 0; e < 4; e++) bends[m][n][e] = bent(s[m][n][e], bends[m][n][e]);
}
//|   end
//| else
// S^T becomes P^T. Rows after the last query have Q, dO, LSE and D of 0 and add nothing; what becomes of keys after the last key is not
// stored.
__device__ __forceinline__ void probabilities(float (&s)[KB][NB_ROWS][4], const Params &p, const Pairs (&pairs)[NB_ROWS]) {
#pragma unroll
  for (int n = 0; n < NB_ROWS; n++)
#pragma unroll
    for (int m = 0; m < KB; m++)
#pragma unroll
      for (int e = 0; e < 4; e++) s[m][n][e] = $(pr.probability("s[m][n][e]", "p.scale_log2", "pairs[n].lse[e % 2]"));
}
//| end

// dP^T becomes dS^T. P^T: a function of the place.
template <class P>
__device__ __forceinline__ void grad_scores(float (&dp)[KB][NB_ROWS][4], const Pairs (&pairs)[NB_ROWS], P probability) {
#pragma unroll
  for (int n = 0; n < NB_ROWS; n++)
#pragma unroll
    for (int m = 0; m < KB; m++) {
      const float4 four = probability(m, n);
      dp[m][n][0] = grad_score(four.x, dp[m][n][0], pairs[n].delta[0]);
      dp[m][n][1] = grad_score(four.y, dp[m][n][1], pairs[n].delta[1]);
      dp[m][n][2] = grad_score(four.z, dp[m][n][2], pairs[n].delta[0]);
      dp[m][n][3] = grad_score(four.w, dp[m][n][3], pairs[n].delta[1]);
    }
}

//| if c.dq == 1 then
//|   include "mma/grad_sums.cu"
//| else
template <int CHUNKS_OF>
__device__ __forceinline__ void clear(float (&sum)[KB][CHUNKS_OF][4]) {
#pragma unroll
  for (int m = 0; m < KB; m++)
#pragma unroll
    for (int n = 0; n < CHUNKS_OF; n++) sum[m][n][0] = sum[m][n][1] = sum[m][n][2] = sum[m][n][3] = 0.f;
}
//| end

extern "C" __global__ void __launch_bounds__(THREADS, 1) fa_grad_kv(const __grid_constant__ Params p) {
  extern __shared__ __align__(128) unsigned char shared[];
  const u32 smem = shared_address(shared);
//| wk.tile_of_keys()
  const int key0 = tile * KEYS;
//| if c.dq == 1 then
  const int local = head_index, unit = p.unit + local, kv_head = unit % p.hkv;  // of those that the workspace holds, of all
  const Sequence sequence = sequence_of(p, unit / p.hkv);
//| else
  const int kv_head = head_index % p.hkv;
  const Sequence sequence = sequence_of(p, head_index / p.hkv);
//| end
  const int sq = sequence.sq(), sk = sequence.sk();
  if (key0 >= sk) return;
//| if c.twins == 1 then
  const int pair = threadIdx.x / 32 % (WARPS / 2), warp_key = pair * 16 * KB;
//| else
  const int warp_key = threadIdx.x / 32 * 16 * KB;
//| end
  const u32 warp_rows = kept(smem + warp_key * CHUNKS * 16);
  const Place k_rows = {warp_rows, 0}, v_rows = {$(p.d == p.dv and "warp_rows" or "smem + warp_key * CHUNKS_V * 16"), SMEM_V};
  const Fragments<CHUNKS> at = make_fragments<CHUNKS>();
  const Fragments<CHUNKS_V> at_v = make_fragments<CHUNKS_V>();

//| if not pr.marked then
  const int first_row = $(pr.first_query("key0")), row_lo = first_row / BR * BR, row_hi = $(pr.last_query_of("key0", "KEYS", "sk"));
//| end
//| local function end_of_heads(text) return pr.marked and text or ("first_row <= row_hi ? %s : 0"):format(text) end
//| if c.dq == 1 then
  const int first_head = kv_head * p.group + p.member;                 // of the launch
  const int heads = $(end_of_heads("first_head + p.members"));  // the end of them
//| else
  const int heads = $(end_of_heads("(kv_head + 1) * p.group"));  // the end of them
//| end
  const int seen_first = $(pr.first_own_query), seen_last = $(pr.last_own_query("sk"));  // rows that see a key: no others are read
//| if l.pass then
#pragma unroll 1
  for (int pass = 0; pass < PASSES; pass++) {
  const int first_k = min(pass * PASS, CHUNKS - PASS), first_v = min(pass * PASS, CHUNKS_V - PASS);  // of its chunks
//| end
//| if pr.marked then
  // On to the next block with a pair that both masks leave.
  auto seek = [&](int &head, int &row) {
    for (; head < heads; head++, row = 0) {
      const int block = marks_of_keys(p, sequence, head, key0, KEYS).next<BR>(row / BR);
      row = block * BR;
      if (block >= 0) return;
    }
  };
  int head = $(c.dq == 1 and "first_head" or "kv_head * p.group"), row = 0;                 // at hand
  seek(head, row);
//| else
  int head = $(c.dq == 1 and "first_head" or "kv_head * p.group"), row = row_lo;            // at hand
//| end
  int next_head = head, next_row = row, next_stage = 0;  // of the next load
//| if walks then
  Walk<BR, CHUNKS, D> walk_q;
  Walk<BR, CHUNKS_V, DV> walk_grad_o;
//| local begin = pr.marked and "next_row" or "row_lo"
  auto begin_head = [&] {
    walk_q.begin(p.q, sequence.q() + next_head * p.q_sh, p.q_ss, $(begin));
    walk_grad_o.begin(p.grad_o, sequence.grad_o() + next_head * p.grad_o_sh, p.grad_o_ss, $(begin));
  };
  begin_head();
//|   if l.chunks == l.chunks_v then
  const u32 piece = walk_q.place(), piece_v = piece;
//|   else
  const u32 piece = walk_q.place(), piece_v = walk_grad_o.place();
//|   end
//| end
  auto load_next = [&] {
    if (next_head < heads) {
      const u32 to = smem + SMEM_STAGES + next_stage * STAGE;
//| if walks then
      walk_q.load(to + piece, p.q_ss, next_row, seen_first, seen_last);
      walk_grad_o.load(to + STAGE_GRAD_O + piece_v, p.grad_o_ss, next_row, seen_first, seen_last);
//| else
      load_rows<BR, CHUNKS, D>(to, p.q, sequence.q() + next_head * p.q_sh, p.q_ss, next_row, seen_first, seen_last);
      load_rows<BR, CHUNKS_V, DV>(to + STAGE_GRAD_O, p.grad_o, sequence.grad_o() + next_head * p.grad_o_sh, p.grad_o_ss, next_row,
                                  seen_first, seen_last);
//| end
      const float2 *const pairs = (const float2 *)p.delta + sequence.delta(next_head, next_row);
      for (int i = threadIdx.x; i < BR; i += THREADS) cp_async<8>(to + STAGE_PAIRS + i * 8, pairs + i, next_row + i < sq);
      next_row += BR;
//| if pr.marked then
      seek(next_head, next_row);
//|   if walks then
      begin_head();
//|   end
//| elseif walks then
      if (next_row > row_hi) {
        next_row = row_lo, next_head++;
        begin_head();
      }
//| else
      if (next_row > row_hi) next_row = row_lo, next_head++;
//| end
//| if c.stages == 2 then
      next_stage ^= 1;
//| end
    }
    cp_async_commit();
  };
  if ($(l.pass and "pass == 0 && " or "")head < heads) {
    const int first = $(pr.first_own_key), last = $(pr.last_own_key("sq"));
    load_rows<KEYS, CHUNKS, D>(smem, p.k, sequence.k() + kv_head * p.k_sh, p.k_ss, key0, first, last);
    load_rows<KEYS, CHUNKS_V, DV>(smem + SMEM_V, p.v, sequence.v() + kv_head * p.v_sh, p.v_ss, key0, first, last);
  }
  load_next();

//| local begin_head = c.dq == 1 and "first_head" or "kv_head * p.group"
//| indented(2, pr.begin_scores, pr.marked and "min(head, heads - 1)" or begin_head)
  // Calls body(cut, q, grad_o, pairs, row) for PART queries at a time, from `row` on, which lie in shared memory. cut: whether some pairs
  // may be hidden; where no other warp is waited for, what is seen whole has a text of its own, without branches. After the barrier at its
  // head a tile has arrived, and no warp reads the one before.
  int stage = 0;
  auto walk = [&](auto body) {
    auto parts = [&](u32 tile) {
#pragma unroll 1
      for (int r = 0; r < BR; r += PART) {
        const Place q = {tile + r * CHUNKS * 16, SMEM_STAGES}, grad_o = {tile + r * CHUNKS_V * 16, SMEM_STAGES + STAGE_GRAD_O};
        const u32 pairs = tile + SMEM_STAGES + STAGE_PAIRS + r * 8;
        const int from = row + r;
//| if pr.marked then
        const int2 marks = marks_of_keys(p, sequence, head, key0 + warp_key, 16 * KB).between(from, from + PART - 1);
        if (marks.x == 0 || !meet(sequence, key0 + warp_key, from)) continue;
        const bool all = marks.y != 0 && whole(sequence, key0 + warp_key, from);
//|   if c.twins == 1 then
        body(!all, q, grad_o, pairs, from);
//|   else
        if (all)
          body(Constant<false>(), q, grad_o, pairs, from);
        else
          body(Constant<true>(), q, grad_o, pairs, from);
//|   end
//| elseif not hides then
        if (meet(sequence, key0 + warp_key, from)) body(Constant<false>(), q, grad_o, pairs, from);
//| elseif c.twins == 1 then
        if (meet(sequence, key0 + warp_key, from)) body(!whole(sequence, key0 + warp_key, from), q, grad_o, pairs, from);
//| else
        if (whole(sequence, key0 + warp_key, from))
          body(Constant<false>(), q, grad_o, pairs, from);
        else if (meet(sequence, key0 + warp_key, from))
          body(Constant<true>(), q, grad_o, pairs, from);
//| end
      }
    };
#pragma unroll 1
    while (head < heads) {
      cp_async_wait<0>();
      __syncthreads();
//| if c.stages == 2 then
      load_next();
      parts(smem + stage * STAGE);
      stage ^= 1;
//| else
      parts(smem);
      __syncthreads();
      load_next();
//| end
      row += BR;
//| if pr.marked then
      seek(head, row);
//|   indented(6, pr.next_scores, "head < heads && head != scored.h", "head")
//| elseif pr.of_pairs then
      if (row > row_hi) {
        row = row_lo, head++;
//|   indented(8, pr.next_scores, "head < heads")
      }
//| else
      if (row > row_hi) row = row_lo, head++;
//| end
    }
    __syncthreads();  // the tiles of K and V are free for what is stored
  };
//| indented(2, pr.begin_dropout)
//| indented(2, pr.dropping, "const int number0 = (int)(sequence.number() * p.hq);  // of the sequence's first head")
//| if c.dq == 1 then
//|   if l.pass then
  float4 *const sums_k = sums_of(p, local, tile, pass), *const sums_v = sums_k + KEYS * 2 * PASS;
//|   else
  float4 *const sums_k = sums_of(p, local, tile), *const sums_v = sums_k + KEYS * 2 * CHUNKS;
//|   end
//| end
  const int rows = sk - key0 - warp_key;
  const long long to_k = sequence.grad_k() + (key0 + warp_key) * p.grad_k_ss + kv_head * p.grad_k_sh;
  const long long to_v = sequence.grad_v() + (key0 + warp_key) * p.grad_v_ss + kv_head * p.grad_v_sh;
//| -- What of a pass is other than of all columns at once.
//| local of_k, of_v, from_k, from_v = "CHUNKS", "CHUNKS_V", "", ""
//| local q, grad_o, staging_k, staging_v = "q", "grad_o", "k_rows.base", "v_rows.base + v_rows.on"
//| if l.pass then
//|   of_k, of_v, from_k, from_v = "PASS", "PASS", ", first_k", ", first_v"
//|   q, grad_o = "(Place{q.base, q.on + first_k * 16})", "(Place{grad_o.base, grad_o.on + first_v * 16})"
//|   staging_k, staging_v = "smem + SMEM_STAGES + warp_key * PASS * 16", "smem + SMEM_STAGES + (KEYS + warp_key) * PASS * 16"
//| end
//| local first_pass = l.pass and "if (pass == 0) " or ""
//| local scores = (pr.bends and "s, bends" or "s") .. ", p, pairs" .. (pr.of_pairs and ", scored, key0 + warp_key, from" or "")
//| if c.twins == 1 then
  const u32 p_from = smem + SMEM_P + pair * (KB * NB_ROWS * 512) + threadIdx.x % 32 * 16;
  if (threadIdx.x < THREADS / 2) {
    float dv[KB][$(of_v)][4];
    $(c.dq == 1 and "begin_sums<THREADS / 2>(p, dv, sums_v)" or "clear(dv)");
    walk([&](auto cut, Place q, Place grad_o, u32 pairs_at, int from) {
      float s[KB][NB_ROWS][4];
      Pairs pairs[NB_ROWS];
      dot_rows(s, k_rows, q, at);
      load_pairs(pairs, pairs_at);
//|   if pr.bends then
      float bends[KB][NB_ROWS][4];
//|   end
//|   if pr.marked then
      if (cut)
        probabilities<true>($(scores));
      else
        probabilities<false>($(scores));
//|   else
      probabilities($(scores));
//|   end
//|   if hides then
      if (cut) hide(s, sequence, key0 + warp_key, from);
//|   end
//|   if pr.bends then
      bend(bends, s);
//|   end
//|   local w = pr.bends and "bends" or "s"
#pragma unroll
      for (int m = 0; m < KB; m++)
#pragma unroll
        for (int n = 0; n < NB_ROWS; n++)
          store_shared(p_from + (m * NB_ROWS + n) * 512, make_uint4(__float_as_uint($(w)[m][n][0]), __float_as_uint($(w)[m][n][1]),
                                                                    __float_as_uint($(w)[m][n][2]), __float_as_uint($(w)[m][n][3])));
      asm volatile("bar.arrive %0, 64;" ::"r"(pair + 1) : "memory");  // P is there for the other warp
//|   indented(6, pr.dropping, "drop(s, kept_of(dropout, number0 + head, from, key0 + warp_key), 1.f);")
      add_rows(dv, s, $(grad_o), at_v);
    });
//|   if c.dq == 1 then
//|     if l.pass then
    if (!last_members(p))
      leave_sums<THREADS / 2>(dv, sums_v);
    else
//|     else
    if (!last_members(p)) return leave_sums<THREADS / 2>(dv, sums_v);
//|     end
//|   end
    store_rows<KB, $(of_v), DV>(p, dv, $(pr.keep_scale), $(staging_v), p.grad_v, to_v, p.grad_v_ss, rows$(from_v));
  } else {
    float dk[KB][$(of_k)][4];
    $(c.dq == 1 and "begin_sums<THREADS / 2>(p, dk, sums_k)" or "clear(dk)");
    walk([&](auto cut, Place q, Place grad_o, u32 pairs_at, int from) {
      float ds[KB][NB_ROWS][4];
      Pairs pairs[NB_ROWS];
      dot_rows(ds, v_rows, grad_o, at_v);
//|   indented(6, pr.dropping, "drop(ds, kept_of(dropout, number0 + head, from, key0 + warp_key), " .. pr.keep_scale .. ");")
      load_pairs(pairs, pairs_at);
      asm volatile("bar.sync %0, 64;" ::"r"(pair + 1) : "memory");  // P has come
      grad_scores(ds, pairs, [&](int m, int n) {
        const uint4 x = load_shared_x4(p_from + (m * NB_ROWS + n) * 512);
        return make_float4(__uint_as_float(x.x), __uint_as_float(x.y), __uint_as_float(x.z), __uint_as_float(x.w));
      });
//|   if c.dq == 1 then
      u32 weights[NB_ROWS / 2][KB][4];
      if (cut) hide(ds, sequence, key0 + warp_key, from);
      pack_scores(weights, ds);
      $(first_pass)spill_scores(p, weights, local, head - first_head, from, key0 + warp_key, sq, sk);
      add_packed(dk, weights, $(q), at);
//|   else
      add_rows(dk, ds, $(q), at);
//|   end
    });
//|   if c.dq == 1 then
//|     if l.pass then
    if (!last_members(p))
      leave_sums<THREADS / 2>(dk, sums_k);
    else
//|     else
    if (!last_members(p)) return leave_sums<THREADS / 2>(dk, sums_k);
//|     end
//|   end
    store_rows<KB, $(of_k), D>(p, dk, $(pr.grad_scale), $(staging_k), p.grad_k, to_k, p.grad_k_ss, rows$(from_k));
  }
//| else
  float dk[KB][$(of_k)][4], dv[KB][$(of_v)][4];
//|   if c.dq == 1 then
  begin_sums<THREADS>(p, dk, sums_k);
  begin_sums<THREADS>(p, dv, sums_v);
//|   else
  clear(dk);
  clear(dv);
//|   end
  walk([&](auto cut, Place q, Place grad_o, u32 pairs_at, int from) {
    float s[KB][NB_ROWS][4], ds[KB][NB_ROWS][4];
    Pairs pairs[NB_ROWS];
    load_pairs(pairs, pairs_at);
    dot_rows(s, k_rows, q, at);
//|   if pr.bends then
    float bends[KB][NB_ROWS][4];
//|   end
    probabilities$(pr.marked and "<cut.value>" or "")($(scores));
//|   if hides then
    if constexpr (cut.value) hide(s, sequence, key0 + warp_key, from);
//|   end
//|   if pr.bends then
    bend(bends, s);
//|   end
//|   local w = pr.bends and "bends" or "s"
    dot_rows(ds, v_rows, grad_o, at_v);
//|   indented(4, pr.dropping, "const Kept kept = kept_of(dropout, number0 + head, from, key0 + warp_key);",
//|     "drop(ds, kept, " .. pr.keep_scale .. ");")
    grad_scores(ds, pairs, [&](int m, int n) { return make_float4($(w)[m][n][0], $(w)[m][n][1], $(w)[m][n][2], $(w)[m][n][3]); });
//|   indented(4, pr.dropping, "drop(s, kept, 1.f);")
//|   if c.dq == 1 then
    u32 weights[NB_ROWS / 2][KB][4];
    if constexpr (cut.value) hide(ds, sequence, key0 + warp_key, from);
    pack_scores(weights, ds);
    $(first_pass)spill_scores(p, weights, local, head - first_head, from, key0 + warp_key, sq, sk);
    add_rows(dv, s, $(grad_o), at_v);
    add_packed(dk, weights, $(q), at);
//|   else
    add_rows(dv, s, $(grad_o), at_v);
    add_rows(dk, ds, $(q), at);
//|   end
  });
//|   if c.dq == 1 then
  if (!last_members(p)) {
    leave_sums<THREADS>(dk, sums_k);
    leave_sums<THREADS>(dv, sums_v);
//|     if not l.pass then
    return;
//|     end
  }$(l.pass and " else {" or "")
//|   end
  store_rows<KB, $(of_k), D>(p, dk, $(pr.grad_scale), $(staging_k), p.grad_k, to_k, p.grad_k_ss, rows$(from_k));
  store_rows<KB, $(of_v), DV>(p, dv, $(pr.keep_scale), $(staging_v), p.grad_v, to_v, p.grad_v_ss, rows$(from_v));
//|   if c.dq == 1 and l.pass then
  }
//|   end
//| end
//| if l.pass then
  __syncthreads();  // what was stored has been read
  }
//| end
}

//| include(c.dq == 1 and "mma/grad_q_spill.cu" or "mma/grad_q_recompute.cu")
//| if p.score and p.score.reads then

//|   include "pairs/grad_operands.cu"
//| end
