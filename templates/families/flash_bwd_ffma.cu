//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// fagen $(version), gradients of attention in exact fp32: P = exp(scale Q K^T - LSE), dS = P (dO V^T - D), dQ = scale dS K,
// dK = scale dS^T Q, dV = P^T dO.
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

// ---- the problem ----
constexpr int D = $(p.d);    // head_dim of Q and K
constexpr int DV = $(p.dv);  // head_dim of V and O

// ---- the config ----
constexpr int BR = $(c.br);  // queries of a tile
constexpr int BC = $(c.bc);  // keys of a tile
constexpr int THREADS = $(l.threads);

// ---- what follows from them ----
constexpr int RI = BR / 16;  // queries of a thread
constexpr int CJ = BC / 16;  // keys of a thread
constexpr int DJ = $(l.dj);  // float4 of a thread in a row of dQ and dK
constexpr int VJ = $(l.vj);  // float4 of a thread in a row of dV
constexpr int CHUNKS = $(l.chunks);      // float4 of a row of Q and K
constexpr int CHUNKS_V = $(l.chunks_v);  // float4 of a row of V and dO
constexpr int SMEM_K = $(l.k), SMEM_V = $(l.v), SMEM_Q = $(l.q), SMEM_GRAD_O = $(l.grad_o), SMEM_DS = $(l.ds), SMEM_P = $(l.p);
constexpr float LOG2E = 1.44269504088896341f;

//| include "machine/prelude.cu"

//| include "tiles/tile.cu"

//| include "pairs/sequence.cu"

//| include "pairs/mask.cu"

//| include "pairs/query_range.cu"

//| include "tiles/gradient.cu"

//| include "pairs/grad_probability.cu"

//| include "tiles/delta.cu"

//| include "pairs/philox.cu"

__device__ __forceinline__ float4 load_float4(u32 from) {
  const uint4 x = load_shared_x4(from);
  return make_float4(__uint_as_float(x.x), __uint_as_float(x.y), __uint_as_float(x.z), __uint_as_float(x.w));
}
__device__ __forceinline__ void fma4(float4 &sum, float x, const float4 &y) {
  sum.x = fmaf(x, y.x, sum.x);
  sum.y = fmaf(x, y.y, sum.y);
  sum.z = fmaf(x, y.z, sum.z);
  sum.w = fmaf(x, y.w, sum.w);
}
__device__ __forceinline__ float dot4(const float4 &a, const float4 &b, float sum) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

// s[i][j] += the dot product of row y + 16 i of one tile with row x + 16 j of another.
template <int N>
__device__ __forceinline__ void dots(float (&s)[RI][CJ], u32 rows, u32 keys, int x, int y) {
#pragma unroll 2
  for (int c = 0; c < N; c++) {
    float4 key[CJ];
#pragma unroll
    for (int j = 0; j < CJ; j++) key[j] = load_float4(keys + tile_offset<N>(x + 16 * j, c));
#pragma unroll
    for (int i = 0; i < RI; i++) {
      const float4 row = load_float4(rows + tile_offset<N>(y + 16 * i, c));
#pragma unroll
      for (int j = 0; j < CJ; j++) s[i][j] = dot4(row, key[j], s[i][j]);
    }
  }
}

// The place of P or dS of a row and a key in its tile of BR rows.
__device__ __forceinline__ u32 pair_offset(int row, int key) { return tile_offset<BC / 4>(row, key / 4) + key % 4 * 4; }

// P and dS of the tiles in shared memory, to shared memory: queries from row0 on, keys from key0 on. WITH_P: else dS alone.
//| local cut = pr.marked and ", bool cut" or ""
template <bool WITH_P>
__device__ __forceinline__ void score_gradients(const Params &p, const Sequence &sequence, u32 smem, int head, int row0, int key0$(cut)) {
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  float s[RI][CJ] = {}, dp[RI][CJ] = {};
  dots<CHUNKS>(s, smem + SMEM_Q, smem + SMEM_K, x, y);
  dots<CHUNKS_V>(dp, smem + SMEM_GRAD_O, smem + SMEM_V, x, y);
//| indented(2, pr.begin_dropout, "(int)(sequence.number() * p.hq + head)")
//| indented(2, pr.begin_score, "head")
#pragma unroll
  for (int i = 0; i < RI; i++) {
    const int row = row0 + y + 16 * i;
    const bool real = row < sequence.sq();
    const float lse = real ? p.lse[sequence.lse(head, row)] : -infinity();
    const float delta = real ? ((const float *)p.delta)[sequence.delta(head, row)] : 0.f;
    const int lo = $(pr.first_key("row")), hi = lse == -infinity() ? -1 : $(pr.last_key("row"));
#pragma unroll
    for (int j = 0; j < CJ; j++) {
      const int key = key0 + x + 16 * j;
      const bool visible = $(pr.seen("key", "lo", "hi"))$(pr.and_sees("head", "row", "key", "cut"));
//| local score = pr.score_of_pair("s[i][j]", "head", "row", "key")
//| indented(6, pr.begin_pair, "s[i][j]", "head", "row", "key")
      $(pr.p_type) e = visible ? $(pr.probability(score, pr.unit, "finite_lse(lse)", "LOG2E")) : 0.f;
//| indented(6, pr.dropping, "const bool kept = " .. pr.keeps("number", "row", "key") .. ";")
      const float ds = visible ? $(pr.dscore(pr.bent("e"), pr.kept("dp[i][j]"), "delta")) : 0.f;
//| indented(6, pr.dropping, "if (!kept) e = 0.f;  // dV has the scale of what is kept at its end")
      const u32 at = pair_offset(y + 16 * i, x + 16 * j);
      if constexpr (WITH_P) store_shared(smem + SMEM_P + at, __float_as_uint(e));
      store_shared(smem + SMEM_DS + at, __float_as_uint(ds));
    }
  }
}

// Keys of thread y in the products with P^T and dS^T: four in a row where it has that many.
__device__ __forceinline__ int key_at(int y, int i) { return CJ % 4 == 0 ? 4 * y + i / 4 * 64 + i % 4 : y + 16 * i; }
__device__ __forceinline__ void load_keys(float (&w)[CJ], u32 tile, int row, int y) {
  if constexpr (CJ % 4 == 0) {
#pragma unroll
    for (int i = 0; i < CJ; i += 4) {
      const float4 four = load_float4(tile + pair_offset(row, key_at(y, i)));
      w[i] = four.x, w[i + 1] = four.y, w[i + 2] = four.z, w[i + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < CJ; i++) w[i] = __uint_as_float(load_shared(tile + pair_offset(row, key_at(y, i))));
  }
}

// sum[i][j] += w^T rows over the tile's queries: key_at(y, i) by float4 x + 16 j.
template <int N, int J>
__device__ __forceinline__ void add_rows(float4 (&sum)[CJ][J], u32 weights, u32 rows, int x, int y) {
#pragma unroll 2
  for (int r = 0; r < BR; r++) {
    float w[CJ];
    load_keys(w, weights, r, y);
#pragma unroll
    for (int j = 0; j < J; j++) {
      const float4 row = load_float4(rows + tile_offset<N>(r, min(x + 16 * j, N - 1)));
#pragma unroll
      for (int i = 0; i < CJ; i++) fma4(sum[i][j], w[i], row);
    }
  }
}

template <int WIDTH>
__device__ __forceinline__ void store_row(const Params &p, void *to, long long at, int col, const float4 &sum, float scale) {
  if (col < WIDTH) store_gradient(p, to, at + col, sum.x * scale);
  if (col + 1 < WIDTH) store_gradient(p, to, at + col + 1, sum.y * scale);
  if (col + 2 < WIDTH) store_gradient(p, to, at + col + 2, sum.z * scale);
  if (col + 3 < WIDTH) store_gradient(p, to, at + col + 3, sum.w * scale);
}

// Rows of Q and dO from row0 on; rows after the last become zeros.
__device__ __forceinline__ void load_queries(const Params &p, const Sequence &sequence, u32 smem, int head, int row0) {
  const int last = sequence.sq() - 1 - row0;
  const float *const q = (const float *)p.q + sequence.q() + head * p.q_sh + row0 * p.q_ss;
  const float *const grad_o = (const float *)p.grad_o + sequence.grad_o() + head * p.grad_o_sh + row0 * p.grad_o_ss;
  load_tile<BR, CHUNKS, false, D * 4>(smem + SMEM_Q, (const char *)q, p.q_ss * 4, 0, last);
  load_tile<BR, CHUNKS_V, false, DV * 4>(smem + SMEM_GRAD_O, (const char *)grad_o, p.grad_o_ss * 4, 0, last);
}

// Rows of K and V from key0 on; keys before the first and after the last become zeros.
__device__ __forceinline__ void load_keys_and_values(const Params &p, const Sequence &sequence, u32 smem, int kv_head, int key0, int first,
                                                     int last) {
  const float *const k = (const float *)p.k + sequence.k() + kv_head * p.k_sh + key0 * p.k_ss;
  const float *const v = (const float *)p.v + sequence.v() + kv_head * p.v_sh + key0 * p.v_ss;
  load_tile<BC, CHUNKS, false, D * 4>(smem + SMEM_K, (const char *)k, p.k_ss * 4, first - key0, last - key0);
  load_tile<BC, CHUNKS_V, false, DV * 4>(smem + SMEM_V, (const char *)v, p.v_ss * 4, first - key0, last - key0);
}

// dK and dV of a tile of keys: over the queries that see them, of all heads of the group.
extern "C" __global__ void __launch_bounds__(THREADS, 1) fa_grad_kv(const __grid_constant__ Params p) {
  extern __shared__ __align__(128) unsigned char shared[];
  const u32 smem = shared_address(shared);
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  const int key0 = $(wk.tile()) * BC, kv_head = $(wk.head("p.hkv"));
  const Sequence sequence = sequence_of(p, $(wk.batch("p.hkv")));
  if (key0 >= sequence.sk()) return;
  float4 dk[CJ][DJ], dv[CJ][VJ];
#pragma unroll
  for (int i = 0; i < CJ; i++) {
#pragma unroll
    for (int j = 0; j < DJ; j++) dk[i][j] = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
    for (int j = 0; j < VJ; j++) dv[i][j] = make_float4(0.f, 0.f, 0.f, 0.f);
  }
  const int row_lo = $(pr.first_query("key0")), row_hi = $(pr.last_query_of("key0", "BC"));
  if (row_lo <= row_hi) {
    load_keys_and_values(p, sequence, smem, kv_head, key0, $(pr.first_own_key), $(pr.last_own_key()));
    for (int head = kv_head * p.group; head < (kv_head + 1) * p.group; head++)
      for (int row0 = row_lo / BR * BR; row0 <= row_hi; row0 += BR) {
//| if pr.marked then
        const int2 marks = marks_of_keys(p, sequence, head, key0, BC).between(row0, row0 + BR - 1);
        if (marks.x == 0) continue;
//| end
//| local cut = pr.marked and ", marks.y == 0" or ""
        load_queries(p, sequence, smem, head, row0);
        cp_async_commit();
        cp_async_wait<0>();
        __syncthreads();  // Q and dO have arrived
        score_gradients<true>(p, sequence, smem, head, row0, key0$(cut));
        __syncthreads();  // P and dS are complete
        add_rows<CHUNKS_V, VJ>(dv, smem + SMEM_P, smem + SMEM_GRAD_O, x, y);
        add_rows<CHUNKS, DJ>(dk, smem + SMEM_DS, smem + SMEM_Q, x, y);
        __syncthreads();  // before the next tile takes their place
      }
  }
#pragma unroll
  for (int i = 0; i < CJ; i++) {
    const int key = key0 + key_at(y, i);
    if (key >= sequence.sk()) continue;
#pragma unroll
    for (int j = 0; j < DJ; j++)
      store_row<D>(p, p.grad_k, sequence.grad_k() + key * p.grad_k_ss + kv_head * p.grad_k_sh, 4 * (x + 16 * j),
                   dk[i][j], $(pr.grad_scale));
#pragma unroll
    for (int j = 0; j < VJ; j++)
      store_row<DV>(p, p.grad_v, sequence.grad_v() + key * p.grad_v_ss + kv_head * p.grad_v_sh, 4 * (x + 16 * j),
                    dv[i][j], $(pr.keep_scale));
  }
}

// dQ of a tile of queries: over the keys that they see.
extern "C" __global__ void __launch_bounds__(THREADS, 1) fa_grad_q(const __grid_constant__ Params p) {
  extern __shared__ __align__(128) unsigned char shared[];
  const u32 smem = shared_address(shared);
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  const int row0 = $(wk.tile()) * BR, head = $(wk.head("p.hq"));
  const Sequence sequence = sequence_of(p, $(wk.batch("p.hq")));
  if (row0 >= sequence.sq()) return;
  const Range range = key_range(p, sequence, row0, min(row0 + BR, sequence.sq()) - 1);
  float4 dq[RI][DJ];
#pragma unroll
  for (int i = 0; i < RI; i++)
#pragma unroll
    for (int j = 0; j < DJ; j++) dq[i][j] = make_float4(0.f, 0.f, 0.f, 0.f);
  if (range.block_lo <= range.block_hi) load_queries(p, sequence, smem, head, row0);
  for (int block = range.block_lo; block <= range.block_hi; block++) {
//| if pr.marked then
    const int2 marks = marks_of_queries(p, sequence, head, row0, BR).between(block * BC, block * BC + BC - 1);
    if (marks.x == 0) continue;
//| end
    load_keys_and_values(p, sequence, smem, head / p.group, block * BC, range.key_lo, range.key_hi);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();  // K and V have arrived
    score_gradients<false>(p, sequence, smem, head, row0, block * BC$(cut));
    __syncwarp();  // dS of the warp's rows is complete
#pragma unroll 2
    for (int c = 0; c < BC / 4; c++) {
      float4 key[4][DJ];
#pragma unroll
      for (int n = 0; n < 4; n++)
#pragma unroll
        for (int j = 0; j < DJ; j++) key[n][j] = load_float4(smem + SMEM_K + tile_offset<CHUNKS>(4 * c + n, min(x + 16 * j, CHUNKS - 1)));
#pragma unroll
      for (int i = 0; i < RI; i++) {
        const float4 w = load_float4(smem + SMEM_DS + tile_offset<BC / 4>(y + 16 * i, c));
#pragma unroll
        for (int j = 0; j < DJ; j++) {
          fma4(dq[i][j], w.x, key[0][j]);
          fma4(dq[i][j], w.y, key[1][j]);
          fma4(dq[i][j], w.z, key[2][j]);
          fma4(dq[i][j], w.w, key[3][j]);
        }
      }
    }
    __syncthreads();  // before the next block takes the place of K and V
  }
#pragma unroll
  for (int i = 0; i < RI; i++) {
    const int row = row0 + y + 16 * i;
    if (row >= sequence.sq()) continue;
#pragma unroll
    for (int j = 0; j < DJ; j++)
      store_row<D>(p, p.grad_q, sequence.grad_q() + row * p.grad_q_ss + head * p.grad_q_sh, 4 * (x + 16 * j), dq[i][j], $(pr.grad_scale));
  }
}
//| if p.score and p.score.reads then

//|   include "pairs/grad_operands.cu"
//| end
