//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// fagen $(version), naive attention in three passes: S = scale Q K^T, P = softmax(S), O = P V, S and P through memory.
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

// ---- the problem ----
constexpr int D = $(p.d);    // head_dim of Q and K
constexpr int DV = $(p.dv);  // head_dim of V and O

// ---- the config ----
constexpr int TILE = $(c.tile);      // rows and columns of S per block
constexpr int THREADS = 256;  // 16 x 16, each with 4 x 4 elements
constexpr int BC = TILE;
constexpr int DEPTH = 16;     // of the product, per step
constexpr int PITCH = TILE + 4;

//| include "machine/prelude.cu"

//| include "pairs/sequence.cu"

//| include "pairs/mask.cu"

//| include "machine/fma.cu"

//| include "pairs/philox.cu"

// The tile of block $(wk.block): rows, then columns, then heads of all batches.
struct Tile {
  int row, col, head, kv_head;
  long long batch, scores;  // scores: index of S[batch, head, 0, 0]
};
__device__ __forceinline__ Tile tile_of_block(const Params &p, int rows, int row_tiles, int cols, int col_tiles) {
  Tile t;
//| wk.digits({ { "t.row", "row_tiles", " * rows" }, { "t.col", "col_tiles", " * cols" }, { "t.head", "p.hq" } }, "t.batch")
  t.kv_head = t.head / p.group;
  t.scores = (t.batch * p.hq + t.head) * (long long)p.sq * p.sk;
  return t;
}
__device__ __forceinline__ int tiles_of(int n, int tile) { return (n + tile - 1) / tile; }

extern "C" __global__ void __launch_bounds__(THREADS) fa_scores(const __grid_constant__ Params p) {
  extern __shared__ __align__(16) float shared[];
  float *const a = shared, *const b = shared + DEPTH * PITCH;
  const Tile t = tile_of_block(p, TILE, tiles_of(p.sq, TILE), TILE, tiles_of(p.sk, TILE));
  const Sequence sequence = sequence_of(p, t.batch);
  const int sq = sequence.sq(), sk = sequence.sk();
  const element *const q = (const element *)p.q + sequence.q() + t.head * p.q_sh;
  const element *const k = (const element *)p.k + sequence.k() + t.kv_head * p.k_sh;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  float sum[4][4] = {};
  for (int d0 = 0; d0 < D; d0 += DEPTH) {
    for (int i = threadIdx.x; i < TILE * DEPTH; i += THREADS) {
      const int d = i % DEPTH, r = i / DEPTH;
      a[d * PITCH + r] = d0 + d < D && t.row + r < sq ? to_float(q[(long long)(t.row + r) * p.q_ss + d0 + d]) : 0.f;
      b[d * PITCH + r] = d0 + d < D && t.col + r < sk ? to_float(k[(long long)(t.col + r) * p.k_ss + d0 + d]) : 0.f;
    }
    __syncthreads();
    multiply(sum, a, PITCH, b, PITCH, 0, DEPTH, x, y);
    __syncthreads();
  }
  float *const s = (float *)p.scores + t.scores;
//| indented(2, pr.begin_score, "t.head")
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) {
      const int row = t.row + 4 * y + i, col = t.col + 4 * x + j;
      if (row < sq && col < sk)
//| local sees = pr.sees("row", "col") .. pr.and_sees("t.head", "row", "col")
        s[(long long)row * p.sk + col] = $(sees) ? $(pr.score("sum[i][j]", "t.head", "row", "col")) : -infinity();
    }
}

// One warp per row: maximum, sum, quotient.
extern "C" __global__ void __launch_bounds__(THREADS) fa_rows(const __grid_constant__ Params p) {
  const Tile t = tile_of_block(p, 8, tiles_of(p.sq, 8), 0, 1);
  const Sequence sequence = sequence_of(p, t.batch);
  const int row = t.row + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= sequence.sq()) return;
  float *const s = (float *)p.scores + t.scores + (long long)row * p.sk;
//| if pr.has_mask then indented(2, pr.begin_score, "t.head") end
  $(pr.has_mask and "int" or "const int") lo = $(pr.first_key("row")), hi = $(pr.last_key("row"));
  float m = -infinity(), l = 0.f;
  for (int j = lo + lane; j <= hi; j += 32) m = fmaxf(m, s[j]);
  for (int i = 16; i > 0; i /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, i));
//| if pr.has_mask then
  if (m == -infinity()) hi = lo - 1;  // no key that counts
//| end
//| if pr.has_sink then
  const float z = sink_of(p, sequence, t.head, row);
  m = fmaxf(m, z);
  if (lane == 0) l = $(pr.exp("z", "m"));
//| end
  for (int j = lo + lane; j <= hi; j += 32) l += $(pr.exp("s[j]", "m"));  // NaN where all scores are beyond fp32
  for (int i = 16; i > 0; i /= 2) l += __shfl_xor_sync(~0u, l, i);
  const float inverse = 1.f / l;
//| indented(2, pr.begin_dropout, "(int)(t.batch * p.hq + t.head)")
  for (int j = lane; j < sequence.sk(); j += 32)
//| local seen = pr.seen("j", "lo", "hi") .. pr.and_sees("t.head", "row", "j")
    s[j] = $(seen) ? $(pr.exp("s[j]", "m")) * inverse$(pr.weight("number", "row", "j")) : UNSEEN;
//| local keyless = pr.has_sink and "z" or "-infinity()"
  if (lane == 0 && p.lse != nullptr) p.lse[sequence.lse(t.head, row)] = hi < lo ? $(keyless) : $(pr.lse("m", "l"));
}

extern "C" __global__ void __launch_bounds__(THREADS) fa_output(const __grid_constant__ Params p) {
  extern __shared__ __align__(16) float shared[];
  float *const a = shared, *const b = shared + DEPTH * PITCH;
  const Tile t = tile_of_block(p, TILE, tiles_of(p.sq, TILE), 0, 1);
  const Sequence sequence = sequence_of(p, t.batch);
  const int sq = sequence.sq();
  const element *const v = (const element *)p.v + sequence.v() + t.kv_head * p.v_sh;
  const float *const s = (const float *)p.scores + t.scores;
  const Range range = $(pr.range_of("t.head", "t.row", "min(t.row + TILE, sq) - 1"));
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  for (int c0 = 0; c0 < DV; c0 += TILE) {
    float sum[4][4] = {};
    for (int j0 = range.key_lo; j0 <= range.key_hi; j0 += DEPTH) {
      for (int i = threadIdx.x; i < TILE * DEPTH; i += THREADS) {
        const int k = i % DEPTH, r = i / DEPTH;
        a[k * PITCH + r] = j0 + k <= range.key_hi && t.row + r < sq ? s[(long long)(t.row + r) * p.sk + j0 + k] : 0.f;
        const int col = i % TILE, key = i / TILE;
        b[key * PITCH + col] = j0 + key <= range.key_hi && c0 + col < DV ? to_float(v[(long long)(j0 + key) * p.v_ss + c0 + col]) : 0.f;
      }
      __syncthreads();
      multiply_seen(sum, a, PITCH, b, PITCH, 0, DEPTH, x, y);
      __syncthreads();
    }
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 4; j++) {
        const int row = t.row + 4 * y + i, col = c0 + 4 * x + j;
        if (row >= sq || col >= DV) continue;
        store_element(p.o, sequence.o() + (long long)row * p.o_ss + t.head * p.o_sh + col, sum[i][j]);
      }
  }
}
