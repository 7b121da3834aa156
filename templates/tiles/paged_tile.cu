//| needs "l.run"
//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- tiles of K and V out of pages ----
constexpr int RUN = $(l.run);         // keys of a block that certainly lie in one page: pages hold a multiple of $(p.page) tokens
constexpr int RUNS = BC / RUN;

// Where the keys of a block lie: lane i of each warp knows it of run i, and the lanes ask each other.
struct BlockPages {
  int page, token;  // the page, -1 where none is to be read; the run's first token there
};

// An entry of the table is read only where one of its keys lies in [key_lo, key_hi].
__device__ __forceinline__ BlockPages look_up(const Params &p, const int *table, int block, int key_lo, int key_hi) {
  const int key = block * BC + (int)(threadIdx.x % 32) % RUNS * RUN, entry = key / p.page_size;
  return {$(pr.meets("RUN", "key_lo", "key_hi")) ? table[entry] : -1, key - entry * p.page_size};
}

// As load_tile(), of one block of keys. base: token 0 of page 0; strides in bytes. To be used by whole warps.
template <int CHUNKS, bool PAIRS, int ROW_BYTES>
__device__ __forceinline__ void load_pages(u32 tile, const BlockPages &at, const char *base, long long page_stride, long long stride,
                                           int pages, int first, int last) {
  using S = Share<CHUNKS>;
#pragma unroll
  for (int r = 0; r < BC; r += S::STEP) {
    const int row = S::row() + r, source = min(row, BC - 1) / RUN;
    const int page = __shfl_sync(~0u, at.page, source), token = __shfl_sync(~0u, at.token, source);
    if ((BC % S::STEP == 0 || row < BC) && (S::STEP * S::WIDTH == THREADS || S::row() < S::STEP))
      load_row<CHUNKS, PAIRS, ROW_BYTES>(tile, row, base + page * page_stride + (token + row % RUN) * stride,
                                         (u32)page < (u32)pages && (u32)(row - first) <= (u32)(last - first));
  }
}
