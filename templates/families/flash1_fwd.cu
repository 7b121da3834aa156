//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// fagen $(version), FlashAttention-1 (Dao et al. 2022, algorithm 1) in exact fp32: O = softmax(scale Q K^T, masked) V and LSE.
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

// ---- the problem ----
constexpr int D = $(p.d);    // head_dim of Q and K
constexpr int DV = $(p.dv);  // head_dim of V and O

// ---- the config ----
constexpr int BR = $(c.br);        // rows of Q per block
constexpr int BC = $(c.bc);        // keys per block
constexpr int THREADS = 256;  // 16 x 16, each with RI x CJ scores

// ---- what follows from them ----
constexpr int RI = BR / 16, CJ = BC / 16;
constexpr int PITCH_R = BR + 4, PITCH_C = BC + 4;  // of the transposed tiles Q, P and K: floats from one d, or key, to the next
constexpr int PITCH_V = $(64 * l.chunks_v);             // of V: floats from one key to the next
constexpr int SMEM_Q = $(l.q), SMEM_K = $(l.k), SMEM_V = $(l.v), SMEM_P = $(l.p);  // offsets in shared memory, floats

//| include "machine/prelude.cu"

//| include "pairs/sequence.cu"

//| include "pairs/mask.cu"

//| include "machine/fma.cu"

// Over the 16 lanes that share rows.
__device__ __forceinline__ float half_warp_max(float x) {
#pragma unroll
  for (int i = 8; i > 0; i /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, i));
  return x;
}
__device__ __forceinline__ float half_warp_sum(float x) {
#pragma unroll
  for (int i = 8; i > 0; i /= 2) x += __shfl_xor_sync(~0u, x, i);
  return x;
}

// N rows of WIDTH elements from row `first` of a head to shared memory: element d of row r to to[d * step_d + r * step_r]. Rows outside
// [lo, hi] are zeros and not read.
template <int N, int WIDTH>
__device__ __forceinline__ void load_rows(float *to, int step_r, int step_d, const element *from, long long stride, int first, int lo,
                                          int hi) {
  for (int i = threadIdx.x; i < N * WIDTH; i += THREADS) {
    const int r = i / WIDTH, d = i % WIDTH, row = first + r;
    to[r * step_r + d * step_d] = row >= lo && row <= hi ? to_float(from[row * stride + d]) : 0.f;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) fa_fwd(const __grid_constant__ Params p) {
  extern __shared__ __align__(16) float shared[];
  float *const q_tile = shared + SMEM_Q, *const k_tile = shared + SMEM_K, *const v_tile = shared + SMEM_V, *const p_tile = shared + SMEM_P;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  const int head = $(wk.whole_head("p.hq")), kv_head = head / p.group;
  const long long batch = $(wk.batch_of_heads("p.hq")), rows = (batch * p.hq + head) * p.sq;
  const Sequence sequence = sequence_of(p, batch);
  const int sq = sequence.sq();
  const element *const q = (const element *)p.q + sequence.q() + head * p.q_sh;
  const element *const k = (const element *)p.k + sequence.k() + kv_head * p.k_sh;
  const element *const v = (const element *)p.v + sequence.v() + kv_head * p.v_sh;
  const long long o_at = sequence.o() + head * p.o_sh;
  // m, l and O of the keys so far, O divided by l.
  float *const row_max = (float *)p.row_max + rows, *const row_sum = (float *)p.row_sum + rows;
//| if p.o == "fp32" then
  float *const o = (float *)p.o + o_at;
  const long long o_step = p.o_ss;
//| else
  float *const o = (float *)p.partial + rows * DV;
  const long long o_step = DV;
//| end
  if (sq == 0) return;

  for (int row = threadIdx.x; row < sq; row += THREADS) {
    row_max[row] = -infinity();
    row_sum[row] = 0.f;
  }
  for (int row = y; row < sq; row += 16)
    for (int col = x; col < DV; col += 16) o[row * o_step + col] = 0.f;

  const Range seen = key_range(p, sequence, 0, sq - 1);
  for (int key = seen.key_lo / BC * BC; key <= seen.key_hi; key += BC) {
    __syncthreads();  // K, V and P are free; before the first block: O, l and m are there
    load_rows<BC, D>(k_tile, 1, PITCH_C, k, p.k_ss, key, seen.key_lo, seen.key_hi);
    load_rows<BC, DV>(v_tile, PITCH_V, 1, v, p.v_ss, key, seen.key_lo, seen.key_hi);
    for (int row = 0; row < sq; row += BR) {
      const Range range = key_range(p, sequence, row, min(row + BR, sq) - 1);
      const int lo = max(range.key_lo - key, 0), hi = min(range.key_hi - key, BC - 1);  // of this block, seen by some row of the tile
      if (lo > hi) continue;
      __syncthreads();  // Q and P are free
      load_rows<BR, D>(q_tile, 1, PITCH_R, q, p.q_ss, row, 0, sq - 1);
      __syncthreads();  // Q, and K and V before it, have arrived
      float s[RI][CJ] = {}, keep[RI], add[RI];
      multiply(s, q_tile, PITCH_R, k_tile, PITCH_C, 0, D, x, y);
#pragma unroll
      for (int i = 0; i < RI; i++) {
        const int r = row + RI * y + i;
        const int first = $(pr.first_key("r")) - key, last = $(pr.last_key("r")) - key;
        float m = -infinity(), l = 0.f;
#pragma unroll
        for (int j = 0; j < CJ; j++) {
          s[i][j] = $(pr.seen("CJ * x + j", "first", "last")) ? $(pr.score("s[i][j]")) : -infinity();
          m = fmaxf(m, s[i][j]);
        }
        m = half_warp_max(m);
#pragma unroll
        for (int j = 0; j < CJ; j++) {
          const bool sees = $(pr.seen("CJ * x + j", "first", "last"));
          const float e = sees ? $(pr.exp("s[i][j]", "(m == -infinity() ? 0.f : m)")) : 0.f;
          p_tile[(CJ * x + j) * PITCH_R + RI * y + i] = sees ? e : UNSEEN;
          l += e;
        }
        l = half_warp_sum(l);
        float m_old = -infinity(), l_old = 0.f;
        if (x == 0 && r < sq) {
          m_old = row_max[r];
          l_old = row_sum[r];
        }
        m_old = __shfl_sync(~0u, m_old, 0, 16);
        l_old = __shfl_sync(~0u, l_old, 0, 16);
        const float m_new = fmaxf(m_old, m), shift = m_new == -infinity() ? 0.f : m_new;
        const float scale_old = l_old * $(pr.exp("m_old", "shift")), scale_new = $(pr.exp("m", "shift"));
        float l_new = fmaf(scale_new, l, scale_old);
        // A row whose scores are all beyond fp32, downwards, is known by the block of its last key. It is not one that sees no key.
        if (l_new == 0.f && last >= 0 && last < BC && first <= last) l_new = __int_as_float(0x7fffffff);
        const float inverse = l_new == 0.f ? 0.f : 1.f / l_new;
        keep[i] = scale_old * inverse;
        add[i] = scale_new * inverse;
        if (x == 0 && r < sq) {
          row_max[r] = m_new;
          row_sum[r] = l_new;
        }
      }
      __syncthreads();  // P is complete
#pragma unroll 1
      for (int c0 = 0; c0 < DV; c0 += 64) {
        float sum[RI][4] = {};
        multiply_seen(sum, p_tile, PITCH_R, v_tile + c0, PITCH_V, lo, hi + 1, x, y);
#pragma unroll
        for (int i = 0; i < RI; i++)
#pragma unroll
          for (int j = 0; j < 4; j++) {
            const int r = row + RI * y + i, col = c0 + 4 * x + j;
            if (r < sq && col < DV) o[r * o_step + col] = fmaf(keep[i], o[r * o_step + col], add[i] * sum[i][j]);
          }
      }
    }
  }

  // A row that saw no key has l = 0: O = 0, LSE = -inf.
//| if p.o == "fp32" then
  if (p.lse == nullptr) return;
//| end
  __syncthreads();
  if (p.lse != nullptr)
    for (int row = threadIdx.x; row < sq; row += THREADS)
      p.lse[sequence.lse(head, row)] = row_sum[row] == 0.f ? -infinity() : $(pr.lse("row_max[row]", "row_sum[row]"));
//| if p.o ~= "fp32" then
  for (int row = y; row < sq; row += 16)
    for (int col = x; col < DV; col += 16) store_element(p.o, o_at + row * p.o_ss + col, o[row * o_step + col]);
//| end
}
