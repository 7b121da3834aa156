//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// fagen $(version), gradients of attention in passes: P = exp(scale Q K^T - LSE) and dS = P (dO V^T - D) through memory, dQ = scale dS K,
// dK = scale dS^T Q, dV = P^T dO.
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

// ---- the problem ----
constexpr int D = $(p.d);    // head_dim of Q and K
constexpr int DV = $(p.dv);  // head_dim of V and O

// ---- the config ----
constexpr int TILE = $(c.tile);  // rows and columns of a product per block
constexpr int THREADS = 256;     // 16 x 16, each with 4 x 4 elements
constexpr int BC = TILE;
constexpr int DEPTH = 16;        // of the product, per step
constexpr int PITCH = TILE + 4;

//| include "machine/prelude.cu"

//| include "pairs/sequence.cu"

//| include "pairs/mask.cu"

//| include "machine/fma.cu"

//| include "tiles/gradient.cu"

//| include "pairs/grad_probability.cu"

//| include "tiles/delta.cu"

//| include "pairs/philox.cu"

// sum[i][j] += a(4 y + i, k) b(4 x + j, k) over k in [from, to).
template <class A, class B>
__device__ __forceinline__ void product(float (&sum)[4][4], float *shared, int from, int to, A a, B b) {
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  for (int k0 = from; k0 < to; k0 += DEPTH) {
    for (int i = threadIdx.x; i < TILE * DEPTH; i += THREADS) {
      const int k = k0 + i % DEPTH, row = i / DEPTH;
      shared[i % DEPTH * PITCH + row] = k < to ? a(row, k) : 0.f;
      shared[(DEPTH + i % DEPTH) * PITCH + row] = k < to ? b(row, k) : 0.f;
    }
    __syncthreads();
    multiply(sum, shared, PITCH, shared + DEPTH * PITCH, PITCH, 0, DEPTH, x, y);
    __syncthreads();
  }
}

// Of P and dS, [b, hq, sq, sk].
__device__ __forceinline__ long long pair_index(const Params &p, long long batch, int head, int row, int key) {
  return ((batch * p.hq + head) * p.sq + row) * p.sk + key;
}

extern "C" __global__ void __launch_bounds__(THREADS) fa_probabilities(const __grid_constant__ Params p) {
  extern __shared__ __align__(16) float shared[];
  const int cols = (p.sk + TILE - 1) / TILE, row0 = $(wk.tile()) * TILE, key0 = $(wk.head("cols")) * TILE;
  const int head = $(wk.batch("cols")) % p.hq, kv_head = head / p.group;
  const long long batch = $(wk.batch("cols")) / p.hq;
  const Sequence sequence = sequence_of(p, batch);
  const int sq = sequence.sq(), sk = sequence.sk();
  if (row0 >= sq || key0 >= sk) return;
  const Range range = key_range(p, sequence, row0, min(row0 + TILE, sq) - 1);
  const element *const q = (const element *)p.q + sequence.q() + head * p.q_sh;
  const element *const k = (const element *)p.k + sequence.k() + kv_head * p.k_sh;
  const element *const v = (const element *)p.v + sequence.v() + kv_head * p.v_sh;
  const char *const grad_o = (const char *)p.grad_o + (sequence.grad_o() + head * p.grad_o_sh) * $(p.o_bytes);
  auto seen = [&](int key) { return key >= range.key_lo && key <= range.key_hi; };
  float s[4][4] = {}, dp[4][4] = {};
  product(s, shared, 0, D,
          [&](int row, int i) { return row0 + row < sq ? to_float(q[(row0 + row) * p.q_ss + i]) : 0.f; },
          [&](int key, int i) { return seen(key0 + key) ? to_float(k[(key0 + key) * p.k_ss + i]) : 0.f; });
  product(dp, shared, 0, DV,
          [&](int row, int i) { return row0 + row < sq ? load_o(grad_o, (row0 + row) * p.grad_o_ss + i) : 0.f; },
          [&](int key, int i) { return seen(key0 + key) ? to_float(v[(key0 + key) * p.v_ss + i]) : 0.f; });
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
//| indented(2, pr.begin_dropout)
//| indented(2, pr.begin_score, "head")
  for (int i = 0; i < 4; i++) {
    const int row = row0 + 4 * y + i;
    if (row >= sq) continue;
    const float lse = p.lse[sequence.lse(head, row)], delta = ((const float *)p.delta)[sequence.delta(head, row)];
    for (int j = 0; j < 4; j++) {
      const int key = key0 + 4 * x + j;
      if (key >= sk) continue;
      const bool visible = $(pr.sees("row", "key")) && lse != -infinity()$(pr.and_sees("head", "row", "key"));
//| local score = pr.score_of_pair("s[i][j]", "head", "row", "key")
//| indented(6, pr.begin_pair, "s[i][j]", "head", "row", "key")
      const float e = visible ? $(pr.probability_e(score .. " * " .. pr.unit, "finite_lse(lse)")) : 0.f;
//| indented(6, pr.dropping, "const bool kept = " .. pr.keeps("(int)(batch * p.hq + head)", "row", "key") .. ";")
      ((float *)p.probabilities)[pair_index(p, batch, head, row, key)] = $(pr.kept("e"));
      ((float *)p.grad_scores)[pair_index(p, batch, head, row, key)] = visible ? $(pr.dscore(pr.bent("e"), pr.kept("dp[i][j]"), "delta")) : 0.f;
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) fa_grad_q(const __grid_constant__ Params p) {
  extern __shared__ __align__(16) float shared[];
  const int row0 = $(wk.tile()) * TILE, head = $(wk.head("p.hq")), kv_head = head / p.group;
  const long long batch = $(wk.batch("p.hq"));
  const Sequence sequence = sequence_of(p, batch);
  const int sq = sequence.sq();
  if (row0 >= sq) return;
  const Range range = key_range(p, sequence, row0, min(row0 + TILE, sq) - 1);
  const element *const k = (const element *)p.k + sequence.k() + kv_head * p.k_sh;
  const float *const ds = (const float *)p.grad_scores + pair_index(p, batch, head, row0, 0);
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  for (int c0 = 0; c0 < D; c0 += TILE) {
    float sum[4][4] = {};
    product(sum, shared, range.key_lo, range.key_hi + 1,
            [&](int row, int key) { return row0 + row < sq ? ds[(long long)row * p.sk + key] : 0.f; },
            [&](int col, int key) { return c0 + col < D ? to_float(k[key * p.k_ss + c0 + col]) : 0.f; });
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 4; j++) {
        const int row = row0 + 4 * y + i, col = c0 + 4 * x + j;
        if (row < sq && col < D)
          store_gradient(p, p.grad_q, sequence.grad_q() + row * p.grad_q_ss + head * p.grad_q_sh + col, sum[i][j] * $(pr.grad_scale));
      }
  }
}

// One tile of dK, and of dV: sums over the queries of all heads of the group.
extern "C" __global__ void __launch_bounds__(THREADS) fa_grad_kv(const __grid_constant__ Params p) {
  extern __shared__ __align__(16) float shared[];
  const int key0 = $(wk.tile()) * TILE, kv_head = $(wk.head("p.hkv"));
  const long long batch = $(wk.batch("p.hkv"));
  const Sequence sequence = sequence_of(p, batch);
  const int sq = sequence.sq(), sk = sequence.sk();
  if (key0 >= sk) return;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  for (int c0 = 0; c0 < max(D, DV); c0 += TILE) {
    float dk[4][4] = {}, dv[4][4] = {};
    for (int head = kv_head * p.group; head < (kv_head + 1) * p.group; head++) {
      const element *const q = (const element *)p.q + sequence.q() + head * p.q_sh;
      const char *const grad_o = (const char *)p.grad_o + (sequence.grad_o() + head * p.grad_o_sh) * $(p.o_bytes);
      const float *const e = (const float *)p.probabilities + pair_index(p, batch, head, 0, key0);
      const float *const ds = (const float *)p.grad_scores + pair_index(p, batch, head, 0, key0);
      if (c0 < D)
        product(dk, shared, 0, sq, [&](int key, int row) { return key0 + key < sk ? ds[(long long)row * p.sk + key] : 0.f; },
                [&](int col, int row) { return c0 + col < D ? to_float(q[row * p.q_ss + c0 + col]) : 0.f; });
      if (c0 < DV)
        product(dv, shared, 0, sq, [&](int key, int row) { return key0 + key < sk ? e[(long long)row * p.sk + key] : 0.f; },
                [&](int col, int row) { return c0 + col < DV ? load_o(grad_o, row * p.grad_o_ss + c0 + col) : 0.f; });
    }
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 4; j++) {
        const int key = key0 + 4 * y + i, col = c0 + 4 * x + j;
        if (key < sk && col < D)
          store_gradient(p, p.grad_k, sequence.grad_k() + key * p.grad_k_ss + kv_head * p.grad_k_sh + col, dk[i][j] * $(pr.grad_scale));
        if (key < sk && col < DV)
          store_gradient(p, p.grad_v, sequence.grad_v() + key * p.grad_v_ss + kv_head * p.grad_v_sh + col, dv[i][j]);
      }
  }
}
//| if p.score and p.score.reads then

//|   include "pairs/grad_operands.cu"
//| end
