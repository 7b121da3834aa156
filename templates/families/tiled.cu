//| local pr = include("pairs/pairs.lua").of(p, l)
//| local wk = include("work/work.lua").of(p, l)
// fagen $(version), attention by two-dimensional tiles without online softmax: S = scale Q K^T, P = softmax(S), O = P V through memory.
//   problem  $(problem_text)
//   config   $(config_text)
//   again    $(command)

// ---- the problem ----
constexpr int D = $(p.d);    // head_dim of Q and K
constexpr int DV = $(p.dv);  // head_dim of V and O

// ---- the config ----
constexpr int TILE = $(c.tile);  // rows and columns of a tile of S
constexpr int ROW = $(c.row);   // scores of a row that the softmax holds in shared memory

// ---- what follows from them ----
constexpr int THREADS = 256;  // 16 x 16, each with N x N scores
constexpr int N = TILE / 16;
constexpr int BC = TILE;
constexpr int DEPTH = $(l.depth);     // of K, and keys of V, in shared memory at a time
constexpr int PITCH = TILE + 4;
constexpr int CHUNKS_V = $(l.chunks_v);   // 64 columns each

//| include "machine/prelude.cu"

//| include "pairs/sequence.cu"

//| include "pairs/mask.cu"

//| include "machine/fma.cu"

// The tile of rows, or the row, that a thread block owns.
struct Tile {
  int row, head, kv_head;
  long long batch;
  float *scores;  // S[batch, head, 0, 0]
  int sq;         // queries of the sequence
  Range keys;     // seen by some row of the tile: S and P hold them for all of its rows
};
template <int ROWS>
__device__ __forceinline__ Tile tile_of_block(const Params &p) {
  Tile t;
  const int tiles = (p.sq + ROWS - 1) / ROWS;
  t.row = $(wk.tile("tiles")) * ROWS;
  t.head = $(wk.head("p.hq", "tiles"));
  t.batch = $(wk.batch("p.hq", "tiles"));
  t.kv_head = t.head / p.group;
  t.scores = (float *)p.scores + (t.batch * p.hq + t.head) * p.sq * p.sk;
  const int first = t.row / TILE * TILE;
  const Sequence sequence = sequence_of(p, t.batch);
  t.sq = sequence.sq();
  t.keys = key_range(p, sequence, first, min(first + TILE, t.sq) - 1);
  return t;
}

extern "C" __global__ void __launch_bounds__(THREADS) fa_scores(const __grid_constant__ Params p) {
  extern __shared__ __align__(16) float shared[];
  float *const q_tile = shared, *const k_tile = shared + D * PITCH;  // transposed: D rows, and DEPTH of them
  const Tile t = tile_of_block<TILE>(p);
  const Sequence sequence = sequence_of(p, t.batch);
  const element *const q = (const element *)p.q + sequence.q() + t.head * p.q_sh;
  const element *const k = (const element *)p.k + sequence.k() + t.kv_head * p.k_sh;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  if (t.keys.key_lo > t.keys.key_hi) return;
  for (int i = threadIdx.x; i < TILE * D; i += THREADS) {
    const int d = i % D, row = t.row + i / D;
    q_tile[d * PITCH + i / D] = row < t.sq ? to_float(q[row * p.q_ss + d]) : 0.f;
  }
  for (int col = t.keys.key_lo; col <= t.keys.key_hi; col += TILE) {
    float sum[N][N] = {};
    for (int d0 = 0; d0 < D; d0 += DEPTH) {
      __syncthreads();  // K is free
      for (int i = threadIdx.x; i < TILE * DEPTH; i += THREADS) {
        const int d = i % DEPTH, key = col + i / DEPTH;
        k_tile[d * PITCH + i / DEPTH] = d0 + d < D && key <= t.keys.key_hi ? to_float(k[key * p.k_ss + d0 + d]) : 0.f;
      }
      __syncthreads();  // K, and Q before it, have arrived
      multiply(sum, q_tile + d0 * PITCH, PITCH, k_tile, PITCH, 0, D % DEPTH == 0 ? DEPTH : min(DEPTH, D - d0), x, y);
    }
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
      for (int j = 0; j < N; j++) {
        const int row = t.row + N * y + i, key = col + N * x + j;
        if (row < t.sq && key <= t.keys.key_hi)
          t.scores[(long long)row * p.sk + key] =
              $(pr.sees("row", "key")) ? $(pr.score("sum[i][j]")) : -infinity();
      }
  }
}

// Over the threads of the block; the words are free again afterwards.
template <class Join>
__device__ __forceinline__ float reduce(float x, float (&words)[4], Join join) {
  for (int i = 16; i > 0; i /= 2) x = join(x, __shfl_xor_sync(~0u, x, i));
  if (threadIdx.x % 32 == 0) words[threadIdx.x / 32] = x;
  __syncthreads();
  x = join(join(words[0], words[1]), join(words[2], words[3]));
  __syncthreads();
  return x;
}

// A row's scores are read once, as far as ROW of them, and written once.
extern "C" __global__ void __launch_bounds__(128) fa_softmax(const __grid_constant__ Params p) {
  extern __shared__ __align__(16) float held[];
  __shared__ float words[4];
  const Tile t = tile_of_block<1>(p);
  if (t.row >= t.sq) return;
  float *const s = t.scores + (long long)t.row * p.sk + t.keys.key_lo;
  const Sequence sequence = sequence_of(p, t.batch);
  const int n = t.keys.key_hi - t.keys.key_lo + 1;
  const int lo = $(pr.first_key("t.row")) - t.keys.key_lo, hi = $(pr.last_key("t.row")) - t.keys.key_lo;  // of those that it sees
  float m = -infinity(), l = 0.f;
  for (int j = threadIdx.x; j < n; j += 128) {
    const float score = s[j];
    if (j < ROW) held[j] = score;
    if ($(pr.seen("j", "lo", "hi"))) m = fmaxf(m, score);
  }
  m = reduce(m, words, [](float a, float b) { return fmaxf(a, b); });
  for (int j = threadIdx.x; j < n; j += 128) {
    const float e = $(pr.exp("(j < ROW ? held[j] : s[j])", "m"));  // NaN where all scores are beyond fp32
    if (j < ROW) held[j] = e;
    if ($(pr.seen("j", "lo", "hi"))) l += e;
  }
  l = reduce(l, words, [](float a, float b) { return a + b; });
  const float inverse = 1.f / l;
  for (int j = threadIdx.x; j < n; j += 128)
    s[j] = $(pr.unseen("j", "lo", "hi")) ? UNSEEN : (j < ROW ? held[j] : $(pr.exp("s[j]", "m"))) * inverse;
  if (threadIdx.x == 0 && p.lse != nullptr) p.lse[sequence.lse(t.head, t.row)] = hi < lo ? -infinity() : $(pr.lse("m", "l"));
}

extern "C" __global__ void __launch_bounds__(THREADS) fa_output(const __grid_constant__ Params p) {
  extern __shared__ __align__(16) float shared[];
  float *const p_tile = shared, *const v_tile = shared + DEPTH * PITCH;  // P transposed
  const Tile t = tile_of_block<TILE>(p);
  const Sequence sequence = sequence_of(p, t.batch);
  const element *const v = (const element *)p.v + sequence.v() + t.kv_head * p.v_sh;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  float sum[CHUNKS_V][N][4] = {};
  for (int key = t.keys.key_lo; key <= t.keys.key_hi; key += DEPTH) {
    __syncthreads();  // P and V are free
    for (int i = threadIdx.x; i < TILE * DEPTH; i += THREADS) {
      const int j = i % DEPTH, row = t.row + i / DEPTH;
      p_tile[j * PITCH + i / DEPTH] = key + j <= t.keys.key_hi && row < t.sq ? t.scores[(long long)row * p.sk + key + j] : 0.f;
    }
    for (int i = threadIdx.x; i < DEPTH * DV; i += THREADS) {
      const int j = i / DV, col = i % DV;
      v_tile[j * (64 * CHUNKS_V) + col] = key + j <= t.keys.key_hi ? to_float(v[(key + j) * p.v_ss + col]) : 0.f;
    }
    __syncthreads();  // both have arrived
#pragma unroll
    for (int c = 0; c < CHUNKS_V; c++) multiply_seen(sum[c], p_tile, PITCH, v_tile + 64 * c, 64 * CHUNKS_V, 0, DEPTH, x, y);
  }
#pragma unroll
  for (int c = 0; c < CHUNKS_V; c++)
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const int row = t.row + N * y + i, col = 64 * c + 4 * x + j;
        if (row < t.sq && col < DV) store_element(p.o, sequence.o() + row * p.o_ss + t.head * p.o_sh + col, sum[c][i][j]);
      }
}
